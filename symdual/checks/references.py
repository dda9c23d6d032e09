"""What the kernels of a model ought to return at a point, from two oracles.

- "50 digits": the derived expressions, evaluated with 50 digits and more;
- "as written" and "differences": the model as the user wrote it, and its differences, exact far beyond float64.

All derivatives are by the coordinates (x, theta, u) of the augmented state and the input, in this order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import mpmath
import numpy as np
import sympy as sp

from symdual.checks.exact import ExactModel, Number, first_difference, second_difference
from symdual.checks.symbolic import SymbolicValues
from symdual.derive.calculus import Calculus, Hessian
from symdual.derive.derivation import Derivation
from symdual.spec.numbers import Array

SYMBOLS, WRITTEN, DIFFERENCES = "50 digits", "as written", "differences"
NOTHING = (
    1e-40  #: numbers below count as zero: differences of equal numbers leave that much, and functions in their tails
)


@dataclass(frozen=True)
class CheckPoint:
    """Numbers at which kernels and oracles are evaluated; `costate` weighs f, `multiplier` weighs h."""

    k: int
    x: Array
    u: Array
    theta: Array
    costate: Array
    multiplier: Array


class Expected(NamedTuple):
    """One number: entry `place` of the value (order 0), Jacobian (1) or contracted Hessian (2) of "f" or "h"."""

    block: str
    oracle: str
    function: str
    order: int
    place: tuple[int, ...]
    exact: Number


class References:
    """Both oracles of one model."""

    def __init__(self, derivation: Derivation, random: np.random.Generator) -> None:
        self._d, self._random = derivation, random
        self._exact = ExactModel(derivation.model)
        self._values = {
            "f": SymbolicValues(derivation, derivation.dynamics),
            "h": SymbolicValues(derivation, derivation.observation),
        }
        self._nx, self._nz = len(derivation.states), len(derivation.states) + derivation.theta_size
        self._names = [s.name for s in derivation.core]
        self._names += [b.symbol.name for b in derivation.weights for _ in range(b.count)]
        self._names += [s.name for s in derivation.inputs]

    def at(self, point: CheckPoint, differences: bool) -> list[Expected] | None:
        """Everything that is expected at a point, or None where the model has no finite real value."""
        try:
            found = [*self._from_symbols("f", point), *self._from_symbols("h", point)]
            if differences:
                found += [*self._from_differences("f", point), *self._from_differences("h", point)]
        except (ZeroDivisionError, ValueError, OverflowError):
            return None  # a pole, or a number too large
        except TypeError as problem:
            if "mpc" not in str(problem):
                raise
            return None  # a complex number
        return found if all(mpmath.isfinite(e.exact) for e in found) else None

    # ------------------------------------------------------------ 50-digit values of the derived expressions

    def _from_symbols(self, function: str, point: CheckPoint) -> Iterator[Expected]:
        d, values = self._d, self._values[function]
        dynamic = function == "f"
        calculus = d.dynamics if dynamic else d.observation
        hessian = d.dynamics_hessian if dynamic else d.observation_hessian
        self._place(point, values, calculus, point.costate if dynamic else point.multiplier)
        # coordinates of scalars, with their symbols; weight arrays follow by block
        scalars = list(enumerate(d.core)) + ([(self._nz + a, s) for a, s in enumerate(d.inputs)] if dynamic else [])
        for i, expression in enumerate(calculus.program.outputs):
            yield self._expected(SYMBOLS, function, (i,), (), values.scalar(expression))
            for j, symbol in scalars:
                yield self._expected(SYMBOLS, function, (i,), (j,), values.scalar(calculus.jacobian(i, symbol)))
            for block in d.weights:
                vector = calculus.weight_jacobian(i, block.symbol)
                for n in self._sample(block.count):
                    j = self._nx + block.start + n
                    yield self._expected(SYMBOLS, function, (i,), (j,), values.vector(vector, n))
        for i, one in scalars:
            for j, other in scalars:
                yield self._expected(SYMBOLS, function, (), (i, j), values.scalar(hessian.entry(one, other)))
            for block in d.weights:
                vector = hessian.mixed(one, block.symbol)
                for n in self._sample(block.count):
                    j = self._nx + block.start + n
                    yield self._expected(SYMBOLS, function, (), (i, j), values.vector(vector, n))
        yield from self._weights_by_weights(function, values, hessian)

    def _place(self, point: CheckPoint, values: SymbolicValues, calculus: Calculus, costate: Array) -> None:
        d = self._d
        numbers = [*point.x, *point.theta[: len(d.scalars)], *point.u, *costate]
        symbols = [*d.core, *d.inputs, *calculus.costate]
        scalars = {s: mpmath.mpf(v) for s, v in zip(symbols, numbers, strict=True)}
        if d.model.time is not None:
            scalars[sp.Symbol(d.model.time.name, real=True)] = mpmath.mpf(point.k)
        weights = {b.symbol: [mpmath.mpf(v) for v in point.theta[b.start : b.start + b.count]] for b in d.weights}
        values.at(scalars, weights)

    def _weights_by_weights(self, function: str, values: SymbolicValues, hessian: Hessian) -> Iterator[Expected]:
        """diagonal + sum_c (phi_c rho_c' + rho_c phi_c')."""
        pairs = [
            {w.symbol: (pair.left.get(w.symbol, ()), pair.right.get(w.symbol, ())) for w in self._d.weights}
            for pair in hessian.pairs
        ]
        for a in self._d.weights:
            for b in self._d.weights:
                diagonal = hessian.diagonal(a.symbol, b.symbol) if a.family == b.family else ()
                for i in self._sample(a.count, 4):
                    for j in sorted({*self._sample(b.count, 4), min(i, b.count - 1)}):
                        exact = values.vector(diagonal, i) if i == j else mpmath.mpf(0)
                        for pair in pairs:
                            (phi, rho), (other_phi, other_rho) = pair[a.symbol], pair[b.symbol]
                            exact += values.vector(phi, i) * values.vector(other_rho, j)
                            exact += values.vector(rho, i) * values.vector(other_phi, j)
                        index = (self._nx + a.start + i, self._nx + b.start + j)
                        yield self._expected(SYMBOLS, function, (), index, exact)

    # ------------------------------------------------------------ differences of the model as written

    def _from_differences(self, function: str, point: CheckPoint) -> Iterator[Expected]:
        nx, nz = self._nx, self._nz
        coordinates = [mpmath.mpf(v) for v in (*point.x, *point.theta, *point.u)]
        weights = [mpmath.mpf(v) for v in (point.costate if function == "f" else point.multiplier)]

        def value(at: list[Number]) -> list[Number]:
            if function == "f":
                return self._exact.dynamics(point.k, at[:nx], at[nz:], at[nx:nz])
            return self._exact.observation(point.k, at[:nx], at[nx:nz])

        def contracted(at: list[Number]) -> Number:
            return mpmath.fsum(w * v for w, v in zip(weights, value(at), strict=True))

        for i, exact in enumerate(value(coordinates)):
            yield self._expected(WRITTEN, function, (i,), (), exact)
        chosen = self._chosen(function)
        for j in chosen:
            for i, exact in enumerate(first_difference(value, coordinates, j)):
                yield self._expected(DIFFERENCES, function, (i,), (j,), exact)
        for i in chosen:
            for j in chosen:
                if j >= i:
                    exact = second_difference(contracted, coordinates, i, j)
                    yield self._expected(DIFFERENCES, function, (), (i, j), exact)
                    yield self._expected(DIFFERENCES, function, (), (j, i), exact)

    def _chosen(self, function: str) -> list[int]:
        """The coordinates of all scalars, and of a few weights of each array."""
        chosen = list(range(len(self._d.core)))
        for block in self._d.weights:
            chosen += [self._nx + block.start + n for n in self._sample(block.count, 3)]
        return chosen + ([self._nz + a for a in range(len(self._d.inputs))] if function == "f" else [])

    # ------------------------------------------------------------ both

    def _expected(
        self, oracle: str, function: str, row: tuple[int, ...], by: tuple[int, ...], exact: Number
    ) -> Expected:
        block = " by ".join([function, ", ".join(self._names[j] for j in by)]) if by else function
        number = mpmath.mpf(exact)
        return Expected(block, oracle, function, len(by), row + by, mpmath.mpf(0) if abs(number) < NOTHING else number)

    def _sample(self, count: int, most: int = 12) -> list[int]:
        if count <= most:
            return list(range(count))
        return sorted(int(i) for i in self._random.choice(count, size=most, replace=False))
