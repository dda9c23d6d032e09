"""Runs the filter over a recording: what the model would have believed, and whether it would have been right.

A recording is a table with a column for the time, one for each input and one for each measurement. The inputs of a row
are those applied from its time on; its measurements are taken at its time. An empty cell or NaN in a measurement means
that it was not measured.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symdual.common.arrays import Array
from symdual.common.atomic_files import write_atomically
from symdual.common.errors import SymdualError, did_you_mean
from symdual.common.named_arrays import named
from symdual.common.numbers import number_in
from symdual.entries.recursions import FilterWorkspace
from symdual.runtime.belief import Belief
from symdual.runtime.consistency import BAND, judge
from symdual.runtime.culprits import fault_of_step
from symdual.runtime.info import Statistics
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.outliers import counts_outliers, outliers_in
from symdual.runtime.posterior import by_values, losses
from symdual.runtime.problem import Problem
from symdual.runtime.signals import place_of, signals_of
from symdual.runtime.standby import with_standby
from symdual.runtime.stiffness import too_fast

TIME = "time"
MOST_STEPS = 1_000_000  # of the model in a recording: every one of them is a prediction


class BeliefNotFinite(SymdualError):
    """The belief left the numbers: `mean` and `inputs` are the last before that, at step `step` of the model."""

    def __init__(self, sentence: str, mean: Array, inputs: Array, step: int) -> None:
        super().__init__(sentence)
        self.mean, self.inputs, self.step = mean, inputs, step


class Recording(NamedTuple):
    """Times (K,), inputs (K, NU) and measurements (K, NY) with NaN where nothing was measured.

    `lines` are those of the file, 0 for a row that lies between two of them; `ignored` are columns that the model does
    not know. The signals of the model (K, S) hold from a row to the next; NaN where the table has none. `past`
    (depth, NU) are inputs before the first row, the last one first, where they are known.
    """

    times: Array
    inputs: Array
    measurements: Array
    lines: NDArray[np.int64]
    ignored: tuple[str, ...]
    signals: Array | None = None
    past: Array | None = None
    name: str = "recording"

    @property
    def measured(self) -> int:
        """The number of measured entries."""
        return int(np.isfinite(self.measurements).sum())

    def __repr__(self) -> str:
        if not len(self.times):
            return "<Recording without rows>"
        return f"<Recording: {len(self.times)} rows, from time {self.times[0]:g} to {self.times[-1]:g}>"


class Consistency(NamedTuple):
    """Are the innovations as large as the filter expects? Their normalised squares sum to chi-square(measured).

    `ratio` is the sum over the number of measured entries, `band` where it lies if the filter is right, `verdict` what
    `symdual.runtime.consistency` makes of it.
    """

    total: float
    measured: int
    ratio: float
    band: tuple[float, float]
    verdict: str

    def sentence(self) -> str:
        """The verdict in words."""
        if self.measured == 0:
            return "nothing was measured, so nothing can be said about the filter's consistency"
        low, high = self.band
        size = {"consistent": "as large as", "overconfident": "larger than", "underconfident": "smaller than"}
        what = f"the filter is {self.verdict}: its innovations are {size[self.verdict.split()[-1]]} it expects"
        return f"{what} (mean NIS per measured entry {self.ratio:.3g}, {BAND} {low:.3g} to {high:.3g})"


class Replay(NamedTuple):
    """The belief after each row: means and standard deviations (K, NZ) in your units, with the row's statistics (K,).

    A Gaussian process is shown by its values at the points remembered so far; `belief` is the last belief itself.
    `rejected` are, row by row, the names of the measured numbers that were too far off (`Model(outliers=...)`).
    `unsettled` counts the rows at which an iterated filter came to its limit and took the best point that it had found.
    """

    recording: Recording
    means: Array
    deviations: Array
    log_likelihoods: Array
    nis: Array
    measured: NDArray[np.int64]
    belief: Belief
    rejected: tuple[tuple[str, ...], ...] = ()
    unsettled: int = 0

    def __repr__(self) -> str:
        ratio = f"log-likelihood {self.log_likelihood:.5g}, mean NIS {self.consistency.ratio:.3g}"
        return f"<Replay: {len(self.means)} rows, {ratio}; at the end {self.belief!r}>"

    def _repr_html_(self) -> str:
        """The belief at the end, for notebooks."""
        return self.belief._repr_html_()

    @property
    def log_likelihood(self) -> float:
        """The log-likelihood of all measurements under the model."""
        return float(self.log_likelihoods.sum())

    @property
    def outliers(self) -> dict[str, int]:
        """How often each measured number was too far off; those that never were are left out."""
        return dict(Counter(name for row in self.rejected for name in row))

    @property
    def consistency(self) -> Consistency:
        """The statistics of the innovations."""
        return consistency(float(self.nis.sum()), int(self.measured.sum()))


def consistency(total: float, measured: int) -> Consistency:
    """Compare a sum of normalised innovations squared with chi-square of as many degrees of freedom."""
    if measured == 0:
        return Consistency(total, 0, math.nan, (math.nan, math.nan), "consistent")
    low, high, word = judge(total / measured, measured)
    return Consistency(total, measured, total / measured, (low, high), word)


# ------------------------------------------------------------------------------------------------ reading


def read_recording(file: Path, package: LoadedPackage) -> Recording:
    """Read a .csv file with the columns `time`, the inputs and the measurements of a model, in any order.

    >>> _ = (folder / "two_rows.csv").write_text("time,u,x\\n0,0.5,1.0\\n1,0.0,1.4\\n")
    >>> symdual.read_recording(folder / "two_rows.csv", problem.package).measurements.tolist()
    [[1.0], [1.4]]
    """
    header, rows = _table(file)
    inputs, outputs = list(package.INPUTS), list(package.MEASUREMENTS)
    heard = [name for name in signals_of(package) if name in header]
    names = [TIME, *inputs, *outputs, *heard]
    for name in names:
        if name not in header:
            hint = did_you_mean(name, header)
            raise SymdualError(f'{file} has no column "{name}"{hint}; it needs the columns {", ".join(names)}')
    columns = {name: header.index(name) for name in names}
    values = np.array([[_number(file, line, row, name, columns[name]) for name in names] for line, row in rows])
    lines = [line for line, _ in rows]
    recording = Recording(
        times=values[:, 0],
        inputs=np.ascontiguousarray(values[:, 1 : 1 + len(inputs)]),
        measurements=np.ascontiguousarray(values[:, 1 + len(inputs) : 1 + len(inputs) + len(outputs)]),
        lines=np.array(lines, dtype=np.int64),
        ignored=tuple(name if name.isprintable() else repr(name) for name in header if name not in names),
        signals=_signals(file, package, heard, values[:, 1 + len(inputs) + len(outputs) :], lines),
        name=file.stem,
    )
    _check(file, recording, inputs, outputs)
    return recording


def _signals(file: Path, package: LoadedPackage, heard: list[str], values: Array, lines: list[int]) -> Array | None:
    """The columns of a table that are signals of the model, in its order."""
    names = signals_of(package)
    if not names:
        return None
    for row, column in np.argwhere(~np.isfinite(values)):
        raise SymdualError(
            f'{file}, line {lines[row]}: the signal "{heard[column]}" is missing or infinite; only measurements may '
            "have gaps"
        )
    found = np.full((len(values), len(names)), np.nan)
    found[:, [names.index(name) for name in heard]] = values
    return found


def _table(file: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header and the rows that are not empty, with their line numbers."""
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.reader(stream)
            rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except OSError as failure:
        raise SymdualError(f"cannot read {file}: {failure.strerror}") from failure
    except (UnicodeDecodeError, csv.Error) as failure:
        raise SymdualError(f"{file} is not a table of comma-separated values: {failure}") from failure
    if not rows:
        raise SymdualError(f"{file} is empty")
    header = [cell.strip() for cell in rows[0][1]]
    for name in header:
        if header.count(name) > 1:
            raise SymdualError(f'{file} has two columns called "{name}"')
    if len(rows) == 1:
        raise SymdualError(f"{file} has a header but no rows")
    for line, row in rows[1:]:
        if len(row) != len(header):
            raise SymdualError(f"{file}, line {line}: {len(row)} cells, but the header has {len(header)}")
    return header, rows[1:]


