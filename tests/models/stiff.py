"""Stiff models with implicit steps: a reactor that ignites, one of every form, one with an input of the past."""

import sympy as sp

from symdual import Model, Scenario, features, previous, unknown

C, T, Tc = sp.symbols("C T Tc")
x, v, w, u, q, t = sp.symbols("x v w u q t")

# a stirred tank: at 324 K nothing happens, at 490 K a rate is 1600 a minute
_rate = unknown("k0", 7.2e10, (0.2 * 7.2e10) ** 2) * sp.exp(-8750 / T) * C
ignition = Model(
    [C, T],
    [Tc],
    derivatives=[1 - C - _rate, 350 - T + 209.2 * _rate + 2.09 * (Tc - T)],
    step=0.05,
    method="radau",
    process_noise=[1e-6, 0.04],
    measurement_noise=[1e-4, 0.5],
    bounds={Tc: (280, 370)},
)
ignites = Scenario(
    ignition,
    horizon=20,
    start=[0.877, 324.5],
    start_covariance=[1e-4, 1.0],
    reference=[0.2, 400.0],
    state_cost=[100.0, 0.01],
    input_cost=1e-4,
)

# substeps, a family in the motion, unknowns in several places, time, a curved measurement
collocated = Model(
    [x, v, w],
    [u, q],
    derivatives=[
        v + w**2 * unknown("a", 1.0, 0.1),
        features.logistic("net", x + 0.3 * u, locations=[-1.0, 0.5], slope_mean=[-1.0, 0.7]) * v - 40 * x**3 + u,
        -200 * (w - x * unknown("b", 1.0, 0.1)) + q * u + sp.sin(t),
    ],
    step=0.1,
    method="radau",
    substeps=2,
    observation=[x + w, v**2],
    process_noise=1e-4,
    measurement_noise=0.01,
    filter="iterated_second_order",
    time=t,
)

# a valve that answers an input of the step before and knows nothing of the level
late = Model(
    [x, v],
    [u],
    derivatives=[-100 * (x - unknown("gain", 1.0, 0.1) * previous(u, 1)), sp.sqrt(1 + x**2) - v],
    step=0.1,
    method="radau",
    process_noise=1e-4,
    measurement_noise=0.01,
)
