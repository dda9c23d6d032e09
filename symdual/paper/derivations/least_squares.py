"""Optimal control of linear systems without any recursion: all inputs at once, by least squares.

x_{j+1} = A_j x_j + B_j u_j,     cost  sum_{j..T} (x-r)' W (x-r) + sum_{j..T-1} u' U u
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from symdual.common.arrays import Array
from symdual.paper.derivations import draws


@dataclass(frozen=True)
class Problem:
    """A linear system with quadratic cost; index 0 is the first step."""

    a: tuple[Array, ...]
    b: tuple[Array, ...]
    w: tuple[Array, ...]
    u: tuple[Array, ...]
    r: tuple[Array, ...]

    @property
    def horizon(self) -> int:
        """Number of inputs."""
        return len(self.a)

    def from_step(self, step: int) -> Problem:
        """The rest of the problem from ``step`` on."""
        return Problem(self.a[step:], self.b[step:], self.w[step:], self.u[step:], self.r[step:])


def random_problem(
    seed: Sequence[int], states: int, inputs: int, horizon: int, *, constant: bool = True, ignored: int = 0
) -> Problem:
    """A problem with few-digit numbers; the last ``ignored`` states carry no cost and stay as they are."""
    rng = draws.source(4, *seed, states, inputs, horizon)
    size = states + ignored

    def transition() -> Array:
        whole = np.eye(size)
        whole[:states, :states] = draws.stable(rng, states).array
        if ignored:
            whole[:states, states:] = draws.matrix(rng, states, ignored).array
        return whole

    def entry() -> Array:
        return np.vstack([draws.matrix(rng, states, inputs).array, np.zeros((ignored, inputs))])

    def padded(block: Array) -> Array:
        whole = np.zeros((size, size))
        whole[:states, :states] = block
        return whole

    a, b = [transition()], [entry()]
    for _ in range(horizon - 1):
        a.append(a[0] if constant else transition())
        b.append(b[0] if constant else entry())
    reference = [np.append(draws.matrix(rng, states).array[:, 0], np.zeros(ignored)) for _ in range(horizon + 1)]
    return Problem(
        tuple(a),
        tuple(b),
        tuple(padded(draws.covariance(rng, states).array) for _ in range(horizon + 1)),
        tuple(draws.covariance(rng, inputs).array for _ in range(horizon)),
        tuple(reference),
    )


def responses(problem: Problem) -> tuple[list[Array], list[list[Array]]]:
    """x_j = free_j x_0 + sum_i forced_ji u_i, for j = 0..T."""
    size, inputs = problem.b[0].shape
    free, forced = [np.eye(size)], [[np.zeros((size, inputs)) for _ in problem.a]]
    for j, (a, b) in enumerate(zip(problem.a, problem.b, strict=True)):
        free.append(a @ free[-1])
        forced.append([b if i == j else a @ block for i, block in enumerate(forced[-1])])
    return free, forced


def best_inputs(problem: Problem, start: Array) -> tuple[Array, float]:
    """The inputs that minimise the cost, and the cost, from one call of a least-squares solver."""
    free, forced = responses(problem)
    rows, target = [], []
    for j, weight in enumerate(problem.w):
        values, vectors = np.linalg.eigh(weight)
        factor = (vectors * np.sqrt(np.clip(values, 0, None))).T
        rows.append(factor @ np.hstack(forced[j]))
        target.append(factor @ (problem.r[j] - free[j] @ start))
    count = problem.b[0].shape[1]
    for i, price in enumerate(problem.u):
        block = np.zeros((count, count * problem.horizon))
        block[:, i * count : (i + 1) * count] = np.linalg.cholesky(price).T
        rows.append(block)
        target.append(np.zeros(count))
    matrix, wanted = np.vstack(rows), np.concatenate(target)
    solution, *_ = np.linalg.lstsq(matrix, wanted, rcond=None)
    return solution.reshape(problem.horizon, count), float(np.sum((matrix @ solution - wanted) ** 2))


def quadratic(value: Callable[[Array], float], size: int) -> tuple[Array, Array, float]:
    """K, p, g of a function x'K x + 2 p'x + g."""
    unit = np.eye(size)
    centre = value(np.zeros(size))
    k = np.array([[(value(e + f) - value(e) - value(f) + centre) / 2 for f in unit] for e in unit])
    p = np.array([(value(e) - value(-e)) / 4 for e in unit])
    return k, p, centre


def tail(problem: Problem, step: int) -> tuple[Array, Array, float]:
    """K_j, p_j, g_j of the cost from ``step`` on; at the horizon the cost is that of the last state alone."""
    if step < problem.horizon:
        rest = problem.from_step(step)
        return quadratic(lambda x: best_inputs(rest, x)[1], problem.b[0].shape[0])
    weight, reference = problem.w[step], problem.r[step]
    return quadratic(lambda x: float((x - reference) @ weight @ (x - reference)), weight.shape[0])


def trajectory(problem: Problem, start: Array, inputs: Array) -> list[Array]:
    """The states x_0..x_T under the given inputs."""
    states = [start]
    for a, b, u in zip(problem.a, problem.b, inputs, strict=True):
        states.append(a @ states[-1] + b @ u)
    return states


def total_cost(problem: Problem, states: Sequence[Array], inputs: Array) -> float:
    """L of a trajectory, term by term."""
    state_part = sum(float((x - r) @ w @ (x - r)) for x, r, w in zip(states, problem.r, problem.w, strict=True))
    return state_part + sum(float(u @ price @ u) for u, price in zip(inputs, problem.u, strict=True))
