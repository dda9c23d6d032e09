"""`Planning`: the costs and plans among which one decision chooses, from Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from symdual.common.arrays import Array
from symdual.entries.recursions import Workspace
from symdual.entries.types import Records
from symdual.runtime.belief import Belief
from symdual.runtime.costs import cost_kind, settings_of, stage_costs_of
from symdual.runtime.problem import Problem


class Planning:
    """What a controller weighs at step k with a belief: the cost of any first input, and the plan that follows it.

    Args:
        problem, name, order: as for `Controller`.
        k: the step of the decision.
        belief: the belief at that step; the problem's prior by default.
    """

    def __init__(
        self, problem: Problem, name: str = "dual", order: int = 1, k: int = 0, belief: Belief | None = None
    ) -> None:
        package, held = problem.package, problem.prior if belief is None else belief
        self.k, self.end = k, problem.horizon
        self.kind = cost_kind(problem, name, order, problem.horizon)
        self.package = package
        self.settings: Records = settings_of(problem, name, order)
        if held.memory is not None:
            self.settings["numbers"] = held.memory
        self.belief: Records = package.records.make_belief(held.mean, held.covariance)
        self.workspace: Workspace = package.records.make_workspace(
            problem.horizon, stage_costs_of(problem), self.settings, order
        )
        # a controller without a search weighs nothing; its costs are shown with the bonus, whose nominal part they are
        batch = "bonus" if self.kind == "ce" else self.kind
        self._costs = cast(Callable[..., int], getattr(package.calls, batch))

    def begin(self) -> Array:
        """Make the certainty-equivalent plan, from which the plans of all inputs start; returns its first input."""
        u = np.zeros(self.package.NU)
        self.package.calls.certainty_equivalent(self.k, self.end, self.belief, self.workspace, u)
        return u

    def costs(self, candidates: Array) -> Array:
        """J, Jbar, Jd, status, fallback and iterations of each row of candidates (N, NU), after `begin`."""
        rows = np.ascontiguousarray(candidates, dtype=np.float64)
        out = np.zeros((len(rows), self.package.dual_cost.OUT))
        self._costs(self.k, self.end, self.belief, self.workspace, rows, out)
        return out

    def plan(self, u: Array) -> tuple[float, int]:
        """Plan through the input u, after `begin`; returns Jbar and the buffer of the workspace that holds the plan."""
        cost, _, buffer, _ = self.package.calls.plan_through(self.k, self.end, np.ascontiguousarray(u), self.workspace)
        return float(cost), int(buffer)
