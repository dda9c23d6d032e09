"""A step-down converter that has to hold 12 V while its load, unknown at first, is changed all the time.

Source: the averaged model of textbooks on power electronics. Why: fast, well observed, with a resonance, and an unknown
that wanders; certainty equivalence should do.
"""

import sympy as sp

from symdual import Model, Scenario, unknown

current, voltage, duty = sp.symbols("current voltage duty")  # A, V, share
load = unknown("load", mean=0.4, variance=0.15**2)  # 1/ohm
supply = unknown("supply", mean=24.0, variance=2.0**2)  # V

model = Model(
    states=[current, voltage],
    inputs=[duty],
    derivatives=[5.0 * (supply * duty - voltage - 0.1 * current), 10.0 * (current - load * voltage)],  # per ms
    step=0.05,
    method="rk4",
    process_noise=[1e-2, 1e-3],
    measurement_noise=[4e-2, 1e-2],
    bounds={duty: (0.0, 1.0)},
    drift={load: 1e-3, supply: 1e-2},
)
scenario = Scenario(
    model,
    horizon=40,
    reference=[0.0, 12.0],
    state_cost=[0.0, 1.0],
    input_cost=0.5,
    start=[4.0, 10.0],
    start_covariance=[0.04, 0.01],
)
