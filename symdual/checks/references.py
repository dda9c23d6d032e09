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

from symdual.checks.boundaries import boundaries, on_and_beside, root
from symdual.checks.implicit_bounds import implicit
from symdual.checks.places import Place
from symdual.checks.substeps import Link, composed, product
from symdual.checks.symbolic import SymbolicValues
from symdual.common.arrays import Array
from symdual.derive.calculus import Calculus, Hessian
from symdual.derive.derivation import Derivation, WeightBlock
from symdual.derive.structure import remembered
from symdual.integrators import INTEGRATORS, Implicit
from symdual.many_digits.arithmetic import DIGITS, OVERFLOW, Bounded, Number, known, plus
from symdual.many_digits.model import STEP, ExactModel, first_difference, one_sided_differences, second_difference
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
        found["g"] = derived.constraints, asked.constraints
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
        noise = np.sqrt(np.diagonal(derivation.model.measurement_noise))
        self._heights = np.where(noise > 0.0, noise, 1.0)  # units of the measurements
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
            random.normal(size=len(x)) / place.x_spread,  # rows have units of their own: none must hide another
            random.normal(size=len(self._d.model.observation)) / self._heights,
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

    def _from_substeps(self, point: CheckPoint) -> Iterator[Expected]:
        """A step in loops: the evaluations of its substeps, or of the stages of its parts, put together."""
        d, values, calculus = self._d, self._values["f"], self._calculi["f"]
        weights = {
            self._nx + block.start + n: (block, n)
            for number, block in enumerate(d.weights)
            for n in self._sample(number)
        }
        symbols = dict(enumerate(d.core)) | {self._nz + a: s for a, s in enumerate(d.inputs)}

        def first(i: int, column: int) -> Bounded:
            if column in symbols:
                return values.scalar(calculus.jacobian(i, symbols[column]))
            block, n = weights[column]
            return values.vector(calculus.weight_jacobian(i, block.symbol), n)

        def second(one: int, other: int) -> Bounded:
            if one in symbols and other in symbols:
                return values.scalar(calculus.hessian.entry(symbols[one], symbols[other]))
            if one in weights and other in weights:
                return _weight_by_weight(values, calculus.hessian, *weights[one], *weights[other])
            scalar, (block, n) = (symbols[one], weights[other]) if one in symbols else (symbols[other], weights[one])
            return values.vector(calculus.hessian.mixed(scalar, block.symbol), n)

        link = Link(lambda: [values.scalar(e) for e in calculus.program.outputs], first, second)
        columns = sorted([*symbols, *weights])
        at = [known(v) for v in point.x], [known(v) for v in point.costate], columns

        def place(x: Sequence[Bounded], part: Number, costate: Sequence[Bounded]) -> None:
            self._place(point, values, calculus, x, costate, point.k + part)

        if isinstance(method := INTEGRATORS[d.model.method], Implicit) and d.model.step is not None:
            x, (theta, u) = (
                self._numbers(point)[: self._nx],
                ([mpmath.mpf(v) for v in w] for w in (point.theta, point.u)),
            )
            step = implicit(method, link, place, self._exact.parts(point.k, x, u, theta), *at, mpmath.mpf(d.model.step))
        else:
            step = composed(link, place, *at, d.model.substeps)
        inputs_kept = _remembered(d, point)
        for i, value in enumerate(step.ends):
            column, kept = inputs_kept.get(i, (-1, value))
            yield self._expected(SYMBOLS, "f", (i,), (), *kept)
            for j in sorted([*symbols, *weights]):
                slope = known(float(j == column)) if i in inputs_kept else step.first[i, j]
                yield self._expected(SYMBOLS, "f", (i,), (j,), *slope)
        for pair, value in step.second.items():
            yield self._expected(SYMBOLS, "f", (), pair, *value)

    def _from_symbols(self, function: str, point: CheckPoint) -> Iterator[Expected]:
        if function == "f" and (self._d.model.substeps > 1 or self._d.model.is_implicit):
            yield from self._from_substeps(point)
            return
        d, values = self._d, self._values[function]
        calculus, hessian = self._calculi[function], self._calculi[function].hessian
        costate = [known(v) for v in self._weights(function, point)]
        self._place(point, values, calculus, [known(v) for v in point.x], costate, mpmath.mpf(point.k))
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

    def _place(
        self,
        point: CheckPoint,
        values: SymbolicValues,
        calculus: Calculus,
        x: Sequence[Bounded],
        costate: Sequence[Bounded],
        time: Number,
    ) -> None:
        """Put everything at a point; its state may have moved on within a step."""
        d = self._d
        others = [known(v) for v in (*point.theta[: len(d.scalars)], *point.u)]
        symbols = [*d.core, *d.inputs, *calculus.costate]
        scalars = dict(zip(symbols, [*x, *others, *costate], strict=True))
        if d.model.time is not None:
            scalars[sp.Symbol(d.model.time.name, real=True)] = Bounded(mpmath.mpf(time), 0.0)
        weights = {b.symbol: [known(v) for v in point.theta[b.start : b.start + b.count]] for b in d.weights}
        values.at(scalars, weights)

    def _weights_by_weights(self, function: str, values: SymbolicValues, hessian: Hessian) -> Iterator[Expected]:
        for number, a in enumerate(self._d.weights):
            for another, b in enumerate(self._d.weights):
                for i in self._sample(number, 4):
                    for j in sorted({*self._sample(another, 4), min(i, b.count - 1)}):
                        index = (self._nx + a.start + i, self._nx + b.start + j)
                        value = _weight_by_weight(values, hessian, a, i, b, j)
                        yield self._expected(SYMBOLS, function, (), index, *value)

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


def _weight_by_weight(
    values: SymbolicValues, hessian: Hessian, a: WeightBlock, i: int, b: WeightBlock, j: int
) -> Bounded:
    """diagonal + sum_c (phi_c rho_c' + rho_c phi_c')."""
    same = a.family == b.family and i == j
    terms = [values.vector(hessian.diagonal(a.symbol, b.symbol), i)] if same else []
    for pair in hessian.pairs:
        for left, right in ((pair.left, pair.right), (pair.right, pair.left)):
            one, other = left.get(a.symbol, ()), right.get(b.symbol, ())
            terms.append(product(values.vector(one, i), values.vector(other, j)))
    return plus(terms)


def _remembered(derivation: Derivation, point: CheckPoint) -> dict[int, tuple[int, Bounded]]:
    """The states that remember inputs: which coordinate each of them becomes, and its value."""
    nx, nz = len(derivation.states), len(derivation.states) + derivation.theta_size
    groups = len(derivation.core) + len(derivation.weights)
    columns = {row: j if j < nx else nz + j - groups for row, j in remembered(derivation)}
    return {row: (column, known(point.coordinates[column])) for row, column in columns.items()}


def _agree(one: Number, other: Number, tolerance: Number) -> bool:
    return bool(mpmath.isfinite(one) and mpmath.isfinite(other) and abs(one - other) <= tolerance)


def _without(number: Number, noise: Number) -> Number:
    """The number, or zero where it is no more than noise."""
    return mpmath.mpf(0) if abs(number) <= noise else number


def _is_double(value: Number) -> bool:
    return bool(mpmath.isfinite(value) and abs(value) < OVERFLOW)
