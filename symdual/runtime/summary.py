"""What a sweep says: costs with standard errors, paired differences, failures, and the consistency of the filter.

    NEES = (z - m)' S^-1 (z - m) / rank S,     NIS = v' S^-1 v / measured entries          (both 1 on average)

All controllers meet the same random draws, so a difference is taken run by run, and its standard error is much smaller
than that of the two means.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symdual.common.arrays import Array
from symdual.common.display import shown
from symdual.common.errors import SymdualError
from symdual.controllers import knows_truth
from symdual.runtime.consistency import judge
from symdual.runtime.labelled import Labelled
from symdual.runtime.posterior import loss_sentences

BEYOND_CHANCE = 3.0  #: standard errors by which a difference is no chance
MANY = 10_000  #: runs; who needs more to see a difference need not care about it
MATTERS = 0.1  #: share of the baseline's cost from which a difference is worth a sentence


@dataclass(frozen=True)
class Mean:
    """A mean over runs with its standard error and standard deviation (None with a single run)."""

    mean: float
    error: float | None
    deviation: float | None
    runs: int


@dataclass(frozen=True)
class Consistency:
    """The average of a normalised squared error, 1 for an honest filter, and what that means in words."""

    mean: float
    verdict: str


@dataclass(frozen=True)
class Violation:
    """How often a constraint was violated (share of all times but the first), and by how much where it was."""

    constraint: str
    share: float
    mean: float
    largest: float

    def sentence(self) -> str:
        """In words."""
        if self.share == 0.0:
            return f"{self.constraint} was never violated"
        return (
            f"{self.constraint} was violated at {100 * self.share:.2g} % of the times, there by {self.mean:.3g} on "
            f"average and by {self.largest:.3g} at most"
        )


@dataclass(frozen=True)
class ControllerSummary:
    """One controller in a sweep; None stands for what cannot be said.

    Args:
        runs: all episodes, those that failed included.
        cost: of L / T, the cost per step, over the episodes that finished: see `partial`.
        total: of L, over the same.
        cost_with_failures: of L / T over all episodes, where it is known what a failure costs.
        difference: of L / T minus that of the baseline, run by run, over the runs that both finished.
        excess: the mean difference as a share of the mean cost of the baseline in those runs.
        better: the share of those runs in which the cost is below the baseline's.
        better_with_failures: the same over all runs that one of the two finished; a failure is worse than any cost.
        failed: reasons with the number of episodes.
        fallbacks: steps in which a candidate fell back to order 1, as a share.
        violations: how often and by how much each constraint was violated in the episodes that finished.
        losses: what was not remembered exactly of Gaussian processes, in sentences.
    """

    name: str
    runs: int
    cost: Mean | None
    total: Mean | None
    cost_with_failures: Mean | None
    difference: Mean | None
    excess: float | None
    better: float | None
    better_with_failures: float | None
    failed: dict[str, int]
    nees_parameters: Consistency | None
    nees_state: Consistency | None
    nis: Consistency | None
    fallbacks: float | None
    losses: tuple[str, ...]
    violations: tuple[Violation, ...] = ()

    @property
    def finished(self) -> bool:
        """Whether any episode came to its end."""
        return self.cost is not None

    @property
    def partial(self) -> bool:
        """Whether the cost is a mean of those episodes only that did not fail."""
        return self.cost is not None and self.cost.runs < self.runs

    @property
    def told(self) -> bool:
        """Whether there is a difference with a standard error to be told of, and not that of `clearly_worse`."""
        return (
            self.difference is not None and bool(self.difference.error) and bool(self.excess) and not self.clearly_worse
        )

    def against(self, baseline: str) -> str:
        """What it saves, or how many runs would tell: its standard error falls with the square root of their number."""
        assert self.difference is not None and self.difference.error and self.excess
        ratio = self.difference.mean / self.difference.error
        if abs(ratio) > BEYOND_CHANCE:
            percent, error = 100 * abs(self.excess), 100 * abs(self.excess / ratio)
            digits = 0 if error >= 1.0 else 1
            told = f"{percent:.{digits}f} ± {error:.{digits}f} %"
            return f"{self.name} {'saves' if ratio < 0 else 'loses'} {told} against {baseline}"
        if knows_truth(self.name):
            counted = _counted(self.difference.runs, "run")
            return f"{self.name} saves nothing beyond chance in {counted}: there is little that learning could gain"
        runs = math.ceil(self.difference.runs * (BEYOND_CHANCE / ratio) ** 2)
        enough = f"some {_rounded(runs)} runs would tell" if runs <= MANY else "it hardly matters which one you take"
        return f"{_counted(self.difference.runs, 'run')} cannot tell {self.name} from {baseline}; {enough}"

    @property
    def clearly_worse(self) -> bool:
        """Whether the baseline does better, beyond chance and by an amount that matters."""
        if self.difference is None or self.difference.error is None or self.excess is None:
            return False
        return self.difference.mean > BEYOND_CHANCE * self.difference.error and self.excess > MATTERS

    @property
    def overconfident(self) -> bool:
        """Whether the filter claims to know much more than it does."""
        return any(
            found is not None and found.verdict == "overconfident"
            for found in (self.nees_parameters, self.nees_state, self.nis)
        )


@dataclass(frozen=True, repr=False)
class Summary:
    """A sweep in numbers and sentences."""

    about: dict[str, Any]
    baseline: str
    controllers: tuple[ControllerSummary, ...]
    failure_cost: float | None = None  # L of an episode that fails

    @property
    def overconfident(self) -> bool:
        """Whether the filter of a controller claims to know much more than it does."""
        return any(c.overconfident for c in self.controllers)

    def sentences(self) -> list[str]:
        """What a reader must not miss, such as failures, or a filter that claims to know more than it does."""
        said = []
        if self.about["runs"] == 1:
            said.append("a single run has no standard error and no standard deviation")
        said += [c.against(self.baseline) for c in self.controllers if c.told]
        for c in self.controllers:
            for reason, count in c.failed.items():
                said.append(f"{c.name}: {count} of {self.about['runs']} episodes failed: {reason}")
            if not c.finished:
                said.append(f"{c.name}: no episode finished, so there is nothing to average")
            said += self._of_survivors(c)
            if c.clearly_worse and c.difference is not None and c.excess is not None:
                said.append(
                    f"{c.name} did clearly worse than {self.baseline}: L / T is higher by {c.difference.mean:.3g} ± "
                    f"{c.difference.error:.2g}, which is {100 * c.excess:.0f} % of that of {self.baseline}, over "
                    f"{_counted(c.difference.runs, 'run')}"
                )
            if c.fallbacks:
                said.append(
                    f"{c.name}: in {100 * c.fallbacks:.2g} % of the decisions candidates fell back to order 1, where "
                    "the cost of order 2 cannot be right"
                )
            for what, consistency in (
                ("the parameters (NEES)", c.nees_parameters),
                ("the state (NEES)", c.nees_state),
                ("the measurements (NIS)", c.nis),
            ):
                if consistency is not None and consistency.verdict.endswith("confident"):
                    said.append(
                        f"{c.name}: the filter is {consistency.verdict} about {what}: the squared error is "
                        f"{consistency.mean:.3g} times what the belief says"
                    )
            said += [f"{c.name}: {sentence}" for sentence in c.losses]
            said += [f"{c.name}: {violation.sentence()}" for violation in c.violations]
        return said

    def _of_survivors(self, c: ControllerSummary) -> list[str]:
        """What means are of where episodes failed."""
        said = []
        if c.partial and c.cost is not None:
            failed = c.runs - c.cost.runs
            if c.cost_with_failures is None:
                counted = f"the other {failed} are not counted: give what a failure costs (failure_cost)"
            else:
                every = c.cost_with_failures
                error = "" if every.error is None else f" ± {every.error:.2g}"
                counted = f"with {self.failure_cost:g} for each of the other {failed}, L / T is {every.mean:.4g}{error}"
            said.append(
                f"* {c.name}: L / T and std are of the {c.cost.runs} of {c.runs} episodes that finished; {counted}"
            )
        if c.difference is not None and c.difference.runs < c.runs:
            shared = f"{_counted(c.difference.runs, 'run')} that both finished"
            won = 100 * (c.better_with_failures or 0.0)
            said.append(
                f"{c.name}: minus {self.baseline} compares the {shared}; if a failure is worse than any cost, "
                f"{c.name} was better in {won:.0f} % of the runs that one of them finished"
            )
        return said

    def __str__(self) -> str:
        """The table and the sentences as they are printed."""
        return str(shown("a summary in a terminal", self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The table and the sentences, for notebooks."""
        return str(shown("a summary in a notebook", self))

    def to_json(self) -> dict[str, Any]:
        """The summary as plain data."""
        keys = ("model", "plant", "scenario", "digests", "settings", "seed", "runs", "horizon", "versions")
        return {
            **{key: self.about[key] for key in keys},
            "baseline": self.baseline,
            "controllers": [
                asdict(c) | {"partial": c.partial, "clearly_worse": c.clearly_worse} for c in self.controllers
            ],
            "sentences": self.sentences(),
        }


