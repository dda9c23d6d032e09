"""The check of the recursions: it agrees with sound code, and names what is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symdual.checks.recursions import check_recursions
from symdual.runtime.loading import LoadedPackage
from symdual.spec.loading import load_model_file

ROOT = Path(__file__).resolve().parents[2]
MODEL = load_model_file(ROOT / "symdual/paper/models/toy.py").models["toy"]


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

    def spoiled(k: int, end: int, slot: int, asked: int, *rest: Any) -> tuple[float, bool]:
        uncertain, fallback = sound(k, end, slot, asked, *rest)
        return (-uncertain if asked == order else uncertain), fallback

    monkeypatch.setattr(package.calls, "jd_structured", spoiled)
    assert named in {r.block for r in check_recursions(MODEL, package) if not r.passed}


def test_a_plan_that_is_not_optimal_is_a_miss(package: LoadedPackage, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = package.calls.plan_through

    def spoiled(*arguments: Any) -> tuple[float, int, int, int]:
        cost, status, slot, iterations = sound(*arguments)
        return cost * 1.001, status, slot, iterations

    monkeypatch.setattr(package.calls, "plan_through", spoiled)
    assert "nominal plan" in {r.block for r in check_recursions(MODEL, package) if not r.passed}
