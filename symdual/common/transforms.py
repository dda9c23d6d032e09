"""Quantities with bounds: k in a user's units, and the number kappa that is normal in its place.

    one bound     k = lower + exp(kappa)   or   k = upper - exp(kappa)
    two bounds    k = lower + (upper - lower) / (1 + exp(-kappa))
    none          k = kappa

Whatever kappa is, k lies within its bounds. With kappa ~ N(m, s^2) and one bound, |k - bound| is log-normal,

    E|k - bound| = exp(m + s^2/2),    var k = (exp(s^2) - 1) E|k - bound|^2,

which is solved for m and s. With two bounds k is logistic-normal, of which no formula is known: its moments are
integrals over n ~ N(0, 1), and m and s are found by Newton's method.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from symdual.common.arrays import Array
from symdual.common.errors import ModelError

WIDEST = 50.0  #: deviation of kappa beyond which next to nothing lies between two bounds
_TAIL = 9.0  # deviations beyond which a normal density is nothing in double precision
_STEPS = 60  # of Newton's method, which takes five


Sides = tuple[float | None, float | None]


class Moments(NamedTuple):
    """A mean and a variance, as numbers or as arrays of one shape."""

    mean: Any
    variance: Any


@dataclass(frozen=True)
class Transform:
    """What stands between a quantity k with these bounds and kappa; without bounds they are the same.

    >>> rate = Transform(lower=0.0)
    >>> found = rate.moments(*rate.matched(7e10, 1.4e10**2))
    >>> round(found.mean / 7e10, 12), round(found.variance**0.5 / 1.4e10, 12)
    (1.0, 1.0)
    """

    lower: float = -math.inf
    upper: float = math.inf

    def __bool__(self) -> bool:
        """Whether there is a bound."""
        return math.isfinite(self.lower) or math.isfinite(self.upper)

    @property
    def sides(self) -> Sides:
        """Both bounds, None for an open side: as files have them, see `between`."""
        low, high = (side if math.isfinite(side) else None for side in (self.lower, self.upper))
        return low, high

    @property
    def two_sided(self) -> bool:
        """Whether there are two bounds."""
        return math.isfinite(self.lower) and math.isfinite(self.upper)

    @property
    def sign(self) -> float:
        """Whether k grows with kappa (1) or falls (-1), below an upper bound alone."""
        return -1.0 if self and not math.isfinite(self.lower) else 1.0

    def inner_name(self, name: str) -> str:
        """What kappa is called where k has this name.

        >>> Transform(0.0, 1.0).inner_name("friction")
        'logit_friction'
        """
        return f"{'logit' if self.two_sided else 'log'}_{name}" if self else name

    def formula(self, name: str) -> str:
        """Kappa in terms of k with this name, as text.

        >>> Transform(0.0, 1.0).formula("friction"), Transform(lower=273.0).formula("T"), Transform().formula("b")
        ('log(friction / (1 - friction))', 'log(T - 273)', 'b')
        """
        if not self:
            return name
        above, below = (name if self.lower == 0 else f"{name} - {self.lower:g}"), f"{self.upper:g} - {name}"
        if self.two_sided:
            return f"log({above if self.lower == 0 else f'({above})'} / ({below}))"
        return f"log({above if self.sign > 0 else below})"

    def contains(self, k: ArrayLike) -> bool:
        """Whether all numbers lie strictly between the bounds."""
        return bool(np.all((np.asarray(k) > self.lower) & (np.asarray(k) < self.upper)))

    def to_user(self, kappa: ArrayLike) -> Array:
        """k for numbers kappa; infinite where it is too large for a double."""
        kappa = np.asarray(kappa, dtype=np.float64)
        if not self:
            return kappa
        with np.errstate(over="ignore"):
            if self.two_sided:  # from the nearer bound, so that no digits are lost
                near = (self.upper - self.lower) * _logistic(-np.abs(kappa))
                return np.asarray(np.where(kappa < 0, self.lower + near, self.upper - near))
            away = np.exp(kappa)
            return np.asarray(self.lower + away if self.sign > 0 else self.upper - away)

    def from_user(self, k: ArrayLike) -> Array:
        """Kappa for numbers k between the bounds; on them and beyond it is infinite or NaN."""
        k = np.asarray(k, dtype=np.float64)
        if not self:
            return k
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.two_sided:
                return np.asarray(np.log((k - self.lower) / (self.upper - k)))
            return np.asarray(np.log(k - self.lower if self.sign > 0 else self.upper - k))

    def quantile(self, probability: ArrayLike, mean: ArrayLike, variance: ArrayLike) -> Array:
        """The quantile of k where kappa ~ N(mean, variance); all of them are broadcast.

        >>> [round(float(q), 3) for q in Transform(lower=0.0).quantile([0.025, 0.5, 0.975], 0.0, 0.25)]
        [0.375, 1.0, 2.665]
        """
        normal = np.vectorize(NormalDist().inv_cdf, otypes=[np.float64])(probability)
        deviation = np.sqrt(np.maximum(variance, 0.0))
        return self.to_user(np.asarray(mean) + self.sign * normal * deviation)

    def moments(self, mean: ArrayLike, variance: ArrayLike) -> Moments:
        """Mean and variance of k where kappa ~ N(mean, variance), both arrays of one shape."""
        m, v = np.asarray(mean, dtype=np.float64), np.maximum(np.asarray(variance, dtype=np.float64), 0.0)
        if not self:
            return Moments(m, v)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.two_sided:
                width = self.upper - self.lower
                found = _logistic_normal(m, np.sqrt(v))
                return Moments(self.lower + width * found.mean, width**2 * found.variance)
            away = np.exp(m + v / 2)
            return Moments(self.lower + away if self.sign > 0 else self.upper - away, np.expm1(v) * away**2)

    def matched(self, mean: float, variance: float, what: str = "the quantity") -> Moments:
        """Mean and variance of kappa for which k has the given ones; `what` is named where there are none."""
        if not self:
            return Moments(float(mean), float(variance))
        if not self.contains(mean):
            raise ModelError(f"the mean {mean:g} of {what} does not lie between its bounds, {self}")
        if not self.two_sided:
            away = abs(mean - (self.lower if self.sign > 0 else self.upper))
            spread = math.log1p((math.sqrt(variance) / away) ** 2)
            return Moments(math.log(away) - spread / 2, spread)
        width, limit = self.upper - self.lower, (mean - self.lower) * (self.upper - mean)
        if variance >= limit:
            raise ModelError(
                f"the variance {variance:g} of {what} is impossible: with the mean {mean:g} and the bounds {self} it "
                f"is below {limit:g}"
            )
        found = _matched_logistic((mean - self.lower) / width, (self.upper - mean) / width, variance / width**2)
        if found is None:
            raise ModelError(
                f"the variance {variance:g} of {what} is so near to {limit:g}, the largest with the mean {mean:g} and "
                f"the bounds {self}, that next to nothing lies between the bounds"
            )
        return found

    def __str__(self) -> str:
        if not self:
            return "none"
        if self.two_sided:
            return f"{self.lower:g} to {self.upper:g}"
        return f"above {self.lower:g}" if self.sign > 0 else f"below {self.upper:g}"


IDENTITY = Transform()


def has_bound(sides: Sides) -> bool:
    """Whether a side is closed."""
    return sides != (None, None)


def between(sides: Sides) -> Transform:
    """The transform with these bounds, None for an open side."""
    low, high = sides
    return Transform(-math.inf if low is None else low, math.inf if high is None else high)


# ------------------------------------------------------------ of several quantities

Transforms = Sequence[Transform]  # one for each entry; those that are missing have no bounds


def moments_of(transforms: Transforms, mean: Array, variance: Array) -> Moments:
    """Mean and variance of quantities in users' units, along the last axis."""
    means, variances = np.array(mean, dtype=np.float64), np.array(variance, dtype=np.float64)
    for i, one in enumerate(transforms):
        if one:
            means[..., i], variances[..., i] = one.moments(means[..., i], variances[..., i])
    return Moments(means, variances)


