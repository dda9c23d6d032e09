"""A steel ball held below a magnet whose strength is unknown: it falls unless the current is about right.

Source: written for this collection; force c i^2 / d^2 as in textbooks on magnetic levitation. Why: unstable, with a
doubling time of four steps, and the effect of the input depends on the state.
"""

import sympy as sp

from symdual import Model, Scenario, unknown

gap, speed, current = sp.symbols("gap speed current")  # cm, m/s downwards, A
strength = unknown("strength", mean=9.81, variance=1.2**2)  # m/s2 at 1 cm and 1 A
leak = unknown("leak", mean=0.0, variance=0.3**2)  # m/s2

model = Model(
    states=[gap, speed],
    inputs=[current],
    derivatives=[100 * speed, 9.81 + leak - strength * current**2 / gap**2],
    step=0.004,
    method="rk4",
    process_noise=[1e-6, 1e-6],
    measurement_noise=[1e-4, 1e-4],
    bounds={current: (0.0, 2.5)},
)
scenario = Scenario(
    model,
    horizon=40,
    reference=lambda k: [1.0, 0.0] if k < 20 else [1.1, 0.0],
    state_cost=[20.0, 2.0],
    input_cost=0.02,
    start=[1.08, 0.0],
    start_covariance=[1e-4, 1e-4],
)
