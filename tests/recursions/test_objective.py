"""Costs by expressions in the generated recursions: against dense numpy, quadratic forms and exact costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual import Model, features, signal, unknown
from symdual.checks.kernels import check_kernels
from symdual.checks.recursions import check_recursions
from symdual.spec.objective import Objective, Terms
from symdual.spec.specification import Specification, specified

x, v, p, q, k = sp.symbols("x v p q k")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def _two_inputs() -> Specification:
    """Squares that are not affine, with time in them; three states of very different size."""
    T = sp.Symbol("T")
    a, b = unknown("a", 0.4, 0.3), unknown("b", 1.0, 0.5)
    motion = [x + 0.1 * v + 0.1 * p, 0.9 * v + b * p * sp.cos(x) - 0.2 * q, T + 1e-2 * a * (400 - T) + 30 * q]
    cost = [sp.sin(x) + 0.1 * q, v * p, (T - 400) / 50, p - 0.5 * q, 0.01 * k * x]
    model = Model([x, v, T], [p, q], motion, process_noise=[1e-3, 1e-3, 4.0], time=k, name="two_inputs")
    return specified(model, Objective(Terms(tuple(cost)), Terms((x * v, T / 100))))


def _saddle() -> Specification:
    """Any expression: its curvature is indefinite nearly everywhere."""
    a = unknown("a", 0.8, 0.3)
    model = Model([x, v], [p], [x + 0.3 * v, v + a * sp.sin(x) + p], process_noise=0.01, name="saddle")
    return specified(
        model, Objective(Terms((1 - sp.cos(x) + x * v + x * p + p**2,), False), Terms((-sp.cos(v) + x * v,), False))
    )


def _many() -> Specification:
    """As many features as steps and more: the low-rank form."""
    slope = features.fourier("g", x, count=10, lengthscale=2.0)
    model = Model([x, v], [p], [x + 0.4 * v, v + slope + p], process_noise=0.01, measurement_noise=0.01, name="many")
    return specified(model, Objective(Terms((sp.sin(x), v * p, p)), Terms((sp.cosh(x / 3),), False)))


@pytest.fixture(scope="module")
def packages(interpret: Callable[[Model], Any]) -> dict[str, tuple[Model, Any]]:
    return {model.name: (model, interpret(model)) for model in (_two_inputs(), _saddle(), _many())}


@pytest.mark.parametrize("name", ["two_inputs", "saddle", "many"])
def test_every_recursion_agrees_with_dense_numpy(packages: dict[str, tuple[Model, Any]], name: str) -> None:
    results = check_recursions(*packages[name])
    assert [r for r in results if not r.passed] == []
    assert sum("dual cost" in r.block for r in results) >= 3
    assert max(r.undefined for r in results) == 0


@pytest.mark.parametrize("name", ["two_inputs", "saddle"])
def test_the_kernels_of_a_cost_agree_with_many_digits(packages: dict[str, tuple[Model, Any]], name: str) -> None:
    results = check_kernels(*packages[name], points=6)
    assert [r for r in results if not r.passed] == []
    assert {"l", "e"} <= {r.block for r in results}


@pytest.mark.parametrize(
    ("name", "module", "function"),
    [
        ("saddle", "objective", "make_convex"),
        ("two_inputs", "dual_cost", "add_hessian_of_end"),
        ("two_inputs", "dual_cost", "add_hessian_of_stage"),
    ],
)
def test_a_cost_without_its_curvature_is_a_miss(
    packages: dict[str, tuple[Model, Any]], monkeypatch: pytest.MonkeyPatch, name: str, module: str, function: str
) -> None:
    model, package = packages[name]
    monkeypatch.setattr(getattr(package, module), function, lambda *arguments: None)
    assert any(not r.passed for r in check_recursions(model, package))


def test_the_clipped_curvature_is_the_nearest_that_is_semidefinite(packages: dict[str, tuple[Model, Any]]) -> None:
    _, package = packages["saddle"]
    random = np.random.default_rng(0)
    scratch, step = np.zeros(1, package.records.SCRATCH)[0], np.zeros(1, package.records.POINT)[0]
    for _ in range(20):
        root = random.normal(size=(3, 3))
        joint = root + root.T
        step.W[:], step.N[:], step.U[:] = joint[:2, :2], joint[2:, :2], joint[2:, 2:]
        package.convex.make_convex(step, scratch)
        got = np.block([[step.W, step.N.T], [step.N, step.U]])
        values, vectors = np.linalg.eigh(joint)
        np.testing.assert_allclose(got, (vectors * np.maximum(values, 0)) @ vectors.T, atol=1e-13)


# ------------------------------------------------------------------ known answers

A, B, Q = np.array([[1.0, 0.4], [-0.2, 0.9]]), np.array([[0.1], [0.7]]), np.diag([0.02, 0.05])
W, U, N = np.diag([2.0, 0.5]), np.array([[0.3]]), np.array([[0.2, -0.25]])
STEPS = 6


def _linear(name: str) -> Model:
    motion = list(sp.Matrix(A) * sp.Matrix([x, v]) + sp.Matrix(B) * p)
    return Model([x, v], [p], motion, process_noise=Q, name=name)


def _decision(package: Any, arrays: tuple[Any, ...], ends: Any = None) -> tuple[float, float]:
    """Jbar of the best plan and Jd at order 1, from x = (1, -2) known."""
    records, calls = package.records, package.calls
    zeros = np.zeros(0)
    settings = records.make_settings(Q, np.zeros((2, 2)), zeros, zeros, np.array([[-np.inf], [np.inf]]), zeros)
    if ends is not None:
        settings["ends"] = ends
    workspace = records.make_workspace(STEPS, records.make_stage_costs(*arrays), settings, order=2)
    belief = records.make_belief(np.array([1.0, -2.0]), np.zeros((2, 2)))
    first = np.zeros(1)
    _, _, _ = calls.certainty_equivalent(0, STEPS, belief, workspace, first)
    cost, status, buffer, _ = calls.plan_through(0, STEPS, first, workspace)
    assert status == package.nominal.CONVERGED
    return cost, calls.jd_structured(0, STEPS, buffer, 1, belief, workspace)[0]


def _exact(r: np.ndarray, s: np.ndarray) -> float:
    """The expected cost of x' = A x + B u + noise by dynamic programming on (x, 1), with cross terms and references."""
    P = np.block([[W, -(W @ r)[:, None]], [-(W @ r)[None], np.array([[r @ W @ r]])]])
    F, G = np.block([[A, np.zeros((2, 1))], [np.zeros((1, 2)), np.ones((1, 1))]]), np.vstack([B, [[0.0]]])
    shift = np.block([[np.eye(2), -r[:, None], np.zeros((2, 1))], [np.zeros((1, 2)), -s[:, None], np.eye(1)]])
    joint = shift.T @ np.block([[W, N.T], [N, U]]) @ shift  # over (x, 1, u)
    added = 0.0
    for _ in range(STEPS):
        added += float(np.sum(P[:2, :2] * Q))
        step = np.hstack([F, G])
        whole = joint + step.T @ P @ step
        P = whole[:3, :3] - whole[:3, 3:] @ np.linalg.solve(whole[3:, 3:], whole[3:, :3])
    start = np.array([1.0, -2.0, 1.0])
    return float(start @ P @ start) + added


