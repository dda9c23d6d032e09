"""The optimal dual controller of a scalar system with an unknown gain, over many steps, by dynamic programming.

    x' = a x + b u + s e,   e ~ N(0, 1),   b ~ N(m, P),   cost  sum_j W x_j^2,   x measured without noise

The belief is (x, m, P). What is left of the problem after scaling depends on two numbers only,

    eta = x / s,   beta = m / sqrt(P),   with the input  v = u sqrt(P) / s:
    eta' = a eta + beta v + c e,   beta' = c beta + v e,   c^2 = 1 + v^2,

and V_n W s^2 is what the next n steps cost beyond the present state:

    V_0 = 0,   V_n(eta, beta) = min_v Q_n(v),   Q_n(v) = E[eta'^2 + V_{n-1}(eta', beta')]

V is even in both coordinates, so one quadrant is enough, and there no best v is positive. It has kinks where a
coordinate is zero, because the sign of the best input changes; the expectation over e is split at both.
F_n = (V_n - n) (1 + beta^2) / (1 + eta^2) is bounded, tends to limits far out, and is interpolated by cubics over
(asinh eta, asinh beta).

All compiled functions are in this file: numba would not notice that one in another file has changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numba import njit
from scipy.interpolate import RectBivariateSpline

from symdual.common.arrays import Array
from symdual.runtime.compiled import may_keep  # which makes numba's cache safe before the first function

LONGEST = 30  #: steps
_KEPT = may_keep(Path(__file__).parent)

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _compiled(function: _Function) -> _Function:
    """The function compiled by numba, with its types kept."""
    return cast(_Function, njit(cache=_KEPT, error_model="numpy", fastmath={"contract", "reassoc"})(function))


_POINTS = 91  # of the grid along each coordinate
_FARTHEST = 60.0  # of both coordinates; F is taken as constant beyond
_WIDTH = math.asinh(_FARTHEST) / (_POINTS - 1)
_GRID = np.sinh(_WIDTH * np.arange(_POINTS))
_TRIALS = -np.sinh(np.linspace(0.0, math.asinh(30.0), 48))  # inputs v that are tried before the best is refined
_REFINED = 16  # golden sections
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
_REACH = 8.0  # standard deviations of the noise on either side
_PLACES, _SHARES = np.polynomial.legendre.leggauss(16)
_SHARES = _SHARES / math.sqrt(2.0 * math.pi)


class Table(NamedTuple):
    """F_n on the grid: values, slopes along both coordinates, and the mixed derivative."""

    steps: float
    values: Array
    along_eta: Array
    along_beta: Array
    mixed: Array


@_compiled
def cubic(t: float) -> tuple[float, float, float, float]:
    """Hermite's polynomials: the shares of value and slope at 0, and of those at 1."""
    t2 = t * t
    t3 = t2 * t
    return 2.0 * t3 - 3.0 * t2 + 1.0, t3 - 2.0 * t2 + t, 3.0 * t2 - 2.0 * t3, t3 - t2


@_compiled
def to_go(eta: float, beta: float, table: Table) -> float:
    """V_n(eta, beta)."""
    across = min(math.asinh(abs(eta)), math.asinh(_FARTHEST)) / _WIDTH
    along = min(math.asinh(abs(beta)), math.asinh(_FARTHEST)) / _WIDTH
    i = min(int(across), _POINTS - 2)
    j = min(int(along), _POINTS - 2)
    row = cubic(across - i)
    column = cubic(along - j)
    total = 0.0
    for end in range(2):
        value, slope = row[2 * end], row[2 * end + 1]
        for other in range(2):
            total += column[2 * other] * (
                value * table.values[i + end, j + other] + slope * table.along_eta[i + end, j + other]
            )
            total += column[2 * other + 1] * (
                value * table.along_beta[i + end, j + other] + slope * table.mixed[i + end, j + other]
            )
    return table.steps + (1.0 + eta * eta) / (1.0 + beta * beta) * total


@_compiled
def cost_of(v: float, eta: float, beta: float, a: float, table: Table) -> float:
    """Q_{n+1}(v) for the table of V_n."""
    c = math.sqrt(1.0 + v * v)
    mean = a * eta + beta * v
    first = min(max(-mean / c, -_REACH), _REACH)  # where eta' changes its sign
    second = min(max(-beta * c / v, -_REACH), _REACH) if v != 0.0 else _REACH  # where beta' does
    edges = (-_REACH, min(first, second), max(first, second), _REACH)
    total = 0.0
    for piece in range(3):
        middle = 0.5 * (edges[piece] + edges[piece + 1])
        half = 0.5 * (edges[piece + 1] - edges[piece])
        if half > 0.0:
            for i in range(len(_PLACES)):
                e = middle + half * _PLACES[i]
                weight = half * _SHARES[i] * math.exp(-0.5 * e * e)
                total += weight * to_go(mean + c * e, c * beta + v * e, table)
    return mean * mean + c * c + total


