"""Experiment 4: two bumps on the rail whose heights are believed to drift, so that knowledge has to be kept up.

The reference passes the first bump and stays at the second: knowing the first is worthless from then on.
"""

import sympy as sp

from symdual import Model, Scenario, unknown

position, velocity, force = sp.symbols("position velocity force")
theta1, theta2 = unknown("theta1"), unknown("theta2")
slope = theta1 * sp.exp(-((position - 2) ** 2) / 2) + theta2 * sp.exp(-((position + 2) ** 2) / 2)

model = Model(
    states=[position, velocity],
    inputs=[force],
    dynamics=[position + 0.4 * velocity, velocity + slope + force],
    process_noise=1e-2,
    measurement_noise=1e-2,
    drift=0.1,  # not given in the paper; neither are the noise levels
)


def reference(k: int) -> list[float]:
    """Wait, pass the first bump, stay at the second."""
    return [{7: -4.0, 8: -2.0, 9: 0.0}.get(k, -5.0 if k < 7 else 2.0), 0.0]


scenario = Scenario(
    model,
    horizon=20,
    state_cost=lambda k: [10.0 if k >= 6 else 0.0, 0.0],
    input_cost=1e-3,
    reference=reference,
    start=reference(0),
    truth={"theta1": 1.0, "theta2": 0.8},
    bonus=100.0,
)
