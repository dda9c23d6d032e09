"""How well the recordings determine each coordinate psi: the curvature of what was maximised, at its maximum.

With the second derivatives M of -log p(y | psi) - log p(psi), psi is about N(psi^, M^-1). Coordinates at a bound count
as known for the others. Directions in which M has no curvature are not determined at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from symdual.common.arrays import Array

Mask = NDArray[np.bool_]

#: A prior deviation that shrinks by less than this share has learned nothing.
NOTHING = 0.02
#: With 95 % probability a number that is determined, and fitted by its logarithm, lies within this factor of its value.
WIDEST = 10.0
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


def curvature(gradient: Callable[[Array], Array], psi: Array, step: float, scale: Array | None = None) -> Array:
    """Minus the second derivatives, from differences of the exact gradient: `step` along each column of `scale`."""
    T = np.eye(len(psi)) if scale is None else scale
    rows = [T.T @ (gradient(psi - way) - gradient(psi + way)) / (2.0 * step) for way in step * T.T]
    return unscaled(np.array(rows).reshape(len(psi), len(psi)), T)


def unscaled(M: Array, scale: Array) -> Array:
    """The curvature by psi from that by q, psi = scale q."""
    inverse = np.linalg.inv(scale)
    return np.asarray(inverse.T @ (0.5 * (M + M.T)) @ inverse)


def too_wide(deviations: Array) -> Mask:
    """Which deviations of a logarithm leave open more than a factor of `WIDEST`."""
    return np.asarray(1.96 * deviations >= math.log(WIDEST))


def certainty(
    M: Array,
    at_bound: Sequence[int],
    before: Array,
    logarithms: Mask,
    lost: Mask | None = None,
    excess: Callable[[Array], Array] | None = None,
) -> Certainty:
    """The covariance of psi around its maximum.

    Args:
        M: the curvature (size, size).
        at_bound: not zero for a coordinate at a bound.
        before: the deviation of each coordinate before the recordings, infinite without a prior.
        logarithms: which coordinates are logarithms; without a prior they are judged by the factor that is left open.
        lost: coordinates that are known to be undetermined; the others are judged as if they were known.
        excess: what is to be added to the covariance.
    """
    lost = np.zeros(len(M), bool) if lost is None else lost.copy()
    bound = np.array(at_bound) != 0
    free = np.flatnonzero(~bound & ~lost)
    covariance, lost[free] = _inverse(M, free)
    if excess is not None:
        covariance = covariance + excess(covariance)
    unknown = lost | bound
    covariance[unknown] = 0.0
    covariance[:, unknown] = 0.0
    covariance[unknown, unknown] = math.inf
    deviations = np.sqrt(np.diag(covariance))
    lost |= logarithms & np.isinf(before) & too_wide(deviations)
    kept = deviations > (1 - NOTHING) * before
    verdicts = [_verdict(side, gone, same) for side, gone, same in zip(at_bound, lost, kept, strict=True)]
    return Certainty(covariance, tuple(verdicts))


def _verdict(bound: int, lost: bool, kept: bool) -> str:
    if bound:
        return f"at its {'upper' if bound > 0 else 'lower'} bound"
    if lost:
        return "open"
    return "prior" if kept else "determined"


def _inverse(M: Array, free: NDArray[np.intp]) -> tuple[Array, Mask]:
    """M^-1 between free coordinates where M has curvature, and which of these have a part in a direction without."""
    own = M[np.ix_(free, free)]
    unit = np.sqrt(np.maximum(np.abs(np.diag(own)), 1e-300))
    values, vectors = np.linalg.eigh(own / np.outer(unit, unit))
    known = values > 1e-9 * np.max(values, initial=1e-300)
    inverse = np.zeros_like(M)
    inverse[np.ix_(free, free)] = (vectors[:, known] / values[known]) @ vectors[:, known].T / np.outer(unit, unit)
    return inverse, ((vectors[:, ~known] ** 2).sum(axis=1) > 1e-6) | (unit**2 < 1e-12)


def correlations(names: Sequence[str], found: Certainty) -> tuple[Correlation, ...]:
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
