"""A direct-current motor with unknown inertia and dry friction, whose sign turns over within a fifth of a rad/s."""

import sympy as sp

from symdual import Model, Scenario, unknown

place, speed, current, voltage = sp.symbols("place speed current voltage")  # rad, rad/s, A, V
torque_constant, resistance, inductance = 0.05, 1.2, 4e-3  # N m/A, ohm, H
lightness = unknown("lightness", mean=5000.0, variance=1500.0**2)  # 1/inertia, 1/(kg m2)
dry = unknown("dry", mean=0.02, variance=0.008**2)  # N m

model = Model(
    states=[place, speed, current],
    inputs=[voltage],
    derivatives=[
        speed,
        lightness * (torque_constant * current - dry * sp.tanh(speed / 0.2) - 1e-4 * speed),
        (voltage - resistance * current - torque_constant * speed) / inductance,
    ],
    step=0.01,
    method="rk4",
    substeps=5,
    observation=[place, current],
    process_noise=[1e-8, 1e-4, 1e-6],
    measurement_noise=[1e-3**2, 0.02**2],
    bounds={voltage: (-12.0, 12.0)},
)
scenario = Scenario(model, horizon=30, state_cost=[10.0, 0.001, 0.0], input_cost=1e-3, reference=[3.0, 0.0, 0.0])
