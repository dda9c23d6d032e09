"""What filters of second order can meet: weights inside functions, products of families, in motion and measurement."""

import numpy as np
import sympy as sp

from symdual import Model, features, signal, unknown

x, v, u = sp.symbols("x v u")
net = features.logistic("net", x, locations=[-1.0, 0.5, 1.0], slope_mean=[-1.0, 0.7, 1.2])
one = features.fourier("one", x, count=4, lengthscale=2.0)
other = features.fourier("other", v, count=4, lengthscale=2.0)
WEIGHTS = 14

# weights inside functions and products of two families, which are seen too; iterated, with a factor of the covariance
bent = Model(
    [x, v],
    [u],
    [x + 0.4 * v, v + net + one * other + u],
    observation=[x + 0.1 * one * other, v + 0.3 * net],
    process_noise=0.01,
    measurement_noise=0.01,
    transition=0.99 * np.eye(WEIGHTS) + 0.001,
    drift=1e-4 * (np.eye(WEIGHTS) + 0.1),
    filter="iterated_second_order",
    square_root=True,
)

# noise that depends, products of unknowns and states in both equations
gain = unknown("gain", 1.0, 0.5)
bent_noise = Model(
    [x, v],
    [u],
    [x + 0.4 * v, v + gain * sp.sin(x) + u],
    observation=[x * gain, v],
    process_noise=sp.diag(0.01 + 0.1 * u**2, 0.01),
    measurement_noise=0.01,
    filter="second_order",
)

# one update of second order is enough, covariances by blocks
bent_once = Model(
    [x, v],
    [u],
    [x + 0.4 * v, v + net + one * other + u],
    observation=[x + 0.1 * one * other, v + 0.3 * net],
    process_noise=0.01,
    measurement_noise=0.01,
    drift=1e-4 * (np.eye(WEIGHTS) + 0.1),
    filter="second_order",
)

# an iterated filter of second order beside a signal, where one measurement is a state and one a product
pushed_again = Model(
    [x, v],
    [u],
    [x + 0.4 * v, v + gain * sp.sin(x) + signal("wind", usual=0.3) * gain + u],
    observation=[v, x * gain],
    process_noise=0.01,
    measurement_noise=0.01,
    drift=0.01,
    filter="iterated_second_order",
    square_root=True,
)
