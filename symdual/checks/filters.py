"""Filters side by side on a user's model: which of them believe what is true, and which one to take.

A filter is preferred to a faster one where the truth is clearly more likely under its belief, on average over the runs:
the 95 % interval of the difference in log p, from resampled runs, lies above `MATTERS`. A standard error would not do:
the few runs in which an overconfident filter is far off make it as large as the difference itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from symdual.backends.loading import load
from symdual.checks.filter_runs import FilterRuns, drawn, filtered, subject
from symdual.common.errors import ModelError, SymdualError
from symdual.derive.structure import structure
from symdual.generation import Wanted, generated, packages_folder, wanted, write_all
from symdual.runtime import problem as problems
from symdual.runtime.consistency import TAIL, judge
from symdual.runtime.evaluate import whole_number
from symdual.runtime.problem import Problem
from symdual.spec.loading import ModelFile
from symdual.spec.model import FILTERS, require_fit_for_processes

MATTERS = 0.1  #: logarithm of a ratio of densities; smaller ones are worth no time
FEWEST = 10  #: runs from which anything is said to be clear
RESAMPLED = 2000
VARIANTS = "filters"  #: the folder of packages with other filters than the model's own, below that of packages


@dataclass(frozen=True)
class FilterRow:
    """One filter in the table; None stands for what cannot be said.

    Args:
        same: other filters that cannot differ from it on this model.
        nees, median: mean and median over the runs of the normalised squared error at the end, for each dimension.
        verdict: what `runtime.consistency` makes of the mean.
        nis: of each measured number.
        error: at the end, in deviations of the prior; mean over the runs of the root mean square over the unknowns.
        lost: runs in which the belief was not finite any more.
        time: of a step, relative to the first filter.
    """

    name: str
    same: tuple[str, ...]
    nees: float | None
    median: float | None
    verdict: str | None
    nis: float | None
    error: float | None
    lost: int
    time: float | None


@dataclass(frozen=True)
class Comparison:
    """Filters side by side on one scenario.

    Args:
        own: the filter of the model.
        subject: what errors are of, "unknowns" or "states", and how many there are.
        honest: where mean and median of the NEES, and the NIS, of an honest filter lie.
        chosen, reason: the filter to take, and why.
        left_out: filters that the model refuses, each with the reason.
    """

    model: str
    scenario: str
    own: str
    runs: int
    seed: int
    subject: str
    size: int
    rows: tuple[FilterRow, ...]
    honest: Mapping[str, tuple[float, float]]
    chosen: str
    reason: str
    left_out: Mapping[str, str]
    remarks: tuple[str, ...]

    def row(self, name: str) -> FilterRow:
        """The row of a filter, which may be that of another from which it cannot differ."""
        return next(row for row in self.rows if name in (row.name, *row.same))

    @property
    def passed(self) -> bool:
        """Whether the model's own filter is not overconfident, or slightly so at most."""
        return self.row(self.own).verdict != "overconfident"

    def sentences(self) -> Iterator[str]:
        """What the table does not say."""
        yield from self.remarks
        for row in self.rows:
            if row.same:
                yield f"{' and '.join(row.same)} cannot differ from {row.name} on this model"
        for name, why in self.left_out.items():
            yield f"{name} is left out: {why}"
        own = self.row(self.own)
        if own.verdict is not None and own.nees is not None and own.verdict.endswith("confident"):
            yield (
                f"{self.own}, which the model uses, is {own.verdict} about its {self.subject}: the squared error is "
                f"{own.nees:.3g} times what the belief says"
            )
        yield self.reason
        if self.row(self.chosen).verdict == "overconfident":
            yield "no filter is honest here: look at noise, drift and signals first"

    def to_json(self) -> dict[str, Any]:
        """The comparison as plain data."""
        return {**asdict(self), "passed": self.passed, "sentences": list(self.sentences())}


