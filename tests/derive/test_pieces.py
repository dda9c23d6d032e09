"""Long sums and deep nests in pieces that say the same."""

from __future__ import annotations

import itertools
import sys

import pytest
import sympy as sp

from symdual.derive.pieces import Limits, Pieces, depth, in_pieces

x, y = sp.symbols("x y", real=True)
TWELVE = Limits(terms=12, depth=sys.maxsize)
SHALLOW = Limits(terms=sys.maxsize, depth=9)


def taken_apart(expression: sp.Expr, limits: Limits) -> Pieces:
    numbers = itertools.count()
    return in_pieces(expression, limits, lambda: sp.Symbol(f"_p{next(numbers)}", real=True))


def together(pieces: Pieces) -> sp.Expr:
    known: dict[sp.Symbol, sp.Expr] = {}
    for symbol, piece in pieces.taken:
        known[symbol] = piece.xreplace(known)
    return pieces.rest.xreplace(known)


def nest(levels: int) -> sp.Expr:
    e: sp.Expr = x
    for n in range(levels):
        e = sp.sin(e + n * y)
    return e


def test_what_is_short_stays_as_it_is() -> None:
    e = sp.sin(x + y) * x - 3 * y**2
    assert taken_apart(e, Limits(12, 9)) == Pieces((), e)


@pytest.mark.parametrize("kind", [sp.Add, sp.Mul])
def test_pieces_of_sums_and_products_are_short_and_make_the_whole(kind: type) -> None:
    e = kind(*(sp.cos(n * x) + y for n in range(1, 300)))
    found = taken_apart(e, TWELVE)
    assert max(len(piece.args) for piece in [found.rest, *(p for _, p in found.taken)]) <= 12
    assert together(found) == e


def test_pieces_of_a_nest_are_shallow_and_make_the_whole() -> None:
    found = taken_apart(nest(70), SHALLOW)
    assert depth(nest(70)) == 2 * 70 - 1
    assert max(depth(piece) for piece in [found.rest, *(p for _, p in found.taken)]) <= 9
    assert together(found) == nest(70)


def test_a_piece_of_a_case_is_computed_where_that_holds() -> None:
    e = sp.Piecewise((sp.sqrt(nest(10) + 1 - x), x < 1), (y, x < 2), (nest(6), True))
    found = taken_apart(e, SHALLOW)
    for place in ({x: 0.3, y: 0.2}, {x: 1.5, y: 0.2}, {x: 2.5, y: 0.2}):
        values: dict[sp.Symbol, sp.Expr] = {}
        for symbol, piece in found.taken:
            values[symbol] = piece.xreplace(values | place)
            assert values[symbol].is_real
        assert abs(float(found.rest.xreplace(values | place)) - float(e.xreplace(place))) < 1e-14


@pytest.mark.parametrize("terms", [10_000, pytest.param(100_000, marks=pytest.mark.soak)])
def test_neither_length_nor_depth_has_a_limit(terms: int) -> None:
    total = sp.Add(*sp.symbols(f"a:{terms}", real=True))
    found = taken_apart(total, Limits(terms=40, depth=30))
    assert together(found) == total and len(found.rest.args) <= 40
    deep = nest(terms // 40)
    assert depth(deep) == terms // 20 - 1
    assert len(taken_apart(deep, Limits(terms=40, depth=30)).taken) == (terms // 20 - 2) // 30
