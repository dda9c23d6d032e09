"""The symbols that carry more than a name: unknown parameters, constants, sums of features, special functions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import sympy as sp

from symdual.common.arrays import Array
from symdual.common.errors import ModelError
from symdual.common.numbers import as_numbers
from symdual.common.transforms import IDENTITY, Transform, between
from symdual.spec.names import check_name

#: numbers every declaration in a program, so that a model can keep the order of its file
_declarations = count()


Meaning = tuple[str, float, float, Transform]


class Unknown(sp.Symbol):
    """A scalar parameter with a prior mean and variance that the controller has to learn; normal without bounds.

    With bounds, what is normal is its logarithm or logit (`transform`), and that is the entry of theta.

    `declared` grows from one declaration to the next: it gives unknowns their order in theta. It is part of what a
    symbol is, because SymPy remembers expressions: that of an equal symbol, declared earlier for another model, would
    come back in the place of a new one, and with it that model's order. `one_for_each` makes one of several.
    """

    mean: float
    variance: float
    declared: int
    transform: Transform

    def __new__(
        cls, name: str, mean: float, variance: float, declared: int, transform: Transform = IDENTITY
    ) -> Unknown:
        """Make the symbol; use `unknown` for the checks."""
        symbol = sp.Symbol.__xnew__(cls, name, real=True)
        symbol.mean, symbol.variance, symbol.declared, symbol.transform = mean, variance, declared, transform
        return symbol  # type: ignore[no-any-return]

    def __getnewargs_ex__(self) -> tuple[tuple[str, float, float, int, Transform], dict[str, Any]]:
        return (self.name, self.mean, self.variance, self.declared, self.transform), {}

    @property
    def meaning(self) -> Meaning:
        """Name, prior and bounds: unknowns that agree in them are the same wherever they meet in a model."""
        return (self.name, self.mean, self.variance, self.transform)

    def _hashable_content(self) -> tuple[Any, ...]:
        return (*self.meaning, self.declared)


class Constant(sp.Symbol):
    """A known number that is data: changing its value needs no new code."""

    value: float

    def __new__(cls, name: str, value: float) -> Constant:
        """Make the symbol; use `constant` for the checks."""
        symbol = sp.Symbol.__xnew__(cls, name, real=True)
        symbol.value = value
        return symbol  # type: ignore[no-any-return]

    def __getnewargs_ex__(self) -> tuple[tuple[str, float], dict[str, Any]]:
        return (self.name, self.value), {}

    def _hashable_content(self) -> tuple[Any, ...]:
        return (self.name, self.value)


def unknown(
    name: str,
    mean: float = 0.0,
    variance: float = 1.0,
    *,
    positive: bool = False,
    lower: float | None = None,
    upper: float | None = None,
) -> Unknown:
    """Declare a scalar unknown parameter with a prior: Gaussian, or between bounds log-normal or logistic-normal.

    `positive=True` is `lower=0`. With one bound the prior is log-normal, with two logistic-normal, and has the given
    mean and variance (docs/beliefs.md). Only scalars have bounds, not the weights of families.

    >>> b = symdual.unknown("b", mean=1.0, variance=10.0)
    >>> b.mean, b.variance
    (1.0, 10.0)
    >>> rate = symdual.unknown("rate", mean=7e10, variance=1.4e10**2, positive=True)
    >>> friction = symdual.unknown("friction", mean=0.3, variance=0.01, lower=0.0, upper=1.0)
    """
    what = f'the unknown "{name}"'
    check_name(name, what)
    prior = as_numbers([mean, variance], f"the prior of {what}")
    if variance < 0:
        raise ModelError(f"the prior variance of {what} is negative ({variance:g})")
    transform = _transform(positive, lower, upper, what)
    transform.matched(float(prior[0]), float(prior[1]), what)
    return Unknown(name, float(prior[0]), float(prior[1]), next(_declarations), transform)


def _transform(positive: bool, lower: float | None, upper: float | None, what: str) -> Transform:
    if positive and lower is not None:
        raise ModelError(f"{what} has both positive=True, which is lower=0, and lower={lower!r}")
    try:
        one = between((0.0 if positive else lower, upper))
        low, high = float(one.lower), float(one.upper)
    except (TypeError, ValueError):
        raise ModelError(f"the bounds of {what} must be numbers, but are {lower!r} and {upper!r}") from None
    if not low < high or low == math.inf or high == -math.inf:
        raise ModelError(f"the bounds of {what} leave no room: {low:g} to {high:g}")
    return Transform(low, high)


def one_for_each(unknowns: Iterable[Unknown]) -> dict[Unknown, Unknown]:
    """Which unknown stands for each that was declared more than once, with the same name and prior: the first of them.

    >>> first, again = symdual.unknown("b"), symdual.unknown("b")
    >>> first == again, symdual.Model([x := sympy.Symbol("x")], [sympy.Symbol("u")], [again * x + first]).unknowns
    (False, (b,))
    """
    ordered = sorted(unknowns, key=lambda symbol: symbol.declared)
    first: dict[Meaning, Unknown] = {}
    return {symbol: own for symbol in ordered if (own := first.setdefault(symbol.meaning, symbol)) != symbol}


def constant(name: str, value: float) -> Constant:
    """Declare a known number that can change without new code.

    >>> symdual.constant("mass", 2.5).value
    2.5
    """
    what = f'the constant "{name}"'
    check_name(name, what)
    return Constant(name, float(as_numbers(value, what)))


@dataclass(frozen=True, eq=False)
class WeightArray:
    """One unknown number per feature, with prior N(mean, covariance); `covariance` is a vector if diagonal."""

    symbol: sp.Symbol
    mean: Array
    covariance: Array


@dataclass(frozen=True, eq=False)
class DataArray:
    """One known number per feature, such as a frequency or a centre."""

    symbol: sp.Symbol
    values: Array


@dataclass(frozen=True, eq=False)
class Process:
    """What makes a family the Gaussian process g ~ GP(0, c kappa), known through its values at remembered points s_i.

    The belief on g is kept relative to its prior, in numbers alpha, B and T with one row for each remembered point:

        E g(a) = kappa(a, s) alpha,    cov(g(a), g(b)) = c kappa(a, b) - kappa(a, s) B kappa(s, b),
        cov(x, g(a)) = T kappa(s, a).

    So alpha are the weights of features kappa(., s_i), and their covariance is -B beside that of the prior, which is
    c K^-1 and never formed: its product with the features at a remembered point is a unit vector.

    `kernel` is kappa(arguments of the family, places); `known` is one where an index is in use and zero elsewhere.
    A value of which those before it leave open no more than the share `novelty` of its prior variance takes no room.
    """

    kernel: sp.Expr
    places: tuple[sp.Symbol, ...]
    known: sp.Symbol
    novelty: float


@dataclass(frozen=True, eq=False)
class Family:
    """A sum over an index, g = sum_i s(arguments; weights_i, data_i), kept as its summand for a generic i.

    `summands` has one entry per output; all of them share the arguments, the data and the index. `declared` is that of
    an `Unknown`.
    """

    name: str
    kind: str
    count: int
    arguments: tuple[sp.Symbol, ...]
    summands: tuple[sp.Expr, ...]
    weights: tuple[WeightArray, ...]
    data: tuple[DataArray, ...]
    constants: tuple[Constant, ...]
    process: Process | None = None
    declared: int = field(default_factory=lambda: next(_declarations))

    @property
    def size(self) -> int:
        """The number of unknowns that the family brings."""
        return self.count * len(self.weights)


class FamilyToken(sp.Symbol):
    """Carries a `Family` as an argument of a SymPy expression."""

    family: Family

    def __new__(cls, family: Family) -> FamilyToken:
        """Wrap a family."""
        symbol = sp.Symbol.__xnew__(cls, family.name)
        symbol.family = family
        return symbol  # type: ignore[no-any-return]

    def __getnewargs_ex__(self) -> tuple[tuple[Family], dict[str, Any]]:
        return (self.family,), {}

    def _hashable_content(self) -> tuple[Any, ...]:
        return (self.name, id(self.family))


def _strictly(argument: Any) -> sp.Expr:
    return sp.sympify(argument, strict=True)


class FeatureSum(sp.Expr):
    """The value of one output of a family at given arguments, an ordinary scalar inside any SymPy expression."""

    is_commutative = True

    def __new__(cls, token: FamilyToken, output: Any, *arguments: Any) -> FeatureSum:
        """Make the expression from its SymPy arguments; use `of` elsewhere."""
        return super().__new__(cls, token, sp.Integer(output), *map(_strictly, arguments))  # type: ignore[no-any-return]

    @classmethod
    def of(cls, family: Family, output: int, arguments: tuple[sp.Expr, ...]) -> FeatureSum:
        """Evaluate output number `output` of `family` at `arguments`."""
        return cls(FamilyToken(family), output, *arguments)

    @property
    def family(self) -> Family:
        """The family that is evaluated."""
        return self.args[0].family  # type: ignore[no-any-return]

    @property
    def output(self) -> int:
        """Which output of the family this is."""
        return int(self.args[1])

    @property
    def points(self) -> tuple[sp.Expr, ...]:
        """The arguments at which the family is evaluated."""
        return tuple(self.args[2:])

    @property
    def free_symbols(self) -> set[sp.Symbol]:
        """The symbols of the arguments (the family itself is not one that a user wrote)."""
        return set().union(*(point.free_symbols for point in self.points))

    def _eval_derivative(self, symbol: sp.Symbol) -> sp.Expr:
        raise ModelError(
            f'the features "{self.family.name}" cannot be differentiated in a model file: symdual does that itself'
        )

    def _sympystr(self, printer: Any) -> str:
        return f"{self.family.name}({', '.join(printer._print(point) for point in self.points)})"


class logistic(sp.Function):
    """The logistic function 1 / (1 + exp(-a)), differentiated as logistic(a) logistic(-a): exact in both tails.

    >>> x = sympy.Symbol("x")
    >>> symdual.logistic(x).diff(x)
    logistic(-x)*logistic(x)
    """

    nargs = 1

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        """Return s'(a) = s(a) s(-a)."""
        return logistic(self.args[0]) * logistic(-self.args[0])

    def _eval_rewrite_as_exp(self, argument: sp.Expr, **hints: Any) -> sp.Expr:
        return 1 / (1 + sp.exp(-argument))

    def _eval_is_real(self) -> bool | None:
        return self.args[0].is_real  # type: ignore[no-any-return]

    def _eval_evalf(self, precision: int) -> sp.Expr:
        return self.rewrite(sp.exp)._eval_evalf(precision)


