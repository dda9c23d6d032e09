"""Trajectory and hyperparameters in turn, until neither moves.

For a fixed linearisation log p is maximised over psi, the logarithms of the hyperparameters, by L-BFGS-B with the exact
gradient; for fixed psi the model is linearised along the most probable trajectory. There, the marginal likelihood of
the linearised system is Laplace's approximation (with Gauss-Newton curvature) to that of the model itself. The end is
reached when the gradient at a freshly linearised system is zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from symdual.errors import SymdualError
from symdual.fitting.evidence import Evidence, Posterior, Value
from symdual.fitting.task import Task
from symdual.fitting.trajectory import Trajectories
from symdual.numbers import Array

REACH = math.log(1e4)  #: a hyperparameter may become so many times larger or smaller than it starts (as a logarithm)
FLAT = 1e-3  #: the largest entry of the gradient at the end, in units of log p
ROUNDS = 60
STARTS = 5  #: starting points, so that one poor local maximum is not taken for the best
SAME = 1e-2  #: ends within so much of log p are the same maximum
NEAR = math.log(6.0)  #: how far from the model's own values they lie at most (as a logarithm)

Report = Callable[[str], None]


class Optimum(NamedTuple):
    """The end of the search: psi, log p there and at the model's own values, and how the search went.

    `at_bound` is -1 or 1 for a hyperparameter at its lower or upper bound, else 0; `agreeing` of `searches` starting
    points led to the best maximum of the first linearisation.
    """

    psi: Array
    value: Value
    start_log_likelihood: float
    evidence: Evidence
    posterior: Posterior
    at_bound: list[int]
    rounds: int
    converged: bool
    searches: int
    agreeing: int


def maximise(task: Task, report: Report = lambda text: None, starts: int = STARTS) -> Optimum:
    """Search for the hyperparameters of a task that explain its recording best."""
    return _Search(task, report, starts).run()


class _Search:
    def __init__(self, task: Task, report: Report, starts: int) -> None:
        self.task, self.report, self.starts = task, report, starts
        self.trajectories = Trajectories(task)
        self.start = task.psi
        own = self.start[: len(task.hyperparameters)]
        reach = [0.0 if name in task.held else REACH for name in task.names[: len(own)]]
        self.bounds = [*((p - r, p + r) for p, r in zip(own, reach, strict=True)), *task.noise_bounds]
        self.agreeing = 0

    def run(self) -> Optimum:
        psi = self.start
        self.report("finding a trajectory")
        estimate = self.trajectories.first(psi)
        self._require_enough(self.trajectories.evidence(estimate, psi))
        estimate, evidence, posterior, _ = self.trajectories.rest(estimate, psi)
        before = evidence.at(psi)
        psi, rounds = self._best(evidence), 0
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
        ended = rounds, converged, self.starts, self.agreeing
        return Optimum(psi, value, before.log_likelihood, evidence, posterior, at_bound, *ended)

    def _require_enough(self, evidence: Evidence) -> None:
        showing = int(np.any(evidence.whitened.response != 0, axis=1).sum())
        count = len(self.task.hyperparameters)
        if showing < count + 1:
            raise SymdualError(
                f"only {showing} measurements of the recording depend on a Gaussian process; to fit "
                f"{count} hyperparameters takes at least {count + 1}"
            )

    def _best(self, evidence: Evidence) -> Array:
        """The best psi of searches from the model's own values and from others around them, always the same ones."""
        random = np.random.Generator(np.random.PCG64(0))
        ends = [self._inner(evidence, self.start, 0)]
        near = np.array([min(NEAR, high - low) for low, high in self.bounds])
        for start in self.start + near * random.uniform(-1.0, 1.0, (self.starts - 1, len(self.start))):
            with suppress(SymdualError):  # a kernel may be infinite far from the model's own values
                ends.append(self._inner(evidence, start, 0))
        levels = [evidence.at(psi).log_likelihood for psi in ends]
        self.agreeing = sum(level > max(levels) - SAME for level in levels)
        return ends[int(np.argmax(levels))]

    def _inner(self, evidence: Evidence, psi: Array, number: int) -> Array:
        """The best psi for a fixed linearisation."""

        def negative(candidate: Array) -> tuple[float, Array]:
            value = evidence.at(candidate)
            self.report(f"round {number}, log-likelihood {value.log_likelihood:.6g}")
            return -value.log_likelihood, -value.gradient

        options = {"maxiter": 200, "ftol": 1e-14, "gtol": 0.01 * FLAT}
        found = minimize(negative, psi, jac=True, method="L-BFGS-B", bounds=self.bounds, options=options)
        return np.asarray(found.x)

    def _projected(self, psi: Array, gradient: Array) -> Array:
        """The gradient without what points out of the bounds."""
        low, high = np.array(self.bounds).T
        outward = ((psi <= low) & (gradient < 0)) | ((psi >= high) & (gradient > 0))
        return np.where(outward, 0.0, gradient)
