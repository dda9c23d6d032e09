"""Where the formula of a model changes: the boundaries of its cases, and points on and beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

import mpmath
import numpy as np
import sympy as sp
from sympy.core.relational import Relational

from symdual.common.arrays import Array
from symdual.many_digits.arithmetic import Number
from symdual.spec.specification import Specification
from symdual.spec.symbols import FeatureSum

MOST = 24  #: boundaries that are looked at
BESIDE = 1e-4  #: distance of the points beside a boundary, as a share of the deviation of what is moved


def boundaries(model: Specification) -> list[sp.Expr]:
    """Expressions that vanish where a case begins, arguments of a maximum agree, or a kink or a power has its zero."""
    found: dict[sp.Expr, None] = {}
    terms = () if model.objective is None else model.objective.expressions
    noise = () if model.noise is None else model.noise.expressions
    for expression in (*model.dynamics, *model.observation, *terms, *noise):
        for part in sp.preorder_traversal(expression):
            for e in _of(part):
                if e.free_symbols and not isinstance(part, FeatureSum):
                    found[e] = None
    return list(found)[:MOST]


def _of(part: sp.Basic) -> Iterator[sp.Expr]:
    if isinstance(part, Relational):
        yield part.lhs - part.rhs
    elif isinstance(part, (sp.Max, sp.Min)):
        yield from (a - b for a, b in combinations(part.args, 2))
    elif isinstance(part, sp.Abs):
        yield part.args[0]
    elif isinstance(part, sp.Pow) and not part.exp.is_number and not part.base.is_number:
        yield part.base


def root(function: Callable[[Number], Number], centre: float, spread: float) -> float | None:
    """A zero of a function near `centre`: exactly where it is linear, by bisection where it changes its sign."""
    start, next_value, last = (function(mpmath.mpf(t)) for t in (0, 1, 2))
    if mpmath.isfinite(start) and next_value != start and last - next_value == next_value - start:
        return float(-start / (next_value - start))
    grid = [mpmath.mpf(v) for v in centre + spread * np.linspace(-4.0, 4.0, 33)]
    values = [function(t) for t in grid]
    for a, b, f, g in zip(grid, grid[1:], values, values[1:], strict=False):
        if mpmath.isfinite(f) and mpmath.isfinite(g) and f * g <= 0 and f != g:
            return float(_bisected(function, a, b, f))
    return None


def _bisected(function: Callable[[Number], Number], low: Number, high: Number, value: Number) -> Number:
    if value == 0:
        return low
    for _ in range(70):
        middle = (low + high) / 2
        if function(middle) * value > 0:
            low = middle
        else:
            high = middle
    return high


def on_and_beside(place: float, spread: float) -> Array:
    """A coordinate on a boundary and on both sides of it."""
    distance = BESIDE * max(spread, abs(place) * 1e-3)
    return np.array([place, place + distance, place - distance])