class tanh(sp.Function):
    """The hyperbolic tangent, differentiated as 4 s(2a) s(-2a): `1 - tanh(a)**2` would lose all digits in the tails.

    Users write `sympy.tanh`; the derivation puts this in its place.
    """

    nargs = 1

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        """Return the derivative by the logistic function s."""
        return 4 * logistic(2 * self.args[0]) * logistic(-2 * self.args[0])

    def _eval_is_real(self) -> bool | None:
        return self.args[0].is_real  # type: ignore[no-any-return]


class matern(sp.Function):
    """G_n(s), the Matern functions of a squared distance s for half-integer smoothness n/2, n = 5, 3, 1 (and below).

        G_5 = (3 + 3r + s) exp(-r),  G_3 = (1 + r) exp(-r),  G_1 = exp(-r),  G_-1 = exp(-r)/r,   r = sqrt(s)

    satisfy dG_n/ds = -1/2 G_{n-2}. As functions of s they are differentiated without the 0/0 of a distance: where G_-1
    and G_-3 have a pole, at s = 0, chain rule factors vanish faster, and the value there is taken as zero.

    >>> float(symdual.features.matern(3, 0.0))
    1.0
    """

    nargs = 2

    def fdiff(self, argindex: int = 2) -> sp.Expr:
        """Return d/ds G_n(s) = -1/2 G_{n-2}(s)."""
        order, square = self.args
        if argindex != 2 or order < -1:
            raise ModelError(f"the Matern function number {order} has no further derivative")
        return -matern(order - 2, square) / 2

    @classmethod
    def eval(cls, order: sp.Expr, square: sp.Expr) -> sp.Expr | None:
        """Evaluate at coincident points."""
        if square.is_zero:
            return sp.Integer({5: 3, 3: 1, 1: 1}.get(int(order), 0))
        return None

    def _eval_is_real(self) -> bool | None:
        return self.args[1].is_real  # type: ignore[no-any-return]

    def _eval_evalf(self, precision: int) -> sp.Expr:
        order, square = self.args
        return matern_formula(int(order), square, sp.sqrt(square), sp.exp)._eval_evalf(precision)


