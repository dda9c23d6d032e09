"""`signal`: a known quantity that changes with time, such as the weather, a price or a set-point; and its schedules."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike

from symdual.errors import ModelError, SymdualWarning, did_you_mean
from symdual.numbers import Array, as_numbers
from symdual.spec.names import check_name
from symdual.spec.symbols import Constant

#: The values of one signal: one for all times, one for each time, or a function of the step.
SignalSchedule = ArrayLike | Callable[[int], float]


class Signal(Constant):
    """A constant that changes with time; `value` is a usual one, at which a model without a scenario is checked."""


def signal(name: str, usual: float = 1.0) -> Signal:
    """Declare a known quantity that changes with time.

    It may stand in dynamics, observation and cost. Its values come from `Scenario(signals=...)` or, at run time, from
    `act(y, signals=...)`; during a step of a model in continuous time they hold. `usual` is a number of its size.
    """
    what = f'the signal "{name}"'
    check_name(name, what)
    return Signal(name, float(as_numbers(usual, what)))


def column(file: str | Path, name: str) -> Array:
    """The numbers in a column of a .csv file with a header, as a schedule of a signal."""
    file = Path(file)
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            rows = [row for row in csv.reader(stream) if any(cell.strip() for cell in row)]
    except OSError as problem:
        raise ModelError(f"cannot read {file}: {problem.strerror}") from problem
    except (UnicodeDecodeError, csv.Error) as problem:
        raise ModelError(f"{file} is not a table of comma-separated values: {problem}") from problem
    header = [cell.strip() for cell in rows[0]] if rows else []
    if name not in header:
        raise ModelError(f'{file} has no column "{name}"{did_you_mean(name, header)}')
    place, values = header.index(name), []
    for number, row in enumerate(rows[1:], start=2):
        try:
            values.append(float(row[place]))
        except (IndexError, ValueError):
            raise ModelError(f'{file}, row {number}: the column "{name}" holds no number') from None
    return as_numbers(values, f'the column "{name}" of {file}')


def held(values: Array, steps: int, what: str) -> Array:
    """A schedule for so many times; a shorter one keeps its last value, and it is said."""
    if len(values) >= steps:
        return values[:steps]
    warnings.warn(
        f"{what} has {len(values)} values for {steps} times; the last one, {values[-1]:g}, is held from there on",
        SymdualWarning,
        stacklevel=2,
    )
    return np.concatenate([values, np.full(steps - len(values), values[-1])])


def scheduled(given: SignalSchedule, steps: int, what: str) -> Array:
    """The values of a signal at so many times."""
    if callable(given):
        return np.array([float(as_numbers(given(k), f"{what} at step {k}")) for k in range(steps)])
    values = as_numbers(given, what)
    if values.ndim == 0:
        return np.full(steps, float(values))
    if values.ndim != 1 or not len(values):
        raise ModelError(f"{what} must be one number, one for each time or a function of the step")
    return held(values, steps, what)


def table(
    given: Mapping[Any, SignalSchedule] | None, names: tuple[str, ...], steps: int, what: str, otherwise: Array | None
) -> Array:
    """The values of all signals, (steps, len(names)): those given, the others as in `otherwise`, or NaN where unset."""
    values = np.full((steps, len(names)), np.nan) if otherwise is None else otherwise.copy()
    for key, schedule in (given or {}).items():
        name = key.name if isinstance(key, sp.Symbol) else str(key)
        if name not in names:
            raise ModelError(f'{what} names "{name}", which is not a signal{did_you_mean(name, names)}')
        values[:, names.index(name)] = scheduled(schedule, steps, f'the signal "{name}"')
    return values
