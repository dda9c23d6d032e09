"""The loop from Python for foreign plants, with every way in which they can fail, and Gymnasium environments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.runtime.closed_loop import Settings, draw, run
from symdual.runtime.controller import controller
from symdual.runtime.plants import GymPlant, PlantEnded, run_foreign
from symdual.runtime.problem import Problem


@dataclass
class Line:
    """x' = x + 2 u with given noise; `trouble` is asked at every step and may raise or answer instead."""

    noise: Array
    trouble: Callable[[int], Any] = lambda k: None
    x: float = 1.0
    k: int = field(default=0, init=False)

    def reset(self, seed: int) -> None:
        self.k = 0

    def step(self, u: Array) -> Any:
        self.x += 2.0 * u[0] + self.noise[self.k]
        self.k += 1
        answer = self.trouble(self.k)
        return [self.x] if answer is None else answer


def test_a_foreign_plant_is_steered_as_in_the_compiled_loop(toy: Problem) -> None:
    settings = Settings(window=2, length=6)
    noise_draws = draw(toy, settings, np.random.SeedSequence(0).spawn(1))
    compiled = run(toy, "dual", noise_draws, settings)
    episode = run_foreign(controller(toy, "dual", window=2), Line(noise_draws.process[0, :, 0]), steps=6)
    assert episode.failure is None
    np.testing.assert_allclose(episode.inputs, compiled.inputs[0], rtol=1e-9)
    np.testing.assert_allclose(episode.means, compiled.means[0], rtol=1e-9)
    np.testing.assert_allclose(episode.measurements[1:], compiled.states[0, 1:], rtol=1e-12)
    assert np.isnan(episode.measurements[0]).all()
    np.testing.assert_allclose(episode.cost, compiled.costs[0], rtol=1e-6)  # the state is measured without noise


def boom(k: int) -> None:
    if k == 2:
        raise OSError("the line is dead")


def wordless(k: int) -> None:
    if k == 2:
        raise RuntimeError


def ended(k: int) -> None:
    if k == 2:
        raise PlantEnded


@pytest.mark.parametrize(
    ("trouble", "reason", "steps"),
    [
        (boom, r"OSError in the plant: the line is dead \(step 2\)", 1),
        (wordless, r"^RuntimeError in the plant \(step 2\)$", 1),
        (lambda k: [np.inf] if k == 2 else None, r"the measurement is infinite at step 2 \(step 2\)", 1),
        (lambda k: [1.0, 2.0] if k == 2 else None, r"the measurement y must have shape \(1,\)", 1),
        (lambda k: [1e300] if k == 2 else None, "not finite", 2),
    ],
)
def test_failures_are_marked_with_their_reason(
    toy: Problem, trouble: Callable[[int], Any], reason: str, steps: int
) -> None:
    import re

    episode = run_foreign(controller(toy, "ce", window=2), Line(np.zeros(9), trouble), steps=5)
    assert episode.failure is not None and re.search(reason, episode.failure)
    assert len(episode.inputs) == len(episode.means) - 1 == steps
    assert np.isnan(episode.cost)


def test_a_plant_that_ends_is_no_failure(toy: Problem) -> None:
    episode = run_foreign(controller(toy, "ce", window=2), Line(np.zeros(9), ended), steps=5)
    assert episode.failure is None
    assert len(episode.inputs) == 1 and len(episode.means) == 2
    assert np.isfinite(episode.cost)


@pytest.mark.parametrize("nothing", [[np.nan], np.ma.masked_array([1.0], mask=[True])])
def test_missing_measurements_are_no_failure(toy: Problem, nothing: Any) -> None:
    episode = run_foreign(controller(toy, "ce", window=2), Line(np.zeros(9), lambda k: nothing), steps=3)
    assert episode.failure is None and episode.measured.tolist() == [0, 0, 0, 0]
    assert np.isnan(episode.measurements).all()


def test_use_is_checked(toy: Problem) -> None:
    with pytest.raises(SymdualError, match="needs a controller with a moving horizon"):
        run_foreign(controller(toy, "ce"), Line(np.zeros(9)), steps=3)
    with pytest.raises(SymdualError, match="steps must be at least 1, not 0"):
        run_foreign(controller(toy, "ce"), Line(np.zeros(9)), steps=0)


# ------------------------------------------------------------------------------------------------ Gymnasium


def pendulum_angle(observation: Array, before: Array | None) -> Array:
    return np.array([np.arctan2(observation[1], observation[0])])


def test_pendulum_as_a_plant() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    environment = gymnasium.make("Pendulum-v1", max_episode_steps=3)
    plant = GymPlant(environment, pendulum_angle)
    assert plant.input_bounds.tolist() == [[-2.0], [2.0]]
    first = plant.reset(7)
    again = plant.reset(7)
    assert np.array_equal(first, again)
    theta, rate, _ = (*environment.unwrapped.state, None)
    measured = plant.step(np.array([5.0]))  # moved into the box: 2
    rate = rate + (15.0 * np.sin(theta) + 3.0 * 2.0) * 0.05
    assert measured[0] == pytest.approx(theta + rate * 0.05, abs=1e-5)
    assert len(plant.rewards) == 1
    plant.step(np.zeros(1))
    plant.step(np.zeros(1))
    with pytest.raises(PlantEnded):
        plant.step(np.zeros(1))
    with pytest.raises(SymdualError, match="the environment takes 1 inputs, not 2"):
        plant.reset(0)
        plant.step(np.zeros(2))
    environment.close()


def test_discrete_actions_are_choices() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    environment = gymnasium.make("CartPole-v1")
    plant = GymPlant(environment)
    assert plant.choices == [0.0, 1.0] and plant.input_bounds.tolist() == [[0.0], [1.0]]
    still = plant.reset(0)
    pushed = plant.step(np.array([1.0]))
    assert pushed[1] > still[1]  # to the right
    with pytest.raises(SymdualError, match=r"takes one of .* not 0.4: give them to the scenario as choices"):
        plant.step(np.array([0.4]))
    environment.close()


def test_other_actions_are_refused() -> None:
    gymnasium = pytest.importorskip("gymnasium")

    class Several:
        action_space = gymnasium.spaces.MultiDiscrete([2, 3])

    with pytest.raises(SymdualError, match="must be a box or a finite set, not MultiDiscrete"):
        GymPlant(Several())


def test_an_observation_that_is_not_finite_fails_the_episode(toy: Problem) -> None:
    class Space:
        low, high, shape, dtype = np.array([-1.0]), np.array([1.0]), (1,), np.float32

    class Broken:
        action_space = Space()

        def reset(self, seed: int, options: None) -> tuple[Array, dict[str, Any]]:
            return np.array([1.0]), {}

        def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
            return np.array([np.nan]), 0.0, False, False, {}

    episode = run_foreign(controller(toy, "ce"), GymPlant(Broken()))
    assert episode.failure == "ValueError in the plant: the observation of the environment is not finite (step 1)"