def _number(file: Path, line: int, row: list[str], name: str, column: int) -> float:
    cell = row[column].strip()
    if not cell:
        return math.nan
    number = number_in(cell)
    if number is None:
        shown = cell if cell.isprintable() and len(cell) <= 60 else repr(cell[:60])
        raise SymdualError(f'{file}, line {line}: "{shown}" in the column "{name}" is not a number')
    return number


def _check(file: Path, recording: Recording, inputs: list[str], outputs: list[str]) -> None:
    """Times finite and increasing, inputs given wherever they act, measurements not infinite."""
    for i, line in enumerate(recording.lines):
        if not math.isfinite(recording.times[i]):
            raise SymdualError(f"{file}, line {line}: the time is missing or infinite")
        if i > 0 and not recording.times[i] > recording.times[i - 1]:
            before, now = recording.times[i - 1], recording.times[i]
            raise SymdualError(f"{file}, line {line}: the times must increase, but {now:g} comes after {before:g}")
        last = i == len(recording.lines) - 1
        for a, name in enumerate(inputs):
            value = recording.inputs[i, a]
            if math.isinf(value) or (math.isnan(value) and not last):
                raise SymdualError(
                    f'{file}, line {line}: the input "{name}" is missing or infinite; only measurements may have gaps'
                )
        for a, name in enumerate(outputs):
            if math.isinf(recording.measurements[i, a]):
                raise SymdualError(f'{file}, line {line}: the measurement "{name}" is infinite')


