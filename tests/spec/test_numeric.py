"""Expressions as functions of arrays: the functions of this package, everywhere and in their tails."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import sympy as sp

from symdual.spec.numeric import as_numpy
from symdual.spec.symbols import logistic, matern, monomial, tanh

a, b = sp.symbols("a b", real=True)
CASES = {
    "logistic": (logistic(a), lambda x: 1 / (1 + mpmath.exp(-x))),
    "tanh": (tanh(a), mpmath.tanh),
    "matern 5": (matern(5, a**2), lambda x: (3 + 3 * abs(x) + x**2) * mpmath.exp(-abs(x))),
    "matern 1": (matern(1, a**2), lambda x: mpmath.exp(-abs(x))),
    "monomial": (monomial(a, sp.Integer(3)), lambda x: x**3),
    "erf": (sp.erf(a), mpmath.erf),
    "erfc": (sp.erfc(a), mpmath.erfc),
    "kink": (sp.Max(a, 0.5) + sp.Abs(a), lambda x: max(x, mpmath.mpf("0.5")) + abs(x)),
    "cases": (sp.Piecewise((a, a > 1), (2, True)), lambda x: x if x > 1 else mpmath.mpf(2)),
}


@pytest.mark.parametrize("case", CASES)
def test_values(case: str) -> None:
    expression, exact = CASES[case]
    points = np.array([[-30.0, -1.25, 0.0], [0.5, 2.0, 20.0]])
    (found,) = as_numpy([a], [expression])(points)
    expected = [[float(exact(mpmath.mpf(x))) for x in row] for row in points]
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=0)


def test_arguments_are_broadcast_and_may_have_the_name_of_a_function() -> None:
    sine = sp.Symbol("sin", real=True)
    product, number = as_numpy([sine, b], [sp.sin(sine) * b, sp.Integer(3)])(
        np.array([[0.5], [1.0]]), np.array([1.0, 2.0])
    )
    np.testing.assert_allclose(product, np.sin([[0.5], [1.0]]) * [1.0, 2.0])
    assert number == 3


def test_powers_that_are_data_and_poles() -> None:
    (values,) = as_numpy([a, b], [monomial(a, b)])(0.0, np.array([0.0, 1.0, 2.0]))
    np.testing.assert_array_equal(values, [1.0, 0.0, 0.0])
    (pole,) = as_numpy([a], [matern(-1, a)])(np.array([0.0, 4.0]))
    np.testing.assert_allclose(pole, [0.0, np.exp(-2.0) / 2])
    (infinite,) = as_numpy([a], [1 / a])(np.zeros(1))  # without a warning
    assert np.isinf(infinite[0])