@_compiled
def best_of(eta: float, beta: float, a: float, table: Table) -> tuple[float, float]:
    """V_{n+1} and the input v that gives it, in the quadrant where both coordinates are positive."""
    low = 0
    least = math.inf
    for i in range(len(_TRIALS)):
        cost = cost_of(_TRIALS[i], eta, beta, a, table)
        if cost < least:
            least = cost
            low = i
    left = _TRIALS[min(low + 1, len(_TRIALS) - 1)]
    right = _TRIALS[max(low - 1, 0)]
    inner = right - _GOLDEN * (right - left)
    outer = left + _GOLDEN * (right - left)
    inner_cost = cost_of(inner, eta, beta, a, table)
    outer_cost = cost_of(outer, eta, beta, a, table)
    for _ in range(_REFINED):
        if inner_cost < outer_cost:
            right, outer, outer_cost = outer, inner, inner_cost
            inner = right - _GOLDEN * (right - left)
            inner_cost = cost_of(inner, eta, beta, a, table)
        else:
            left, inner, inner_cost = inner, outer, outer_cost
            outer = left + _GOLDEN * (right - left)
            outer_cost = cost_of(outer, eta, beta, a, table)
    if inner_cost < least:
        return inner_cost, inner
    return least, _TRIALS[low]


@_compiled
def next_values(a: float, table: Table) -> Array:
    """V_{n+1} on the grid."""
    values = np.empty((_POINTS, _POINTS))
    for i in range(_POINTS):
        for j in range(_POINTS):
            values[i, j] = best_of(_GRID[i], _GRID[j], a, table)[0]
    return values


def _table(steps: int, values: Array) -> Table:
    """F_n with the slopes of its bicubic spline, which assumes nothing at the edges: V may have a kink there."""
    scaled = (values - steps) * (1.0 + _GRID**2) / (1.0 + _GRID[:, None] ** 2)
    places = np.arange(_POINTS)
    spline = RectBivariateSpline(places, places, scaled, s=0)
    slopes = (spline(places, places, dx, dy) for dx, dy in ((1, 0), (0, 1), (1, 1)))
    return Table(float(steps), scaled, *(np.ascontiguousarray(one) for one in slopes))


@lru_cache(maxsize=128)
def table(steps: int, a: float) -> Table:
    """V_n for n = `steps`, with all that come before it."""
    if steps == 0:
        return _table(0, np.zeros((_POINTS, _POINTS)))
    return _table(steps, next_values(a, table(steps - 1, a)))


@dataclass(frozen=True)
class UnknownGain:
    """What can be reached from a belief (x, m, P) with some steps left.

    Args:
        a: of x' = a x + b u + s e; noise: s^2; weight: W.
    """

    a: float
    noise: float
    weight: float

    def _scaled(self, x: float, m: float, P: float) -> tuple[float, float]:
        return x / math.sqrt(self.noise), m / math.sqrt(P)

    def cost(self, steps: int, x: float, m: float, P: float) -> float:
        """The least expected cost of the present state and the `steps` that follow."""
        return self.weight * (x * x + self.noise * to_go(*self._scaled(x, m, P), table(steps, self.a)))

    def cost_of(self, u: float, steps: int, x: float, m: float, P: float) -> float:
        """The same if this input is u and all later ones are the best."""
        v = u * math.sqrt(P / self.noise)
        there = cost_of(v, *self._scaled(x, m, P), self.a, table(steps - 1, self.a))
        return self.weight * (x * x + self.noise * there)

    def best(self, steps: int, x: float, m: float, P: float) -> tuple[float, float]:
        """The least cost and the input that gives it; of two that are worth the same, one."""
        eta, beta = self._scaled(x, m, P)
        least, v = best_of(abs(eta), abs(beta), self.a, table(steps - 1, self.a))
        sign = math.copysign(1.0, eta) * math.copysign(1.0, beta)
        return self.weight * (x * x + self.noise * least), sign * v * math.sqrt(self.noise / P)

    def loss(self, u: float, steps: int, x: float, m: float, P: float) -> float:
        """What the input u costs beyond the best one.

        Its sum along an episode is, on average, what a controller costs beyond the optimum.
        """
        return self.cost_of(u, steps, x, m, P) - self.best(steps, x, m, P)[0]
