"""Recordings as arrays with one row for each step of the model, and what is odd about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError, did_you_mean
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.replay import TIME, Recording, read_recording, steps_between
from symdual.runtime.signals import signals_of

FAR = 1000.0  #: a measurement so many predicted deviations away has another unit


#: a recording: a file, a table that maps names of columns to columns (a pandas DataFrame is one), or arrays
Source = str | Path | Mapping[str, Any] | Recording


def on_the_grid(
    sources: Source | Sequence[Source], package: LoadedPackage, resample: bool = False, measured: bool = True
) -> list[Recording]:
    """All recordings with a row for each step of the model; they may have different lengths.

    `measured=False` is for plans: columns of measurements may be missing.
    """
    listed = [sources] if isinstance(sources, str | Path | Recording) or hasattr(sources, "keys") else list(sources)
    if not listed:
        raise SymdualError("there is no recording to fit")
    found = []
    for number, source in enumerate(listed):
        name = Path(source).stem if isinstance(source, str | Path) else f"recording{number}"
        found.append(_on_the_grid(name, source, package, resample, measured))
    names = [one.name for one in found]
    twice = [name for name in names if names.count(name) > 1]
    return [one._replace(name=f"{one.name}{i}") if one.name in twice else one for i, one in enumerate(found)]


def _on_the_grid(name: str, source: Any, package: LoadedPackage, resample: bool, measured: bool) -> Recording:
    if isinstance(source, Recording):
        recording = source
    elif isinstance(source, str | Path):
        recording = read_recording(Path(source), package) if measured else _read_plan(Path(source), package)
    else:
        recording = from_table(name, source, package, measured)
    if len(recording.times) < 2:
        raise SymdualError(f"{name} has a single row, too few to learn anything from")
    try:
        counts = steps_between(recording, package)
    except SymdualError as failure:
        if not resample:
            raise SymdualError(f"{name}: {failure}; it is put on the model's grid only when asked (resample)") from None
        recording = resampled(recording, package)
        counts = steps_between(recording, package)
    rows = np.cumsum(counts)
    measurements = np.full((rows[-1] + 1, recording.measurements.shape[1]), np.nan)
    measurements[rows] = recording.measurements
    lines = np.zeros(len(measurements), dtype=np.int64)
    lines[rows] = recording.lines
    holding = np.repeat(np.arange(len(rows)), [*counts[1:], 1])
    inputs = recording.inputs[holding].copy()
    inputs[-1] = np.where(np.isfinite(inputs[-1]), inputs[-1], 0.0)  # the last inputs act on nothing
    times = np.interp(np.arange(len(measurements)), rows, recording.times)
    signals = None if recording.signals is None else np.ascontiguousarray(recording.signals[holding])
    return Recording(
        times, np.ascontiguousarray(inputs), measurements, lines, tuple(recording.ignored), signals, name=name
    )


def from_table(name: str, table: Any, package: LoadedPackage, measured: bool = True) -> Recording:
    """A recording from columns by name; without a column `time`, rows are one step apart."""
    known = [str(key) for key in table.keys()]  # noqa: SIM118 - a DataFrame iterates over its columns only through keys
    inputs, outputs, heard = list(package.INPUTS), list(package.MEASUREMENTS), list(signals_of(package))
    for key in [*inputs, *(outputs if measured else [])]:
        if key not in known:
            raise SymdualError(f'{name} has no column "{key}"{did_you_mean(key, known)}')

    def column(key: str) -> Array:
        try:
            return np.asarray(table[key], dtype=np.float64).reshape(-1)
        except (TypeError, ValueError):
            raise SymdualError(f'the column "{key}" of {name} holds something that is not a number') from None

    columns = {key: column(key) for key in [TIME, *inputs, *outputs, *heard] if key in known}
    length = {len(values) for values in columns.values()}
    if len(length) != 1:
        raise SymdualError(f"the columns of {name} have different lengths")
    (rows,) = length
    unit = float(package.numbers["data"][package.DATA_ENTRIES["step_length"][0]]) if _continuous(package) else 1.0
    times = columns[TIME] if TIME in columns else np.asarray(unit * np.arange(rows), dtype=np.float64)
    missing = np.full(rows, np.nan)
    recording = Recording(
        times=times,
        inputs=np.ascontiguousarray(np.stack([columns[key] for key in inputs], axis=1)),
        measurements=np.ascontiguousarray(np.stack([columns.get(key, missing) for key in outputs], axis=1)),
        lines=np.arange(1, rows + 1),
        ignored=tuple(key for key in known if key not in (TIME, *inputs, *outputs, *heard)),
        signals=np.stack([columns.get(key, missing) for key in heard], axis=1) if heard else None,
    )
    _check(name, recording, inputs)
    for key in (key for key in heard if key in columns):
        gaps = np.flatnonzero(~np.isfinite(columns[key]))
        if len(gaps):
            raise SymdualError(f'{name}, row {int(gaps[0]) + 1}: the signal "{key}" is missing or infinite')
    return recording


def _check(name: str, recording: Recording, inputs: list[str]) -> None:
    bad = np.flatnonzero(~(np.diff(recording.times) > 0))
    if len(bad) or not np.isfinite(recording.times).all():
        row = int(bad[0]) + 2 if len(bad) else int(np.argmin(np.isfinite(recording.times))) + 1
        raise SymdualError(f"{name}, row {row}: the times must be finite and increase")
    for a, column in enumerate(inputs):
        gaps = np.flatnonzero(~np.isfinite(recording.inputs[:-1, a]))
        if len(gaps):
            raise SymdualError(f'{name}, row {int(gaps[0]) + 1}: the input "{column}" is missing or infinite')
    if np.isinf(recording.measurements).any():
        raise SymdualError(
            f"{name}, row {int(np.argmax(np.isinf(recording.measurements).any(axis=1))) + 1} is infinite"
        )


def _read_plan(file: Path, package: LoadedPackage) -> Recording:
    """A plan: `time` and the inputs, and measurements where the file has them."""
    import csv

    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            header = [cell.strip() for cell in next(csv.reader(stream), [])]
    except (OSError, UnicodeDecodeError, csv.Error) as failure:
        raise SymdualError(f"cannot read {file}: {failure}") from failure
    if all(name in header for name in package.MEASUREMENTS):
        return read_recording(file, package)
    with_columns = _Columns(package, tuple(name for name in package.MEASUREMENTS if name in header))
    found = read_recording(file, with_columns)  # type: ignore[arg-type]
    measurements = np.full((len(found.times), len(package.MEASUREMENTS)), np.nan)
    for a, name in enumerate(with_columns.MEASUREMENTS):
        measurements[:, package.MEASUREMENTS[name]] = found.measurements[:, a]
    return found._replace(measurements=measurements)


class _Columns:
    """What the reader of recordings asks a package for, with fewer measurements."""

    def __init__(self, package: LoadedPackage, measurements: tuple[str, ...]) -> None:
        self.INPUTS, self.MEASUREMENTS, self.SIGNALS = package.INPUTS, measurements, signals_of(package)


def _continuous(package: LoadedPackage) -> bool:
    return "step_length" in package.DATA_ENTRIES


def resampled(recording: Recording, package: LoadedPackage) -> Recording:
    """The recording on an even grid that begins with its first row.

    The step is that of the model in continuous time, else the median distance of the rows. An input or a signal is the
    mean of what it was during the step. A measurement is interpolated between the rows around it, if both have it and
    they are no more than two steps apart; otherwise it is missing.
    """
    times, gaps = recording.times, np.diff(recording.times)
    unit = float(np.median(gaps))
    if _continuous(package):
        unit = float(package.numbers["data"][package.DATA_ENTRIES["step_length"][0]])
    count = int(np.floor((times[-1] - times[0]) / unit * (1 + 1e-12))) + 1
    if count < 2:
        raise SymdualError(f"the recording is shorter than a step of the model ({unit:g})")
    if count > 10_000_000:
        raise SymdualError(f"the recording has {count:.3g} steps of the model ({unit:g}): check the unit of its times")
    grid = times[0] + unit * np.arange(count)
    inputs = _held(times, np.where(np.isfinite(recording.inputs), recording.inputs, 0.0), grid, unit)
    right = np.clip(np.searchsorted(times, grid), 1, len(times) - 1)
    left = np.where(grid >= times[right], right, right - 1)
    share = np.where(right > left, (grid - times[left]) / np.maximum(times[right] - times[left], 1e-300), 0.0)[:, None]
    between = recording.measurements[left] * (1 - share) + recording.measurements[right] * share
    exact = np.where(share < 1e-9, recording.measurements[left], between)
    near = (times[right] - times[left] <= 2.0 * unit * (1 + 1e-9))[:, None] | (share < 1e-9)
    return Recording(
        times=grid,
        inputs=inputs,
        measurements=np.ascontiguousarray(np.where(near, exact, np.nan)),
        lines=np.array(recording.lines, dtype=np.int64)[left],
        ignored=recording.ignored,
        signals=None if recording.signals is None else _held(times, recording.signals, grid, unit),
    )


def _held(times: Array, values: Array, grid: Array, unit: float) -> Array:
    """The means over the steps of a grid of what holds from each time to the next; NaN stays NaN."""
    area = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values[:-1] * np.diff(times)[:, None], axis=0)])
    edges = np.minimum(np.append(grid, grid[-1] + unit), times[-1])
    whole = np.stack([np.interp(edges, times, column) for column in area.T], axis=1)
    length = np.diff(edges)[:, None]
    last = np.broadcast_to(values[-1], (len(grid), values.shape[1]))
    means = np.where(length > 1e-9 * unit, np.diff(whole, axis=0) / np.maximum(length, 1e-9 * unit), last)
    return np.ascontiguousarray(means)


def first_far(errors: Array, deviations: Array, noise: Array) -> tuple[int, int] | None:
    """Row and column of the measurement that cannot be meant, from errors (K, NY) and what is expected of them.

    The first row in which one is far may throw a filter off for good, whatever is measured later; in this row it is the
    one that is farthest. What has no noise (NY,) is not judged.
    """
    judged = np.isfinite(errors) & (noise > 0)
    with np.errstate(over="ignore"):  # a filter that is off expects anything later
        off = np.where(judged, np.abs(errors) / np.maximum(deviations, 1e-300), 0.0)
    rows = np.flatnonzero((off > FAR).any(axis=1))
    return (int(rows[0]), int(np.argmax(off[rows[0]]))) if len(rows) else None


def far_off(one: Recording, k: int, label: str, column: int, expected: float, deviation: float) -> SymdualError:
    """What is said of a measurement in row k that cannot be meant."""
    value = one.measurements[k, column]
    return SymdualError(
        f'{one.name}, line {one.lines[k]}: "{label}" is {value:g}, but the model expects {expected:.4g} +- '
        f"{deviation:.2g}, {abs(value - expected) / deviation:.4g} deviations off: check the unit of the column and "
        "the noise of the model, or fit it anyway"
    )


def oddities(recordings: Sequence[Recording], package: LoadedPackage) -> Iterator[str]:
    """Columns that say nothing, in sentences."""
    ignored = sorted({name for one in recordings for name in one.ignored if name})
    if ignored:
        yield f"columns that the model does not know: {', '.join(ignored)}"
    for column, name in enumerate(package.INPUTS):
        values = np.concatenate([one.inputs[:-1, column] for one in recordings])
        if np.ptp(values) == 0:
            yield f'the input "{name}" never changes (it is {values[0]:g}): the recording does not show what it does'
    for column, name in enumerate(signals_of(package)):
        values = np.concatenate([one.signals[:, column] for one in recordings if one.signals is not None])
        if np.ptp(values) == 0:
            yield f'the signal "{name}" never changes (it is {values[0]:g}): the recording does not show what it does'
    for column, name in enumerate(package.MEASUREMENTS):
        values = np.concatenate([one.measurements[:, column] for one in recordings])
        values = values[np.isfinite(values)]
        if not len(values):
            yield f'"{name}" was never measured'
        elif len(values) > 1 and np.ptp(values) == 0:
            yield f'the measurement "{name}" never changes (it is {values[0]:g}): is its sensor alive?'