def quantiles_of(transforms: Transforms, probability: float, mean: Array, variance: Array) -> Array:
    """A quantile of quantities in users' units, along the last axis of mean and variance of the numbers kappa."""
    own = [*transforms, *[IDENTITY] * (np.shape(mean)[-1] - len(transforms))]
    return np.stack([t.quantile(probability, mean[..., i], variance[..., i]) for i, t in enumerate(own)], axis=-1)


def band_of(transforms: Transforms, mean: Array, variance: Array, width: float) -> tuple[Array, Array]:
    """The ends of a band of `width` deviations of the numbers kappa, for moments of quantities along the last axis."""
    mean, reach = np.array(mean, dtype=np.float64), width * np.sqrt(np.maximum(variance, 0.0))
    lower, upper = mean - reach, mean + reach
    for i, one in enumerate(transforms):
        for at in np.ndindex(mean.shape[:-1]) if one else ():
            place = (*at, i)
            if np.isfinite(mean[place]) and np.isfinite(variance[place]):
                lower[place], upper[place] = _ends(one, float(mean[place]), float(variance[place]), width)
            else:
                lower[place] = upper[place] = np.nan
    return lower, upper


def _ends(one: Transform, mean: float, variance: float, width: float) -> Array:
    """The ends of a band; where rounding has put the mean on a bound, they are there too.

    Where there is next to nothing between two bounds, they are these.
    """
    if not one.contains(mean):
        return np.full(2, mean)
    try:
        kappa = one.matched(mean, variance)
    except ModelError:
        return np.array([one.lower, one.upper])
    return one.to_user(kappa.mean + one.sign * width * math.sqrt(kappa.variance) * np.array([-1.0, 1.0]))


