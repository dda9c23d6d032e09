"""Where the rows of f and h have second derivatives: what the second-order filter loops over.

Row i of f has H_i = d2 f_i / dz2, z = (x, theta). It is cut into pieces: `length` entries from (row, column) on, along
the row or along the diagonal. Pieces along a row have a state or a scalar unknown as the row, those along the diagonal
two arrays of weights. What is below the diagonal follows by symmetry. Products of two sums over weights come as pairs
of vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from symdual.derive.derivation import Derivation
from symdual.derive.structure import Pattern, Structure, hessian_diagonals, pattern, step_pattern
from symdual.emit.contexts import (
    AdjointMomentsContext,
    CurvedMap,
    LikelihoodMomentsContext,
    SecondOrderText,
    ShapedTable,
)

_ALONG_ROW, _ALONG_DIAGONAL, _ALL_WEIGHTS = 0, 1, 2
_OF_ROWS = -1  # entries that kernels write to rows of states and scalar unknowns
_FEW = 8  # weights that are taken one by one; loops over all of them have bounds that are known

NO_MOMENTS = SecondOrderText((), CurvedMap(0, False, 0), CurvedMap(0, False, 0), 0, 0)

Mask = npt.NDArray[np.bool_]
Diagonals = Sequence[tuple[int, int, int, int]]


class Piece(NamedTuple):
    """Entries of a second derivative that lie together; `source` is their place among the diagonals of a kernel."""

    row: int
    kind: int
    column: int
    length: int
    start: int
    source: int


def second_order_text(derivation: Derivation, structure: Structure) -> SecondOrderText:
    """The tables of the filter for the curved rows of f and of h."""
    curved, observed = structure.curved_in_z, structure.observation_curved_rows
    seen = hessian_diagonals(derivation, derivation.observation_hessian)
    motion, measured = step_pattern(derivation), pattern(derivation, derivation.observation)
    own = [_pieces(derivation, _upper(derivation, motion, row), structure.hessian_diagonals) for row in curved]
    own += [_pieces(derivation, _upper(derivation, measured, row), seen) for row in observed]
    values = wide = 0
    pieces: list[Piece] = []
    starts = [0]
    for piece in (piece for found in own for piece in (*found, None)):
        if piece is None:
            starts.append(len(pieces))
        elif piece.kind == _ALL_WEIGHTS:
            pieces.append(piece._replace(start=wide))
            wide += 1
        else:
            pieces.append(piece._replace(start=values))
            values += piece.length
    tables = (
        ShapedTable("CURVED", (*curved, *observed), "", "rows of f, then of h, that have second derivatives"),
        ShapedTable("PIECE_STARTS", tuple(starts), "", "where the pieces of each start"),
        ShapedTable("PIECES", tuple(map(tuple, pieces)), ".reshape(-1, 6)", "row, kind, column, length, start, source"),
    )
    return SecondOrderText(
        tables,
        CurvedMap(len(curved), bool(structure.hessian_diagonals), structure.npairs),
        CurvedMap(len(observed), bool(seen), len(derivation.observation_hessian.pairs)),
        max(values, 1),
        wide,
    )


def adjoint_moments_context(derivation: Derivation, moments: SecondOrderText) -> AdjointMomentsContext:
    """Where second derivatives may change along a plan, whose unknowns stay."""
    nx, first = len(derivation.states), len(derivation.core) + len(derivation.weights)
    motion, seen = _bent(derivation)
    return AdjointMomentsContext(
        moments,
        tuple(i for i in motion if i < nx),
        tuple(i - first for i in motion if i >= first),
        tuple(i for i in seen if i < nx),
    )


def likelihood_moments_context(derivation: Derivation, moments: SecondOrderText) -> LikelihoodMomentsContext:
    """Where they may change by z and inputs; by weights only if weights meet weights in them."""
    core, first = len(derivation.core), len(derivation.core) + len(derivation.weights)
    together = moments.diagonals or moments.pairs > 0
    spans = [range(i, i + 1) for i in range(core)]
    starts = ((len(derivation.states) + b.start, b.count) for b in derivation.weights)
    spans += [range(start, start + count) if together else range(0) for start, count in starts]
    motion, seen = _bent(derivation)
    places, observed = (tuple(j for i in own if i < first for j in spans[i]) for own in (motion, seen))
    return LikelihoodMomentsContext(
        (
            ShapedTable("BENT", places, "", "entries of z in which rows of f are curved"),
            ShapedTable("BENT_INPUTS", tuple(i - first for i in motion if i >= first), "", "inputs in which they are"),
            ShapedTable("H_BENT", observed, "", "entries of z in which rows of h are curved"),
        ),
        together,
    )


def _bent(derivation: Derivation) -> tuple[list[int], list[int]]:
    """Columns in which f and h are curved: a third derivative by a number asks for a second one by it."""
    patterns = step_pattern(derivation), pattern(derivation, derivation.observation)
    motion, seen = ([int(i) for i in np.flatnonzero((p.bent | p.bent.T).any(axis=0))] for p in patterns)
    return motion, seen


def _upper(derivation: Derivation, shape: Pattern, row: int) -> Mask:
    """Which groups of columns of z meet in the second derivatives of a row: upper triangle."""
    groups = len(derivation.core) + len(derivation.weights)
    own = shape.second[row][:groups, :groups]
    return np.asarray(np.triu(own | own.T))


def _pieces(derivation: Derivation, mask: Mask, diagonals: Diagonals) -> Iterator[Piece]:
    """The pieces of one row of f or h."""
    nx, core = len(derivation.states), len(derivation.core)
    places = [(i, 1) for i in range(core)] + [(nx + b.start, b.count) for b in derivation.weights]
    for row in range(core):
        weights = core + np.flatnonzero(mask[row, core:])
        many = sum(places[group][1] for group in weights) >= _FEW
        if many:
            yield Piece(row, _ALL_WEIGHTS, nx, 0, 0, _OF_ROWS)
        short = [*np.flatnonzero(mask[row, :core]), *(() if many else weights)]
        for column, count in _joined(places[group] for group in short):
            yield Piece(row, _ALONG_ROW, column, count, 0, _OF_ROWS)
    group_of = {start: core + n for n, (start, _) in enumerate(places[core:])}
    for row, column, count, source in diagonals:
        if mask[group_of[row], group_of[column]]:
            yield Piece(row, _ALONG_DIAGONAL, column, count, 0, source)


def _joined(places: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """(start, count) of runs without a gap."""
    start, end = -1, -1
    for place, count in places:
        if place != end:
            if end > start:
                yield start, end - start
            start = place
        end = place + count
    if end > start:
        yield start, end - start
