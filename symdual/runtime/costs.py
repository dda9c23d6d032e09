"""Which compiled cost a controller minimises, and the records that it is given: task and weights."""

from __future__ import annotations

import numpy as np

from symdual.common.arrays import Array
from symdual.common.choices import combinations
from symdual.common.errors import SymdualError
from symdual.controllers import CONTROLLERS, COSTS
from symdual.runtime.constraints import chosen_weights
from symdual.runtime.noise import has_state_dependent_noise
from symdual.runtime.objective import constraints_of
from symdual.runtime.package_interface import Pointer, Records
from symdual.runtime.planned_options import USUAL, PlannedOptions
from symdual.runtime.problem import Problem


def cost_kind(problem: Problem, name: str, order: int, steps: int) -> str:
    """The name of the compiled cost that a controller minimises over plans of at most `steps` steps."""
    kind = CONTROLLERS[name]
    for fact, sentence in kind.refuses:
        if _is_so(problem, fact):
            raise SymdualError(f'the controller "{name}" {sentence}')
    if kind.without_effect and problem.package.INPUT_DELAY == 0:
        return kind.without_effect
    if kind.cost != "dual":
        return kind.cost
    if order == 2 and 2 in kind.orders:
        return "second_order"
    # a moving horizon meets other weights at each step
    weights = problem.state_cost if steps == problem.horizon else None
    return str(problem.package.dual_cost.choose_form(steps, weights))


def _is_so(problem: Problem, fact: str) -> bool:
    """Whether a task has what some controllers refuse, see `controllers.Kind`."""
    return {"choices": problem.choices is not None, "processes": bool(problem.package.PROCESSES)}[fact]


def kind_that_decides(problem: Problem, kind: str, covariance: Array) -> str:
    """The cost that decides for a belief: that of `ce` where `planned` has nothing to learn (`anything_to_learn`).

    `planned` would do the same by itself, up to rounding: compilers order the sums of two functions differently. Inputs
    that are equal to the bit come from one function.
    """
    package = problem.package
    if kind != "planned" or package.PROCESSES or has_state_dependent_noise(package):
        return kind
    has_backoff = problem.objective is not None and np.any(problem.objective.quantiles > 0.0)
    variances = np.diagonal(covariance)
    uncertain = np.any(variances[package.NX :] != 0.0) or np.any(package.noise.drift != 0.0)
    if not package.AFFINE:
        uncertain |= np.any(variances[: package.NX] != 0.0) or np.any(np.diagonal(package.noise.process) != 0.0)
    return kind if has_backoff or uncertain else "ce"


def searches(problem: Problem, kind: str) -> bool:
    """Whether a cost is searched over the first input.

    With discrete inputs that of the certainty-equivalent plan is too.
    """
    return COSTS[kind].searched or (kind == "ce" and problem.choices is not None)


def cost_pointer(problem: Problem, kind: str, steps: int) -> Pointer:
    """The compiled cost as a function pointer."""
    if kind != "exact":
        return problem.package.decision.cost_pointer(kind)
    from symdual.runtime import exact  # which needs numba

    return exact.cost_pointer(problem, steps)


def settings_of(problem: Problem, name: str, order: int, planned_options: PlannedOptions = USUAL) -> Records:
    """The settings of a controller as a record: noise, bounds and data of the model, weights of its cost."""
    package = problem.package
    noise, data = package.noise, package.numbers["data"]
    task = package.records.make_settings(*noise, problem.bounds, data)
    kind = CONTROLLERS[name]
    task["weight"] = problem.dual_weight if kind.weight is None else kind.weight
    task["learning"] = float(kind.learning)
    task["bonus"] = problem.bonus
    task["order"] = order if order in kind.orders else 1
    planned_options.write(task)
    if problem.choices is not None:
        tried = combinations(problem.choices)
        task["choices"][0, : len(tried)], task["combinations"] = tried, len(tried)
        task["discrete"] = ~np.isnan(problem.choices[:, 0])
    if problem.objective is not None:
        task["ends"] = problem.objective.terminal_weights
        if constraints_of(package):
            task["constraint_weights"] = chosen_weights(problem)
            task["quantiles"] = problem.objective.quantiles if kind.keeps_backoff else 0.0
    return task


def stage_costs_of(problem: Problem) -> Records:
    """The cost of each time as records."""
    plain = problem.state_cost, problem.input_cost, problem.reference
    more = problem.objective
    own = () if more is None else (more.cross_cost, more.input_reference, more.cost_weights)
    heard = () if problem.signals is None else problem.signals.of(problem.package)
    return problem.package.records.make_stage_costs(*plain, *own, *heard)


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
