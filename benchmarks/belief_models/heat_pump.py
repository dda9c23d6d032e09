"""A room with a heavy wall and a heat pump: losses, the wall's mass and the pump's efficiency are unknown."""

import sympy as sp

from symdual import Model, Scenario, unknown

room, wall, power = sp.symbols("room wall power")  # K, K, W
OUTSIDE, SUPPLY, AIR = 273.0, 318.0, 3e6  # K, K, J/K
window = unknown("window", mean=80.0, variance=20.0**2)  # W/K
inside = unknown("inside", mean=300.0, variance=60.0**2)  # W/K
facade = unknown("facade", mean=60.0, variance=15.0**2)  # W/K
lightness = unknown("lightness", mean=1 / 3e7, variance=(1 / 1.2e8) ** 2)  # K/J
share = unknown("share", mean=0.45, variance=0.08**2)
carnot = SUPPLY / (SUPPLY - OUTSIDE)

model = Model(
    states=[room, wall],
    inputs=[power],
    derivatives=[
        (share * carnot * power - window * (room - OUTSIDE) - inside * (room - wall)) / AIR,
        lightness * (inside * (room - wall) - facade * (wall - OUTSIDE)),
    ],
    step=900.0,
    method="rk4",
    observation=[room],
    process_noise=[1e-4, 1e-5],
    measurement_noise=0.05**2,
    bounds={power: (0.0, 4000.0)},
)
scenario = Scenario(
    model,
    horizon=48,
    state_cost=[1.0, 0.0],
    input_cost=1e-8,
    start=[289.0, 287.0],
    start_covariance=[0.1**2, 1.0],
    reference=[294.0, 0.0],
)
