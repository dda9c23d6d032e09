"""A model written out feature by feature and differentiated by SymPy as a whole: the model of the dense recursions.

Nothing of `symdual.derive` or `symdual.emit` is used. The expressions grow with the square of the number of features,
so this is for small models.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import sympy as sp

from symdual.checks.dense import DenseModel
from symdual.checks.implicit_step import ImplicitStep
from symdual.common.arrays import Array
from symdual.integrators import INTEGRATORS, Explicit
from symdual.spec.symbols import Family, FeatureSum, logistic, monomial
from symdual.spec.system import System


def expand(model: System) -> DenseModel:
    """Write out all features of a model and return f, h and their derivatives as plain numpy functions."""
    theta = _parameters(model)
    weights = dict(zip(_weight_keys(model), theta, strict=True))
    clock = model.time if model.time is not None else sp.Symbol("_clock")
    motion = [_written_out(e, weights) for e in model.dynamics]
    measured = [_written_out(e, weights) for e in model.observation]
    z = [*model.states, *theta]
    both = [*z, *model.inputs]
    arguments = [clock, z, list(model.inputs)]
    zero = np.zeros(len(model.inputs))

    def compiled(expression: Any) -> Callable[..., Any]:
        return sp.lambdify(arguments, expression, modules="numpy", cse=True, dummify=True)  # type: ignore[no-any-return]

    step = ImplicitStep(model, motion, theta, clock) if model.is_implicit else _WrittenStep(model, motion, both, clock)
    h, h_z = compiled(measured), compiled(sp.Matrix(measured).jacobian(z))

    @cache
    def seen_bent() -> list[Callable[..., Any]]:
        return [compiled(sp.hessian(row, z)) for row in measured]

    def observation_hessian(time: int, z: Array, mu: Array) -> Array:
        rows = [weight * np.array(row(time, z, zero), dtype=float) for weight, row in zip(mu, seen_bent(), strict=True)]
        return np.asarray(sum(rows))

    return DenseModel(
        nx=len(model.states),
        nu=len(model.inputs),
        ny=len(measured),
        ntheta=len(theta),
        dynamics=step.value,
        jacobian=step.jacobian,
        hessian=step.hessian,
        observation=lambda time, z: np.array(h(time, z, zero), dtype=float),
        observation_jacobian=lambda time, z: np.array(h_z(time, z, zero), dtype=float),
        observation_hessian=observation_hessian,
        keep=lambda z: _kept(model, z),
    )


class _WrittenStep:
    """A step as expressions, with their derivatives."""

    def __init__(self, model: System, motion: list[sp.Expr], both: list[sp.Symbol], clock: sp.Symbol) -> None:
        rows, split = _discretised(model, motion, clock), len(both) - len(model.inputs)

        def compiled(expression: Any) -> Callable[..., Array]:
            function = sp.lambdify(
                [clock, both[:split], both[split:]], expression, modules="numpy", cse=True, dummify=True
            )
            return lambda time, z, u: np.array(function(time, z, u), dtype=float)

        self.value, self.jacobian = compiled(rows), compiled(sp.Matrix(rows).jacobian(both))
        self._bent = cache(lambda: [compiled(sp.hessian(row, both)) for row in rows])

    def hessian(self, time: int, z: Array, u: Array, costate: Array) -> Array:
        """The second derivatives of costate' f by (z, u)."""
        return np.asarray(sum(weight * row(time, z, u) for weight, row in zip(costate, self._bent(), strict=True)))


def _kept(model: System, z: Array) -> Array:
    """The mean with its states within their bounds."""
    found = np.array(z)
    for i, (low, high) in model.bounded_states.items():
        found[i] = np.clip(found[i], low, high)
    return found


def _weight_keys(model: System) -> list[tuple[str, str, int]]:
    """One key for each unknown in the order of theta: scalars first, then the arrays of the families."""
    keys = [("", scalar.name, 0) for scalar in model.unknowns]
    for family in model.families:
        keys += [(family.name, w.symbol.name, i) for w in family.weights for i in range(family.count)]
    return keys