def matern_formula(order: int, square: Any, root: Any, exp: Any) -> Any:
    """G_n away from s = 0, for numbers of any kind."""
    factors = {5: 3 + 3 * root + square, 3: 1 + root, 1: 1, -1: 1 / root, -3: (1 + 1 / root) / square}
    return factors[order] * exp(-root)


class power(sp.Function):
    """The derivative d^n/dx^n d^m/dy^m of x**y, for a base x >= 0 that may be zero and an exponent y that is no number.

        n, m = 1, 0: y x**(y-1)        2, 0: y (y-1) x**(y-2)        1, 1: x**(y-1) (1 + y log(x))
               0, 1: x**y log(x)       0, 2: x**y log(x)**2

    SymPy writes these with x**y/x and log(x), which are 0/0 and 0 times infinity at x = 0. There each of them is taken
    as its limit: zero when the exponent that remains is positive or the factor before the power vanishes.
    """

    nargs = 4

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        """Return the next derivative by the base or by the exponent."""
        base, exponent, by_base, by_exponent = self.args
        if argindex not in (1, 2) or by_base + by_exponent > 1:
            raise ModelError("a power has no further derivative here")
        return power(base, exponent, by_base + (argindex == 1), by_exponent + (argindex == 2))

    @classmethod
    def eval(cls, base: sp.Expr, exponent: sp.Expr, by_base: sp.Expr, by_exponent: sp.Expr) -> sp.Expr | None:
        """Evaluate a plain power whose exponent has become a number."""
        return base**exponent if exponent.is_number and by_base == by_exponent == 0 else None

    @property
    def formula(self) -> sp.Expr:
        """The derivative where x > 0."""
        x, y, by_base, by_exponent = self.args
        return power_formula(int(by_base), int(by_exponent), x, y, sp.log)

    def _eval_is_real(self) -> bool | None:
        return True if all(argument.is_real for argument in self.args[:2]) else None


