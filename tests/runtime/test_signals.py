"""Signals at run time: forecasts of controllers, true ones of plants, recordings, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import symdual
from symdual.common.errors import SymdualError, SymdualWarning
from symdual.runtime.closed_loop import simulate
from symdual.runtime.controller import Controller, controller
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Problem
from symdual.runtime.replay import read_recording, replay
from symdual.runtime.results import described
from symdual.runtime.sweep import sweep

MODELS = Path(__file__).resolve().parents[1] / "models"
WEATHER = np.array([5.0, 6.0, 8.0, 8.0, 7.0, 5.0, 2.0])
WISH = np.array([20.0, 20.0, 20.0, 20.0, 21.0, 21.0, 21.0])


@pytest.fixture(scope="module")
def problem(shared_models: Callable[[Path], Path]) -> Problem:
    return symdual.problem(symdual.load(shared_models(MODELS / "scenarios.py") / "heated"))


def test_the_plant_sees_the_truth_and_the_controller_the_forecast(problem: Problem) -> None:
    """Without noise the states can be told by hand; the belief errs where the forecast does."""
    silent = {key: np.zeros_like(problem.package.numbers[key]) for key in ("process_noise", "measurement_noise")}
    package = replace(problem.package, numbers={**problem.package.numbers, **silent})
    exact = replace(problem, package=package, plant=package)
    (episode,) = simulate(exact, ["ce"], runs=1).values()
    x, u, loss = episode.states[0, :, 0], episode.inputs[0, :, 0], problem.truth
    assert loss is not None
    bumps = np.exp(-((x[:-1, None] - np.arange(12.0, 27.0, 2.0)) ** 2) / 2) @ loss
    np.testing.assert_allclose(x[1:], x[:-1] + 0.1 * (WEATHER[:-1] - x[:-1]) + bumps + 0.5 * u, rtol=1e-12)
    expected = (x - WISH) ** 2
    expected[:-1] += 0.1 * u**2
    np.testing.assert_allclose(episode.steps[0, :, 0], expected, rtol=1e-12)
    # the measurement is warmth + 0.02 weather, of which the belief takes 0.02 * 6 away
    assert episode.means[0, 1, 0] == pytest.approx(x[1] + 0.02 * (WEATHER[1] - 6.0), abs=1e-4)


def test_an_oracle_knows_the_true_signals(problem: Problem) -> None:
    assert problem.truth is not None
    knowing = problem.for_oracle(problem.truth).signals
    assert knowing is not None and np.array_equal(knowing.believed, knowing.true)


def test_results_are_those_of_the_same_sweep_where_a_signal_was_never_set(problem: Problem) -> None:
    """NaN is not equal to itself: a sweep could not be continued."""
    assert problem.signals is not None
    silent = replace(problem, signals=problem.signals._replace(true=np.full_like(problem.signals.true, np.nan)))
    description = sweep(silent, ["ce"], 2).description
    assert described(json.loads(json.dumps(description.to_json()))) == description


def test_a_forecast_at_run_time_counts_from_now_on(problem: Problem) -> None:
    def acted(**weather: object) -> float:
        return float(controller(problem, "ce").act(signals=weather)[0])

    assert acted(weather=-10.0) > acted(weather=6.0) == acted() > acted(weather=20.0)
    late = controller(problem, "ce")
    late.act()
    now = late.act([20.5], signals={"weather": [3.0, 2.0, 2.0, 2.0, 2.0, 2.0]})
    plain = controller(problem, "ce")
    plain.act()
    assert now > plain.act([20.5]) > 0.0


def test_the_forecast_of_a_step_is_used_when_its_effect_is_measured(problem: Problem) -> None:
    """Predict with the signal of the step before, look with that of now."""
    told = controller(problem, "ce")
    u = told.act(signals={"weather": 10.0})
    belief = told.observe([np.nan])
    loss = 0.0  # the prior mean of all features
    assert belief.mean[0] == pytest.approx(18.0 + 0.1 * (10.0 - 18.0) + loss + 0.5 * u[0], rel=1e-12)


def test_a_short_forecast_is_held_and_it_is_said_once(problem: Problem) -> None:
    told = controller(problem, "ce")
    with pytest.warns(SymdualWarning, match='"weather" has 2 values for the 7 times of the plan; the last one is held'):
        first = told.act(signals={"weather": [6.0, 4.0]})
    assert first == controller(problem, "ce").act(signals={"weather": [6.0] + [4.0] * 6})
    told.act([18.0], signals={"weather": [6.0, 4.0]})  # warnings are errors


def test_an_endless_controller_takes_forecasts_for_ever(problem: Problem) -> None:
    steady = controller(problem, "ce", window=3)
    for k in range(40):
        u = steady.act([20.0], signals={"weather": 5.0 + k % 3, "wish": 20.0})
    assert 0.0 <= u[0] <= 6.0


def test_copies_keep_the_forecast(problem: Problem) -> None:
    import copy
    import pickle

    told = controller(problem, "ce")
    told.act(signals={"weather": 3.0})
    for twin in (copy.deepcopy(told), pickle.loads(pickle.dumps(told))):
        assert isinstance(twin, Controller)
        assert twin.act([20.5]) == after(problem, 3.0).act([20.5]) != after(problem, 6.0).act([20.5])


def after(problem: Problem, weather: float) -> Controller:
    """A controller that was told of the weather at its first step."""
    told = controller(problem, "ce")
    told.act(signals={"weather": weather})
    return told


@pytest.mark.parametrize(
    ("signals", "sentence"),
    [
        ({"whether": 1.0}, 'signals names "whether", which is none of weather, wish; did you mean "weather"'),
        ({"weather": np.nan}, "must be finite numbers"),
        ({"weather": [1.0, np.inf]}, "must be finite numbers"),
        ({"weather": []}, "must be finite numbers"),
        ({"weather": [[1.0]]}, "must be finite numbers"),
        ({"weather": "cold"}, "must be finite numbers"),
    ],
)
def test_bad_forecasts_are_refused(problem: Problem, signals: dict[str, object], sentence: str) -> None:
    with pytest.raises(SymdualError, match=sentence):
        controller(problem, "ce").act(signals=signals)  # type: ignore[arg-type]


def test_a_signal_that_nobody_set_is_named(problem: Problem) -> None:
    unset = replace(problem, signals=None)
    with pytest.raises(SymdualError, match='the signal "weather" has no value at step 0'):
        controller(unset, "ce").act()
    with pytest.raises(SymdualError, match='the signal "weather" has no value at step 0'):
        simulate(unset, ["ce"], runs=1)
    assert controller(unset, "ce").act(signals={"weather": 6.0, "wish": WISH}) == controller(problem, "ce").act()


def test_models_without_signals_take_none(toy_package: LoadedPackage) -> None:
    with pytest.raises(SymdualError, match="the model has none"):
        controller(symdual.problem(toy_package), "ce").act(signals={"sun": 1.0})


def test_numbers_of_a_running_controller_can_change(problem: Problem) -> None:
    running = controller(problem, "ce")
    running.act()
    before = running.belief
    running.change(cost_weights=[0.0, 1.0], terminal_weights=0.0)
    assert running.act([18.0]) == pytest.approx(0.0, abs=1e-9)
    assert running.belief.mean[0] != before.mean[0]


def test_signals_of_a_recording(problem: Problem, tmp_path: Path) -> None:
    """A column of the table counts more than the scenario, and one of both is needed."""
    file = tmp_path / "recorded.csv"
    rows = [f"{k},{1.0 + k},{18.0 + 0.1 * k},{WEATHER[k]}" for k in range(5)]
    file.write_text("time,heat,y0,weather\n" + "\n".join(rows) + "\n")
    told = replay(problem, read_recording(file, problem.package))
    bare = tmp_path / "bare.csv"
    bare.write_text("time,heat,y0\n" + "\n".join(row.rpartition(",")[0] for row in rows) + "\n")
    forecast = replay(problem, read_recording(bare, problem.package))
    assert told.log_likelihood != forecast.log_likelihood
    same = replay(problem.changed(forecasts={"weather": WEATHER}), read_recording(bare, problem.package))
    np.testing.assert_allclose(same.means, told.means, rtol=1e-13)
    with pytest.raises(SymdualError, match='the signal "weather" has neither a column'):
        replay(replace(problem, signals=None), read_recording(bare, problem.package))
    file.write_text("time,heat,y0,weather\n0,1,18,\n1,1,18,2\n")
    with pytest.raises(SymdualError, match='line 2: the signal "weather" is missing or infinite'):
        read_recording(file, problem.package)


@pytest.mark.soak
def test_planning_to_learn_knows_the_forecast(problem: Problem) -> None:
    """Slopes by differences: plans get better, and the first input follows what is forecast."""
    planned = controller(problem, "planned")
    _, u, info = planned.step(planned.init())
    told = info.planned
    assert told is not None
    assert all(not start.improved > start.cost for start in told.starts)
    assert told.looks[0].cost == pytest.approx(told.starts[told.won].improved, rel=0.05)
    colder = controller(problem, "planned").act(signals={"weather": np.full(7, -4.0)})
    assert colder[0] > u[0] + 0.1
    assert not simulate(problem, ["planned"], 3)["planned"].outcomes.any()
