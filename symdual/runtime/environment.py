"""A scenario as a Gymnasium environment, so that learners of other libraries meet the same systems.

What is drawn for an episode, and what it costs, is what `symdual.simulate` draws and counts.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.common.transforms import values_of
from symdual.runtime import evaluate
from symdual.runtime.closed_loop import NoiseDraws, Settings, draw, plant_problem
from symdual.runtime.noise import noise_of_measurement, noise_of_step
from symdual.runtime.problem import Problem
from symdual.runtime.signals import with_signals
from symdual.runtime.step_costs import StepCosts

_SEEDS = 2**63 - 1  # as many episodes are drawn where no seed is given


class ScenarioEnvironment(gymnasium.Env):
    """A problem as an environment: one episode is one system, drawn anew at every reset.

    An action is an input; one outside of its bounds is moved to the bound. Of inputs with a finite set of values it is
    the number of the choice. An observation is a measurement. Before the first input nothing was measured, so `reset`
    returns what the prior expects. The reward of a step is minus its cost, that of the last one also minus the cost of
    the end: the rewards of an episode add up to -L.

    `reset(seed=s)` draws the episode that is run 0 of `symdual.simulate(..., seed=s)`: its start, its true parameters
    and its noise. `info` has the true state and the true parameters, which a learner must not see, by their names.

    Args:
        problem: the scenario and the system.
        truth: "scenario", "prior" or "drift", as in `symdual.simulate`.
        failure_cost: what it costs when a state is no longer finite, which ends the episode.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  (as Gymnasium has it)

    def __init__(self, problem: Problem, truth: str | None = None, failure_cost: float = 0.0) -> None:
        usual = "prior" if problem.truth is None else "scenario"
        self._settings = Settings(usual if truth is None else truth)
        self.problem = plant_problem(problem, self._settings)
        self._failure_cost = failure_cost
        self._costs = StepCosts(self.problem)
        self._signals = None if problem.signals is None else problem.signals.of(problem.plant)[1]
        self.action_space = self._actions()
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (problem.package.NY,), np.float64)
        self._k = -1

    def _actions(self) -> Any:
        bounds, choices = self.problem.bounds, self.problem.choices
        if choices is None:
            return gymnasium.spaces.Box(bounds[0], bounds[1], dtype=np.float64)
        self._choices = [row[np.isfinite(row)] for row in np.atleast_2d(choices)]
        counts = [len(row) for row in self._choices]
        if 0 in counts:
            raise SymdualError(
                "an environment has inputs within bounds or inputs with a finite set of values, not both"
            )
        return gymnasium.spaces.Discrete(counts[0]) if len(counts) == 1 else gymnasium.spaces.MultiDiscrete(counts)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Draw another system; of `options` only "truth" is known, true parameters by their names."""
        super().reset(seed=seed)
        problem = self.problem
        if (options or {}).get("truth") is not None:
            problem = problem.changed(truth=(options or {})["truth"])
        number = int(self.np_random.integers(_SEEDS)) if seed is None else seed
        self._draws: NoiseDraws = draw(problem, self._settings, [np.random.SeedSequence(number, spawn_key=(0,))])
        self._k, self._x, self._theta = 0, self._draws.starts[0], self._draws.truths[0]
        prior = self.problem.prior.mean
        nx, package = self.problem.package.NX, self._at(self.problem.package, 0)
        return evaluate.observation(package, prior[:nx], prior[nx:], 0), self._info()

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Apply an action: the next measurement, minus the cost, whether it was the last step, False, and `info`."""
        if not 0 <= self._k < self.problem.horizon:
            raise SymdualError("this episode is over: call reset")
        k, u = self._k, self._input(action)
        try:
            with np.errstate(all="ignore"):  # what is not finite ends the episode
                reward, y = -self._costs.step(k, self._x, u), self._move(k, u)
                self._k += 1
                last = self._k == self.problem.horizon
                reward -= self._costs.end(self._k, self._x) if last else 0.0
            fault = "the state, the measurement or the cost of the plant is not finite"
        except SymdualError as failure:  # of noise that is no covariance any more
            y, reward, last, fault = np.full(self.problem.package.NY, np.nan), np.nan, True, str(failure)
        if np.isfinite(self._x).all() and np.isfinite(reward) and not np.isinf(y).any():
            return y, reward, last, False, self._info()
        self._k = self.problem.horizon
        return np.nan_to_num(y), -self._failure_cost, True, False, self._info() | {"failed": fault}

    def _move(self, k: int, u: Array) -> Array:
        """One step of the true system; returns the measurement after it."""
        plant, draws = self._at(self.problem.plant, k), self._draws
        noise = noise_of_step(plant, k, self._x, u, draws.process[0, k])
        self._x = evaluate.dynamics(plant, self._x, u, self._theta, k) + noise
        if draws.wander.shape[1]:
            self._theta = draws.wander[0, k]
        plant = self._at(plant, k + 1)
        y = evaluate.observation(plant, self._x, self._theta, k + 1)
        return np.asarray(y + noise_of_measurement(plant, k + 1, self._x, draws.measurement[0, k]))

    def _input(self, action: Any) -> Array:
        if self.problem.choices is None:
            u = np.asarray(action, dtype=np.float64).reshape(self.problem.package.NU)
            return np.clip(u, *self.problem.bounds)
        numbers = np.atleast_1d(action)
        return np.array([float(row[int(n)]) for row, n in zip(self._choices, numbers, strict=True)])

    def _at(self, package: Any, k: int) -> Any:
        """A package with the true signals of a time."""
        return package if self._signals is None else with_signals(package, self._signals[k])

    def _info(self) -> dict[str, Any]:
        plant, nx = self.problem.plant, self.problem.package.NX
        truth = values_of(plant.transforms[nx:], self._theta)
        return {
            "step": self._k,
            "state": dict(zip(plant.STATES, self._x.tolist(), strict=True)),
            "truth": dict(zip(plant.belief_names[nx:], truth.tolist(), strict=True)),
        }
