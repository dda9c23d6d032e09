"""A lift with an unknown load that has to stop level with a floor within eight seconds.

Source: written for this collection from Newton's law; car and counterweight of a six-person lift. Why: one attempt that
counts at its end, and the load shows only while the motor pulls.
"""

import sympy as sp

from symdual import Model, Scenario, unknown

height, speed, force = sp.symbols("height speed force")  # m, m/s, kN beyond balance
lightness = unknown("lightness", mean=0.55, variance=0.12**2)  # 1/t, of all that moves
imbalance = unknown("imbalance", mean=0.0, variance=0.4**2)  # kN, load against counterweight

model = Model(
    states=[height, speed],
    inputs=[force],
    derivatives=[speed, lightness * (force - imbalance - 0.15 * speed)],
    step=0.4,
    process_noise=[1e-6, 1e-5],
    measurement_noise=[4e-4, 1e-3],
    bounds={force: (-4.0, 4.0)},
)
scenario = Scenario(
    model,
    horizon=20,
    reference=[6.0, 0.0],
    state_cost=lambda k: [50.0, 20.0] if k >= 17 else [0.0, 0.02],
    input_cost=0.01,
    start_covariance=[1e-4, 1e-4],
)
