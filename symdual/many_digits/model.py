"""The user's model evaluated with 50 digits and more, straight from the expressions as written.

Nothing of `symdual.derive` is used here: features are summed one by one, time steps are taken with numbers, and
derivatives come from differences that are exact to far more digits than float64 has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import mpmath
import numpy as np
import sympy as sp

from symdual.common.arrays import Array
from symdual.integrators import INTEGRATORS, Explicit, Implicit
from symdual.many_digits.arithmetic import Arithmetic, Number
from symdual.many_digits.collocation import ExactPart, Part, divided, exact_parts
from symdual.spec.symbols import Family, FeatureSum, Unknown
from symdual.spec.system import System

STEP = mpmath.mpf(10) ** -25  #: difference step: errors of order STEP**2, far below 50 digits
_REMEMBERED = 4096  # summands
_REMEMBERED_SUMS = 64  # whole sums: a difference by a weight moves few of their summands, any other one none or all
_FEW = 8


class _Part(NamedTuple):
    """Some expressions of a model, with the numbers of the sums over features that they need."""

    functions: Arithmetic
    sums: list[int]


class _Kept(NamedTuple):
    """The sums over all features of a family at a point, one for each output, with the weights that they belong to."""

    block: list[Number]
    totals: list[Number]


class ExactModel:
    """A model's f and h at given numbers, and other expressions in its symbols, such as conditions of its cases."""

    def __init__(self, model: System, others: Sequence[sp.Expr] = ()) -> None:
        self.model = model
        self._sums: list[tuple[sp.Symbol, FeatureSum]] = []
        self._replaced: dict[FeatureSum, sp.Symbol] = {}
        self._constants = {c: mpmath.mpf(c.value) for c in model.constants}
        motion = [self._without_families(e) for e in model.dynamics]
        measured = [self._without_families(e) for e in model.observation]
        more = [self._without_families(e) for e in others]
        self._scalars = [
            *model.states,
            *model.inputs,
            *model.unknowns,
            *model.constants,
            *([model.time] if model.time else []),
        ]
        symbols = [*self._scalars, *(symbol for symbol, _ in self._sums)]
        self._arguments = [Arithmetic(symbols, feature.points) for _, feature in self._sums]
        self._summands = {id(f): self._summand(f) for f in model.families}
        self._data = {
            id(f): (
                [[mpmath.mpf(float(v)) for v in d.values] for d in f.data],
                [mpmath.mpf(c.value) for c in f.constants],
            )
            for f in model.families
        }
        self._kept: dict[tuple[Any, ...], _Kept] = {}
        self._divided: dict[tuple[float, ...], tuple[list[Part], list[Array]]] = {}  # the last implicit step
        self._motion, self._measured, self._others = (self._part(symbols, part) for part in (motion, measured, more))

    def _without_families(self, expression: sp.Expr) -> sp.Expr:
        def visit(part: sp.Expr) -> sp.Expr:
            if isinstance(part, FeatureSum):
                inner = FeatureSum(*part.args[:2], *(visit(p) for p in part.points))
                if inner not in self._replaced:
                    symbol = sp.Symbol(f"_feature{len(self._sums)}")
                    self._replaced[inner] = symbol
                    self._sums.append((symbol, inner))
                return self._replaced[inner]
            return part.func(*map(visit, part.args)) if part.args and part.has(FeatureSum) else part

        return visit(expression)

    def _part(self, symbols: list[sp.Symbol], expressions: list[sp.Expr]) -> _Part:
        needed: set[sp.Basic] = set().union(*(e.free_symbols for e in expressions))
        sums: list[int] = []
        for position in reversed(range(len(self._sums))):  # a sum may stand in the arguments of a later one
            symbol, feature = self._sums[position]
            if symbol in needed:
                needed |= set().union(*(p.free_symbols for p in feature.points))
                sums.append(position)
        return _Part(Arithmetic(symbols, expressions), sums[::-1])

    @staticmethod
    def _summand(family: Family) -> Callable[..., list[Number]]:
        arrays = [*(w.symbol for w in family.weights), *(d.symbol for d in family.data)]
        arithmetic = Arithmetic([*family.arguments, *arrays, *family.constants], family.summands)
        # the precision is an argument because a number means another one there
        return lru_cache(_REMEMBERED)(lambda precision, *numbers: arithmetic.values(numbers))

    # ------------------------------------------------------------ values

    def set_signals(self, signals: Sequence[Number]) -> None:
        """Let the signals of the model have these values from now on."""
        self._constants |= {s: mpmath.mpf(value) for s, value in zip(self.model.signals, signals, strict=True)}

    def _evaluate(
        self,
        part: _Part,
        k: Number,
        x: list[Number],
        u: list[Number],
        theta: list[Number],
    ) -> list[Number]:
        model = self.model
        values = [
            *x,
            *u,
            *(_in_users_units(s, kappa) for s, kappa in zip(model.unknowns, theta, strict=False)),
            *self._constants.values(),
            *([k] if model.time else []),
        ]
        values += [mpmath.mpf(0)] * len(self._sums)
        offset = len(self._scalars)
        for position in part.sums:
            _, feature = self._sums[position]
            points = self._arguments[position].values(values)
            values[offset + position] = self._sum(feature, points, theta)
        return part.functions.values(values)

    def _sum(self, feature: FeatureSum, points: list[Number], theta: list[Number]) -> Number:
        family = feature.family
        start = len(self.model.unknowns)
        for other in self.model.families:
            if other is family:
                break
            start += other.size
        key, block = (id(family), mpmath.mp.prec, *points), theta[start : start + family.size]
        kept = self._kept.get(key)
        moved = [i for i, (a, b) in enumerate(zip(block, kept.block, strict=True)) if a is not b] if kept else []
        if kept is None or len(moved) > _FEW or not mpmath.isfinite(kept.totals[feature.output]):
            self._kept[key] = kept = _Kept(block, self._totals(family, points, block, range(family.count)))
            if len(self._kept) > _REMEMBERED_SUMS:
                del self._kept[next(iter(self._kept))]
            moved = []
        own = {i % family.count for i in moved}
        before, after = (self._totals(family, points, b, own)[feature.output] for b in (kept.block, block))
        return kept.totals[feature.output] - before + after

    def _totals(
        self, family: Family, points: list[Number], block: list[Number], features: Iterable[int]
    ) -> list[Number]:
        """For each output the sum over some features."""
        summands, precision = self._summands[id(family)], mpmath.mp.prec
        data, constants = self._data[id(family)]
        count = family.count
        rows = (
            summands(precision, *points, *block[i::count], *(values[i] for values in data), *constants)
            for i in features
        )
        columns = list(zip(*rows, strict=True)) or [()] * len(family.summands)
        return [mpmath.fsum(column) for column in columns]

    def dynamics(self, k: int, x: list[Number], u: list[Number], theta: list[Number]) -> list[Number]:
        """The next state, discretised with numbers if the model is in continuous time."""

        own = len(self.model.own_states)  # what remembers inputs moves by whole steps
        kept, x = x[own:], x[:own]

        def slope(place: list[Number], shift: Number) -> list[Number]:
            return self._evaluate(self._motion, mpmath.mpf(k) + shift, place + kept, u, theta)[:own]

        later = self._evaluate(self._motion, mpmath.mpf(k), x + kept, u, theta)
        if self.model.step is None:
            return self.stopped(later)
        if self.model.is_implicit:
            parts = self.parts(k, x + kept, u, theta)
            return (parts[-1][1].stages[-1][:own] if parts else [mpmath.nan] * own) + later[own:]
        return self._discretised(slope, x) + later[own:]

    def derivative(
        self, k: int, share: float, x: list[Number], kept: list[Number], u: list[Number], theta: list[Number]
    ) -> list[Number]:
        """dx / dt of the states of a model in continuous time after a share of step k; `kept` are inputs remembered."""
        return self._evaluate(self._motion, mpmath.mpf(k) + share, x + kept, u, theta)[: len(x)]

    def parts(self, k: int, x: list[Number], u: list[Number], theta: list[Number]) -> list[tuple[Part, ExactPart]]:
        """The parts of an implicit step; empty where there is no end to them. What remembers inputs waits."""
        method, model = INTEGRATORS[self.model.method], self.model
        assert isinstance(method, Implicit) and model.step is not None

        def slope(share: Number, state: list[Number]) -> list[Number]:
            moving = self._evaluate(self._motion, mpmath.mpf(k) + share, state, u, theta)
            return moving[: len(model.own_states)] + [mpmath.mpf(0)] * model.memory

        key = (k, *(float(v) for v in (*x, *u, *theta)))
        if key not in self._divided:
            self._divided = {key: _division(method, slope, x, float(model.step), model.substeps)}
        parts, slopes = self._divided[key]
        exact = exact_parts(method, slope, slopes, x, mpmath.mpf(model.step), parts)
        return list(zip(parts, exact, strict=True))

    def _discretised(self, slope: Callable[[list[Number], Number], list[Number]], x: list[Number]) -> list[Number]:
        assert self.model.step is not None
        count = self.model.substeps
        h = mpmath.mpf(self.model.step) / count
        for number in range(count):

            def within(place: list[Number], part: Number, number: int = number) -> list[Number]:
                return slope(place, (number + mpmath.mpf(part)) / count)

            x = self.stopped(self._substep(within, x, h))
        return x

    def stopped(self, x: list[Number]) -> list[Number]:
        """The states, those beyond a bound on it."""
        found = list(x)
        for i, (low, high) in self.model.bounded_states.items():
            if low is not None and found[i] < low:
                found[i] = mpmath.mpf(low)
            if high is not None and found[i] > high:
                found[i] = mpmath.mpf(high)
        return found

    def _substep(
        self, slope: Callable[[list[Number], Number], list[Number]], x: list[Number], h: Number
    ) -> list[Number]:
        method, slopes, place = INTEGRATORS[self.model.method], list[list[Number]](), x
        assert isinstance(method, Explicit)
        for part in method.shift:
            shift = _exactly(part)
            if slopes:
                place = [a + shift * h * d for a, d in zip(x, slopes[-1], strict=True)]
            slopes.append(slope(place, shift))
        shares = [_exactly(part) for part in method.share]
        return [a + h * mpmath.fdot(shares, ks) for a, *ks in zip(x, *slopes, strict=True)]

    def observation(self, k: int, x: list[Number], theta: list[Number]) -> list[Number]:
        """The expected measurement."""
        return self._evaluate(self._measured, mpmath.mpf(k), x, [mpmath.mpf(0)] * len(self.model.inputs), theta)

    def others(self, k: int, x: list[Number], u: list[Number], theta: list[Number]) -> list[Number]:
        """The values of the other expressions."""
        return self._evaluate(self._others, mpmath.mpf(k), x, u, theta)


