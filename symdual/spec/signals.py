"""`signal`: a known quantity that changes with time, such as the weather, a price or a set-point; and its schedules."""

from __future__ import annotations

import csv
from pathlib import Path

from symdual.common.arrays import Array
from symdual.common.errors import ModelError, did_you_mean
from symdual.common.numbers import as_numbers, number_in
from symdual.spec.names import check_name
from symdual.spec.symbols import Constant


class Signal(Constant):
    """A constant that changes with time; `value` is a usual one, at which a model without a scenario is checked."""


def signal(name: str, usual: float = 1.0) -> Signal:
    """Declare a known quantity that changes with time.

    It may stand in dynamics, observation and cost. Its values come from `Scenario(signals=...)` or, at run time, from
    `act(y, signals=...)`; during a step of a model in continuous time they hold. `usual` is a number of its size.

    >>> x, u = sympy.symbols("x u")
    >>> sun = symdual.signal("sun", usual=0.5)
    >>> symdual.Model([x], [u], [0.9 * x + sun + u]).signals
    (sun,)
    """
    what = f'the signal "{name}"'
    check_name(name, what)
    return Signal(name, float(as_numbers(usual, what)))


def column(file: str | Path, name: str) -> Array:
    """The numbers in a column of a .csv file with a header, as a schedule of a signal.

    >>> _ = (folder / "weather.csv").write_text("hour,sun\\n0,0.1\\n1,0.4\\n")
    >>> symdual.column(folder / "weather.csv", "sun").tolist()
    [0.1, 0.4]
    """
    file = Path(file)
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            rows = [row for row in csv.reader(stream) if any(cell.strip() for cell in row)]
    except OSError as failure:
        raise ModelError(f"cannot read {file}: {failure.strerror}") from failure
    except (UnicodeDecodeError, csv.Error) as failure:
        raise ModelError(f"{file} is not a table of comma-separated values: {failure}") from failure
    header = [cell.strip() for cell in rows[0]] if rows else []
    if name not in header:
        raise ModelError(f'{file} has no column "{name}"{did_you_mean(name, header)}')
    if header.count(name) > 1:
        raise ModelError(f'{file} has two columns called "{name}"')
    place, values = header.index(name), []
    for number, row in enumerate(rows[1:], start=2):
        value = number_in(row[place]) if place < len(row) else None
        if value is None:
            raise ModelError(f'{file}, row {number}: the column "{name}" holds no number')
        values.append(value)
    return as_numbers(values, f'the column "{name}" of {file}')
