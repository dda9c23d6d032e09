"""A cart pushed back by an unknown force: a network of three logistic units, all of whose weights are unknown."""

import sympy as sp

from symdual import Model, Scenario, features

position, velocity, push = sp.symbols("position velocity push")
force = features.logistic(
    "net", position, locations=[-1.0, 0.0, 1.0], location_variance=0.3, slope_mean=[2.0, -2.0, 2.0], variance=1.0
)

model = Model(
    states=[position, velocity],
    inputs=[push],
    dynamics=[position + 0.2 * velocity, velocity + 0.2 * (force + push)],
    process_noise=[1e-6, 1e-4],
    measurement_noise=1e-4,
)
scenario = Scenario(model, horizon=25, state_cost=[1.0, 0.1], input_cost=0.01, start=[-2.0, 0.0], reference=[2.0, 0.0])
