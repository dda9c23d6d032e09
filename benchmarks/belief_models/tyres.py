"""A car that changes lanes at 20 m/s: how stiff its tyres are, and its moment of inertia."""

import sympy as sp

from symdual import Model, Scenario, unknown

place, heading, sideways, turning, steering = sp.symbols(
    "place heading sideways turning steering"
)  # m, rad, m/s, rad/s
SPEED, MASS, FRONT, REAR = 20.0, 1500.0, 1.2, 1.6  # m/s, kg, m
front = unknown("front", mean=8e4, variance=2e4**2)  # N/rad
rear = unknown("rear", mean=9e4, variance=2e4**2)  # N/rad
inertia = unknown("inertia", mean=2500.0, variance=400.0**2)  # kg m2
GRIP = 5000.0  # N, where a tyre begins to slide
front_force = GRIP * sp.tanh(front / GRIP * (steering - (sideways + FRONT * turning) / SPEED))
rear_force = GRIP * sp.tanh(-rear / GRIP * (sideways - REAR * turning) / SPEED)

model = Model(
    states=[place, heading, sideways, turning],
    inputs=[steering],
    derivatives=[
        SPEED * sp.sin(heading) + sideways * sp.cos(heading),
        turning,
        (front_force + rear_force) / MASS - SPEED * turning,
        (FRONT * front_force - REAR * rear_force) / inertia,
    ],
    step=0.05,
    method="rk4",
    substeps=2,
    observation=[place, turning, sideways],
    process_noise=[1e-6, 1e-8, 1e-4, 1e-5],
    measurement_noise=[0.02**2, 0.002**2, 0.05**2],
    bounds={steering: (-0.15, 0.15)},
)
scenario = Scenario(
    model,
    horizon=40,
    state_cost=[1.0, 10.0, 0.1, 0.1],
    input_cost=10.0,
    reference=[3.0, 0.0, 0.0, 0.0],
)
