"""The derived expressions evaluated with 50 digits: what the kernels ought to compute, and how well they can."""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from symdual.derive.calculus import Calculus, Vector
from symdual.derive.derivation import Derivation
from symdual.many_digits.arithmetic import Arithmetic, Bounded, known, plus, times


class SymbolicValues:
    """Evaluates definitions, sums and vectors of a `Calculus` at one set of numbers."""

    def __init__(self, derivation: Derivation, calculus: Calculus) -> None:
        self._calculus = calculus
        self._compiled: dict[sp.Expr, tuple[tuple[sp.Symbol, ...], Arithmetic]] = {}
        model = derivation.model
        self._data = {a.symbol: [known(v) for v in a.values] for family in model.families for a in family.data}
        self._constants = {sp.Symbol(c.name, real=True): known(c.value) for c in model.constants}
        if model.step is not None:
            self._constants[sp.Symbol("step_length", real=True)] = known(model.step)
        self._values: dict[sp.Symbol, Bounded] = {}
        self._arrays: dict[sp.Symbol, list[Bounded]] = {}

    def at(self, scalars: Mapping[sp.Symbol, Bounded], weights: Mapping[sp.Symbol, list[Bounded]]) -> None:
        """Set the numbers at which everything is evaluated from now on."""
        self._values = dict(scalars) | self._constants
        self._arrays = dict(weights) | self._data

    def scalar(self, expression: sp.Expr) -> Bounded:
        """The value of a scalar expression."""
        symbols, arithmetic = self._arithmetic(expression)
        return arithmetic.bounded([self._resolve(s) for s in symbols])[0]

    def vector(self, vector: Vector, index: int) -> Bounded:
        """The value of one entry of a vector over the features; a coefficient that is zero takes its part away."""
        coefficients = [self.scalar(t.coefficient) for t in vector]
        present = [(c, t.body) for c, t in zip(coefficients, vector, strict=True) if c.value != 0]
        return plus([times(coefficient, self._term(body, index)) for coefficient, body in present])

    def _term(self, body: sp.Expr, index: int) -> Bounded:
        symbols, arithmetic = self._arithmetic(body)
        places = [self._arrays[s][index] if s in self._arrays else self._resolve(s) for s in symbols]
        return arithmetic.bounded(places)[0]

    def _resolve(self, symbol: sp.Symbol) -> Bounded:
        if symbol not in self._values:
            if symbol in self._calculus.sums:
                total = self._calculus.sums[symbol]
                self._values[symbol] = plus([self._term(total.body, i) for i in range(total.point.family.count)])
            else:
                self._values[symbol] = self.scalar(self._calculus.definitions[symbol])
        return self._values[symbol]

    def _arithmetic(self, expression: sp.Expr) -> tuple[tuple[sp.Symbol, ...], Arithmetic]:
        if expression not in self._compiled:
            symbols = tuple(sorted(expression.free_symbols, key=lambda s: str(s.name)))
            self._compiled[expression] = (symbols, Arithmetic(symbols, [expression]))
        return self._compiled[expression]
