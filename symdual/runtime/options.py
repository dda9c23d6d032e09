"""What controllers are told besides their problem, how `planned` came about its decision, and plans that are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError, did_you_mean
from symdual.controllers import CONTROLLERS, COSTS, OPTIONS
from symdual.entries.recursions import Workspace
from symdual.entries.types import Records
from symdual.runtime.evaluate import argument, whole_number
from symdual.runtime.problem import Problem


@dataclass(frozen=True)
class Options:
    """Numbers of a controller beyond its problem; each controller uses its own.

    Args:
        starts: the number of initial plans that `planned` improves, 1 to 8.
        look_ahead: whether it then chooses the first input with regard to the next measurement.
        samples: the number of rollouts for the choice between plans with different first inputs, at most 4096; 0 for
            none. For `rollout`, the number for each candidate.
        confidence: how sure the rollouts must be, in percent from 1 to 99, that a plan is better than `ce` and
            `cautious` before its input is applied. With 5 an input is rejected if it is worse with a confidence of 95
            percent; with 95 it must be better with that confidence.
        work: the number of steps of plans that a decision of `planned` may compute; 0 for no limit. It ends at the
            same point on every machine; `controller(..., budget=)` converts seconds to such a number.
        hold: the number of decisions for which `thompson` keeps a draw of parameters.
        candidates: the number of first inputs that `rollout` compares, with that of `ce`, 1 to 64.
        branches: the number of samples in the tree of `scenario`, 1 to 8; 1 is the mean, and the controller is `ce`.
        depth: the number of measurements in that tree, 1 to 8.
        reward: the worth of a nat of information to `information`, in percent of the cost of its plan.
        dither: percent by which the cost of the plan may grow where `dither` moves an input up or down.
        decay: percent; the dither of decision n is that of the first one divided by n^(decay / 100).
        guard: whether rollouts may reject the input of `dual` in favour of those of `ce` and `cautious`; `samples` and
            `confidence` then apply to it too.
        seed: the seed of random draws. Episodes of a sweep use their own.

    >>> symdual.Options(starts=2, look_ahead=False).starts
    2
    """

    starts: int = OPTIONS["starts"].default
    look_ahead: bool = bool(OPTIONS["look_ahead"].default)
    samples: int = OPTIONS["samples"].default
    confidence: int = OPTIONS["confidence"].default
    work: int = OPTIONS["work"].default
    hold: int = OPTIONS["hold"].default
    candidates: int = OPTIONS["candidates"].default
    branches: int = OPTIONS["branches"].default
    depth: int = OPTIONS["depth"].default
    reward: int = OPTIONS["reward"].default
    dither: int = OPTIONS["dither"].default
    decay: int = OPTIONS["decay"].default
    guard: bool = bool(OPTIONS["guard"].default)
    seed: int = OPTIONS["seed"].default

    @property
    def numbers(self) -> dict[str, float]:
        """The same as numbers of the settings, checked."""
        found = dict[str, float]()
        for name, value in asdict(self).items():
            option = OPTIONS[name]
            said = "the seed" if name == "seed" else name
            number = int(value) if isinstance(value, bool | np.bool_) else value
            found[option.field] = whole_number(number, said, least=option.least, most=option.most)
        return found

    def told(self, given: Mapping[str, str]) -> Options:
        """The same with whole numbers by name, as a command line has them."""
        names = [name for name in OPTIONS if name != "seed"]
        for name, text in given.items():
            if name not in names:
                raise SymdualError(f'there is no option "{name}"{did_you_mean(name, names)}; known: {", ".join(names)}')
            if not text.isdecimal():
                raise SymdualError(f'the option "{name}" must be a whole number, not "{text}"')
        return replace(self, **{name: int(text) for name, text in given.items()})  # type: ignore[arg-type]


USUAL = Options()


class Start(NamedTuple):
    """A plan to start from: its first input, its cost J, and J after it was improved (NaN if it was not)."""

    u: Array
    cost: float
    improved: float


class Look(NamedTuple):
    """A first input, and its cost with the next measurement taken into account."""

    u: Array
    cost: float


#: contestants of rollouts by their places among stored plans, and those that have to be confirmed
PLANS = {0: "ce", 5: "cautious", 1: "best", 2: "second", 3: "best before the look ahead"}
CHALLENGERS = ("best", "second", "best before the look ahead")


class Contestant(NamedTuple):
    """A plan in rollouts: its first input, and for how many steps it is followed before certainty equivalence.

    `plan` says which one it is. `cost` is its mean cost in the first rollouts; `gap` what a challenger costs more than
    the harder of both references in fresh ones, with its standard error, and `sure` how probable it is that it is
    better than both; NaN for a reference, and for one that was left out before.
    """

    plan: str

    u: Array
    steps: int
    cost: float
    gap: float
    error: float
    sure: float


class Guard(NamedTuple):
    """What rollouts said of an input of `dual`: the contestants as in `Planned`, the position of the winner.

    `sure` is how probable they make it that the input of `dual` is better than those of `ce` and `cautious`; `rejected`
    says that it was not confirmed, and `proposed` what it was.
    """

    race: tuple[Contestant, ...]
    race_won: int
    sure: float
    rejected: bool
    proposed: Array


class Planned(NamedTuple):
    """How a decision of `planned` came about.

    `starts` are the certainty-equivalent plan, the plans of the step before where there were any, and plans through
    other first inputs; `won` is the position of the one that became the best plan, whose first input is `plan_input`.
    `looks` are the first inputs that were looked at one step ahead, in the order in which that was done. `race` are the
    contestants of rollouts, empty where all first inputs agreed, and `race_won` is the position of the winner. `sure`
    is how probable the rollouts make it that the input is better than those of `ce` and `cautious`; NaN where it is
    one of these, or nothing was simulated. `rejected` are first inputs that were not confirmed. `work` counts
    the steps of plans that were gone through, and `cut` says that a budget has ended the decision.
    """

    starts: tuple[Start, ...]
    won: int
    plan_input: Array
    looks: tuple[Look, ...]
    race: tuple[Contestant, ...] = ()
    race_won: int | None = None
    sure: float = float("nan")
    rejected: tuple[Array, ...] = ()
    work: int = 0
    cut: bool = False


def told(workspace: Workspace) -> Planned | None:
    """What the last decision has left in the decision log of a workspace; None where there was nothing to learn."""
    decision_log = workspace.decision_log[0]
    count, looks = int(decision_log["starts"]), int(decision_log["looks"])
    if count == 0:
        return None
    starts = [
        Start(
            decision_log["start_u"][n].copy(), float(decision_log["start_cost"][n]), float(decision_log["plan_cost"][n])
        )
        for n in range(count)
    ]
    there = [n for n, start in enumerate(starts) if np.isfinite(start.cost)]
    seen = tuple(Look(decision_log["look_u"][n].copy(), float(decision_log["look_cost"][n])) for n in range(looks))
    won = there.index(int(decision_log["won"]))
    race, confidence = _race(decision_log), 0.01 * float(workspace.settings[0]["confidence"])
    race_won = int(decision_log["entry_won"]) if race else None
    sure = race[race_won].sure if race_won is not None else float("nan")
    rejected = [one.u for one in race if one.plan in CHALLENGERS and one.sure < confidence]
    plan_input = decision_log["plan_u"].copy()
    work, limit = int(decision_log["work"]), int(workspace.settings[0]["work"])
    found = tuple(starts[n] for n in there)
    return Planned(
        found, won, plan_input, seen, race, race_won, sure, tuple(rejected), work=work, cut=0 < limit <= work
    )


def guard_told(workspace: Workspace) -> Guard | None:
    """What rollouts of the last decision of a guarded `dual` have found; None where none were held."""
    decision_log = workspace.decision_log[0]
    race = _race(decision_log)
    if not race:
        return None
    won = int(decision_log["entry_won"])
    sure = min(one.sure for one in race if one.plan == "best" and not np.isnan(one.sure))
    return Guard(race, won, sure, race[won].plan != "best", decision_log["plan_u"].copy())


def _race(decision_log: Any) -> tuple[Contestant, ...]:
    return tuple(
        Contestant(
            PLANS[int(decision_log["entry_place"][n])],
            decision_log["entry_u"][n].copy(),
            int(decision_log["entry_follow"][n]),
            *(float(decision_log[name][n]) for name in ("entry_cost", "entry_gap", "entry_error", "entry_sure")),
        )
        for n in range(int(decision_log["entries"]))
    )


def lay_out(workspace: Workspace, plans: Records | None) -> None:
    """Store the plans that a controller has kept, with its own times; what is longer than the horizon now is cut."""
    workspace.stored_plans["steps"] = 0.0
    if plans is not None:
        stored = workspace.stored_plans[: len(plans)]
        room = min(stored.shape[1], plans.shape[1])
        stored[:, :room] = plans[:, :room]
        stored["steps"][:, 0] = np.minimum(plans["steps"][:, 0], room - 1)


def taken_up(workspace: Workspace, kind: str, shift: int) -> Records | None:
    """A copy of the plans that a controller keeps, with the controller's own times."""
    if not COSTS[kind].stored_plans:
        return None
    plans: Records = workspace.stored_plans[: COSTS[kind].stored_plans].copy()
    plans["begin"][:, 0] -= shift
    return plans


def first_plans(problem: Problem, kind: str, steps: int, guess: ArrayLike) -> Records:
    """Plans that follow the inputs of a guess (steps, NU), as if they had been kept from the step before."""
    package = problem.package
    if not COSTS[kind].stored_plans:
        able = [name for name, one in CONTROLLERS.items() if one.cost in COSTS and COSTS[one.cost].stored_plans]
        raise SymdualError(
            f"only the controllers {', '.join(able[:-1])} and {able[-1]} start from a guess; the others search"
        )
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
    plans = np.zeros((COSTS[kind].stored_plans, steps + 1), package.records.STORED)
    plans["u"][:2, :steps] = inputs
    plans["steps"][:2, 0] = steps
    return plans
