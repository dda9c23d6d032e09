"""A trolley crane that puts down a load of unknown mass on a rope of unknown length, without swinging.

Source: the pendulum on a cart with a rope that is stiff, as in textbooks on mechanics. Why: four states, an oscillation
whose frequency is unknown, and an end that counts.
"""

import sympy as sp

from symdual import Model, Scenario, unknown

place, speed, angle, turning, force = sp.symbols("place speed angle turning force")  # m, m/s, rad, rad/s, kN
frequency = unknown("frequency", mean=1.0, variance=0.2**2)  # 1/s2: gravity over length
load = unknown("load", mean=0.6, variance=0.2**2)  # of the trolley's mass
push = force + load * 9.81 * sp.sin(angle) * sp.cos(angle)  # on the trolley of a tonne, with the rope's share
pace = push / (1 + load * sp.sin(angle) ** 2)

model = Model(
    states=[place, speed, angle, turning],
    inputs=[force],
    derivatives=[
        speed,
        pace - 0.2 * speed,
        turning,
        -frequency * sp.sin(angle) - frequency / 9.81 * pace * sp.cos(angle) - 0.05 * turning,
    ],
    step=0.4,
    method="rk4",
    observation=[place, speed, angle],
    process_noise=[1e-5, 1e-4, 1e-6, 1e-5],
    measurement_noise=[1e-3, 1e-3, 1e-4],
    bounds={force: (-2.0, 2.0)},
)
scenario = Scenario(
    model,
    horizon=30,
    reference=[8.0, 0.0, 0.0, 0.0],
    state_cost=lambda k: [5.0, 2.0, 100.0, 50.0] if k >= 26 else [0.02, 0.0, 1.0, 0.0],
    input_cost=0.02,
    start_covariance=[1e-4, 1e-4, 1e-4, 1e-4],
)