# ------------------------------------------------------------------------------------------------ filtering


def steps_between(recording: Recording, package: LoadedPackage) -> list[int]:
    """How many steps of the model lie before each row; the first row has none.

    The length of a step is that of the model if it was given in continuous time, and otherwise the median distance of
    the rows. Rows may be left out: the input then holds. A distance that is no multiple (within a tenth) is refused.
    """
    gaps = [later - earlier for earlier, later in pairwise(recording.times.tolist())]
    if "step_length" in package.DATA_ENTRIES:
        unit = float(package.numbers["data"][package.DATA_ENTRIES["step_length"][0]])
    else:
        unit = median(gaps) if gaps else 1.0
    counts, total = [0], 0
    for i, gap in enumerate(gaps):
        if not total + gap / unit <= MOST_STEPS:
            raise SymdualError(
                f"line {recording.lines[i + 1]} of the recording comes {gap:g} after the row before; with the step "
                f"{unit:g} these are more than {MOST_STEPS} steps from the first row on, too many to predict"
            )
        count = round(gap / unit)
        if count < 1 or abs(gap - count * unit) > 0.1 * unit:
            raise SymdualError(
                f"line {recording.lines[i + 1]} of the recording comes {gap:g} after the row before, "
                f"which is no multiple of the step {unit:g}"
            )
        counts.append(count)
        total += count
    return counts


def replay(problem: Problem, recording: Recording) -> Replay:
    """Run the filter over a recording from the problem's prior; the first row updates without predicting."""
    return with_standby((problem.package,), lambda: _replay(problem, recording))


def _replay(problem: Problem, recording: Recording) -> Replay:
    package = problem.package
    module, records = package.filter, package.records
    stats, totals = np.zeros(3), np.zeros(3)
    data = package.numbers["data"] if problem.prior.memory is None else problem.prior.memory
    filter_workspace = module.make_filter_workspace(records.make_settings(*package.noise, problem.bounds, data))
    belief = records.make_belief(*problem.prior[:2])
    if package.SQUARE_ROOT:
        package.filter.factorise(belief)
    means, deviations, statistics = [], [], []
    unsettled = 0
    last = problem.prior.mean
    k = 0
    for i, count in enumerate(steps_between(recording, package)):
        for _ in range(count):
            _set_signals(problem, recording, i - 1, k, filter_workspace)
            module.predict(k, belief, recording.inputs[i - 1], filter_workspace)
            k += 1
        _set_signals(problem, recording, i, k, filter_workspace)
        status = module.update(k, belief, recording.measurements[i], filter_workspace, stats)
        if package.SQUARE_ROOT:
            package.filter.complete(belief)
        mean, covariance = belief["z"][0].copy(), records.read_covariance(belief)
        if status == package.filter.NOT_FINITE or not (
            np.isfinite(mean).all() and np.isfinite(covariance.diagonal()).all()
        ):
            raise _lost(
                problem, f"at line {recording.lines[i]} of the recording", last, recording.inputs[max(i - 1, 0)], k
            )
        last = mean
        unsettled += status == module.NOT_CONVERGED
        with np.errstate(over="ignore"):
            totals += stats
        if not np.isfinite(totals).all():
            raise SymdualError(
                f"line {recording.lines[i]} of the recording has a measurement so far from what the filter expects "
                "that the likelihood is not a number any more"
            )
        held = Belief(mean, covariance, filter_workspace.settings["numbers"][0].copy())._replace(
            names=package.belief_names, transforms=package.transforms
        )
        shown = by_values(package, held)
        means.append(shown[0])
        deviations.append(shown[1])
        rejected = belief["rejected"][0].copy() if counts_outliers(package) else None
        held = held._replace(rejected=rejected)
        outliers = outliers_in(package, rejected, recording.measurements[i])
        statistics.append(Statistics(float(stats[0]), float(stats[1]), int(stats[2]), outliers))
    return Replay(
        recording=recording,
        means=named(np.array(means), package.belief_names),
        deviations=named(np.array(deviations), package.belief_names),
        log_likelihoods=np.array([s.log_likelihood for s in statistics]),
        nis=np.array([s.nis for s in statistics]),
        measured=np.array([s.measured for s in statistics], dtype=np.int64),
        belief=held if package.PROCESSES else held._replace(memory=None),
        rejected=tuple(s.rejected for s in statistics),
        unsettled=int(unsettled),
    )


