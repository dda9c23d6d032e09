"""Scenarios as Gymnasium environments: what learners of other libraries meet is what `simulate` runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symdual
from symdual.common.errors import SymdualError
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Problem
from tests.goldens import ROOT

gymnasium = pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env  # noqa: E402

from symdual.environments import NAME  # noqa: E402
from symdual.runtime.environment import ScenarioEnvironment  # noqa: E402

# a signal from outside, noise that depends on the state, a cost by an expression, an unknown with a bound, drift
STOVE = """
import sympy as sp
from symdual import Model, Scenario, signal, unknown
room, wall, power = sp.symbols("room wall power")
outside = signal("outside")
gain = unknown("gain", mean=1.0, variance=0.1, positive=True)
stove = Model(
    states=[room, wall],
    inputs=[power],
    dynamics=[0.8 * room + 0.2 * wall + gain * power, 0.9 * wall + 0.1 * (room + outside) / 2],
    observation=[room],
    process_noise=[1e-3 * (1 + room**2), 1e-4],
    measurement_noise=1e-2,
    drift=1e-3,
    bounds={power: (0, 2)},
)
scenario = Scenario(
    stove, horizon=6, start=[1.0, 0.5], start_covariance=[0.1, 0.1], signals={"outside": [0, 1, 2, 3, 2, 1, 0]},
    cost=(room - 2) ** 2 * (1 + 0.1 * outside**2) + power**2 / 10, terminal_cost=(room - 2) ** 4,
)
"""
VALVE = """
import sympy as sp
from symdual import Model, Scenario, unknown
x, u = sp.symbols("x u")
b = unknown("b", mean=1.0, variance=0.1)
valve = Model([x], [u], [x + b * u], process_noise=1e-3, measurement_noise=1e-3, bounds={u: (-1, 1)})
scenario = Scenario(valve, horizon=3, start=1.0, choices={u: [-1.0, 0.0, 0.5]})
"""


@pytest.fixture(scope="module")
def stove(make_quickly: Callable[[str, str], LoadedPackage]) -> Problem:
    return symdual.problem(make_quickly("stove", STOVE))


def check(own: ScenarioEnvironment) -> None:
    """Gymnasium's own check; it would rather have other bounds, which are the user's here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*(infinity|normalized).*")
        check_env(own, skip_render_check=True)


@pytest.mark.parametrize("truth", ["prior", "drift"])
def test_an_episode_is_that_of_a_simulation(stove: Problem, truth: str) -> None:
    """Same start, system, noise and cost: the inputs of `ce` lead to its states, and the rewards add up to -L."""
    episodes = symdual.simulate(stove, "ce", runs=1, seed=7, truth=truth)["ce"]
    own = ScenarioEnvironment(stove, truth)
    first, info = own.reset(seed=7)
    assert first == pytest.approx([1.0])  # what is expected, for nothing was measured yet
    assert info["truth"]["gain"] == pytest.approx(episodes.truths["gain"][0])
    rewards, told = [], []
    for k, u in enumerate(episodes.inputs[0]):
        y, reward, over, cut, info = own.step(np.asarray(u))
        assert y.shape == (1,) and not cut and over == (k == 5)
        assert list(info["state"].values()) == pytest.approx(episodes.states[0, k + 1].tolist(), rel=1e-9)
        rewards.append(reward)
        told.append(info["truth"]["gain"])
    assert -sum(rewards) == pytest.approx(episodes.costs[0], rel=1e-9)
    assert (len(set(told)) > 1) == (truth == "drift")
    with pytest.raises(SymdualError, match="this episode is over: call reset"):
        own.step(np.zeros(1))


def test_it_keeps_what_gymnasium_asks_for(stove: Problem, toy: Problem) -> None:
    for problem in (stove, toy):
        check(ScenarioEnvironment(problem))


def test_seeds_and_wishes_are_kept(stove: Problem) -> None:
    own = ScenarioEnvironment(stove)
    truths = [own.reset(seed=seed)[1]["truth"]["gain"] for seed in (1, 2, 1)]
    assert truths[0] == truths[2] != truths[1]
    assert own.reset()[1]["truth"]["gain"] != own.reset()[1]["truth"]["gain"]  # without a seed another one each time
    assert own.reset(seed=1, options={"truth": {"gain": 0.25}})[1]["truth"]["gain"] == pytest.approx(0.25)
    low = own.step(np.array([-5.0]))[4]["state"]
    own.reset(seed=1, options={"truth": {"gain": 0.25}})
    assert own.step(np.array([0.0]))[4]["state"] == low  # moved to its bound


def test_choices_are_numbers(make_quickly: Callable[[str, str], LoadedPackage]) -> None:
    own = ScenarioEnvironment(symdual.problem(make_quickly("valve", VALVE)))
    assert own.action_space == gymnasium.spaces.Discrete(3)
    check(own)
    before, after = [], []
    for action in range(3):
        _, info = own.reset(seed=0, options={"truth": {"b": 1.0}})
        before.append(info["state"]["x"])
        after.append(own.step(action)[4]["state"]["x"])
    assert np.diff(after) == pytest.approx([1.0, 0.5])
    assert len(set(before)) == 1


def test_a_state_that_is_lost_ends_the_episode(stove: Problem, toy: Problem) -> None:
    for problem, sentence in ((stove, "process_noise[0, 0] = "), (toy, "the state, the measurement or the cost")):
        own = ScenarioEnvironment(problem, failure_cost=50.0)
        own.reset(seed=0)
        own._x = np.full(problem.package.NX, 1e308)
        y, reward, over, _, info = own.step(np.zeros(1))
        assert over and reward == -50.0 and info["failed"].startswith(sentence) and np.isfinite(y).all()


def test_gymnasium_makes_it_from_a_model_file(shared_models: Callable[[Path], Path]) -> None:
    toy = ROOT / "symdual/paper/models/toy.py"
    arguments: dict[str, Any] = {"model": str(toy), "folder": str(shared_models(toy))}
    environment = gymnasium.make(f"symdual.environments:{NAME}", **arguments)
    assert environment.reset(seed=0)[0].shape == (1,)
    total = sum(environment.step(np.array([0.1]))[1] for _ in range(2))
    assert np.isfinite(total) and total < 0
