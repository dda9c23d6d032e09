"""SymPy expressions evaluated with 50 digits and more, and the error that double precision may make in them.

An expression becomes a list of operations once, and is run at many points. Symbols are places in a list and functions
are looked up by their class, so a name is never more than a name: a state may be called `pi`, `sin` or `exit`.

Every operation has a value everywhere: what is not a finite real number is NaN or an infinity, and cases that do not
hold are not looked at. The error is a running bound in the sense of Wilkinson: with eps the unit of double precision,

    |d(a + b)| <= |da| + |db| + eps (|a| + |b|),      |d f(a)| <= |f'(a)| |da| + 4 eps |f(a)|,      and so on,

so it knows what cancellation, saturation and steep slopes cost, and an intermediate result too large for double
precision makes it infinite. It does not depend on the order of terms and factors, which the compiler may choose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import mpmath
import sympy as sp
from sympy.logic.boolalg import BooleanFunction

from symdual.spec.symbols import logistic, matern, matern_formula, monomial, power, power_formula, tanh

DIGITS = 110  #: working precision
EPSILON = 2.0**-52
OVERFLOW = mpmath.mpf(2) ** 1024  #: from here on double precision has infinity
LARGEST = 2**60  #: numbers of more bits before the point are infinity, so that no power of powers fills the memory
LONGEST = 4096  #: of arguments with more bits before the point no function is taken but sums, products and logarithms
TINY = 2.0**-1073
TINY_SHARE = mpmath.mpf(10) ** -30

Number = Any  # mpmath.mpf
NAN, INFINITY = mpmath.mpf("nan"), mpmath.mpf("inf")


def _bits(number: Number) -> int:
    """The bits before the point."""
    _, mantissa, exponent, bits = number._mpf_
    return int(exponent + bits) if mantissa else 0


def _real(cls: type, function: Callable[..., Any]) -> Callable[..., Number]:
    """Make a function total: NaN where it has no real value, infinity where it is beyond all use."""
    longest = LARGEST if cls in _ANY_LENGTH else LONGEST

    def total(*arguments: Number) -> Number:
        if any(_bits(a) > longest for a in arguments):
            return NAN
        try:
            value = mpmath.mpmathify(function(*arguments))
        except (ZeroDivisionError, ValueError, OverflowError):
            return NAN
        if not isinstance(value, mpmath.mpf):
            return NAN
        if _bits(value) > LARGEST:
            return INFINITY if value > 0 else -INFINITY
        return value

    return total


def _add(*terms: Number) -> Number:
    return mpmath.fsum(terms)


def _multiply(*factors: Number) -> Number:
    return reduce(lambda a, b: a * b, factors)


def _raise(base: Number, exponent: Number) -> Number:
    if base == 0 and exponent < 0:
        return INFINITY  # as in double precision; the sign of zero is lost anyway
    if mpmath.isint(exponent) and abs(exponent) < 2**20:
        return base ** int(exponent)
    return base**exponent


def _exp(exponent: Number) -> Number:
    if abs(exponent) < LARGEST:
        return mpmath.exp(exponent)
    return INFINITY if exponent > 0 else mpmath.mpf(0)


def _log(argument: Number) -> Number:
    return -INFINITY if argument == 0 else mpmath.log(argument)


def _logistic(level: Number) -> Number:
    return 1 / (1 + _exp(-level))


def _matern(order: Number, square: Number) -> Number:
    """G_n(s), by its limit or by zero at a pole where s = 0."""
    if square <= 0:
        return mpmath.mpf({5: 3, 3: 1, 1: 1}.get(int(order), 0))
    return matern_formula(int(order), square, mpmath.sqrt(square), mpmath.exp)


def _power(base: Number, exponent: Number, by_base: Number, by_exponent: Number) -> Number:
    """A derivative of base**exponent, by its limit where base = 0."""
    n, m = int(by_base), int(by_exponent)
    if n + m == 0:
        return _raise(base, exponent)
    vanishes = exponent > n if m else exponent in range(n)
    if (base == 0 or not m) and vanishes:
        return mpmath.mpf(0)
    if base == 0:
        return _raise(base, exponent - n) * (1 if m else (exponent if n == 1 else exponent * (exponent - 1)))
    return power_formula(n, m, base, exponent, mpmath.log)


def _absolute(argument: Number) -> Number:
    return abs(argument)


def _sign(argument: Number) -> Number:
    return mpmath.sign(argument)


def _largest(*arguments: Number) -> Number:
    return NAN if any(map(mpmath.isnan, arguments)) else max(arguments)


def _smallest(*arguments: Number) -> Number:
    return NAN if any(map(mpmath.isnan, arguments)) else min(arguments)


_ANY_LENGTH = (sp.Add, sp.Mul, sp.Abs, sp.sign, sp.Max, sp.Min, sp.log, sp.exp, logistic)
_FUNCTIONS: dict[type, Callable[..., Number]] = {
    cls: _real(cls, function)
    for cls, function in {
        **{
            sp.Add: _add,
            sp.Mul: _multiply,
            sp.Pow: _raise,
            sp.exp: _exp,
            sp.log: _log,
            sp.Abs: _absolute,
            sp.sign: _sign,
        },
        **{getattr(sp, name): getattr(mpmath, name) for name in "sin cos tan asin acos atan atan2 erf erfc".split()},
        **{getattr(sp, name): getattr(mpmath, name) for name in "sinh cosh tanh asinh acosh atanh".split()},
        **{sp.Max: _largest, sp.Min: _smallest, tanh: mpmath.tanh, logistic: _logistic},
        **{monomial: lambda base, exponent: base ** int(exponent), matern: _matern, power: _power},
    }.items()
}
_COMPARISONS: dict[type, Callable[[Number, Number], bool]] = {
    sp.Gt: lambda a, b: a > b,
    sp.Ge: lambda a, b: a >= b,
    sp.Lt: lambda a, b: a < b,
    sp.Le: lambda a, b: a <= b,
    sp.Eq: lambda a, b: a == b,
    sp.Ne: lambda a, b: a != b,
}


class Bounded(NamedTuple):
    """A number, and a bound on the error that double precision makes in it."""

    value: Number
    error: float


class Verdict(NamedTuple):
    """The value of a condition (None where its numbers are NaN), and whether rounding may turn it."""

    holds: bool | None
    open: bool


_Operation = tuple[sp.Basic, tuple[int, ...]]


class Arithmetic:
    """Expressions in given symbols, ready to be evaluated at many points."""

    def __init__(self, symbols: Sequence[sp.Symbol], expressions: Sequence[sp.Expr]) -> None:
        self._places = {symbol: place for place, symbol in enumerate(symbols)}
        self._operations: list[_Operation] = []
        self._constants: dict[int, Bounded | Verdict] = {}
        self._first = len(symbols)
        self._results = [self._compile(e) for e in expressions]

    def _compile(self, part: sp.Basic) -> int:
        """The place of an expression's value; parts that occur twice have one place."""
        if part in self._places:
            return self._places[part]
        constant = _constant(part)
        arguments = () if constant is not None else tuple(self._compile(a) for a in part.args)
        place = self._first + len(self._operations)
        if constant is not None:
            self._constants[place] = constant
        elif not isinstance(part, (sp.Piecewise, sp.functions.elementary.piecewise.ExprCondPair)) and not (
            part.func in _FUNCTIONS or part.func in _COMPARISONS or isinstance(part, BooleanFunction)
        ):
            raise TypeError(f"{part.func} cannot be evaluated")
        self._operations.append((part, arguments))
        self._places[part] = place
        return place

    def values(self, numbers: Sequence[Number]) -> list[Number]:
        """The values of all expressions at the given numbers."""
        found: list[Any] = list(numbers)
        for place, (part, arguments) in enumerate(self._operations, self._first):
            found.append(self._value(place, part, [found[a] for a in arguments]))
        return [found[place] for place in self._results]

    def bounded(self, numbers: Sequence[Bounded]) -> list[Bounded]:
        """The values of all expressions with bounds on their errors in double precision."""
        found: list[Any] = list(numbers)
        for place, (part, arguments) in enumerate(self._operations, self._first):
            found.append(self._bounded(place, part, [found[a] for a in arguments]))
        return [found[place] for place in self._results]

    def _value(self, place: int, part: sp.Basic, arguments: list[Any]) -> Any:
        if place in self._constants:
            return self._constants[place][0]
        if function := _FUNCTIONS.get(part.func):
            return function(*arguments)
        if compare := _COMPARISONS.get(part.func):
            return None if any(map(mpmath.isnan, arguments)) else compare(*arguments)
        if isinstance(part, sp.functions.elementary.piecewise.ExprCondPair):
            return arguments
        if isinstance(part, sp.Piecewise):
            return next((NAN if holds is None else value for value, holds in arguments if holds is not False), NAN)
        return _connected(part, arguments)

    def _bounded(self, place: int, part: sp.Basic, arguments: list[Any]) -> Any:
        if place in self._constants:
            return self._constants[place]
        if function := _FUNCTIONS.get(part.func):
            return _with_error(part.func, function, arguments)
        if compare := _COMPARISONS.get(part.func):
            left, right = arguments
            if mpmath.isnan(left.value) or mpmath.isnan(right.value):
                return Verdict(None, False)
            margin = left.error + right.error
            return Verdict(compare(left.value, right.value), margin > 0 and abs(left.value - right.value) <= margin)
        if isinstance(part, sp.functions.elementary.piecewise.ExprCondPair):
            return arguments
        if isinstance(part, sp.Piecewise):
            return _chosen(arguments)
        return Verdict(_connected(part, [a.holds for a in arguments]), any(a.open for a in arguments))


