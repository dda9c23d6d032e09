"""Six masses in a row, held together by springs and dampers that are unknown, moved at one end, seen at both."""

import sympy as sp

from symdual import Model, Scenario, unknown

places, speeds = sp.symbols("place1:7"), sp.symbols("speed1:7")  # m, m/s
pull = sp.Symbol("pull")  # N
MASS = 0.5  # kg
springs = [unknown(f"spring{i}", mean=50.0, variance=10.0**2) for i in range(1, 6)]  # N/m
damping = unknown("damping", mean=1.0, variance=0.3**2)  # N s/m
between = [springs[i] * (places[i + 1] - places[i]) + damping * (speeds[i + 1] - speeds[i]) for i in range(5)]
forces = [pull + between[0], *(between[i] - between[i - 1] for i in range(1, 5)), -between[4]]

model = Model(
    states=[*places, *speeds],
    inputs=[pull],
    derivatives=[*speeds, *(force / MASS for force in forces)],
    step=0.05,
    method="rk4",
    observation=[places[0], places[5]],
    process_noise=[1e-8] * 6 + [1e-6] * 6,
    measurement_noise=1e-3**2,
    bounds={pull: (-5.0, 5.0)},
)
scenario = Scenario(
    model, horizon=40, state_cost=[0.0] * 5 + [10.0] + [0.0] * 6, input_cost=1e-2, reference=[0.5] * 6 + [0.0] * 6
)
