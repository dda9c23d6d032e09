"""Experiment 2: a cart on a rail of unknown slope, with a loose phase in which it costs nothing to explore.

The model is a squared-exponential kernel by 30 Fourier features; the true slope is made of two logistic functions, so
that the model can come close to the truth but never reach it.
"""

import sympy as sp

from symdual import Model, Scenario, features, logistic, unknown

position, velocity, force = sp.symbols("position velocity force")
slope = features.fourier("v", position, count=30, lengthscale=7.0)  # the length-scale is our choice

model = Model(
    states=[position, velocity],
    inputs=[force],
    dynamics=[position + 0.4 * velocity, velocity + slope + force],
    process_noise=1e-2,
    measurement_noise=1e-2,
)

theta1, theta2 = unknown("theta1"), unknown("theta2")
true_slope = -theta1 * logistic(-(position + 5)) + theta2 * logistic(position - 5)

schedule_plant = Model(
    states=[position, velocity],
    inputs=[force],
    dynamics=[position + 0.4 * velocity, velocity + true_slope + force],
    process_noise=1e-2,
    measurement_noise=1e-2,
)


def reference(k: int) -> list[float]:
    """To one side, back, to the other side, back."""
    return [10.0 if 12 <= k <= 14 else -10.0 if 16 <= k <= 18 else 0.0, 0.0]


def state_cost(k: int) -> list[float]:
    """Tight, loose, very tight; the paper prints index 5 twice, we count it as loose."""
    return [10.0 if k < 5 else 0.0 if k < 11 else 100.0, 0.0]


scenario = Scenario(
    model,
    horizon=20,
    state_cost=state_cost,
    input_cost=1e-3,
    reference=reference,
    start=reference(0),
    plant=schedule_plant,
    truth={"theta1": 0.8, "theta2": 0.4},
    bonus=10.0,
)
