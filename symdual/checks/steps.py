"""Compares the time step of a model with an accurate integrator where the model lives, in units of its process noise.

A step that is off by a good part of the noise is an error that the filter knows nothing of: it believes in its model,
and becomes sure of the wrong unknowns. More substeps cure it, and how many are enough is found by trying.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mpmath
import numpy as np

from symdual.checks.places import Place, places
from symdual.common.arrays import Array
from symdual.integrators import INTEGRATORS, Implicit
from symdual.many_digits.collocation import divided
from symdual.many_digits.model import ExactModel
from symdual.spec.scenario import Scenario
from symdual.spec.system import System

POINTS = 12
MOST_SUMMANDS = 200  #: of models with more of them fewer points are looked at
NOTICED = 0.3  #: deviations of the process noise from which an error of the step is told
FINE = 0.1  #: what enough substeps bring it down to
SUBSTEPS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 25, 32, 40, 50, 64, 100)
SHARE = 1e-3  #: of the deviation of a state that stands for its noise where it has none
_DIGITS = 20
_TOLERANCE = 1e-10

Slope = Callable[[float, Array], Array]


@dataclass(frozen=True)
class StepAccuracy:
    """How far a step is off at worst over some points: in deviations of a state's noise, and with which state.

    `enough` are the substeps that bring it below a tenth, None if none of those that were tried do.
    """

    error: float
    state: str
    points: int
    step: float
    method: str
    substeps: int
    enough: int | None

    @property
    def noticed(self) -> bool:
        """Whether the filter would suffer from it."""
        return not self.error <= NOTICED

    def sentence(self) -> str:
        """In words."""
        if not self.noticed:
            return f"the step is off by at most {self.error:.1g} deviations of the process noise (of {self.state})"
        size = f"{self.error:.2g} deviations of the process noise" if np.isfinite(self.error) else "any amount"
        now = f"{self.substeps} substep{'s' if self.substeps > 1 else ''}"
        cure = (
            f"substeps={self.enough} would bring that below {FINE:g}"
            if self.enough is not None
            else f"not even {SUBSTEPS[-1]} substeps bring that below {FINE:g}: take a shorter step"
        )
        if self.method == "euler":
            cure += ', or method="rk4"' if self.enough is None else '; method="rk4" usually needs fewer'
        return (
            f"the step of {self.step:g} by {self.method} with {now} is off by up to {size} in {self.state} "
            f"at {self.points} points, compared with an accurate integrator; {cure}"
        )


def step_accuracy(model: System, scenarios: Sequence[Scenario] = (), seed: int = 0) -> StepAccuracy | None:
    """Compare the step of a model in continuous time at points around its starts and references, drawn from its prior.

    None for models in discrete time, and where no point was found at which the accurate integrator comes to the end.
    """
    if model.step is None or any(f.process is not None for f in model.families):
        return None
    random, exact = np.random.default_rng(seed), ExactModel(model)
    summands = sum(family.count for family in model.families)
    cases = []
    with mpmath.workdps(_DIGITS), np.errstate(all="ignore"):
        for place in _drawn(model, scenarios, random, POINTS if summands <= MOST_SUMMANDS else 2):
            x, slope = _case(model, exact, place, random)
            accurate = _accurate(slope, x, float(model.step))
            if accurate is not None:
                cases.append((x, slope, accurate, _units(model, place)))

        def worst(substeps: int) -> tuple[float, int]:
            errors = [
                np.abs(_taken(slope, x, float(model.step or 0.0), model.method, substeps) - accurate) / unit
                for x, slope, accurate, unit in cases
            ]
            largest = np.max(np.where(np.isfinite(errors), errors, np.inf), axis=0)
            return float(largest.max()), int(largest.argmax())

        if not cases:
            return None
        error, state = worst(model.substeps)
        enough = None
        if not error <= NOTICED:
            tried = (n for n in SUBSTEPS if n > model.substeps)
            enough = next((n for n in tried if worst(n)[0] <= FINE), None)
    name = model.own_states[state].name
    return StepAccuracy(error, name, len(cases), float(model.step), model.method, model.substeps, enough)


def _drawn(model: System, scenarios: Sequence[Scenario], random: np.random.Generator, count: int) -> list[Place]:
    group = places(model, scenarios, random)[0]
    return [group[int(random.integers(len(group)))] for _ in range(count)]


def _case(model: System, exact: ExactModel, place: Place, random: np.random.Generator) -> tuple[Array, Slope]:
    """A state, and the derivative of the states from there on with an input and unknowns that stay."""
    own = len(model.own_states)
    x = place.x + place.x_spread * random.uniform(-1, 1, size=len(place.x))
    u = np.clip(place.u + place.u_spread * random.uniform(-1, 1, size=len(place.u)), model.lower, model.upper)
    theta = place.theta + place.theta_spread * random.normal(size=len(place.theta))
    k = int(random.integers(0, max(place.horizon, 1)))
    kept, action, unknowns = ([mpmath.mpf(v) for v in values] for values in (x[own:], u, theta))

    def slope(time: float, state: Array) -> Array:
        found = exact.derivative(
            k, time / float(model.step or 1.0), [mpmath.mpf(v) for v in state], kept, action, unknowns
        )
        return np.array([float(v) for v in found])

    return x[:own], slope


def _units(model: System, place: Place) -> Array:
    """The deviation of the noise of each state in a step; a share of its own deviation where it has none."""
    own = len(model.own_states)
    noise = np.sqrt(np.diagonal(model.process_noise)[:own]) if model.noise is None else np.zeros(own)
    return np.asarray(np.where(noise > 0.0, noise, SHARE * place.x_spread[:own]))


def _accurate(slope: Slope, x: Array, step: float) -> Array | None:
    """The state after a step by an integrator that chooses its own steps, stiff or not; None where it fails."""
    from scipy.integrate import solve_ivp

    size = np.maximum(np.abs(x), step * np.abs(slope(0.0, x)))
    if not np.all(np.isfinite(size)):
        return None
    tolerance = _TOLERANCE * np.where(size > 0.0, size, 1.0)
    found = solve_ivp(slope, (0.0, step), x, method="LSODA", rtol=_TOLERANCE, atol=tolerance)
    return np.asarray(found.y[:, -1]) if found.success and np.all(np.isfinite(found.y)) else None


def _taken(slope: Slope, x: Array, step: float, method: str, substeps: int) -> Array:
    """The state after a step as the model takes it."""
    how = INTEGRATORS[method]
    if isinstance(how, Implicit):
        parts = divided(
            how, lambda s, y: slope(s * step, y), lambda s, y: _by_state(slope, s * step, y), x, step, substeps
        )
        return parts[-1].stages[-1] if parts else np.full(len(x), np.nan)
    h = step / substeps
    for number in range(substeps):
        t = number * h
        slopes = list[Array]()
        for shift in map(float, how.shift):
            slopes.append(slope(t + shift * h, x + shift * h * slopes[-1] if slopes else x))
        x = x + h * np.asarray(np.array([float(share) for share in how.share]) @ np.stack(slopes))
    return x


def _by_state(slope: Slope, time: float, x: Array) -> Array:
    """The slope's Jacobian by differences, good enough for Newton's method."""
    steps = 1e-7 * np.maximum(np.abs(x), 1e-3 * np.abs(x).max(initial=1e-9))
    columns = [(slope(time, x + d) - slope(time, x - d)) / (2 * h) for d, h in zip(np.diag(steps), steps, strict=True)]
    return np.stack(columns, axis=1)