def _division(
    method: Implicit, slope: Callable[[Number, list[Number]], list[Number]], x: list[Number], step: float, substeps: int
) -> tuple[list[Part], list[Array]]:
    """How an implicit step is divided, with G_x of the stages of each part."""

    def value(time: float, state: Array) -> Array:
        return np.array([float(v) for v in slope(mpmath.mpf(time), [mpmath.mpf(v) for v in state])])

    def by_state(time: float, state: Array) -> Array:
        def at(place: list[Number]) -> list[Number]:
            return slope(mpmath.mpf(time), place)

        columns = [first_difference(at, [mpmath.mpf(v) for v in state], j) for j in range(len(state))]
        return np.array([[float(v) for v in column] for column in columns]).T

    parts = divided(method, value, by_state, np.array([float(v) for v in x]), step, substeps) or []
    times = [[part.time + c * part.share for c in method.nodes] for part in parts]
    slopes = [
        np.stack([by_state(t, state) for t, state in zip(own, part.stages, strict=True)])
        for own, part in zip(times, parts, strict=True)
    ]
    return parts, slopes


def _exactly(part: Fraction) -> Number:
    return mpmath.mpf(part.numerator) / part.denominator


def _in_users_units(unknown: Unknown, kappa: Number) -> Number:
    """An unknown for its entry of theta, which with bounds is the logarithm of its distance from one, or of a ratio."""
    lower, upper = unknown.transform.lower, unknown.transform.upper
    if not unknown.transform:
        return kappa
    if unknown.transform.two_sided:
        ratio = mpmath.exp(kappa)  # (k - lower) / (upper - k)
        return (mpmath.mpf(lower) + ratio * mpmath.mpf(upper)) / (1 + ratio)
    return lower + mpmath.exp(kappa) if mpmath.isfinite(lower) else upper - mpmath.exp(kappa)


