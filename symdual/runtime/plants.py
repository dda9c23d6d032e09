"""The closed loop from Python, for plants that symdual knows nothing of: a robot, a simulator, a Gymnasium environment.

plant = GymPlant(gymnasium.make("Pendulum-v1"), observe=...)
episode = run_foreign(controller(problem, "dual", window=20), plant, steps=100, seed=0)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.common.named_arrays import named
from symdual.common.transforms import moments_of
from symdual.runtime.controller import Controller, Measurement
from symdual.runtime.info import State
from symdual.runtime.problem import Problem
from symdual.runtime.step_costs import StepCosts


class Plant(Protocol):
    """The true system, as seen through its inputs and measurements."""

    def reset(self, seed: int) -> Measurement:
        """Begin an episode; returns the first measurement, or None if there is none before the first input."""
        ...

    def step(self, u: Array) -> Measurement:
        """Apply an input and return the measurement that follows; NaN entries, or None, were not measured.

        Raises PlantEnded when there is no further step, and anything else when the plant has failed.
        """
        ...


class PlantEnded(Exception):
    """The plant has come to the end of its episode."""


class ForeignEpisode(NamedTuple):
    """An episode with a foreign plant, first axis time; shorter than asked for if it ended early.

    inputs (K, NU), measurements (K+1, NY), means and variances of the belief (K+1, NZ), normalised innovation squared
    and number of measured entries (K+1,). `cost` is what the belief says about L: the squares of the believed mean plus
    its covariance, tr W P, since the true state is not known. `failure` is the reason of a failed episode, else None.
    """

    inputs: Array
    measurements: Array
    means: Array
    variances: Array
    nis: Array
    measured: NDArray[np.int64]
    cost: float
    failure: str | None


def run_foreign(controller: Controller, plant: Plant, steps: int | None = None, seed: int = 0) -> ForeignEpisode:
    """Run one episode: measure, decide, apply, until the plant or the steps end; the problem's horizon by default.

    Exceptions of the plant, an infinite measurement, and a belief or a plan that is not finite end the episode, which
    is then marked failed with its reason; nothing is raised. Errors in the use of this function are raised.

    >>> class Tank:
    ...     def reset(self, seed):
    ...         self.level = 1.0
    ...         return [self.level]
    ...     def step(self, u):
    ...         self.level += 2.0 * u[0]
    ...         return [self.level]
    >>> episode = symdual.run_foreign(symdual.controller(problem, "dual"), Tank())
    >>> episode.inputs.shape, episode.failure
    ((2, 1), None)
    """
    if steps is None:
        steps = controller.problem.horizon
    if steps < 1:
        raise SymdualError(f"steps must be at least 1, not {steps}")
    if controller.window is None and steps > controller.problem.horizon:
        raise SymdualError(
            "an episode that is longer than the scenario needs a controller with a moving horizon (window)"
        )
    record = _Record(controller)
    failure = _run(controller, plant, steps, seed, record)
    return record.episode(failure)


def _run(controller: Controller, plant: Plant, steps: int, seed: int, record: _Record) -> str | None:
    """Fill the record; returns why the episode failed."""
    state = controller.init()
    try:
        y = plant.reset(seed)
        for _ in range(steps):
            state = record.measured(state, y)
            state, u = controller.choose(state)
            record.inputs.append(u)
            y = plant.step(u.copy())
        record.measured(state, y)
    except PlantEnded:
        return None
    except Exception as failure:  # whatever a foreign plant may raise
        foreign = [] if isinstance(failure, SymdualError) else [f"{type(failure).__name__} in the plant"]
        return ": ".join([*foreign, *filter(None, [str(failure)])]) + f" (step {len(record.inputs)})"
    return None


class _Record:
    """What an episode has seen so far."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self.inputs: list[Array] = []
        self.measurements: list[Array] = []
        self.means: list[Array] = []
        self.covariances: list[Array] = []
        self.statistics: list[tuple[float, int]] = []

    def measured(self, state: State, y: Measurement) -> State:
        """Take a measurement into the belief and write both down."""
        state, statistics = self._controller.update(state, y)
        self.measurements.append(self._controller.measurement(y).copy())
        self.means.append(state.belief.mean)
        self.covariances.append(state.belief.covariance)
        self.statistics.append((statistics.nis, statistics.measured))
        return state

    def episode(self, failure: str | None) -> ForeignEpisode:
        """The record as arrays; an input whose effect was not seen is left out."""
        package = self._controller.problem.package
        count = len(self.means)
        inputs = np.array(self.inputs[: max(count - 1, 0)]).reshape(-1, package.NU)
        means = np.array(self.means).reshape(count, package.NZ)
        covariances = np.array(self.covariances).reshape(count, package.NZ, package.NZ)
        shown = moments_of(package.transforms, means, np.diagonal(covariances, axis1=1, axis2=2))
        return ForeignEpisode(
            inputs=named(inputs, tuple(package.INPUTS)),
            measurements=named(np.array(self.measurements).reshape(count, package.NY), tuple(package.MEASUREMENTS)),
            means=named(shown.mean, package.belief_names),
            variances=named(shown.variance, package.belief_names),
            nis=np.array([nis for nis, _ in self.statistics]),
            measured=np.array([measured for _, measured in self.statistics], dtype=np.int64),
            cost=self._cost(means, covariances, inputs) if failure is None else np.nan,
            failure=failure,
        )

    def _cost(self, means: Array, covariances: Array, inputs: Array) -> float:
        nx = self._controller.problem.package.NX
        return cost_along(self._controller.problem, means[:, :nx], inputs, covariances[:, :nx, :nx])


