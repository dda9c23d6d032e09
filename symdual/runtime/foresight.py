"""How a controller that plans to learn goes about it, and the plans that it keeps from step to step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from symdual.errors import SymdualError
from symdual.runtime.border import Desk, Records
from symdual.runtime.evaluate import argument, whole_number
from symdual.runtime.problem import Array, Problem

MOST_STARTS = 8
MOST_SAMPLES = 4096
MOST_SEED = 2**31 - 1
KEPT = {"certain": 1, "planned": 3}  # places on the shelf that a controller keeps from step to step


@dataclass(frozen=True)
class Foresight:
    """How much `planned` does for a decision.

    Args:
        starts: how many of the plans to start from are improved, 1 to 8.
        look_ahead: whether the first input is then chosen with the next measurement taken into account.
        samples: simulated futures that choose between plans whose first inputs differ, at most 4096; 0 for none. With
            Gaussian processes, noise that depends, constraints and choices there are none.
        seed: of these futures. Episodes of a sweep use their own.

    >>> symdual.Foresight(starts=2, look_ahead=False)
    Foresight(starts=2, look_ahead=False, samples=64, seed=0)
    """

    starts: int = 4
    look_ahead: bool = True
    samples: int = 64
    seed: int = 0

    def write(self, task: Records) -> None:
        """Put the settings into the task of a controller."""
        task["starts"] = whole_number(self.starts, "starts", most=MOST_STARTS)
        task["looking"] = float(bool(self.look_ahead))
        task["samples"] = whole_number(self.samples, "samples", least=0, most=MOST_SAMPLES)
        task["seed"] = whole_number(self.seed, "the seed", least=0, most=MOST_SEED)


USUAL = Foresight()


class Start(NamedTuple):
    """A plan to start from: its first input, its cost J, and J after it was improved (NaN if it was not)."""

    u: Array
    cost: float
    improved: float


class Look(NamedTuple):
    """A first input, and its cost with the next measurement taken into account."""

    u: Array
    cost: float


class Contestant(NamedTuple):
    """A plan in simulated futures: its first input, and for how many steps it is followed before certainty equivalence.

    `cost` is its mean cost in the first futures; `gap` what it costs more than the default in fresh ones, with its
    standard error, NaN for one that did not get there.
    """

    u: Array
    steps: int
    cost: float
    gap: float
    error: float


class Planned(NamedTuple):
    """How a decision of `planned` came about.

    `starts` are the certainty-equivalent plan, the plans of the step before where there were any, and plans through
    other first inputs; `won` is the position of the one that became the best plan, whose first input is `plan_input`.
    `looks` are the first inputs that were looked at one step ahead, in the order in which that was done. `race` are the
    contestants of simulated futures, empty where all first inputs agreed, and `race_won` is the position of the winner;
    `no_race` says why there are none in such a task.
    """

    starts: tuple[Start, ...]
    won: int
    plan_input: Array
    looks: tuple[Look, ...]
    race: tuple[Contestant, ...] = ()
    race_won: int | None = None
    no_race: str = ""


def told(desk: Desk) -> Planned | None:
    """What the last decision has left in the story of a desk; None where there was nothing to learn."""
    story = desk.story[0]
    count, looks = int(story["starts"]), int(story["looks"])
    if count == 0:
        return None
    starts = [
        Start(story["start_u"][n].copy(), float(story["start_cost"][n]), float(story["plan_cost"][n]))
        for n in range(count)
    ]
    there = [n for n, start in enumerate(starts) if np.isfinite(start.cost)]
    seen = tuple(Look(story["look_u"][n].copy(), float(story["look_cost"][n])) for n in range(looks))
    won = there.index(int(story["won"]))
    why = _no_race(desk)
    race = () if why else _race(story)
    race_won = int(story["entry_won"]) if race else None
    return Planned(tuple(starts[n] for n in there), won, story["plan_u"].copy(), seen, race, race_won, why)


def _no_race(desk: Desk) -> str:
    """Why no futures are simulated in a task; empty where they are."""
    if "entries" in (desk.story.dtype.names or ()):
        return ""
    given = desk.task.dtype.names or ()
    what = "unknown functions and noise that depends"
    if "limit_weights" in given or "combinations" in given:
        what = "constraints" if "limit_weights" in given else "choices"
    return f"no futures were simulated to choose between plans: {what} cannot be simulated yet"


def _race(story: Any) -> tuple[Contestant, ...]:
    return tuple(
        Contestant(
            story["entry_u"][n].copy(),
            int(story["entry_follow"][n]),
            *(float(story[name][n]) for name in ("entry_cost", "entry_gap", "entry_error")),
        )
        for n in range(int(story["entries"]))
    )


def lay_out(desk: Desk, plans: Records | None, shift: int) -> None:
    """Put plans on the shelf of a desk, whose times differ by `shift` from the controller's."""
    desk.shelf["steps"] = 0.0
    if plans is not None:
        desk.shelf[: len(plans)] = plans
        desk.shelf["begin"][: len(plans), 0] += shift


def taken_up(desk: Desk, kind: str, shift: int) -> Records | None:
    """A copy of the plans that a controller keeps, with the controller's own times."""
    if kind not in KEPT:
        return None
    plans: Records = desk.shelf[: KEPT[kind]].copy()
    plans["begin"][:, 0] -= shift
    return plans


def first_plans(problem: Problem, kind: str, steps: int, guess: ArrayLike) -> Records:
    """Plans that follow the inputs of a guess (steps, NU), as if they had been kept from the step before."""
    package = problem.package
    if kind not in KEPT:
        raise SymdualError("only the controllers oracle, ce and planned start from a guess; the others search")
    inputs = argument(guess, (steps, package.NU), "the guess")
    if not np.isfinite(inputs).all():
        raise SymdualError("the guess has entries that are not finite")
    outside = np.argwhere((inputs < problem.bounds[0]) | (inputs > problem.bounds[1]))
    if outside.size:
        step, index = outside[0]
        name = {index: name for name, index in package.INPUTS.items()}[int(index)]
        low, high = problem.bounds[:, index]
        raise SymdualError(
            f'the guess for the input "{name}" at step {step} is {inputs[step, index]:g}, '
            f"outside its bounds {low:g} and {high:g}"
        )
    plans = np.zeros((KEPT[kind], steps + 1), package.records.KEPT)
    plans["u"][:2, :steps] = inputs
    plans["steps"][:2, 0] = steps
    return plans
