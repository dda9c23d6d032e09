"""Which expression of a model left the numbers: what to look at when an episode or a replay has failed.

The model's expressions, and the derivatives of every function in them, are evaluated part by part at the last point
that was finite, and where the model goes from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np
import sympy as sp

from symdual.common.arrays import Array
from symdual.controllers import knows_truth
from symdual.runtime.results import Results
from symdual.spec.numeric import as_numpy
from symdual.spec.symbols import FeatureSum
from symdual.spec.system import System

_AHEAD = 50  # steps that are looked at
_PARTS = 2000  # of expressions that are looked at: each is compiled to numpy

Values = dict[str, float]


def culprits(results: Results, model: System, plant: System) -> Iterator[str]:
    """For each controller with a failed episode, what was not finite in the first of them, if it can be found."""
    for name in results.description.controllers:
        failed = np.flatnonzero(results.array(name, "outcomes"))
        if not failed.size:
            continue
        run = int(failed[0])
        inputs = results.array(name, "inputs")[run]
        believed = (plant if knows_truth(name) else model), results.array(name, "means")[run]
        true = np.column_stack([states := results.array(name, "states")[run], _same(results, name, run, len(states))])
        for which, points in (believed, (plant, true)):
            known = np.flatnonzero(np.isfinite(points).all(axis=1))
            step = int(known[-1]) if known.size else 0
            at = inputs[min(step, len(inputs) - 1)]
            found = culprit(which, points[step], np.where(np.isfinite(at), at, 0.0), step) if known.size else None
            if found is not None:
                yield f"{name}, run {run}, step {step}: {found}"
                break


def _same(results: Results, name: str, run: int, times: int) -> Array:
    """The true parameters at every time."""
    return np.repeat(results.array(name, "truths")[run][None], times, axis=0)


def culprit(model: System, z: Array, u: Array, step: int = 0) -> str | None:
    """The first part of a model that is not finite at z = (x, theta) with the input u, or on the way from there."""
    if model.families:  # their weights have no names of their own to be evaluated by
        z = z[: len(model.states) + len(model.unknowns)]
    symbols = [*model.states, *model.unknowns, *model.inputs, *model.constants]
    numbers = [*map(float, z), *map(float, u), *(float(c.value) for c in model.constants)]
    values = dict(zip((s.name for s in symbols), numbers, strict=True))
    for ahead in range(_AHEAD if model.step is None else 1):
        if model.time is not None:
            values[model.time.name] = float(step + ahead)
        for expression, where in _expressions(model):
            if (found := _first_not_finite(expression, values)) is not None:
                later = f", {ahead} step{'s' if ahead > 1 else ''} later" if ahead else ""
                return f"{found.format(where=where)}{later}"
        if any(e.has(FeatureSum) for e in model.dynamics):
            return None
        moved = [_value(e, values) for e in model.dynamics]
        values |= dict(zip((s.name for s in model.states), moved, strict=True))
    return None


def _expressions(model: System) -> Iterator[tuple[sp.Expr, str]]:
    kind = "dynamics" if model.step is None else "derivatives"
    for state, expression in zip(model.states, model.dynamics, strict=True):
        yield expression, f'the {kind} of "{state.name}"'
    for row, expression in enumerate(model.observation):
        yield expression, f"the observation number {row}"


def _first_not_finite(expression: sp.Expr, values: Mapping[str, float]) -> str | None:
    """The innermost part that is not finite, or whose derivative by one of its arguments is not."""
    for part in islice(sp.postorder_traversal(expression), _PARTS):
        if not isinstance(part, sp.Expr) or part.is_Atom or part.has(FeatureSum) or not part.free_symbols:
            continue
        if not np.isfinite(value := _value(part, values)):
            return f"{part} in {{where}} is {_word(value)} at {_point(part, values)}"
        if isinstance(part, sp.Add | sp.Mul | sp.Piecewise):
            continue
        for position, argument in enumerate(part.args):
            if argument.free_symbols:
                slot = sp.Dummy(real=True)
                slope = part.func(*(slot if i == position else a for i, a in enumerate(part.args))).diff(slot)
                if not np.isfinite(value := _value(slope.xreplace({slot: argument}), values)):
                    return f"the derivative of {part} in {{where}} is {_word(value)} at {_point(part, values)}"
    return None


def _value(expression: sp.Expr, values: Mapping[str, float]) -> float:
    symbols = sorted(expression.free_symbols, key=lambda s: str(s.name))
    (found,) = as_numpy(symbols, [expression])(*(np.float64(values[s.name]) for s in symbols))
    return float(np.real(found)) if np.isrealobj(found) or not np.imag(found) else float("nan")


def _word(value: float) -> str:
    return "not a number" if np.isnan(value) else "infinite"


def _point(part: sp.Expr, values: Mapping[str, float]) -> str:
    names = sorted(str(s.name) for s in part.free_symbols)
    return ", ".join(f"{name} = {values[name]:.6g}" for name in names)
