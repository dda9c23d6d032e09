"""Models for what a task can say, so that every branch of the templates is seen in a committed package."""

import sympy as sp

from symdual import Model, Scenario, features, unknown

position, velocity, force = sp.symbols("position velocity force")

priced = Model(
    states=[position, velocity],
    inputs=[force],
    dynamics=[position + 0.4 * velocity, velocity + features.fourier("v", position, count=10, lengthscale=7.0) + force],
    process_noise=1e-2,
    measurement_noise=1e-2,
    bounds={force: (-4.0, 4.0)},
)
# any expression in the steps, a residual at the end
pricing = Scenario(
    priced,
    horizon=5,
    cost=1 - sp.cos(position) + 0.1 * velocity * force + 0.2 * force,
    input_cost=0.1,
    terminal_cost=[position * velocity, velocity],
)

squeezed = Model(
    states=[position],
    inputs=[force],
    dynamics=[position + unknown("b", 1.0, 0.5) * force],
    process_noise=1e-2,
    bounds={force: (-4.0, 4.0)},
)
# any expression at the end, cross terms before it
squeezing = Scenario(
    squeezed,
    horizon=5,
    cross_cost=0.1,
    input_reference=0.5,
    terminal_cost=sp.cosh(position),
    state_cost=1.0,
    input_cost=1.0,
)
