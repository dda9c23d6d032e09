"""The check of recursions on models that live away from zero, or whose processes forget what they can explain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual import Model, Scenario, features, unknown
from symdual.checks.recursions import check_recursions
from symdual.checks.slopes import SLOPE, slope_by_inputs
from symdual.spec.specification import specified

p, y, u = sp.symbols("p y u")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """The interpreter warns of what compiled code passes over: an overflow in the padding of a block."""
    with np.errstate(all="ignore"):
        yield


@pytest.fixture(scope="module")
def forgetful(interpret: Callable[[Model], Any]) -> tuple[Model, Any]:
    slope = features.gaussian_process("g", p, lengthscale=2.5, amplitude=1.3, memory=30, novelty=0.3)
    model = Model(
        [p, y], [u], [u, 0.8 * y + slope], process_noise=[0.0, 0.01], measurement_noise=0.01, name="forgetful"
    )
    return model, interpret(model)


def test_values_that_others_explain_are_combinations_in_the_reference_too(forgetful: tuple[Model, Any]) -> None:
    results = check_recursions(specified(forgetful[0]), forgetful[1])
    assert [r for r in results if not r.passed] == []
    assert max(r.error for r in results) < 1e-5
    assert any(r.error > 1e-12 for r in results)  # some were combinations, with the jitter of the package


def test_a_combination_with_wrong_shares_is_a_miss(
    forgetful: tuple[Model, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, package = forgetful
    sound = package.process.remember_g

    def spoiled(point: Any, planning: int, data: Any, row: Any, pi: Any) -> float:
        before = data[package.DATA_ENTRIES["g_state"][0]]
        left_open = float(sound(point, planning, data, row, pi))
        if data[package.DATA_ENTRIES["g_state"][0]] == before and planning == 0:
            pi *= 1.001
        return left_open

    monkeypatch.setattr(package.process, "remember_g", spoiled)
    assert any(not r.passed for r in check_recursions(specified(forgetful[0]), forgetful[1]))


def test_recursions_are_checked_where_the_scenario_is(interpret: Callable[[Model], Any]) -> None:
    """A reaction at 350 K: at 0 K, where states of order one would be, nothing is finite."""
    heat, rate = sp.symbols("heat rate")
    speed = unknown("speed", 25.0, 0.1) * sp.exp(-8750 / heat + 25)
    motion = [rate + 0.02 * (1 - rate - speed * rate), heat + 0.02 * (350 - heat + 50 * speed * rate + 2 * u)]
    model = Model([rate, heat], [u], motion, process_noise=[1e-6, 0.01], measurement_noise=[1e-6, 0.1], name="reactor")
    package = interpret(model)
    scenario = Scenario(model, 20, start=[0.5, 350.0], reference=[0.4, 360.0])
    results = check_recursions(specified(model), package, scenarios=[scenario])
    assert [r for r in results if not r.passed] == []
    assert max(r.undefined for r in results) == 0
    assert all(np.isfinite(r.error) for r in results)


def test_the_iterated_update_is_judged_by_its_own_twin(interpret: Callable[[Model], Any]) -> None:
    """The plain update differs from it by far more than rounding, and once was what it was compared with."""
    place = sp.Symbol("place")
    push = sp.Symbol("push")
    gain = unknown("gain", mean=1.0, variance=0.3)
    model = Model(
        [place],
        [push],
        [0.9 * place + gain * push],
        observation=[sp.exp(0.5 * place), place * gain],
        process_noise=1e-2,
        measurement_noise=1e-3,
        filter="iterated",
        name="iterated_check",
    )
    results = check_recursions(specified(model), interpret(model))
    assert [r.block for r in results if not r.passed] == []


def _slope_row(model: Model, package: Any, form: str = SLOPE) -> Any:
    return _of_50_digits(check_recursions(specified(model), package), form)


def _of_50_digits(results: list[Any], form: str) -> Any:
    (row,) = [r for r in results if r.block == form and r.oracle == "50 digits"]
    return row


def _spoil(package: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dual_gradient = getattr(package.calls, name)

    def spoiled(k: int, end: int, buffer: int, belief: Any, workspace: Any) -> None:
        dual_gradient(k, end, buffer, belief, workspace)
        workspace.stages["gradient_u"] *= 1.0 + 1e-6

    monkeypatch.setattr(package.calls, name, spoiled)


def test_slopes_agree_with_differences_of_many_digits(
    interpret: Callable[[Model], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parameters that move, drift and show in a bent measurement; a slope that is off by a millionth is a miss."""
    a, b = unknown("a", 0.8, 0.1), unknown("b", 1.1, 0.2)
    model = Model(
        [p, y],
        [u],
        [p + 0.3 * sp.sin(y) + 0.1 * a * u, a * y + b * sp.tanh(u) - 0.1 * p**2],
        observation=[p + 0.2 * b * y**2, sp.exp(0.3 * y)],
        transition=[0.9, 1.05],
        drift=[0.01, 0.02],
        process_noise=0.01,
        measurement_noise=0.02,
        name="bent",
    )
    package = interpret(model)
    sound = _slope_row(model, package)
    assert sound.passed and sound.error < 1e-12
    _spoil(package, "dual_gradient", monkeypatch)
    assert not _slope_row(model, package).passed


