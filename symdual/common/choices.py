"""Inputs with a finite set of values: their table, checked, for scenarios and for problems at run time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from symdual.common.arrays import Array
from symdual.common.errors import ModelError, did_you_mean
from symdual.common.numbers import as_numbers

MOST = 512  # combinations of all inputs


def choice_table(given: Mapping[Any, Any], inputs: Sequence[str], bounds: Array) -> Array:
    """The values of each input, ascending, as rows (NU, most values) that end with NaN; a row of NaN is a free input.

    Args:
        given: mapping from an input or its name to its values.
        inputs: the names of the inputs.
        bounds: their lower and upper bounds (2, NU).
    """
    if not isinstance(given, Mapping):
        raise ModelError(f"choices must be a mapping such as {{valve: [0.0, 1.0]}}, but is {given!r}")
    rows: dict[int, Array] = {}
    for key, values in given.items():
        name = str(getattr(key, "name", key))
        if name not in inputs:
            raise ModelError(f'choices names "{name}", which is not an input{did_you_mean(name, inputs)}')
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise ModelError(f'the choices of "{name}" must be a list of numbers, but are {values!r}')
        row = inputs.index(name)
        rows[row] = _values(name, list(values), bounds[:, row])
    combinations = int(np.prod([len(values) for values in rows.values()], dtype=float)) if rows else 0
    if combinations > MOST:
        raise ModelError(f"choices has {combinations} combinations of inputs, and no more than {MOST} can be tried")
    table = np.full((len(inputs), max((len(values) for values in rows.values()), default=0)), np.nan)
    for row, values in rows.items():
        table[row, : len(values)] = values
    return table


def _values(name: str, given: list[Any], bounds: Array) -> Array:
    values = as_numbers(given, f'the choices of "{name}"').ravel()
    if not len(values):
        raise ModelError(f'the choices of "{name}" are empty; leave it out if it may take any value')
    ascending = np.unique(values)
    if len(ascending) < len(values):
        twice = next(v for v in ascending if np.count_nonzero(values == v) > 1)
        raise ModelError(f'the choices of "{name}" contain {twice:g} more than once')
    for value in ascending:
        if not bounds[0] <= value <= bounds[1]:
            raise ModelError(f'the choice {value:g} of "{name}" is outside its bounds, {bounds[0]:g} to {bounds[1]:g}')
    return ascending


def combinations(table: Array) -> Array:
    """All combinations of the inputs that have choices, (count, NU), with zeros for free inputs."""
    own = [row[~np.isnan(row)] for row in table]
    if all(len(values) == 0 for values in own):
        return np.zeros((0, len(table)))
    return np.array(list(product(*(values if len(values) else (0.0,) for values in own))))


def narrowed(bounds: Array, table: Array) -> Array:
    """Bounds within which the rest of a plan is relaxed: from the smallest to the largest choice."""
    found = bounds.copy()
    for row, values in enumerate(table):
        if values.size and not np.isnan(values[0]):
            found[:, row] = np.nanmin(values), np.nanmax(values)
    return found
