"""A boat with a new propeller and a new hull: thrust and drag are not known."""

import sympy as sp

from symdual import Model, Scenario, unknown

position, speed, thrust = sp.symbols("position speed thrust")
strength = unknown("strength", mean=1.0, variance=0.06)
drag = unknown("drag", mean=0.3, variance=0.02)

model = Model(
    states=[position, speed],
    inputs=[thrust],
    dynamics=[position + 0.5 * speed, speed + 0.5 * (strength * thrust - drag * speed)],
    process_noise=[1e-6, 1e-4],
    measurement_noise=[1e-3, 1e-2],
    bounds={thrust: (-1.5, 1.5)},
)

scenario = Scenario(
    model,
    horizon=20,
    reference=lambda k: [0.0, 0.0] if k <= 10 else [2.0, 0.0],
    state_cost=lambda k: [1, 0] if k <= 10 else [0, 0] if k <= 12 else [10, 1],
    input_cost=0.02,
)