def compare_filters(
    contents: ModelFile,
    runs: int,
    seed: int,
    folder: str | Path | None,
    backend: str | None,
    report: Callable[[str, float], None],
) -> dict[str, Comparison]:
    """All filters on every scenario of a file, by scenario; one that cannot be drawn from is an error."""
    runs, seed = whole_number(runs, "the number of runs"), whole_number(seed, "the seed", least=0)
    if not contents.scenarios:
        raise SymdualError(f"{contents.place} has no Scenario: add one, its start and its inputs are what filters meet")
    parent = packages_folder(folder)
    generated(contents, folder)
    packages = {one.name: one for one in wanted(contents, parent)}
    found = {}
    for number, (name, scenario) in enumerate(contents.scenarios.items()):

        def part(begun: int, what: str, share: float) -> None:
            report(what, (begun + share) / len(contents.scenarios))

        tell = partial(part, number)
        own = problems.problem(load(parent / scenario.model.name, backend), name)
        found[name] = _compared(own, packages[scenario.model.name], runs, seed, parent, backend, tell)
    return found


def _compared(
    own: Problem,
    asked: Wanted,
    runs: int,
    seed: int,
    parent: Path,
    backend: str | None,
    report: Callable[[str, float], None],
) -> Comparison:
    """All filters on one scenario."""
    report(f"{own.name}: recording with ce", 0.0)
    systems = drawn(own, runs, seed)
    groups, left_out = filters_of(asked)
    versions = {}
    for number, name in enumerate(groups):
        report(f"{own.name}: compiling {name}", 0.1 + 0.4 * number / len(groups))
        mine = asked.specification.filter in (name, *groups[name])
        versions[name] = own if mine else with_filter(own, asked, name, parent, backend)
    found = filtered(versions, systems, lambda name, share: report(f"{own.name}: {name}", 0.5 + 0.5 * share))
    package, whose = own.package, subject(own)
    short = sum(len(one.recording.times) <= own.horizon for one in systems)
    rows = tuple(_row(name, groups[name], found, whose.stop - whose.start) for name in found)
    chosen, reason = _choice(found, rows)
    return Comparison(
        model=package.name,
        scenario=own.name,
        own=asked.specification.filter,
        runs=runs,
        seed=seed,
        subject="states" if whose.start == 0 else "unknowns",
        size=whose.stop - whose.start,
        rows=rows,
        honest=_honest(found, whose.stop - whose.start),
        chosen=chosen,
        reason=reason,
        left_out=left_out,
        remarks=tuple(_remarks(own, short, runs)),
    )


def filters_of(asked: Wanted) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """The filters that differ on a model, each with those that are the same; and those that it refuses, and why."""
    shape = structure(asked.derivation)
    found: dict[str, list[str]] = {}
    refused = {}
    for name in FILTERS:
        try:
            require_fit_for_processes(asked.specification.changed(filter=name))
        except ModelError as failure:
            refused[name] = str(failure)
            continue
        used = shape.filter_in_use(name)
        found.setdefault(used, [])
        if used != name:
            found[used].append(name)
    return {name: tuple(same) for name, same in found.items()}, refused


def with_filter(own: Problem, asked: Wanted, name: str, parent: Path, backend: str | None) -> Problem:
    """The same problem with another filter."""
    one = replace(asked, specification=asked.specification.changed(filter=name), parts=frozenset())
    place = parent / VARIANTS / name
    if not one.is_unchanged(place):
        write_all([one], place, None)
    package = load(place / one.name, backend)
    return replace(own, package=package, plant=package if own.plant_is_model else own.plant)


def _remarks(own: Problem, short: int, runs: int) -> Iterator[str]:
    package = own.package
    if package.PROCESSES:
        process = next(iter(package.PROCESSES))
        yield (
            f"the unknown function {process} cannot be drawn: the system is the plant of the scenario, and errors are "
            "those of the states"
        )
    elif not package.NTHETA:
        yield f"{package.name} has no unknowns: errors are those of the states"
    if short:
        yield f"in {short} of {runs} runs `ce` did not come to the end; these are recorded as far as it went"


# ------------------------------------------------------------------------------------------------ judging