def summarise(results: Labelled, failure_cost: float | None = None) -> Summary:
    """Summarise a results file; differences are to `ce`, or to the first controller when there is no `ce`.

    `failure_cost` is what L counts as in an episode that fails.
    """
    if failure_cost is not None and not math.isfinite(failure_cost):
        raise SymdualError(f"failure_cost must be a finite number, not {failure_cost}")
    names = results.description.controllers
    baseline = "ce" if "ce" in names else names[0]
    reference = _finished_costs(results, baseline)
    return Summary(
        about=results.about,
        baseline=baseline,
        controllers=tuple(
            _summarise(results, name, None if name == baseline else reference, failure_cost) for name in names
        ),
        failure_cost=failure_cost,
    )


def _summarise(results: Labelled, name: str, reference: Array | None, failure_cost: float | None) -> ControllerSummary:
    steps = results.about["horizon"]
    costs = _finished_costs(results, name)
    difference, excess, better, better_with_failures = None, None, None, None
    if reference is not None:
        both = np.isfinite(costs) & np.isfinite(reference)
        difference = _mean((costs - reference)[both] / steps)
        if both.any():
            usual = abs(float(np.mean(reference[both])))
            excess = float(np.mean((costs - reference)[both])) / usual if usual > 0.0 else None
            better = float(np.mean(costs[both] < reference[both]))
        ranked, other = (np.where(np.isfinite(c), c, np.inf) for c in (costs, reference))
        either = np.isfinite(ranked) | np.isfinite(other)
        better_with_failures = float(np.mean((ranked < other)[either])) if either.any() else None
    done = costs[np.isfinite(costs)]
    outcomes = results.array(name, "outcomes")
    reasons = results.about["outcomes"]
    sizes = results.description.sizes[name]
    fallbacks = results.array(name, "fallbacks")
    decided = np.isfinite(fallbacks)
    judged = {
        "nees_parameters": _nees(results.array(name, "nees_parameters"), sizes["belief"] - sizes["state"]),
        "nees_state": _nees(results.array(name, "nees_state"), sizes["state"]),
        "nis": _nis(results.array(name, "nis"), results.array(name, "measured"), outcomes == 0),
    }
    if results.about["settings"]["truth"] == "scenario":
        judged = {key: _of_one_truth(value) for key, value in judged.items()}
    return ControllerSummary(
        name=name,
        runs=len(costs),
        cost=_mean(done / steps),
        total=_mean(done),
        cost_with_failures=None
        if failure_cost is None
        else _mean(np.where(np.isfinite(costs), costs, failure_cost) / steps),
        difference=difference,
        excess=excess,
        better=better,
        better_with_failures=better_with_failures,
        failed={reasons[code]: int(np.sum(outcomes == code)) for code in np.unique(outcomes) if code != 0},
        nees_parameters=judged["nees_parameters"],
        nees_state=judged["nees_state"],
        nis=judged["nis"],
        fallbacks=float(np.mean(fallbacks[decided] > 0)) if decided.any() else None,
        losses=tuple(loss_sentences(results.about["processes"], results.array(name, "losses"))),
        violations=_violations(results, name, outcomes == 0),
    )


