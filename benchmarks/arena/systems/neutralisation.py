"""Waste water that is neutralised by lye: the pH jumps where acid and lye balance, at an unknown place.

Source: a stirred tank with a strong acid and a strong base; the balance of charges gives an inverse hyperbolic sine.
Why: the measurement is flat far from balance and steep near it.
"""

import sympy as sp

from symdual import Model, Scenario, unknown

excess, lye = sp.symbols("excess lye")  # of lye over acid, mmol/l; l/min
acid = unknown("acid", mean=4.0, variance=0.8**2)  # mmol/l that come in per minute
strength = unknown("strength", mean=3.0, variance=0.5**2)  # mmol/l in a minute for each l/min

model = Model(
    states=[excess],
    inputs=[lye],
    derivatives=[strength * lye - acid - 0.3 * excess],
    step=0.25,
    observation=[7 + sp.asinh(20 * excess)],
    process_noise=1e-3,
    measurement_noise=0.01,
    bounds={lye: (0.0, 4.0)},
)
scenario = Scenario(
    model,
    horizon=30,
    state_cost=4.0,
    input_cost=0.02,
    reference=0.0,
    start=-4.0,
    start_covariance=0.25,
)
