"""The check of the recursions: it agrees with sound code, and names what is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sympy as sp

from symdual import Model, unknown
from symdual.checks.recursions import check_recursions
from symdual.runtime.loading import LoadedPackage

x, u = sp.symbols("x u")
MODEL = Model([x], [u], [x + unknown("b", 1.0, 10.0) * u], process_noise=0.1, name="toy")


@pytest.fixture(scope="module")
def package(compiled: Callable[[Model], LoadedPackage]) -> LoadedPackage:
    return compiled(MODEL)


def test_sound_recursions_pass_to_rounding(package: LoadedPackage) -> None:
    results = check_recursions(MODEL, package)
    assert {r.oracle for r in results} == {"dense", "optimiser"}
    assert all(r.passed for r in results)
    assert max(r.error for r in results if r.oracle == "dense") < 1e-12


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

    def spoiled(time: int, mean: object, held: object, *rest: object) -> object:
        status = sound(time, mean, held, *rest)
        held[0, 0] *= 1.0 + 1e-6  # type: ignore[index]
        return status

    monkeypatch.setattr(package.filter, function, spoiled)
    assert named in {r.block for r in check_recursions(MODEL, package) if not r.passed}


@pytest.mark.parametrize("form", ["structured", "second_order", "lowrank"])
def test_a_fault_in_the_dual_cost_is_named(package: LoadedPackage, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    sound = getattr(package.dual_cost, f"cost_of_inputs_{form}")

    def spoiled(*arguments: object) -> object:
        status = sound(*arguments)
        arguments[-1][package.dual_cost.OUT_UNCERTAIN] *= -1.0  # type: ignore[index]
        return status

    monkeypatch.setattr(package.dual_cost, f"cost_of_inputs_{form}", spoiled)
    missed = {r.block for r in check_recursions(MODEL, package) if not r.passed}
    assert f"dual cost, {form.replace('_', ' ')}" in missed


def test_a_plan_that_is_not_optimal_is_a_miss(package: LoadedPackage, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = package.nominal.nominal

    def spoiled(*arguments: object) -> tuple[float, int, int, int]:
        cost, status, slot, iterations = sound(*arguments)
        return cost * 1.001, status, slot, iterations

    monkeypatch.setattr(package.nominal, "nominal", spoiled)
    assert "nominal plan" in {r.block for r in check_recursions(MODEL, package) if not r.passed}
