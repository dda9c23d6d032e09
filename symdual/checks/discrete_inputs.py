"""Checks decisions over inputs with a finite set of values: every combination, counted with full matrices.

The package plans through each combination and leaves the plan behind; Jbar and Jd along it are those of `dense`. So
what is compared is the cost of every combination, which of them is taken, and whether inputs that are free beside it
could have been chosen better.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from symdual.checks.kernels import TOLERANCE, BlockResult
from symdual.checks.places import input_bounds, places
from symdual.checks.recursions import CONDITION, OPTIMALITY, PROBLEMS, finite_places, sampler
from symdual.checks.sample import HORIZON, Sample
from symdual.common.arrays import Array
from symdual.common.choices import combinations
from symdual.runtime.loading import LoadedPackage
from symdual.spec.scenario import Scenario
from symdual.spec.specification import Specification

MOST = 12  #: combinations that are tried
DRAWS = 6  #: of the free inputs beside each of them
#: how a decision counts: the compiled cost, whether it learns, and what it is called
COSTS = (("ce", True, "ce"), ("structured", True, "dual"), ("structured", False, "cautious"))


class _Found(NamedTuple):
    """One decision: relative errors of the costs, of the choice and of the free inputs beside it, and what is allowed.

    `inherent` is what the last bits of the belief make in the dense costs, `entries` the number of these.
    """

    costs: float
    choice: float
    free: float
    inherent: float
    entries: int


def check_discrete_inputs(
    model: Specification,
    package: LoadedPackage,
    seed: int = 0,
    scenarios: Sequence[Scenario] = (),
) -> list[BlockResult]:
    """Compare decisions of ce, dual and cautious with all combinations; nothing where there are no choices.

    Not beside Gaussian processes, whose plans have other matrices.
    """
    chosen = next((s.choices for s in scenarios if s.model.name == model.name and s.combinations), None)
    if chosen is None or package.PROCESSES:
        return []
    homes = finite_places(package, places(model, scenarios, np.random.default_rng(seed)))
    sample = sampler(model, package, homes, seed, input_bounds(model, scenarios))
    random, results = np.random.default_rng(seed), []
    for kind, learning, name in COSTS:
        found = [_Decision(sample(random), package, chosen, kind, learning).compared(random) for _ in range(PROBLEMS)]
        results += _judged(found, name, any_free=bool(np.isnan(chosen[:, 0]).any()))
    return results


def _judged(found: list[_Found], name: str, any_free: bool) -> list[BlockResult]:
    worst = _Found(*(max(column) for column in zip(*found, strict=True)))
    allowed = max(TOLERANCE, CONDITION * worst.inherent)
    entries, none = sum(one.entries for one in found), sum(one.entries == 0 for one in found)
    rows = [
        (f"cost of every choice, {name}", "dense", entries, worst.costs, allowed),
        (f"best choice, {name}", "all combinations", len(found), worst.choice, allowed),
        (f"free inputs beside it, {name}", "random draws", DRAWS * entries, worst.free, OPTIMALITY),
    ]
    used = rows if any_free else rows[:2]
    return [BlockResult(*row[:4], passed=bool(row[3] <= row[4]), undefined=none) for row in used]


class _Decision:
    """A decision of a random problem by the package, and its costs by full matrices."""

    def __init__(self, sample: Sample, package: LoadedPackage, chosen: Array, kind: str, learning: bool) -> None:
        self._sample, self._beside, self._package = sample, sample.with_other_last_bits(), package
        self._certain, self._learning = kind == "ce", learning
        self._discrete = ~np.isnan(chosen[:, 0])
        tried = combinations(chosen)
        self._tried = tried[:: -(-len(tried) // MOST)]
        sample.switch(self._tried, self._discrete, learning)
        self._address = package.decision.cost_pointer(kind).address

    def compared(self, random: np.random.Generator) -> _Found:
        """Decide, and count every combination again."""
        package, table, u = self._package, self._package.search.table(), np.zeros(self._package.NU)
        held, workspace, floor = self._sample.on_workspace
        package.decision.decide_at(self._address, True, floor, 0, HORIZON, held, workspace, table, u)
        rows = slice(package.search.DISCRETE_ROWS, package.search.DISCRETE_ROWS + len(self._tried))
        candidates, got = table.candidates[rows].copy(), table.out[rows, package.dual_cost.OUT_COST].copy()
        exact, beside = np.array([self._dense(candidate) for candidate in candidates]).T
        if not np.all(np.isfinite(exact)):
            return _Found(0.0, 0.0, 0.0, 0.0, 0)  # the model is not finite here
        size, least = max(float(np.abs(exact).max()), 1e-300), float(exact.min())
        costs = float(np.abs(got - exact).max()) / size if np.all(np.isfinite(got)) else np.inf
        taken = np.flatnonzero((candidates == u).all(axis=1))
        kept = np.array_equal(candidates[:, self._discrete], self._tried[:, self._discrete])
        choice = (float(exact[taken[0]]) - least) / size if kept and len(taken) else np.inf
        free = max(0.0, least - self._drawn(candidates, table.limits, random)) / size
        return _Found(costs, choice, free, float(np.abs(beside - exact).max()) / size, len(exact))

    def _dense(self, candidate: Array) -> tuple[float, float]:
        """Jbar + Jd along the plan that the package makes through a candidate, and the same for other last bits."""
        package, (held, workspace, _) = self._package, self._sample.on_workspace
        out = np.zeros((1, package.dual_cost.OUT))
        package.decision.price_at(self._address, 0, HORIZON, held, workspace, candidate[None].copy(), out)
        inputs = workspace.plan["u"][int(out[0, package.dual_cost.OUT_BUFFER]), :HORIZON].copy()
        both = (sample.dense_cost(inputs, self._learning) for sample in (self._sample, self._beside))
        first, second = (one.nominal + (0.0 if self._certain else one.uncertain) for one in both)
        return (first, second) if np.array_equal(inputs[0], candidate) else (np.inf, np.inf)

    def _drawn(self, candidates: Array, limits: Array, random: np.random.Generator) -> float:
        """The least cost of a few draws of the free inputs beside the combinations."""
        best = np.inf
        for candidate in candidates if not self._discrete.all() else ():
            for drawn in random.uniform(limits[0], limits[1], size=(DRAWS, len(candidate))):
                best = min(best, self._dense(np.where(self._discrete, candidate, drawn))[0])
        return best
