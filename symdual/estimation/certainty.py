"""How well the recordings determine each quantity: the curvature of the objective at its maximum.

With the second derivatives M of -log p(y | psi) - log p(psi), psi is about N(psi^, M^-1). Coordinates at a bound count
as known for the others. Directions in which M has no curvature are not determined at all.

What the recordings tell of the N fitted entries of z_0 depends on the noise phi, which is uncertain itself: log|M| has
the slope -2 tilt by phi (`symdual.estimation.objective`). With phi ~ N(phi^, C), their part of M is smaller on average
than at phi^ by about exp(-c' C c / 2), c = 2 tilt / N.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from symdual.estimation.quantities import Indices, Quantities
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
    M, noise = optimum.curvature, np.arange(quantities.size) >= quantities.places
    bound = np.array(optimum.at_bound) != 0
    # noise that is not told from none at all; the others are judged as if it were known
    widest = math.log(WIDEST) / (2 * 1.96)
    lost = noise & (M.diagonal() < (0.0 if with_prior else widest**-2))
    free = np.flatnonzero(~bound & ~lost)
    covariance, hidden = _inverse(M, free)
    covariance, _ = _inverse(_weakened(quantities, optimum, M, covariance), free)
    lost[free] = hidden
    covariance[lost] = 0.0
    covariance[:, lost] = 0.0
    covariance[lost, lost] = math.inf
    kept = np.sqrt(np.diag(covariance)) > (1 - NOTHING) * prior_deviations(quantities, with_prior)
    verdicts = [_verdict(side, gone, same) for side, gone, same in zip(optimum.at_bound, lost, kept, strict=True)]
    return Certainty(covariance, tuple(verdicts))


def _weakened(quantities: Quantities, optimum: Optimum, M: Array, covariance: Array) -> Array:
    """M with what the recordings tell of z_0 as it is on average over the uncertain noise."""
    places = slice(0, quantities.places)
    slope = 2.0 * optimum.tilt / max(quantities.places, 1)
    share = math.exp(-0.5 * min(float(slope @ covariance @ slope), 2.0))
    prior = quantities.prior_precision()[places, places] if share < 1.0 else 0.0
    weak = M.copy()
    weak[places, places] = prior + share * (M[places, places] - prior)
    return weak


def _verdict(bound: int, lost: bool, kept: bool) -> str:
    if bound:
        return f"at its {'upper' if bound > 0 else 'lower'} bound"
    if lost:
        return "open"
    return "prior" if kept else "determined"


def _inverse(M: Array, free: Indices) -> tuple[Array, NDArray[np.bool_]]:
    """M^-1 between free coordinates where M has curvature, and which of these have a part in a direction without."""
    own = M[np.ix_(free, free)]
    unit = np.sqrt(np.maximum(np.abs(np.diag(own)), 1e-300))
    values, vectors = np.linalg.eigh(own / np.outer(unit, unit))
    known = values > 1e-9 * np.max(values, initial=1e-300)
    inverse = np.zeros_like(M)
    inverse[np.ix_(free, free)] = (vectors[:, known] / values[known]) @ vectors[:, known].T / np.outer(unit, unit)
    return inverse, ((vectors[:, ~known] ** 2).sum(axis=1) > 1e-6) | (unit**2 < 1e-12)


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
