"""Derived expressions as numbers, at many points at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import sympy as sp

from symdual.common.arrays import Array
from symdual.derive.calculus import Calculus, Vector
from symdual.spec.numeric import as_numpy


class NumericProgram:
    """Turns the expressions of a `Calculus` into functions, each once."""

    def __init__(self, calculus: Calculus) -> None:
        self.calculus = calculus
        self._functions: dict[sp.Expr, tuple[tuple[sp.Symbol, ...], Callable[..., list[Any]]]] = {}

    def at(self, size: int, scalars: Mapping[sp.Symbol, Any], arrays: Mapping[sp.Symbol, Array]) -> ProgramValues:
        """The values at `size` points.

        `scalars` are numbers or arrays (size,); `arrays`, the weights and data of families, (count,) or (size, count).
        """
        return ProgramValues(self, size, scalars, arrays)

    def function(self, expression: sp.Expr) -> tuple[tuple[sp.Symbol, ...], Callable[..., list[Any]]]:
        """The symbols of an expression and a function of their values."""
        if expression not in self._functions:
            symbols = tuple(sorted(expression.free_symbols, key=lambda s: str(s.name)))
            self._functions[expression] = symbols, as_numpy(symbols, [expression])
        return self._functions[expression]


class ProgramValues:
    """The values of definitions, sums and vectors at a number of points, computed when asked for."""

    def __init__(
        self, program: NumericProgram, size: int, scalars: Mapping[sp.Symbol, Any], arrays: Mapping[sp.Symbol, Array]
    ) -> None:
        self._program = program
        self._size = size
        self._arrays = arrays
        self._known: dict[sp.Symbol, Array] = {s: np.broadcast_to(v, (size,)) for s, v in scalars.items()}

    def scalar(self, expression: sp.Expr) -> Array:
        """A scalar expression at each point, (size,)."""
        symbols, function = self._program.function(expression)
        (value,) = function(*(self._resolve(s) for s in symbols))
        return np.broadcast_to(np.asarray(value, dtype=np.float64), (self._size,))

    def vector(self, vector: Vector, count: int) -> Array:
        """A vector over the features of a family at each point, (size, count)."""
        total = np.zeros((self._size, count))
        for term in vector:
            total += self.scalar(term.coefficient)[:, None] * self._body(term.body, count)
        return total

    def _resolve(self, symbol: sp.Symbol) -> Array:
        if symbol not in self._known:
            sums = self._program.calculus.sums
            if symbol in sums:
                count = self._arrays[sums[symbol].point.family.weights[0].symbol].shape[-1]
                self._known[symbol] = self._body(sums[symbol].body, count).sum(axis=1)
            else:
                self._known[symbol] = self.scalar(self._program.calculus.definitions[symbol])
        return self._known[symbol]

    def _body(self, body: sp.Expr, count: int) -> Array:
        symbols, function = self._program.function(body)
        (value,) = function(*(self._arrays[s] if s in self._arrays else self._resolve(s)[:, None] for s in symbols))
        return np.broadcast_to(np.asarray(value, dtype=np.float64), (self._size, count))
