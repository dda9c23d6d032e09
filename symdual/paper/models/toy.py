"""Experiment 1: x' = a x + b u with an unknown gain b, the smallest problem in which probing pays (section 3.1)."""

import sympy as sp

from symdual import Model, Scenario, unknown

x, u = sp.symbols("x u")
b = unknown("b", mean=1.0, variance=10.0)

model = Model(states=[x], inputs=[u], dynamics=[x + b * u], process_noise=0.1, measurement_noise=0.0)

# start = 1 is our choice: Fig. 1 needs a state that is not at its target
scenario = Scenario(model, horizon=2, state_cost=1.0, input_cost=1.0, start=1.0, truth={"b": 2.0}, bonus=0.1)
