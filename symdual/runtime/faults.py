"""Where a cost or a constraint is no number, or has no slope or curvature: a sentence says which, when and where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.runtime import evaluate
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.objective import constraints_of
from symdual.runtime.signals import with_signals

if TYPE_CHECKING:
    from symdual.runtime.problem import Problem


def require_finite(problem: Problem) -> None:
    """Raise when a cost or a constraint is no number, or has no slope or curvature, where an episode begins."""
    u = np.clip(np.zeros(problem.package.NU), *problem.bounds)
    found = fault_at(problem, 0, problem.start, u, problem.prior.mean[problem.package.NX :])
    if found is not None:
        raise SymdualError(f"{found} at the start, x = {shown(problem.start)}, u = {shown(u)}")


def fault_along(problem: Problem, k: int, states: Array, inputs: Array, theta: Array) -> str | None:
    """The first thing that is not finite along a plan from step k: states (K+1, NX), inputs (K, NU)."""
    for j, u in enumerate(inputs):
        found = fault_at(problem, k + j, states[j], u, theta, ends=j + 1 == len(inputs))
        if found is not None:
            return f"{found} at step {k + j}, x = {shown(states[j])}, u = {shown(u)}"
    return None


def fault_at(problem: Problem, k: int, x: Array, u: Array, theta: Array, ends: bool = True) -> str | None:
    """Which cost or constraint is not finite at this point, and in what way, or None; of the end where it `ends`."""
    objective, package = problem.objective, problem.package
    if objective is None or not np.all(np.isfinite(np.concatenate([x, u]))):
        return None
    if problem.signals is not None:
        rows = problem.signals.of(package)[0]
        package = with_signals(package, rows[min(k, len(rows) - 1)])
    weights = objective.cost_weights[min(k, len(objective.cost_weights) - 1)]
    found = _fault_of_terms(package, "step", k, x, u, weights)
    if ends and found is None:
        found = _fault_of_terms(package, "end", k, x, None, objective.terminal_weights)
    return found or _fault_of_constraints(package, k, x, u, theta)


def _fault_of_terms(package: LoadedPackage, role: str, k: int, x: Array, u: Array | None, weights: Array) -> str | None:
    """The first term of the cost of a step, or of the end, that has a weight and is not finite."""
    if not np.any(weights):
        return None
    texts = [text for key, own in package.COST.items() if key.startswith(role) for text in own]
    where = f"in the cost of {'a step' if role == 'step' else 'the end'}, is not finite"
    terms = evaluate.cost_terms(package, x, u, k)
    for i in np.flatnonzero(weights):
        for what in _not_finite((("", terms.t[i]), ("the slope of ", [*terms.t_x[i], *terms.t_u[i]]))):
            return f"{what}{texts[i]}, {where}"
    finite = all(np.all(np.isfinite(part)) for part in terms)  # those without weight too: zero times infinity
    if finite and not np.all(np.isfinite(evaluate.cost_hessian(package, x, u, weights, k))):
        return f"the curvature of {' or '.join(texts)}, {where}"
    return None


def _fault_of_constraints(package: LoadedPackage, k: int, x: Array, u: Array, theta: Array) -> str | None:
    if not constraints_of(package):
        return None
    g, g_x, g_u, g_theta = evaluate.constraint_jacobian(package, x, u, theta, k)
    for i, text in enumerate(package.CONSTRAINTS):
        slope = np.concatenate([g_x[i], g_u[i], g_theta[i]])
        for what in _not_finite((("", g[i]), ("the slope of ", slope))):
            return f"{what}the constraint {text} is not finite"
    return None


def _not_finite(parts: tuple[tuple[str, object], ...]) -> Iterator[str]:
    return (what for what, numbers in parts if not np.all(np.isfinite(np.asarray(numbers, dtype=float))))


def shown(values: Array) -> str:
    """A vector as it stands in a sentence."""
    return "(" + ", ".join(f"{value:g}" for value in values) + ")"