def _violations(results: Labelled, name: str, finished: NDArray[np.bool_]) -> tuple[Violation, ...]:
    texts = results.about.get("constraints", [])
    if not texts or not finished.any():
        return ()
    g = results.array(name, "constraints")[finished, 1:]
    found = []
    for c, text in enumerate(texts):
        over = g[:, :, c][g[:, :, c] > 0.0]
        mean, largest = (float(np.mean(over)), float(np.max(over))) if over.size else (0.0, 0.0)
        found.append(Violation(str(text), float(over.size / g[:, :, c].size), mean, largest))
    return tuple(found)


def _finished_costs(results: Labelled, name: str) -> Array:
    """L by run, NaN where the episode failed."""
    return np.where(results.array(name, "outcomes") == 0, results.array(name, "costs"), np.nan)


def _rounded(number: int) -> int:
    """Two digits, rounded up."""
    unit = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // unit) * unit


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _mean(values: Array) -> Mean | None:
    if not values.size:
        return None
    deviation = float(np.std(values, ddof=1)) if values.size > 1 else None
    error = None if deviation is None else deviation / math.sqrt(values.size)
    return Mean(float(np.mean(values)), error, deviation, int(values.size))


def _nees(values: Array, size: int) -> Consistency | None:
    known = values[np.isfinite(values)]
    return consistency(float(np.mean(known)), known.size * size) if known.size else None


def _of_one_truth(judged: Consistency | None) -> Consistency | None:
    """A single truth that happens to lie near the mean of the prior does not show that the filter knows too little."""
    if judged is None or not judged.verdict.endswith("underconfident"):
        return judged
    return Consistency(judged.mean, "consistent")


def _nis(nis: Array, measured: Array, finished: NDArray[np.bool_]) -> Consistency | None:
    """Averaged over all entries that were measured in the episodes that finished."""
    nis, measured = nis[finished], measured[finished]
    known = np.isfinite(nis) & (measured > 0)
    entries = float(np.sum(measured[known]))
    return consistency(float(np.sum(nis[known])) / entries, entries) if entries else None


def consistency(mean: float, freedom: float) -> Consistency:
    """Judge the mean of a normalised squared error over as many degrees of freedom."""
    return Consistency(mean, judge(mean, freedom).word)
