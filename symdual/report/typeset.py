"""Equations as boxes of typeset mathematics: broken at the terms, folded when long, as plain text when too large."""

# ruff: noqa: RUF001  (the page's text is typography: Greek letters, true minus signs)

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp
from markupsafe import Markup

from symdual.derive.derivation import Derivation
from symdual.derive.display import LARGEST, Abbreviations, Equation, letters, one_line
from symdual.report.breaking import Breaker
from symdual.report.family_values import FamilyValues
from symdual.report.html import element, folded, formula, join
from symdual.report.mathml import (
    Typesetter,
    brackets,
    fraction,
    math,
    operator,
    row,
)
from symdual.report.names import identifier

#: Operations beyond which an expression is not typeset; only its size is shown.
TOO_LARGE = 400
#: Operations beyond which an expression is folded away until it is asked for.
LONG = 110


class EquationSetter:
    """Sets the equations of one model."""

    def __init__(self, derivation: Derivation, typesetter: Typesetter) -> None:
        self._values = FamilyValues(derivation)
        self._typesetter = typesetter
        self._breaker = Breaker(typesetter.names)
        self._briefs: dict[tuple[str, str, tuple[str, ...]], str] = {}
        self._derivation = derivation

    def abbreviate(self, equations: Sequence[Equation]) -> Markup:
        """Give the parts of equations that are too large names; returns what the names stand for.

        From then on these equations are set as text in terms of the names.
        """
        lines = []
        for letter in letters(self._derivation):
            large = [e for e in equations if e.block.startswith(letter) and self._is_too_large(e)]
            names, briefs = Abbreviations(self._derivation, letter).of([e.brief for e in large])
            self._briefs |= {_key(e): one_line(brief) for e, brief in zip(large, briefs, strict=True)}
            lines += [f"{name.name} = {one_line(meaning)}" for name, meaning in names.items()]
        text = "The names in derivatives that are too large to typeset"
        return folded(text, _text("\n".join(lines))) if lines else Markup("")

    def _is_too_large(self, equation: Equation) -> bool:
        return equation.right is None or int(sp.count_ops(self._values.named(equation.right))) > TOO_LARGE

    def group(self, equations: Sequence[Equation]) -> Markup:
        """Equations one after another; short ones share a line."""
        return element("div", *(self.equation(e) for e in equations), class_="formulas flowing")

    def equation(self, equation: Equation) -> Markup:
        """An equation of the derivation."""
        left = self._left(equation)
        if _key(equation) in self._briefs:
            size = f"{equation.operations or f'more than {LARGEST}'} operations when written out"
            summary = join([math(left), f" is too large to typeset: {size}; show it with names for its parts"])
            return folded(summary, _text(self._briefs[_key(equation)]))
        if equation.right is None:
            return self.too_large(left, equation.operations)
        taken = int(any(variable.endswith("[i]") for variable in equation.variables))
        return self.assignment(left, self._values.named(equation.right), taken)

    def assignment(
        self,
        left: Markup,
        right: sp.Expr,
        taken: int = 0,
        first: sp.Expr | None = None,
        ending: Markup | None = None,
    ) -> Markup:
        """`left = right`, beginning with the term `first` if it is one; `ending` is a last term, set already."""
        operations = int(sp.count_ops(right))
        if operations > TOO_LARGE:
            return self.too_large(left, operations)
        box = formula(self._breaker.equation(left, readable(right), taken, first, ending))
        if operations > LONG:
            return folded(join([math(left), f" has {operations} operations when written out: show it"]), box)
        return box

    def too_large(self, left: Markup, operations: int) -> Markup:
        """What stands in place of an expression that nobody could read."""
        size = f"{operations} operations" if operations else f"more than {LARGEST} operations"
        text = element("span", f" is too large to typeset: {size} when written out.", class_="note")
        return formula(join([math(left), text]), class_="size")

    def _left(self, equation: Equation) -> Markup:
        variables = [self._variable(v) for v in equation.variables]
        if "pair" in equation.block:
            letter = identifier(
                "\N{GREEK SMALL LETTER PHI}" if "left" in equation.block else "\N{GREEK SMALL LETTER RHO}"
            )
            vector = element("msub", letter, element("mi", equation.function, mathvariant="normal"))
            return row(vector, brackets(row(*variables), "[", "]"))
        d = element("mi", "∂")
        if len(variables) == 1:
            return fraction(row(d, _SPACE, self._function(equation.function)), row(d, _SPACE, variables[0]))
        squared = element("msup", d, element("mn", "2"))
        above = row(squared, _SPACE, self._function(equation.function))
        if equation.variables[0] == equation.variables[1]:
            return fraction(above, row(d, _SPACE, self._variable(equation.variables[0], element("mn", "2"))))
        return fraction(above, row(d, _SPACE, variables[0], _WORD_SPACE, d, _SPACE, variables[1]))

    def _variable(self, name: str, power: Markup | None = None) -> Markup:
        if name.endswith("[i]"):
            return self._typesetter.name(name.removesuffix("[i]"), self._typesetter.index, power=power)
        return self._typesetter.name(name, power=power)

    def _function(self, name: str) -> Markup:
        if name.startswith("lam'"):
            return contracted(name.removeprefix("lam'"))
        return self.next_value(name[:-1]) if name.endswith("'") else self._typesetter.name(name)

    def next_value(self, name: str) -> Markup:
        """A state one step later, marked by a plus."""
        return self._typesetter.name(name, power=operator("+"))


def _key(equation: Equation) -> tuple[str, str, tuple[str, ...]]:
    return equation.block, equation.function, equation.variables


def _text(content: str) -> Markup:
    return element("pre", element("code", content), class_="code", tabindex=0)


def contracted(function: str) -> Markup:
    """The contraction of a function with the costate."""
    costate = element("msup", identifier("\N{GREEK SMALL LETTER LAMDA}"), operator("⊤"))
    return row(costate, _SPACE, identifier(function))


def readable(expression: sp.Expr) -> sp.Expr:
    """The same expression with common numbers and factors taken out, also out of sums over the generic index."""
    factored = sp.factor_terms(expression)
    if factored.is_Mul and factored.args[0] == -1 and len(factored.args) == 2 and factored.args[1].is_Add:
        factored = sp.Add(*(-term for term in factored.args[1].args))
    return factored.replace(lambda e: e.is_Mul, _merged)


def _merged(product: sp.Mul) -> sp.Expr:
    """Write (a - b)(b - a) as -(a - b)^2."""
    for factor in product.args:
        if factor.is_Add and -factor in product.args:
            kept = -factor if factor.could_extract_minus_sign() else factor
            rest = [f for f in product.args if f not in (factor, -factor)]
            return sp.Mul(-1, kept**2, *rest)
    return product


_SPACE = Markup('<mspace width="0.1em"></mspace>')
_WORD_SPACE = Markup('<mspace width="0.28em"></mspace>')
