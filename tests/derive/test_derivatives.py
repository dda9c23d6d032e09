"""Derivatives against formulas worked out by hand, and the structure of the Hessian that they imply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual import Model, features, unknown
from symdual.checks.kernels import compare, references
from symdual.derive.derivation import derive
from symdual.derive.structure import structure
from symdual.runtime import evaluate

x, v, u = sp.symbols("x v u")
RNG = np.random.default_rng(0)


def test_every_kind_of_model_agrees_with_both_oracles(zoo_model: Model, interpreted: Callable[[Model], Any]) -> None:
    results = compare(interpreted(zoo_model), references(zoo_model, points=4))
    assert [r for r in results if not r.passed] == []
    assert {r.oracle for r in results} == {"50 digits", "as written", "differences"}


def test_fourier_features_by_hand(interpreted: Callable[[Model], Any]) -> None:
    """Appendix B: v' = v + c sum_i [a_i sin(om_i x) + b_i cos(om_i x)] + u."""
    model = Model([x, v], [u], [x + 0.4 * v, v + features.fourier("g", x, count=6, lengthscale=1.3) + u])
    package = interpreted(model)
    omega, c = np.split(package.numbers["data"], [3])
    a, b = RNG.normal(size=3), RNG.normal(size=3)
    at, costate = (np.array([0.7, -0.2]), np.array([0.5]), np.concatenate([a, b])), np.array([1.5, -2.0])
    sine, cosine = np.sin(omega * 0.7), np.cos(omega * 0.7)

    first = evaluate.jacobian(package, *at)
    slope = c[0] * np.sum(omega * (a * cosine - b * sine))
    np.testing.assert_allclose(first.f, [0.7 - 0.08, -0.2 + c[0] * (a @ sine + b @ cosine) + 0.5], rtol=1e-14)
    np.testing.assert_allclose(first.f_x, [[1.0, 0.4], [slope, 1.0]], rtol=1e-14)
    np.testing.assert_array_equal(first.f_u, [[0.0], [1.0]])
    np.testing.assert_allclose(first.f_theta, [np.zeros(6), c[0] * np.concatenate([sine, cosine])], rtol=1e-14)

    expected = np.zeros((8, 8))
    expected[0, 0] = -2.0 * c[0] * np.sum(-(omega**2) * (a * sine + b * cosine))
    expected[0, 2:] = expected[2:, 0] = -2.0 * c[0] * np.concatenate([omega * cosine, -omega * sine])
    second = evaluate.hessian(package, *at, costate)
    np.testing.assert_allclose(second.zz, expected, rtol=1e-13, atol=1e-15)
    assert not second.uz.any()
    assert not second.uu.any()

    pattern = structure(derive(model))
    assert pattern.theta_rows == (1,)
    assert pattern.f_theta_spans == (((0, 6),),)
    assert pattern.hessian_core_rows == (0,)
    assert pattern.hessian_input_rows == ()
    assert pattern.hessian_diagonals == ()
    assert pattern.npairs == 0


def test_network_by_hand(interpreted: Callable[[Model], Any]) -> None:
    """Appendix B: v' = v + sum_i v_i s(w_i (x - b_i)): diagonals between v and w and within w, nothing else."""
    b = np.array([-1.0, 0.0, 2.0])
    model = Model([x, v], [u], [x + v, v + features.logistic("net", x, locations=b) + u])
    package = interpreted(model)
    heads, slopes = RNG.normal(size=3), RNG.normal(size=3)
    at, lam = (np.array([0.4, 0.0]), np.array([0.0]), np.concatenate([heads, slopes])), 1.7
    distance = 0.4 - b
    s = 1 / (1 + np.exp(-slopes * distance))
    ds, dds = s * (1 - s), s * (1 - s) * (1 - 2 * s)

    first = evaluate.jacobian(package, *at)
    np.testing.assert_allclose(first.f_x[1], [np.sum(heads * slopes * ds), 1.0], rtol=1e-13)
    np.testing.assert_allclose(first.f_theta[1], np.concatenate([s, heads * distance * ds]), rtol=1e-13)

    expected = np.zeros((8, 8))
    expected[0, 0] = np.sum(heads * slopes**2 * dds)
    expected[0, 2:5] = slopes * ds
    expected[0, 5:8] = heads * (ds + slopes * distance * dds)
    expected[2:5, 5:8] = np.diag(distance * ds)
    expected[5:8, 5:8] = np.diag(heads * distance**2 * dds)
    expected = np.triu(expected) + np.triu(expected, 1).T
    second = evaluate.hessian(package, *at, np.array([0.3, lam]))
    np.testing.assert_allclose(second.zz, lam * expected, rtol=1e-12, atol=1e-15)

    pattern = structure(derive(model))
    assert pattern.hessian_diagonals == ((2, 5, 3, 0), (5, 5, 3, 3))
    assert pattern.npairs == 0


