"""The user's model evaluated with 50 digits and more, straight from the expressions as written.

Nothing of `symdual.derive` is used here: features are summed one by one, time steps are taken with numbers, and
derivatives come from differences that are exact to far more digits than float64 has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import sympy as sp

from symdual.spec.model import Model
from symdual.spec.symbols import Family, FeatureSum, matern_formula

DIGITS = 110  #: working precision
STEP = mpmath.mpf(10) ** -25  #: difference step: errors of order STEP**2, far below 50 digits

Number = Any  # mpmath.mpf


def _matern(order: Number, square: Number) -> Number:
    """G_n(s), by its limit or by zero at a pole where s = 0."""
    if square == 0:
        return mpmath.mpf({5: 3, 3: 1, 1: 1}.get(int(order), 0))
    return matern_formula(int(order), square, mpmath.sqrt(square), mpmath.exp)


def as_function(symbols: Sequence[sp.Symbol], expression: sp.Expr) -> Callable[..., Number]:
    """Compile an expression to a function of high-precision numbers."""
    special = {
        "logistic": lambda a: 1 / (1 + mpmath.exp(-a)),
        "monomial": lambda base, power: base ** int(power),
        "matern": _matern,
        "Heaviside": lambda a, at_zero: (mpmath.sign(a) + 1) / 2,
    }
    precise = expression.xreplace({f: sp.Rational(float(f)) for f in expression.atoms(sp.Float)})
    return sp.lambdify(list(symbols), precise, modules=[special, "mpmath"])  # type: ignore[no-any-return]


class ExactModel:
    """A model's f and h at given numbers, with their derivatives by differences."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._sums: list[tuple[sp.Symbol, FeatureSum, list[Callable[..., Number]]]] = []
        self._replaced: dict[FeatureSum, sp.Symbol] = {}
        self._constants = {c: mpmath.mpf(c.value) for c in model.constants}
        motion = [self._without_families(e) for e in model.dynamics]
        measured = [self._without_families(e) for e in model.observation]
        self._scalars = [
            *model.states,
            *model.inputs,
            *model.unknowns,
            *model.constants,
            *([model.time] if model.time else []),
        ]
        self._symbols = [*self._scalars, *(symbol for symbol, _, _ in self._sums)]
        self._arguments = [[as_function(self._symbols, e) for e in points] for _, points in self._points()]
        self._summands = {id(f): [self._summand(f, s) for s in f.summands] for f in model.families}
        self._motion = [as_function(self._symbols, e) for e in motion]
        self._measured = [as_function(self._symbols, e) for e in measured]

    def _without_families(self, expression: sp.Expr) -> sp.Expr:
        def visit(part: sp.Expr) -> sp.Expr:
            if isinstance(part, FeatureSum):
                inner = FeatureSum(*part.args[:2], *(visit(p) for p in part.points))
                if inner not in self._replaced:
                    symbol = sp.Symbol(f"_feature{len(self._sums)}")
                    self._replaced[inner] = symbol
                    self._sums.append((symbol, inner, []))
                return self._replaced[inner]
            return part.func(*map(visit, part.args)) if part.args and part.has(FeatureSum) else part

        return visit(expression)

    def _points(self) -> list[tuple[sp.Symbol, tuple[sp.Expr, ...]]]:
        return [(symbol, feature.points) for symbol, feature, _ in self._sums]

    @staticmethod
    def _summand(family: Family, summand: sp.Expr) -> Callable[..., Number]:
        arrays = [*(w.symbol for w in family.weights), *(d.symbol for d in family.data)]
        return as_function([*family.arguments, *arrays, *family.constants], summand)

    # ------------------------------------------------------------ values

    def _evaluate(
        self,
        functions: list[Callable[..., Number]],
        k: Number,
        x: list[Number],
        u: list[Number],
        theta: list[Number],
    ) -> list[Number]:
        model = self.model
        values = [
            *x,
            *u,
            *theta[: len(model.unknowns)],
            *self._constants.values(),
            *([k] if model.time else []),
        ]
        values += [mpmath.mpf(0)] * len(self._sums)
        offset = len(self._scalars)
        for position, (_, feature, _) in enumerate(self._sums):
            points = [function(*values) for function in self._arguments[position]]
            values[offset + position] = self._sum(feature, points, theta)
        return [mpmath.mpf(function(*values)) for function in functions]

    def _sum(self, feature: FeatureSum, points: list[Number], theta: list[Number]) -> Number:
        family = feature.family
        start = len(self.model.unknowns)
        for other in self.model.families:
            if other is family:
                break
            start += other.size
        function = self._summands[id(family)][feature.output]
        weights = [theta[start + n * family.count : start + (n + 1) * family.count] for n in range(len(family.weights))]
        data = [[mpmath.mpf(float(v)) for v in array.values] for array in family.data]
        constants = [mpmath.mpf(c.value) for c in family.constants]
        rows = zip(*weights, *data, strict=True)
        return mpmath.fsum(function(*points, *row, *constants) for row in rows)

    def dynamics(self, k: int, x: list[Number], u: list[Number], theta: list[Number]) -> list[Number]:
        """The next state, discretised with numbers if the model is in continuous time."""

        def slope(place: list[Number], shift: Number) -> list[Number]:
            return self._evaluate(self._motion, mpmath.mpf(k) + shift, place, u, theta)

        if self.model.step is None:
            return slope(x, 0)
        h = mpmath.mpf(self.model.step)
        first = slope(x, 0)
        if self.model.method == "euler":
            return [a + h * d for a, d in zip(x, first, strict=True)]
        half = mpmath.mpf(1) / 2
        second = slope([a + h * d / 2 for a, d in zip(x, first, strict=True)], half)
        third = slope([a + h * d / 2 for a, d in zip(x, second, strict=True)], half)
        fourth = slope([a + h * d for a, d in zip(x, third, strict=True)], 1)
        slopes = zip(x, first, second, third, fourth, strict=True)
        return [a + h * (p + 2 * q + 2 * r + s) / 6 for a, p, q, r, s in slopes]

    def observation(self, k: int, x: list[Number], theta: list[Number]) -> list[Number]:
        """The expected measurement."""
        return self._evaluate(self._measured, mpmath.mpf(k), x, [mpmath.mpf(0)] * len(self.model.inputs), theta)


def first_difference(function: Callable[[list[Number]], list[Number]], at: list[Number], position: int) -> list[Number]:
    """The derivative of a vector function by one of its arguments."""
    up, down = list(at), list(at)
    up[position] += STEP
    down[position] -= STEP
    return [(a - b) / (2 * STEP) for a, b in zip(function(up), function(down), strict=True)]


def second_difference(function: Callable[[list[Number]], Number], at: list[Number], one: int, other: int) -> Number:
    """The second derivative of a scalar function by two of its arguments."""
    total = mpmath.mpf(0)
    for a in (1, -1):
        for b in (1, -1):
            place = list(at)
            place[one] += a * STEP
            place[other] += b * STEP
            total += a * b * function(place)
    return total / (4 * STEP**2)
