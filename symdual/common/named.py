"""Numbers that are changed by the names that the user gave: a mapping changes what it names and leaves the rest.

vector(now, {"b": 2.0}, UNKNOWNS, ...)      one entry, or all entries of a family, has a new value
vector(now, [1.0, 2.0], UNKNOWNS, ...)      all of it is new
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from symdual.common.arrays import Array
from symdual.common.errors import ModelError, did_you_mean
from symdual.common.numbers import as_semidefinite, as_vector

#: name to (first entry, number of entries)
Spans = Mapping[str, tuple[int, int]]
#: one value for everything, or a mapping from a name (or the symbol of that name) to its value
Given = ArrayLike | Mapping[Any, ArrayLike]


def singles(positions: Mapping[str, int]) -> Spans:
    """The spans of names that stand for one entry each."""
    return {name: (position, 1) for name, position in positions.items()}


def vector(now: Array, given: Given, names: Spans, what: str, whole: slice | None = None) -> Array:
    """The vector `now` with the values that are given; those without a name are for `whole`, all of it by default."""
    changed = now.copy()
    for part, value, said in _parts(given, names, whole or slice(0, len(now)), what):
        changed[part] = as_vector(value, part.stop - part.start, said)
    return changed


def complete(given: Given, names: Spans, what: str) -> Array:
    """A vector that is given as a whole: in the order of `names`, or by all of them."""
    values = vector(np.full(sum(count for _, count in names.values()), np.nan), given, names, what)
    for name, (start, count) in names.items():
        if np.isnan(values[start : start + count]).any():
            raise ModelError(f'{what} has no value for "{name}"')
    return values


def matrix(now: Array, given: Given, names: Spans, what: str, whole: slice | None = None) -> Array:
    """The positive semidefinite matrix `now` with the blocks that are given, as a number, a diagonal or a matrix.

    What is given has no entries in common with the rest any more.
    """
    changed = now.copy()
    for part, value, said in _parts(given, names, whole or slice(0, len(now)), what):
        changed[part] = 0.0
        changed[:, part] = 0.0
        changed[part, part] = as_semidefinite(value, part.stop - part.start, said)
    return changed


def schedule(now: Array, given: Given | Callable[[int], Given], change: Callable[[Array, Given, str], Array]) -> Array:
    """What holds at each step, first axis time, with what is given for all of them or by a function of the step."""
    if callable(given):
        return np.stack([change(own, given(k), f" at step {k}") for k, own in enumerate(now)])
    return np.stack([change(own, given, "") for own in now])


def held(values: Array, steps: int) -> Array:
    """A schedule cut to so many steps, or continued with its last values."""
    return np.concatenate([values[:steps], np.repeat(values[-1:], max(0, steps - len(values)), axis=0)])


def _parts(given: Given, names: Spans, whole: slice, what: str) -> list[tuple[slice, ArrayLike, str]]:
    """Each part that is given: its place, its value, and what it is called."""
    if not isinstance(given, Mapping):
        return [(whole, given, what)]
    found = []
    for key, value in given.items():
        name = str(key)
        if name not in names:
            known = ", ".join(names) or "nothing that could be changed"
            raise ModelError(f'{what} names "{name}", which is none of {known}{did_you_mean(name, names)}')
        start, count = names[name]
        found.append((slice(start, start + count), value, f'{what} of "{name}"'))
    return found
