"""A ship that changes its course by thirty degrees, with a rudder whose effect depends on its unknown loading.

Source: Nomoto's model of first order (1957), numbers of a coaster. Why: slow, two unknowns that multiply, and a rudder
with narrow bounds.
"""

import sympy as sp

from symdual import Model, Scenario, unknown

course, rate, rudder = sp.symbols("course rate rudder")  # degrees, degrees/s, degrees
gain = unknown("gain", mean=0.08, variance=0.025**2)  # 1/s
quickness = unknown("quickness", mean=0.06, variance=0.015**2)  # 1/s
wind = unknown("wind", mean=0.0, variance=0.01**2)  # degrees/s2

model = Model(
    states=[course, rate],
    inputs=[rudder],
    derivatives=[rate, quickness * (gain * rudder - rate) + wind],
    step=4.0,
    method="rk4",
    process_noise=[1e-3, 1e-5],
    measurement_noise=[0.04, 1e-3],
    bounds={rudder: (-20.0, 20.0)},
)
scenario = Scenario(
    model,
    horizon=30,
    reference=[30.0, 0.0],
    state_cost=[0.01, 0.2],
    input_cost=1e-3,
    start_covariance=[0.04, 1e-3],
)
