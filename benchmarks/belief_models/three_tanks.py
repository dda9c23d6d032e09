"""Three tanks in series, each emptied through an orifice of unknown width; the last level is measured."""

import sympy as sp

from symdual import Model, Scenario, unknown

levels = sp.symbols("upper middle lower")  # m
pump = sp.Symbol("pump")  # m3/s
AREA, ORIFICE = 0.0154, 5e-5  # m2
widths = [unknown(f"width_{name}", mean=1.0, variance=0.2**2) for name in ("upper", "middle", "lower")]
out = [w * ORIFICE * sp.sqrt(2 * 9.81 * sp.Max(h, 1e-4)) for w, h in zip(widths, levels, strict=True)]

model = Model(
    states=list(levels),
    inputs=[pump],
    derivatives=[(before - after) / AREA for before, after in zip([pump, *out], out, strict=False)],
    step=10.0,
    method="rk4",
    observation=[levels[0], levels[2]],
    process_noise=1e-6,
    measurement_noise=5e-3**2,
    bounds={pump: (0.0, 2.5e-4)},
)
scenario = Scenario(
    model,
    horizon=30,
    state_cost=[0.0, 0.0, 100.0],
    input_cost=1e5,
    input_reference=1.2e-4,
    start=[0.25, 0.2, 0.2],
    start_covariance=0.02**2,
    reference=[0.0, 0.0, 0.35],
)
