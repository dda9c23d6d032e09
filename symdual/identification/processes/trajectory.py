"""The most probable trajectory, along which the model is linearised.

A first one comes from a filter that takes every value of a process for fresh noise of its prior variance. Then the
model is linearised along the trajectory and the trajectory replaced by the mean of the linearised system given all
data, again and again: Gauss-Newton steps, which rest at the most probable trajectory under the given hyperparameters.
The steps become shorter when they grow, for with much noise full ones may go round in circles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from symdual.common.arrays import Array
from symdual.emit.facts import measurement_names
from symdual.identification.processes.evidence import CovarianceFunction, Evidence, Posterior
from symdual.identification.processes.linearised import Lineariser, MeanFunction
from symdual.identification.processes.setup import Indices, ProcessSetup
from symdual.identification.processes.whitening import smooth, whiten
from symdual.identification.recordings import far_off, first_far

STILL = 1e-7  #: a trajectory rests when no state moves by more than this share of its own size
SHORTEST = 0.03  #: the smallest part of a step that is taken
LONGEST_REST = 200


class Estimate(NamedTuple):
    """A trajectory (T + 1, Z) and the mean functions of the processes."""

    trajectory: Array
    mean: MeanFunction


class Trajectories:
    """Finds trajectories of a setup."""

    def __init__(self, setup: ProcessSetup) -> None:
        self.setup = setup
        self.lineariser = Lineariser(setup)
        self.functions = [CovarianceFunction(family) for family in setup.families]

    def constants(self, psi: Array) -> dict[str, float]:
        """All known numbers of the model under psi."""
        fitted = {str(c.name): float(np.exp(p)) for c, p in zip(self.setup.hyperparameters, psi, strict=False)}
        return self.setup.constants | fitted

    def evidence(self, estimate: Estimate, psi: Array) -> Evidence:
        """The marginal likelihood of the system linearised along an estimate made under psi."""
        system = self.lineariser.along(estimate.trajectory, estimate.mean, self.constants(psi))
        setup = self.setup.under(psi)
        return Evidence(setup, self.functions, system, whiten(setup, system))

    def first(self, psi: Array) -> Estimate:
        """The filtered trajectory when the processes are nothing but noise."""
        setup, lineariser, constants = self.setup.under(psi), self.lineariser, self.constants(psi)
        mean, covariance = setup.start.copy(), setup.start_covariance.copy()
        rows = {int(t): row for row, t in enumerate(setup.times)}
        trajectory = []
        for t in range(setup.steps + 1):
            if t in rows:
                mean, covariance = self._corrected(setup, mean, covariance, rows[t], t, constants)
            trajectory.append(mean)
            if t < setup.steps:
                A, B, c, blocks = lineariser.steps(mean[None], np.array([t]), lineariser.prior, constants)
                noise = np.zeros(B.shape[2])
                for block, function in zip(blocks, self.functions, strict=True):
                    values = [constants[name] for name in function.names]
                    variances = function.pairs(block.points, block.points, values)
                    noise[block.columns] = setup.drifts[block.family.name].scales[t] * variances
                mean = A[0] @ mean + c[0]
                covariance = A[0] @ covariance @ A[0].T + setup.noise_at(t) + (B[0] * noise) @ B[0].T
        return Estimate(np.array(trajectory), lineariser.prior)

    def _corrected(
        self, setup: ProcessSetup, mean: Array, covariance: Array, row: int, t: int, constants: dict[str, float]
    ) -> tuple[Array, Array]:
        C, d = (part[0] for part in self.lineariser.observed(mean[None], np.array([t]), constants))
        y = setup.measurements[row]
        used = np.isfinite(y)
        C, S = C[used], C[used] @ covariance @ C[used].T + setup.measurement_noise[np.ix_(used, used)]
        residual = y[used] - C @ mean - d[used]
        if not setup.anyway:
            self._require_sense(setup, row, np.flatnonzero(used), residual, np.sqrt(np.maximum(np.diag(S), 0.0)))
        gain = covariance @ C.T @ np.linalg.pinv(S, hermitian=True)
        return mean + gain @ residual, covariance - gain @ C @ covariance

    def _require_sense(self, setup: ProcessSetup, row: int, used: Indices, residual: Array, deviations: Array) -> None:
        """Refuse a measurement that is so far from what the model expects, with all that it does not know."""
        noise = np.diag(setup.measurement_noise)[used]
        far = first_far(residual[None], deviations[None], noise)
        if far is not None:
            i = far[1]
            lengths = np.cumsum([len(one.times) for one in setup.recordings])
            number = int(np.searchsorted(lengths, row, side="right"))
            k, column = int(setup.clock[row]), int(used[i])
            expected = float(setup.measurements[row, column] - residual[i])
            label = measurement_names(setup.derivation)[column]
            raise far_off(setup.recordings[number], k, label, column, expected, float(deviations[i]))

    def rest(self, estimate: Estimate, psi: Array) -> tuple[Estimate, Evidence, Posterior, bool]:
        """The most probable trajectory under psi, its marginal likelihood, and whether it was found."""
        share, last = 1.0, np.inf
        for _ in range(LONGEST_REST):
            evidence = self.evidence(estimate, psi)
            posterior = evidence.posterior(psi)
            target = smooth(self.setup, evidence.system, evidence.whitened, posterior.values)
            moved = self._moved(target - estimate.trajectory, target)
            if moved < STILL:
                return Estimate(target, posterior.mean), evidence, posterior, True
            share = max(0.5 * share, SHORTEST) if moved > last else min(1.5 * share, 1.0)
            last = moved
            estimate = Estimate(estimate.trajectory + share * (target - estimate.trajectory), posterior.mean)
        return estimate, evidence, posterior, False

    def _moved(self, change: Array, trajectory: Array) -> float:
        """The largest change of an entry of z, relative to the size of this entry."""
        size = np.max(np.abs(trajectory), axis=0) + np.sqrt(np.diag(self.setup.start_covariance))
        return float(np.max(np.abs(change) / np.where(size > 0, size, 1.0)))
