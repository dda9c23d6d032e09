"""Noise that depends: time-varying Kalman filters, the iterated form, and what is no covariance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual import Model
from symdual.checks import dense

from .conftest import Case

Make = Callable[..., Case]
x, v, u, k = sp.symbols("x v u k")


def test_known_noise_by_time_is_the_time_varying_kalman_filter(interpret: Callable[[Model], Any]) -> None:
    """x' = A x + B u, y = C x with Q(k) and R(k): the textbook, written out with full matrices."""
    model = Model(
        [x, v],
        [u],
        [x + 0.5 * v, 0.9 * v + u],
        observation=[x],
        process_noise=[0.01, 0.02 + 0.01 * sp.sin(k) ** 2],
        measurement_noise=[sp.Rational(1, 10) / (1 + k)],
        time=k,
        name="scheduled",
    )
    package = interpret(model)
    settings = _settings(package)
    filter_workspace, belief = (
        package.filter.make_filter_workspace(settings),
        package.records.make_belief(np.array([1.0, -0.5]), np.diag([0.5, 0.2])),
    )
    A, B, C = np.array([[1.0, 0.5], [0.0, 0.9]]), np.array([0.0, 1.0]), np.array([[1.0, 0.0]])
    mean, P = np.array([1.0, -0.5]), np.diag([0.5, 0.2])
    random = np.random.default_rng(0)
    for time in range(8):
        push, y = random.normal(size=1), random.normal(size=1)
        package.filter.step(time, belief, push, y, filter_workspace)
        mean = A @ mean + B * push
        P = A @ P @ A.T + np.diag([0.01, 0.02 + 0.01 * np.sin(time) ** 2])
        S = C @ P @ C.T + 0.1 / (2 + time)
        gain = P @ C.T / S
        mean, P = mean + gain @ (y - C @ mean), P - gain @ C @ P
        assert belief["z"][0] == pytest.approx(mean, rel=1e-12)
        assert package.records.read_covariance(belief) == pytest.approx(P, rel=1e-12, abs=1e-14)


def test_the_iterated_update_keeps_the_noise_of_the_prediction(case: Make) -> None:
    c = case("lit_iterated")
    y = np.array([0.3, -0.4])
    filter_workspace, held = c.package.filter.make_filter_workspace(c.settings), c.held
    c.package.filter.update(2, held, y, filter_workspace, np.zeros(3))
    exact = dense.update_iterated(c.reference, c.noise, 2, c.belief, y)
    assert held["z"][0] == pytest.approx(exact.mean, rel=1e-8)
    assert c.package.records.read_covariance(held) == pytest.approx(exact.covariance, rel=1e-7, abs=1e-10)
    elsewhere = dense.update(c.reference, c.noise, 2, dense.Belief(exact.mean, c.belief.covariance), y)
    assert not np.allclose(elsewhere.covariance, exact.covariance, rtol=1e-3)  # R does differ there


def _settings(package: Any) -> Any:
    """Settings whose noise is that of no point yet."""
    return package.records.make_settings(
        np.eye(package.NX), np.eye(package.NY), 1.0, 0.0, np.array([[-9.0], [9.0]]), np.zeros(package.DATA)
    )


def _trouble(interpret: Callable[[Model], Any], **noise: Any) -> Any:
    given = {"process_noise": 0.1, "measurement_noise": 0.1} | noise
    return interpret(Model([x, v], [u], [x + u, v], name="trouble", **given))


@pytest.mark.parametrize(
    ("noise", "good", "bad"),
    [
        ([x, 0.1], 0.5, -0.5),
        ([0.1, 1 / x], 0.5, 0.0),
        (sp.Matrix([[0.1, x], [x, 0.1]]), 0.09, 0.11),
        (sp.Matrix([[x, 0.1], [0.1, 1]]), 0.02, 0.0),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_a_step_without_a_covariance_leaves_no_finite_belief(
    interpret: Callable[[Model], Any], noise: Any, good: float, bad: float
) -> None:
    package = _trouble(interpret, process_noise=noise)
    for start in (good, bad):
        belief = package.records.make_belief(np.array([start, 0.0]), np.eye(2))
        package.filter.predict(0, belief, np.zeros(1), package.filter.make_filter_workspace(_settings(package)))
        assert np.isfinite(package.records.read_covariance(belief)).all() == (start == good)


def test_a_plan_to_where_measurements_have_no_noise_has_no_cost(interpret: Callable[[Model], Any]) -> None:
    package = _trouble(interpret, measurement_noise=[1 - x, 0.1])
    records = package.records
    weights = records.make_stage_costs(np.eye(2)[None].repeat(3, 0), np.ones((2, 1, 1)), np.zeros((3, 2)))
    workspace = records.make_workspace(2, weights, _settings(package))
    held = records.make_belief(np.zeros(2), np.eye(2))
    for last, fine in ((0.5, True), (3.0, False)):
        package.calls.follow(0, 2, held, np.array([[0.2], [last]]), workspace)
        assert np.isfinite(package.calls.jd_structured(0, 2, 0, 1, held, workspace)[0]) == fine


def test_an_update_without_a_covariance_says_so_and_leaves_the_belief(interpret: Callable[[Model], Any]) -> None:
    package = _trouble(interpret, measurement_noise=[1 - x, 0.1])
    filter_workspace = package.filter.make_filter_workspace(_settings(package))
    for kind in ("update", "update_consider"):
        belief = package.records.make_belief(np.array([2.0, 0.0]), np.eye(2))
        status = getattr(package.filter, kind)(0, belief, np.zeros(2), filter_workspace, np.zeros(3))
        assert status == package.filter.NOT_FINITE
        assert belief["z"][0].tolist() == [2.0, 0.0]
