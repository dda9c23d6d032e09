"""Where a model lives: the states, inputs and unknowns at which it makes sense to check it.

A scenario tells: its start, its reference, its prior, and where a short episode leads. Without one, numbers of order
one are tried, and positive numbers of several decades if the model has no finite value there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import mpmath
import numpy as np

from symdual.common.arrays import Array
from symdual.common.choices import narrowed
from symdual.many_digits.arithmetic import Number
from symdual.many_digits.model import ExactModel
from symdual.spec.scenario import Scenario
from symdual.spec.system import System

STEPS = 8  #: length of the short episode
USUAL = 1.5  #: deviation of what nothing is known about


@dataclass(frozen=True)
class Place:
    """Numbers around which a model is used, with their deviations; `horizon` bounds the time."""

    x: Array
    u: Array
    theta: Array
    x_spread: Array
    u_spread: Array
    theta_spread: Array
    horizon: int

    def narrowed(self, share: float) -> Place:
        """The same place with smaller deviations of states, inputs and unknowns."""
        spreads = {name: share * getattr(self, name) for name in ("x_spread", "u_spread", "theta_spread")}
        return replace(self, **spreads)

    def draw(self, random: np.random.Generator, share: float = 1.0) -> tuple[Array, Array, Array]:
        """A state, an input and parameters, with this share of the deviations."""
        x = self.x + share * self.x_spread * random.normal(size=len(self.x))
        u = self.u + share * self.u_spread * random.normal(size=len(self.u))
        return x, u, self.theta + share * self.theta_spread * random.normal(size=len(self.theta))


def places(model: System, scenarios: Sequence[Scenario], random: np.random.Generator) -> list[list[Place]]:
    """The places of a model: all those of its scenarios, or guesses that are to be tried one after the other."""
    found = [
        place
        for scenario in scenarios
        if scenario.model.name == model.name
        for place in _of_scenario(model, scenario, *_inputs(input_bounds(model, [scenario])), random)
    ]
    return [found] if found else [[guess] for guess in _guesses(model, *_inputs(input_bounds(model)))]


def input_bounds(model: System, scenarios: Sequence[Scenario] = ()) -> Array:
    """The bounds (2, NU) of the inputs, narrowed to the choices of the first scenario of the model that has some."""
    given = np.array([model.lower, model.upper])
    chosen = next((s.choices for s in scenarios if s.model.name == model.name and s.combinations), None)
    return given if chosen is None else narrowed(given, chosen)


def _inputs(bounds: Array) -> tuple[Array, Array]:
    """The middle of the bounds and a quarter of their distance, where there are two."""
    lower, upper = bounds
    bounded = np.isfinite(lower) & np.isfinite(upper)
    low, high = np.where(bounded, lower, 0.0), np.where(bounded, upper, 0.0)
    one_sided = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper, 0.0))
    middle = np.where(bounded, (low + high) / 2, one_sided)
    return middle, np.where(bounded & (high > low), (high - low) / 4, USUAL)


def _deviations(covariance: Array, mean: Array) -> Array:
    """Those of a prior; a tenth of the size of what is known for certain, so that its derivative is seen."""
    deviation = np.sqrt(covariance if covariance.ndim == 1 else np.diag(covariance))
    return np.where(deviation > 0, deviation, 0.1 * np.maximum(np.abs(mean), 1.0))


def _of_scenario(
    model: System, scenario: Scenario, u: Array, u_spread: Array, random: np.random.Generator
) -> Iterator[Place]:
    theta, theta_spread = scenario.prior_mean, _deviations(scenario.prior_covariance, scenario.prior_mean)
    path = _episode(model, scenario, u, u_spread, random)
    # a reference that weighs nothing is no place to be: a temperature of zero, say, of which nothing is wanted
    wanted = np.any(np.diagonal(scenario.state_cost, axis1=1, axis2=2) > 0.0, axis=0)
    references = np.where(wanted, scenario.reference, scenario.start)[: len(scenario.reference) if wanted.any() else 0]
    centres = np.array([*path, *references])
    spread = np.maximum(
        np.sqrt(np.diag(scenario.start_covariance)), np.max(np.abs(centres - scenario.start), axis=0) / 2
    )
    noise = np.sqrt(np.diag(model.process_noise))
    spread = np.where(spread > 0, spread, np.where(noise > 0, noise, 0.1 * np.maximum(np.abs(scenario.start), 1.0)))
    chosen = [scenario.start, *references[:: max(1, scenario.horizon // 3)], *path[1:]]
    for x in chosen:
        yield Place(x, u, theta, spread, u_spread, theta_spread, scenario.horizon)


def _episode(model: System, scenario: Scenario, u: Array, u_spread: Array, random: np.random.Generator) -> list[Array]:
    """A few steps of the model as written, with small inputs, as far as it stays finite."""
    exact, path = ExactModel(model), [scenario.start]
    parameters = [mpmath.mpf(v) for v in scenario.prior_mean]
    for k in range(min(STEPS, scenario.horizon)):
        action = [mpmath.mpf(v) for v in u + 0.2 * u_spread * random.normal(size=len(u))]
        state: list[Number] = exact.dynamics(k, [mpmath.mpf(v) for v in path[-1]], action, parameters)
        x = np.array([float(v) for v in state])
        if not np.all(np.isfinite(x)) or np.max(np.abs(x)) > 1e6 * (1 + np.max(np.abs(scenario.start))):
            break
        path.append(x)
    return path


def _guesses(model: System, u: Array, u_spread: Array) -> Iterator[Place]:
    theta = model.prior_mean
    theta_spread, ones = _deviations(model.prior_covariance, theta), np.ones(len(model.states))
    yield Place(0.0 * ones, u, theta, USUAL * ones, u_spread, theta_spread, 20)
    for size in (1.0, 10.0, 100.0, 1000.0):
        yield Place(size * ones, u, theta, 0.3 * size * ones, u_spread, theta_spread, 20)
