"""How well the recordings determine each quantity: the curvature of the objective at its maximum.

With the second derivatives M of -log p(y | psi) - log p(psi), psi is about N(psi^, M^-1). Coordinates at a bound count
as known for the others. Directions in which M has no curvature are not determined at all.

What the recordings tell of the fitted entries z of z_0 depends on the noise phi, which is uncertain itself, and more so
towards large noise: p(phi | y) is skewed, as the posterior of a variance is that makes Student's t of a normal
distribution. So their covariance is averaged over phi,

    cov z = E cov(z | phi) + cov E(z | phi)

along each axis of the covariance of phi, with weights p(phi | y) by Laplace's method (`Objective.without_places`) at
points one deviation apart.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from symdual.estimation.objective import Objective
from symdual.estimation.quantities import Indices, Quantities
from symdual.estimation.search import Optimum
from symdual.runtime.problem import Array

#: A prior deviation that shrinks by less than this share has learned nothing.
NOTHING = 0.02
#: With 95 % probability a variance that the recordings determine lies within this factor of its value.
WIDEST = 100.0
#: Correlations from here on are named.
CLOSE = 0.9
#: Where the average over the noise is taken, in deviations beside its most probable value.
DISTANCES = (-4.0, -3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 4.0)
#: Points of less than this share of the largest weight are left out.
LIGHTEST = 1e-4


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


def certainty(objective: Objective, optimum: Optimum) -> Certainty:
    """The covariance of the quantities around the maximum."""
    quantities, with_prior = objective.likelihood.quantities, objective.with_prior
    M, noise = optimum.curvature, np.arange(quantities.size) >= quantities.places
    bound = np.array(optimum.at_bound) != 0
    # noise that is not told from none at all; the others are judged as if it were known
    widest = math.log(WIDEST) / (2 * 1.96)
    lost = noise & (M.diagonal() < (0.0 if with_prior else widest**-2))
    free = np.flatnonzero(~bound & ~lost)
    covariance, hidden = _inverse(M, free)
    if objective.tilts and not optimum.kinked:
        covariance = covariance + _excess(objective, optimum.psi, covariance)
    lost[free] = hidden
    covariance[lost] = 0.0
    covariance[:, lost] = 0.0
    covariance[lost, lost] = math.inf
    kept = np.sqrt(np.diag(covariance)) > (1 - NOTHING) * prior_deviations(quantities, with_prior)
    verdicts = [_verdict(side, gone, same) for side, gone, same in zip(optimum.at_bound, lost, kept, strict=True)]
    return Certainty(covariance, tuple(verdicts))


def _excess(objective: Objective, psi: Array, covariance: Array) -> Array:
    """What the average over the noise adds to the covariance at its most probable value."""
    q = objective.likelihood.quantities
    places, noise = slice(0, q.places), slice(q.places, q.size)
    low, high = np.array(q.bounds).reshape(-1, 2).T
    values, axes = np.linalg.eigh(covariance[noise, noise])
    known = values > 1e-12
    here, level = np.linalg.pinv(objective.expected_curvature(psi), hermitian=True), objective.without_places(psi)
    excess = np.zeros_like(covariance)
    for length, axis in zip(np.sqrt(values[known]), axes.T[known], strict=True):
        step = covariance[:, noise] @ axis / length  # entries of z_0 follow the noise
        weights, inner, square = 1.0, np.zeros_like(here), 0.0
        for t in DISTANCES:
            at = np.clip(psi + t * step, low, high)
            weight = math.exp(min(objective.without_places(at) - level, 0.0))
            if weight > LIGHTEST:
                weights, square = weights + weight, square + weight * t**2
                inner += weight * (np.linalg.pinv(objective.expected_curvature(at), hermitian=True) - here)
        excess[places, places] += inner / weights
        excess += (square / weights - 1.0) * np.outer(step, step)
    return _positive(excess, covariance)


def _positive(excess: Array, covariance: Array) -> Array:
    """The excess without directions in which it is negative, in units of the deviations."""
    unit = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    values, vectors = np.linalg.eigh(excess / np.outer(unit, unit))
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T * np.outer(unit, unit))


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
