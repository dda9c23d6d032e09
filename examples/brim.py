"""Filling up to a brim with a pump of unknown strength: the best level lies on a constraint.

For eight steps nothing is asked for; then the level is worth most as near to 1 as it may be, and it must stay below 1
with a probability of 0.95. Who does not know the pump has to keep away from the brim by what a stroke may do.
`examples/gallery/brim.py` runs all controllers, counts and draws.

While it waits, `dual` draws the level far down, where strong strokes are safe and tell most; it knows the pump better
when it matters, and goes nearer to the brim than `cautious`. `ce` is over the brim at every second step. The cost L
counts without the constraint: by that, what `dual` gains at the brim does not quite pay for its strokes in these
thirteen steps. `planned` weighs all its strokes against the distance that they save, and learns as much as pays.
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
