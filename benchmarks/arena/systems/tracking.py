"""A cart follows a wave with a motor of unknown strength and unknown friction: to follow is to learn.

Source: written for this collection, after the first example of the README. Why: certainty equivalence learns all that
matters in its first steps, and has nothing left to ask for.
"""

import math

import sympy as sp

from symdual import Model, Scenario, unknown

position, velocity, force = sp.symbols("position velocity force")
strength = unknown("strength", mean=1.0, variance=0.2**2)
friction = unknown("friction", mean=0.3, variance=0.1**2)

model = Model(
    states=[position, velocity],
    inputs=[force],
    derivatives=[velocity, strength * force - friction * velocity],
    step=0.2,
    process_noise=[1e-5, 1e-3],
    measurement_noise=1e-3,
    bounds={force: (-5.0, 5.0)},
)
scenario = Scenario(
    model,
    horizon=25,
    state_cost=[10.0, 0.0],
    input_cost=0.01,
    reference=lambda k: [1.5 * math.sin(0.3 * k), 0.0],
    start_covariance=[1e-3, 1e-3],
)
