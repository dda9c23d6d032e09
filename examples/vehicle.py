"""A vehicle with two inputs, speed and turn rate, that sees only its distance to two beacons and its heading.

How much of the commanded speed arrives (grip) and a constant error of the steering (bias) are unknown.
"""

import sympy as sp

from symdual import Model, Scenario, unknown

east, north, heading = sp.symbols("east north heading")
speed, turn = sp.symbols("speed turn")
grip = unknown("grip", mean=1.0, variance=0.1)
bias = unknown("bias", mean=0.0, variance=0.05)


def distance(x: int, y: int) -> sp.Expr:
    """The distance to a beacon."""
    return sp.sqrt((east - x) ** 2 + (north - y) ** 2)


model = Model(
    states=[east, north, heading],
    inputs=[speed, turn],
    dynamics=[
        east + 0.2 * grip * speed * sp.cos(heading),
        north + 0.2 * grip * speed * sp.sin(heading),
        heading + 0.2 * (turn + bias),
    ],
    observation=[distance(8, 0), distance(0, 9), heading],
    process_noise=[1e-4, 1e-4, 1e-5],
    measurement_noise=[1e-2, 1e-2, 1e-3],
    bounds={speed: (-2.0, 2.0), turn: (-1.5, 1.5)},
)

scenario = Scenario(
    model,
    horizon=15,
    state_cost=lambda k: [0.1, 0.1, 0.0] if k < 15 else [20.0, 20.0, 1.0],
    input_cost=[1e-2, 1e-2],
    reference=[3.0, 3.0, 1.57],
    start_covariance=[1e-2, 1e-2, 1e-3],
    truth={"grip": 0.7, "bias": 0.2},
)
