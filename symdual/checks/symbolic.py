"""The derived expressions evaluated with 50 digits: what the generated kernels ought to compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import mpmath
import sympy as sp

from symdual.checks.exact import Number, as_function
from symdual.derive.calculus import Calculus, Vector
from symdual.derive.derivation import Derivation


class SymbolicValues:
    """Evaluates definitions, sums and vectors of a `Calculus` at one set of numbers."""

    def __init__(self, derivation: Derivation, calculus: Calculus) -> None:
        self._calculus = calculus
        self._functions: dict[sp.Expr, tuple[tuple[sp.Symbol, ...], Callable[..., Number]]] = {}
        self._data: dict[sp.Symbol, list[Number]] = {}
        self._constants: dict[sp.Symbol, Number] = {}
        model = derivation.model
        for family in model.families:
            self._data |= {array.symbol: [mpmath.mpf(float(v)) for v in array.values] for array in family.data}
        self._constants = {sp.Symbol(c.name, real=True): mpmath.mpf(c.value) for c in model.constants}
        if model.step is not None:
            self._constants[sp.Symbol("step_length", real=True)] = mpmath.mpf(model.step)
        self._values: dict[sp.Symbol, Number] = {}
        self._arrays: dict[sp.Symbol, list[Number]] = {}

    def at(self, scalars: Mapping[sp.Symbol, Number], weights: Mapping[sp.Symbol, list[Number]]) -> None:
        """Set the numbers at which everything is evaluated from now on."""
        self._values = dict(scalars) | self._constants
        self._arrays = dict(weights) | self._data

    def scalar(self, expression: sp.Expr) -> Number:
        """The value of a scalar expression."""
        symbols, function = self._compiled(expression)
        return mpmath.mpf(function(*(self._resolve(s) for s in symbols)))

    def vector(self, vector: Vector, index: int) -> Number:
        """The value of one entry of a vector over the features."""
        return mpmath.fsum(self.scalar(t.coefficient) * self._term(t.body, index) for t in vector)

    def _term(self, body: sp.Expr, index: int) -> Number:
        symbols, function = self._compiled(body)
        return function(*(self._arrays[s][index] if s in self._arrays else self._resolve(s) for s in symbols))

    def _resolve(self, symbol: sp.Symbol) -> Number:
        if symbol not in self._values:
            if symbol in self._calculus.sums:
                total = self._calculus.sums[symbol]
                self._values[symbol] = mpmath.fsum(self._term(total.body, i) for i in range(total.point.family.count))
            else:
                self._values[symbol] = self.scalar(self._calculus.definitions[symbol])
        return self._values[symbol]

    def _compiled(self, expression: sp.Expr) -> tuple[tuple[sp.Symbol, ...], Callable[..., Number]]:
        if expression not in self._functions:
            symbols = tuple(sorted(expression.free_symbols, key=lambda s: str(s.name)))
            self._functions[expression] = (symbols, as_function(symbols, expression))
        return self._functions[expression]
