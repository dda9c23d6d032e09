"""`exact`: the optimal dual controller of the smallest problem, and what can be reached in a larger one.

For up to three steps the cost is a nested quadrature, as a function pointer with the same signature as those of a
generated package: the same search and the same episodes run it. Where inputs cost nothing, `optimum` knows the least
cost of up to 30 steps and what any input costs beyond it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

import numpy as np
from numba import cfunc

from symdual.common.errors import SymdualError
from symdual.entries.types import Pointer
from symdual.runtime import evaluate, unknown_gain
from symdual.runtime.nested_quadrature import LONGEST, certain_cost, certain_input, cost

if TYPE_CHECKING:
    from symdual.runtime.belief import Belief
    from symdual.runtime.problem import Problem

# columns of a row of results and the status of a plan, as in generated packages
_COST, _NOMINAL, _UNCERTAIN, _STATUS, _FALLBACK, _ITERATIONS = range(6)
_CONVERGED, _NOT_FINITE = 0, 3

_POINTERS: dict[tuple[str, float], Pointer] = {}


def cost_pointer(problem: Problem, steps: int) -> Pointer:
    """The exact cost as a function pointer for the search of a generated package, compiled at the first call."""
    a = coefficient(problem, steps)
    key = (problem.package.module.DIGEST, a)
    if key not in _POINTERS:

        def candidate_cost(k, end, belief, workspace, candidates, out):  # type: ignore[no-untyped-def]
            W, U, r = workspace.stage_costs.W, workspace.stage_costs.U, workspace.stage_costs.r
            x, m, v = belief[0].z[0], belief[0].z[1], belief[0].tt[0, 0]
            if math.isnan(candidates[0, 0]):
                candidates[0, 0] = certain_input(k, end, x, m, a, W, U, r)
            u = candidates[0, 0]
            total = cost(k, end, u, x, m, v, a, workspace.settings[0].Q[0, 0], W, U, r)
            nominal = certain_cost(k, end, u, x, m, a, W, U, r)
            out[0, _COST] = total
            out[0, _NOMINAL] = nominal
            out[0, _UNCERTAIN] = total - nominal
            out[0, _STATUS] = _CONVERGED if math.isfinite(total) else _NOT_FINITE
            out[0, _FALLBACK] = 0.0
            out[0, _ITERATIONS] = 0.0
            return _CONVERGED if math.isfinite(total) else _NOT_FINITE

        _POINTERS[key] = cast("Pointer", cfunc(problem.package.decision.COST)(candidate_cost))
    return _POINTERS[key]


def coefficient(problem: Problem, steps: int) -> float:
    """The number a of a model x' = a x + b u that `exact` can treat, or a sentence that says why it cannot."""
    return _coefficient(
        problem,
        {
            f"at most {LONGEST} steps can be treated, not {steps}": steps <= LONGEST,
            "the input cost must be positive": bool(np.all(problem.input_cost > 0.0)),
        },
    )


def optimum(problem: Problem) -> unknown_gain.UnknownGain:
    """What can be reached in a problem of up to 30 steps whose inputs cost nothing, by dynamic programming.

    >>> best = exact.optimum(problem)
    >>> best.cost(6, x=1.0, m=0.5, P=1.0)       # the least expected cost of this state and six more
    >>> best.loss(0.2, 6, x=1.0, m=0.5, P=1.0)  # what the input 0.2 costs beyond it
    """
    longest = unknown_gain.LONGEST
    weights = problem.state_cost[1:, 0, 0]
    a = _coefficient(
        problem,
        {
            f"at most {longest} steps can be treated, not {problem.horizon}": problem.horizon <= longest,
            "inputs must cost nothing": not np.any(problem.input_cost),
            "the reference must be zero": not np.any(problem.reference),
            "the weight of the state must be positive and always the same": bool(
                np.ptp(problem.state_cost) == 0.0 and weights[0] > 0.0
            ),
            "there must be process noise": bool(problem.package.numbers["process_noise"][0, 0] > 0.0),
        },
    )
    noise = float(problem.package.numbers["process_noise"][0, 0])
    return unknown_gain.UnknownGain(a, noise, float(weights[0]))


def _coefficient(problem: Problem, further: dict[str, bool]) -> float:
    """The number a, if what is said of every problem holds, and further reasons do."""
    package = problem.package
    reasons = {
        "the model must have one state, one input, one unknown and one measurement": (
            (package.NX, package.NU, package.NTHETA, package.NY) == (1, 1, 1, 1)
        ),
        "the state itself must be measured, without noise": (
            package.H_SELECTS == (0,) and not np.any(package.numbers["measurement_noise"])
        ),
        "the unknown must not drift or move": (package.TRANSITION, package.DIFFUSION) == ("identity", "none"),
        "the input must have no bounds": bool(np.all(np.isinf(problem.bounds))),
        "the start must be known": problem.prior.covariance[0].max() == 0.0,
        "its cost must be quadratic without cross terms": problem.objective is None,
        **further,
    }
    for reason, holds in reasons.items():
        if not holds:
            raise SymdualError(f'the controller "exact" does not fit the model {package.name}: {reason}')
    a = float(evaluate.dynamics(package, [1.0], [0.0], [0.0])[0])
    for x, u, b in np.random.default_rng(0).standard_normal((8, 3)):
        if abs(evaluate.dynamics(package, [x], [u], [b])[0] - (a * x + b * u)) > 1e-12 * (
            abs(a * x) + abs(b * u) + 1.0
        ):
            raise SymdualError(
                f'the controller "exact" does not fit the model {package.name}: it is not x\' = a x + b u'
            )
    return a


def expected_cost(problem: Problem, k: int, belief: Belief, u: float) -> float:
    """J_k(u) for a belief whose state is known."""
    a = coefficient(problem, problem.horizon - k)
    x, m = belief.mean
    q = problem.package.numbers["process_noise"][0, 0]
    costs = (problem.state_cost, problem.input_cost, problem.reference)
    return float(cost(k, problem.horizon, float(u), x, m, belief.covariance[1, 1], a, q, *costs))
