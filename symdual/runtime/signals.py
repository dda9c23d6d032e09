"""The known quantities of a problem that change with time: as they are, and as the controller believes them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError, SymdualWarning, did_you_mean
from symdual.common.numbers import natural_order
from symdual.common.schedules import SignalSchedule, table
from symdual.runtime.loading import LoadedPackage

if TYPE_CHECKING:
    from symdual.runtime.problem import Problem

#: What signals are said to be from now on: a number, or one for each time, by name.
Forecast = Mapping[Any, ArrayLike]


class Signals(NamedTuple):
    """The true values (T + 1, S) and the believed ones (T + 1, S) of the signals called `names`; NaN: nobody said."""

    names: tuple[str, ...]
    true: Array
    believed: Array

    @property
    def known(self) -> Signals:
        """For a controller that knows what will happen."""
        return self._replace(believed=self.true)

    def of(self, package: LoadedPackage) -> tuple[Array, Array]:
        """Believed and true values of the signals of a package, in its order."""
        places = [self.names.index(name) for name in signals_of(package)]
        return self.believed[:, places], self.true[:, places]


def signals_of(package: LoadedPackage) -> tuple[str, ...]:
    """The names of the signals of a package."""
    return tuple(package.SIGNALS) if hasattr(package, "SIGNALS") else ()


def place_of(package: LoadedPackage) -> slice:
    """Where the signals of a package stand among its numbers."""
    names = signals_of(package)
    start = package.DATA_ENTRIES[names[0]][0] if names else 0
    return slice(start, start + len(names))


def with_signals(package: LoadedPackage, values: Array | None) -> LoadedPackage:
    """The package with the signals of a time among its numbers; those that nobody set keep their usual values."""
    if values is None or not values.size:
        return package
    data, place = package.numbers["data"].copy(), place_of(package)
    data[place] = np.where(np.isnan(values), data[place], values)
    return replace(package, numbers={**package.numbers, "data": data})


def _all_names(package: LoadedPackage, plant: LoadedPackage) -> tuple[str, ...]:
    return tuple(natural_order({*signals_of(package), *signals_of(plant)}))


def stored_signals(package: LoadedPackage, plant: LoadedPackage, stored: Mapping[str, Array]) -> Signals | None:
    """The signals of a scenario as they are stored: by the names of model and plant together."""
    names = _all_names(package, plant)
    if not names:
        return None
    unset = np.full((2, len(stored["reference"])), np.nan)
    values = np.stack([stored.get(f"signal.{name}", unset) for name in names], axis=-1)
    return Signals(names, values[0], values[1])


def checked_signals(
    package: LoadedPackage, plant: LoadedPackage, signals: Signals | None, horizon: int
) -> Signals | None:
    """The signals with arrays of the right shapes; where nobody has said anything they are NaN."""
    names = _all_names(package, plant)
    if not names:
        return None
    if signals is None:
        unset = np.full((horizon + 1, len(names)), np.nan)
        return Signals(names, unset, unset)
    if missing := sorted(set(names) - set(signals.names)):
        raise SymdualError(f'the scenario says nothing about the signal "{missing[0]}"')
    shape = (horizon + 1, len(signals.names))
    for array in signals[1:]:
        if np.shape(array) != shape:
            raise SymdualError(f"signals must have shape {shape}, but have {np.shape(array)}")
        if np.any(np.isinf(array)):
            raise SymdualError("signals contain a value that is infinite")
    return signals


def changed_signals(
    signals: Signals | None,
    steps: int,
    given: Mapping[Any, SignalSchedule] | None,
    forecasts: Mapping[Any, SignalSchedule] | None,
) -> Signals | None:
    """The signals for so many times, with the values that are given; one without a forecast is believed as it is."""
    if signals is None:
        for what, mapping in (("signals", given), ("forecasts", forecasts)):
            if mapping:
                raise SymdualError(f"{what} were given, but the model has none")
        return None
    true, believed = (_held(array, steps) for array in signals[1:])
    changed = table(given, signals.names, steps, "signals", true)
    for key in given or {}:
        place = signals.names.index(str(key))
        believed[:, place] = changed[:, place]
    return Signals(signals.names, changed, table(forecasts, signals.names, steps, "forecasts", believed))


def _held(array: Array, steps: int) -> Array:
    return np.concatenate([array[:steps], np.repeat(array[-1:], max(0, steps - len(array)), axis=0)])


def with_forecast(problem: Problem, start: int, end: int, forecast: Forecast, said: set[str]) -> Problem:
    """The problem with what its signals are said to be from `start` on; the last value is held, and it is said once."""
    signals = problem.signals
    names = signals_of(problem.package)
    if signals is None or not names:
        raise SymdualError("signals were given, but the model has none")
    believed = signals.believed.copy()
    for key, given in forecast.items():
        name = str(key)
        if name not in names:
            raise SymdualError(
                f'signals names "{name}", which is none of {", ".join(names)}{did_you_mean(name, names)}'
            )
        try:
            values = np.atleast_1d(np.asarray(given, dtype=np.float64))
        except (TypeError, ValueError):
            values = np.zeros(0)
        if values.ndim != 1 or not values.size or not np.all(np.isfinite(values)):
            raise SymdualError(f'the forecast of "{name}" must be finite numbers, one for each time from now on')
        if 1 < values.size < end - start + 1 and name not in said:
            said.add(name)
            warnings.warn(
                f'the forecast of "{name}" has {values.size} values for the {end - start + 1} times of the plan; the '
                "last one is held",
                SymdualWarning,
                stacklevel=4,
            )
        column, count = signals.names.index(name), len(believed) - start
        believed[start:, column] = values[np.minimum(np.arange(count), values.size - 1)]
    return replace(problem, signals=signals._replace(believed=believed))


def require_set(problem: Problem, start: int, end: int) -> None:
    """Raise when a plan needs a signal of which nobody has said anything."""
    if problem.signals is None:
        return
    names = signals_of(problem.package)
    missing = np.argwhere(np.isnan(problem.signals.of(problem.package)[0][start : end + 1]))
    if missing.size:
        row, column = missing[0]
        raise SymdualError(
            f'the signal "{names[column]}" has no value at step {start + row}: give it in the scenario '
            "(signals=...) or to act(y, signals=...)"
        )
