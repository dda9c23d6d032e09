"""A batch furnace that has to be at 850 degrees when a charge is due, with unknown burner and unknown losses.

Source: written for this collection, a heat balance with radiation. Why: what is learned early by heating hard pays at
the end; losses grow with the fourth power of the temperature.
"""

import sympy as sp

from symdual import Model, Scenario, unknown

warmth, wall, power = sp.symbols("warmth wall power")  # hundreds of degrees C, share of full power
burner = unknown("burner", mean=0.6, variance=0.12**2)  # hundreds of degrees in a minute
loss = unknown("loss", mean=1.6e-5, variance=4e-6**2)  # of hundreds of kelvin to the fourth, in a minute

model = Model(
    states=[warmth, wall],
    inputs=[power],
    derivatives=[
        burner * power - loss * ((warmth + 2.73) ** 4 - 2.93**4) - 0.03 * (warmth - wall),
        0.01 * (warmth - wall),
    ],
    step=1.5,
    method="rk4",
    observation=[warmth],
    process_noise=[1e-4, 1e-5],
    measurement_noise=2.5e-3,
    bounds={power: (0.0, 1.0)},
)
scenario = Scenario(
    model,
    horizon=30,
    reference=[8.5, 0.0],
    state_cost=lambda k: [20.0, 0.0] if k >= 26 else [0.0, 0.0],
    input_cost=0.05,
    start=[4.0, 3.0],
    start_covariance=[0.01, 0.1],
)
