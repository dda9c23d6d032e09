"""What controllers need compiled before they act, and episodes before they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from symdual.controllers import knows_truth
from symdual.entries.recursions import Workspace
from symdual.entries.types import Records
from symdual.runtime.costs import cost_kind, kind_that_decides
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Problem
from symdual.runtime.standby import with_standby

STEPS = 2  # of the plan on which functions are tried


def make_ready(
    problem: Problem,
    names: Sequence[str],
    order: int = 1,
    window: int | None = None,
    progress: Callable[[str, float], None] = lambda what, share: None,
) -> None:
    """Compile all that episodes with controllers call, through C, several parts at a time; afterwards it is known who
    computes: where C fails, numba takes over. What numba compiles is left to `backends.numba`."""

    def compile_all() -> None:
        wanted = {package: kinds for package, kinds in costs_of(problem, names, order, window).items() if package.c}
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


def costs_of(problem: Problem, names: Sequence[str], order: int, window: int | None) -> dict[LoadedPackage, set[str]]:
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


def usual_costs(package: LoadedPackage) -> list[str]:
    """The costs that ce, cautious and dual minimise: "ce" and the forms of the dual cost that its scenarios ask for."""
    forms = {"ce"}
    for name in package.plants:
        cost = package.numbers[f"scenario.{name}.state_cost"]
        forms.add(package.dual_cost.choose_form(len(cost) - 1, cost))
    if not package.plants:
        forms.add(package.dual_cost.choose_form(STEPS))
    return sorted(forms)


def compile_through_c(package: LoadedPackage, progress: Callable[[str, float], None]) -> None:
    """Compile these costs and the filter through C, several at a time: the compiler runs in processes of its own."""
    costs = usual_costs(package)
    begun = [package.decision.cost_pointer(name) for name in costs]
    touch_filter(package, *belief_and_workspace(package))
    for done, (name, pointer) in enumerate(zip(costs, begun, strict=True), start=1):
        progress(name, done / (len(costs) + 1))
        _ = pointer.address  # which waits for it


def touch_filter(package: LoadedPackage, belief: Records, workspace: Workspace) -> None:
    """Call the functions of the filter once, on copies."""
    filter_workspace, held = package.filter.make_filter_workspace(workspace.settings.copy()), belief.copy()
    if package.SQUARE_ROOT:
        package.filter.factorise(held)
        package.filter.complete(held)
    package.filter.predict(0, held, np.zeros(package.NU), filter_workspace)
    package.filter.update(1, held, np.zeros(package.NY), filter_workspace, np.zeros(3))


def belief_and_workspace(package: LoadedPackage) -> tuple[Records, Workspace]:
    """A belief at zero and a workspace without costs."""
    records, nx, nu = package.records, package.NX, package.NU
    bounds = np.array([package.numbers["lower"], package.numbers["upper"]])
    settings = records.make_settings(*package.noise, bounds, package.numbers["data"])
    costs = np.zeros((STEPS + 1, nx, nx)), np.zeros((STEPS, nu, nu)), np.zeros((STEPS + 1, nx))
    belief = records.make_belief(np.zeros(package.NZ), np.eye(package.NZ))
    return belief, records.make_workspace(STEPS, records.make_stage_costs(*costs), settings)
