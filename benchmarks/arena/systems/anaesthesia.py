"""A patient under propofol, who is more or less sensitive than the average: depth of anaesthesia on a bounded scale.

Source: two compartments and Hill's curve as in the pharmacological literature (Schnider 1999), rates rounded. Why: the
drug cannot be taken back, so too much is paid for long, and the measurement is curved.
"""

import sympy as sp

from symdual import Model, Scenario, unknown

plasma, effect, rate = sp.symbols("plasma effect rate")  # ug/ml, of half of the effect, of the pump in mg/s
sensitivity = unknown("sensitivity", mean=0.3, variance=0.06**2)  # ml/ug: half of the effect is at 1/sensitivity
clearance = unknown("clearance", mean=0.10, variance=0.02**2)  # 1/min
depth = 100 / (1 + effect**2)  # bispectral index: 100 awake

model = Model(
    states=[plasma, effect],
    inputs=[rate],
    derivatives=[2.0 * rate - clearance * plasma, 0.4 * (sensitivity * plasma - effect)],
    step=0.5,
    method="rk4",
    observation=[depth],
    process_noise=[1e-3, 1e-4],
    measurement_noise=9.0,
    bounds={rate: (0.0, 2.5)},
)
scenario = Scenario(
    model,
    horizon=40,
    cost=[depth - 50.0, rate],
    cost_weights=[0.01, 0.1],
    terminal_cost=[depth - 50.0],
    terminal_weights=0.01,
    start=[0.5, 0.1],
    start_covariance=[0.01, 0.01],
)
