"""The derivation as equations for people: definitions put back, sums written with a generic index i."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import sympy as sp
from sympy.printing.str import StrPrinter

from symdual.derive.calculus import Calculus, Hessian, Vector
from symdual.derive.derivation import Derivation, WeightBlock, theta_row
from symdual.derive.structure import hessian_diagonals
from symdual.spec.symbols import power

INDEX = sp.Symbol("i", integer=True)
LARGEST = 1000  #: operations of an expression beyond which it is not shown


@dataclass(frozen=True)
class Equation:
    """`symbol by variables = right`; `right` is None when the expression is too large to be read.

    `brief` is the same with the names of subexpressions left in; `Abbreviations` says what they stand for.
    """

    block: str
    function: str
    variables: tuple[str, ...]
    right: sp.Expr | None
    operations: int
    brief: sp.Expr


def equations(derivation: Derivation) -> list[Equation]:
    """Every entry of the Jacobians and of the contracted Hessians that is not identically zero."""
    f, h = derivation.dynamics, derivation.observation
    motion = [f"{s.name}'" for s in derivation.states]
    measured = [f"y{i}" for i in range(len(h.program.outputs))]
    shown = _first(derivation, f, "f", motion, derivation.inputs)
    shown += _first(derivation, h, "h", measured, ())
    shown += _second(derivation, f, derivation.dynamics_hessian, "f", derivation.inputs)
    shown += _second(derivation, h, derivation.observation_hessian, "h", ())
    for letter, (calculus, inputs) in _costs(derivation).items():
        names = [f"{letter}{i}" for i in range(len(calculus.program.outputs))]
        shown += _first(derivation, calculus, letter, names, inputs)
        shown += _second(derivation, calculus, calculus.hessian, letter, inputs)
    return shown


def _costs(derivation: Derivation) -> dict[str, tuple[Calculus, tuple[sp.Symbol, ...]]]:
    """The terms of a cost: those of a step have the letter l, those of the end the letter e; constraints are g."""
    if derivation.objective is None:
        return {}
    own = derivation.objective
    found = {"l": (own.stage, derivation.inputs), "e": (own.final, ()), "g": (own.constraints, derivation.inputs)}
    return {letter: part for letter, part in found.items() if part[0].program.outputs}


def letters(derivation: Derivation) -> str:
    """The letters of all functions that are differentiated."""
    return "fh" + "".join(_costs(derivation))


def _first(
    derivation: Derivation, calculus: Calculus, letter: str, names: list[str], inputs: tuple[sp.Symbol, ...]
) -> list[Equation]:
    display = Display(derivation, calculus)
    found = []
    for row, name in enumerate(names):
        for block, variables in ((f"{letter}_x", derivation.states), (f"{letter}_u", inputs)):
            found += [
                display.equation(block, name, (v.name,), calculus.jacobian(row, v))
                for v in variables
                if calculus.jacobian(row, v) != 0
            ]
        scalars, vectors = theta_row(derivation, calculus, row)
        block = f"{letter}_theta"
        found += [display.equation(block, name, (derivation.scalars[i].name,), e) for i, e in scalars.items()]
        for weight in derivation.weights:
            if weight.start in vectors:
                found.append(display.vector(block, name, (_element(weight),), vectors[weight.start]))
    return found


def _second(
    derivation: Derivation, calculus: Calculus, hessian: Hessian, letter: str, inputs: tuple[sp.Symbol, ...]
) -> list[Equation]:
    display = Display(derivation, calculus)
    name = f"lam'{letter}"
    rows = [(f"{letter}_zz", v) for v in derivation.core] + [(f"{letter}_zu", v) for v in inputs]
    variables = [v for _, v in rows]
    found = []
    for position, (block, one) in enumerate(rows):
        for other in variables[position:]:
            kind = (
                f"{letter}_uu" if one in inputs and other in inputs else (f"{letter}_zu" if other in inputs else block)
            )
            if hessian.entry(one, other) != 0:
                found.append(display.equation(kind, name, (one.name, other.name), hessian.entry(one, other)))
        for weight in derivation.weights:
            if vector := hessian.mixed(one, weight.symbol):
                found.append(display.vector(block, name, (one.name, _element(weight)), vector))
    by_start = {len(derivation.states) + b.start: b for b in derivation.weights}
    for row, column, _, _ in hessian_diagonals(derivation, hessian):
        one, other = by_start[row], by_start[column]
        vector = hessian.diagonal(one.symbol, other.symbol)
        found.append(display.vector(f"{letter}_zz, diagonal", name, (_element(one), _element(other)), vector))
    for pair in hessian.pairs:
        for weight in derivation.weights:
            for side, vectors in (("left", pair.left), ("right", pair.right)):
                if vector := vectors.get(weight.symbol, ()):
                    value = pair.evaluation.symbol.name[1:]
                    found.append(display.vector(f"{letter}_zz, pair {side}", value, (_element(weight),), vector))
    return found


def _element(weight: WeightBlock) -> str:
    return f"{weight.symbol.name}[i]"


class Display:
    """Writes the expressions of one `Calculus` out in full."""

    def __init__(self, derivation: Derivation, calculus: Calculus) -> None:
        self._calculus = calculus
        arrays = [b.symbol for b in derivation.weights]
        arrays += [a.symbol for family in derivation.model.families for a in family.data]
        self._elements = {s: sp.Indexed(sp.IndexedBase(s.name), INDEX) for s in arrays}
        self._known: dict[sp.Symbol, sp.Expr] = {}
        self._sizes: dict[sp.Symbol, int] = {}
        names = [s.name for s in derivation.states]
        self._costate = {
            s: sp.Symbol(f"lam_{names[i] if calculus is derivation.dynamics else i}", real=True)
            for i, s in enumerate(calculus.costate)
        }

    def equation(self, block: str, function: str, variables: tuple[str, ...], expression: sp.Expr) -> Equation:
        """An equation for a scalar entry."""
        right = self.written_out(expression)
        return self._finished(block, function, variables, right, self.brief(expression))

    def vector(self, block: str, function: str, variables: tuple[str, ...], vector: Vector) -> Equation:
        """An equation for the entry of a generic feature."""
        parts = [(self.written_out(t.coefficient), self.written_out(t.body)) for t in vector]
        products = [c * b for c, b in parts if c is not None and b is not None]
        right = sp.Add(*products).xreplace(self._elements) if len(products) == len(parts) else None
        brief = self.brief(sp.Add(*(t.coefficient * t.body for t in vector)))
        return self._finished(block, function, variables, right, brief)

    @staticmethod
    def _finished(
        block: str, function: str, variables: tuple[str, ...], right: sp.Expr | None, brief: sp.Expr
    ) -> Equation:
        operations = 0 if right is None else int(sp.count_ops(right))
        return Equation(block, function, variables, right if operations <= LARGEST else None, operations, brief)

    def brief(self, expression: sp.Expr) -> sp.Expr:
        """The expression as it was derived, with the user's names for costates and elements of arrays."""
        return expression.xreplace(self._costate).xreplace(self._elements)

    def written_out(self, expression: sp.Expr) -> sp.Expr | None:
        """Replace definitions by what they stand for and sums by `Sum` over the generic index; None if it is large."""
        return self._full(expression) if self._size(expression) <= LARGEST else None

    def _size(self, expression: sp.Expr) -> int:
        """Operations of an expression when it is written out, term by term: known without writing it out."""
        names = Counter(node for node in sp.preorder_traversal(expression) if node.is_Symbol)
        return int(sp.count_ops(expression)) + sum(count * self._size_of(name) for name, count in names.items())

    def _size_of(self, symbol: sp.Symbol) -> int:
        if symbol not in self._sizes:
            meaning = self._meaning(symbol)
            self._sizes[symbol] = 0 if meaning is None else self._size(meaning)
        return self._sizes[symbol]

    def _meaning(self, symbol: sp.Symbol) -> sp.Expr | None:
        """What a definition, or an element of a sum, stands for."""
        if symbol in self._calculus.sums:
            return self._calculus.sums[symbol].body
        return self._calculus.definitions.get(symbol)

    def _full(self, expression: sp.Expr) -> sp.Expr:
        rule = {symbol: self._resolve(symbol) for symbol in sorted(expression.free_symbols, key=lambda s: str(s.name))}
        return expression.xreplace(rule).replace(power, lambda *arguments: power(*arguments).formula)

    def _resolve(self, symbol: sp.Symbol) -> sp.Expr:
        meaning = self._meaning(symbol)
        if meaning is None:
            return self._costate.get(symbol, symbol)
        if symbol not in self._known:
            full = self._full(meaning)
            if symbol in self._calculus.sums:
                constraints = (INDEX, 1, self._calculus.sums[symbol].point.family.count)
                full = sp.Sum(full.xreplace(self._elements), constraints)
            self._known[symbol] = full
        return self._known[symbol]


