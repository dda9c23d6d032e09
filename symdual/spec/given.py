"""The numbers of a model as a user gives them, checked: steps, motion of the parameters, bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import sympy as sp

from symdual.common.arrays import Array
from symdual.common.errors import ModelError, did_you_mean
from symdual.common.named import Given, Spans, vector
from symdual.common.numbers import as_numbers, as_semidefinite, as_vector
from symdual.common.transforms import Sides, between, has_bound
from symdual.integrators import INTEGRATORS

MOST_SUBSTEPS = 1000  #: a step that needs more is too long


def checked_step(step: float | None, continuous: bool) -> float | None:
    """The length of a time step; None for a model in discrete time."""
    if not continuous:
        if step is not None:
            raise ModelError("step= belongs to derivatives=; dynamics= gives the next state already")
        return None
    if step is None:
        raise ModelError("derivatives= needs step=, the length of a time step")
    length = float(as_numbers(step, "step"))
    if length <= 0:
        raise ModelError(f"step must be positive, but is {length:g}")
    return length


def checked_substeps(substeps: int, continuous: bool) -> int:
    """How many parts a time step has."""
    if isinstance(substeps, bool) or not isinstance(substeps, int) or not 1 <= substeps <= MOST_SUBSTEPS:
        raise ModelError(f"substeps must be a whole number from 1 to {MOST_SUBSTEPS}, but is {substeps!r}")
    if substeps > 1 and not continuous:
        raise ModelError("substeps= belongs to derivatives=; dynamics= gives the next state already")
    return substeps


def checked_outliers(outliers: float | None) -> float | None:
    """How many deviations a measured number may be off, or None for any."""
    if outliers is None:
        return None
    if isinstance(outliers, (bool, str)) or not isinstance(outliers, (int, float)) or not 1.0 < outliers < math.inf:
        raise ModelError(f"outliers must be a number of deviations above 1, such as 3, or None, but is {outliers!r}")
    return float(outliers)


def checked_method(method: str) -> str:
    """The name of a method of integration."""
    if method not in INTEGRATORS:
        names = " or ".join(f'"{name}"' for name in INTEGRATORS)
        raise ModelError(f"method must be {names}, not {method!r}")
    return method


def checked_transition(value: Given | None, places: Spans) -> Array | None:
    """D, a diagonal or a matrix; None where the parameters stay as they are."""
    if value is None:
        return None
    size = _size(places)
    if isinstance(value, Mapping):
        return vector(np.ones(size), value, places, "transition")
    numbers = as_numbers(value, "transition")
    if numbers.ndim < 2:
        return as_vector(numbers, size, "transition")
    if numbers.shape != (size, size):
        raise ModelError(
            f"transition must be a number, {size} numbers or a {size} x {size} matrix, but has shape {numbers.shape}"
        )
    return numbers


def checked_drift(value: Given | None, places: Spans) -> Array | None:
    """Xi, a diagonal or a matrix; None where nothing drifts."""
    if value is None:
        return None
    size = _size(places)
    numbers = (
        vector(np.zeros(size), value, places, "drift") if isinstance(value, Mapping) else as_numbers(value, "drift")
    )
    if numbers.ndim < 2:
        diagonal = as_vector(numbers, size, "drift")
        if np.any(diagonal < 0):
            raise ModelError(f"drift is not positive semidefinite: its smallest eigenvalue is {diagonal.min():.6g}")
        return diagonal
    return as_semidefinite(numbers, size, "drift")


def _size(places: Spans) -> int:
    return sum(count for _, count in places.values())


def of_the_same_form(fitted: Array | None, given: Given | None) -> Given | None:
    """A fitted drift, as a diagonal where the model has one: the form decides which code is generated."""
    if fitted is None:
        return given
    whole = np.diag(fitted) if fitted.ndim == 1 else fitted
    dense = given is not None and not isinstance(given, Mapping) and np.ndim(given) == 2
    return whole if dense or np.any(whole - np.diag(np.diag(whole))) else np.diag(whole)


def checked_bounds(
    bounds: Mapping[sp.Symbol | str, tuple[float | None, float | None]],
    inputs: tuple[sp.Symbol, ...],
    states: tuple[sp.Symbol, ...],
) -> tuple[Array, Array]:
    """Lower and upper bounds of all inputs, infinite where none are given."""
    lower, upper = np.full(len(inputs), -np.inf), np.full(len(inputs), np.inf)
    names = [s.name for s in inputs]
    for symbol, pair in bounds.items():
        row = names.index(symbol) if symbol in names else inputs.index(symbol) if symbol in inputs else None
        if row is None:
            raise ModelError(f'bounds has an entry for "{symbol}", which is not an input{_hint(symbol, names, states)}')
        lower[row], upper[row] = _sides(symbol, pair)
        if lower[row] > upper[row] or lower[row] == np.inf or upper[row] == -np.inf:
            raise ModelError(f'the bounds of "{symbol}" leave no room: {lower[row]:g} to {upper[row]:g}')
    return lower, upper


def checked_state_bounds(
    bounds: Mapping[sp.Symbol | str, tuple[float | None, float | None]], states: tuple[sp.Symbol, ...]
) -> tuple[Sides, ...]:
    """The bounds of each state, None for an open side; empty where none is given."""
    names, found = [s.name for s in states], [(-np.inf, np.inf)] * len(states)
    for symbol, pair in bounds.items():
        if str(symbol) not in names:
            raise ModelError(
                f'state_bounds has an entry for "{symbol}", which is not a state{did_you_mean(str(symbol), names)}'
            )
        low, high = _sides(symbol, pair)
        if not low < high:
            raise ModelError(f'the bounds of the state "{symbol}" leave no room: {low:g} to {high:g}')
        found[names.index(str(symbol))] = low, high
    sides = tuple(between((low, high)).sides for low, high in found)
    return sides if any(map(has_bound, sides)) else ()


def _hint(symbol: sp.Symbol | str, inputs: list[str], states: tuple[sp.Symbol, ...]) -> str:
    """What somebody may have wanted who gives bounds to something else."""
    if str(symbol) in [s.name for s in states]:
        return (
            " but a state: what it cannot leave belongs to state_bounds, and what it should keep to is one of the "
            "scenario's constraints"
        )
    return did_you_mean(str(symbol), inputs)


def _sides(symbol: sp.Symbol | str, pair: tuple[float | None, float | None]) -> tuple[float, float]:
    try:
        low, high = pair
        sides = (-np.inf if low is None else float(low), np.inf if high is None else float(high))
    except (TypeError, ValueError) as failure:
        raise ModelError(f'the bounds of "{symbol}" must be a pair (lower, upper), but are {pair!r}') from failure
    if any(map(math.isnan, sides)):
        raise ModelError(f'the bounds of "{symbol}" contain NaN')
    return sides
