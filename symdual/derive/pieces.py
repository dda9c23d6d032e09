"""Long and deep expressions in pieces: a sum of any length and a nest of any depth become short definitions.

SymPy, Python's parser and compilers go down an expression by calling themselves, and each has its limit. Nothing here
does.

    a_1 + ... + a_1000   =  t_1 + ... + t_25   with   t_1 = a_1 + ... + a_40, ...
    sin(sin(... x))      =  sin(... sin(t_1))  with   t_1 = sin(... sin(x))

A piece of a case is computed where the case holds, and zero elsewhere: t = Piecewise((piece, condition), (0, True)).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import sympy as sp
from sympy.functions.elementary.piecewise import ExprCondPair
from sympy.logic.boolalg import Boolean


class Limits(NamedTuple):
    """How many terms or factors an expression may have, and how deep it may be."""

    terms: int
    depth: int


class Pieces(NamedTuple):
    """An expression, and the pieces that it is made of in an order in which each uses only what stands before it."""

    taken: tuple[tuple[sp.Symbol, sp.Expr], ...]
    rest: sp.Expr


def in_pieces(expression: sp.Expr, limits: Limits, fresh: Callable[[], sp.Symbol]) -> Pieces:
    """Take an expression apart as far as its limits ask for; `fresh` makes the symbols of the pieces."""
    work = _Taking(limits, fresh)
    rest = work.form(expression)
    return Pieces(tuple(work.taken), rest)


def depth(expression: sp.Expr) -> int:
    """How many operations stand within each other."""
    found: dict[sp.Basic, int] = {}
    stack: list[sp.Basic] = [expression]
    while stack:
        part = stack[-1]
        waiting = [argument for argument in part.args if argument not in found]
        stack += waiting
        if not waiting:
            found[stack.pop()] = 1 + max((found[argument] for argument in part.args), default=-1)
    return found[expression]


class _Taking:
    """One expression on its way: the short form of each part, and the depth of that."""

    def __init__(self, limits: Limits, fresh: Callable[[], sp.Symbol]) -> None:
        self._limits, self._fresh = limits, fresh
        self._forms: dict[sp.Basic, tuple[sp.Expr, int]] = {}
        self.taken: list[tuple[sp.Symbol, sp.Expr]] = []

    def form(self, expression: sp.Expr) -> sp.Expr:
        """The short form of an expression."""
        stack: list[sp.Basic] = [expression]
        while stack:
            part = stack[-1]
            waiting = [a for a in part.args if a not in self._forms] if _is_taken_apart(part) else []
            stack += waiting
            if not waiting:
                self._forms[part] = self._settled(stack.pop())
        return self._forms[expression][0]

    def _settled(self, part: sp.Basic) -> tuple[sp.Expr, int]:
        """The short form of a part from those of its arguments."""
        if not _is_taken_apart(part):
            whole = self._with_cases(part) if isinstance(part, sp.Piecewise) else part
            return whole, depth(whole)
        found = [self._shallow(*self._forms[argument]) for argument in part.args]
        arguments, deepest = [form for form, _ in found], max(own for _, own in found)
        most = self._limits.terms
        while isinstance(part, sp.Add | sp.Mul) and len(arguments) > most:
            runs = [arguments[n : n + most] for n in range(0, len(arguments), most)]
            arguments, deepest = [self._named(part.func(*run)) for run in runs], 0
        return _rebuilt(part, arguments), 1 + deepest

    def _shallow(self, form: sp.Expr, own: int) -> tuple[sp.Expr, int]:
        return (self._named(form), 0) if own >= self._limits.depth else (form, own)

    def _named(self, form: sp.Expr) -> sp.Expr:
        if form.is_Atom:
            return form
        symbol = self._fresh()
        self.taken.append((symbol, form))
        return symbol

    def _with_cases(self, part: sp.Piecewise) -> sp.Expr:
        """Cases in short form; what is taken out of one of them is computed where that holds."""
        if part.has(sp.Eq, sp.Ne):  # it fills a hole in the formula of another case
            return part
        values: list[sp.Expr] = []
        for position, (value, condition) in enumerate(part.args):
            inner = in_pieces(value, self._limits, self._fresh)
            before = [(sp.S.Zero, other) for _, other in part.args[:position]]
            for symbol, piece in inner.taken:
                cases = *before, (piece, condition), (sp.S.Zero, sp.true)
                self.taken.append((symbol, sp.Piecewise(*cases, evaluate=False)))
            values.append(inner.rest)
        pairs = [ExprCondPair(v, c) for v, (_, c) in zip(values, part.args, strict=True)]
        return _rebuilt(part, pairs)


def _is_taken_apart(part: sp.Basic) -> bool:
    return bool(part.args) and not isinstance(part, sp.Piecewise | Boolean)


def _rebuilt(part: sp.Basic, arguments: list[sp.Expr]) -> sp.Expr:
    """The same operation on other arguments, or itself where they are its own."""
    return part if list(part.args) == arguments else part.func(*arguments)