def _constant(part: sp.Basic) -> Bounded | Verdict | None:
    """A number, with the error of rounding it to double precision; or a condition that always or never holds."""
    if part in (sp.true, sp.false):
        return Verdict(part == sp.true, False)
    if isinstance(part, sp.Float):
        exact = mpmath.mpf(part._mpf_)
        return Bounded(mpmath.mpf(float(part)), 0.0) if abs(exact) < OVERFLOW else Bounded(exact, math.inf)
    if isinstance(part, sp.Rational):
        value = mpmath.mpf(int(part.p)) / int(part.q)
        if abs(value) >= OVERFLOW:
            return Bounded(value, math.inf)
        off = abs(value - float(value))
        # a bound is rounded up: what is as far from a number as its double is must not count as farther
        return Bounded(value, math.nextafter(float(off), math.inf) if off else 0.0)
    if isinstance(part, sp.NumberSymbol):
        value = mpmath.mpf(part._as_mpf_val(mpmath.mp.prec))
        return Bounded(value, float(value) * EPSILON)
    return None


def _connected(part: sp.Basic, values: list[bool | None]) -> bool | None:
    if any(value is None for value in values):
        return None
    if isinstance(part, sp.And):
        return all(values)
    if isinstance(part, sp.Or):
        return any(values)
    if isinstance(part, sp.Not):
        return not values[0]
    raise TypeError(f"{part.func} cannot be evaluated")


