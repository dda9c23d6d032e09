"""How fast a model in continuous time is where it goes, against the limit of its method: whether its step is safe.

A rate is |lambda| of an eigenvalue of G_x. Where it decays and the rate times the step is beyond the limit of an
explicit method, what should decay grows, whatever the accuracy that is wanted. With its unknowns at the prior mean,
the model is followed from the start of each scenario twice: by an accurate integrator with its inputs at rest, and, if
there is a package, along the certainty-equivalent plan, from each of its states by many short steps.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import mpmath
import numpy as np

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.integrators import INTEGRATORS, Explicit
from symdual.many_digits.arithmetic import Number
from symdual.many_digits.model import ExactModel, first_difference
from symdual.runtime.controller import controller
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import problem
from symdual.runtime.stiffness import fastest_within, step_length
from symdual.spec.scenario import Scenario
from symdual.spec.system import System

LOOKS = 60  #: at most along the way of a scenario
MOST_SUMMANDS = 200  #: of models with more of them only the start is looked at
_DIGITS = 40  # differences with a step of 1e-25 need them
_TOLERANCE = 1e-5

Slope = Callable[[float, list[Number]], list[Number]]


@dataclass(frozen=True)
class Stiffness:
    """The fastest decaying rate that was met, times the step of the method, and where."""

    rate: float
    product: float
    limit: float
    scenario: str
    time: float
    planned: bool
    method: str
    substeps: int

    @property
    def unsafe(self) -> bool:
        """Whether the method is not stable there."""
        return self.product > self.limit

    def sentence(self) -> str:
        """In words."""
        needed = math.ceil(self.product * self.substeps / self.limit)
        way = "along the plan of ce" if self.planned else "inputs at rest"
        within = f" with {self.substeps} substeps" if self.substeps > 1 else ""
        cure = f'; substeps={needed} would keep it, and method="radau" has no limit' if self.unsafe else ""
        return (
            f'the fastest decay in scenario "{self.scenario}", {way}, has a rate of {self.rate:.3g} at time '
            f"{self.time:.3g}: times the step that is {self.product:.3g}, and {self.method}{within} is "
            f"{'not stable' if self.unsafe else 'stable'} up to {self.limit:g}{cure}"
        )


def stiffness(model: System, scenarios: Sequence[Scenario], package: LoadedPackage | None = None) -> Stiffness | None:
    """The fastest decay on the way of the scenarios of a model; None where no step has a limit."""
    method = INTEGRATORS[model.method]
    if model.step is None or not isinstance(method, Explicit) or any(f.process is not None for f in model.families):
        return None
    h, own = float(model.step) / model.substeps, [s for s in scenarios if s.model.name == model.name]
    found = list[tuple[float, float, str, bool]]()
    with mpmath.workdps(_DIGITS), np.errstate(all="ignore"):
        for scenario in own:
            name = scenario.name or model.name
            found += [(rate, time, name, False) for time, rate in _rates(model, scenario)]
    if package is not None:
        for name in sorted(package.plants):
            found += [(rate, time, name, True) for time, rate in _planned_rates(package, name)]
    if not found:
        return None
    rate, time, name, planned = max(found, key=lambda one: one[0])
    return Stiffness(rate, rate * h, method.limit, name, time, planned, model.method, model.substeps)


def _planned_rates(package: LoadedPackage, scenario: str) -> Iterator[tuple[float, float]]:
    """Times and the fastest decay within the steps of the certainty-equivalent plan; none where there is no plan."""
    own = problem(package, scenario)
    one = controller(own, "ce")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _, _, info = one.step(one.init())
    except SymdualError:
        return
    theta, length = own.prior.mean[package.NX :], step_length(package)
    for k, (x, u) in enumerate(zip(info.planned_states[:-1], info.planned_inputs, strict=True)):
        rate = fastest_within(package, k, x, u, theta)
        if math.isfinite(rate):
            yield length * k, rate


def _rates(model: System, scenario: Scenario) -> Iterator[tuple[float, float]]:
    """Times and the fastest decay there."""
    exact, own, step = ExactModel(model), len(model.own_states), float(model.step or 1.0)
    kept, theta = ([mpmath.mpf(v) for v in values] for values in (scenario.start[own:], scenario.prior_mean))
    u = [mpmath.mpf(v) for v in np.clip(np.zeros(len(model.inputs)), model.lower, model.upper)]

    def slope(time: float, x: list[Number]) -> list[Number]:
        k = int(time / step)
        return exact.derivative(k, time / step - k, x, kept, u, theta)

    def fastest(time: float, x: Array) -> float:
        columns = [first_difference(lambda y: slope(time, y), [mpmath.mpf(v) for v in x], j) for j in range(own)]
        matrix = np.array([[float(v) for v in column] for column in columns]).T
        if not np.isfinite(matrix).all():
            return 0.0
        rates = np.linalg.eigvals(matrix)
        return float(np.abs(rates[rates.real < 0.0]).max(initial=0.0))

    for time, x in _way(model, scenario, slope):
        yield time, fastest(time, x)


def _way(model: System, scenario: Scenario, slope: Slope) -> Iterator[tuple[float, Array]]:
    """Times and states, as far as they are finite."""
    from scipy.integrate import LSODA

    x, own = scenario.start[: len(model.own_states)], float(model.step or 1.0)
    yield 0.0, x
    if sum(family.count for family in model.families) > MOST_SUMMANDS:
        return

    def value(time: float, state: Array) -> Array:
        return np.array([float(v) for v in slope(time, [mpmath.mpf(v) for v in state])])

    if not np.isfinite(value(0.0, x)).all():
        return
    size = np.maximum(np.abs(x), own * np.abs(value(0.0, x)))
    solver = LSODA(
        value, 0.0, x, own * scenario.horizon, rtol=_TOLERANCE, atol=_TOLERANCE * np.where(size > 0.0, size, 1.0)
    )
    for _ in range(LOOKS):
        if solver.status != "running":
            return
        solver.step()
        if not np.isfinite(solver.y).all():
            return
        yield float(solver.t), solver.y