def values_of(transforms: Transforms, kappa: Array) -> Array:
    """Quantities in users' units for numbers kappa, along the last axis."""
    k = np.array(kappa, dtype=np.float64)
    for i, one in enumerate(transforms):
        if one:
            k[..., i] = one.to_user(k[..., i])
    return k


def numbers_of(transforms: Transforms, k: Array, names: Sequence[str], what: str) -> Array:
    """The numbers kappa for quantities k in users' units, along the last axis; all within their bounds."""
    kappa = np.array(k, dtype=np.float64)
    for i, one in enumerate(transforms):
        if one:
            if not one.contains(kappa[..., i]):
                worst = kappa[..., i].ravel()
                outside = worst[~((worst > one.lower) & (worst < one.upper))][0]
                raise ModelError(f'{what} has {outside:g} for "{names[i]}", which has the bounds {one}')
            kappa[..., i] = one.from_user(kappa[..., i])
    return kappa


def belief_of(transforms: Transforms, mean: Array, covariance: Array) -> tuple[Array, Array]:
    """Mean and covariance in users' units: moments of each quantity, and the correlations of the numbers kappa.

    `matched_belief` is its inverse, up to the rounding of a few digits.
    """
    found = moments_of(transforms, mean, np.diagonal(covariance))
    return found.mean, _rescaled(transforms, covariance, found.variance)


def matched_belief(
    transforms: Transforms, mean: Array, covariance: Array, names: Sequence[str], what: str
) -> tuple[Array, Array]:
    """Mean and covariance of the numbers kappa for quantities of which these are mean and covariance.

    Each kappa is matched by itself; a correlation between quantities is taken as that of their numbers kappa.
    """
    means, variances = np.array(mean, dtype=np.float64), np.diagonal(covariance).copy()
    for i, one in enumerate(transforms):
        if one:
            means[i], variances[i] = one.matched(float(means[i]), float(variances[i]), f'"{names[i]}" ({what})')
    return means, _rescaled(transforms, covariance, variances)


def _rescaled(transforms: Transforms, covariance: Array, variances: Array) -> Array:
    """A covariance with the same correlations and other variances; entries without bounds keep all their bits."""
    old = np.diagonal(covariance)
    factors = np.ones(len(old))
    for i, one in enumerate(transforms):
        if one:
            factors[i] = math.sqrt(variances[i] / old[i]) if old[i] > 0 else 0.0
    scaled = covariance * np.outer(factors, factors)
    for i, one in enumerate(transforms):
        if one:
            scaled[i, i] = variances[i]
    return np.asarray(scaled)


# ------------------------------------------------------------ between two bounds


def _logistic(kappa: Array) -> Array:
    return np.asarray(np.exp(-np.logaddexp(0.0, -kappa)))


