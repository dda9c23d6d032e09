"""SymPy expressions as MathML.

SymPy's own MathML printer puts the names of symbols into its output without escaping them, knows nothing of sums with a
generic index inside each other, and prints functions of this project by their Python names; so this printer stands on
its own. All text passes through `element`, which escapes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from xml.etree import ElementTree

import sympy as sp
from markupsafe import Markup
from sympy.printing.precedence import PRECEDENCE, precedence_traditional
from sympy.printing.printer import Printer

from symdual.report.html import element, join
from symdual.report.names import Names, identifier
from symdual.spec.symbols import FeatureSum, monomial

MINUS = "\N{MINUS SIGN}"
TIMES = element("mo", "\u2062", lspace="0.09em", rspace="0.09em")
_DOT = element("mo", "·")
_APPLY = element("mo", "\u2061")
_FUNCTIONS = {
    "logistic": "\N{GREEK SMALL LETTER SIGMA}",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arsinh",
    "acosh": "arcosh",
    "atanh": "artanh",
    "sign": "sgn",
    "Max": "max",
    "Min": "min",
}
_OWN_FORM = (sp.exp, sp.Abs, sp.Heaviside, monomial)
_TALL = re.compile("<(mfrac|munderover|msqrt|mtable|msup|msubsup)")
_TIGHT = "()[]|,~{/·"
_RELATIONS = {"==": "=", "!=": "≠", "<=": "≤", ">=": "≥", "<": "<", ">": ">"}


def math(content: Markup, class_: str | None = None) -> Markup:
    """A `<math>` element with the full size of displayed formulas, set where the text stands."""
    return element("math", content, displaystyle="true", class_=class_)


def row(*parts: Markup) -> Markup:
    """Parts beside each other."""
    return parts[0] if len(parts) == 1 else element("mrow", *parts)


def operator(symbol: str) -> Markup:
    """An operator such as = or +."""
    return element("mo", symbol)


def fraction(above: Markup, below: Markup) -> Markup:
    """A fraction."""
    return element("mfrac", above, below)


def rate(name: Markup) -> Markup:
    """The derivative of a name by time, as a fraction: a dot is lost over an i."""
    return fraction(row(identifier("d"), name), row(identifier("d"), identifier("t")))


def brackets(content: Markup, left: str = "(", right: str = ")") -> Markup:
    """Content between brackets, which grow with it if it is tall."""
    stretchy = None if _TALL.search(content) else "false"
    return row(element("mo", left, stretchy=stretchy), content, element("mo", right, stretchy=stretchy))


def number(value: float) -> Markup:
    """A number with the digits that matter: 0.4, 10 to the power of -7."""
    text = f"{abs(value):.15g}"
    mantissa, _, exponent = text.partition("e")
    shown = element("mn", mantissa)
    if exponent:
        power = element("msup", element("mn", "10"), _integer(int(exponent)))
        shown = power if mantissa == "1" else row(shown, _DOT, power)
    return row(operator(MINUS), shown) if value < 0 else shown


def _integer(value: int) -> Markup:
    digits = element("mn", str(abs(value)))
    return row(operator(MINUS), digits) if value < 0 else digits


@cache
def width(mathml: Markup) -> float:
    """Roughly, how wide a formula is, in characters of the text."""
    return _width(ElementTree.fromstring(mathml))


def _width(node: ElementTree.Element) -> float:
    parts = [_width(child) for child in node]
    if node.tag == "mfrac":
        return max(parts) + 0.5
    if node.tag in ("msub", "msup", "msubsup"):
        return parts[0] + 0.7 * max(parts[1:])
    if node.tag == "munderover":
        return max(parts[0], 0.7 * max(parts[1:])) + 1
    if node.tag == "mo":
        symbol = node.text or ""
        return {"\u2061": 0.0, "\u2062": 0.2}.get(symbol, 1.0 if symbol in _TIGHT else 2.2)
    return len(node.text or "") + sum(parts)


class Typesetter(Printer):
    """Sets expressions of one model.

    The index of a sum is the first letter that is free: with `taken` = 1 the letter i is the generic index of the entry
    that is shown, and sums run over j; sums inside sums take the letters after that.
    """

    printmethod = None

    def __init__(self, names: Names) -> None:
        super().__init__()
        self.names = names
        self._depth = -1
        self._known: dict[tuple[sp.Basic, int], Markup] = {}

    def typeset(self, expression: sp.Basic, taken: int = 0) -> Markup:
        """The MathML of an expression."""
        self._depth = taken - 1
        return self._set(expression)

    def name(self, name: str, *indices: str, power: Markup | None = None) -> Markup:
        """The MathML of a name."""
        return self.names.typeset(name, *indices, power=power)

    @property
    def index(self) -> str:
        """The letter of the generic index."""
        return self.names.letters[0]

    def _set(self, expression: sp.Basic) -> Markup:
        """The MathML at the present depth of sums; every part is set once."""
        key = (expression, self._depth)
        if key not in self._known:
            self._known[key] = Markup(self._print(expression))
        return self._known[key]

    def emptyPrinter(self, expr: object) -> Markup:
        """Text as it is, for what has no better form."""
        return element("mtext", str(expr))

    # ------------------------------------------------------------------ atoms

    def _print_Symbol(self, symbol: sp.Symbol) -> Markup:
        return self._atom(symbol)

    def _atom(self, atom: sp.Expr, power: Markup | None = None) -> Markup:
        """A symbol or an element of an array, perhaps raised to a power."""
        if isinstance(atom, sp.Indexed):
            letter = self.names.letters[max(self._depth, 0)]
            return self.names.typeset(str(atom.base.label), letter, power=power)
        return self.names.typeset(str(atom.name), power=power)

    def _print_Integer(self, value: sp.Integer) -> Markup:
        return _integer(int(value))

    def _print_Rational(self, value: sp.Rational) -> Markup:
        shown = fraction(_integer(abs(int(value.p))), _integer(int(value.q)))
        return row(operator(MINUS), shown) if value < 0 else shown

    def _print_Float(self, value: sp.Float) -> Markup:
        return number(float(value))

    def _print_Pi(self, _: sp.Expr) -> Markup:
        return identifier("π")

    def _print_Exp1(self, _: sp.Expr) -> Markup:
        return identifier("e")

    def _print_Indexed(self, element_of: sp.Indexed) -> Markup:
        return self._atom(element_of)

    # ------------------------------------------------------------------ arithmetic

    def _print_Add(self, expression: sp.Add) -> Markup:
        parts: list[Markup] = []
        for position, (sign, term) in enumerate(signed_terms(expression)):
            if position or sign == MINUS:
                parts.append(operator(sign))
            parts.append(self._parenthesised(term, PRECEDENCE["Mul"]))
        return row(*parts)

    def _print_Mul(self, expression: sp.Mul) -> Markup:
        if is_negative(expression):
            return row(operator(MINUS), self._parenthesised(-expression, PRECEDENCE["Mul"]))
        head, below, tail = arranged(expression)
        if not below:
            return self._product(head + tail)
        quotient = self._quotient(head, below)
        return row(quotient, TIMES, self._product(tail, alone=False)) if tail else quotient

    def _quotient(self, above: Sequence[sp.Expr], below: Sequence[sp.Expr]) -> Markup:
        return fraction(self._product(above) if above else element("mn", "1"), self._product(below))

    def _product(self, factors: Sequence[sp.Expr], alone: bool = True) -> Markup:
        """Factors beside each other; `alone` means that nothing else stands on their line."""
        shown: list[Markup] = []
        for position, factor in enumerate(factors):
            if position:
                numeric = factor.is_Number or (factor.is_Pow and factor.base.is_Number)
                shown.append(_DOT if numeric else TIMES)
            last = position == len(factors) - 1
            if isinstance(factor, sp.Sum) and not last:
                shown.append(brackets(self._set(factor)))
            elif len(factors) == 1 and alone:
                shown.append(self._set(factor))
            else:
                shown.append(self._parenthesised(factor, PRECEDENCE["Mul"]))
        return row(*shown)

    def _parenthesised(self, expression: sp.Expr, level: int) -> Markup:
        content = self._set(expression)
        return brackets(content) if precedence_traditional(expression) < level else content

    def _print_Pow(self, expression: sp.Pow) -> Markup:
        base, exponent = expression.base, expression.exp
        if exponent.is_Rational and exponent < 0:
            return fraction(element("mn", "1"), self._set(sp.Pow(base, -exponent, evaluate=False)))
        if exponent == 1:
            return self._set(base)
        if exponent == sp.Rational(1, 2):
            return element("msqrt", self._set(base))
        if exponent.is_Integer and isinstance(base, sp.Function) and not isinstance(base, _OWN_FORM):
            return self._call(base, power=self._set(exponent))
        if exponent.is_Rational and not exponent.is_Integer:
            raised = row(_integer(int(exponent.p)), operator("/"), _integer(int(exponent.q)))
        else:
            raised = self._set(exponent)
        return self._power(base, raised)

    def _power(self, base: sp.Expr, raised: Markup) -> Markup:
        if base.is_Symbol or isinstance(base, sp.Indexed):
            return self._atom(base, raised)
        content = self._set(base)
        plain = (
            base.is_Symbol
            or isinstance(base, sp.Indexed)
            or (base.is_nonnegative and (base.is_Integer or base.is_Float))
        )
        return element("msup", content if plain else brackets(content), raised)

    # ------------------------------------------------------------------ functions

    def _call(self, function: sp.Expr, power: Markup | None = None) -> Markup:
        name = type(function).__name__
        head = identifier(_FUNCTIONS.get(name, name))
        if power is not None:
            head = element("msup", head, power)
        arguments = join((self._set(a) for a in function.args), operator(","))
        return row(head, _APPLY, brackets(arguments))

    def _print_Function(self, function: sp.Function) -> Markup:
        return self._call(function)

    def _print_Heaviside(self, function: sp.Heaviside) -> Markup:
        # its second argument only says what happens at the jump
        return row(identifier("Heaviside"), _APPLY, brackets(self._set(function.args[0])))

    def _print_Max(self, function: sp.Max) -> Markup:
        return self._call(function)

    def _print_Min(self, function: sp.Min) -> Markup:
        return self._call(function)

    def _print_Abs(self, function: sp.Abs) -> Markup:
        return brackets(self._set(function.args[0]), "|", "|")

    def _print_exp(self, function: sp.exp) -> Markup:
        if _operations(function.args[0]) > 3:
            spread = sp.expand_mul(function.args[0], deep=False)
            return row(identifier("exp"), _APPLY, brackets(self._set(spread)))
        return element("msup", identifier("e"), self._set(function.args[0]))

    def _print_monomial(self, function: sp.Function) -> Markup:
        base, exponent = function.args
        return self._power(base, self._set(exponent))

    def _print_Piecewise(self, expression: sp.Piecewise) -> Markup:
        rows = [
            element(
                "mtr",
                element("mtd", self._set(value)),
                element("mtd", element("mtext", "otherwise") if case == sp.true else self._if(case)),
            )
            for value, case in expression.args
        ]
        return row(element("mo", "{", stretchy="true", fence="true"), element("mtable", *rows))

    def _if(self, case: sp.Basic) -> Markup:
        return row(element("mtext", "if\u00a0"), self._set(case))

    def _print_Relational(self, relation: sp.Rel) -> Markup:
        return row(self._set(relation.lhs), operator(_RELATIONS[relation.rel_op]), self._set(relation.rhs))

    def _print_And(self, both: sp.And) -> Markup:
        return join((self._set(a) for a in both.args), element("mtext", " and "))

    def _print_Or(self, either: sp.Or) -> Markup:
        return join((self._set(a) for a in either.args), element("mtext", " or "))

    # ------------------------------------------------------------------ sums and families

    @contextmanager
    def _deeper(self) -> Iterator[str]:
        self._depth += 1
        yield self.names.letters[self._depth]
        self._depth -= 1

    def _print_Sum(self, total: sp.Sum) -> Markup:
        with self._deeper() as letter:
            return row(self._sum_sign(total, letter), self._parenthesised(total.function, PRECEDENCE["Mul"]))

    def _sum_sign(self, total: sp.Sum, letter: str) -> Markup:
        (_, first, last) = total.limits[0]
        below = row(identifier(letter), operator("="), self._set(first))
        # the size comes from the style, so that it does not depend on the reader's fonts
        sign = element("mo", "∑", movablelimits="false", largeop="false", class_="sum")
        return element("munderover", sign, below, self._set(last))

    def _print_FeatureSum(self, value: FeatureSum) -> Markup:
        several = len(value.family.summands) > 1
        name = self.names.typeset(value.family.name, *([str(value.output)] if several else []))
        return row(name, _APPLY, brackets(join((self._set(p) for p in value.points), operator(","))))


def is_negative(term: sp.Expr) -> bool:
    """Whether a term is shown with a minus sign before it."""
    return bool(term.as_coeff_Mul()[0].is_negative)


def signed_terms(expression: sp.Expr, wanted: sp.Expr | None = None) -> list[tuple[str, sp.Expr]]:
    """The terms of a sum without their signs, and the signs, in the order in which they are shown, `wanted` first."""
    listed = list(expression.as_ordered_terms()) if expression.is_Add else [expression]
    positive = [t for t in listed if not is_negative(t)]
    # a sum first would seem to range over all that follows it
    first = next((t for t in positive if not _ends_in_sum(t)), positive[0] if positive else listed[0])
    first = wanted if wanted in listed else first
    ordered = sorted([first, *(t for t in listed if t is not first)], key=_ends_in_sum)
    return [(MINUS, -term) if is_negative(term) else ("+", term) for term in ordered]


def arranged(product: sp.Mul) -> tuple[list[sp.Expr], list[sp.Expr], list[sp.Expr]]:
    """The factors above the line of a fraction, those below it, and those that are set behind it."""
    above, below = _split_fraction(product)
    head = [f for f in above if not _stands_behind(f)]
    tail = [f for f in above if _stands_behind(f)]
    if below and not head and len(tail) == 1 and isinstance(tail[0], sp.exp) and _operations(tail[0]) < 6:
        head, tail = tail, []
    return head, below, tail


@cache
def _operations(expression: sp.Expr) -> int:
    return int(sp.count_ops(expression))


def _stands_behind(factor: sp.Expr) -> bool:
    return isinstance(factor, (sp.Sum, sp.exp, FeatureSum)) or bool(factor.is_Add and _operations(factor) > 6)


def _ends_in_sum(term: sp.Expr) -> bool:
    return bool(isinstance(term, sp.Sum) or (term.is_Mul and any(isinstance(a, sp.Sum) for a in term.args)))


def _split_fraction(product: sp.Mul) -> tuple[list[sp.Expr], list[sp.Expr]]:
    """The factors above and below the line; negative whole or fractional powers go below, exponentials stay above."""
    above: list[sp.Expr] = []
    below: list[sp.Expr] = []
    for factor in product.as_ordered_factors():
        if factor.is_Rational and not factor.is_Integer:
            below.append(sp.Integer(factor.q))
            if factor.p != 1:
                above.append(sp.Integer(factor.p))
        elif factor.is_Pow and factor.exp.is_Rational and factor.exp < 0:
            below.append(sp.Pow(factor.base, -factor.exp))
        else:
            above.append(factor)
    above.sort(key=_rank)
    below.sort(key=_rank)
    return above, below


def _rank(factor: sp.Expr) -> int:
    """Numbers, then symbols, then indexed ones, then brackets, then functions, then sums."""
    base = factor.base if factor.is_Pow and not isinstance(factor, sp.exp) else factor
    if base.is_number:
        return 0
    if base.is_Symbol:
        return 1
    if isinstance(base, sp.Indexed):
        return 2
    if base.is_Add:
        return 3
    return 5 if isinstance(base, (sp.Sum, FeatureSum)) else 4
