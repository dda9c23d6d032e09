"""A two-link arm in a horizontal plane that has gripped a payload of unknown mass, moved by torques of two motors."""

import sympy as sp

from symdual import Model, Scenario, unknown

LENGTHS, MASSES, CENTRES, INERTIAS = (0.4, 0.3), (2.0, 1.5), (0.2, 0.15), (0.03, 0.012)  # m, kg, m, kg m2

shoulder, elbow, w1, w2 = sp.symbols("shoulder elbow w1 w2")  # rad, rad/s
t1, t2 = sp.symbols("t1 t2")  # N m
payload = unknown("payload", mean=1.0, variance=0.5**2)  # kg
friction = unknown("friction", mean=0.2, variance=0.05**2)  # N m s

both = MASSES[1] * CENTRES[1] ** 2 + INERTIAS[1] + payload * LENGTHS[1] ** 2
reach = LENGTHS[0] * (MASSES[1] * CENTRES[1] + payload * LENGTHS[1])
first = MASSES[0] * CENTRES[0] ** 2 + INERTIAS[0] + (MASSES[1] + payload) * LENGTHS[0] ** 2
m11, m12, m22 = first + both + 2 * reach * sp.cos(elbow), both + reach * sp.cos(elbow), both
pull = reach * sp.sin(elbow)
b1 = t1 + pull * (2 * w1 * w2 + w2**2) - friction * w1
b2 = t2 - pull * w1**2 - friction * w2
determinant = m11 * m22 - m12**2

model = Model(
    states=[shoulder, elbow, w1, w2],
    inputs=[t1, t2],
    derivatives=[w1, w2, (m22 * b1 - m12 * b2) / determinant, (m11 * b2 - m12 * b1) / determinant],
    step=0.05,
    method="rk4",
    observation=[shoulder, elbow],
    process_noise=[1e-8, 1e-8, 1e-5, 1e-5],
    measurement_noise=2e-3**2,
    bounds={t1: (-8.0, 8.0), t2: (-4.0, 4.0)},
)
scenario = Scenario(
    model,
    horizon=20,
    state_cost=[10.0, 10.0, 0.1, 0.1],
    input_cost=1e-3,
    reference=[0.8, 0.6, 0.0, 0.0],
)
