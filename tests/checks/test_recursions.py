"""The check of the recursions: it agrees with sound code, and names what is not."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import least_squares

from symdual.checks import dense
from symdual.checks.exact_plan import ExactPlan
from symdual.checks.recursions import check_recursions
from symdual.runtime.loading import LoadedPackage
from symdual.spec.loading import load_model_file

ROOT = Path(__file__).resolve().parents[2]
MODEL = load_model_file(ROOT / "symdual/paper/models/toy.py").specifications["toy"]


@pytest.fixture(scope="module")
def package(toy_package: LoadedPackage) -> LoadedPackage:
    return toy_package


def test_sound_recursions_pass_to_rounding(package: LoadedPackage) -> None:
    results = check_recursions(MODEL, package)
    assert {r.oracle for r in results} == {"dense", "optimiser", "50 digits"}
    assert all(r.passed for r in results)
    errors = {r.block: r.error for r in results if r.oracle == "dense"}
    # an update takes away up to 1e5 times what it leaves here (R is small beside the belief, and b is vague), so five
    # digits go with the difference; nothing else may lose any
    assert errors.pop("updated covariance") < 1e-11
    assert errors.pop("considered covariance") < 1e-12
    assert max(errors.values()) < 1e-14


@pytest.mark.parametrize(
    ("function", "named"),
    [
        ("predict", "predicted covariance"),
        ("update", "updated covariance"),
        ("update_consider", "considered covariance"),
    ],
)
def test_a_fault_in_the_filter_is_named(
    package: LoadedPackage, monkeypatch: pytest.MonkeyPatch, function: str, named: str
) -> None:
    sound = getattr(package.filter, function)

    def spoiled(time: int, belief: np.ndarray, *rest: object) -> object:
        status = sound(time, belief, *rest)
        belief["xx"][0, 0, 0] *= 1.0 + 1e-6
        return status

    monkeypatch.setattr(package.filter, function, spoiled)
    assert named in {r.block for r in check_recursions(MODEL, package) if not r.passed}


@pytest.mark.parametrize(("order", "named"), [(1, "dual cost, structured"), (2, "dual cost, second order")])
def test_a_fault_in_the_dual_cost_is_named(
    package: LoadedPackage, monkeypatch: pytest.MonkeyPatch, order: int, named: str
) -> None:
    sound = package.calls.jd_structured

    def spoiled(k: int, end: int, buffer: int, asked: int, *rest: Any) -> tuple[float, bool]:
        uncertain, fallback = sound(k, end, buffer, asked, *rest)
        return (-uncertain if asked == order else uncertain), fallback

    monkeypatch.setattr(package.calls, "jd_structured", spoiled)
    assert named in {r.block for r in check_recursions(MODEL, package) if not r.passed}


def test_a_plan_that_is_not_optimal_is_a_miss(package: LoadedPackage, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = package.calls.plan_through

    def spoiled(*arguments: Any) -> tuple[float, int, int, int]:
        cost, status, buffer, iterations = sound(*arguments)
        return cost * 1.001, status, buffer, iterations

    monkeypatch.setattr(package.calls, "plan_through", spoiled)
    assert "nominal plan" in {r.block for r in check_recursions(MODEL, package) if not r.passed}


@pytest.mark.parametrize("unit", [1.0, 1e10])
def test_the_reference_of_the_iterated_filter_does_not_depend_on_units(unit: float) -> None:
    """A rate constant of 1e10 beside a temperature: its variance must not make that of the other vanish."""

    def observation(time: int, z: np.ndarray) -> np.ndarray:
        return np.array([np.exp(z[0]) + 0.1 * z[1] / unit])

    def slope(time: int, z: np.ndarray) -> np.ndarray:
        return np.array([[np.exp(z[0]), 0.1 / unit]])

    def unused(*arguments: object) -> np.ndarray:
        raise AssertionError

    model = dense.DenseModel(1, 1, 1, 1, unused, unused, unused, observation, slope)
    noise = dense.Noise(np.zeros((1, 1)), np.array([[1e-4]]), np.eye(1), np.zeros((1, 1)))
    scale = np.array([1.0, unit])
    prior = dense.Belief(np.array([-2.0, 1.0]) * scale, np.array([[1.0, 0.3], [0.3, 1.0]]) * np.outer(scale, scale))
    found = dense.update_iterated(model, noise, 0, prior, np.array([6.0]))  # the first step goes far beyond it
    whiten = np.linalg.inv(np.linalg.cholesky(prior.covariance / np.outer(scale, scale)))

    def residuals(z: np.ndarray) -> np.ndarray:
        return np.append(whiten @ (z - prior.mean / scale), (observation(0, z * scale)[0] - 6.0) / 1e-2)

    best = least_squares(residuals, [1.5, 2.0], xtol=1e-15, ftol=1e-15, gtol=1e-15).x
    assert found.mean / scale == pytest.approx(best, rel=1e-6)


def test_a_plan_beyond_fifty_digits_has_no_slope(package: LoadedPackage, monkeypatch: pytest.MonkeyPatch) -> None:
    def singular(*arguments: object) -> object:
        raise ZeroDivisionError("matrix is numerically singular")

    monkeypatch.setattr(ExactPlan, "value", singular)
    slopes = [r for r in check_recursions(MODEL, package) if r.oracle == "50 digits"]
    assert slopes and all(r.passed and r.undefined == 1 for r in slopes)


def test_a_reference_that_runs_away_is_counted_not_warned_of(
    package: LoadedPackage, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = dense.nominal_cost

    def running_away(*arguments: Any) -> float:
        return sound(*arguments) * float(np.square(np.float64(1e300)))

    monkeypatch.setattr(dense, "nominal_cost", running_away)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = check_recursions(MODEL, package)
    assert any(r.undefined for r in results)
