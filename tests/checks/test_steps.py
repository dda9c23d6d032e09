"""The time step of a model in continuous time beside an accurate integrator."""

from __future__ import annotations

from typing import Any

import pytest
import sympy as sp

from symdual import Model, Scenario, unknown
from symdual.checks.steps import step_accuracy

s, v, u = sp.symbols("s v u")


def friction(**more: Any) -> tuple[Model, Scenario]:
    """A mass with friction that turns around within a speed of 0.2: stiff for a step of 0.02."""
    mu, g = unknown("mu", 40.0, 25.0), unknown("g", 20.0, 9.0)
    motion = [v, g * u - mu * sp.tanh(v / 0.2)]
    given: dict[str, Any] = {"step": 0.02, "method": "rk4", "bounds": {u: (-5, 5)}, **more}
    model = Model([s, v], [u], derivatives=motion, process_noise=[1e-8, 1e-6], measurement_noise=1e-4, **given)
    return model, Scenario(model, 20, input_cost=0.01, start_covariance=1e-6, reference=[1.0, 0.0], name="stop")


def test_a_step_that_is_off_by_more_than_the_noise_is_told_with_a_cure() -> None:
    model, scenario = friction()
    found = step_accuracy(model, [scenario])
    assert found is not None and found.noticed and found.error > 10.0 and found.state == "v"
    assert found.enough is not None and f"substeps={found.enough} would bring that below 0.1" in found.sentence()
    cured = step_accuracy(*_with(found.enough))
    assert cured is not None and not cured.noticed and cured.error <= 0.1


def _with(substeps: int) -> tuple[Model, list[Scenario]]:
    model, scenario = friction(substeps=substeps)
    return model, [scenario]


def test_a_step_that_no_substeps_cure() -> None:
    model, scenario = friction(step=20.0, method="euler")
    found = step_accuracy(model, [scenario])
    assert found is not None and found.enough is None
    assert found.sentence().endswith('take a shorter step, or method="rk4"')


def test_errors_have_no_units() -> None:
    errors = []
    for size in (1.0, 1e9):
        x, b = sp.Symbol("x"), unknown("b", 1.0, 0.1)
        model = Model(
            [x], [u], derivatives=[-3 * b * x + size * u], step=0.3, method="rk4", process_noise=1e-6 * size**2
        )
        found = step_accuracy(model, [Scenario(model, 5, start=size, start_covariance=0.01 * size**2, name="units")])
        assert found is not None
        errors.append(found.error)
    assert errors[0] == pytest.approx(errors[1], rel=1e-3)
    assert errors[0] > 0.1


def test_models_in_discrete_time_have_no_step() -> None:
    model = Model([s], [u], dynamics=[s + unknown("b") * u])
    assert step_accuracy(model) is None
