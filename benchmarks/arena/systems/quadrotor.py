"""A planar quadrotor with an unknown load has to be elsewhere in less than a second.

Source: mass and inertia of the Crazyflie 2.0 from Foerster, "System identification of the Crazyflie 2.0 nano
quadrocopter", ETH Zurich (2015), as in `examples/gallery/quadrotor.py`; load and noise are assumptions. Why: six
states and two inputs, and hovering teaches the mass.
"""

import sympy as sp

from symdual import Model, Scenario, unknown

x, z, tilt, vx, vz, rate, thrust, torque = sp.symbols("x z tilt vx vz rate thrust torque")
lift = unknown("lift", mean=0.8, variance=0.1**2)  # mass of the empty craft over its mass
agility = unknown("agility", mean=0.9, variance=0.15**2)  # the same of its inertia
away = [0.8, 0.5, 0.0, 0.0, 0.0, 0.0]

model = Model(
    states=[x, z, tilt, vx, vz, rate],
    inputs=[thrust, torque],
    derivatives=[
        vx,
        vz,
        rate,
        -9.81 * lift * thrust * sp.sin(tilt),
        9.81 * (lift * thrust * sp.cos(tilt) - 1),
        30.0 * agility * torque,
    ],
    step=0.1,
    method="rk4",
    process_noise=[1e-6, 1e-6, 1e-5, 1e-4, 1e-4, 1e-3],
    measurement_noise=[1e-5, 1e-5, 1e-4, 1e-3, 1e-3, 1e-2],
    bounds={thrust: (0.3, 2.2), torque: (-1.0, 1.0)},
)
scenario = Scenario(
    model,
    horizon=16,
    state_cost=lambda k: [20.0, 20.0, 1.0, 1.0, 1.0, 0.02] if k >= 8 else [0.2, 0.2, 0.2, 0.02, 0.02, 0.02],
    reference=lambda k: away if k >= 8 else [0.0] * 6,
    input_cost=[0.01, 0.1],
    input_reference=[1.25, 0.0],
)
