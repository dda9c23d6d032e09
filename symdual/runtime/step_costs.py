"""What single steps cost, from Python: for plants that are not compiled, and for learners that want a reward."""

from __future__ import annotations

import numpy as np

from symdual.common.arrays import Array
from symdual.runtime.costs import settings_of, stage_costs_of
from symdual.runtime.problem import Problem
from symdual.runtime.signals import place_of


class StepCosts:
    """The cost of each step of a problem at true states.

    With the covariance P of a state it is what is expected: plus tr 1/2 l_xx P. Signals have their true values.

    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._true = None if problem.signals is None else problem.signals.of(problem.package)[1]
        if problem.objective is not None:
            settings = settings_of(problem, "ce", 1)
            self._workspace = problem.package.records.make_workspace(1, stage_costs_of(problem), settings)
            self._point = np.zeros(1, problem.package.records.POINT)

    def step(self, k: int, x: Array, u: Array, covariance: Array | None = None) -> float:
        """l_k(x, u)."""
        if self._problem.objective is not None:
            return self._expression(k, x, u, covariance)
        return self._quadratic(k, x, covariance) + float(u @ self._problem.input_cost[k] @ u)

    def end(self, k: int, x: Array, covariance: Array | None = None) -> float:
        """l_T(x) at the end of an episode of k steps."""
        if self._problem.objective is not None:
            return self._expression(k, x, None, covariance)
        return self._quadratic(k, x, covariance)

    def _quadratic(self, k: int, x: Array, covariance: Array | None) -> float:
        weight, error = self._problem.state_cost[k], x - self._problem.reference[k]
        spread = 0.0 if covariance is None else float(np.sum(weight * covariance))
        return float(error @ weight @ error) + spread

    def _expression(self, k: int, x: Array, u: Array | None, covariance: Array | None) -> float:
        package, point, workspace = self._problem.package, self._point, self._workspace
        if self._true is not None:
            workspace.settings["numbers"][0, place_of(package)] = self._true[k]
        point["z"][0, : package.NX] = x
        if u is not None:
            point["u"][0] = u
        expand = package.calls.expand_end if u is None else package.calls.expand_stage
        total = float(expand(k, point, workspace))
        return total if covariance is None else total + float(np.sum(point["W"][0] * covariance))