def _nodes(widest: float) -> tuple[Array, Array]:
    """Points n and weights that integrate functions of m + s n over N(0, 1), for s up to `widest`.

    The trapezoidal rule of step h errs by exp(-2 pi^2 / h^2) for the normal density, and by exp(-2 pi a / h) for a
    function with a pole at a distance a from the real line: that of the logistic function is at i pi / s.
    """
    step = min(0.5, 0.4 / max(widest, 1e-300))
    reach = math.ceil((_TAIL + widest) / step)  # the mean of exp(s n) comes from around n = s
    n = step * np.arange(-reach, reach + 1)
    density = np.exp(-(n**2) / 2)
    weights: Array = density / density.sum()
    return np.asarray(n, dtype=np.float64), weights


def _logistic_normal(mean: Array, deviation: Array) -> Moments:
    """Mean and variance of the logistic function of a normal number, any shape."""
    if mean.size == 0:
        return Moments(mean, deviation)
    finite = deviation[np.isfinite(deviation)]
    n, weights = _nodes(min(float(np.max(finite, initial=0.0)), WIDEST))
    total, square = np.zeros(mean.shape), np.zeros(mean.shape)
    for at, weight in zip(n, weights, strict=True):
        away = _difference(mean, deviation * at)
        total = total + weight * away
        square = square + weight * away**2
    return Moments(_logistic(mean) + total, np.maximum(square - total**2, 0.0))


def _difference(a: Array, d: Array) -> Array:
    """L(a + d) - L(a) of the logistic function L, without loss of digits where d is small."""
    small = np.clip(d, -700.0, 700.0)
    return np.asarray(_logistic(a) * _logistic(-(a + small)) * np.expm1(small))


def _matched_logistic(mean: float, rest: float, variance: float) -> Moments | None:
    """m and s^2 for which L(m + s n) has a mean (`rest` is one minus it) and a variance; None where s is too large.

    Newton's method in m and log s for the logits of the mean and of the variance as a share of its largest value,
    which are nearly linear in them.
    """
    m = math.log(mean / rest)
    if variance == 0.0:
        return Moments(m, 0.0)
    share = variance / (mean * rest)
    target = np.array([m, math.log(share / (1.0 - share))])
    place = np.array([m, math.log(math.sqrt(variance) / (mean * rest))])
    residual, slope = _logit_moments(place, target)
    for _ in range(_STEPS):
        if np.max(np.abs(residual)) < 1e-14 or place[1] > math.log(WIDEST):
            break
        step = -np.linalg.solve(slope, residual)
        step *= min(1.0, 2.0 / float(np.max(np.abs(step))))
        better = place + step
        found, slope_there = _logit_moments(better, target)
        while not np.max(np.abs(found)) < np.max(np.abs(residual)) and np.max(np.abs(step)) > 1e-15:
            step = step / 2
            better = place + step
            found, slope_there = _logit_moments(better, target)
        if not np.max(np.abs(found)) < np.max(np.abs(residual)):
            break  # rounding is all that is left
        place, residual, slope = better, found, slope_there
    if place[1] > math.log(WIDEST) or np.max(np.abs(residual)) > 1e-12:
        return None
    return Moments(float(place[0]), math.exp(2 * place[1]))


def _logit_moments(place: Array, target: Array) -> tuple[Array, Array]:
    """What is left to the target, and its derivative by m and log s."""
    m, s = float(place[0]), math.exp(min(float(place[1]), math.log(2 * WIDEST)))
    n, weights = _nodes(s)
    away, slopes = _difference(np.asarray(m), s * n), _logistic(m + s * n) * _logistic(-(m + s * n))
    middle, rest = float(_logistic(np.asarray(m))), float(_logistic(np.asarray(-m)))
    shift = float(weights @ away)
    mean, left = middle + shift, rest - shift
    variance = float(weights @ (away - shift) ** 2)
    share = variance / (mean * left)
    by_mean = np.array([weights @ slopes, weights @ (slopes * s * n)])
    by_variance = 2 * np.array([weights @ ((away - shift) * slopes), weights @ ((away - shift) * slopes * s * n)])
    by_share = by_variance / (mean * left) - share * by_mean * (left - mean) / (mean * left)
    residual: Array = np.array([math.log(mean / left) - target[0], math.log(share / (1.0 - share)) - target[1]])
    slope: Array = np.array([by_mean / (mean * left), by_share / (share * (1.0 - share))])
    return residual, slope
