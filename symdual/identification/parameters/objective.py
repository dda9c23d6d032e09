"""What is maximised: log p(y | psi), with the prior of the fitted entries of z_0, and for noise without their bias.

Entries of z_0 that are fitted take up some of the noise, and so the noise that is most probable together with them is
too small: the known bias of variances, for which a sum of squares is divided by n - p in place of n. Noise phi is
therefore judged with these entries z integrated out, by Laplace's method:

    log p(y | phi) = max_z [ log p(y | z, phi) + log p(z) ] - 1/2 log|M| + constant,       M = F(phi) + S^-1

where F is the information on z and S its prior covariance. log|M| is nearly linear in the logarithms phi; its slope,
from differences of F, is held fixed while the first part is maximised with its exact gradient, and then taken anew,
until neither moves. The method "likelihood" maximises log p(y | psi) alone.

What the recordings tell of z depends on the noise, which is uncertain itself, and more so towards large noise:
p(phi | y) is skewed, as the posterior of a variance is that makes Student's t of a normal distribution. So the
covariance of z is averaged over phi,

    cov z = E cov(z | phi) + cov E(z | phi)

along each axis of the covariance of phi, with weights p(phi | y) at points one deviation apart.
"""

from __future__ import annotations

import math

import numpy as np

from symdual.common.arrays import Array
from symdual.identification.parameters.evidence import Evidence

#: Where the average over the noise is taken, in deviations beside its most probable value.
DISTANCES = (-4.0, -3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 4.0)
#: Points of less than this share of the largest weight are left out.
LIGHTEST = 1e-4
_STEP = 0.02  # of the differences, in logarithms of deviations


class Objective:
    """The objective as a function of psi; `volume_slope` is the slope that stands for -1/2 log|M|."""

    def __init__(self, evidence: Evidence, with_prior: bool) -> None:
        q = evidence.quantities
        self.evidence, self.with_prior = evidence, with_prior
        self.mean = q.prior_mean()
        self.precision = q.prior_precision()
        self.volume_slope = np.zeros(q.size)
        self._begin = q.first

    def at(self, psi: Array) -> tuple[float, Array]:
        """The value and its gradient; minus infinity and zero where the filter breaks down."""
        value = self.evidence.at(psi)
        if not math.isfinite(value.log_likelihood):
            return -math.inf, np.zeros(len(psi))
        off = psi - self.mean
        pull = self.precision @ off if self.with_prior else np.zeros(len(psi))
        level = value.log_likelihood - 0.5 * float(off @ pull) + float(self.volume_slope @ (psi - self._begin))
        return level, value.gradient - pull + self.volume_slope

    def expected_curvature(self, psi: Array) -> Array:
        """M, (places, places)."""
        places = slice(0, self.evidence.quantities.places)
        return np.asarray(self.evidence.information(psi) + self.precision[places, places])

    def without_places(self, psi: Array) -> float:
        """log p(y | phi) by Laplace's method, for psi at the maximum over the entries of z_0; up to a constant."""
        level = self.at(psi)[0] - float(self.volume_slope @ (psi - self._begin))
        return level - 0.5 * self._volume(psi) if math.isfinite(level) else -math.inf

    @property
    def counts_volume(self) -> bool:
        """Whether there is noise, and something that takes it up."""
        q = self.evidence.quantities
        return self.with_prior and 0 < q.places < q.size

    def volume_slope_at(self, psi: Array) -> Array:
        """The derivatives of -1/2 log|M| by the noise among psi, zero elsewhere."""
        q = self.evidence.quantities
        volume_slope = np.zeros(q.size)
        for i in range(q.places, q.size):
            step = np.zeros(q.size)
            step[i] = _STEP
            volume_slope[i] = -0.5 * (self._volume(psi + step) - self._volume(psi - step)) / (2.0 * _STEP)
        return np.where(np.isfinite(volume_slope), volume_slope, 0.0)

    def volume_curvature(self, psi: Array) -> Array:
        """Their second derivatives, (size, size)."""
        q = self.evidence.quantities
        rows = np.zeros((q.size, q.size))
        for i in range(q.places, q.size):
            step = np.zeros(q.size)
            step[i] = _STEP
            rows[i] = (self.volume_slope_at(psi + step) - self.volume_slope_at(psi - step)) / (2.0 * _STEP)
        return 0.5 * (rows + rows.T)

    def _volume(self, psi: Array) -> float:
        M = self.expected_curvature(psi)
        size = np.maximum(np.diag(M), 1e-300)
        scaled = M / np.sqrt(np.outer(size, size)) + 1e-10 * np.eye(len(M))
        return float(np.linalg.slogdet(scaled)[1] + np.log(size).sum())

    def excess(self, psi: Array, covariance: Array) -> Array:
        """What the average over the noise adds to the covariance of psi at its most probable value."""
        q = self.evidence.quantities
        places, noise = slice(0, q.places), slice(q.places, q.size)
        low, high = np.array(q.bounds).reshape(-1, 2).T
        values, axes = np.linalg.eigh(covariance[noise, noise])
        known = values > 1e-12
        here, level = np.linalg.pinv(self.expected_curvature(psi), hermitian=True), self.without_places(psi)
        excess = np.zeros_like(covariance)
        for length, axis in zip(np.sqrt(values[known]), axes.T[known], strict=True):
            step = covariance[:, noise] @ axis / length  # entries of z_0 follow the noise
            weights, inner, square = 1.0, np.zeros_like(here), 0.0
            for t in DISTANCES:
                at = np.clip(psi + t * step, low, high)
                weight = math.exp(min(self.without_places(at) - level, 0.0))
                if weight > LIGHTEST:
                    weights, square = weights + weight, square + weight * t**2
                    inner += weight * (np.linalg.pinv(self.expected_curvature(at), hermitian=True) - here)
            excess[places, places] += inner / weights
            excess += (square / weights - 1.0) * np.outer(step, step)
        return _positive(excess, covariance)


def _positive(excess: Array, covariance: Array) -> Array:
    """The excess without directions in which it is negative, in units of the deviations."""
    unit = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    values, vectors = np.linalg.eigh(excess / np.outer(unit, unit))
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T * np.outer(unit, unit))
