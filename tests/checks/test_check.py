"""The check itself: what it compares, which points it takes, and that it is not fooled by rounding."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp

import symdual
from symdual import Model, Scenario, SymdualError, constant, features, logistic, unknown
from symdual.checks.kernels import TOLERANCE, BlockResult, compare, references
from symdual.many_digits.arithmetic import DIGITS
from symdual.many_digits.model import ExactModel, first_difference, second_difference

x, v, u = sp.symbols("x v u")


def passes(model: Model, interpreted: Callable[[Model], Any], points: int = 4) -> bool:
    return all(result.passed for result in compare(interpreted(model), references(model, points)))


def test_an_entry_that_vanishes_only_numerically_is_no_miss(interpreted: Callable[[Model], Any]) -> None:
    """df/dx = 2 u (x + 1) - u (2 x + 2) is zero, but SymPy does not see it and rounding leaves something."""
    hidden = u * (x + 1) ** 2 * sp.Rational(1, 3) - u * (x**2 / 3 + 2 * x / 3) + sp.sin(x) ** 2 + sp.cos(x) ** 2
    assert passes(Model([x], [u], [hidden], name="hidden"), interpreted)


@pytest.mark.parametrize("steepness", [1, 30, 100, 1000])
def test_a_saturated_function_is_no_miss(steepness: int, interpreted: Callable[[Model], Any]) -> None:
    """Smoothed dry friction: where tanh saturates, its derivatives are tiny, and must still be right or nothing."""
    bumps = features.custom("q", x, lambda s, w, p: w * sp.tanh(steepness * (s - p)), {"w": (0, 1)}, {"p": [0.0, 1.0]})
    friction = unknown("c") * sp.tanh(steepness * v)
    assert passes(Model([x, v], [u], [x + v, v + friction + bumps + u], name="friction"), interpreted, points=8)


def test_points_outside_the_domain_are_passed_over(interpreted: Callable[[Model], Any]) -> None:
    model = Model([x, v], [u], [sp.sqrt(x) + sp.log(v) + u, sp.Piecewise((sp.sqrt(v), v > 0), (v, True))], name="m")
    found = references(model, 5)
    assert len([point for point, _ in found if not point.boundary]) == 5
    assert all(point.x[0] > 0 and point.x[1] > 0 for point, _ in found)
    assert passes(model, interpreted)


def test_a_model_without_any_finite_point_is_reported() -> None:
    with pytest.raises(SymdualError, match='"nowhere"'):
        references(Model([x], [u], [sp.sqrt(-1 - x**2) + u], name="nowhere"), 3)


def test_a_fault_in_an_oracle_is_not_taken_for_a_point_outside_the_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> object:
        raise TypeError("programming error")

    monkeypatch.setattr("symdual.checks.symbolic.SymbolicValues.scalar", broken)
    with pytest.raises(TypeError, match="programming"):
        references(Model([x], [u], [x + u], name="m"), 1)


def test_an_infinite_or_nan_kernel_is_a_miss(interpreted: Callable[..., Any]) -> None:
    model = Model([x], [u], [x + 3 * u], name="m")
    package = interpreted(model)
    for wrong in ('float("nan")', 'float("inf")'):
        changed = package.source.replace("f_out[0] =", f"f_out[0] = {wrong} +")
        results = compare(interpreted(model, changed), references(model, 2))
        assert {r.block for r in results if not r.passed} == {"f"}


def test_an_error_just_above_the_tolerance_is_a_miss(interpreted: Callable[..., Any]) -> None:
    model = Model([x], [u], [x + 3 * u], name="m")
    source = interpreted(model).source
    for factor, passed in ((1 + 2 * TOLERANCE, False), (1 + TOLERANCE / 2, True)):
        changed = source.replace("f_u_out[0, 0] = 3.0", f"f_u_out[0, 0] = {3 * factor!r}")
        assert changed != source
        assert all(r.passed for r in compare(interpreted(model, changed), references(model, 2))) is passed


def test_every_block_is_compared_with_both_oracles(interpreted: Callable[[Model], Any]) -> None:
    model = Model([x, v], [u], [x + v, v + unknown("a") * u + features.fourier("g", x, count=2)], name="m")
    results = compare(interpreted(model), references(model, 3))
    names = ["x", "v", "a", "g_sin", "g_cos", "u"]
    blocks = {r.block for r in results if r.oracle == "50 digits"}
    assert blocks >= {"f", "h", *(f"f by {n}" for n in names), *(f"h by {n}" for n in names[:-1])}
    pairs = [(one, other) for i, one in enumerate(names) for other in names[i:]]
    assert all({f"f by {one}, {other}", f"f by {other}, {one}"} & blocks for one, other in pairs)
    differenced = {r.block for r in results if r.oracle == "differences"}
    assert differenced >= {f"f by {a}, {b}" for a in names for b in names}


def test_differences_are_exact_far_beyond_double_precision() -> None:
    with mpmath.workdps(DIGITS):
        at = [mpmath.mpf("0.3"), mpmath.mpf("-1.7")]
        (slope,) = first_difference(lambda z: [mpmath.sin(z[0]) * z[1] ** 3], at, 0)
        assert abs(slope - mpmath.cos(at[0]) * at[1] ** 3) < mpmath.mpf(10) ** -48
        bend = second_difference(lambda z: mpmath.sin(z[0]) * z[1] ** 3, at, 0, 1)
        assert abs(bend - 3 * mpmath.cos(at[0]) * at[1] ** 2) < mpmath.mpf(10) ** -45
        bend = second_difference(lambda z: mpmath.sin(z[0]) * z[1] ** 3, at, 0, 0)
        assert abs(bend + mpmath.sin(at[0]) * at[1] ** 3) < mpmath.mpf(10) ** -45


def test_the_model_as_written_is_summed_feature_by_feature() -> None:
    net = features.logistic("net", x, locations=[0.5, -0.5])
    model = Model([x], [u], [x + u * net + logistic(x)], observation=[net**2], name="m")
    with mpmath.workdps(DIGITS):
        exact = ExactModel(model)
        number = mpmath.mpf
        theta = [number(2), number(3), number("1.5"), number(-1)]
        s = [1 / (1 + np.exp(-1.5 * (0.2 - 0.5))), 1 / (1 + np.exp(0.2 + 0.5))]
        total = 2 * s[0] + 3 * s[1]
        (f,) = exact.dynamics(0, [number("0.2")], [number(2)], theta)
        assert float(f) == pytest.approx(0.2 + 2 * total + 1 / (1 + np.exp(-0.2)), rel=1e-14)
        (h,) = exact.observation(0, [number("0.2")], theta)
        assert float(h) == pytest.approx(total**2, rel=1e-14)


def test_a_sum_in_the_arguments_of_another_is_taken_where_only_the_outer_one_is_written() -> None:
    inner = features.linear("inner", x)
    outer = features.rbf("outer", inner, centres=[0.0, 1.0], lengthscale=1.0)
    model = Model([x], [u], [x + u], observation=[outer], name="m")
    with mpmath.workdps(DIGITS):
        exact = ExactModel(model)
        number = mpmath.mpf
        for slope in (1.0, 2.0):  # the second one must not be what is remembered of the first
            (h,) = exact.observation(0, [number("0.2")], [number(slope), number(3), number(5)])
            bells = [np.exp(-0.5 * (0.2 * slope - centre) ** 2) for centre in (0.0, 1.0)]
            assert float(h) == pytest.approx(3 * bells[0] + 5 * bells[1], rel=1e-14)


def test_a_hand_edited_file_is_checked_as_it_is(tmp_path: Path) -> None:
    """Not written again and found right: the edit is in the report, and so is the block that it broke."""
    model = Model([x], [u], [x + 3 * u], name="edited")
    (made,) = symdual.generate(model, tmp_path)
    file = made.folder / "kernels/kernels.py"
    file.write_text(file.read_text().replace("f_u_out[0, 0] = 3.0", "f_u_out[0, 0] = -3.0"))
    edited = file.read_bytes()
    missed = {r.block for r in symdual.check(model, tmp_path, points=2, recursions=False)["edited"] if not r.passed}
    assert missed == {"f by u", "file kernels/kernels.py"}
    assert file.read_bytes() == edited
    symdual.generate(model, tmp_path)
    assert all(r.passed for r in symdual.check(model, tmp_path, points=2, recursions=False)["edited"])


# -------------------------------------------------------------------- what is no fault


def judged(model: Model, interpreted: Callable[[Model], Any], points: int = 6, **more: Any) -> list[BlockResult]:
    return compare(interpreted(model), references(model, points, **more))


def missed(results: list[BlockResult]) -> list[tuple[str, str, float]]:
    return [(r.block, r.oracle, r.error) for r in results if not r.passed]


@pytest.mark.parametrize("steepness", [10, 50, 1000])
def test_a_steep_softplus_is_no_miss(steepness: int, interpreted: Callable[[Model], Any]) -> None:
    """log(1 + exp(k x)) has lost all digits of its tail, as anybody's program would; and exp overflows."""
    model = Model([x], [u], [sp.log(1 + sp.exp(steepness * x)) / steepness + u], name="softplus")
    assert missed(judged(model, interpreted, points=12)) == []


