"""The paper's table beside ours: means, spreads, standard errors, paired differences and how right the beliefs are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from symdual.common.arrays import Array
from symdual.paper.experiments.plan import PUBLISHED, Arm, Experiment
from symdual.paper.experiments.run import Recorded
from symdual.runtime.loading import LoadedPackage

CHANCE = 0.0027  # probability beyond three standard deviations of a normal distribution


@dataclass(frozen=True)
class Estimate:
    """A mean with its standard deviation over runs and its standard error."""

    mean: float
    std: float
    error: float
    runs: int

    @property
    def ratio(self) -> float:
        """The mean in standard errors."""
        return self.mean / self.error if self.error > 0.0 else math.nan

    @property
    def sign(self) -> int:
        """The sign of the mean if chance alone would hardly give it, otherwise 0: nothing may be concluded.

        Hardly: with a probability below `CHANCE`, by Student's distribution; three standard errors for many runs.
        """
        if self.runs < 2 or math.isnan(self.mean):
            return 0
        limit = float(student.ppf(1.0 - 0.5 * CHANCE, self.runs - 1)) * self.error
        return 0 if abs(self.mean) <= limit else 1 if self.mean > 0.0 else -1


@dataclass(frozen=True)
class Line:
    """One line of a table.

    Args:
        cost: L / T over the runs that finished.
        difference: cost minus that of ce with the same random draws, run by run; None for ce itself.
        to_dual: the same against dual.
        published: the paper's mean and standard deviation, where it has them and the truth is the paper's.
        failed: runs that did not finish.
        nees: mean and median over runs of the squared error of the parameters in units of their believed covariance,
            per parameter, at the end; the mean of an honest belief is 1. None where the model cannot represent the
            truth.
        nis: mean of the squared innovations in units of their believed covariance, per measurement; 1 if honest.
    """

    arm: Arm
    cost: Estimate
    difference: Estimate | None
    to_dual: Estimate | None
    published: tuple[float, float] | None
    failed: int
    nees: tuple[float, float] | None
    nis: float


@dataclass(frozen=True)
class Table:
    """The table of one experiment under one truth; `steps` is T, `costs` are L / T of every run by arm."""

    experiment: Experiment
    truth: str
    runs: int
    steps: int
    lines: tuple[Line, ...]
    costs: Mapping[str, Array]

    def line(self, key: str) -> Line:
        """The line of an arm."""
        return next(line for line in self.lines if line.arm.key == key)

    def apart(self, first: str, second: str) -> Estimate:
        """The cost of the first arm minus that of the second, run by run."""
        return estimate(self.costs[first] - self.costs[second])

    def spread(self, first: str, second: str) -> Estimate:
        """log(std of the first arm / std of the second), its error by the jackknife over runs."""
        kept = ~np.isnan(self.costs[first] + self.costs[second])
        logs = [_log_deviation(self.costs[key][kept]) for key in (first, second)]
        return _jackknifed(*(logs[0][i] - logs[1][i] for i in range(2)))

    def own_spread(self, key: str) -> Estimate:
        """log std of an arm, its error by the jackknife over runs."""
        return _jackknifed(*_log_deviation(self.costs[key][~np.isnan(self.costs[key])]))


def estimate(values: Array) -> Estimate:
    """Mean, standard deviation (n - 1) and standard error of the values that are not NaN."""
    kept = values[~np.isnan(values)]
    count = len(kept)
    mean = float(np.mean(kept)) if count else math.nan
    std = float(np.std(kept, ddof=1)) if count > 1 else math.nan
    return Estimate(mean, std, std / math.sqrt(count) if count > 1 else math.nan, count)


def _log_deviation(values: Array) -> tuple[Array, Array]:
    """log std of all values, (1,), and without each of them in turn, (n,)."""
    count = len(values)
    if count < 3:
        return np.full(1, np.nan), np.full(max(count, 1), np.nan)
    centred = values - np.mean(values)
    total = np.sum(centred**2)
    without = total - centred**2 * count / (count - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return 0.5 * np.log([total / (count - 1)]), 0.5 * np.log(without / (count - 2))


def _jackknifed(whole: Array, without: Array) -> Estimate:
    count = len(without)
    error = math.sqrt((count - 1) / count * float(np.sum((without - np.mean(without)) ** 2)))
    return Estimate(float(whole[0]), error * math.sqrt(count), error, count)


def table(experiment: Experiment, truth: str, package: LoadedPackage, episodes: Mapping[str, Recorded]) -> Table:
    """The table of an experiment from the runs of its arms."""
    everybody = {arm.key: per_step(episodes[arm.key]) for arm in experiment.arms}
    base, dual = everybody["ce"], everybody["dual"]
    lines = []
    for arm in experiment.arms:
        own, costs = episodes[arm.key], everybody[arm.key]
        lines.append(
            Line(
                arm=arm,
                cost=estimate(costs),
                difference=None if arm.key == "ce" else estimate(costs - base),
                to_dual=None if arm.key == "dual" else estimate(costs - dual),
                published=PUBLISHED[experiment.number].get(arm.key) if truth == "paper" else None,
                failed=int(np.sum(own.outcomes != 0)),
                nees=None if arm.controller == "oracle" else nees(experiment, truth, package, own),
                nis=nis(own),
            )
        )
    return Table(experiment, truth, len(base), episodes["ce"].inputs.shape[1], tuple(lines), everybody)


def per_step(episodes: Recorded) -> Array:
    """L / T of each run."""
    return np.asarray(episodes.costs / episodes.inputs.shape[1])


def nees(experiment: Experiment, truth: str, package: LoadedPackage, own: Recorded) -> tuple[float, float] | None:
    """Mean and median over runs of the squared error of the parameters at the end, in believed units, per parameter.

    Where the model can represent the truth but the plant is another model (Exp 3), the parameters that matter are
    weighed with their own variances alone: mean_i (theta_i - m_i)^2 / S_ii.
    """
    values = own.nees_parameters
    if truth == "paper" and np.all(np.isnan(values)) and experiment.parameters:
        values = _by_variances(true_parameters(experiment, package), own)
    kept = values[np.isfinite(values)]
    return (float(np.mean(kept)), float(np.median(kept))) if len(kept) else None


def true_parameters(experiment: Experiment, package: LoadedPackage) -> Array:
    """What the parameters of the model really are, (p,), NaN for those that do not matter."""
    values = np.full(package.NTHETA, np.nan)
    for name, entries in experiment.parameters.items():
        start, count = package.UNKNOWNS[name]
        values[start : start + count] = [math.nan if entry is None else entry for entry in entries]
    return values


def _by_variances(truth: Array, own: Recorded) -> Array:
    known, size = np.flatnonzero(~np.isnan(truth)), len(truth)
    error = (truth - own.means[:, -1, -size:])[:, known]
    return np.asarray(np.mean(error**2 / own.variances[:, -1, -size:][:, known], axis=1))


def nis(own: Recorded) -> float:
    """Mean of the normalised innovations squared, per measured number, over all runs and steps."""
    return float(np.nansum(own.nis[:, 1:]) / max(np.nansum(own.measured[:, 1:]), 1.0))


def as_json(table: Table) -> dict[str, Any]:
    """A table as plain data; numbers that do not exist are None."""
    return {
        "experiment": table.experiment.number,
        "model": table.experiment.model,
        "truth": table.truth,
        "runs": table.runs,
        "lines": [
            {
                "controller": line.arm.key,
                "cost_per_step": estimate_json(line.cost),
                "minus_ce": None if line.difference is None else estimate_json(line.difference),
                "minus_dual": None if line.to_dual is None else estimate_json(line.to_dual),
                "published": None if line.published is None else {"mean": line.published[0], "std": line.published[1]},
                "failed": line.failed,
                "nees": None if line.nees is None else {"mean": number(line.nees[0]), "median": number(line.nees[1])},
                "nis": number(line.nis),
            }
            for line in table.lines
        ],
        "assumptions": list(table.experiment.assumptions),
    }


def estimate_json(value: Estimate) -> dict[str, float | None]:
    """An estimate as plain data."""
    return {"mean": number(value.mean), "std": number(value.std), "standard_error": number(value.error)}


def number(value: float | None) -> float | None:
    """JSON knows neither NaN nor infinity."""
    return None if value is None or not math.isfinite(value) else float(value)
