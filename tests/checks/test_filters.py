"""Filters side by side: what the table says is what closed loops say, and the choice follows from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

import symdual
from symdual import Model, Scenario, features, unknown
from symdual.checks.filter_runs import FilterRuns, _error_and_score
from symdual.checks.filters import Comparison, _choice, _honest, _row, compare_filters
from symdual.common.errors import SymdualError
from symdual.spec.loading import gathered

x, v, u = sp.symbols("x v u")
RUNS = 40


def compared(scenario: Scenario, folder: Path, runs: int = RUNS) -> Comparison:
    (found,) = compare_filters(gathered(scenario), runs, 3, folder, None, lambda what, share: None).values()
    return found


def lever(**more: Any) -> Scenario:
    """A mass that is pushed through a gear: force times ratio over mass, both unknown, seen finely."""
    ratio, lightness = unknown("ratio", 1.0, 0.3**2), unknown("lightness", 1.0, 0.3**2)
    given: dict[str, Any] = {"drift": [1e-4, 0.0], "measurement_noise": sp.diag(1e-6 * (1 + x**2), 1e-6)} | more
    motion = [x + 0.3 * v, v + 0.3 * ratio * lightness * u]
    model = Model([x, v], [u], motion, process_noise=[1e-8, 1e-6], name="lever", **given)
    return Scenario(model, 8, input_cost=0.1, start_covariance=0.01, reference=[1.0, 0.0])


def test_the_own_filter_is_judged_as_in_closed_loop_and_a_better_one_is_found(tmp_path: Path) -> None:
    found = compared(lever(), tmp_path)
    problem = symdual.problem(lever(), folder=tmp_path)
    loop = symdual.simulate(problem, "ce", RUNS, 3, truth="drift").summary().controllers[0]
    own = found.row("extended")
    assert loop.nees_parameters is not None and loop.nis is not None
    assert own.nees == pytest.approx(loop.nees_parameters.mean, rel=1e-6)
    assert own.nis == pytest.approx(loop.nis.mean, rel=1e-9)
    other = found.row("second_order")
    assert own.nees is not None and other.nees is not None and other.nees < 0.5 * own.nees
    assert own.verdict == "overconfident" and not found.passed and found.chosen == "second_order"
    assert "the truth is more likely than under extended" in found.reason
    assert found.size == 2 and found.subject == "unknowns" and own.lost == 0 and own.time == 1.0


def test_where_nothing_is_curved_there_is_nothing_to_choose(tmp_path: Path) -> None:
    model = Model([x], [u], [0.9 * x + u], process_noise=0.1, measurement_noise=0.0, name="plain")
    found = compared(Scenario(model, 5, start_covariance=1.0), tmp_path, 5)
    assert [row.name for row in found.rows] == ["extended"] and "second_order" in found.rows[0].same
    assert found.subject == "states" and found.passed
    said = " ".join(found.sentences())
    assert "plain has no unknowns" in said and "no other filter can differ" in said


def test_an_unknown_function_is_not_drawn_and_leaves_filters_out(tmp_path: Path) -> None:
    slope = features.gaussian_process("slope", x, "squared_exponential", lengthscale=1.0)
    model = Model([x], [u], [x + 0.1 * slope + u], process_noise=0.01, measurement_noise=0.01, name="guessed")
    plant = Model([x], [u], [x + 0.1 * sp.sin(x) + u], process_noise=0.01, measurement_noise=0.01, name="sine")
    found = compared(Scenario(model, 4, plant=plant), tmp_path, 5)
    assert "second_order" in found.left_out and found.subject == "states"
    assert "the unknown function slope cannot be drawn" in " ".join(found.sentences())
    with pytest.raises(SymdualError, match="no true"):
        compared(Scenario(model, 4), tmp_path, 5)


def test_a_model_without_a_scenario_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SymdualError, match="has no Scenario"):
        compare_filters(gathered(lever().model), 5, 0, tmp_path, None, lambda what, share: None)


# ------------------------------------------------------------ judging


def test_the_score_is_best_for_the_belief_that_is_right() -> None:
    random = np.random.default_rng(0)
    root = random.standard_normal((3, 3))
    right, usual = root @ root.T, np.array([1.0, 4.0, 0.25])
    errors = random.standard_normal((4000, 3)) @ root.T
    mean = {share: np.mean([_error_and_score(e, share * right, usual)[1] for e in errors]) for share in (0.6, 1.0, 1.6)}
    assert mean[1.0] < mean[0.6] - 0.05 and mean[1.0] < mean[1.6] - 0.05
    units = np.array([1e6, 1.0, 1e-6])
    scaled = _error_and_score(errors[0] * units, right * np.outer(units, units), usual * units**2)
    assert scaled == pytest.approx(_error_and_score(errors[0], right, usual), rel=1e-6)


def runs_of(scores: list[float], seconds: float) -> FilterRuns:
    values = np.array(scores)
    measured = np.where(np.isnan(values), np.nan, 1.0)
    return FilterRuns(np.ones_like(values), np.ones_like(values), values, measured, measured, seconds)


@pytest.mark.parametrize(
    ("better", "chosen", "reason"),
    [
        ([0.0, 0.1, -0.1, 0.0], "first", "none is simpler"),
        ([-0.01] * 4, "first", "none is simpler"),  # certain, and too little to matter
        ([-9.0, 9.0, -9.0, 8.0], "first", "none is simpler"),  # much, and no more than chance
        ([-3.0, -3.1, -2.9, -3.0], "later", "more likely than under first, by 3 in log p (2.97 to 3.0"),
        ([0.5, 0.5, 0.5, -800.0], "later", "more likely than under first, by 200 in log p"),  # a few runs that are lost
        ([-3.0, -3.1, -2.9, np.nan], "first", "later in 5"),
    ],
)
def test_the_simplest_filter_that_is_not_beaten(better: list[float], chosen: str, reason: str) -> None:
    found = {"first": runs_of([0.0] * 20, 1.0), "later": runs_of(better * 5, 2.0)}
    rows = tuple(_row(name, (), found, 2) for name in found)
    named, why = _choice(found, rows)
    assert named == chosen and reason in why


def test_the_bands_are_those_of_an_honest_filter() -> None:
    random, count, size = np.random.default_rng(1), 41, 3
    squares = random.chisquare(size, (20_000, count)) / size
    one = replace_nees(runs_of([0.0] * count, 1.0), squares[0])
    bands = _honest({"one": one}, size)
    for key, values in (("nees", squares.mean(axis=1)), ("median", np.median(squares, axis=1))):
        outside = np.mean(values < bands[key][0]), np.mean(values > bands[key][1])
        assert min(outside) > 3e-4 and max(outside) < 2.5e-3


def replace_nees(runs: FilterRuns, nees: np.ndarray[Any, Any]) -> FilterRuns:
    return runs._replace(nees=nees)


def test_the_word_of_a_comparison_follows_the_models_own_filter(tmp_path: Path) -> None:
    rows = tuple(
        _row(name, (), {name: replace_nees(runs_of([0.0] * 9, 1.0), np.full(9, nees))}, 2)
        for name, nees in (("extended", 9.0), ("second_order", 1.0))
    )
    found = Comparison("m", "s", "extended", 9, 0, "unknowns", 2, rows, {}, "second_order", "take it", {}, ())
    assert not found.passed and replace(found, own="second_order").passed
    assert "extended, which the model uses, is overconfident" in " ".join(found.sentences())
