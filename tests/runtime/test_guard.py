"""Rollouts that may reject the input of `dual`: when they do, what is applied instead, and who is told; through C."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import symdual
from symdual.common.errors import PackageError
from symdual.runtime import evaluate
from symdual.runtime.closed_loop import Settings, draw, run, simulate
from symdual.runtime.controller import controller
from symdual.runtime.options import Options
from symdual.runtime.problem import Problem

MODELS = Path(__file__).resolve().parents[1] / "models"
GUARDED = Options(guard=True)
PRIOR = Settings(truth="prior")

# steering with an unknown effect, in metres: what is uncertain costs little, and is not worth a probe
LANE = """
import sympy as sp
from symdual import Model, Scenario, unknown
offset, heading, steering = sp.symbols("offset heading steering")
grip = unknown("grip", mean=1.0, variance=0.1)
lane = Model(
    [offset, heading], [steering], [offset + 0.5 * heading, 0.9 * heading + grip * steering],
    process_noise=[1e-4, 1e-4], measurement_noise=[1e-2, 1e-2], bounds={steering: (-4.0, 4.0)},
)
scenario = Scenario(lane, horizon=12, state_cost=[1.0, 0.1], input_cost=0.05, start=[0.5, 0.0])
"""


@pytest.fixture(scope="module")
def make(in_c: Callable[[Path | str, str], Problem]) -> Callable[[], Problem]:
    return lambda: in_c(LANE, "lane")


@pytest.fixture
def lane(make: Callable[[], Problem]) -> Problem:
    """Twelve steps back to the middle of the lane."""
    return make()


@pytest.fixture
def reckless(lane: Problem) -> Problem:
    """The same, where `dual` counts what uncertainty costs two hundred times."""
    return replace(lane, dual_weight=200.0)


def test_what_rollouts_find_worse_is_not_applied(reckless: Problem) -> None:
    free, guarded = controller(reckless, "dual"), controller(reckless, "dual", options=GUARDED)
    _, wanted, info = free.step(free.init())
    assert info.guard is None
    state, u, info = guarded.step(guarded.init())
    told = info.guard
    assert told is not None and told.rejected and told.sure < 0.05
    np.testing.assert_array_equal(told.proposed, wanted)
    winner = told.race[told.race_won]
    assert winner.plan in ("ce", "cautious")
    np.testing.assert_array_equal(winner.u, u)
    np.testing.assert_array_equal(info.planned_inputs[0], u)
    assert info.doubts == ()
    row = info.costs[np.all(info.candidates == u, axis=1)][0]  # what `dual` says of it, which is not the least
    assert row[0] > info.costs[:, 0].min()
    assert sum(info.parts) == pytest.approx(row[0])
    assert state.plans is not None


def test_what_is_not_rejected_is_applied_to_the_bit(lane: Problem) -> None:
    free, guarded = controller(lane, "dual"), controller(lane, "dual", options=GUARDED)
    for y in (None, [1.1, 0.1], [0.4, -0.3]):
        np.testing.assert_array_equal(guarded.act(y), free.act(y))
    sure = lane.changed(prior_covariance={"grip": 0.0})
    _, u, info = controller(sure, "dual", options=GUARDED).step(controller(sure, "dual").init())
    assert info.guard is None  # nothing to learn, nothing to decide
    np.testing.assert_array_equal(u, controller(sure, "dual").act())


def test_guarded_episodes_cost_less_where_dual_is_reckless(reckless: Problem) -> None:
    free = simulate(reckless, ["dual", "ce"], 60, settings=PRIOR)
    guarded = simulate(reckless, ["dual"], 60, settings=replace(PRIOR, options=GUARDED))["dual"]
    saved, lost = free["dual"].costs - guarded.costs, free["dual"].costs - free["ce"].costs
    assert saved.mean() > 3 * saved.std() / np.sqrt(60)
    assert saved.mean() > 0.9 * lost.mean()
    again = simulate(reckless, ["dual"], 60, settings=replace(PRIOR, options=GUARDED))["dual"]
    np.testing.assert_array_equal(guarded.inputs, again.inputs)


def test_the_seed_decides_alone(reckless: Problem) -> None:
    def race(seed: int) -> list[float]:
        one = controller(reckless, "dual", options=replace(GUARDED, seed=seed))
        info = one.step(one.init())[2]
        assert info.guard is not None
        return [contestant.cost for contestant in info.guard.race]

    assert race(1) == race(1) != race(2)


def test_an_episode_in_python_is_the_compiled_one(reckless: Problem) -> None:
    known = replace(reckless, truth=np.array([1.3]))
    settings = Settings(options=GUARDED)
    draws = draw(known, settings, np.random.SeedSequence(2).spawn(1))
    episodes = run(known, "dual", draws, settings)
    one = controller(known, "dual", options=replace(GUARDED, seed=int(draws.seeds[0])))
    x, y = draws.starts[0], None
    for k in range(known.horizon):
        u = pickle.loads(pickle.dumps(one)).act(y)
        np.testing.assert_array_equal(u, one.act(y))
        np.testing.assert_allclose(u, episodes.inputs[0, k], rtol=1e-7, atol=1e-9)
        x = evaluate.dynamics(known.package, x, u, draws.truths[0]) + draws.process[0, k]
        y = x + draws.measurement[0, k]


@pytest.mark.parametrize("name", ["valved", "walled"])
def test_it_keeps_to_choices_and_away_from_constraints(in_c: Callable[[Path | str, str], Problem], name: str) -> None:
    """Valves have three values; beside a wall the references keep away from it as well."""
    task = replace(in_c(MODELS / "scenarios.py", name), dual_weight=50.0)
    rejected = 0
    one = controller(task, "dual", options=replace(GUARDED, confidence=99))
    state, y = one.init(), None
    for _ in range(4):
        state, u, info = one.step(state, y)
        y = task.package.NY * [0.3]
        rejected += info.guard is not None and info.guard.rejected
        if name == "valved":
            assert u[0] in (0.0, 0.5, 2.0) and abs(u[1]) <= 1.0
        assert sum(info.parts) == pytest.approx(min(info.costs[np.all(info.candidates == u, axis=1)][:, 0]))
    assert rejected > 0
    found = simulate(task, ["dual"], 20, settings=replace(PRIOR, options=GUARDED))["dual"]
    assert not found.outcomes.any()
    if name == "walled":
        assert np.mean(found.constraints[:, 3:, 0] > 0.0) < 0.15


def test_the_part_that_it_needs_comes_when_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "lane.py").write_text(LANE)
    folder = symdual.generate(tmp_path / "lane.py", tmp_path)[0].folder
    bare = symdual.problem(symdual.load(folder))
    with pytest.raises(PackageError, match=r"without the part planned: `symdual generate --with planned`"):
        controller(bare, "dual", options=GUARDED)
    with pytest.raises(ValueError, match="the option guard of dual needs another part"):
        bare.package.settings.cost_of("dual", 1, 12, options={"guard": 1})
    assert symdual.controller(bare, "dual", options=GUARDED).act().shape == (1,)
