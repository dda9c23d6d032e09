"""Covariance functions: their formulas, their derivatives at coincident points, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np
import pytest
import sympy as sp

from symdual import covariances
from symdual.common.errors import ModelError
from symdual.spec.covariances import Covariance, expression, numeric
from symdual.spec.features import gaussian_process
from symdual.spec.symbols import matern

x, y = sp.symbols("x y", real=True)
u, v = sp.symbols("u v", real=True)

FORMULAS: dict[str, tuple[Covariance, Callable[[float], float]]] = {
    "squared exponential": (covariances.squared_exponential(2.0, 1.5), lambda d: 2.25 * np.exp(-(d**2) / 8)),
    "matern32": (
        covariances.matern32(2.0, 1.5),
        lambda d: 2.25 * (1 + np.sqrt(3) * d / 2) * np.exp(-np.sqrt(3) * d / 2),
    ),
    "matern52": (
        covariances.matern52(2.0),
        lambda d: (1 + np.sqrt(5) * d / 2 + 5 * d**2 / 12) * np.exp(-np.sqrt(5) * d / 2),
    ),
    "rational quadratic": (covariances.rational_quadratic(2.0, shape=1.5), lambda d: (1 + d**2 / 12) ** -1.5),
    "periodic": (covariances.periodic(2.0, period=3.0), lambda d: np.exp(-2 * np.sin(np.pi * d / 3) ** 2 / 4)),
    "sum": (
        covariances.matern32(2.0, 1.5) + covariances.periodic(2.0, period=3.0),
        lambda d: (
            2.25 * (1 + np.sqrt(3) * d / 2) * np.exp(-np.sqrt(3) * d / 2) + np.exp(-2 * np.sin(np.pi * d / 3) ** 2 / 4)
        ),
    ),
    "product": (
        covariances.squared_exponential(2.0) * covariances.rational_quadratic(2.0, shape=1.5),
        lambda d: np.exp(-(d**2) / 8) * (1 + d**2 / 12) ** -1.5,
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_values(name: str) -> None:
    covariance, formula = FORMULAS[name]
    kappa, _ = expression("g", covariance, (x,), (y,))
    function = numeric(kappa, (x,), (y,))
    for distance in (0.0, 1e-9, 0.3, 2.0, 7.0):
        got = function(np.array([[0.4]]), np.array([[0.4 + distance]]))
        np.testing.assert_allclose(got, formula(distance), rtol=1e-13)


@pytest.mark.parametrize("name", FORMULAS)
def test_derivatives_at_coincident_points_are_limits(name: str) -> None:
    """The first three derivatives that are used, against differences of 60-digit values around the point itself."""
    covariance, _ = FORMULAS[name]
    kappa, _ = expression("g", covariance, (x,), (y,))
    values = {c: sp.Rational(str(c.value)) for c in kappa.free_symbols - {x, y}}
    exact = sp.lambdify((x, y), kappa.xreplace(values), modules=[{"matern": _matern}, "mpmath"])
    for orders in ((x,), (x, y), (x, x)):
        derived = numeric(kappa.diff(*orders), (x,), (y,))(np.array([[0.7]]), np.array([[0.7]]))[0]
        with mpmath.workdps(60):
            h = mpmath.mpf(10) ** -20
            shifts = {(x,): [(1, 0, 1), (-1, 0, -1)], (x, y): [], (x, x): [(1, 0, 1), (0, 0, -2), (-1, 0, 1)]}[orders]
            if orders == (x, y):
                shifts = [(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)]
            scale = {(x,): 2 * h, (x, y): 4 * h**2, (x, x): h**2}[orders]
            at = mpmath.mpf("0.7")
            limit = mpmath.fsum(w * exact(at + a * h, at + b * h) for a, b, w in shifts) / scale
        assert derived == pytest.approx(float(limit), rel=1e-9, abs=1e-12), orders


def _matern(order: int, square: mpmath.mpf) -> mpmath.mpf:
    root = mpmath.sqrt(square)
    return {5: 3 + 3 * root + square, 3: 1 + root, 1: mpmath.mpf(1)}[int(order)] * mpmath.exp(-root)


def test_the_matern_functions_are_derivatives_of_each_other() -> None:
    s = sp.Symbol("s", positive=True)
    for order in (5, 3, 1, -1):
        at = matern(order, s).diff(s).subs(s, sp.Rational(7, 3)).evalf(30)
        h = sp.Rational(1, 10**12)
        value = [matern(order, sp.Rational(7, 3) + step).evalf(40) for step in (h, -h)]
        assert float(abs((value[0] - value[1]) / (2 * h) - at)) < 1e-18
    with pytest.raises(ModelError, match="no further derivative"):
        matern(-3, s).diff(s)


def test_a_lengthscale_for_each_argument() -> None:
    kappa, constants = expression("g", covariances.squared_exponential([1.0, 3.0]), (x, u), (y, v))
    assert [(c.name, c.value) for c in constants] == [
        ("g_amplitude", 1.0),
        ("g_lengthscale0", 1.0),
        ("g_lengthscale1", 3.0),
    ]
    got = numeric(kappa, (x, u), (y, v))(np.array([[0.0, 0.0]]), np.array([[1.0, 3.0]]))
    np.testing.assert_allclose(got, np.exp(-1.0))


BAD = {
    "not positive semidefinite: .* eigenvalue -": {"kernel": lambda a, b: sp.cos(a - b) - 1},
    "not symmetric": {"kernel": lambda a, b: a - b},
    "NaN or infinite": {"kernel": lambda a, b: 1 / (a - b)},
    "no first derivative": {"kernel": lambda a, b: sp.exp(-sp.Abs(a - b))},
    "no second derivative": {"kernel": lambda a, b: (1 + sp.Abs(a - b)) * sp.exp(-sp.Abs(a - b))},
    'contains "u", which is neither': {"kernel": lambda a, b: u * a * b},
    "must be positive, not -1": {"lengthscale": -1.0},
    "must be positive, not 0": {"amplitude": 0.0},
    "NaN or infinite$": {"lengthscale": float("nan")},
    'did you mean "matern32"': {"kernel": "mattern32"},
    "inside its kernel": {"kernel": covariances.matern32(1.0), "lengthscale": 2.0},
    "not a scalar SymPy expression": {"kernel": lambda a, b: sp.Matrix([a, b])},
    "0 features": {"memory": 0},
    "novelty": {"novelty": 1.0},
    "there is no file": {"fitted": "there-is-no-such-file.json"},
}


@pytest.mark.parametrize("message", BAD)
def test_refused(message: str) -> None:
    with pytest.raises(ModelError, match=message):
        gaussian_process("g", x, **BAD[message])  # type: ignore[arg-type]
