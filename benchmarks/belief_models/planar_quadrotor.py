"""A planar quadrotor whose mass, inertia and arm are unknown, with fine measurements of position and attitude."""

import sympy as sp

from symdual import Model, Scenario, unknown

y, z, angle, vy, vz, rate = sp.symbols("y z angle vy vz rate")  # m, rad, m/s, rad/s
left, right = sp.symbols("left right")  # N
mass = unknown("mass", mean=1.0, variance=0.2**2)  # kg
inertia = unknown("inertia", mean=0.02, variance=0.004**2)  # kg m2
arm = unknown("arm", mean=0.25, variance=0.05**2)  # m
thrust = (left + right) / mass

model = Model(
    states=[y, z, angle, vy, vz, rate],
    inputs=[left, right],
    derivatives=[vy, vz, rate, -thrust * sp.sin(angle), thrust * sp.cos(angle) - 9.81, arm * (right - left) / inertia],
    step=0.05,
    method="rk4",
    process_noise=[1e-8, 1e-8, 1e-8, 1e-6, 1e-6, 1e-6],
    measurement_noise=1e-3**2,
    bounds={left: (0.0, 10.0), right: (0.0, 10.0)},
)
scenario = Scenario(
    model,
    horizon=20,
    state_cost=[10.0, 10.0, 1.0, 1.0, 1.0, 0.1],
    input_cost=1e-3,
    input_reference=[4.905, 4.905],
    reference=[1.0, 1.0, 0.0, 0.0, 0.0, 0.0],
)
