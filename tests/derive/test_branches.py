"""Cases: each is differentiated where it holds, holes are filled by limits, and no zero meets an infinity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual import Model, features, unknown
from symdual.derive.branches import derivative, product, total
from symdual.derive.derivation import derive
from symdual.runtime import evaluate

x, y, h, u, w, tank = sp.symbols("x y h u w tank", real=True)


def unicycle() -> Model:
    """The exact step of a unicycle with speed u and turn rate w."""
    forward = sp.Piecewise((sp.cos(h), sp.Eq(w, 0)), ((sp.sin(h + w) - sp.sin(h)) / w, True))
    sideways = sp.Piecewise((sp.sin(h), sp.Eq(w, 0)), ((sp.cos(h) - sp.cos(h + w)) / w, True))
    return Model([x, y, h], [u, w], [x + u * forward, y + u * sideways, h + w], name="unicycle")


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


def test_the_step_of_a_unicycle_at_the_hole_has_the_limits_as_derivatives(interpreted: Callable[[Model], Any]) -> None:
    package = interpreted(unicycle())
    heading, speed = 0.7, 1.5
    at = ([0.2, -0.4, heading], [speed, 0.0], [])
    first = evaluate.jacobian(package, *at)
    sine, cosine = np.sin(heading), np.cos(heading)
    np.testing.assert_allclose(first.f, [0.2 + speed * cosine, -0.4 + speed * sine, heading], rtol=1e-15)
    np.testing.assert_allclose(first.f_u, [[cosine, -speed * sine / 2], [sine, speed * cosine / 2], [0, 1]], rtol=1e-14)
    np.testing.assert_allclose(first.f_x[:2, 2], [-speed * sine, speed * cosine], rtol=1e-15)
    second = evaluate.hessian(package, *at, [1.0, 0.0, 0.0])
    np.testing.assert_allclose(second.uu, [[0.0, -sine / 2], [-sine / 2, -speed * cosine / 3]], rtol=1e-14)
    np.testing.assert_allclose(second.uz[:, 2], [-sine, -speed * cosine / 2], rtol=1e-14)


def test_beside_the_hole_derivatives_are_those_of_the_formula(interpreted: Callable[[Model], Any]) -> None:
    package = interpreted(unicycle())
    turn = 1e-3
    first = evaluate.jacobian(package, [0.0, 0.0, 0.7], [1.5, turn], [])
    slope = 1.5 * (np.cos(0.7 + turn) / turn - (np.sin(0.7 + turn) - np.sin(0.7)) / turn**2)
    assert first.f_u[0, 1] == pytest.approx(slope, rel=1e-9)


@pytest.mark.parametrize("level", [-1.0, 0.0, 4.0])
def test_cases_that_share_what_only_one_of_them_may_evaluate(level: float, interpreted: Callable[[Model], Any]) -> None:
    """sqrt(tank) is common to two guarded flows; its slope does not exist where the guards do not hold."""
    out = sp.Piecewise((sp.sqrt(tank), tank > 0), (0, True))
    drag = sp.Piecewise((unknown("c", 2.0) * sp.sqrt(tank), tank > 0), (0, True))
    model = Model([tank, x], [u], [tank - out + u, x + drag * sp.exp(out)], name="m")
    package = interpreted(model)
    at = ([level, 0.3], [0.1], [2.0])
    first, second = evaluate.jacobian(package, *at), evaluate.hessian(package, *at, [1.0, 1.0])
    root = np.sqrt(max(level, 0.0))
    slope = 0.5 / root if root else 0.0
    np.testing.assert_allclose(first.f_x, [[1 - slope, 0], [2 * slope * np.exp(root) * (1 + root), 1]], rtol=1e-14)
    np.testing.assert_allclose(first.f_theta[:, 0], [0.0, root * np.exp(root)], rtol=1e-14)
    bend = 0.25 / root**3 if root else 0.0
    # d2/dtank2 of -sqrt(tank) + 2 sqrt(tank) exp(sqrt(tank))
    curved = bend + 2 * np.exp(root) * (slope**2 * (2 + root) - bend * (1 + root)) if root else 0.0
    np.testing.assert_allclose(second.zz[0, 0], curved, rtol=1e-12)


@pytest.mark.parametrize(("level", "value", "slope"), [(-2.0, 0.0, 0.0), (4.0, 2.0, 0.25)])
@pytest.mark.parametrize("shared", [False, True])
def test_the_root_of_a_clipped_level(
    level: float, value: float, slope: float, shared: bool, interpreted: Callable[[Model], Any]
) -> None:
    """sqrt(Max(tank, 0)): the slope of the root is infinite where the clipped level no longer moves."""
    clipped = sp.Max(tank, 0)
    second_state = clipped + u if shared else x
    package = interpreted(Model([tank, x], [u], [sp.sqrt(clipped) + u, second_state], name="m"))
    at = ([level, 0.0], [0.0], [])
    assert evaluate.dynamics(package, *at)[0] == value
    assert evaluate.jacobian(package, *at).f_x[0, 0] == pytest.approx(slope)
    assert evaluate.hessian(package, *at, [1.0, 0.0]).zz[0, 0] == pytest.approx(-0.25 / value**3 if value else 0.0)


def test_a_minimum_and_a_logarithm(interpreted: Callable[[Model], Any]) -> None:
    package = interpreted(Model([x], [u], [sp.Max(sp.log(x), -1) + sp.Min(1 / x, 2) + u], name="m"))
    assert evaluate.jacobian(package, [0.0], [0.0], []).f_x[0, 0] == 0.0
    assert evaluate.hessian(package, [0.0], [0.0], [], [1.0]).zz[0, 0] == 0.0
    assert evaluate.jacobian(package, [0.8], [0.0], []).f_x[0, 0] == pytest.approx(1 / 0.8 - 1 / 0.64)


def test_features_inside_a_case(interpreted: Callable[[Model], Any]) -> None:
    """A sum over features whose summand does not exist outside its case leaves nothing there."""
    roots = features.custom("g", x, lambda s, c, p: c * sp.sqrt(s - p), {"c": (1.0, 1.0)}, {"p": [0.0, 0.5]})
    inner = features.rbf("q", sp.sqrt(x), [0.0, 1.0])
    guarded = sp.Piecewise((roots**2 + inner * u, x > 1), (0, True))
    package = interpreted(Model([x], [u], [x + guarded], name="m"))
    theta = [1.0, -2.0, 0.5, 1.5]
    for place in (-1.0, 0.5):
        first = evaluate.jacobian(package, [place], [0.3], theta)
        second = evaluate.hessian(package, [place], [0.3], theta, [1.0])
        assert first.f[0] == place
        assert first.f_x[0, 0] == 1.0
        assert not first.f_theta.any()
        assert not second.zz.any()
        assert not second.uz.any()
    inside = evaluate.jacobian(package, [2.0], [0.3], theta)
    g = np.sqrt(2.0) - 2 * np.sqrt(1.5)
    np.testing.assert_allclose(inside.f_theta[0, :2], 2 * g * np.sqrt([2.0, 1.5]), rtol=1e-14)


def test_an_unknown_exponent_at_zero(interpreted: Callable[[Model], Any]) -> None:
    """x**p with p > 1 at x = 0: every derivative by x and p is zero there, and right elsewhere."""
    p = unknown("p", 1.5)
    package = interpreted(Model([x], [u], [x - x**p + u], name="m"))
    first = evaluate.jacobian(package, [0.0], [0.0], [1.5])
    np.testing.assert_array_equal([first.f[0], first.f_x[0, 0], first.f_theta[0, 0]], [0.0, 1.0, 0.0])
    second = evaluate.hessian(package, [0.0], [0.0], [2.5], [1.0]).zz
    np.testing.assert_array_equal(second, np.zeros((2, 2)))
    assert evaluate.hessian(package, [0.0], [0.0], [1.0], [1.0]).zz[0, 0] == 0.0  # y (y - 1) x**(y - 2) at y = 1
    first = evaluate.jacobian(package, [2.0], [0.0], [1.5])
    np.testing.assert_allclose(first.f_x[0, 0], 1 - 1.5 * 2**0.5, rtol=1e-15)
    np.testing.assert_allclose(first.f_theta[0, 0], -(2**1.5) * np.log(2), rtol=1e-15)
    second = evaluate.hessian(package, [2.0], [0.0], [1.5], [1.0]).zz
    mixed = -(2**0.5) * (1 + 1.5 * np.log(2))
    np.testing.assert_allclose(second, [[-0.75 / 2**0.5, mixed], [mixed, -(2**1.5) * np.log(2) ** 2]], rtol=1e-14)


def test_a_power_of_a_positive_base_stays_a_power(interpreted: Callable[[Model], Any]) -> None:
    source = interpreted(Model([x], [u], [(1 + x**2) ** unknown("p", 1.5) + u], name="m")).source
    assert "_power" not in source


@pytest.mark.parametrize(
    ("value", "formula", "slope", "bend"),
    [
        (1, sp.sin(w) / w, 0, -sp.Rational(1, 3)),
        (sp.Rational(1, 2), (1 - sp.cos(w)) / w**2, 0, -sp.Rational(1, 12)),
        (1, sp.sqrt(sp.sin(w) / w), 0, -sp.Rational(1, 6)),
        (h, sp.log(1 + h * w) / w, -(h**2) / 2, 2 * h**3 / 3),
        (sp.exp(h), (sp.exp(h + w) - sp.exp(h)) / w, sp.exp(h) / 2, sp.exp(h) / 3),
    ],
)
def test_holes_are_filled_by_limits(value: sp.Expr, formula: sp.Expr, slope: sp.Expr, bend: sp.Expr) -> None:
    """The limits are those that SymPy finds by itself, another way."""
    from symdual.derive.holes import filled

    for hole in (
        sp.Piecewise((value, sp.Eq(w, 0)), (formula, True)),
        sp.Piecewise((formula, sp.Ne(w, 0)), (value, True)),
        sp.Piecewise((value, sp.Eq(w, 0)), (formula, w > 0), (formula, True)),
    ):
        expression, remarks = filled(hole)
        assert remarks == ()
        assert sp.simplify(derivative(expression, w).xreplace({w: sp.S.Zero}) - slope) == 0
        assert sp.simplify(derivative(derivative(expression, w), w).xreplace({w: sp.S.Zero}) - bend) == 0
        assert sp.simplify(sp.limit(sp.diff(formula, w), w, 0) - slope) == 0
        assert sp.simplify(sp.limit(sp.diff(formula, w, 2), w, 0) - bend) == 0


def test_a_hole_along_a_line() -> None:
    """(exp(x) - exp(y)) / (x - y) where x = y: derivatives by both."""
    from symdual.derive.holes import filled

    expression, remarks = filled(sp.Piecewise((sp.exp(y), sp.Eq(x, y)), ((sp.exp(x) - sp.exp(y)) / (x - y), True)))
    assert remarks == ()
    for a, b, factor in ((x, x, 3), (x, y, 6), (y, y, 3)):
        found = derivative(derivative(expression, a), b).xreplace({x: y})
        assert sp.simplify(found - sp.exp(y) / factor) == 0
    assert sp.simplify(derivative(expression, y).xreplace({x: y}) - sp.exp(y) / 2) == 0


@pytest.mark.parametrize(
    "hole",
    [
        sp.Piecewise((2, sp.Eq(w, 0)), (sp.sin(w) / w, True)),  # another value than the limit
        sp.Piecewise((0, sp.Eq(w, 0)), (w * sp.log(w), True)),  # no series
        sp.Piecewise((0, sp.Eq(w, 0)), (1 / w, True)),  # no limit
        sp.Piecewise((0, sp.Eq(w, 0)), (w, w > 0), (-w, True)),  # a kink
        sp.Piecewise((0, sp.Eq(w**2 + h**2, 0)), (w / sp.sqrt(w**2 + h**2), True)),  # a single point
    ],
)
def test_a_hole_without_a_limit_stays_and_is_told(hole: sp.Piecewise) -> None:
    model = Model([h], [w], [h + hole], name="m")
    (remark,) = derive(model).remarks
    assert "as written" in remark
    assert " = 0" in remark


def test_models_without_cases_have_no_remarks() -> None:
    assert derive(Model([x], [u], [x + u], name="m")).remarks == ()
    assert derive(unicycle()).remarks == ()


def test_a_product_goes_into_the_cases() -> None:
    guarded = sp.Piecewise((x, x > 0), (0, True))
    assert product(y, 1 / x, guarded) == sp.Piecewise((y, x > 0), (0, True))
    assert product(sp.sqrt(guarded), guarded, h) == sp.Piecewise((h * sp.sqrt(x) * x, x > 0), (0, True))
    assert product(guarded + y, h) == sp.Piecewise((x * h, x > 0), (0, True)) + y * h
    assert total([guarded, y, 2 * guarded.func((h, x > 0), (0, True))]).has(sp.Piecewise)
    assert total([guarded, sp.Piecewise((h, x > 0), (y, True))]) == sp.Piecewise((x + h, x > 0), (y, True))