def _chosen(cases: list[tuple[Bounded, Verdict]]) -> Bounded:
    """The case that holds; where rounding may turn a condition, the others count as its error."""
    for number, (case, verdict) in enumerate(cases):
        if verdict.holds is None:
            return Bounded(NAN, math.inf)
        if verdict.holds:
            error = case.error
            if any(v.open for _, v in cases[: number + 1]):
                error = max(_size(other.value - case.value) + other.error for other, _ in cases)
            return Bounded(case.value, error)
    return Bounded(NAN, math.inf)


def plus(terms: Sequence[Bounded]) -> Bounded:
    """The sum of numbers with errors."""
    return _with_error(sp.Add, _FUNCTIONS[sp.Add], list(terms)) if terms else Bounded(mpmath.mpf(0), 0.0)


def times(*factors: Bounded) -> Bounded:
    """The product of numbers with errors."""
    return _with_error(sp.Mul, _FUNCTIONS[sp.Mul], list(factors))


def known(number: float) -> Bounded:
    """A number that double precision holds exactly."""
    return Bounded(mpmath.mpf(number), 0.0)


def _size(number: Number) -> float:
    """The size of a number as a double, infinite where it has none."""
    if not mpmath.isfinite(number):
        return math.inf
    return float(abs(number)) if abs(number) < OVERFLOW else math.inf


def _with_error(cls: type, function: Callable[..., Number], arguments: list[Bounded]) -> Bounded:
    values = [a.value for a in arguments]
    value = function(*values)
    size = _size(value)
    if size == math.inf:
        return Bounded(value, math.inf)
    if cls is sp.Add:
        sizes = [_size(v) for v in values]
        return Bounded(value, sum(a.error for a in arguments) + len(values) * EPSILON * sum(sizes))
    if cls is sp.Mul:
        return Bounded(value, _error_of_product([_size(v) for v in values], [a.error for a in arguments], size))
    if cls in (sp.Max, sp.Min):
        rivals = [a for a in arguments if mpmath.isfinite(a.value) and _size(a.value - value) <= a.error]
        return Bounded(value, max((a.error for a in rivals), default=0.0))
    if cls is sp.sign:
        return Bounded(value, 2.0 if abs(values[0]) <= arguments[0].error else 0.0)
    error = 4 * EPSILON * size + TINY
    if cls is sp.Pow and mpmath.isint(values[1]):
        error += abs(float(values[1])) * EPSILON * size
    moved = arguments[:1] if cls is monomial else arguments  # the power of a monomial is a whole number
    for position, argument in enumerate(moved):
        if argument.error:
            error += _slope(function, values, value, position, argument.error) * argument.error
    return Bounded(value, error)


def _error_of_product(sizes: list[float], errors: list[float], size: float) -> float:
    """sum_i |da_i| prod_{j != i} |a_j|, and the rounding of each product."""
    inherited = 0.0
    for position, error in enumerate(errors):
        if error:
            inherited += error * math.prod(sizes[:position] + sizes[position + 1 :])
    return (math.inf if math.isnan(inherited) else inherited) + len(sizes) * EPSILON * size + TINY


def _slope(function: Callable[..., Number], values: list[Number], here: Number, position: int, error: float) -> float:
    """The largest change of a function relative to that of an argument, for a tiny change and for one of the error."""
    if error == math.inf:
        return math.inf
    slopes = []
    tiny = TINY_SHARE * max(abs(values[position]), TINY_SHARE)
    for change in (tiny, -tiny, mpmath.mpf(error)):
        moved = list(values)
        moved[position] += change
        slopes.append(_size((function(*moved) - here) / change))
    return max((slope for slope in slopes if slope < math.inf), default=math.inf)
