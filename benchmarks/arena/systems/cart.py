"""A cart with a motor of unknown strength has to stop at a flag; nothing is asked of it before.

Source: the first example of the README. Why: there is time to learn, and certainty equivalence does not use it.
"""

import sympy as sp

from symdual import Model, Scenario, unknown

position, velocity, force = sp.symbols("position velocity force")
strength = unknown("strength", mean=1.0, variance=0.1)
friction = unknown("friction", mean=0.3, variance=0.02)

model = Model(
    states=[position, velocity],
    inputs=[force],
    derivatives=[velocity, strength * force - friction * velocity],
    step=0.2,
    observation=[position],
    process_noise=[1e-6, 1e-4],
    measurement_noise=1e-3,
    bounds={force: (-3, 3)},
)
scenario = Scenario(
    model,
    horizon=25,
    reference=[2, 0],
    state_cost=lambda k: [30, 3] if k >= 18 else [0, 0],
    input_cost=0.005,
    start_covariance=[1e-3, 1e-3],
)
