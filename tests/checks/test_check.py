"""The check itself: what it compares, which points it takes, and that it is not fooled by rounding."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp

import symdual
from symdual import Model, SymdualError, features, logistic, unknown
from symdual.checks.exact import DIGITS, ExactModel, first_difference, second_difference
from symdual.checks.kernels import TOLERANCE, compare, references

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
    assert len(found) == 5
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


def test_a_hand_edited_file_is_checked_as_it_is(tmp_path: Path) -> None:
    """Not written again and found right: the edit is in the report, and so is the block that it broke."""
    model = Model([x], [u], [x + 3 * u], name="edited")
    (made,) = symdual.generate(model, tmp_path)
    file = made.folder / "kernels.py"
    file.write_text(file.read_text().replace("f_u_out[0, 0] = 3.0", "f_u_out[0, 0] = -3.0"))
    edited = file.read_bytes()
    missed = {r.block for r in symdual.check(model, tmp_path, points=2, recursions=False)["edited"] if not r.passed}
    assert missed == {"f by u", "file kernels.py"}
    assert file.read_bytes() == edited
    symdual.generate(model, tmp_path)
    assert all(r.passed for r in symdual.check(model, tmp_path, points=2, recursions=False)["edited"])
