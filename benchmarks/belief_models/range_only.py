"""A diver who hears a beacon: only the distance is measured, to 10 cm, and the start is known to 4 m."""

import sympy as sp

from symdual import Model, Scenario, unknown

east, north = sp.symbols("east north")  # m
u_east, u_north = sp.symbols("u_east u_north")  # m/s through the water
c_east = unknown("c_east", mean=0.0, variance=0.1**2)  # current, m/s
c_north = unknown("c_north", mean=0.0, variance=0.1**2)

model = Model(
    states=[east, north],
    inputs=[u_east, u_north],
    dynamics=[east + 2.0 * (u_east + c_east), north + 2.0 * (u_north + c_north)],
    observation=[sp.sqrt(east**2 + north**2 + 9.0)],  # the beacon floats 3 m above
    process_noise=1e-3,
    measurement_noise=0.1**2,
    bounds={u_east: (-0.5, 0.5), u_north: (-0.5, 0.5)},
)
scenario = Scenario(
    model,
    horizon=30,
    start=[12.0, 5.0],
    start_covariance=4.0**2,
    reference=[0.0, 0.0],
    state_cost=0.1,
    input_cost=1.0,
)
