"""Brute force against the search over the current input: is the minimum that a decision finds the global one?

The cost is evaluated on a grid that is far denser than the search's own, reaches beyond the edge where no minimum can
lie, and is refined at its deepest points by methods of scipy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from symdual.common.arrays import Array
from symdual.runtime.belief import Belief
from symdual.runtime.controller import Controller
from symdual.runtime.info import State
from symdual.runtime.planning import Planning
from symdual.runtime.problem import Problem


@dataclass(frozen=True, eq=False)
class CostCurve:
    """The cost of one decision as a function of its input, evaluated by the compiled batch functions."""

    problem: Problem
    name: str
    order: int
    k: int
    belief: Belief

    def __call__(self, candidates: Array) -> Array:
        """The cost of each row of candidates (N, NU)."""
        planning = Planning(self.problem, self.name, self.order, self.k, self.belief)
        planning.begin()
        return np.asarray(planning.costs(candidates)[:, 0])


class Comparison(NamedTuple):
    """One decision: what the search found, and what brute force found."""

    found: Array
    found_cost: float
    best: Array
    best_cost: float
    radius: Array

    @property
    def excess(self) -> float:
        """How much worse the search's input is, relative to the cost."""
        return (self.found_cost - self.best_cost) / max(abs(self.best_cost), 1e-300)


def random_decision(problem: Problem, random: np.random.Generator) -> tuple[int, Belief]:
    """A time and a belief: a mean drawn from the prior, its states farther out, other variances, and correlations."""
    size, states = problem.package.NZ, problem.package.NX
    k = int(random.integers(problem.horizon))
    deviations = np.sqrt(np.diag(problem.prior.covariance) + 1e-4) * 10.0 ** random.uniform(-1.0, 0.25, size)
    factor = random.standard_normal((size, 2 * size))
    correlated = factor @ factor.T
    scale = deviations / np.sqrt(np.diag(correlated))
    spread = np.diag(problem.prior.covariance) + np.where(np.arange(size) < states, 0.25, 0.0)
    mean = problem.prior.mean + np.sqrt(spread) * random.standard_normal(size)
    return k, Belief(mean, np.ascontiguousarray(correlated * np.outer(scale, scale)))


def compare(controller: Controller, k: int, belief: Belief, points: int, reach: float = 1.2) -> Comparison:
    """Decide with the controller's search and by brute force with `points` grid points along each input."""
    problem = controller.problem
    curve = CostCurve(problem, controller.name, controller.order, k, belief)
    _, found, _ = controller.step(State(k, belief, None))
    planned = certainty_equivalent(problem, k, belief)
    with np.errstate(divide="ignore"):
        limit = np.sqrt(curve(planned[None])[0] / problem.floors[k])
    own = np.maximum(reach * limit, np.abs(planned))
    low, high = np.maximum(problem.bounds[0], -own), np.minimum(problem.bounds[1], own)
    best, best_cost = brute_force(curve, planned, low, high, points)
    return Comparison(found, float(curve(found[None])[0]), best, best_cost, limit)


def certainty_equivalent(problem: Problem, k: int, belief: Belief) -> Array:
    """The certainty-equivalent input of a belief."""
    _, u, _ = Controller(problem, "ce").step(State(k, belief, None))
    return u


def brute_force(
    curve: Callable[[Array], Array], centre: Array, low: Array, high: Array, points: int
) -> tuple[Array, float]:
    """Minimise over the box by a grid, dense around `centre`, and local refinement of its 12 deepest points."""
    from scipy.optimize import minimize, minimize_scalar

    axes = [_axis(centre[a], low[a], high[a], points) for a in range(len(centre))]
    grid = np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)
    costs = curve(grid)
    starts = _valleys(costs.reshape([len(axis) for axis in axes]))[:12]
    best, best_cost = grid[int(np.argmin(costs))], float(costs.min())
    for start in starts:
        position = np.unravel_index(start, [len(axis) for axis in axes])
        limits = [
            (axis[max(i - 1, 0)], axis[min(i + 1, len(axis) - 1)]) for axis, i in zip(axes, position, strict=True)
        ]
        if len(axes) == 1:
            local = minimize_scalar(
                lambda v: float(curve(np.array([[v]]))[0]), bounds=limits[0], method="bounded", options={"xatol": 1e-10}
            )
            point = np.array([local.x])
        else:
            local = minimize(
                lambda v: float(curve(v[None])[0]),
                grid[start],
                bounds=limits,
                method="Nelder-Mead",
                options={"xatol": 1e-9, "fatol": 1e-14, "maxfev": 400},
            )
            point = np.asarray(local.x)
        value = float(curve(point[None])[0])
        if value < best_cost:
            best, best_cost = point, value
    return best, best_cost


def _axis(centre: float, low: float, high: float, points: int) -> Array:
    """A grid over [low, high]: half of it even, half of it dense around the centre over six decades."""
    powers = np.geomspace(1e-6, 1.0, points // 4)
    dense = np.concatenate([centre + powers * (high - centre), centre - powers * (centre - low), [centre]])
    return np.unique(np.concatenate([np.linspace(low, high, points // 2), np.clip(dense, low, high)]))


def _valleys(costs: Array) -> Array:
    """Flat indices of the local minima of a table, deepest first."""
    lowest = np.ones(costs.shape, dtype=bool)
    for axis in range(costs.ndim):
        for shift in (1, -1):
            neighbour = np.roll(costs, shift, axis)
            edge = [slice(None)] * costs.ndim
            edge[axis] = slice(0, 1) if shift == 1 else slice(-1, None)
            neighbour[tuple(edge)] = np.inf
            lowest &= costs <= neighbour
    flat = np.flatnonzero(lowest)
    return np.asarray(flat[np.argsort(costs.ravel()[flat])])
