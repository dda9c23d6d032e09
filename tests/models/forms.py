"""Small models that together take every path of the templates; their packages are compared like those of examples."""

import numpy as np
import sympy as sp

from symdual import Model, covariances, features, previous, unknown

x, v, u, w, q = sp.symbols("x v u w q")


def _push() -> sp.Expr:
    return features.logistic("net", x, locations=[-1.0, 0.5], slope_mean=[-1.0, 0.7])


# square-root filter, drifting unknowns that move, one of them in the measurement
rooted = Model(
    [x, v],
    [u],
    [x + 0.4 * v, v + unknown("pull", 0.1, 0.5) * x + unknown("gain", 1.0, 0.5) * u],
    observation=[x, v * unknown("gain", 1.0, 0.5)],
    transition=0.9,
    drift=0.01,
    square_root=True,
)

# square-root filter, unknowns that stay as they are
rooted_still = Model([x], [u], [x + unknown("b", 1.0, 1.0) * u], square_root=True)

# iterated filter, a family in the measurement
iterated = Model(
    [x, v], [u], [x + 0.4 * v, v + u], observation=[sp.atan(x), v + _push()], filter="iterated", measurement_noise=0.01
)

# unknowns that mix and drift together, two inputs, second derivatives of all kinds
mixing = Model(
    [x, v],
    [u, w],
    [x + 0.4 * v + 0.1 * w, v + _push() * (1 + 0.1 * u) + 0.1 * w**2 + unknown("a", 0.1, 1.0) * sp.sin(x)],
    transition=np.eye(5) + 0.01 * np.arange(25.0).reshape(5, 5) / 25,
    drift=0.01 * np.eye(5) + 0.001,
)

# rk4 with a square-root filter and correlated drift
rooted_mixing = Model(
    [x, v],
    [u],
    derivatives=[v, unknown("a", -1.0, 0.1) * x + unknown("b", 1.0, 0.1) * u],
    step=0.1,
    method="rk4",
    transition=np.array([[1.0, 0.1], [0.0, 0.9]]),
    drift=np.array([[0.02, 0.01], [0.01, 0.02]]),
    square_root=True,
)

# a long step of rk4, whose derivatives are put together stage by stage
_both = _push()
staged = Model(
    [x, v, w],
    [u, q],
    derivatives=[
        v + unknown("a", 1.0, 0.1) * w**2,
        _both * v - sp.sin(x) * unknown("b", 0.5, 0.1) + u,
        features.fourier("g", x * v + u, count=4) * _both - w * x * unknown("a", 1.0, 0.1) + q * u,
    ],
    observation=[x, sp.atan(v), w + 0.1 * v**2],
    filter="recalibrated",
    outliers=3,
    step=0.1,
    method="rk4",
)

# substeps in a loop, an input two steps ago, more weights than pairs of vectors
looped = Model(
    [x, v],
    [u],
    derivatives=[v, features.fourier("g", x, count=12, lengthscale=2.0) * previous(u, 2) - sp.Max(v, 0) + u],
    step=0.2,
    method="rk4",
    substeps=3,
)

# no unknowns at all, and nothing that is not linear
known = Model([x, v], [u], [x + 0.1 * v, v + u], observation=[x])

# families that are squared, in the motion and in the measurement, and an unknown exponent
squared = Model(
    [x, v],
    [u],
    [x + 0.1 * v, v + u + features.fourier("g", x, count=4) ** 2 + sp.Abs(x) ** unknown("e", 1.5, 0.01)],
    observation=[x + features.fourier("h", v, count=4) ** 2],
)

# an unknown function with a covariance function that has a kink, which keeps room for new places
rough = Model(
    [x],
    [u],
    [x + u + features.gaussian_process("g", x, kernel=covariances.matern32(1.0, 0.5), memory=8, novelty=0.01)],
    process_noise=0.01,
)
