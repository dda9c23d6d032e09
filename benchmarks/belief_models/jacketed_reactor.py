"""A stirred reactor A -> B that heats itself, cooled by a jacket: the rate and the cooling are unknown."""

import sympy as sp

from symdual import Model, Scenario, unknown

amount, temperature, jacket = sp.symbols("amount temperature jacket")  # mol/l, K, K
FLOW, VOLUME, FEED, FEED_TEMPERATURE = 100.0, 100.0, 1.0, 350.0  # l/min, l, mol/l, K
ACTIVATION, HEAT, CAPACITY = 8750.0, 5e4, 239.0  # E/R in K, J/mol, rho cp in J/(l K)
frequency = unknown("frequency", mean=7.2e10, variance=0.72e10**2)  # 1/min
cooling = unknown("cooling", mean=5e4, variance=5e3**2)  # J/(min K)
rate = frequency * sp.exp(-ACTIVATION / temperature) * amount

model = Model(
    states=[amount, temperature],
    inputs=[jacket],
    derivatives=[
        FLOW / VOLUME * (FEED - amount) - rate,
        FLOW / VOLUME * (FEED_TEMPERATURE - temperature)
        + HEAT / CAPACITY * rate
        + cooling / (CAPACITY * VOLUME) * (jacket - temperature),
    ],
    step=0.05,
    method="rk4",
    substeps=4,
    observation=[temperature],
    process_noise=[1e-6, 1e-2],
    measurement_noise=0.2**2,
    bounds={jacket: (280.0, 320.0)},
)
scenario = Scenario(
    model,
    horizon=30,
    state_cost=[0.0, 1.0],
    input_cost=0.01,
    input_reference=300.0,
    start=[0.877, 324.5],
    start_covariance=[0.02**2, 0.5**2],
    reference=[0.877, 320.0],
)