def test_cross_terms_and_references_give_the_exact_expected_cost(interpret: Callable[[Model], Any]) -> None:
    package = interpret(specified(_linear("crossed"), Objective()))
    assert package.LINEAR
    r, s = np.array([0.7, 0.1]), np.array([-0.4])
    arrays = np.repeat(W[None], STEPS + 1, 0), np.repeat(U[None], STEPS, 0), np.tile(r, (STEPS + 1, 1))
    arrays += np.repeat(N[None], STEPS, 0), np.tile(s, (STEPS, 1)), np.zeros((STEPS, 0))
    assert sum(_decision(package, arrays)) == pytest.approx(_exact(r, s), rel=1e-12)


def test_the_same_cost_as_squares_and_as_an_expression(interpret: Callable[[Model], Any]) -> None:
    """The quadratic form written out in three ways is one cost."""
    s, r = -0.4, sp.Matrix([0.7, 0.1])
    error = sp.Matrix([x, v, p]) - sp.Matrix([*r, s])
    joint = np.block([[W, N.T], [N, U]])
    root = sp.Matrix(np.linalg.cholesky(joint).T)
    residuals, ends = tuple(root * error), (sp.sqrt(2) * error[0], sp.sqrt(0.5) * error[1])
    none = np.zeros((STEPS + 1, 2, 2)), np.zeros((STEPS, 1, 1)), np.zeros((STEPS + 1, 2)), 0.0, 0.0
    squares = interpret(specified(_linear("squares"), Objective(Terms(residuals), Terms(ends))))
    value, last = (error.T * sp.Matrix(joint) * error)[0], 2.0 * error[0] ** 2 + 0.5 * error[1] ** 2
    values = interpret(specified(_linear("values"), Objective(Terms((value,), False), Terms((last,), False))))
    exact = _exact(np.array([0.7, 0.1]), np.array([s]))
    assert squares.LINEAR and not values.LINEAR
    assert sum(_decision(squares, (*none, np.ones((STEPS, 3))), np.ones(2))) == pytest.approx(exact, rel=1e-12)
    assert sum(_decision(values, (*none, np.ones((STEPS, 1))), np.ones(1))) == pytest.approx(exact, rel=1e-9)
    assert sum(_decision(squares, (*none, np.zeros((STEPS, 3))), np.zeros(2))) == 0.0


