"""Puts the names of families back into equations: `loss(temperature)` instead of the sum that it stands for."""

from __future__ import annotations

import sympy as sp

from symdual.derive.derivation import Derivation
from symdual.derive.display import Display
from symdual.spec.symbols import FeatureSum


class FamilyValues:
    """The values of a model's families, g = sum_i s(i), as they occur in its equations."""

    def __init__(self, derivation: Derivation) -> None:
        # innermost first: a family that stands in another's argument has its name when that one is looked for
        self._names: dict[sp.Expr, FeatureSum] = {}
        for calculus in (derivation.dynamics, derivation.observation):
            display = Display(derivation, calculus)
            for evaluation in calculus.evaluations:
                total = display.written_out(evaluation.symbol)
                points = [display.written_out(argument) for argument in evaluation.point.arguments]
                if total is not None and None not in points:
                    named = tuple(self.named(point) for point in points)
                    value = FeatureSum.of(evaluation.point.family, evaluation.output, named)
                    self._names.setdefault(self.named(total), value)

    def named(self, expression: sp.Expr) -> sp.Expr:
        """The expression with every sum that is a family's value under its name."""
        expression = _indexed_once(expression)
        for total, value in self._names.items():
            expression = expression.xreplace({total: value})
        return expression


def _indexed_once(expression: sp.Expr) -> sp.Expr:
    """Elements of arrays that were indexed twice on their way through nested sums, indexed once."""
    return expression.replace(
        lambda e: isinstance(e, sp.Indexed) and isinstance(e.base.label, sp.Indexed), lambda e: e.base.label
    )
