"""What a signal is over time: the schedules that scenarios and problems are given, as arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from symdual.common.arrays import Array
from symdual.common.errors import ModelError, SymdualWarning, did_you_mean
from symdual.common.numbers import as_numbers

#: The values of one signal: one for all times, one for each time, or a function of the step.
SignalSchedule = ArrayLike | Callable[[int], float]


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
        return np.array([_one(given(k), f"{what} at step {k}") for k in range(steps)])
    values = as_numbers(given, what)
    if values.ndim == 0:
        return np.full(steps, float(values))
    if values.ndim != 1 or not len(values):
        raise ModelError(f"{what} must be one number, one for each time or a function of the step")
    return held(values, steps, what)


def _one(value: ArrayLike, what: str) -> float:
    number = as_numbers(value, what)
    if number.ndim:
        raise ModelError(f"{what} must be one number, but is {value!r}")
    return float(number)


def table(
    given: Mapping[Any, SignalSchedule] | None, names: tuple[str, ...], steps: int, what: str, otherwise: Array | None
) -> Array:
    """The values of all signals, (steps, len(names)): those given, the others as in `otherwise`, or NaN where unset."""
    if not isinstance(given, Mapping | None):
        raise ModelError(f"{what} must be a mapping from signals to what they are, but is {given!r}")
    values = np.full((steps, len(names)), np.nan) if otherwise is None else otherwise.copy()
    for key, schedule in (given or {}).items():
        name = str(key)
        if name not in names:
            raise ModelError(f'{what} names "{name}", which is not a signal{did_you_mean(name, names)}')
        values[:, names.index(name)] = scheduled(schedule, steps, f'the signal "{name}"')
    return values