def test_a_price_without_curvature_drives_an_input_to_its_bound(interpret: Callable[[Model], Any]) -> None:
    """Selling as much as possible: the cost is a slope, and the best input lies at a bound."""
    package = interpret(
        specified(Model([x], [p], [0.5 * x + p], name="price"), Objective(Terms((-3.0 * p + 0.1 * x,), False)))
    )
    records, zeros = package.records, np.zeros(0)
    settings = records.make_settings(np.zeros((1, 1)), np.zeros((1, 1)), zeros, zeros, np.array([[-2.0], [5.0]]), zeros)
    weights = records.make_stage_costs(
        np.zeros((4, 1, 1)), np.zeros((3, 1, 1)), np.zeros((4, 1)), 0.0, 0.0, np.ones((3, 1))
    )
    workspace = records.make_workspace(3, weights, settings)
    u = np.zeros(1)
    cost, status, buffer = package.calls.certainty_equivalent(
        0, 3, records.make_belief(np.ones(1), np.zeros((1, 1))), workspace, u
    )
    assert status == package.nominal.CONVERGED
    assert workspace.plan["u"][buffer, :3, 0].tolist() == [5.0, 5.0, 5.0]
    assert cost == pytest.approx(-45.0 + 0.1 * (1.0 + 5.5 + 7.75))


# ------------------------------------------------------------------ signals


def _heated() -> Specification:
    """Signals in dynamics, observation, cost and the cost of the end, with enough features for the low-rank form."""
    weather, wish = signal("weather", usual=5.0), signal("wish", usual=2.0)
    slope = features.fourier("g", x, count=10, lengthscale=2.0)
    motion = [x + 0.1 * (weather - x) + 0.4 * v, 0.9 * v + slope + p * sp.cos(weather)]
    model = Model([x, v], [p], motion, observation=[x + 0.1 * weather * v, v], process_noise=0.01, name="heated")
    return specified(model, Objective(Terms((x - wish, sp.sin(v) * weather, p)), Terms((sp.cosh(x - wish),), False)))


def test_signals_reach_every_kernel_at_their_own_time(interpret: Callable[[Model], Any]) -> None:
    model = _heated()
    package = interpret(model)
    results = check_recursions(model, package) + check_kernels(model, package, points=3)
    assert [r for r in results if not r.passed] == []
    assert any("lowrank" in r.block for r in results)


def _bent() -> Specification:
    """A signal in a curvature so mild that order 2 never falls back."""
    weather = signal("weather", usual=5.0)
    motion = 0.5 * x + p + 0.002 * weather * x * p + unknown("b", 0.1, 0.01) * x
    return specified(Model([x], [p], [motion], name="bent"))


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("trajectory", "set_signals"),
        ("riccati", "observe_planned"),
        ("objective", "set_signals"),
        ("dual_cost", "set_signals"),
        ("lowrank", "observe_planned"),
    ],
)
def test_a_signal_of_the_wrong_time_is_a_miss(
    interpret: Callable[[Model], Any], monkeypatch: pytest.MonkeyPatch, module: str, name: str
) -> None:
    model = (_bent() if module == "dual_cost" else _heated()).named(f"late_{module}")
    package = interpret(model)
    sound = getattr(package.signals, name)
    monkeypatch.setattr(getattr(package, module), name, lambda k, *rest: sound(max(k - 1, 0), *rest))
    assert any(not r.passed for r in check_recursions(model, package))
