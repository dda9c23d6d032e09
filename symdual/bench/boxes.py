"""Where a dual decision spends its time: the boxes predict, nominal, cost-to-go and search of the paper's iteration."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from symdual.bench import workload
from symdual.bench.peers.own_loops import loops
from symdual.bench.peers.own_side import ekf, generated, planning
from symdual.bench.results import Box
from symdual.bench.timing import interleave
from symdual.bench.workload import HORIZON, Workload

if TYPE_CHECKING:
    from symdual.runtime.loading import LoadedPackage

PREDICT = "predict: one step of the filter"
CERTAIN = "nominal: the certainty-equivalent plan"
NOMINAL = "nominal: the plan of one candidate"
COST_TO_GO = "cost-to-go: covariances and dual cost of one plan"
SEARCH = "search: a whole decision"


def boxes(work: Workload, build: Path, rounds: int) -> list[Box]:
    """Return the time of each box for a decision at the start of the horizon.

    The candidates are those of a whole decision; the plan and the cost of one candidate are averages over them.
    """
    package = generated(work, build)
    repeated = loops(package, build)
    predict = ekf(work, package, repeated)
    decision = _Decision(work, package, repeated)
    repeats: dict[str, Callable[[int], object]] = {
        PREDICT: predict.repeat,
        SEARCH: decision.search,
        CERTAIN: decision.certain,
        "plans": decision.plans,
        "costs": decision.costs,
    }
    for repeat in repeats.values():
        repeat(1)
    seconds = dict(zip(repeats, interleave(list(repeats.values()), rounds), strict=True))
    plans, costs = seconds["plans"] - seconds[CERTAIN], seconds["costs"] - seconds[CERTAIN]
    seconds[NOMINAL] = plans / decision.candidates
    seconds[COST_TO_GO] = (costs - plans) / decision.candidates
    order = (PREDICT, CERTAIN, NOMINAL, COST_TO_GO, SEARCH)
    return [Box(work.features, name, 1e6 * seconds[name]) for name in order]


class _Decision:
    """A decision and its parts on the same candidates, each as repeat(n); called from Python, which costs some 2 us."""

    def __init__(self, work: Workload, package: LoadedPackage, repeated: ModuleType) -> None:
        form = package.dual_cost.choose_form(HORIZON)
        self._given = planning(work, package)
        self._modules = package
        self._dual_costs = getattr(package.calls, form)
        self._plan_all = repeated.plan_all
        self._cost = package.decision.cost_pointer(form)  # kept: its code must outlive the calls
        self._all = package.search.table()
        self._input = np.zeros(1)
        self.search(1)
        self.candidates = int(self._all.report[package.search.REPORT_EVALUATIONS])
        self._table = np.sort(self._all.candidates[: self.candidates], axis=0)
        self._out = np.zeros((self.candidates, package.dual_cost.OUT))

    def search(self, n: int) -> None:
        """Decide n times: certainty-equivalent plan, grid, refinement."""
        head = (self._cost.address, True, np.full(1, workload.CONTROL_COST), 0, HORIZON)
        for _ in range(n):
            self._modules.decision.decide_at(*head, *self._given, self._all, self._input)

    def certain(self, n: int) -> None:
        """Make the certainty-equivalent plan n times."""
        for _ in range(n):
            self._modules.calls.certainty_equivalent(0, HORIZON, *self._given, self._input)

    def plans(self, n: int) -> None:
        """Make the certainty-equivalent plan and the plans of all candidates n times."""
        for _ in range(n):
            self._plan_all(HORIZON, *self._given, self._input, self._table)

    def costs(self, n: int) -> None:
        """Make the certainty-equivalent plan, the plans and the costs of all candidates n times."""
        for _ in range(n):
            self.certain(1)
            self._dual_costs(0, HORIZON, *self._given, self._table, self._out)
