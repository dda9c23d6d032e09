"""What an input tells of the parameters, and when: the printed systems in an extended Kalman filter, by differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from symdual.common.arrays import Array
from symdual.paper.case import Case, Computed, Convention, Derivation, Printed, Undecidable
from symdual.paper.derivations.filtering import covariances
from symdual.paper.derivations.least_squares import Problem, best_inputs
from symdual.paper.machine import counted
from symdual.paper.matrices import Matrix, diagonal, root

Step = Callable[[Array, Array, float], Array]
"""The next state from state, parameters and input, without disturbance."""

NUDGE, NOISE = 1e-4, 1e-2


@dataclass(frozen=True)
class Printout:
    """A printed system: its step, a state where its features bend, and parameters."""

    step: Step
    start: Array
    theta: Array

    def path(self, inputs: Sequence[float]) -> list[Array]:
        """The states under the inputs, the first one included."""
        states = [self.start]
        for u in inputs:
            states.append(self.step(states[-1], self.theta, u))
        return states

    def transition(self, x: Array, u: float) -> Array:
        """The Jacobian of (x, theta) -> (x', theta), by central differences."""
        n, z = len(x), np.concatenate([x, self.theta])
        columns = [
            (self.step((z + d)[:n], (z + d)[n:], u) - self.step((z - d)[:n], (z - d)[n:], u)) / (2 * NUDGE)
            for d in NUDGE * np.eye(len(z))
        ]
        return np.vstack([np.stack(columns, axis=1), np.eye(len(z))[n:]])

    def spreads(self, inputs: Sequence[float]) -> list[Array]:
        """The covariance of theta after 0, 1, ... measurements of the whole state, the prior being I."""
        n, size = len(self.start), len(self.start) + len(self.theta)
        jacobians = [self.transition(x, u) for x, u in zip(self.path(inputs), inputs, strict=False)]
        prior, drift = np.zeros((size, size)), np.zeros((size, size))
        prior[n:, n:], drift[:n, :n] = np.eye(size - n), NOISE * np.eye(n)
        found = covariances(jacobians, prior, drift, np.eye(size)[:n], NOISE * np.eye(n))
        return [found[j, j][n:, n:] for j in range(len(inputs) + 1)]


def _bend(i: int, x: Matrix) -> float:
    """Two features that no line prints: when an input shows in a belief does not depend on which they are."""
    return float(np.tanh(x.array[0, 0] - 0.3 * i))


def cart(system: Callable[..., Matrix], varphi: Callable[[int, Matrix], float] = _bend) -> Printout:
    """The cart on a rail, Section 6.2."""

    def step(x: Array, theta: Array, u: float) -> Array:
        return system(Matrix(x), counted(list(theta)), Matrix(u), varphi).array[:, 0]

    return Printout(step, np.array([0.2, 0.1]), np.array([0.8, 0.4]))


def toy(system: Callable[..., float]) -> Printout:
    """The toy, Section 3.1, with its gain unknown."""
    return Printout(lambda x, theta, u: np.array([system(x[0], theta[0], u)]), np.array([0.7]), np.array([1.3]))


def _first_difference(values: Callable[[Sequence[float]], list[Array]]) -> int:
    """The first step at which the first of six inputs makes a difference."""
    pairs = zip(values([0.0] * 6), values([1.0] + [0.0] * 5), strict=True)
    for step, (still, moved) in enumerate(pairs):
        if np.max(np.abs(moved - still)) > 1e-7:
            return step
    raise ValueError("the input makes no difference")


def steps_to_belief(printout: Printout) -> int:
    """The number of measurements after which the belief on the parameters depends on the first input."""
    return _first_difference(printout.spreads)


def steps_to_features(printout: Printout) -> int:
    """The number of steps until the input moves what multiplies a parameter."""
    n = len(printout.start)

    def sensitivities(inputs: Sequence[float]) -> list[Array]:
        return [printout.transition(x, u)[:n, n:] for x, u in zip(printout.path(inputs), inputs, strict=False)]

    return _first_difference(sensitivities)


def _prediction_time(order: Callable[[Printout], int]) -> Iterator[Case]:
    lines = {
        "toy": Printed("3.1.toy", ("x", "b", "u"), {"a": 0.9, "xi": 0.0}),
        "cart": Printed("6.2.system", ("x", "theta", "u", "varphi")),
    }
    made: dict[str, Callable[..., Printout]] = {"toy": toy, "cart": cart}
    symbols: dict[str, Any] = {
        "matrix": Matrix,
        **lines,
        "order": lambda name, system: order(made[name](system)),
    }

    def shows(**printed: Any) -> tuple[int, ...]:
        return tuple(steps_to_belief(made[name](printed[name])) for name in lines)

    yield Case("the toy and the cart", symbols, Computed(shows, lines))


# ------------------------------------------------------------ what the bonus knows


PRICE = 1e-3
"""Of the input; which price it is does not matter here."""


@dataclass(frozen=True)
class Ahead:
    """The cart some steps before a phase without cost, under the mean model: the slope of the rail is zero."""

    printout: Printout
    problem: Problem

    def plan(self, first: float) -> tuple[list[float], float]:
        """The inputs with the first one given and the others optimal, and their cost."""
        x = self.printout.step(self.printout.start, self.printout.theta, first)
        rest, cost = best_inputs(self.problem.from_step(1), x)
        return [first, *rest[:, 0]], cost + PRICE * first**2

    def bonus(self, first: float, bonus: Callable[[Matrix], Matrix], measurements: int) -> float:
        """The printed bonus for the belief after so many measurements."""
        spread = self.printout.spreads(self.plan(first)[0][:measurements])[-1]
        return float(bonus(Matrix(spread)).array[0, 0])


def _ahead(system: Callable[..., Matrix], schedule: Any, weight: float) -> Ahead:
    """Two steps before the loose phase, whose weight is replaced; the reference is zero."""
    given = {step: value[0][0] for first, last, value in schedule for step in range(first, last + 1)}
    loose = min(step for step, value in given.items() if value == 0)
    weights = tuple(np.diag([given[step] or weight, 0.0]) for step in sorted(given) if step >= loose - 2)
    printout = replace(cart(system), theta=np.zeros(2))
    still = np.zeros(2)
    a = printout.transition(still, 0.0)[:2, :2]
    b = (printout.step(still, still, 1.0) - printout.step(still, still, 0.0))[:, None]
    count = len(weights) - 1
    problem = Problem((a,) * count, (b,) * count, weights, (np.array([[PRICE]]),) * count, (still,) * (count + 1))
    return Ahead(printout, problem)


def _knows(whole: bool, bonus: Callable[[Matrix], Matrix], system: Callable[..., Matrix], schedule: Any) -> str:
    """Whether what is minimised, as a function of the input, changes with the weights of the loose phase."""
    found, measurements = [], steps_to_belief(cart(system))
    for weight in (0.0, 100.0):
        ahead = _ahead(system, schedule, weight)
        costs = [(ahead.plan(u)[1] if whole else 0.0) + ahead.bonus(u, bonus, measurements) for u in (0.0, 0.5, 2.0)]
        found.append(np.array(costs) - costs[0])
    return "blind" if np.max(np.abs(found[1] - found[0])) < 1e-9 else "sees it"


def _blind(whole: bool) -> Iterator[Case]:
    lines = {
        "bonus": Printed("6.bonus", ("Stt",), {"tau": 1.0}),
        "system": Printed("6.2.system", ("x", "theta", "u", "varphi")),
        "schedule": Printed("6.2.weights"),
    }
    symbols = {"matrix": Matrix, "diag": diagonal, "root": root}
    yield Case("two steps before the loose phase", symbols, Computed(partial(_knows, whole), lines))


DERIVATIONS: dict[str, Derivation | Undecidable] = {
    "6.prediction-time": Derivation(
        "The extended Kalman filter on the printed systems of Sections 3.1 and 6.2: the first belief on the parameters"
        " that depends on the input. Read literally, the order is the number of states.",
        partial(_prediction_time, lambda printout: len(printout.start)),
        conventions=(
            Convention(
                "the order is the number of steps until the input moves what multiplies a parameter, and one more that"
                " measures it: 0 + 1 for the toy, 2 + 1 for the cart",
                partial(_prediction_time, lambda printout: steps_to_features(printout) + 1),
            ),
        ),
    ),
    "6.2.blind": Derivation(
        "What the controller minimises two steps before the loose phase, with the printed weights and with others in"
        " that phase: the certainty equivalent cost by least squares, the bonus from the filter.",
        partial(_blind, True),
        conventions=(
            Convention(
                "it is meant of the bonus; the certainty equivalent cost beside it does contain the weights ahead",
                partial(_blind, False),
            ),
        ),
    ),
}
