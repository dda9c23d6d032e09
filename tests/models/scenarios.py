"""Models for what a scenario can say, so that every branch of the templates is seen in a package."""

import sympy as sp

from symdual import Model, Scenario, features, previous, signal, unknown

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
    truth=lambda k: {"b": 0.6 if k < 3 else 1.7},  # a sudden fault
)

weather, wish, wall = signal("weather", usual=5.0), signal("wish", usual=20.0), signal("wall", usual=1.0)
warmth, heat = sp.symbols("warmth heat")
loss = features.rbf("loss", warmth, centres=[12.0, 14.0, 16.0, 18.0, 20.0, 22.0, 24.0, 26.0], variance=0.2)

# signals in dynamics, observation and cost; a forecast that is not what happens
heated = Model(
    states=[warmth],
    inputs=[heat],
    dynamics=[warmth + 0.1 * (weather - warmth) + loss + 0.5 * heat],
    observation=[warmth + 0.02 * weather],
    process_noise=1e-2,
    measurement_noise=1e-2,
    bounds={heat: (0.0, 6.0)},
    state_bounds={warmth: (-40.0, 90.0)},
    filter="iterated",
)
heating = Scenario(
    heated,
    horizon=6,
    cost=[warmth - wish, heat],
    cost_weights=[1.0, 0.1],
    terminal_cost=[warmth - wish],
    start=18.0,
    signals={weather: [5.0, 6.0, 8.0, 8.0, 7.0, 5.0, 2.0], wish: lambda k: 20.0 if k < 4 else 21.0},
    forecasts={weather: 6.0},
    truth={"loss": [-0.3, -0.2, 0.1, 0.2, 0.0, -0.1, 0.1, 0.0]},
)

# signals beside an unknown function
sunny = Model(
    states=[warmth],
    inputs=[heat],
    dynamics=[warmth + 0.1 * weather + features.gaussian_process("g", warmth, lengthscale=4.0, memory=12) + heat],
    process_noise=1e-2,
    measurement_noise=1e-2,
)

# constraints on a state, on the change of an input, and on what an unknown makes of a state; a signal in one of them
walled = Model(
    states=[position],
    inputs=[force],
    dynamics=[position + unknown("b", 1.0, 0.1) * force],
    process_noise=1e-4,
    measurement_noise=1e-4,
    transition=0.99,
    bounds={force: (-2.0, 2.0)},
)
walling = Scenario(
    walled,
    horizon=6,
    cost=[position - 2.0, force],
    cost_weights=[1.0, 0.01],
    constraints=[position <= wall, force - previous(force) <= 0.7, unknown("b", 1.0, 0.1) * position <= 3.0],
    probability=[0.95, 0.5, 0.9],
    signals={wall: 1.0},
    truth={"b": 1.3},
)

# a valve that is open, half open or shut, and a free input beside it
valve = sp.Symbol("valve")
valved = Model(
    states=[warmth],
    inputs=[valve, heat],
    dynamics=[0.9 * warmth - unknown("draught", 0.5, 0.2) * valve + heat],
    process_noise=1e-3,
    measurement_noise=1e-3,
    bounds={heat: (-1.0, 1.0)},
)
valving = Scenario(
    valved,
    horizon=5,
    input_cost=[0.01, 0.1],
    reference=-1.0,
    start=1.0,
    choices={valve: [0.0, 0.5, 2.0]},
    truth={"draught": 0.4},
)

# constraints beside many unknowns, for which there is a low-rank form; a force that is on or off
narrow = Model(
    states=[position, velocity],
    inputs=[force],
    dynamics=[position + 0.4 * velocity, velocity + features.fourier("v", position, count=8, lengthscale=2.0) + force],
    process_noise=1e-3,
    measurement_noise=1e-3,
)
narrowing = Scenario(
    narrow,
    horizon=5,
    input_cost=0.01,
    reference=[1.0, 0.0],
    constraints=[position <= 0.9, velocity + 0.1 * force <= 0.6],
    choices={force: [-1.0, 0.0, 1.0]},
)

# constraints beside an unknown function
hidden = Model(
    states=[position, velocity],
    inputs=[force],
    dynamics=[
        position + 0.4 * velocity,
        velocity + features.gaussian_process("g", position, lengthscale=2.0, memory=20) + force,
    ],
    process_noise=0.01,
    measurement_noise=0.01,
)
hiding = Scenario(hidden, horizon=5, input_cost=0.01, reference=[1.0, 0.0], constraints=[position <= 0.9])
