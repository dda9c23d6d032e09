"""Constraints at run time: episodes, reports, weights that nobody gave, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual import Model, Scenario, features, unknown
from symdual.common.errors import ModelError, SymdualError, SymdualWarning
from symdual.runtime.closed_loop import Settings, simulate
from symdual.runtime.controller import controller
from symdual.runtime.costs import settings_of
from symdual.runtime.planning import Planning
from symdual.runtime.problem import Problem
from symdual.runtime.results import Results
from symdual.runtime.summary import summarise
from symdual.runtime.sweep import run_sweep, sweep
from symdual.runtime.threads import on_this_machine

MODELS = Path(__file__).resolve().parents[1] / "models"
x, v, u = sp.symbols("x v u")
model = Model([x, v], [u], [x + v, v + unknown("b") * u], name="m")


@pytest.fixture(scope="module")
def problem(in_c: Callable[[Path | str, str], Problem]) -> Problem:
    return in_c(MODELS / "scenarios.py", "walled")


def test_episodes_keep_the_backoff_that_their_controller_asks_for(problem: Problem) -> None:
    found = simulate(problem, ["ce", "cautious", "dual"], runs=60)
    late = {name: episodes.constraints[:, 3:, 0] for name, episodes in found.items()}
    assert np.mean(late["ce"] > 0.0) > 0.3
    assert np.mean(late["dual"] > 0.0) < 0.15 and np.mean(late["cautious"] > 0.0) < 0.15
    for name, episodes in found.items():
        np.testing.assert_allclose(episodes.constraints[:, :, 0], episodes.states[:, :, 0] - 1.0, err_msg=name)
        steps = np.diff(episodes.inputs[:, :, 0], axis=1)
        np.testing.assert_allclose(episodes.constraints[:, 1:-1, 1], steps - 0.7, atol=1e-12, err_msg=name)
        b = 1.3 * 0.99 ** np.arange(7)
        np.testing.assert_allclose(episodes.constraints[:, :, 2], b * episodes.states[:, :, 0] - 3.0, err_msg=name)
        assert np.all(steps < 0.75), name


def test_the_cost_of_an_episode_is_without_penalties(problem: Problem) -> None:
    (episodes,) = simulate(problem, ["ce"], runs=2).values()
    states, inputs = episodes.states[:, :, 0], episodes.inputs[:, :, 0]
    expected = np.sum((states[:, :-1] - 2.0) ** 2 + 0.01 * inputs**2, axis=1)
    np.testing.assert_allclose(episodes.costs, expected, rtol=1e-12)


def test_a_sweep_says_how_often_and_by_how_much(problem: Problem, tmp_path: Path) -> None:
    file = run_sweep(sweep(problem, ["ce", "dual"], 6, settings=Settings()), tmp_path / "sweep", on_this_machine())
    with Results(file) as results:
        summary = summarise(results)
        g = results.array("ce", "constraints")[:, 1:, 0]
        assert results.about["constraints"][0] == "position - wall <= 0"
    ce = summary.controllers[0]
    assert ce.violations[0].share == pytest.approx(np.mean(g > 0))
    assert ce.violations[0].largest == pytest.approx(g.max())
    assert any("position - wall <= 0 was violated at" in sentence for sentence in summary.sentences())
    assert summary.to_json()["controllers"][0]["violations"][0]["share"] == ce.violations[0].share


def test_weights_that_nobody_gave_follow_from_the_cost(problem: Problem) -> None:
    """A unit of position costs 1 in the cost, a unit of force 0.01, or half of that where two of them share the way."""
    weights = settings_of(problem, "dual", 1)["constraint_weights"][0]
    assert weights[0] == pytest.approx(1000.0)
    stiff = problem.changed(constraint_weight=[7.0, 8.0, 9.0])
    assert settings_of(stiff, "dual", 1)["constraint_weights"][0].tolist() == [7.0, 8.0, 9.0]


def test_probability_changes_without_new_code(problem: Problem) -> None:
    planned = {}
    for probability in (0.5, 0.9, 0.99):
        own = controller(problem.changed(probability=probability), "cautious")
        planned[probability] = own.step(own.init())[2].planned_states[2:, 0].max()
    assert planned[0.5] > planned[0.9] > planned[0.99]


@pytest.mark.parametrize("name", ["dual", "cautious"])
def test_a_search_saves_work_only_where_that_changes_nothing(problem: Problem, name: str) -> None:
    """Hopeless inputs are far dearer, and between the ends of a valley costs are those of distances of one's own."""
    one = controller(problem, name)
    state, tools = one.init(), one.solver
    u, _, _ = tools.decide(state)
    package, table = problem.package, tools.table
    planning = Planning(problem, name)
    planning.begin()
    least = planning.costs(u[None])[0, 0]
    assert table.report[package.search.REPORT_COST] == pytest.approx(least, rel=1e-4)
    around = planning.costs(u + np.linspace(-0.03, 0.03, 13)[:, None])[:, 0]
    assert least <= around.min() * (1 + 1e-5)
    grid = slice(0, 2 * package.search.SIDE + 1)
    told, alone = table.out[grid, 0], planning.costs(table.candidates[grid])[:, 0]
    hopeless = np.isinf(told)
    assert hopeless.any() and np.all(alone[hopeless] > 5.0 * least)
    np.testing.assert_allclose(told[~hopeless], alone[~hopeless], rtol=1e-9)


def test_a_start_beyond_a_wall_has_a_plan_and_a_sentence(problem: Problem) -> None:
    with pytest.warns(SymdualWarning, match="position - wall <= 0 is violated by 0.5 at the start"):
        beyond = controller(problem.changed(start={"position": 1.5}), "dual")
    assert beyond.act()[0] < -0.3
    with pytest.warns(SymdualWarning, match="position - wall <= 0 is violated by 0.5 at the start"):
        found = simulate(problem.changed(start={"position": 1.5}), ["dual"], runs=2)
    assert not found["dual"].outcomes.any()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"constraints": [sp.Symbol("y") <= 1]}, 'contains "y", which is none of'),
        ({"constraints": [unknown("b") <= 1]}, "no state or input"),
        ({"constraints": [sp.Integer(1) <= 2]}, "contains no state or input"),
        ({"constraints": [sp.Eq(x, 1)]}, "not a relation such as"),
        ({"constraints": [x]}, "not a relation such as"),
        ({"constraints": [x <= sp.oo]}, "contains no state or input|NaN or infinite"),
        ({"constraints": [features.fourier("g", x, count=2) <= 1]}, 'contains the features "g"'),
        ({"constraints": [x <= 1], "probability": 1.0}, "at least 0.5 and below 1"),
        ({"constraints": [x <= 1], "probability": 0.1}, "at least 0.5 and below 1"),
        ({"constraints": [x <= 1], "constraint_weight": -1.0}, "must not be negative"),
        ({"constraints": [x <= 1], "constraint_weight": [1.0, 2.0]}, "one number or 1 numbers"),
    ],
)
def test_bad_constraints_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence):
        Scenario(model, 4, **options)


def test_relations_of_all_directions_are_limits() -> None:
    scenario = Scenario(model, 4, constraints=[x <= 1, v >= -2, x**2 + u**2 < 4, u > x])
    assert scenario.objective is not None
    assert scenario.objective.constraints == (x - 1, -v - 2, x**2 + u**2 - 4, x - u)


def test_bad_numbers_at_run_time_are_refused(problem: Problem) -> None:
    for changes in ({"probability": 0.2}, {"constraint_weight": -1.0}, {"probability": np.nan}):
        with pytest.raises(SymdualError):
            problem.changed(**changes)  # type: ignore[arg-type]
