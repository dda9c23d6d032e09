"""A stirred tank at the limit of what may be left over, with a catalyst whose activity drifts.

A -> B -> C and 2 A -> D in a tank at 114 degrees. B is the product; no more than 1.85 mol/l of A may leave the
tank, with a probability of 0.95. The more is fed, the more is produced, and the more A is left: the best flow lies
on the limit, and where that is depends on the catalyst. Only B is measured, and near the best flow the catalyst
hardly shows in it: what makes more B from A makes more C from B.

Rates and feed are those of the benchmark of Chen, Kremling and Allgoewer ("Nonlinear predictive control of a
benchmark CSTR", European Control Conference 1995) at its operating temperature, which the jacket is taken to hold;
drift, noise and limit are assumptions. `examples/gallery/reactor.py` runs and draws it. Over 400 runs of an hour,
with the truth drawn from the prior and drifting, plans of 8 steps (seed 0, the first 10 minutes not counted among
the violations):

             over the limit   mean distance   deviation of the activity at the end   L (minus what was made)
    ce       44.5 %           0.021           0.098                                  -34.10 +- 0.15
    cautious 4.2 %            0.121           0.066                                  -30.07 +- 0.12
    dual     1.2 %            0.138           0.059                                  -28.47 +- 0.15
    oracle   55.6 %           -0.001          0                                      -34.92 +- 0.16

`dual` lowers the flow every quarter of an hour, where B tells most, and knows the catalyst best. Here that does not
pay: run by run it makes 1.60 +- 0.08 less than `cautious` (5 %), and is over the limit in 3.0 +- 0.6 % fewer steps,
where 5 % are allowed to both. `ce` learns nothing at the limit, knows no more at the end than at the start, and does
not notice. (`oracle`, like `ce`, keeps no distance, and noise does the rest.)
"""

import math

import sympy as sp

from symdual import Model, Scenario, previous, unknown

FEED, TEMPERATURE = 5.10, 387.34  # mol/l of A; K
FAST = 1.287e12 * math.exp(-9758.3 / TEMPERATURE)  # A -> B and B -> C, 1/h
SIDE = 9.043e9 * math.exp(-8560.0 / TEMPERATURE)  # 2 A -> D, l/(mol h)

left, made, flow = sp.symbols("left made flow")  # A and B in mol/l; flow in ten volumes of the tank an hour
activity = unknown("activity", mean=1.0, variance=0.1**2)
first, second = activity * FAST * left, activity * FAST * made

model = Model(
    states=[left, made],
    inputs=[flow],
    derivatives=[10 * flow * (FEED - left) - first - SIDE * left**2, first - second - 10 * flow * made],
    step=1 / 30,
    method="rk4",
    observation=[made],
    process_noise=[2e-5, 2e-5],
    measurement_noise=0.01**2,
    drift=0.015**2,
    bounds={flow: (0.3, 3.5)},
)

scenario = Scenario(
    model,
    horizon=30,
    cost=-flow * made + 0.5 * (flow - previous(flow)) ** 2,
    start=[1.66, 1.035],
    start_covariance=[0.01, 0.001],
    past={flow: 0.9},
    constraints=[left <= 1.85],
    constraint_weight=1000.0,
    probability=0.95,
)
