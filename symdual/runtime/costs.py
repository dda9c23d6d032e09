"""Which compiled cost a controller minimises, and the records that it is given: task and weights."""

from __future__ import annotations

import numpy as np

from symdual.common.arrays import Array
from symdual.common.choices import combinations
from symdual.common.errors import SymdualError
from symdual.common.parts import parts_for, require_parts
from symdual.runtime.constraints import chosen_weights
from symdual.runtime.noise import has_state_dependent_noise
from symdual.runtime.objective import constraints_of
from symdual.runtime.package_interface import Pointer, Records
from symdual.runtime.planned_options import USUAL, PlannedOptions
from symdual.runtime.problem import Problem

NAMES = ("oracle", "ce", "cautious", "beb", "dual", "planned", "exact")
SEARCHED = ("structured", "lowrank", "second_order", "bonus", "exact")  # costs that are searched over the first input


def cost_kind(problem: Problem, name: str, order: int, steps: int) -> str:
    """The name of the compiled cost that a controller minimises over plans of at most `steps` steps."""
    if name in ("oracle", "ce") or (name == "beb" and problem.package.INPUT_DELAY == 0):
        return "ce"
    if name == "beb":
        return "bonus"
    if name == "exact" and problem.choices is not None:
        raise SymdualError('the controller "exact" does not know inputs with a finite set of values')
    require_parts(problem.package.name, problem.package.folder, problem.package.parts, parts_for(name))
    if name in ("exact", "planned"):
        return name
    if name == "dual" and order == 2:
        return "second_order"
    # a moving horizon meets other weights at each step
    weights = problem.state_cost if steps == problem.horizon else None
    return str(problem.package.dual_cost.choose_form(steps, weights))


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
    return kind in SEARCHED or (kind == "ce" and problem.choices is not None)


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
    task["weight"] = 1.0 if name == "cautious" else problem.dual_weight
    task["learning"] = 0.0 if name == "cautious" else 1.0
    task["bonus"] = problem.bonus
    task["order"] = order if name == "dual" else 1
    planned_options.write(task)
    if problem.choices is not None:
        tried = combinations(problem.choices)
        task["choices"][0, : len(tried)], task["combinations"] = tried, len(tried)
        task["discrete"] = ~np.isnan(problem.choices[:, 0])
    if problem.objective is not None:
        task["ends"] = problem.objective.terminal_weights
        if constraints_of(package):
            task["constraint_weights"] = chosen_weights(problem)
            task["quantiles"] = problem.objective.quantiles if name in ("cautious", "dual", "planned") else 0.0
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
    if cost_kind(problem, name, order, steps) in SEARCHED:
        require_search_width(problem)