def test_product_of_families_is_rank_one(interpreted: Callable[[Model], Any]) -> None:
    centres = np.array([0.0, 1.0, 2.0])
    one = features.rbf("one", x, centres)
    two = features.polynomial("two", x, degree=1)
    model = Model([x], [u], [x + u + one * two])
    package = interpreted(model)
    weights, at = RNG.normal(size=5), 0.6
    phi, psi = np.exp(-((at - centres) ** 2) / 2), np.array([1.0, at])
    theta = evaluate.hessian(package, [at], [0.0], weights, [2.0]).zz[1:, 1:]
    expected = np.zeros((5, 5))
    expected[:3, 3:] = 2.0 * np.outer(phi, psi)
    np.testing.assert_allclose(theta, expected + expected.T, rtol=1e-13, atol=1e-15)
    assert structure(derive(model)).npairs == 1
    assert structure(derive(model)).hessian_diagonals == ()


def test_function_of_a_family_is_rank_one(interpreted: Callable[[Model], Any]) -> None:
    centres = np.array([0.0, 1.0, 2.0])
    model = Model([x], [u], [x + u + sp.exp(2 * features.rbf("g", x, centres))])
    weights, at = RNG.normal(size=3), 0.6
    phi = np.exp(-((at - centres) ** 2) / 2)
    theta = evaluate.hessian(interpreted(model), [at], [0.0], weights, [0.5]).zz[1:, 1:]
    np.testing.assert_allclose(theta, 0.5 * 4 * np.exp(2 * weights @ phi) * np.outer(phi, phi), rtol=1e-13)
    assert structure(derive(model)).npairs == 1


def test_scalar_unknown_times_a_family(interpreted: Callable[[Model], Any]) -> None:
    centres = np.array([0.0, 1.0])
    model = Model([x], [u], [x + u + unknown("a") * features.rbf("g", x, centres)])
    package = interpreted(model)
    assert package.UNKNOWNS == {"a": (0, 1), "g": (1, 2)}
    weights, at = np.array([0.3, 1.0, -2.0]), 0.6
    phi = np.exp(-((at - centres) ** 2) / 2)
    second = evaluate.hessian(package, [at], [0.0], weights, [1.0]).zz
    np.testing.assert_allclose(second[1, 2:], phi, rtol=1e-14)  # d2 f / da dg_i
    np.testing.assert_allclose(second[0, 1], weights[1:] @ ((centres - at) * phi), rtol=1e-14)
    assert not second[2:, 2:].any()
    assert second[1, 1] == 0.0
    assert structure(derive(model)).npairs == 0


def test_features_of_an_input(interpreted: Callable[[Model], Any]) -> None:
    model = Model([x], [u], [x + features.rbf("g", u, [0.0, 1.0])])
    package = interpreted(model)
    weights, at, centres = np.array([1.0, -2.0]), 0.6, np.array([0.0, 1.0])
    phi = np.exp(-((at - centres) ** 2) / 2)
    second = evaluate.hessian(package, [0.0], [at], weights, [1.0])
    np.testing.assert_allclose(second.uz[0, 1:], (centres - at) * phi, rtol=1e-14)
    np.testing.assert_allclose(second.uu, [[weights @ (((at - centres) ** 2 - 1) * phi)]], rtol=1e-14)
    assert not second.zz.any()


