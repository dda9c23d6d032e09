"""A pole on a cart, both of unknown mass, with unknown friction: to balance and to be a metre further on in time.

Source: Barto, Sutton and Anderson, "Neuronlike adaptive elements that can solve difficult learning control problems",
IEEE Transactions on Systems, Man, and Cybernetics 13 (1983): 1 kg, 0.1 kg and half a metre; priors and noise are
assumptions. Why: an unstable plant teaches whoever balances it.
"""

import sympy as sp

from symdual import Model, Scenario, unknown

position, speed, angle, rate, force = sp.symbols("position speed angle rate force")
lightness = unknown("lightness", mean=0.9, variance=0.2**2)  # 1 / mass of both, 1/kg
share = unknown("share", mean=0.1, variance=0.03**2)  # of the pole in it
friction = unknown("friction", mean=0.2, variance=0.1**2)  # of the cart, N s/m
LENGTH, GRAVITY = 0.5, 9.8

push = lightness * (force - friction * speed) + share * LENGTH * rate**2 * sp.sin(angle)
turn = (GRAVITY * sp.sin(angle) - sp.cos(angle) * push) / (LENGTH * (sp.Rational(4, 3) - share * sp.cos(angle) ** 2))
pull = push - share * LENGTH * turn * sp.cos(angle)

model = Model(
    states=[position, speed, angle, rate],
    inputs=[force],
    derivatives=[speed, pull, rate, turn],
    step=0.1,
    method="rk4",
    process_noise=[1e-6, 1e-4, 1e-6, 1e-4],
    measurement_noise=[1e-4, 1e-3, 1e-4, 1e-3],
    bounds={force: (-10.0, 10.0)},
)
scenario = Scenario(
    model,
    horizon=20,
    state_cost=lambda k: [20.0, 1.0, 10.0, 1.0] if k >= 12 else [0.0, 0.0, 1.0, 0.0],
    reference=[1.0, 0.0, 0.0, 0.0],
    input_cost=1e-3,
    start_covariance=[1e-4, 1e-4, 1e-3, 1e-3],
)
