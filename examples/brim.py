"""Filling up to a brim with a pump of unknown strength: the best level lies on a constraint.

For eight steps nothing is asked for; then the level is worth most as near to 1 as it may be, and it must stay below 1
with a probability of 0.95. Who does not know the pump has to keep away from the brim by what a stroke may do.
`examples/gallery/brim.py` runs and draws it. Over 400 runs with the truth drawn from the prior (seed 0):

             level at the end   violated from step 8 on   deviation of the strength at step 8   L
    ce       0.993              51 %                      0.030                                 1.698 +- 0.051
    cautious 0.953              0.6 %                     0.022                                 2.012 +- 0.051
    dual     0.967              1.8 %                     0.011                                 2.033 +- 0.049
    planned  0.958              1.3 %                     0.017                                 2.002 +- 0.050

While it waits, `dual` draws the level far down, where strong strokes are safe and tell most; it knows the pump twice
as well when it matters, and goes nearer to the brim than `cautious`. `ce` is over the brim at every second step. L
counts the cost without the constraint: by that, what `dual` gains at the brim does not quite pay for its strokes in
these thirteen steps. `planned` weighs all its strokes against the distance that they save, learns as much as pays, and
costs less than `dual` (0.031 +- 0.009, run by run) and a little less than `cautious` (0.009 +- 0.007). With the price
of violations added it is 0.033 +- 0.009 and 0.011 +- 0.007, and 7.5 +- 0.6 less than `ce`.
"""

import sympy as sp

from symdual import Model, Scenario, unknown

level, trend, stroke = sp.symbols("level trend stroke")
strength = unknown("strength", mean=1.0, variance=0.25)

model = Model(
    states=[level, trend],
    inputs=[stroke],
    dynamics=[0.7 * level + trend, 0.3 * trend + strength * stroke],
    process_noise=[1e-6, 1e-5],
    measurement_noise=[2e-3, 1e-2],
    bounds={stroke: (-2.0, 2.0)},
)

scenario = Scenario(
    model,
    horizon=13,
    cost=[level - 1.5, stroke],
    cost_weights=lambda k: [1.0 if k >= 8 else 0.0, 0.05],
    terminal_cost=[level - 1.5],
    constraints=[level <= 1.0],
    probability=0.95,
    truth={"strength": 1.3},
)
