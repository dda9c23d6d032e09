"""A tank with an ion-selective electrode, which measures the logarithm of a concentration that is known to 40 %."""

import sympy as sp

from symdual import Model, Scenario, unknown

c, feed = sp.symbols("c feed")  # mmol/l, l/min
decay = unknown("decay", mean=0.05, variance=0.02**2)  # 1/min
strength = unknown("strength", mean=2.0, variance=0.5**2)  # mmol/l for each l

model = Model(
    states=[c],
    inputs=[feed],
    derivatives=[strength * feed - decay * c],
    step=1.0,
    method="rk4",
    observation=[25.7 * sp.log(c)],  # mV
    process_noise=1e-4,
    measurement_noise=0.3**2,
    bounds={feed: (0.0, 1.0)},
)
scenario = Scenario(
    model,
    horizon=30,
    start=[5.0],
    start_covariance=2.0**2,
    reference=[8.0],
    state_cost=1.0,
    input_cost=0.1,
)