def reactor() -> tuple[Model, Scenario]:
    heat, part = sp.symbols("heat part")
    speed = unknown("speed", 7e10, (7e8) ** 2) * sp.exp(-8750 / heat) * part
    motion = [1 - part - speed, 350 - heat + 209 * speed + 2.1 * (u - heat)]
    model = Model(
        [part, heat], [u], derivatives=motion, step=0.01, method="rk4", name="reactor", bounds={u: (280, 320)}
    )
    return model, Scenario(model, 30, start=[0.5, 350.0], reference=[0.4, 360.0])


def test_points_are_drawn_where_the_scenario_is(interpreted: Callable[[Model], Any]) -> None:
    model, scenario = reactor()
    found = references(model, 5, scenarios=[scenario])
    assert all(300 < point.x[1] < 420 and 0 < point.x[0] < 1 for point, _ in found)
    assert all(280 <= point.u[0] <= 320 for point, _ in found)
    assert all(4e10 < point.theta[0] < 1e11 for point, _ in found)
    assert missed(compare(interpreted(model), found)) == []
    assert missed(judged(model, interpreted, points=3)) == []  # without a scenario other places are tried


def test_small_deviations_are_kept() -> None:
    model = Model([x], [u], [x + unknown("a", 5.0, 1e-6) * u], name="m")
    scenario = Scenario(model, 4, start=[2.0], start_covariance=1e-8, reference=2.0)
    found = references(model, 8, scenarios=[scenario])
    assert max(abs(point.theta[0] - 5.0) for point, _ in found) < 5e-3
    assert max(abs(point.x[0] - 2.0) for point, _ in found) < 10.0