class Abbreviations:
    """What the names of subexpressions in brief equations stand for, of one of the `letters`."""

    def __init__(self, derivation: Derivation, letter: str) -> None:
        plain = {"f": derivation.dynamics, "h": derivation.observation}
        self._calculus = plain[letter] if letter in plain else _costs(derivation)[letter][0]
        self._display = Display(derivation, self._calculus)

    def of(self, expressions: Sequence[sp.Expr]) -> tuple[dict[sp.Symbol, sp.Expr], list[sp.Expr]]:
        """Every name that the expressions need, those that others need first, and the expressions in their terms.

        Besides the names of the derivation there are new ones for what several scalar expressions have in common.
        """
        scalar = [i for i, expression in enumerate(expressions) if not expression.has(sp.Indexed, sp.Sum)]
        taken = [*self._calculus.definitions, *self._calculus.sums]
        new = sp.numbered_symbols("_p", real=True, exclude=taken)
        common, reduced = sp.cse([expressions[i] for i in scalar], symbols=new)
        briefs = list(expressions)
        for i, expression in zip(scalar, reduced, strict=True):
            briefs[i] = expression
        found: dict[sp.Symbol, sp.Expr] = {}
        for expression in (*(meaning for _, meaning in common), *briefs):
            self._collect(expression, found)
        return found | dict(common), briefs

    def _collect(self, expression: sp.Expr, found: dict[sp.Symbol, sp.Expr]) -> None:
        """Depth first with a stack of our own: names may stand on each other's shoulders by the thousand."""
        waiting = [(symbol, False) for symbol in _sorted(expression)]
        while waiting:
            symbol, ready = waiting.pop()
            meaning = self._meaning(symbol)
            if meaning is None or symbol in found:
                continue
            if ready:
                found[symbol] = meaning
            else:
                waiting += [(symbol, True), *((inner, False) for inner in _sorted(meaning))]

    def _meaning(self, symbol: sp.Symbol) -> sp.Expr | None:
        if symbol in self._calculus.definitions:
            return self._display.brief(self._calculus.definitions[symbol])
        if symbol in self._calculus.sums:
            total = self._calculus.sums[symbol]
            return sp.Sum(self._display.brief(total.body), (INDEX, 1, total.point.family.count))
        return None


def _sorted(expression: sp.Expr) -> list[sp.Symbol]:
    return sorted(expression.free_symbols, key=lambda s: str(s), reverse=True)


class _OneLine(StrPrinter):
    """SymPy's own text, with sums written as `sum_i`."""

    def _print_Sum(self, expression: sp.Sum) -> str:
        return f"sum_i({self._print(expression.function)})"


def one_line(expression: sp.Expr) -> str:
    """An expression on one line."""
    return str(_OneLine().doprint(expression))
