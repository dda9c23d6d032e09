"""The printer's acceptance list: every operator and function is compiled by numba and compared with 50 digits."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import numpy as np
import pytest
import sympy as sp

from symdual.common.errors import ModelError
from symdual.emit.printer import print_expression
from symdual.emit.render import environment
from symdual.spec.expressions import ACCEPTED
from symdual.spec.symbols import FeatureSum, logistic, matern, monomial

a, b, p = sp.symbols("a b p", real=True)
POINTS = [(0.3, 0.7), (-0.6, 0.2), (0.9, -0.4), (-0.2, -0.8), (0.5, 0.5), (0.0, 0.4), (0.0, 0.0), (-1.5, 2.5)]

EXPRESSIONS: list[sp.Expr] = [
    # numbers
    *(sp.Integer(3), sp.Rational(-2, 3), sp.Float("0.1"), sp.pi, sp.E, sp.GoldenRatio, sp.EulerGamma, sp.Catalan),
    *(sp.Float("1e-320") * a, sp.Integer(10) ** 30 * a, sp.Rational(10**30, 3) * a),
    # sums, products, quotients
    *(a + b, a - b, -a, -a * b, a - (b - 1), -(a + b) / 3, a * (b + 1), 2 * a / (3 * (b + 5)), a / (b + 5) / (a + 7)),
    *(-a / (b + 3) ** 2, 1 / (a + 4), 1 / (a + 4) ** 3, -1 / (a + 4), (a + b) / (a**2 + 1), 1 / ((a + 4) * (b + 5))),
    # powers
    *(a**2, a**3, (-a) ** 3, -(a**2), (a + b) ** 2, (a * b) ** 2, a**16, a**17, (a + 4) ** -17, a**0),
    *(sp.sqrt(a + 4), 1 / sp.sqrt(a + 4), (a + 4) ** sp.Rational(1, 3), (a + 4) ** sp.Rational(-5, 2)),
    *((a + 4) ** b, (1 / (a + 4)) ** b, 2**a, 2 ** (-a), ((a + 4) ** 2) ** b, (a + 4) ** (b**2), sp.sqrt(a**2)),
    # functions
    *(sp.exp(a), sp.exp(-a * b), sp.log(a + 4), sp.log(2) * a, sp.sin(a), sp.cos(a - b), sp.tan(a / 2)),
    *(sp.asin(a / 2), sp.acos(b / 4), sp.atan(a), sp.atan2(a, b + 4), sp.atan2(a + 4, -b - 5)),
    *(sp.sinh(a), sp.cosh(a), sp.tanh(a), sp.asinh(a), sp.acosh(a + 4), sp.atanh(a / 3), sp.erf(a), sp.erfc(a)),
    *(logistic(a), logistic(-3 * a * b), logistic(40 * a), logistic(-40 * a)),
    *(matern(5, a**2), matern(3, 3 * (a - b) ** 2), matern(1, a**2), matern(-1, a**2), matern(-3, 5 * a**2)),
    *(monomial(a, p), monomial(a + b, sp.Max(p - 1, 0)), p * monomial(a, sp.Max(p - 1, 0))),
    # kinks and cases
    *(sp.Abs(a), sp.Abs(a) * sp.Abs(b), sp.Max(a, b), sp.Max(a, b, 0), sp.Min(a, -b, sp.Rational(1, 3)), -sp.Max(a, b)),
    *(2 * sp.Min(a, b) + 1, sp.Max(a, b) ** 2, sp.Max(sp.Min(a, 1), -1) / 3),
    *(sp.sign(a), sp.sign(a - b)),
    sp.Piecewise((a, a > 0), (b, True)),
    sp.Piecewise((a**2, (a > 0) & (b > 0)), (b, (a <= 0) | (b >= 1)), (a - b, True)),
    sp.Piecewise((1, sp.Eq(a, 0)), (sp.sin(a) / a, True)),
    sp.Piecewise((sp.log(a + 4), sp.Ne(b, 0) & ~(a < -1)), (-1, True)) * 2 - 1,
    2 * sp.Piecewise((a, a >= b), (-b, True)) + sp.Piecewise((1, a < b), (3, a < 2 * b), (4, True)),
]


def exact(expression: sp.Expr, at: tuple[float, float]) -> sp.Expr:
    place = {a: sp.Rational(at[0]), b: sp.Rational(at[1]), p: sp.Integer(2)}
    precise = expression.xreplace({f: sp.Rational(float(f)) for f in expression.atoms(sp.Float)})
    return sp.N(precise.subs(place, simultaneous=True), 50)


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """All expressions in one numba function: compiling one by one would take minutes."""
    lines = ["import math", "from numba import njit", "", 'EXACT = {"error_model": "numpy"}', "", ""]
    lines += [
        "@njit",
        "def _logistic(a):",
        "    return 1 / (1 + math.exp(-a)) if a > 0 else math.exp(a) / (1 + math.exp(a))",
        "",
    ]
    lines.append(environment().get_template("kernels/matern.py.jinja").render())
    lines += ['@njit(error_model="numpy")', "def everything(a, b, p, out):"]
    lines += [f"    out[{i}] = {print_expression(e)}" for i, e in enumerate(EXPRESSIONS)]
    path = tmp_path_factory.mktemp("printed") / "printed.py"
    path.write_text("\n".join(lines) + "\n")
    spec = importlib.util.spec_from_file_location("printed", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_expression_compiles_and_has_its_value(functions: ModuleType) -> None:
    out = np.zeros(len(EXPRESSIONS))
    compared = 0
    for at in POINTS:
        functions.everything(*at, 2.0, out)
        for expression, got in zip(EXPRESSIONS, out, strict=True):
            value = exact(expression, at)
            if not value.is_finite or not value.is_real:
                continue  # outside the domain of the function
            compared += 1
            assert got == pytest.approx(float(value), rel=4e-15, abs=1e-300), (expression, at)
    assert compared > 0.95 * len(EXPRESSIONS) * len(POINTS)


def test_the_list_has_everything_that_a_model_may_contain() -> None:
    used = {type(part) for e in EXPRESSIONS for part in sp.preorder_traversal(e)}
    assert set(ACCEPTED) - used == {FeatureSum}


@pytest.mark.parametrize("derivatives", [1, 2])
def test_derivatives_of_everything_can_be_printed(derivatives: int) -> None:
    for expression in EXPRESSIONS:
        if expression.has(matern) and derivatives == 2:
            continue  # the lowest of them have no second derivative
        for variable in (a, b):
            if any(m.args[0] < -1 for m in expression.atoms(matern)):
                continue
            changed = expression.diff(variable, derivatives).replace(sp.DiracDelta, lambda *_: sp.Integer(0))
            compile(print_expression(changed), "printed", "eval")


def test_what_cannot_be_printed_is_named() -> None:
    with pytest.raises(ModelError, match="besselj"):
        print_expression(sp.exp(sp.besselj(0, sp.sin(a))) + sp.sin(b))


def test_numbers_are_printed_in_full_precision() -> None:
    assert print_expression(sp.Float("0.1", 40)) == "0.1"
    assert float(print_expression(sp.Rational(1, 3))) == 1 / 3
    assert print_expression(sp.Integer(2)) == "2.0"
