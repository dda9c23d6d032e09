"""What is maximised: log p(y | psi), with the prior of the fitted entries of z_0, and for noise without their bias.

Entries of z_0 that are fitted take up some of the noise, and so the noise that is most probable together with them is
too small: the known bias of variances, for which a sum of squares is divided by n - p in place of n. Noise phi is
therefore judged with these entries z integrated out, by Laplace's method:

    log p(y | phi) = max_z [ log p(y | z, phi) + log p(z) ] - 1/2 log|M| + constant,       M = F(phi) + S^-1

where F is the information on z and S its prior covariance. log|M| is nearly linear in the logarithms phi; its slope,
from differences of F, is held fixed while the first part is maximised with its exact gradient, and then taken anew,
until neither moves. The method "likelihood" maximises log p(y | psi) alone.
"""

from __future__ import annotations

import math

import numpy as np

from symdual.estimation.likelihood import Likelihood
from symdual.runtime.problem import Array

_STEP = 0.02  # of the differences, in logarithms of deviations


class Objective:
    """The objective as a function of psi; `tilt` is the slope that stands for -1/2 log|M|."""

    def __init__(self, likelihood: Likelihood, with_prior: bool) -> None:
        q = likelihood.quantities
        self.likelihood, self.with_prior = likelihood, with_prior
        self.mean = q.prior_mean()
        self.precision = q.prior_precision()
        self.tilt = np.zeros(q.size)
        self._begin = q.first

    def at(self, psi: Array) -> tuple[float, Array]:
        """The value and its gradient; minus infinity and zero where the filter breaks down."""
        value = self.likelihood.at(psi)
        if not math.isfinite(value.log_likelihood):
            return -math.inf, np.zeros(len(psi))
        off = psi - self.mean
        pull = self.precision @ off if self.with_prior else np.zeros(len(psi))
        level = value.log_likelihood - 0.5 * float(off @ pull) + float(self.tilt @ (psi - self._begin))
        return level, value.gradient - pull + self.tilt

    def expected_curvature(self, psi: Array) -> Array:
        """M, (places, places)."""
        places = slice(0, self.likelihood.quantities.places)
        return np.asarray(self.likelihood.information(psi) + self.precision[places, places])

    def without_places(self, psi: Array) -> float:
        """log p(y | phi) by Laplace's method, for psi at the maximum over the entries of z_0; up to a constant."""
        level = self.at(psi)[0] - float(self.tilt @ (psi - self._begin))
        return level - 0.5 * self._volume(psi) if math.isfinite(level) else -math.inf

    @property
    def tilts(self) -> bool:
        """Whether there is noise, and something that takes it up."""
        q = self.likelihood.quantities
        return self.with_prior and 0 < q.places < q.size

    def tilt_at(self, psi: Array) -> Array:
        """The derivatives of -1/2 log|M| by the noise among psi, zero elsewhere."""
        q = self.likelihood.quantities
        tilt = np.zeros(q.size)
        for i in range(q.places, q.size):
            step = np.zeros(q.size)
            step[i] = _STEP
            tilt[i] = -0.5 * (self._volume(psi + step) - self._volume(psi - step)) / (2.0 * _STEP)
        return np.where(np.isfinite(tilt), tilt, 0.0)

    def tilt_slopes(self, psi: Array) -> Array:
        """Their second derivatives, (size, size)."""
        q = self.likelihood.quantities
        rows = np.zeros((q.size, q.size))
        for i in range(q.places, q.size):
            step = np.zeros(q.size)
            step[i] = _STEP
            rows[i] = (self.tilt_at(psi + step) - self.tilt_at(psi - step)) / (2.0 * _STEP)
        return 0.5 * (rows + rows.T)

    def _volume(self, psi: Array) -> float:
        M = self.expected_curvature(psi)
        size = np.maximum(np.diag(M), 1e-300)
        scaled = M / np.sqrt(np.outer(size, size)) + 1e-10 * np.eye(len(M))
        return float(np.linalg.slogdet(scaled)[1] + np.log(size).sum())