@pytest.mark.parametrize(
    "expression",
    [
        sp.Max(sp.log(x), -1),
        sp.atan2(sp.sqrt(x), v),
        sp.exp(sp.exp(sp.exp(sp.exp(x)))),
        x ** sp.Integer(10**9),
        sp.Integer(10) ** 200 * x * sp.Integer(10) ** 100,
        sp.Float("1e300") * x * v,
        sp.exp(-sp.exp(5 * x)),
        sp.exp(-(x**2) * 1e300),  # its second derivative has a constant beyond double precision
        sp.exp(-(x**2) * 10**300),
        sp.Piecewise((1 / x, sp.log(x) > 0), (v, True)),
    ],
)
def test_legal_models_do_not_break_the_check(expression: sp.Expr, interpreted: Callable[[Model], Any]) -> None:
    with np.errstate(all="ignore"):
        assert missed(judged(Model([x, v], [u], [expression + u, v], name="m"), interpreted, points=4)) == []


def test_what_is_not_finite_is_told_apart_from_what_is_wrong(interpreted: Callable[[Model], Any]) -> None:
    """The slope of sqrt(Max(x, 0)) is infinite at x = 0 and zero below."""
    model = Model([x], [u], [sp.sqrt(sp.Max(x, 0)) + u], name="m")
    results = {(r.block, r.oracle): r for r in judged(model, interpreted)}
    slope = results["f by x", "50 digits"]
    assert slope.passed
    assert slope.undefined == 1
    assert results["f", "as written"].undefined == 0


# -------------------------------------------------------------------- boundaries