@pytest.mark.soak
def test_slopes_of_plans_whose_values_stand_for_parameters(
    interpret: Callable[[Model], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two inputs, two rows of f_theta and two of h_theta, and a state in which only an input is bent."""
    q, w = sp.symbols("q w")
    rail = features.fourier("s", p, count=14, lengthscale=2.0)
    hill = features.rbf("t", q, centres=[-1.0, 0.0, 1.0, 2.0], lengthscale=1.0)
    c, d = unknown("c", 0.4, 0.1), unknown("d", -0.2, 0.05)
    model = Model(
        [p, y, q],
        [u, w],
        [p + 0.1 * y + 0.1 * sp.tanh(u), y + 0.1 * (rail + u * sp.cos(q) - c * y), 0.9 * q + 0.2 * w + 0.1 * hill],
        observation=[p + 0.3 * d * sp.sin(q), sp.exp(0.2 * y) + 0.1 * hill],
        process_noise=1e-3,
        measurement_noise=2e-3,
        name="many_values",
    )
    package, form = interpret(model), f"{SLOPE}, lowrank"
    results = check_recursions(specified(model), package)
    assert [r.block for r in results if not r.passed] == []
    assert _of_50_digits(results, form).error < 1e-12
    _spoil(package, "dual_gradient_lowrank", monkeypatch)
    assert not _slope_row(model, package, form).passed


def test_the_slope_knows_rows_in_which_only_an_input_is_bent(interpret: Callable[[Model], Any]) -> None:
    gain = unknown("gain", 1.0, 0.2)
    model = Model(
        [p, y],
        [u],
        [p + 0.3 * y + sp.tanh(u), gain * y + u],
        process_noise=0.01,
        measurement_noise=0.01,
        name="saturated",
    )
    assert _slope_row(model, interpret(model)).passed


@pytest.fixture(scope="module")
def rail(interpret: Callable[[Model], Any]) -> tuple[Model, Any]:
    slope = features.gaussian_process("g", (p, u), lengthscale=[2.0, 1.0], amplitude=0.7, memory=12)
    dynamics = [p + 0.4 * y, y + slope * sp.cos(p) + u]
    model = Model([p, y], [u], dynamics, process_noise=0.01, measurement_noise=0.01, name="unknown_rail")
    return model, interpret(model)


def test_slopes_with_a_gaussian_process_are_those_of_the_gram_form(
    rail: tuple[Model, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    results = check_recursions(specified(rail[0]), rail[1])
    assert [r for r in results if not r.passed] == []
    (row,) = [r for r in results if r.block == SLOPE]
    assert row.error < 1e-8
    _spoil(rail[1], "dual_gradient_lowrank", monkeypatch)
    (row,) = [r for r in check_recursions(specified(rail[0]), rail[1]) if r.block == SLOPE]
    assert not row.passed


@pytest.mark.parametrize(("remembered", "exact"), [(0, True), (5, False)])
def test_slopes_of_values_for_which_there_is_no_room_are_differences(
    rail: tuple[Model, Any], remembered: int, exact: bool
) -> None:
    """Eight steps need eight of twelve places; what is remembered takes the others."""
    package, steps = rail[1], 8
    numbers, R = package.numbers, package.records
    noise = (numbers[key] for key in ("process_noise", "measurement_noise", "transition", "drift"))
    settings = R.make_settings(*noise, np.array([[-np.inf], [np.inf]]), numbers["data"].copy())
    for place in range(remembered):
        package.process.remember_g(np.array([0.1 * place, 0.5]), 0, settings["numbers"][0], np.zeros(12), np.zeros(12))
    ones = np.stack([np.eye(2)] * (steps + 1))
    weights = R.make_stage_costs(ones, np.full((steps, 1, 1), 0.1), np.zeros((steps + 1, 2)))
    workspace = R.make_workspace(steps, weights, settings, 1, True)
    held = R.make_belief(np.zeros(14), np.diag([0.1, 0.1, *np.zeros(12)]))
    inputs, found = 0.3 * np.cos(np.arange(steps))[:, None], []
    for dual_gradient in (package.calls.dual_gradient, package.calls.dual_gradient_lowrank):
        package.calls.follow(0, steps, held, inputs, workspace)
        dual_gradient(0, steps, 0, held, workspace)
        assert int(package.process.room_for(steps, settings["numbers"][0])) == exact  # what the plan met is forgotten
        found.append(slope_by_inputs(workspace, steps))
    assert np.abs(found[0]).max() > 1e-3
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)
    assert np.array_equal(found[1], found[0]) != exact
