"""Which compiled cost a controller minimises, and what it is told of a problem: all as the package says it."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.common.parts import require_parts
from symdual.controllers import CONTROLLERS, COSTS, parts_for
from symdual.entries.controllers import Given
from symdual.entries.types import Pointer, Records
from symdual.runtime.constraints import chosen_weights
from symdual.runtime.objective import constraints_of
from symdual.runtime.options import USUAL, Options
from symdual.runtime.problem import Problem


def cost_kind(
    problem: Problem, name: str, order: int, steps: int, options: Options = USUAL, *, single: bool = False
) -> str:
    """The name of the compiled cost that a controller minimises over plans of at most `steps` steps.

    What a controller cannot do is refused, see `controllers.Kind`.
    """
    facts = {"choices": problem.choices is not None, "processes": bool(problem.package.PROCESSES), "single": single}
    for fact, sentence in CONTROLLERS[name].refuses:
        if facts[fact]:
            raise SymdualError(f'the controller "{name}" {sentence}')
    package, parts = problem.package, parts_for(name, asdict(options))
    require_parts(package.name, package.folder, package.parts, parts)
    # a moving horizon meets other weights at each step
    weights = problem.state_cost if steps == problem.horizon else None
    return package.settings.cost_of(name, order, steps, weights, options.numbers)


def kind_that_decides(problem: Problem, kind: str, covariance: Array) -> str:
    """The cost that decides for a belief: that of `ce` where `planned` has nothing to learn."""
    if not COSTS[kind].plans_to_learn:
        return kind
    settings = settings_of(problem, kind, 1)
    return problem.package.settings.cost_that_decides(kind, np.diagonal(covariance), settings)


def searches(problem: Problem, kind: str) -> bool:
    """Whether a cost is searched over the first input.

    With discrete inputs that of the certainty-equivalent plan is too.
    """
    return COSTS[kind].searched or (problem.choices is not None and not COSTS[kind].plans_to_learn)


def cost_pointer(problem: Problem, kind: str, steps: int) -> Pointer:
    """The compiled cost as a function pointer."""
    if kind != "exact":
        return problem.package.decision.cost_pointer(kind)
    from symdual.runtime import exact  # which needs numba

    return exact.cost_pointer(problem, steps)


def given_of(problem: Problem) -> Given:
    """The numbers of a problem, by the names that they have in a package."""
    package, numbers = problem.package, problem.package.numbers
    given = {
        **numbers,
        "lower": problem.bounds[0],
        "upper": problem.bounds[1],
        "weights": (problem.bonus, problem.dual_weight),
        "start": problem.start,
        "prior_mean": problem.prior.mean[package.NX :],
        "start_covariance": problem.prior.covariance[: package.NX, : package.NX],
        "prior_covariance": problem.prior.covariance[package.NX :, package.NX :],
        "choices": problem.choices,
        **cost_numbers(problem),
    }
    if problem.objective is not None and constraints_of(package):
        given["constraint_weights"] = chosen_weights(problem)
    return given


def cost_numbers(problem: Problem) -> dict[str, Array]:
    """Those of its cost, and its signals."""
    found = {"state_cost": problem.state_cost, "input_cost": problem.input_cost, "reference": problem.reference}
    if problem.objective is not None:
        found |= problem.objective._asdict()
    if problem.signals is not None:
        for column, name in enumerate(problem.signals.names):
            found[f"signal.{name}"] = np.array([problem.signals.true[:, column], problem.signals.believed[:, column]])
    return found


def settings_of(problem: Problem, name: str, order: int, options: Options = USUAL) -> Records:
    """The settings of a controller as a record: noise, bounds and data of the model, weights of its cost."""
    return problem.package.settings.settings_of(name, order, given_of(problem), options.numbers)


def stage_costs_of(problem: Problem) -> Records:
    """The cost of each time as records."""
    return problem.package.settings.stage_costs_of(cost_numbers(problem), problem.horizon)


def require_search_width(problem: Problem) -> None:
    """Raise when the search has no limit along some input: neither bounds nor a cost, u_a^2 <= J(u_ce) / least_a."""
    free = ~np.all(np.isfinite(problem.bounds), axis=0)
    endless = np.argwhere((problem.floors == 0.0) & free)
    if len(endless):
        step, place = map(int, endless[0])
        name = {index: name for name, index in problem.package.INPUTS.items()}[place]
        why = f"input_cost is singular at step {step}"
        if problem.objective is not None and "term_slopes" not in problem.package.numbers:
            why = "nothing is known of what its cost is at least"
        raise SymdualError(
            f'the search over the input "{name}" has no limit, because {why}; give the input bounds or a positive cost'
        )


def require_fit(problem: Problem, name: str, order: int, steps: int) -> None:
    """Raise when a controller cannot plan `steps` steps of a problem, before anything is compiled for it."""
    if name == "exact":
        from symdual.runtime import exact

        exact.coefficient(problem, steps)
    if COSTS[cost_kind(problem, name, order, steps)].searched:
        require_search_width(problem)
