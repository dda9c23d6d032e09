"""Filling up to a brim with a pump of unknown strength: the best level lies on a constraint.

For eight steps nothing is asked for; then the level is worth most as near to 1 as it may be, and it must stay below 1
with a probability of 0.95. Who does not know the pump has to keep away from the brim by what a stroke may do.
`examples/gallery/brim.py` runs all controllers, counts and draws.

While it waits, `dual` draws the level far down, where strong strokes are safe and tell most. Over 400 runs with the
pump drawn from the prior (seed 0; violations and distances from step 8 on):

             over the brim    mean distance   deviation of the strength at step 8   L
    ce       51.0 +- 1.8 %    0.008           0.030                                 1.698 +- 0.051
    cautious 0.6 +- 0.2 %     0.058           0.022                                 2.012 +- 0.051
    dual     1.7 +- 0.5 %     0.037           0.011                                 2.033 +- 0.049
    planned  2.0 +- 0.5 %     0.050           0.020                                 1.966 +- 0.048

`dual` knows the pump twice as well as `cautious` when it matters and goes nearer to the brim; `ce` is over it at every
second step. L counts without the constraint: by that, what `dual` gains at the brim does not quite pay for its strokes
in these thirteen steps (0.022 +- 0.010 more than `cautious`, run by run). `planned` weighs all its strokes against the
distance that they save: 0.067 +- 0.010 less than `dual`, and 0.046 +- 0.005 less than `cautious`.
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
    constraint_weight=2000.0,
    probability=0.95,
    truth={"strength": 1.3},
)
