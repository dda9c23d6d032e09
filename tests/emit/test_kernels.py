"""Compiled kernels at special points: tails, zeros and kinks; dense Hessians; indices within bounds."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp

from symdual import Model, features, logistic
from symdual.common.errors import SymdualError
from symdual.runtime import evaluate
from symdual.runtime.loading import LoadedPackage

x, y, v, w, u = sp.symbols("x y v w u")

SPECIAL = Model(
    [x, y, v, w],
    [u],
    [
        logistic(x),
        features.logistic("net", y, locations=[0.0, 1.0]),
        features.polynomial("p", v, degree=3),
        sp.Piecewise((sp.sin(w) / w, sp.Ne(w, 0)), (1, True)) + sp.Abs(w) + sp.Max(w, 0) + u**2,
    ],
    name="special",
)
LEVELS = [0.0, 1e-9, 0.5, 5.0, 30.0, 300.0, 700.0, 1000.0]


@pytest.fixture(scope="module")
def special(compiled: Callable[..., LoadedPackage]) -> LoadedPackage:
    return compiled(SPECIAL, backend="numba")


def at(**values: float) -> tuple[np.ndarray, np.ndarray]:
    theta = np.concatenate([[2.0, 0.0], [1.0, 0.0], [3.0, 5.0, 7.0, 11.0]])  # net_v, net_w, p
    return np.array([values.get(name, 0.25) for name in "xyvw"]), theta


def curves(level: float) -> tuple[float, float, float]:
    """s, s' and s'' with 50 digits."""
    with mpmath.workdps(500):
        s = 1 / (1 + mpmath.exp(-mpmath.mpf(level)))
        t = 1 / (1 + mpmath.exp(mpmath.mpf(level)))
        return float(s), float(s * t), float(s * t * (t - s))


@pytest.mark.parametrize("level", [sign * a for a in LEVELS for sign in (1, -1)])
def test_logistic_in_both_tails(special: LoadedPackage, level: float) -> None:
    """As a scalar and as a feature: accurate to the smallest normal number, and finite everywhere."""
    state, theta = at(x=level, y=level)
    first = evaluate.jacobian(special, state, [0.0], theta)
    second = evaluate.hessian(special, state, [0.0], theta, [1.0, 1.0, 0.0, 0.0])
    s, slope, bend = curves(level)
    near = {"rtol": 1e-13, "atol": 1e-300}
    np.testing.assert_allclose([first.f[0], first.f_x[0, 0]], [s, slope], **near)
    bending = near | ({"atol": 1e-16} if abs(level) < 1e-3 else {})  # s'' crosses zero at 0
    np.testing.assert_allclose(second.zz[0, 0], bend, **bending)
    # net = 2 s(w (y - 0)) at w = 1, and a unit of weight 0
    np.testing.assert_allclose(first.f[1], 2 * s, **near)
    np.testing.assert_allclose(first.f_x[1, 1], 2 * slope, **near)
    np.testing.assert_allclose(first.f_theta[1, :3], [s, 0.5, 2 * level * slope], **near)
    np.testing.assert_allclose(second.zz[1, 1], 2 * bend, **bending)
    assert np.isfinite(second.zz).all()


def test_monomials_at_zero(special: LoadedPackage) -> None:
    state, theta = at(v=0.0)
    first = evaluate.jacobian(special, state, [0.0], theta)
    assert first.f[2] == 3.0
    assert first.f_x[2, 2] == 5.0
    np.testing.assert_array_equal(first.f_theta[2, 4:], [1.0, 0.0, 0.0, 0.0])
    second = evaluate.hessian(special, state, [0.0], theta, [0.0, 0.0, 1.0, 0.0]).zz
    assert second[2, 2] == 14.0
    np.testing.assert_array_equal(second[2, 8:], [0.0, 1.0, 0.0, 0.0])


def test_kinks_and_cases(special: LoadedPackage) -> None:
    for place, value, slope in (
        (2.0, np.sin(2) / 2 + 4, (2 * np.cos(2) - np.sin(2)) / 4 + 2),
        (-2.0, np.sin(2) / 2 + 2, -(2 * np.cos(2) - np.sin(2)) / 4 - 1),
        (0.0, 1.0, 0.5),  # the value is exact; at the kink itself the slope is the mean of both sides
    ):
        state, theta = at(w=place)
        first = evaluate.jacobian(special, state, [0.0], theta)
        assert first.f[3] == pytest.approx(value, rel=1e-14)
        assert first.f_x[3, 3] == pytest.approx(slope, rel=1e-13)


def test_dense_hessians_are_those_of_each_component(special: LoadedPackage) -> None:
    state, theta = at(x=0.3, y=-0.7, v=0.9, w=1.1)
    each = evaluate.hessians(special, state, [0.4], theta)
    assert each.shape == (4, 13, 13)
    for row in range(4):
        second = evaluate.hessian(special, state, [0.4], theta, np.eye(4)[row])
        expected = np.block([[second.zz, second.uz.T], [second.uz, second.uu]])
        np.testing.assert_array_equal(each[row], expected)
        assert expected.any()
    np.testing.assert_array_equal(each, each.transpose(0, 2, 1))


def test_nan_is_not_optimised_away(special: LoadedPackage) -> None:
    state, theta = at(y=np.nan)
    first = evaluate.jacobian(special, state, [0.0], theta)
    assert np.isnan(first.f[1])
    assert np.isnan(first.f_x[1, 1])
    assert np.isfinite(first.f[[0, 2, 3]]).all()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([0.0], [0.0], np.zeros(8)), r"x must have shape \(4,\)"),
        ((np.zeros(4), 0.0, np.zeros(7)), r"theta must have shape \(8,\)"),
        ((np.zeros(4), [0.0, 0.0], np.zeros(8)), r"u must have shape \(1,\)"),
        ((["a"] * 4, [0.0], np.zeros(8)), "x must be an array of numbers"),
    ],
)
def test_arguments_are_checked_before_compiled_code_sees_them(
    special: LoadedPackage, arguments: tuple[Any, Any, Any], said: str
) -> None:
    with pytest.raises(SymdualError, match=said):
        evaluate.dynamics(special, *arguments)


BOUNDS = """
    import numpy as np, sympy as sp, symdual
    from symdual import Model, features, unknown
    from symdual.runtime import evaluate
    x, v, u = sp.symbols("x v u")
    net = features.logistic("net", x, locations=[-1.0, 0.5, 1.0])
    wave = features.fourier("g", v, count=4)
    model = Model([x, v], [u], [x + net * wave, v + unknown("a") * u], observation=[net, x * wave], name="bounded")
    package = symdual.load(symdual.generate(model, ".")[0].folder, backend="numba")
    point = np.array([0.1, 0.2]), np.array([0.3]), np.linspace(-1, 1, package.NTHETA)
    evaluate.jacobian(package, *point)
    evaluate.hessian(package, *point, [1.0, 2.0])
    evaluate.observation_jacobian(package, point[0], point[2])
    try:  # the checks are really on: one number too few must be noticed
        data, work = package.numbers["data"], np.zeros(package.WORK)
        package.kernels.dynamics(0, np.zeros(3), np.zeros(1), data, work, np.zeros(2))
    except IndexError:
        print("in bounds")
"""


def test_no_index_is_out_of_bounds(
    tmp_path: Path, fresh_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    assert fresh_python(BOUNDS, tmp_path, NUMBA_BOUNDSCHECK="1").stdout == "in bounds\n"
