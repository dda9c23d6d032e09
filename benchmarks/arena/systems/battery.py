"""A battery is to be stored at half its charge, which shows only where its voltage curve is steep.

Source: the voltage curve of Chen and Rincon-Mora, "Accurate electrical battery model capable of predicting runtime
and I-V performance", IEEE Transactions on Energy Conversion 21 (2006), as in `examples/gallery/battery.py`; ageing
and noise are assumptions. Why: a state that is seen in some places only.
"""

import sympy as sp

from symdual import Model, Scenario, previous, unknown

charge, current = sp.symbols("charge current")  # share; capacities per hour
gain = unknown("gain", mean=1.1, variance=0.1**2)
resistance = unknown("resistance", mean=0.08, variance=0.02**2)
at_rest = 3.685 - 1.031 * sp.exp(-35 * charge) + 0.2156 * charge - 0.1178 * charge**2 + 0.3201 * charge**3

model = Model(
    states=[charge],
    inputs=[current],
    dynamics=[charge + 0.25 * gain * current],
    observation=[at_rest + resistance * previous(current)],
    process_noise=1e-6,
    measurement_noise=0.03**2,
    bounds={current: (-1.0, 1.0)},
)
scenario = Scenario(
    model,
    horizon=20,
    state_cost=lambda k: 100.0 if k >= 16 else 0.0,
    reference=0.5,
    input_cost=0.005,
    start=0.4,
    start_covariance=0.1**2,
)
