"""Which blocks of A~, B~, C~ and of the Hessian are zero, constant, dense, or structured by a family's index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import sympy as sp

from symdual.derive.calculus import Calculus, Hessian
from symdual.derive.derivation import Derivation, WeightBlock


class Kind(Enum):
    """What fills a block; the value says it in words."""

    ZERO = "zero"
    CONSTANT = "a constant"
    DENSE = "an expression"
    FAMILY = "one expression for the generic index of a family"
    UNIT = "a constant diagonal"
    DIAGONAL = "a diagonal in the index"
    PAIR = "a pair of vectors, rank one"
    BOTH = "a diagonal and a pair of vectors"


@dataclass(frozen=True)
class Group:
    """A row or column of blocks: one variable, or all weights of one array."""

    name: str
    count: int
    indexed: bool
    part: str


@dataclass(frozen=True)
class Pattern:
    """A matrix by blocks."""

    rows: tuple[Group, ...]
    columns: tuple[Group, ...]
    cells: tuple[tuple[Kind, ...], ...]


_Column: TypeAlias = "sp.Symbol | WeightBlock"
#: For each pair of vectors, the weights on its left and on its right.
_Pairs: TypeAlias = "list[tuple[set[sp.Symbol], set[sp.Symbol]]]"


def jacobian_pattern(derivation: Derivation) -> Pattern:
    """[A~ B~] = [f_x f_theta f_u; 0 D 0] by blocks."""
    d = derivation
    columns: list[_Column] = [*d.core, *d.weights, *d.inputs]
    upper = [[_first(d.dynamics, row, column) for column in columns] for row in range(len(d.states))]
    lower = [[_transition(d, one, other) for other in columns] for one in [*d.scalars, *d.weights]]
    augmented = _augmented(d)
    return _pattern(augmented, augmented + _groups(d.inputs, "u"), upper + lower)


def observation_pattern(derivation: Derivation) -> Pattern:
    """C~ = [h_x h_theta] by blocks."""
    d = derivation
    columns: list[_Column] = [*d.core, *d.weights]
    measured = range(len(d.observation.program.outputs))
    rows = tuple(Group(f"y{i}", 1, False, "y") for i in measured)
    return _pattern(rows, _augmented(d), [[_first(d.observation, i, column) for column in columns] for i in measured])


def hessian_pattern(derivation: Derivation, hessian: Hessian, inputs: tuple[sp.Symbol, ...]) -> Pattern:
    """The contracted Hessian over (z, u), or over z alone when `inputs` is empty."""
    d = derivation
    variables: list[_Column] = [*d.core, *d.weights, *inputs]
    groups = _augmented(d) + _groups(inputs, "u")
    pairs = [(set(pair.left), set(pair.right)) for pair in hessian.pairs]
    cells = [[_second(hessian, pairs, one, other) for other in variables] for one in variables]
    return _pattern(groups, groups, cells)


def _pattern(rows: tuple[Group, ...], columns: tuple[Group, ...], cells: Sequence[Sequence[Kind]]) -> Pattern:
    return Pattern(rows, columns, tuple(tuple(line) for line in cells))


def _augmented(d: Derivation) -> tuple[Group, ...]:
    weights = tuple(Group(block.symbol.name, block.count, True, "theta") for block in d.weights)
    return _groups(d.states, "x") + _groups(d.scalars, "theta") + weights


def _groups(symbols: Sequence[sp.Symbol], part: str) -> tuple[Group, ...]:
    return tuple(Group(symbol.name, 1, False, part) for symbol in symbols)


def _scalar(expression: sp.Expr) -> Kind:
    if expression == 0:
        return Kind.ZERO
    return Kind.CONSTANT if expression.is_number else Kind.DENSE


def _first(calculus: Calculus, row: int, column: _Column) -> Kind:
    if isinstance(column, WeightBlock):
        return Kind.FAMILY if calculus.weight_jacobian(row, column.symbol) else Kind.ZERO
    return _scalar(calculus.jacobian(row, column))


def _transition(d: Derivation, one: _Column, other: _Column) -> Kind:
    if not isinstance(other, WeightBlock) and other not in d.scalars:
        return Kind.ZERO
    if d.model.transition is not None and d.model.transition.ndim == 2:
        return Kind.CONSTANT
    if one is not other:
        return Kind.ZERO
    return Kind.UNIT if isinstance(one, WeightBlock) else Kind.CONSTANT


def _second(hessian: Hessian, pairs: _Pairs, one: _Column, other: _Column) -> Kind:
    if isinstance(one, WeightBlock) and isinstance(other, WeightBlock):
        return _between_weights(hessian, pairs, one, other)
    if isinstance(one, WeightBlock):
        one, other = other, one
    if isinstance(other, WeightBlock):
        return Kind.FAMILY if hessian.mixed(one, other.symbol) else Kind.ZERO
    return _scalar(hessian.entry(one, other))


def _between_weights(hessian: Hessian, pairs: _Pairs, one: WeightBlock, other: WeightBlock) -> Kind:
    diagonal = one.family == other.family and bool(hessian.diagonal(one.symbol, other.symbol))
    pair = any(
        (one.symbol in left and other.symbol in right) or (other.symbol in left and one.symbol in right)
        for left, right in pairs
    )
    if diagonal:
        return Kind.BOTH if pair else Kind.DIAGONAL
    return Kind.PAIR if pair else Kind.ZERO
