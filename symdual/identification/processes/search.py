"""Trajectory and hyperparameters in turn, until neither moves.

For a fixed linearisation log p is maximised over psi, the logarithms of the hyperparameters, by L-BFGS-B with the exact
gradient; for fixed psi the model is linearised along the most probable trajectory. There, the marginal likelihood of
the linearised system is Laplace's approximation (with Gauss-Newton curvature) to that of the model itself. The end is
reached when the gradient at a freshly linearised system is zero.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.identification.likelihood import Optimum, Report, unreported
from symdual.identification.noise import REACH
from symdual.identification.processes.evidence import Evidence, Posterior
from symdual.identification.processes.setup import ProcessSetup
from symdual.identification.processes.trajectory import Trajectories
from symdual.identification.standard_errors import curvature

FLAT = 1e-3  #: the largest entry of the gradient at the end, in units of log p
ROUNDS = 60
SAME = 1e-2  #: ends within so much of log p are the same maximum
NEAR = math.log(6.0)  #: how far from the model's own values they lie at most (as a logarithm)
_DIFFERENCE = 1e-4  # the step of the differences for the curvature


@dataclass(frozen=True, eq=False)
class ProcessOptimum(Optimum):
    """The end of the search: the last linearisation, what it says of the processes, and after how many rounds.

    Starting points agree by where they led in the first linearisation.
    """

    evidence: Evidence
    posterior: Posterior
    rounds: int


def maximise(
    setup: ProcessSetup, starts: int = 5, report: Report = unreported, begin: Array | None = None
) -> ProcessOptimum:
    """Search for the hyperparameters and the noise that explain the recordings best."""
    return _Search(setup, starts, report).run(setup.psi if begin is None else begin)


class _Search:
    def __init__(self, setup: ProcessSetup, starts: int, report: Report) -> None:
        self.setup, self.report, self.starts = setup, report, starts
        self.trajectories = Trajectories(setup)
        own = setup.psi[: len(setup.hyperparameters)]
        reach = [0.0 if name in setup.held else REACH for name in setup.names[: len(own)]]
        noise = [pair for block in setup.blocks for pair in block.bounds]
        self.bounds = [*((p - r, p + r) for p, r in zip(own, reach, strict=True)), *noise]
        self.agreeing = 0

    def run(self, psi: Array) -> ProcessOptimum:
        self.report("finding a trajectory", None)
        estimate = self.trajectories.first(psi)
        self._require_enough(self.trajectories.evidence(estimate, psi))
        estimate, evidence, posterior, _ = self.trajectories.rest(estimate, psi)
        before = evidence.at(psi)
        psi, rounds = self._best(evidence, psi), 0
        while True:
            rounds += 1
            estimate, evidence, posterior, still = self.trajectories.rest(estimate, psi)
            value = evidence.at(psi)
            converged = still and bool(np.max(np.abs(self._projected(psi, value.gradient))) < FLAT)
            if converged or rounds == ROUNDS:
                break
            psi = self._inner(evidence, psi, rounds)
        at_bound = [
            int(p > high - 1e-6) or -int(p < low + 1e-6) for p, (low, high) in zip(psi, self.bounds, strict=True)
        ]
        self.report("measuring the uncertainty", None)
        return ProcessOptimum(
            psi=psi,
            value=value,
            first=before,
            curvature=curvature(lambda at: evidence.at(at).gradient, psi, _DIFFERENCE),
            at_bound=at_bound,
            searches=self.starts,
            agreeing=self.agreeing,
            converged=converged,
            evidence=evidence,
            posterior=posterior,
            rounds=rounds,
        )

    def _require_enough(self, evidence: Evidence) -> None:
        showing = int(np.any(evidence.whitened.response != 0, axis=1).sum())
        count = len(self.setup.hyperparameters)
        if showing < count + 1:
            raise SymdualError(
                f"only {showing} measurements of the recording depend on a Gaussian process; to fit "
                f"{count} hyperparameters takes at least {count + 1}"
            )

    def _best(self, evidence: Evidence, begin: Array) -> Array:
        """The best psi of searches from the model's own values and from others around them, always the same ones."""
        random = np.random.Generator(np.random.PCG64(0))
        ends = [self._inner(evidence, begin, 0)]
        near = np.array([min(NEAR, high - low) for low, high in self.bounds])
        for start in begin + near * random.uniform(-1.0, 1.0, (self.starts - 1, len(begin))):
            with suppress(SymdualError):  # a kernel may be infinite far from the model's own values
                ends.append(self._inner(evidence, start, 0))
        levels = [evidence.at(psi).log_likelihood for psi in ends]
        self.agreeing = sum(level > max(levels) - SAME for level in levels)
        return ends[int(np.argmax(levels))]

    def _inner(self, evidence: Evidence, psi: Array, number: int) -> Array:
        """The best psi for a fixed linearisation."""

        def negative(candidate: Array) -> tuple[float, Array]:
            value = evidence.at(candidate)
            self.report(f"round {number}, log-likelihood {value.log_likelihood:.6g}", None)
            return -value.log_likelihood, -value.gradient

        options = {"maxiter": 200, "ftol": 1e-14, "gtol": 0.01 * FLAT}
        found = minimize(negative, psi, jac=True, method="L-BFGS-B", bounds=self.bounds, options=options)
        return np.asarray(found.x)

    def _projected(self, psi: Array, gradient: Array) -> Array:
        """The gradient without what points out of the bounds."""
        low, high = np.array(self.bounds).T
        outward = ((psi <= low) & (gradient < 0)) | ((psi >= high) & (gradient > 0))
        return np.where(outward, 0.0, gradient)
