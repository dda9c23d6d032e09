"""Constraints at run time: how much their excess costs where nobody said so, and starts that violate one."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from symdual.common.arrays import Array
from symdual.common.errors import SymdualWarning
from symdual.runtime import evaluate
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.objective import constraints_of
from symdual.runtime.signals import with_signals

if TYPE_CHECKING:
    from symdual.runtime.problem import Problem

STIFF = 1000.0  # times the curvature of the cost, where no weight is given


def chosen_weights(problem: Problem) -> Array:
    """The weights of squared excesses: those given, or STIFF times what a unit of the constraint costs otherwise.

    A step back by one unit of g moves the state by g_x' / (g_x g_x'), which costs as much as its square in the cost.
    Where that costs nothing, what the problem costs at its start is to be the price of going twice as far as allowed.
    """
    assert problem.objective is not None
    weights = problem.objective.constraint_weights.copy()
    if not np.isnan(weights).any():
        return weights
    package, x = at_start(problem), problem.start
    u = np.clip(np.zeros(package.NU), *problem.bounds)
    slopes = evaluate.constraint_jacobian(package, x, u, problem.prior.mean[package.NX :])
    curvature = curvature_at_start(problem, x, u)
    for c in np.flatnonzero(np.isnan(weights)):
        g = np.concatenate([slopes.g_x[c], slopes.g_u[c]])
        size = float(g @ g)
        unit = float(g @ curvature @ g) / size**2 if size > 0 else 0.0
        if unit == 0.0 and slopes.g[c] != 0.0:
            unit = cost_at_start(problem, x, u) / float(slopes.g[c]) ** 2
        weights[c] = STIFF * (unit if unit > 0 else 1.0)
    return weights


def curvature_at_start(problem: Problem, x: Array, u: Array) -> Array:
    """The largest absolute curvature of the cost by (x, u) that the problem has at any step, on the diagonal."""
    package, objective = problem.package, problem.objective
    assert objective is not None
    largest = np.zeros(package.NX + package.NU)
    for action, weights in ((u, objective.cost_weights.max(axis=0, initial=0.0)), (None, objective.terminal_weights)):
        states = problem.state_cost[-1:] if action is None else problem.state_cost[:-1]
        inputs = np.zeros((1, package.NU, package.NU)) if action is None else problem.input_cost
        own = np.concatenate([np.abs(np.diagonal(part, axis1=1, axis2=2)).max(axis=0) for part in (states, inputs)])
        t, t_x, t_u = evaluate.cost_terms(package, x, action)
        if len(t):
            squared = _is_squared(package, action)
            own += np.abs(np.diag(evaluate.cost_hessian(package, x, action, weights * t if squared else 0.5 * weights)))
            own += weights @ np.hstack([t_x, t_u]) ** 2 if squared else 0.0
        largest = np.maximum(largest, own)
    return np.diag(largest)


def cost_at_start(problem: Problem, x: Array, u: Array) -> float:
    """The largest cost of the first state, without an input, at any step."""
    package, objective = problem.package, problem.objective
    assert objective is not None
    apart = x - problem.reference
    quadratic = np.einsum("ki,kij,kj->k", apart, problem.state_cost, apart).max()
    terms = 0.0
    for action, weights in ((u, objective.cost_weights.max(axis=0, initial=0.0)), (None, objective.terminal_weights)):
        t = evaluate.cost_terms(package, x, action).t
        terms = max(terms, abs(float(weights @ (t**2 if _is_squared(package, action) else t))))
    return float(quadratic + terms)


def _is_squared(package: LoadedPackage, action: Array | None) -> bool:
    """Whether the terms of the cost of a step, or without an action of the end, are squared."""
    return f"{'end' if action is None else 'step'}, squared" in package.COST


def at_start(problem: Problem) -> LoadedPackage:
    """The package with the first values of its signals among its numbers; unset ones keep their usual values."""
    signals = problem.signals
    return problem.package if signals is None else with_signals(problem.package, signals.of(problem.package)[0][0])


def violated_at_start(problem: Problem) -> list[str]:
    """Sentences about constraints that the expected first state violates already, whatever the first input is."""
    if not constraints_of(problem.package):
        return []
    package = at_start(problem)
    u = np.clip(np.zeros(package.NU), *problem.bounds)
    found = evaluate.constraint_jacobian(package, problem.start, u, problem.prior.mean[package.NX :])
    least = found.g + _gain_of_inputs(found.g_u, problem.bounds - u)
    return [
        f"the constraint {text} is violated by {value:.3g} at the start; the plan leads back as its weight asks for"
        for text, value in zip(package.CONSTRAINTS, least, strict=True)
        if value > 0.0
    ]


def warn_of_start(problem: Problem, stacklevel: int) -> None:
    """Say which constraints the first state violates already."""
    for sentence in violated_at_start(problem):
        warnings.warn(sentence, SymdualWarning, stacklevel=stacklevel + 1)


def _gain_of_inputs(slopes: Array, room: Array) -> Array:
    """How much the best inputs lower constraints with these slopes (NC, NU), to first order; room (2, NU) from u."""
    with np.errstate(invalid="ignore"):  # no slope, endless room
        ways = np.minimum(slopes * room[0], slopes * room[1])
    return np.asarray(np.where(slopes == 0.0, 0.0, ways).sum(axis=1))
