"""A gain that drifts, even through zero, for a controller that plans ten steps ahead and never ends.

Source: written for this collection, after the integrator with unknown gain of Astrom and Wittenmark (1971). Why: a
moving horizon, and knowledge that fades.
"""

import sympy as sp

from symdual import Model, Scenario, unknown

level, stroke = sp.symbols("level stroke")
gain = unknown("gain", mean=0.5, variance=0.3)

model = Model(
    states=[level],
    inputs=[stroke],
    dynamics=[level + gain * stroke],
    process_noise=0.1,
    measurement_noise=0.01,
    drift=0.02,
    bounds={stroke: (-5.0, 5.0)},
)
scenario = Scenario(model, horizon=30, state_cost=1.0, input_cost=0.05, start=1.0)
truth, window = "drift", 10