def first_difference(
    function: Callable[[list[Number]], list[Number]], at: list[Number], position: int, step: Number = STEP
) -> list[Number]:
    """The derivative of a vector function by one of its arguments."""
    up, down = list(at), list(at)
    up[position] += step
    down[position] -= step
    return [(a - b) / (2 * step) for a, b in zip(function(up), function(down), strict=True)]


def one_sided_differences(
    function: Callable[[list[Number]], list[Number]], at: list[Number], position: int, step: Number = STEP
) -> list[tuple[Number, Number]]:
    """The derivatives of a vector function by one of its arguments from above and from below."""
    up, down = list(at), list(at)
    up[position] += step
    down[position] -= step
    rows = zip(function(up), function(at), function(down), strict=True)
    return [((above - here) / step, (here - below) / step) for above, here, below in rows]


def second_difference(
    function: Callable[[list[Number]], Number],
    at: list[Number],
    one: int,
    other: int,
    steps: tuple[Number, Number] = (STEP, STEP),
) -> Number:
    """The second derivative of a scalar function by two of its arguments."""
    return second_differences(lambda place: [function(place)], at, one, other, steps)[0]


def second_differences(
    function: Callable[[list[Number]], list[Number]],
    at: list[Number],
    one: int,
    other: int,
    steps: tuple[Number, Number] = (STEP, STEP),
) -> list[Number]:
    """The same of a vector function."""
    corners = []
    for a, b in ((1, 1), (-1, -1), (1, -1), (-1, 1)):
        place = list(at)
        place[one] += a * steps[0]
        place[other] += b * steps[1]
        corners.append(function(place))
    return [(p + q - r - s) / (4 * steps[0] * steps[1]) for p, q, r, s in zip(*corners, strict=True)]