def _row(name: str, same: tuple[str, ...], found: Mapping[str, FilterRuns], size: int) -> FilterRow:
    own, first = found[name], next(iter(found.values()))
    nees = own.nees[np.isfinite(own.nees)]
    measured = float(np.nansum(own.measured))
    relative = own.seconds / first.seconds if first.seconds > 0.0 else math.nan
    return FilterRow(
        name=name,
        same=same,
        nees=float(np.mean(nees)) if nees.size else None,
        median=float(np.median(nees)) if nees.size else None,
        verdict=judge(float(np.mean(nees)), nees.size * size).word if nees.size else None,
        nis=float(np.nansum(own.nis)) / measured if measured else None,
        error=float(np.nanmean(own.errors)) if np.isfinite(own.errors).any() else None,
        lost=own.lost,
        time=relative if math.isfinite(relative) else None,
    )


def _honest(found: Mapping[str, FilterRuns], size: int) -> dict[str, tuple[float, float]]:
    """Where an honest filter's numbers lie in 99.8 % of all comparisons with as many runs."""
    from scipy.special import betaincinv, chdtri

    most = max(found.values(), key=lambda runs: np.isfinite(runs.nees).sum())
    count, measured = int(np.isfinite(most.nees).sum()), float(np.nansum(most.measured))
    bands = {}
    if count:
        bands["nees"] = judge(1.0, count * size)[:2]
        half = 0.5 * (count + 1)  # the median of so many uniform numbers is beta-distributed
        ranks = (float(betaincinv(half, half, tail)) for tail in (TAIL, 1.0 - TAIL))
        low, high = (float(chdtri(size, 1.0 - rank)) / size for rank in ranks)
        bands["median"] = (low, high)
    if measured:
        bands["nis"] = judge(1.0, measured)[:2]
    return bands


def _choice(found: Mapping[str, FilterRuns], rows: tuple[FilterRow, ...]) -> tuple[str, str]:
    """The first of the filters that are lost least often and that no other beats, with the reason in a sentence.

    The first in the table is the simplest. Measured times have no say: the same data give the same advice.
    """
    least = min(row.lost for row in rows)
    ranked = [row for row in rows if row.lost == least]
    if len(rows) == 1:
        return rows[0].name, f"take {rows[0].name}: on this model no other filter can differ from it"
    unbeaten = (a for a in ranked if not any(_gain(found[a.name], found[b.name]).clear for b in ranked))
    chosen = next(unbeaten, ranked[0])
    simpler = [row for row in ranked if rows.index(row) < rows.index(chosen)]
    if simpler:
        gain = _gain(found[simpler[0].name], found[chosen.name])
        return chosen.name, f"take {chosen.name}: {_why(chosen, simpler[0], gain)}"
    worst = max(rows, key=lambda row: row.lost)
    if worst.lost > least:
        return chosen.name, f"take {chosen.name}: it is lost in {least} runs, {worst.name} in {worst.lost}"
    return chosen.name, f"take {chosen.name}: the truth is not clearly more likely under any other, and none is simpler"


class Gain(NamedTuple):
    """By how much log p of the truth is larger under one belief than under another: mean over runs, and interval."""

    mean: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether it is neither chance nor too little to matter."""
        return self.low > MATTERS


def _gain(one: FilterRuns, other: FilterRuns) -> Gain:
    """How much more likely the truth is under the other."""
    gain = one.scores - other.scores
    gain = gain[np.isfinite(gain)]
    if gain.size < FEWEST:
        return Gain(math.nan, -math.inf, math.inf)
    picked = np.random.default_rng(0).integers(gain.size, size=(RESAMPLED, gain.size))
    low, high = np.quantile(gain[picked].mean(axis=1), [0.025, 0.975])
    return Gain(float(np.mean(gain)), float(low), float(high))


def _why(chosen: FilterRow, beaten: FilterRow, gain: Gain) -> str:
    more = f"by {gain.mean:.3g} in log p ({gain.low:.3g} to {gain.high:.3g})"
    parts = [f"on the same data the truth is more likely than under {beaten.name}, {more}"]
    if chosen.nees is not None and beaten.nees is not None:
        parts.append(f"its NEES is {chosen.nees:.3g} instead of {beaten.nees:.3g}")
    if chosen.error is not None and beaten.error is not None:
        parts.append(f"its error {chosen.error:.3g} instead of {beaten.error:.3g}")
    if chosen.time and beaten.time:
        parts.append(f"a step takes {chosen.time / beaten.time:.2g} times as long")
    return ", ".join(parts[:-1]) + f", and {parts[-1]}"
