"""A heater against an unknown loss: every input leaves the loss as uncertain as any other.

Source: written for this collection; a linear system with an unknown offset, for which Kalman's filter knows in
advance what it will know. Why: learning cannot pay, and a controller that experiments all the same shows here.
"""

import sympy as sp

from symdual import Model, Scenario, unknown

warmth, wall, power = sp.symbols("warmth wall power")
loss = unknown("loss", mean=0.5, variance=0.5**2)

model = Model(
    states=[warmth, wall],
    inputs=[power],
    dynamics=[0.8 * warmth + 0.1 * wall + power - loss, 0.1 * warmth + 0.85 * wall],
    observation=[warmth],
    process_noise=[1e-2, 1e-3],
    measurement_noise=1e-2,
    bounds={power: (-3.0, 3.0)},
)
scenario = Scenario(
    model, horizon=20, state_cost=[1.0, 0.0], input_cost=0.05, reference=[1.0, 0.0], start_covariance=[1e-2, 0.1]
)