def test_points_lie_on_and_beside_every_boundary() -> None:
    c = unknown("c", 0.5)
    model = Model(
        [x, v],
        [u],
        [sp.Piecewise((x, sp.Eq(u, 0)), (v, x * v > 2), (x, True)) + sp.Max(x, 3 * v), sp.Abs(x - 1) + sp.Abs(v) ** c],
        observation=[sp.Min(x, c)],
        name="m",
    )
    points = [point for point, _ in references(model, 4) if point.boundary]
    for distance in (
        lambda p: p.u[0],
        lambda p: p.x[0] * p.x[1] - 2,
        lambda p: p.x[0] - 3 * p.x[1],
        lambda p: p.x[0] - 1,
        lambda p: p.x[1],
        lambda p: p.x[0] - p.theta[0],
    ):
        values = [distance(point) for point in points]
        assert min(map(abs, values)) < 1e-15
        assert any(0 < value < 1e-2 for value in values)
        assert any(-1e-2 < value < 0 for value in values)


@pytest.mark.parametrize("seed", range(4))
def test_a_sign_that_rounding_may_turn_is_no_miss(seed: int, interpreted: Callable[[Model], Any]) -> None:
    """On a kink double precision may take either side: in both halves of the second derivative, for every feature."""
    centres = {"p": np.linspace(-1.2, 0.3, 15)}
    g = features.custom("g", x, lambda s, c, p: (s * c + s) / 15, {"c": (0.5, 1.0)}, centres)
    q = features.custom("q", g - v, lambda s, c, p: (s + c * (s * p - 1)) / 15, {"c": (0.5, 1.0)}, centres)
    model = Model([x, v], [u], [v + u, sp.Abs(sp.tanh(q) - sp.Rational(1, 7))], name="kink")
    found = references(model, 1, seed)
    assert any(point.boundary for point, _ in found)
    assert all(result.passed for result in compare(interpreted(model), found))


def test_a_slope_that_is_nan_only_on_a_boundary_is_a_miss(interpreted: Callable[..., Any]) -> None:
    hole = sp.Piecewise((1, sp.Eq(u, 0)), (sp.sin(u) / u, True))
    model = Model([x], [u], [x + hole], name="m")
    assert missed(judged(model, interpreted)) == []
    spoiled = re.sub(r"(f_u_out\[0, 0\] = .*)", r"\1 if u != 0.0 else float('nan')", interpreted(model).source)
    results = compare(interpreted(model, spoiled), references(model, 3))
    assert {r.block for r in results if not r.passed} == {"f by u"}


def test_a_hole_that_is_differentiated_as_written_is_a_miss(
    interpreted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slope of the case Eq(w, 0) itself is zero; differences of the model as written know better."""
    from symdual.derive import program
    from symdual.derive.holes import Filled

    monkeypatch.setattr(program, "filled", lambda expression: Filled(expression, ()))
    turned = sp.Piecewise((sp.cos(x), sp.Eq(u, 0)), ((sp.sin(x + u) - sp.sin(x)) / u, True))
    results = judged(Model([x], [u], [x + turned], name="m"), interpreted)
    assert ("f by u", "differences") in {(r.block, r.oracle) for r in results if not r.passed}


# -------------------------------------------------------------------- names

NAMES = "pi E I S N Q sin cos log sqrt exp mpf mpc nan inf oo zoo Max Piecewise Symbol print exit sum Heaviside".split()


@pytest.mark.parametrize("first", range(len(NAMES)), ids=NAMES)
def test_a_name_is_never_more_than_a_name(first: int, interpreted: Callable[[Model], Any]) -> None:
    """In a model that uses the functions of these names, five at a time: over all models each has every role once."""
    state, action, parameter, family, number = (NAMES[(first + role) % len(NAMES)] for role in range(5))
    place, push = sp.symbols([state, action])
    motion = sp.sin(place) * sp.pi + sp.sqrt(1 + place**2) * unknown(parameter, 1.0) + sp.log(2 + push**2)
    motion += sp.exp(-(place**2)) * constant(number, 0.7) + sp.Max(place, push) + sp.E
    motion += features.fourier(family, place, count=2)
    assert missed(judged(Model([place], [push], [motion], name="m"), interpreted, points=1)) == []
