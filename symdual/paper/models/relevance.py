"""Experiment 3: the same cart with a small neural network; only one half of what is unknown will matter.

The reference visits one side only. Four logistic units v_i s(w_i (x - b_i)) with unknown weights and slopes can
represent the true slope exactly.
"""

import numpy as np
import sympy as sp

from symdual import Model, Scenario, features, logistic, unknown

position, velocity, force = sp.symbols("position velocity force")
slope = features.logistic(
    "net",
    position,
    locations=np.linspace(-5.0, 5.0, 4),
    mean=0.0,
    variance=1.0,
    slope_mean=[-1.0, -1.0, 1.0, 1.0],  # the priors of the slopes are our choice
    slope_variance=0.1,
)

model = Model(
    states=[position, velocity],
    inputs=[force],
    dynamics=[position + 0.4 * velocity, velocity + slope + force],
    process_noise=1e-3,
    measurement_noise=1e-3,
)

theta1, theta2 = unknown("theta1"), unknown("theta2")
true_slope = -theta1 * logistic(-(position + 5)) + theta2 * logistic(position - 5)

relevance_plant = Model(
    states=[position, velocity],
    inputs=[force],
    dynamics=[position + 0.4 * velocity, velocity + true_slope + force],
    process_noise=1e-3,
    measurement_noise=1e-3,
)


def reference(k: int) -> list[float]:
    """To one side and back; the paper prints index 18 twice, we count it as back."""
    return [10.0 if 12 <= k < 18 else 0.0, 0.0]


scenario = Scenario(
    model,
    horizon=20,
    state_cost=lambda k: [10.0 if k >= 11 else 0.0, 0.0],
    input_cost=1e-3,
    reference=reference,
    start=reference(0),
    plant=relevance_plant,
    truth={"theta1": 0.8, "theta2": 0.4},
    bonus=1.0,
)