def test_one_basis_with_several_outputs_is_summed_in_one_loop(interpreted: Callable[[Model], Any]) -> None:
    one, two = features.fourier("g", x, count=32, outputs=2)
    source = interpreted(Model([x, v], [u], [v + one, x + two + u])).source
    dynamics = source[source.index("def dynamics(") : source.index("def linearise(")]
    assert dynamics.count("_sincos_") == 1
    assert dynamics.count("for _i in range(16):") == 2  # the angles, then both sums


def test_runge_kutta_of_a_linear_system_is_its_taylor_polynomial(interpreted: Callable[[Model], Any]) -> None:
    a, b = np.array([[0.0, 1.0], [-2.0, -0.3]]), np.array([0.0, 1.5])
    h = 0.25
    model = Model([x, v], [u], derivatives=[v, -2 * x - 0.3 * v + 1.5 * u], step=h, method="rk4")
    ha = h * a
    flow = np.eye(2) + ha + ha @ ha / 2 + ha @ ha @ ha / 6 + ha @ ha @ ha @ ha / 24
    push = h * (np.eye(2) + ha / 2 + ha @ ha / 6 + ha @ ha @ ha / 24) @ b
    first = evaluate.jacobian(interpreted(model), [0.3, -0.4], [0.7], [])
    np.testing.assert_allclose(first.f_x, flow, rtol=1e-14)
    np.testing.assert_allclose(first.f_u[:, 0], push, rtol=1e-14)
    np.testing.assert_allclose(first.f, flow @ [0.3, -0.4] + push * 0.7, rtol=1e-14)


def test_time_in_a_runge_kutta_step_moves_by_half_steps(interpreted: Callable[[Model], Any]) -> None:
    k = sp.Symbol("k")
    model = Model([x], [u], derivatives=[k**3 + 0 * u], step=0.5, method="rk4", time=k)
    # Simpson's rule, exact for a cubic: the integral of k^3 over [3, 4] times the step
    assert evaluate.dynamics(interpreted(model), [0.0], [0.0], [], k=3)[0] == pytest.approx(0.5 * (4**4 - 3**4) / 4)


def test_derivatives_hold_on_either_side_of_a_kink(interpreted: Callable[[Model], Any]) -> None:
    model = Model([x], [u], [sp.Abs(x) + sp.Max(x, 2 * u) + sp.Min(x**2, 4) + u])
    package = interpreted(model)
    for at, slope, curvature in ((3.0, 1 + 1 + 0, 0.0), (1.0, 1 + 0 + 2, 2.0), (-1.0, -1 + 0 - 2, 2.0)):
        first = evaluate.jacobian(package, [at], [1.0], [])
        assert first.f_x[0, 0] == slope
        assert first.f_u[0, 0] == (1.0 if at > 2 else 3.0)
        assert evaluate.hessian(package, [at], [1.0], [], [1.0]).zz[0, 0] == curvature


def test_substeps_are_steps(interpreted: Callable[[Model], Any]) -> None:
    """A step of three substeps leads where three steps of a third lead, and stiff dynamics need them."""
    a, b = sp.symbols("a b")
    rate = unknown("rate", 1.0)

    def model(step: float, **options: Any) -> Model:
        motion = [b - rate * a, sp.sin(a) * b - 0.3 * b]
        return Model([a, b], [u], derivatives=[motion[0] + u, motion[1]], step=step, name="flow", **options)

    for method in ("euler", "rk4"):
        whole, part = interpreted(model(0.6, method=method, substeps=3)), interpreted(model(0.2, method=method))
        z, force, end = np.array([0.3, -0.8, 1.7]), np.array([0.4]), np.zeros(2)
        whole.kernels.dynamics(0, z, force, whole.numbers["data"], np.zeros(whole.WORK), end)
        for _ in range(3):
            out = np.zeros(2)
            part.kernels.dynamics(0, z, force, part.numbers["data"], np.zeros(part.WORK), out)
            z = np.array([*out, z[2]])
        np.testing.assert_allclose(end, z[:2], rtol=1e-13)
