"""The paper's table beside ours: means, spreads, standard errors, paired differences and the honesty of the beliefs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from symdual.paper.experiments.plan import PUBLISHED, Arm, Experiment
from symdual.runtime.closed_loop import Episodes
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Array

_NIS, _MEASURED = 3, 4  # columns of the statistics of a step


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


@dataclass(frozen=True)
class Line:
    """One line of a table.

    Args:
        cost: L / T over the runs that finished.
        difference: cost minus that of ce with the same luck, run by run; None for ce itself.
        to_dual: the same beside dual.
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
    """The table of one experiment under one truth."""

    experiment: Experiment
    truth: str
    runs: int
    lines: tuple[Line, ...]

    def line(self, key: str) -> Line:
        """The line of an arm."""
        return next(line for line in self.lines if line.arm.key == key)


def estimate(values: Array) -> Estimate:
    """Mean, standard deviation (n - 1) and standard error of the values that are not NaN."""
    kept = values[~np.isnan(values)]
    count = len(kept)
    mean = float(np.mean(kept)) if count else math.nan
    std = float(np.std(kept, ddof=1)) if count > 1 else math.nan
    return Estimate(mean, std, std / math.sqrt(count) if count > 1 else math.nan, count)


def table(experiment: Experiment, truth: str, package: LoadedPackage, episodes: Mapping[str, Episodes]) -> Table:
    """The table of an experiment from the episodes of its arms."""
    base, dual = per_step(episodes["ce"]), per_step(episodes["dual"])
    lines = []
    for arm in experiment.arms:
        own = episodes[arm.key]
        costs = per_step(own)
        lines.append(
            Line(
                arm=arm,
                cost=estimate(costs),
                difference=None if arm.key == "ce" else estimate(costs - base),
                to_dual=None if arm.key == "dual" else estimate(costs - dual),
                published=PUBLISHED[experiment.number].get(arm.key) if truth == "paper" else None,
                failed=int(np.sum(own.outcomes != 0)),
                nees=None
                if arm.controller == "oracle"
                else nees(own, true_parameters(experiment, truth, package, own)),
                nis=nis(own),
            )
        )
    return Table(experiment, truth, len(base), tuple(lines))


def per_step(episodes: Episodes) -> Array:
    """L / T of each run."""
    return np.asarray(episodes.costs / episodes.inputs.shape[1])


def true_parameters(experiment: Experiment, truth: str, package: LoadedPackage, episodes: Episodes) -> Array | None:
    """What the parameters of the model really are, (runs, p), NaN for those that do not matter; None if nothing is."""
    if truth == "prior":
        return episodes.truths
    if not experiment.parameters:
        return None
    values = np.full(package.NTHETA, np.nan)
    for name, entries in experiment.parameters.items():
        start, count = package.UNKNOWNS[name]
        values[start : start + count] = [math.nan if entry is None else entry for entry in entries]
    return np.repeat(values[None], len(episodes.truths), axis=0)


def nees(episodes: Episodes, truths: Array | None) -> tuple[float, float] | None:
    """Mean and median over runs of (theta - m)' S^-1 (theta - m) / p at the end, over the parameters that are known."""
    if truths is None:
        return None
    size = truths.shape[1]
    known = np.flatnonzero(~np.isnan(truths[0]))
    error = (truths - episodes.means[:, -1, -size:])[:, known]
    covariance = episodes.covariances[:, -size:, -size:][:, known][:, :, known]
    squares = [_square(e, s) / len(known) for e, s in zip(error, covariance, strict=True) if np.all(np.isfinite(s))]
    return (float(np.mean(squares)), float(np.median(squares))) if squares else None


def _square(error: Array, covariance: Array) -> float:
    """e' S^-1 e; directions without uncertainty are left out."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-12 * max(values[-1], 0.0)
    return float(np.sum((vectors.T @ error)[kept] ** 2 / values[kept]))


def nis(episodes: Episodes) -> float:
    """Mean of the normalised innovations squared, per measured number, over all runs and steps."""
    total, measured = episodes.steps[:, 1:, _NIS], episodes.steps[:, 1:, _MEASURED]
    return float(np.nansum(total) / max(np.nansum(measured), 1.0))


def ascending(table: Table, keys: Sequence[str]) -> bool:
    """Whether the means of these arms stand in this order."""
    means = [table.line(key).cost.mean for key in keys]
    return all(first < second for first, second in pairwise(means))


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