def _lost(problem: Problem, where: str, mean: Array, u: Array, k: int) -> BeliefNotFinite:
    """What to say of a filter that is not finite any more at step k, after a mean and an input."""
    if problem.package.PROCESSES or not k:
        return BeliefNotFinite(f"the belief is not finite any more {where}", mean, u, k)
    nx = problem.package.NX
    what = "the filter's prediction" if fault_of_step(problem, k, mean, u) else "the belief"
    fast = too_fast(problem.package, [(k - 1, mean[:nx], u, mean[nx:])])
    return BeliefNotFinite(f"{what} is not finite any more {where}{fast}", mean, u, k)


def _set_signals(problem: Problem, recording: Recording, row: int, k: int, filter_workspace: FilterWorkspace) -> None:
    """Let the numbers of the filter be those of a row, or of step k of the scenario where the table has no column."""
    if problem.signals is None:
        return
    believed = problem.signals.of(problem.package)[0]
    values = believed[min(k, len(believed) - 1)].copy()
    if recording.signals is not None:
        values = np.where(np.isnan(recording.signals[row]), values, recording.signals[row])
    if np.isnan(values).any():
        name = signals_of(problem.package)[int(np.argmax(np.isnan(values)))]
        hint = did_you_mean(name, recording.ignored)
        raise SymdualError(
            f'the signal "{name}" has neither a column in the recording nor a value in the scenario{hint}'
        )
    filter_workspace.settings["numbers"][0, place_of(problem.package)] = values


def summary(result: Replay, problem: Problem) -> dict[str, Any]:
    """A replay as plain data: sizes, the last belief by name, the log-likelihood and the consistency.

    Of a Gaussian process only the values that it remembers are a part of the belief.
    """
    judged = result.consistency
    last = zip(problem.package.belief_names, result.means[-1], result.deviations[-1], strict=True)
    rows = len(result.recording.times)
    limit = f"the filter stopped iterating before it settled at {result.unsettled} of {rows} rows"
    return {
        "model": problem.package.name,
        "scenario": problem.name,
        "rows": rows,
        "entries": result.recording.measurements.size,
        "measured": judged.measured,
        "log_likelihood": result.log_likelihood,
        "belief": {name: (float(mean), float(deviation)) for name, mean, deviation in last if not math.isnan(mean)},
        "consistency": {
            "nis_total": judged.total,
            "nis_per_entry": judged.ratio if judged.measured else None,
            "band": list(judged.band) if judged.measured else None,
            "verdict": judged.verdict,
            "sentence": judged.sentence(),
        },
        "outliers": result.outliers,
        "limits": [limit] if result.unsettled else [],
        "losses": [] if result.belief.memory is None else losses(problem.package, result.belief.memory[None]),
    }


def write_belief(file: Path, result: Replay, package: LoadedPackage) -> Path:
    """Write the belief over time as a table: time, mean and standard deviation of every entry, and the statistics."""
    names = package.belief_names
    header = [TIME, *names, *(f"{name} deviation" for name in names), "log-likelihood", "NIS", "measured"]
    table = io.StringIO(newline="")
    writer = csv.writer(table)
    writer.writerow(header)
    for i, time in enumerate(result.recording.times):
        numbers = [time, *result.means[i], *result.deviations[i], result.log_likelihoods[i], result.nis[i]]
        writer.writerow([*(repr(float(v)) for v in numbers), int(result.measured[i])])
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, table.getvalue().encode())
    except OSError as failure:
        raise SymdualError(f"cannot write {file}: {failure.strerror}") from failure
    return file
