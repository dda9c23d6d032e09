"""What the arena says of episodes: paired differences with a correction for many comparisons, ranks, and regret.

An episode costs L, with w max(0, g)^2 for every violation of a constraint g <= 0, as all plans count it. One that
failed costs as much as the worst that any controller finished on that system.

Differences from `ce` are paired, run by run, with Student's t; all of them, over systems and controllers, are
corrected together by Holm (1979). Over systems, mean costs become ranks, compared by Friedman's test and Nemenyi's
critical difference

    CD = q(0.05, k) / sqrt(2) sqrt(k (k + 1) / (6 N))          (Demsar 2006)

for k controllers on N systems, q being a quantile of the studentised range.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from symdual.runtime.closed_loop import Settings
from symdual.runtime.costs import settings_of
from symdual.runtime.objective import constraints_of
from symdual.runtime.problem import Problem
from symdual.runtime.results import Results

from .roster import BASELINE, CONTROLLERS, System

LEVEL = 0.05
SAME = 1e-9  # share by which equal costs may differ


class Score(NamedTuple):
    """A controller on a system; None where it cannot be said.

    Args:
        cost: mean over runs; error: its standard error.
        gap: mean of the paired differences from `ce`, gap_error: its standard error; p: that it is zero.
        regret: percent of the cost of the reference, or of the exact optimum, beyond it; regret_error.
        over: percent of the times at which a constraint was violated.
    """

    cost: float
    error: float
    gap: float
    gap_error: float
    p: float | None
    regret: float | None
    regret_error: float | None
    ms: float
    failed: int
    over: float | None


class Played(NamedTuple):
    """A system with the scores of all who took part, and why others did not."""

    name: str
    about: str
    reference: str
    runs: int
    steps: int
    scores: dict[str, Score]
    refused: dict[str, str]
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """As a dictionary."""
        return {**self._asdict(), "scores": {name: one._asdict() for name, one in self.scores.items()}}

    @staticmethod
    def from_json(told: dict[str, Any]) -> Played:
        """From such a dictionary."""
        return Played(**{**told, "scores": {name: Score(**one) for name, one in told["scores"].items()}})


def score(
    system: System,
    problem: Problem,
    results: Results,
    settings: Settings,
    times: dict[str, float],
    refused: dict[str, str],
) -> Played:
    """Score all controllers of a sweep."""
    names = results.description.controllers
    costs = {name: costs_of(problem, name, results, settings) for name in names}
    worst = max(float(np.nanmax(one)) for one in costs.values() if np.isfinite(one).any())
    found = {}
    for name in names:
        failed = int(np.isnan(costs[name]).sum())
        paid, usual = (np.where(np.isnan(costs[one]), worst, costs[one]) for one in (name, BASELINE))
        regret, regret_error = regret_of(system, name, results, costs, worst)
        found[name] = Score(
            *mean_of(paid), *mean_of(paid - usual), chance(paid - usual), regret, regret_error, times[name], failed,
            violated(problem, name, results),
        )  # fmt: skip
    exactly = "exact optimum" if system.losses else system.reference
    steps = int(results.about["horizon"])
    return Played(system.name, system.about, exactly, results.description.runs, steps, found, refused)


def costs_of(problem: Problem, name: str, results: Results, settings: Settings) -> np.ndarray:
    """What each episode cost, NaN for one that failed."""
    costs: np.ndarray = np.where(results.array(name, "outcomes") == 0, results.array(name, "costs"), np.nan)
    if not constraints_of(problem.package):
        return costs
    weights = settings_of(problem, name, settings.order, settings.options)[0]["constraint_weights"]
    return costs + np.nansum(weights * np.maximum(results.array(name, "constraints"), 0.0) ** 2, axis=(1, 2))


def violated(problem: Problem, name: str, results: Results) -> float | None:
    """Percent of the times, but for the first, at which some constraint was violated."""
    if not constraints_of(problem.package):
        return None
    return 100 * float(np.mean(np.any(results.array(name, "constraints")[:, 1:] > 0.0, axis=2)))


def mean_of(values: np.ndarray) -> tuple[float, float]:
    """Mean and standard error."""
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(values.size))


def chance(gaps: np.ndarray) -> float | None:
    """How probable such differences are if there is none on average; None where all are zero."""
    if not np.any(gaps):
        return None
    return float(stats.ttest_1samp(gaps, 0.0).pvalue) if gaps.std() > 0.0 else 0.0


def regret_of(
    system: System, name: str, results: Results, costs: dict[str, np.ndarray], worst: float
) -> tuple[float | None, float | None]:
    """Percent beyond the exact optimum where it is known, else beyond the reference; with its standard error."""
    if name == system.reference and system.losses is None:
        return None, None
    if system.losses is not None:
        if name == "oracle":  # it knows more than the optimum may
            return None, None
        return mean_of(system.losses(*(results.array(name, field) for field in ("inputs", "means", "variances"))))
    paid, least = (np.where(np.isnan(costs[one]), worst, costs[one]) for one in (name, system.reference))
    gap, error = mean_of(paid - least)
    whole = abs(float(least.mean()))
    return 100 * gap / whole, 100 * error / whole


def holm(played: list[Played]) -> dict[tuple[str, str], float]:
    """The p of each difference from `ce` by system and controller, corrected for all that are tested."""
    tested = {
        (one.name, name): one.scores[name].p
        for one in played
        for name in CONTROLLERS
        if name != BASELINE and name in one.scores and one.scores[name].p is not None
    }
    found, largest = {}, 0.0
    for place, key in enumerate(sorted(tested, key=lambda k: tested[k] or 0.0)):
        largest = max(largest, min(1.0, (len(tested) - place) * (tested[key] or 0.0)))
        found[key] = largest
    return found


class Ranks(NamedTuple):
    """Mean ranks over the systems on which all took part, 1 being the best, and when two differ."""

    mean: dict[str, float]
    systems: int
    p: float
    critical: float


def ranks(played: list[Played], names: tuple[str, ...] = CONTROLLERS) -> Ranks:
    """Ranks by mean cost; costs that differ by rounding share theirs."""
    whole = [one for one in played if all(name in one.scores for name in names)]
    rows = []
    for one in whole:
        costs = np.array([one.scores[name].cost for name in names])
        rows.append(stats.rankdata(np.round(costs / (SAME * max(np.abs(costs).max(), 1e-300)))))
    table, k, n = np.array(rows), len(names), len(whole)
    p = float(stats.friedmanchisquare(*table.T).pvalue) if n > 1 else math.nan
    return Ranks(dict(zip(names, table.mean(axis=0).tolist(), strict=True)), n, p, critical_difference(k, n))


def critical_difference(k: int, n: int) -> float:
    """That of Nemenyi."""
    quantile = float(stats.studentized_range.ppf(1 - LEVEL, k, np.inf))
    return quantile / math.sqrt(2) * math.sqrt(k * (k + 1) / (6 * n))


def cliques(found: Ranks) -> list[tuple[str, ...]]:
    """The largest groups of controllers that do not differ, from the best on."""
    order = sorted(found.mean, key=lambda name: found.mean[name])
    groups: list[tuple[str, ...]] = []
    for start, first in enumerate(order):
        group = tuple(name for name in order[start:] if found.mean[name] - found.mean[first] <= found.critical)
        if len(group) > 1 and not any(set(group) <= set(other) for other in groups):
            groups.append(group)
    return groups
