"""A drug has to reach its effective concentration in a patient of unknown clearance, and must never exceed a limit.

Source: written for this collection: one compartment with first-order elimination and an effect site, with spreads of
clearance and volume as between adults (a third and a fifth). Why: a limit that must not be crossed, with probability
0.95.
"""

import sympy as sp

from symdual import Model, Scenario, unknown

plasma, site, infusion = sp.symbols("plasma site infusion")  # mg/l; mg/h
clearance = unknown("clearance", mean=0.25, variance=0.08**2)  # of the volume, 1/h
dilution = unknown("dilution", mean=0.05, variance=0.01**2)  # 1 / volume, 1/l

model = Model(
    states=[plasma, site],
    inputs=[infusion],
    derivatives=[dilution * infusion - clearance * plasma, 0.8 * (plasma - site)],
    step=0.5,
    method="rk4",
    observation=[plasma],
    process_noise=[1e-4, 1e-5],
    measurement_noise=0.15**2,
    bounds={infusion: (0.0, 60.0)},
)
scenario = Scenario(
    model,
    horizon=16,
    state_cost=lambda k: [0.0, 1.0] if k >= 5 else [0.0, 0.1],
    input_cost=1e-5,
    reference=[0.0, 4.5],
    constraints=[plasma <= 6.0],
    constraint_weight=20.0,
    probability=0.95,
)
