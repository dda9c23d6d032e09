"""Bergman's minimal model of blood glucose: insulin sensitivity, glucose effectiveness and clearance of one patient."""

import sympy as sp

from symdual import Model, Scenario, unknown

glucose, action, insulin, infusion = sp.symbols("glucose action insulin infusion")  # mg/dl, 1/min, mU/l, mU/min
effectiveness = unknown("effectiveness", mean=0.02, variance=0.005**2)  # 1/min
fading = unknown("fading", mean=0.025, variance=0.005**2)  # 1/min
sensitivity = unknown("sensitivity", mean=1.3e-5, variance=0.4e-5**2)  # l/(mU min2)
BASAL_GLUCOSE, BASAL_INSULIN, CLEARANCE, VOLUME = 90.0, 10.0, 0.14, 12.0  # mg/dl, mU/l, 1/min, l

model = Model(
    states=[glucose, action, insulin],
    inputs=[infusion],
    derivatives=[
        -effectiveness * (glucose - BASAL_GLUCOSE) - action * glucose,
        -fading * action + sensitivity * (insulin - BASAL_INSULIN),
        -CLEARANCE * (insulin - BASAL_INSULIN) + infusion / VOLUME,
    ],
    step=5.0,
    method="rk4",
    observation=[glucose],
    process_noise=[1.0, 1e-8, 1.0],
    measurement_noise=3.0**2,
    bounds={infusion: (0.0, 200.0)},
)
scenario = Scenario(
    model,
    horizon=36,
    state_cost=[0.01, 0.0, 0.0],
    input_cost=1e-4,
    start=[250.0, 0.0, 10.0],
    start_covariance=[25.0, 1e-6, 4.0],
    reference=[100.0, 0.0, 0.0],
)
