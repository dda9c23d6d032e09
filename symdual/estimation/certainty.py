"""How well the recordings determine each quantity: the curvature of the objective at its maximum.

With the second derivatives M of -log p(y | psi) - log p(psi), psi is about N(psi^, M^-1). Coordinates at a bound count
as known for the others. Directions in which M has no curvature are not determined at all.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from symdual.estimation.quantities import Quantities
from symdual.estimation.search import Optimum
from symdual.runtime.problem import Array

#: A prior deviation that shrinks by less than this share has learned nothing.
NOTHING = 0.02
#: With 95 % probability a variance that the recordings determine lies within this factor of its value.
WIDEST = 100.0
#: Correlations from here on are named.
CLOSE = 0.9


class Certainty(NamedTuple):
    """The covariance of psi (size, size), infinite on the diagonal where nothing is known, and a verdict on each entry.

    A verdict is "determined", "prior" (the recordings say nothing, it is what it was), "open" (they say nothing and
    there is no prior), "at its lower bound" or "at its upper bound".
    """

    covariance: Array
    verdicts: tuple[str, ...]

    @property
    def deviations(self) -> Array:
        """The standard deviation of each coordinate."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))


class Correlation(NamedTuple):
    """Two quantities that are hardly told apart."""

    one: str
    other: str
    value: float

    def sentence(self) -> str:
        """What it means."""
        way = "together" if self.value > 0 else "against each other"
        return (
            f"{self.one} and {self.other} are hardly told apart (correlation {self.value:.3f}): values that move {way} "
            "explain the recordings nearly as well"
        )


def certainty(quantities: Quantities, optimum: Optimum, with_prior: bool) -> Certainty:
    """The covariance of the quantities around the maximum."""
    size = quantities.size
    free = np.flatnonzero([not bound for bound in optimum.at_bound])
    covariance = np.zeros((size, size))
    lost = np.zeros(size, dtype=bool)
    if len(free):
        M = optimum.curvature[np.ix_(free, free)]
        unit = np.sqrt(np.maximum(np.abs(np.diag(M)), 1e-300))
        values, vectors = np.linalg.eigh(M / np.outer(unit, unit))
        known = values > 1e-9 * max(float(values[-1]), 1e-300)
        inverse = (vectors[:, known] / values[known]) @ vectors[:, known].T
        covariance[np.ix_(free, free)] = inverse / np.outer(unit, unit)
        lost[free] = (vectors[:, ~known] ** 2).sum(axis=1) > 1e-6
        flat = np.abs(np.diag(M)) < 1e-12
        lost[free[flat]] = True
    covariance[lost] = 0.0
    covariance[:, lost] = 0.0
    covariance[lost, lost] = math.inf
    deviations = np.sqrt(np.diag(covariance))
    before = prior_deviations(quantities, with_prior)
    verdicts = []
    for i, bound in enumerate(optimum.at_bound):
        if bound:
            verdicts.append(f"at its {'upper' if bound > 0 else 'lower'} bound")
        elif math.isfinite(before[i]) and deviations[i] > (1 - NOTHING) * before[i]:
            verdicts.append("prior")
        elif lost[i] or (i >= quantities.places and 2 * 1.96 * deviations[i] > math.log(WIDEST)):
            verdicts.append("open")
        else:
            verdicts.append("determined")
    return Certainty(covariance, tuple(verdicts))


def prior_deviations(quantities: Quantities, with_prior: bool) -> Array:
    """The standard deviation of each coordinate before the recordings, infinite without a prior."""
    precision = quantities.prior_precision()
    variance = np.diag(np.linalg.pinv(precision, hermitian=True))
    known = (np.diag(precision) > 0) & with_prior
    return np.where(known, np.sqrt(np.maximum(variance, 0.0)), math.inf)


def correlations(names: list[str], found: Certainty) -> tuple[Correlation, ...]:
    """The pairs whose correlation is above `CLOSE`, the closest first."""
    deviations = found.deviations
    usable = np.isfinite(deviations) & (deviations > 0)
    pairs = []
    for i in range(len(names)):
        for j in range(i):
            if usable[i] and usable[j]:
                value = float(found.covariance[i, j] / (deviations[i] * deviations[j]))
                if abs(value) > CLOSE:
                    pairs.append(Correlation(names[j], names[i], value))
    return tuple(sorted(pairs, key=lambda pair: -abs(pair.value)))
