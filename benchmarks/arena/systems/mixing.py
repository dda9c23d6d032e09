"""Hot and cold water mixed to a wanted temperature and flow, with pressures and a boiler that are not known.

Source: written for this collection, a thermostatic mixer with two motor valves. Why: two inputs with unknown gains that
are seen together, and delays by a short pipe.
"""

import sympy as sp

from symdual import Model, Scenario, unknown

flow, heat, hot, cold = sp.symbols("flow heat hot cold")  # l/s, tens of degrees times l/s, valves open by a share
pressure_hot = unknown("pressure_hot", mean=0.30, variance=0.06**2)  # l/s when open
pressure_cold = unknown("pressure_cold", mean=0.35, variance=0.06**2)  # l/s when open
boiler = unknown("boiler", mean=6.0, variance=0.6**2)  # tens of degrees

model = Model(
    states=[flow, heat],
    inputs=[hot, cold],
    derivatives=[
        2.0 * (pressure_hot * hot + pressure_cold * cold - flow),
        1.0 * (boiler * pressure_hot * hot + 1.2 * pressure_cold * cold - heat),
    ],
    step=0.25,
    method="rk4",
    process_noise=[1e-6, 1e-5],
    measurement_noise=[1e-4, 4e-3],
    bounds={hot: (0.0, 1.0), cold: (0.0, 1.0)},
)
scenario = Scenario(
    model,
    horizon=25,
    reference=lambda k: [0.20, 0.20 * 3.8] if k < 14 else [0.30, 0.30 * 3.8],
    state_cost=[200.0, 40.0],
    input_cost=[0.02, 0.02],
    start_covariance=[1e-6, 1e-5],
)