def cost_along(problem: Problem, states: Array, inputs: Array, spreads: Array | None = None) -> float:
    """L of states (K+1, NX) and inputs (K, NU), or what is expected of it: plus tr 1/2 l_xx P with P (K+1, NX, NX).

    Beyond the horizon of the problem, its cost and its references keep their last values.
    """
    last = len(inputs)
    costs = StepCosts(problem.extended(max(0, last - problem.horizon)))
    known = [None] * (last + 1) if spreads is None else list(spreads)
    steps = (costs.step(k, states[k], u, known[k]) for k, u in enumerate(inputs))
    return sum(steps) + costs.end(last, states[last], known[last])


class GymPlant:
    """A Gymnasium environment as a plant; its actions are a box of numbers, or a finite set of them (`Discrete`).

    Args:
        environment: made by `gymnasium.make`; `close` it yourself.
        observe: turns an observation into the measurement of the model, for instance angles from sines and cosines. It
            is called with the observation and the measurement before (None at a reset).
        options: handed to the environment at every reset.

    `rewards` holds the rewards since the last reset, `input_bounds` (2, NU) the bounds of the actions, for
    `Problem.input_bounds`. Of a finite set the actions are the whole numbers in `choices`, which belong into the
    `choices` of a scenario.

    >>> import gymnasium
    >>> plant = symdual.GymPlant(gymnasium.make("Pendulum-v1"))
    >>> plant.input_bounds.tolist(), plant.reset(seed=0).shape
    ([[-2.0], [2.0]], (3,))
    """

    def __init__(
        self,
        environment: Any,
        observe: Callable[[Array, Array | None], ArrayLike] = lambda observation, before: observation,
        options: dict[str, Any] | None = None,
    ) -> None:
        space = environment.action_space
        self.choices: list[float] = []
        if hasattr(space, "low") and hasattr(space, "high"):
            self.input_bounds = np.array([np.ravel(space.low), np.ravel(space.high)], dtype=np.float64)
        elif hasattr(space, "n") and hasattr(space, "start"):
            self.choices = [float(space.start + i) for i in range(int(space.n))]
            self.input_bounds = np.array([[self.choices[0]], [self.choices[-1]]])
        else:
            raise SymdualError(f"the action space of the environment must be a box or a finite set, not {space}")
        self.environment = environment
        self.rewards: list[float] = []
        self._observe = observe
        self._options = options
        self._space = space
        self._last: Array | None = None
        self._over = True

    def reset(self, seed: int) -> Array:
        """Reset the environment with this seed; returns the first measurement."""
        observation, _ = self.environment.reset(seed=seed, options=self._options)
        self.rewards.clear()
        self._over, self._last = False, None
        return self._measurement(observation)

    def step(self, u: Array) -> Array:
        """Apply an input, moved into the box, and return the measurement that follows."""
        if self._over:
            raise PlantEnded
        if len(u) != self.input_bounds.shape[1]:
            raise SymdualError(f"the environment takes {self.input_bounds.shape[1]} inputs, not {len(u)}")
        inside = np.clip(u, *self.input_bounds)
        if self.choices and float(inside[0]) not in self.choices:
            raise SymdualError(
                f"the environment takes one of {self.choices}, not {inside[0]:g}: give them to the scenario as choices"
            )
        action = int(inside[0]) if self.choices else inside.astype(self._space.dtype).reshape(self._space.shape)
        observation, reward, terminated, truncated, _ = self.environment.step(action)
        self.rewards.append(float(reward))
        self._over = bool(terminated or truncated)
        return self._measurement(observation)

    def _measurement(self, observation: Any) -> Array:
        values = np.asarray(observation, dtype=np.float64).ravel()
        if not np.all(np.isfinite(values)):
            raise ValueError("the observation of the environment is not finite")
        self._last = np.asarray(self._observe(values, self._last), dtype=np.float64)
        return self._last
