"""Values with many digits, and bounds that hold for what double precision really does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import mpmath
import numpy as np
import pytest
import sympy as sp

from symdual.many_digits.arithmetic import DIGITS, Arithmetic, known
from symdual.spec.symbols import logistic, matern, monomial, power

x, y = sp.symbols("x y", real=True)


@pytest.fixture(autouse=True)
def _digits() -> Iterator[None]:
    with mpmath.workdps(DIGITS), np.errstate(all="ignore"):
        yield


def value(expression: sp.Expr, *numbers: float) -> mpmath.mpf:
    return Arithmetic([x, y][: len(numbers)], [expression]).values([mpmath.mpf(n) for n in numbers])[0]


@pytest.mark.parametrize(
    ("expression", "double"),
    [
        (sp.sin(x) ** 2 + sp.cos(x) ** 2 - 1, lambda a: np.sin(a) ** 2 + np.cos(a) ** 2 - 1),
        (sp.log(1 + sp.exp(20 * x)), lambda a: np.log(1 + np.exp(20 * a))),
        ((sp.exp(x) - 1 - x) / x**2, lambda a: (np.exp(a) - 1 - a) / a**2),
        (sp.sqrt(1 + x**2) - sp.Abs(x), lambda a: np.sqrt(1 + a**2) - abs(a)),
        (sp.tan(x) * sp.atan(10 * x) ** 3, lambda a: np.tan(a) * np.arctan(10 * a) ** 3),
        (sp.Rational(1, 3) * x**5 - sp.pi * x, lambda a: (1 / 3) * a**5 - np.pi * a),
        (sp.erf(3 * x) * sp.tanh(x), lambda a: math.erf(3 * a) * np.tanh(a)),
        (sp.Max(x, 2 * x - 1) * sp.Min(x, 0), lambda a: max(a, 2 * a - 1) * min(a, 0.0)),
    ],
)
def test_the_bound_holds_and_is_not_idle(expression: sp.Expr, double: Callable[[float], float]) -> None:
    arithmetic = Arithmetic([x], [expression])
    for number in np.random.default_rng(0).normal(size=200) * np.geomspace(1e-6, 3.0, 200):
        (found,) = arithmetic.bounded([known(number)])
        assert abs(mpmath.mpf(float(double(number))) - found.value) <= found.error
        size = float(abs(found.value)) + 1.0 / min(number**2, 1.0)
        assert found.error <= 1e-13 * size  # no more than a division of rounding by the square of a small number


def test_what_has_no_real_value_is_nan_or_infinite() -> None:
    assert mpmath.isnan(value(sp.log(x), -1.0))
    assert mpmath.isnan(value(sp.sqrt(x), -1.0))
    assert mpmath.isnan(value(sp.Max(sp.log(x), -1), -1.0))
    assert value(sp.Max(sp.log(x), -1), 0.0) == -1
    assert value(1 / x, 0.0) == mpmath.inf
    assert value(sp.exp(sp.exp(sp.exp(sp.exp(x)))), 9.0) == mpmath.inf
    assert mpmath.isnan(value(sp.sin(sp.exp(sp.exp(x))), 30.0))
    assert not mpmath.isfinite(value(((x**1000000) ** 1000000) ** 1000000, 3.0))


def test_an_overflow_on_the_way_makes_the_bound_infinite() -> None:
    (found,) = Arithmetic([x], [sp.log(1 + sp.exp(x))]).bounded([known(1000.0)])
    assert float(found.value) == 1000.0
    assert found.error == math.inf


def test_a_case_that_does_not_hold_is_not_looked_at() -> None:
    cases = sp.Piecewise((sp.sqrt(x), x > 0), (x**2, sp.Or(x < -1, sp.Eq(y, 0))), (7, True))
    assert value(cases, 4.0, 1.0) == 2
    assert value(cases, -3.0, 1.0) == 9
    assert value(cases, -0.5, 0.0) == 0.25
    assert value(cases, -0.5, 1.0) == 7
    (found,) = Arithmetic([x, y], [cases]).bounded([known(-3.0), known(1.0)])
    assert found.error < 1e-13


def test_a_condition_that_rounding_may_turn_allows_the_other_case() -> None:
    turning = sp.Piecewise((1, sp.sin(x) ** 2 + sp.cos(x) ** 2 > 1), (5, True))
    (found,) = Arithmetic([x], [turning]).bounded([known(0.3)])
    assert found.error >= 4


def test_functions_of_this_package() -> None:
    assert abs(value(logistic(x), 2.0) - 1 / (1 + mpmath.exp(-2))) < mpmath.mpf(10) ** -100
    assert value(matern(3, x), 0.0) == 1
    assert value(monomial(x, y), 3.0, 2.0) == 9
    for n, m in ((0, 0), (1, 0), (2, 0), (0, 1), (0, 2), (1, 1)):
        plain = (x**y).diff(x, n).diff(y, m)
        difference = value(power(x, y, n, m), 1.7, 2.3) - value(plain, 1.7, 2.3)
        assert abs(difference) < mpmath.mpf(10) ** -95
        assert value(power(x, y, n, m), 0.0, 2.3) == 0


def test_an_unknown_function_is_a_fault_of_the_program() -> None:
    with pytest.raises(TypeError, match="gamma"):
        Arithmetic([x], [sp.gamma(x)])
