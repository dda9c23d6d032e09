"""What is still to be compiled before controllers of a task can act, or episodes with them can run."""

from __future__ import annotations

from collections.abc import Sequence

from symdual.runtime.costs import cost_kind, kind_that_decides
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Problem
from symdual.runtime.warm import DECIDE_AND_LEARN, Work, missing

_ALONE = ("planned",)  # costs that take as long as all others together


def works_for(
    problem: Problem, names: Sequence[str], order: int = 1, window: int | None = None, episodes: bool = False
) -> list[Work]:
    """The parts that controllers need and numba's cache does not hold yet."""
    steps = problem.horizon if window is None else window
    kinds: dict[LoadedPackage, set[str]] = {}
    for name in names:
        if name == "exact":
            kinds.setdefault(problem.by_numba().package, set())
            continue
        package = problem.plant if name == "oracle" else problem.package
        kind = cost_kind(problem, name, order, steps)
        kinds.setdefault(package, set()).update({kind, kind_that_decides(problem, kind, problem.prior.covariance)})
    found: list[Work] = []
    for package, own in kinds.items():
        if package.backend == "c":
            continue
        together = "+".join(sorted(own - set(_ALONE)))
        costs = [*([together] if together else []), *sorted(own & set(_ALONE))]
        found += missing(package.folder, [*costs, DECIDE_AND_LEARN, *(["episode"] if episodes else [])])
    return found
