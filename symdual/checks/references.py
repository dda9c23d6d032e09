"""What the kernels of a model ought to return at a point, from two oracles.

- "50 digits": the derived expressions, evaluated with 50 digits and more, with a bound on the error that double
  precision may make in them;
- "as written" and "differences": the model as the user wrote it, and its differences, exact far beyond float64.

All derivatives are by the coordinates (x, theta, u) of the augmented state and the input, in this order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import mpmath
import numpy as np
import sympy as sp
from numpy.typing import NDArray

from symdual.checks.arithmetic import DIGITS, OVERFLOW, Bounded, Number, known, plus, times
from symdual.checks.boundaries import boundaries, on_and_beside, root
from symdual.checks.exact import STEP, ExactModel, first_difference, one_sided_differences, second_difference
from symdual.checks.places import Place
from symdual.checks.symbolic import SymbolicValues
from symdual.derive.calculus import Calculus, Hessian
from symdual.derive.derivation import Derivation
from symdual.numbers import Array
from symdual.spec.noise import lower

SYMBOLS, WRITTEN, DIFFERENCES = "50 digits", "as written", "differences"
_WITH_INPUTS = ("f", "l", "g", "Q")  #: functions of states, parameters and inputs; the others have none
SMOOTH = 1e-12  #: share to which differences of two kinds agree where there is a derivative
#: what rounding leaves in the numerator of a difference, as a share of the function's value
NOISE = mpmath.mpf(10) ** (8 - DIGITS)
#: what the width of the step leaves in a difference, in units of the function's value and of the deviations
WIDTH = mpmath.mpf(10) ** -40


@dataclass(frozen=True)
class CheckPoint:
    """Numbers at which kernels and oracles are evaluated; `costate` weighs f, `multiplier` weighs h.

    `shares` weigh the terms of a cost, those of a step before those of the end, constraints, and entries of noise.

    `spread` is the deviation of each coordinate, which scales the steps of differences. On a boundary the model may
    have no derivative.
    """

    k: int
    x: Array
    u: Array
    theta: Array
    costate: Array
    multiplier: Array
    spread: Array
    shares: Array
    boundary: bool = False

    @property
    def coordinates(self) -> Array:
        """(x, theta, u)."""
        return np.concatenate([self.x, self.theta, self.u])

    def at(self, coordinates: Array, boundary: bool) -> CheckPoint:
        """The same point with other coordinates."""
        x, theta, u = np.split(coordinates, [len(self.x), len(self.x) + len(self.theta)])
        return replace(self, x=x, theta=theta, u=u, boundary=boundary)


class Expected(NamedTuple):
    """One number: entry `place` of the value (order 0), Jacobian (1) or contracted Hessian (2) of a function.

    The functions are "f", "h", "l" and "e" for the terms of the cost of a step and of the end, "g" for constraints, "Q"
    and "R" for the entries of noise that depends, on and below the diagonal.

    `exact` is NaN where the oracle has no finite value. `allowed` bounds the error of double precision; it is infinite
    where an intermediate result has no finite value there.
    """

    block: str
    oracle: str
    function: str
    order: int
    place: tuple[int, ...]
    exact: Number
    allowed: float


def _others(derivation: Derivation) -> dict[str, tuple[Calculus, tuple[sp.Expr, ...]]]:
    """What a model has beside f and h, by name: as it was derived and as it was written."""
    found: dict[str, tuple[Calculus, tuple[sp.Expr, ...]]] = {}
    asked, derived = derivation.model.objective, derivation.objective
    if asked is not None and derived is not None:
        found["l"] = derived.stage, asked.stage.expressions
        found["e"] = derived.final, asked.final.expressions
        found["g"] = derived.limits, asked.limits
    if derivation.model.noise is not None and derivation.noise is not None:
        found["Q"] = derivation.noise.process, lower(derivation.model.noise.process)
        found["R"] = derivation.noise.measurement, lower(derivation.model.noise.measurement)
    return {name: pair for name, pair in found.items() if pair[1]}


class References:
    """Both oracles of one model."""

    def __init__(self, derivation: Derivation, random: np.random.Generator) -> None:
        self._d, self._random = derivation, random
        self._boundaries = boundaries(derivation.model)
        others = _others(derivation)
        self._exact = ExactModel(derivation.model, [*self._boundaries, *(e for _, own in others.values() for e in own)])
        self._calculi = {"f": derivation.dynamics, "h": derivation.observation}
        self._calculi |= {name: calculus for name, (calculus, _) in others.items()}
        ends = np.cumsum([0, *(len(own) for _, own in others.values())])
        self._shares = {name: slice(ends[i], ends[i + 1]) for i, name in enumerate(others)}
        self._count = int(ends[-1])
        self._values = {name: SymbolicValues(derivation, calculus) for name, calculus in self._calculi.items()}
        self._nx, self._nz = len(derivation.states), len(derivation.states) + derivation.theta_size
        self._names = [s.name for s in derivation.core]
        self._names += [b.symbol.name for b in derivation.weights for _ in range(b.count)]
        self._names += [s.name for s in derivation.inputs]
        self._order: list[NDArray[np.int64]] = []  # of each weight array: its features, shuffled

    # ------------------------------------------------------------ points

    def draw(self, place: Place, share: float) -> CheckPoint:
        """A point around a place, with this share of its deviations."""
        random = self._random
        x, u, theta = place.draw(random, share)
        return CheckPoint(
            int(random.integers(0, max(place.horizon, 1))),
            x,
            np.clip(u, self._d.model.lower, self._d.model.upper),
            theta,
            random.normal(size=len(x)),
            random.normal(size=len(self._d.model.observation)),
            np.concatenate([place.x_spread, place.theta_spread, place.u_spread]),
            random.normal(size=self._count),
        )

    def beside_boundaries(self, points: Sequence[CheckPoint]) -> Iterator[CheckPoint]:
        """For every boundary of the model three points, one of them on it: one coordinate of a given point is moved."""
        if not points:
            return
        for number, expression in enumerate(self._boundaries):
            point = points[number % len(points)]
            for j in self._moved_by(expression):
                at = point.coordinates
                found = root(partial(self._distance, number, point, j), at[j], point.spread[j])
                if found is None or not math.isfinite(found):
                    continue
                for moved in on_and_beside(found, point.spread[j]):
                    at[j] = moved
                    yield point.at(at.copy(), boundary=True)
                break

    def _moved_by(self, expression: sp.Expr) -> list[int]:
        """The coordinates of the states, inputs and scalar unknowns in an expression."""
        model = self._d.model
        symbols = [*enumerate((*model.states, *model.unknowns))]
        symbols += [(self._nz + a, s) for a, s in enumerate(model.inputs)]
        return [j for j, symbol in symbols if symbol in expression.free_symbols]

    def _distance(self, number: int, point: CheckPoint, j: int, value: Number) -> Number:
        """Boundary number `number` at a point whose coordinate j has another value."""
        numbers = self._numbers(point)
        numbers[j] = value
        nx, nz = self._nx, self._nz
        return self._exact.others(point.k, numbers[:nx], numbers[nz:], numbers[nx:nz])[number]

    # ------------------------------------------------------------ both oracles

    def at(self, point: CheckPoint, differences: bool) -> list[Expected] | None:
        """Everything that is expected at a point, or None where the model as written has no finite value."""
        written = {function: self._written(function, point) for function in self._calculi}
        if any(not _is_double(value) for values in written.values() for value in values):
            return None
        self._order = [self._random.permutation(block.count) for block in self._d.weights]
        found = []
        for function, values in written.items():
            derived = list(self._from_symbols(function, point))
            found += derived
            bounds = {(e.order, e.place): e.allowed if mpmath.isfinite(e.exact) else 0.0 for e in derived}
            # a state by a weight is derived once and found twice in the kernel's matrix
            bounds = {(2, place[::-1]): allowed for (order, place), allowed in bounds.items() if order == 2} | bounds
            found += [self._expected(WRITTEN, function, (i,), (), v, bounds[0, (i,)]) for i, v in enumerate(values)]
            # where the derived expressions have no value the model may still have a derivative
            if differences or any(not mpmath.isfinite(e.exact) for e in derived):
                found += self._from_differences(function, point, bounds)
        return found

    # ------------------------------------------------------------ 50-digit values of the derived expressions

    def _from_symbols(self, function: str, point: CheckPoint) -> Iterator[Expected]:
        d, values = self._d, self._values[function]
        calculus, hessian = self._calculi[function], self._calculi[function].hessian
        self._place(point, values, calculus, self._weights(function, point))
        # coordinates of scalars, with their symbols; weight arrays follow by block
        acted = [(self._nz + a, s) for a, s in enumerate(d.inputs)] if function in _WITH_INPUTS else []
        scalars = list(enumerate(d.core)) + acted
        for i, expression in enumerate(calculus.program.outputs):
            yield self._expected(SYMBOLS, function, (i,), (), *values.scalar(expression))
            for j, symbol in scalars:
                yield self._expected(SYMBOLS, function, (i,), (j,), *values.scalar(calculus.jacobian(i, symbol)))
            for number, block in enumerate(d.weights):
                vector = calculus.weight_jacobian(i, block.symbol)
                for n in self._sample(number):
                    j = self._nx + block.start + n
                    yield self._expected(SYMBOLS, function, (i,), (j,), *values.vector(vector, n))
        for i, one in scalars:
            for j, other in scalars:
                yield self._expected(SYMBOLS, function, (), (i, j), *values.scalar(hessian.entry(one, other)))
            for number, block in enumerate(d.weights):
                vector = hessian.mixed(one, block.symbol)
                for n in self._sample(number):
                    j = self._nx + block.start + n
                    yield self._expected(SYMBOLS, function, (), (i, j), *values.vector(vector, n))
        yield from self._weights_by_weights(function, values, hessian)

    def _weights(self, function: str, point: CheckPoint) -> Array:
        """What the second derivatives of the rows of a function are multiplied with."""
        if function in self._shares:
            return point.shares[self._shares[function]]
        return point.costate if function == "f" else point.multiplier

    def _place(self, point: CheckPoint, values: SymbolicValues, calculus: Calculus, costate: Array) -> None:
        d = self._d
        numbers = [*point.x, *point.theta[: len(d.scalars)], *point.u, *costate]
        symbols = [*d.core, *d.inputs, *calculus.costate]
        scalars = {s: known(v) for s, v in zip(symbols, numbers, strict=True)}
        if d.model.time is not None:
            scalars[sp.Symbol(d.model.time.name, real=True)] = known(point.k)
        weights = {b.symbol: [known(v) for v in point.theta[b.start : b.start + b.count]] for b in d.weights}
        values.at(scalars, weights)

    def _weights_by_weights(self, function: str, values: SymbolicValues, hessian: Hessian) -> Iterator[Expected]:
        """diagonal + sum_c (phi_c rho_c' + rho_c phi_c')."""
        for number, a in enumerate(self._d.weights):
            for another, b in enumerate(self._d.weights):
                diagonal = hessian.diagonal(a.symbol, b.symbol) if a.family == b.family else ()
                for i in self._sample(number, 4):
                    for j in sorted({*self._sample(another, 4), min(i, b.count - 1)}):
                        terms = [values.vector(diagonal, i)] if i == j else []
                        for pair in hessian.pairs:
                            for left, right in ((pair.left, pair.right), (pair.right, pair.left)):
                                one, other = left.get(a.symbol, ()), right.get(b.symbol, ())
                                terms.append(_product(values.vector(one, i), values.vector(other, j)))
                        index = (self._nx + a.start + i, self._nx + b.start + j)
                        yield self._expected(SYMBOLS, function, (), index, *plus(terms))

    # ------------------------------------------------------------ the model as written

    def _numbers(self, point: CheckPoint) -> list[Number]:
        return [mpmath.mpf(v) for v in point.coordinates]

    def _function(self, function: str, k: int, at: list[Number]) -> list[Number]:
        nx, nz = self._nx, self._nz
        if function == "f":
            return self._exact.dynamics(k, at[:nx], at[nz:], at[nx:nz])
        if function == "h":
            return self._exact.observation(k, at[:nx], at[nx:nz])
        return self._exact.others(k, at[:nx], at[nz:], at[nx:nz])[len(self._boundaries) :][self._shares[function]]

    def _written(self, function: str, point: CheckPoint) -> list[Number]:
        return self._function(function, point.k, self._numbers(point))

    def _from_differences(
        self, function: str, point: CheckPoint, bounds: dict[tuple[int, tuple[int, ...]], float]
    ) -> Iterator[Expected]:
        coordinates = self._numbers(point)
        weights = [mpmath.mpf(v) for v in self._weights(function, point)]
        steps = [STEP * mpmath.mpf(v) for v in point.spread]

        def value(at: list[Number]) -> list[Number]:
            return self._function(function, point.k, at)

        def contracted(at: list[Number]) -> Number:
            return mpmath.fsum(w * v for w, v in zip(weights, value(at), strict=True))

        here = value(coordinates)
        sizes = [abs(v) for v in here]
        whole = mpmath.fsum(abs(w) * s for w, s in zip(weights, sizes, strict=True))
        chosen = self._chosen(function)
        for j in chosen:
            slopes = first_difference(value, coordinates, j, steps[j])
            if point.boundary:
                slopes = [
                    slope if _agree(up, down, SMOOTH * abs(up) + size * NOISE / steps[j] ** 2) else mpmath.nan
                    for slope, (up, down), size in zip(
                        slopes, one_sided_differences(value, coordinates, j, steps[j]), sizes, strict=True
                    )
                ]
            for i, exact in enumerate(slopes):
                noise = sizes[i] * (NOISE + WIDTH * STEP) / steps[j]
                allowed = bounds[1, (i, j)] + float(noise)
                yield self._expected(DIFFERENCES, function, (i,), (j,), _without(exact, noise), allowed)
        for i in chosen:
            for j in chosen:
                if j >= i:
                    pair = steps[i], steps[j]
                    exact = second_difference(contracted, coordinates, i, j, pair)
                    noise = whole * (NOISE + WIDTH * STEP**2) / (pair[0] * pair[1])
                    if point.boundary:
                        wider = second_difference(contracted, coordinates, i, j, (2 * pair[0], 2 * pair[1]))
                        exact = exact if _agree(exact, wider, SMOOTH * abs(exact) + noise) else mpmath.nan
                    for index in ((i, j), (j, i)):
                        allowed = bounds[2, index] + float(noise)
                        yield self._expected(DIFFERENCES, function, (), index, _without(exact, noise), allowed)

    def _chosen(self, function: str) -> list[int]:
        """The coordinates of all scalars, and of a few weights of each array."""
        chosen = list(range(len(self._d.core)))
        for number, block in enumerate(self._d.weights):
            chosen += [self._nx + block.start + n for n in self._sample(number, 3)]
        return chosen + ([self._nz + a for a in range(len(self._d.inputs))] if function in _WITH_INPUTS else [])

    # ------------------------------------------------------------ both

    def _expected(
        self, oracle: str, function: str, row: tuple[int, ...], by: tuple[int, ...], exact: Number, allowed: float
    ) -> Expected:
        block = " by ".join([function, ", ".join(self._names[j] for j in by)]) if by else function
        return Expected(block, oracle, function, len(by), row + by, exact, allowed)

    def _sample(self, number: int, most: int = 12) -> list[int]:
        """Some features of weight array `number`: at one point the same for all, a smaller choice within a larger."""
        return sorted(int(i) for i in self._order[number][:most])


def _product(one: Bounded, other: Bounded) -> Bounded:
    """A product in which a zero outside its case takes the other factor away."""
    return known(0.0) if one.value == 0 or other.value == 0 else times(one, other)


def _agree(one: Number, other: Number, tolerance: Number) -> bool:
    return bool(mpmath.isfinite(one) and mpmath.isfinite(other) and abs(one - other) <= tolerance)


def _without(number: Number, noise: Number) -> Number:
    """The number, or zero where it is no more than noise."""
    return mpmath.mpf(0) if abs(number) <= noise else number


def _is_double(value: Number) -> bool:
    return bool(mpmath.isfinite(value) and abs(value) < OVERFLOW)
