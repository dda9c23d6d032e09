"""A boat under a radar on the shore: a fine range, a coarse bearing, and a start that is known to 30 m only."""

import sympy as sp

from symdual import Model, Scenario, unknown

east, north, v_east, v_north = sp.symbols("east north v_east v_north")  # m, m/s
f_east, f_north = sp.symbols("f_east f_north")  # kN
push = unknown("push", mean=1.0, variance=0.3**2)  # m/s2 for each kN
drag = unknown("drag", mean=0.1, variance=0.04**2)  # 1/s

model = Model(
    states=[east, north, v_east, v_north],
    inputs=[f_east, f_north],
    derivatives=[v_east, v_north, push * f_east - drag * v_east, push * f_north - drag * v_north],
    step=1.0,
    method="rk4",
    observation=[sp.sqrt(east**2 + north**2), sp.atan2(north, east)],
    process_noise=[1e-3, 1e-3, 1e-3, 1e-3],
    measurement_noise=[0.5**2, 0.05**2],
    bounds={f_east: (-1.0, 1.0), f_north: (-1.0, 1.0)},
)
scenario = Scenario(
    model,
    horizon=30,
    start=[150.0, 100.0, 0.0, 0.0],
    start_covariance=[30.0**2, 30.0**2, 0.5, 0.5],
    reference=[100.0, 150.0, 0.0, 0.0],
    state_cost=[0.01, 0.01, 0.1, 0.1],
    input_cost=1.0,
)
