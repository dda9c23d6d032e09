"""Long equations on several lines: broken before terms, then before factors, also inside brackets and sums."""

from __future__ import annotations

from typing import NamedTuple

import sympy as sp
from markupsafe import Markup

from symdual.report.html import element
from symdual.report.mathml import (
    MINUS,
    TIMES,
    Typesetter,
    arranged,
    brackets,
    is_negative,
    math,
    operator,
    row,
    signed_terms,
    width,
)

#: Characters that fit on a line, beside the left side of an equation.
WIDTH = 88
_INDENT = Markup('<mspace width="1.6em"></mspace>')
_PRODUCT = "·"


class _Piece(NamedTuple):
    """What is never broken, and the operator that joins it to the piece before it ("" for none)."""

    joint: str
    content: Markup

    @property
    def width(self) -> float:
        return width(self.content) + (2.2 if self.joint in ("+", MINUS) else 0.2)


class Breaker(Typesetter):
    """A typesetter that can spread an expression over several lines."""

    def equation(
        self, left: Markup, right: sp.Expr, taken: int, first: sp.Expr | None, ending: Markup | None
    ) -> Markup:
        """`left = right + ending` as one `<math>` element; a term that needs several lines begins on a new one."""
        self._depth = taken - 1
        terms = [_led(sign, self._term_pieces(term)) for sign, term in signed_terms(right, first)]
        if ending is not None:
            terms.append([_Piece("+", ending)])
        if sum(piece.width for term in terms for piece in term) <= WIDTH:
            return math(row(left, operator("="), _line([piece for term in terms for piece in term], start=True)))
        if all(len(term) == 1 for term in terms):
            filled = _filled([piece for term in terms for piece in term])
            lines = [_line(pieces, start=number == 0) for number, pieces in enumerate(filled)]
        else:
            lines = []
            for term in terms:
                for number, pieces in enumerate(_filled(term)):
                    content = _line(pieces, start=not lines)
                    lines.append(row(_INDENT, content) if number else content)
        if len(lines) == 1:
            return math(row(left, operator("="), lines[0]))
        starts = [row(left, operator("=")), *[Markup("<mrow></mrow>")] * (len(lines) - 1)]
        rows = [
            element("mtr", element("mtd", a), element("mtd", element("mrow", b)))
            for a, b in zip(starts, lines, strict=True)
        ]
        return math(element("mtable", *rows, displaystyle="true"), class_="lines")

    def _pieces(self, expression: sp.Expr) -> list[_Piece]:
        """The expression cut wherever it may be, if it is longer than a line."""
        whole = self._set(expression)
        if width(whole) <= WIDTH:
            return [_Piece("", whole)]
        if expression.is_Add:
            parts = [_led(sign, self._term_pieces(term)) for sign, term in signed_terms(expression)]
            pieces = [piece for part in parts for piece in part]
            return [pieces[0]._replace(joint="" if pieces[0].joint == "+" else MINUS), *pieces[1:]]
        if isinstance(expression, sp.Sum):
            with self._deeper() as letter:
                body = self._bracketed_pieces(expression.function)
                sign = self._sum_sign(expression, letter)
            return [_Piece("", row(sign, body[0].content)), *body[1:]]
        if expression.is_Mul and not is_negative(expression):
            return self._factor_pieces(expression)
        return [_Piece("", whole)]

    def _term_pieces(self, term: sp.Expr) -> list[_Piece]:
        return self._bracketed_pieces(term) if term.is_Add else self._pieces(term)

    def _factor_pieces(self, product: sp.Mul) -> list[_Piece]:
        head, below, tail = arranged(product)
        pieces = [_Piece("", self._quotient(head, below))] if below else []
        factors = tail if below else head + tail
        for position, factor in enumerate(factors):
            open_sum = isinstance(factor, sp.Sum) and position == len(factors) - 1
            found = self._pieces(factor) if open_sum else self._bracketed_pieces(factor)
            pieces += _led(_PRODUCT, found) if pieces else found
        return pieces

    def _bracketed_pieces(self, factor: sp.Expr) -> list[_Piece]:
        """The pieces of a factor, between brackets if it is a sum."""
        pieces = self._pieces(factor)
        if not (factor.is_Add or isinstance(factor, sp.Sum)):
            return pieces
        if len(pieces) == 1:
            return [_Piece("", brackets(pieces[0].content))]
        sign = [operator(MINUS)] if pieces[0].joint == MINUS else []
        opened = _Piece("", row(element("mo", "(", stretchy="false"), *sign, pieces[0].content))
        closed = _Piece(pieces[-1].joint, row(pieces[-1].content, element("mo", ")", stretchy="false", form="postfix")))
        return [opened, *pieces[1:-1], closed]


def _led(joint: str, pieces: list[_Piece]) -> list[_Piece]:
    return [pieces[0]._replace(joint=joint), *pieces[1:]]


def _filled(pieces: list[_Piece]) -> list[list[_Piece]]:
    """Fill line after line."""
    lines: list[list[_Piece]] = [[]]
    used = 0.0
    for piece in pieces:
        if lines[-1] and used + piece.width > WIDTH:
            lines.append([])
            used = 0.0
        lines[-1].append(piece)
        used += piece.width
    return lines


def _line(pieces: list[_Piece], start: bool) -> Markup:
    """One line; a product that goes on from the line before shows its dot."""
    parts: list[Markup] = []
    for position, piece in enumerate(pieces):
        if piece.joint == _PRODUCT:
            parts.append(element("mo", _PRODUCT, form="infix") if position == 0 else TIMES)
        elif piece.joint and not (start and position == 0 and piece.joint == "+"):
            parts.append(element("mo", piece.joint, form="prefix" if start and position == 0 else "infix"))
        parts.append(piece.content)
    return row(*parts)