def _parameters(model: System) -> list[sp.Symbol]:
    scalars = list(model.unknowns)
    return scalars + [sp.Symbol(f"_theta{i}") for i in range(len(scalars), len(_weight_keys(model)))]


def _written_out(expression: sp.Expr, weights: dict[tuple[str, str, int], sp.Symbol]) -> sp.Expr:
    """Replace every family by the sum of its features, and functions of symdual and constants by plain ones."""
    if isinstance(expression, FeatureSum):
        family = expression.family
        points = [_written_out(point, weights) for point in expression.points]
        return sp.Add(*(_feature(family, expression.output, i, points, weights) for i in range(family.count)))
    if hasattr(expression, "value") and isinstance(expression, sp.Symbol):
        return sp.Float(expression.value)  # a constant
    if not expression.args:
        return expression
    plain = expression.func(*(_written_out(part, weights) for part in expression.args))
    if isinstance(plain, logistic):
        return 1 / (1 + sp.exp(-plain.args[0]))
    return plain


def _feature(
    family: Family, output: int, index: int, points: list[sp.Expr], weights: dict[tuple[str, str, int], sp.Symbol]
) -> sp.Expr:
    """Summand number `index` of a family with everything in place."""
    places: dict[sp.Symbol, sp.Expr] = dict(zip(family.arguments, points, strict=True))
    places |= {w.symbol: weights[family.name, w.symbol.name, index] for w in family.weights}
    places |= {a.symbol: _number(a.values[index]) for a in family.data}
    summand = family.summands[output].replace(monomial, lambda base, power: base ** power.xreplace(places))
    return _written_out(summand.xreplace(places), weights)


def _number(value: float) -> sp.Expr:
    return sp.Integer(int(value)) if float(value).is_integer() else sp.Float(float(value), 17)


def _discretised(model: System, motion: list[sp.Expr], clock: sp.Symbol) -> list[sp.Expr]:
    """The next state; for a model in continuous time, one step of its method, or several substeps."""
    if model.step is None:
        return _stopped(model, motion)
    places: list[sp.Expr] = list(model.states)
    for number in range(model.substeps):
        places = _stopped(model, _moved(model, motion, clock, places, number))
    return places


def _stopped(model: System, moved: list[sp.Expr]) -> list[sp.Expr]:
    """The states, those beyond a bound on it."""
    found = list(moved)
    for i, (low, high) in model.bounded_states.items():
        if low is not None:
            found[i] = sp.Piecewise((sp.Float(low, 17), found[i] < low), (found[i], True))
        if high is not None:
            found[i] = sp.Piecewise((sp.Float(high, 17), found[i] > high), (found[i], True))
    return found


def _moved(model: System, motion: list[sp.Expr], clock: sp.Symbol, here: list[sp.Expr], number: int) -> list[sp.Expr]:
    """Where a substep leads from `here`."""
    count = sp.Integer(model.substeps)
    step = sp.Float(model.step, 17) / count

    def slope(shift: list[sp.Expr], delay: sp.Expr) -> list[sp.Expr]:
        place = {x: at + d for x, at, d in zip(model.states, here, shift, strict=True)}
        later = clock + (number + delay) / count
        return [e.subs({**place, clock: later}, simultaneous=True) for e in motion]

    method = INTEGRATORS[model.method]
    assert isinstance(method, Explicit)
    slopes = list[list[sp.Expr]]()
    for part in method.shift:
        delay = sp.Rational(part.numerator, part.denominator)
        slopes.append(slope([step * delay * a for a in slopes[-1]] if slopes else [sp.Integer(0)] * len(motion), delay))
    shares = [sp.Rational(part.numerator, part.denominator) for part in method.share]
    return [
        x + step * sp.Add(*(b * a for b, a in zip(shares, own, strict=True)))
        for x, *own in zip(here, *slopes, strict=True)
    ]