def power_formula(by_base: int, by_exponent: int, x: Any, y: Any, log: Any) -> Any:
    """The derivatives of x**y where x > 0, for numbers of any kind."""
    if by_exponent == 0:
        return (1, y, y * (y - 1))[by_base] * x ** (y - by_base)
    return x ** (y - 1) * (1 + y * log(x)) if by_base else x**y * log(x) ** by_exponent


class monomial(sp.Function):
    """x**p for a whole number p >= 0 that is data; its derivative p x**max(p-1, 0) is right at x = 0 too."""

    nargs = 2

    @classmethod
    def eval(cls, base: sp.Expr, power: sp.Expr) -> sp.Expr | None:
        """Evaluate when the power is a number."""
        return base**power if power.is_Integer else None

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        """Return d/dx x**p."""
        base, power = self.args
        if argindex != 1:
            raise ModelError("the power of a monomial is data and cannot be differentiated")
        return power * monomial(base, sp.Max(power - 1, 0))

    def _eval_is_real(self) -> bool | None:
        return self.args[0].is_real  # type: ignore[no-any-return]

    def _eval_evalf(self, precision: int) -> sp.Expr:
        base, power = (argument.evalf(precision) for argument in self.args)
        return base ** sp.Integer(round(float(power))) if power.is_number else monomial(base, power)
