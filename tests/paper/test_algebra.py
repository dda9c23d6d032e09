"""Strict matrices, words, and the evaluation of transcriptions."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from symdual.paper.case import Case
from symdual.paper.comparison import Status, compare, vanishes
from symdual.paper.machine import Indexed, NotEvaluable, counted, evaluate, total
from symdual.paper.matrices import Matrix, ShapeError, block_diagonal, kronecker, stack, zeros
from symdual.paper.words import Blocks, blocks, invert, letter, nothing, unit


def test_matrices_never_broadcast() -> None:
    column, square = Matrix([1.0, 2.0]), Matrix(np.eye(2))
    with pytest.raises(ShapeError, match="2x1 matrix \\+ a 2x2 matrix"):
        column + square
    with pytest.raises(ShapeError):
        square + 1.0
    with pytest.raises(ShapeError):
        1.0 - square
    with pytest.raises(ShapeError):
        column @ square
    with pytest.raises(ShapeError):
        square * column  # type: ignore[operator]
    with pytest.raises(TypeError):
        Matrix([1j])


def test_stacking_checks_heights_and_widths() -> None:
    with pytest.raises(ShapeError):
        stack([[Matrix(np.eye(2)), Matrix(np.eye(3))]])
    with pytest.raises(ShapeError):
        stack([[zeros(1, 2)], [zeros(1, 3)]])
    assert block_diagonal(Matrix(2.0), Matrix(np.eye(2))).array.tolist() == [[2, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_kronecker_repeats_the_right_factor_in_blocks() -> None:
    left, right = Matrix(np.eye(2)), Matrix([[1.0, 2.0], [3.0, 4.0]])
    assert kronecker(left, right).array[:2, :2].tolist() == right.array.tolist()


def test_words_do_not_commute() -> None:
    a, b = letter("a"), letter("b")
    assert a @ b != b @ a
    assert (a + b) @ (a - b) == a @ a - a @ b + b @ a - b @ b
    assert (a @ b).T == b.T @ a.T
    assert a != a.T and letter("s", symmetric=True) == letter("s", symmetric=True).T


def test_formal_inverses_cancel_only_beside_their_letter() -> None:
    a, b = letter("a"), letter("b")
    assert invert(a @ b) @ a @ b == unit()
    assert a @ b @ invert(a) != b
    with pytest.raises(ValueError, match="single word"):
        invert(a + b)


def test_blocks_multiply_in_order() -> None:
    a, b = letter("a"), letter("b")
    assert blocks([[a, b]]) @ blocks([[b], [a]]) == a @ b + b @ a  # type: ignore[operator]
    assert Blocks([[unit(), nothing()], [a, unit()]]) @ Blocks([[unit(), nothing()], [-a, unit()]]) == Blocks(
        [[unit(), nothing()], [nothing(), unit()]]
    )


def test_indices_out_of_range_are_not_evaluable() -> None:
    with pytest.raises(NotEvaluable, match="index 4 does not exist, only 1 to 3"):
        evaluate("v[4]", {"v": counted([1, 2, 3])})
    with pytest.raises(NotEvaluable, match="not well formed"):
        evaluate("(1 + 2", {})
    with pytest.raises(NotEvaluable, match="'q' is not defined"):
        evaluate("q + 1", {})
    with pytest.raises(NotEvaluable):
        evaluate("open('x')", {})


def test_sums_include_both_ends() -> None:
    assert total(2, 4, lambda i: i) == 9
    assert total(3, 2, lambda i: i) == 0


def test_identities_of_exponentials_are_seen_and_differences_too() -> None:
    x, y = sp.symbols("x y")
    assert vanishes(sp.exp(x - 2 * y) - sp.exp(x) / sp.exp(y) ** 2)
    assert vanishes(1 / (1 + sp.exp(-x)) - sp.exp(x) / (1 + sp.exp(x)))
    assert vanishes(sp.sin(-x) + sp.sin(x)) and vanishes(sp.cos(-x) - sp.cos(x))
    assert not vanishes(sp.exp(x) - sp.exp(y))


def test_an_identity_that_is_not_proven_is_not_called_equal() -> None:
    x = sp.Symbol("x")
    case = Case("here", {"x": x, "sin": sp.sin, "cos": sp.cos}, sp.Integer(1))
    assert compare("sin(x)**2 + cos(x)**2", [case]).status is Status.UNPROVEN


def test_counterexamples_show_the_numbers_in_use() -> None:
    symbols = {"a": 2.0, "K": Indexed({0: Matrix(1.5), 1: Matrix(2.5)}), "unused": 7.0}
    found = compare("a + K[1].array[0, 0]", [Case("here", symbols, 1.0)])
    assert found.counterexample is not None
    assert found.counterexample.values == (("K[0..1]", "1.5, 2.5"), ("a", "2"))
    assert (found.counterexample.printed, found.counterexample.derived) == ("4.5", "1")
