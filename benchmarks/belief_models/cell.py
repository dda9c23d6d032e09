"""A lithium cell as an equivalent circuit: charge, one slow voltage, and resistances and a capacity that have aged."""

import sympy as sp

from symdual import Model, Scenario, previous, unknown

charge, slow, current = sp.symbols("charge slow current")  # share, V, A (charging)
STEP = 60.0  # s
series = unknown("series", mean=0.030, variance=0.008**2)  # ohm
parallel = unknown("parallel", mean=0.020, variance=0.006**2)  # ohm
slowness = unknown("slowness", mean=1 / 400, variance=(1 / 1600) ** 2)  # 1/s
per_second = unknown("per_second", mean=1 / 9000, variance=(1 / 70000) ** 2)  # 1/(A s)
at_rest = 3.2 + 1.6 * charge - 2.1 * charge**2 + 1.5 * charge**3 - 0.35 * sp.exp(-20 * charge)

model = Model(
    states=[charge, slow],
    inputs=[current],
    derivatives=[per_second * current, slowness * (parallel * current - slow)],
    step=STEP,
    method="rk4",
    observation=[at_rest + slow + series * previous(current)],
    process_noise=[1e-9, 1e-8],
    measurement_noise=2e-3**2,
    bounds={current: (-5.0, 5.0)},
)
scenario = Scenario(
    model,
    horizon=30,
    state_cost=[100.0, 0.0],
    input_cost=1e-3,
    start=[0.3, 0.0],
    start_covariance=[0.05**2, 0.01**2],
    reference=[0.7, 0.0],
)
