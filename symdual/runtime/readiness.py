"""What is to be compiled before controllers can act, or episodes with them can run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from symdual.common.display import shown
from symdual.common.errors import SymdualError
from symdual.controllers import COSTS, knows_truth
from symdual.runtime.costs import cost_kind, kind_that_decides
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Problem
from symdual.runtime.standby import with_standby
from symdual.runtime.warm import DECIDE_AND_LEARN, Work, missing

_ALONE = {name for name, cost in COSTS.items() if cost.compiled_alone}


def works_for(
    problem: Problem, names: Sequence[str], order: int = 1, window: int | None = None, episodes: bool = False
) -> list[Work]:
    """The parts that controllers need and numba's cache does not hold yet."""
    found: list[Work] = []
    for package, own in _costs(problem, names, order, window).items():
        if package.backend == "c":
            continue
        together = "+".join(sorted(own - _ALONE))
        costs = [*([together] if together else []), *sorted(own & _ALONE)]
        found += missing(package.folder, [*costs, DECIDE_AND_LEARN, *(["episode"] if episodes else [])])
    return found


def get_ready(
    problem: Problem, names: Sequence[str], order: int = 1, window: int | None = None, episodes: bool = False
) -> None:
    """Compile what is not compiled yet, on all cores; whoever sits before a terminal or a notebook sees it."""
    works = works_for(problem, names, order, window, episodes)
    if works:
        with suppress(SymdualError):  # what other processes cannot compile, this one does when it is called
            shown("compiling in a terminal", works)


def settle(
    problem: Problem,
    names: Sequence[str],
    order: int = 1,
    window: int | None = None,
    progress: Callable[[str, float], None] = lambda what, share: None,
) -> None:
    """Compile all that episodes with controllers call, through C, several parts at a time; afterwards it is known who
    computes: where C fails, numba takes over. What numba compiles is left to `works_for`."""

    def compile_all() -> None:
        wanted = {package: kinds for package, kinds in _costs(problem, names, order, window).items() if package.c}
        begun = [
            (f"{package.name}: {kind}", package.decision.cost_pointer(kind))
            for package, kinds in wanted.items()
            for kind in sorted(kinds)
            if package.backend == "c"
        ]
        loops = {package.name: package for package in (*wanted, problem.plant) if wanted and package.backend == "c"}
        begun += [(f"{name}: episodes", package.plant.move) for name, package in loops.items()]
        for done, (what, pointer) in enumerate(begun):
            progress(f"compiling {what}", done / len(begun))
            _ = pointer.address  # which waits for it

    with_standby((problem.package, problem.plant), compile_all)


def _costs(problem: Problem, names: Sequence[str], order: int, window: int | None) -> dict[LoadedPackage, set[str]]:
    """The costs that controllers minimise, by the package that has them."""
    steps = problem.horizon if window is None else window
    kinds: dict[LoadedPackage, set[str]] = {}
    for name in names:
        if name == "exact":
            kinds.setdefault(problem.by_numba().package, set())
            continue
        package = problem.plant if knows_truth(name) else problem.package
        kind = cost_kind(problem, name, order, steps)
        kinds.setdefault(package, set()).update({kind, kind_that_decides(problem, kind, problem.prior.covariance)})
    return kinds
