"""How many independent numbers a series of errors is worth.

Errors z of unit variance with the autocorrelation rho_l at lag l, n of them:

    var mean z^2 = 2 / n (1 + 2 sum_l (1 - l/n) rho_l^2)
    var share    = g(1) / n (1 + 2 sum_l (1 - l/n) g(rho_l) / g(1))

the share being that of |z| < c, and g(rho) = P(|z_1| < c, |z_2| < c) - P(|z| < c)^2 for two of them with correlation
rho, all for normal errors. Correlations are taken about zero, for a mean that is not zero is an error, too. Of n errors
only some of the lags can be told from noise: the sums end at the first lag beyond `WINDOW` times what they amount to
(Sokal).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from symdual.common.arrays import Array

WINDOW = 5.0
LIMIT = 1.96  #: c, the half-width of a 95 % band in deviations


def autocorrelations(parts: Sequence[Array]) -> Array:
    """Correlations at lags 0, 1, ... of errors about zero, from all parts together; NaN where nothing was measured."""
    longest = max(len(part) for part in parts)
    products, pairs = np.zeros(longest), np.zeros(longest)
    for part in parts:
        known = np.isfinite(part)
        size = 2 * len(part)
        for values, total in ((np.where(known, part, 0.0), products), (known.astype(float), pairs)):
            spectrum = np.fft.rfft(values, size)
            total[: len(part)] += np.fft.irfft(np.abs(spectrum) ** 2, size)[: len(part)]
    pairs = np.round(pairs)
    mean = np.where(pairs > 0, products / np.maximum(pairs, 1.0), 0.0)
    return np.asarray(np.clip(mean / mean[0], -1.0, 1.0) if mean[0] > 0 else np.eye(1, longest)[0])


def effective_squares(parts: Sequence[Array]) -> float:
    """How many independent squares know as much of the variance as these errors do."""
    return _effective(parts, np.square)


def share_deviation(errors: Array) -> float:
    """The standard deviation of the share of errors (rows,) within a 95 % band that is right; NaN without any."""
    roots, values = _table()
    alone = float(values[0])
    count = _effective([errors], lambda rho: np.interp(np.sqrt(1.0 - np.abs(rho)), roots, values) / alone)
    return math.sqrt(alone / count) if count else math.nan


def _effective(parts: Sequence[Array], alike: Callable[[Array], Array]) -> float:
    count = sum(int(np.isfinite(part).sum()) for part in parts)
    length = max(len(part) for part in parts)
    lags = np.arange(1, length)
    terms = 2.0 * (1.0 - lags / length) * alike(autocorrelations(parts)[1:])
    sums = 1.0 + np.cumsum(terms)
    beyond = np.flatnonzero(lags >= WINDOW * sums)
    total = sums[beyond[0]] if len(beyond) else (sums[-1] if len(sums) else 1.0)
    return count / max(float(total), 1.0)


def _together(rho: Array) -> Array:
    """g of each correlation, by Gauss and Legendre's rule over the first of the two errors."""
    from scipy.stats import norm

    nodes, weights = np.polynomial.legendre.leggauss(200)
    x = LIMIT * nodes
    width = np.sqrt(np.maximum(1.0 - rho**2, 1e-12))[:, None]
    within = norm.cdf((LIMIT - rho[:, None] * x) / width) - norm.cdf((-LIMIT - rho[:, None] * x) / width)
    inside = float(norm.cdf(LIMIT) - norm.cdf(-LIMIT))
    return np.asarray(within @ (LIMIT * weights * norm.pdf(x)) - inside**2)


@cache
def _table() -> tuple[Array, Array]:
    """g at some correlations by (1 - |rho|)^1/2, of which it is a smooth function."""
    roots = np.linspace(0.0, 1.0, 300)
    return roots, _together(1.0 - roots**2)
