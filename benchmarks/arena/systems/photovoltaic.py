"""A solar panel whose best voltage is unknown and moves with the clouds; only its power is measured.

Source: written for this collection, the classical problem of tracking a maximum power point. Why: at the place that is
believed to be the best, a small change shows nothing: it is the standard case for probing.
"""

import sympy as sp

from symdual import Model, Scenario, unknown

beyond, change = sp.symbols("beyond change")  # V, the best voltage being zero
sharpness = unknown("sharpness", mean=0.8, variance=0.2**2)  # W/V2

model = Model(
    states=[beyond],
    inputs=[change],
    dynamics=[beyond + change],
    observation=[60 - sharpness * beyond**2],  # W
    process_noise=0.01,
    measurement_noise=0.25,
    bounds={change: (-2.0, 2.0)},
)
scenario = Scenario(
    model,
    horizon=30,
    state_cost=0.8,
    input_cost=0.05,
    start=-1.5,
    start_covariance=1.5**2,
)
