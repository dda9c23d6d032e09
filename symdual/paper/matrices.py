"""Numeric matrices that never broadcast, so that a formula whose shapes do not conform cannot be evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symdual.common.arrays import Array


class ShapeError(ValueError):
    """Two matrices do not conform."""


class Matrix:
    """A real matrix with the operations of the paper and with nothing implicit.

    A vector is a matrix with one column, a number may multiply a matrix but is never added to one.
    """

    __slots__ = ("array",)
    __array_ufunc__ = None

    def __init__(self, values: Any) -> None:
        if np.iscomplexobj(values):
            raise TypeError("a complex number where a real one is meant")
        array = np.asarray(values, dtype=float)
        if array.ndim == 0:
            array = array.reshape(1, 1)
        elif array.ndim == 1:
            array = array.reshape(-1, 1)
        self.array: Array = array

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.array.shape[0], self.array.shape[1]

    @property
    def T(self) -> Matrix:
        """The transpose."""
        return Matrix(self.array.T)

    def _same_shape(self, other: object, sign: str) -> Array:
        if not isinstance(other, Matrix):
            raise ShapeError(f"a {self.shape[0]}x{self.shape[1]} matrix {sign} a plain number")
        if other.shape != self.shape:
            raise ShapeError(f"{describe(self)} {sign} {describe(other)} does not conform")
        return other.array

    def __add__(self, other: object) -> Matrix:
        return Matrix(self.array + self._same_shape(other, "+"))

    def __radd__(self, other: object) -> Matrix:
        return self.__add__(other)

    def __sub__(self, other: object) -> Matrix:
        return Matrix(self.array - self._same_shape(other, "-"))

    def __rsub__(self, other: object) -> Matrix:
        return (-self).__add__(other)

    def __neg__(self) -> Matrix:
        return Matrix(-self.array)

    def __matmul__(self, other: object) -> Matrix:
        if not isinstance(other, Matrix):
            raise ShapeError(f"{describe(self)} @ a plain number")
        if self.shape[1] != other.shape[0]:
            raise ShapeError(f"{describe(self)} @ {describe(other)} does not conform")
        return Matrix(self.array @ other.array)

    def __mul__(self, factor: float) -> Matrix:
        return Matrix(self.array * float(factor))

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Matrix:
        return self * (1.0 / divisor)

    def __float__(self) -> float:
        raise ShapeError(f"{describe(self)} is not a plain number; the product of matrices is written @")

    def __repr__(self) -> str:
        return f"Matrix({self.array.tolist()})"


def describe(matrix: Matrix) -> str:
    """The size of a matrix in words: ``a 2x3 matrix``."""
    return f"a {matrix.shape[0]}x{matrix.shape[1]} matrix"


def inverse(matrix: Matrix) -> Matrix:
    """M^-1 of a square matrix."""
    if matrix.shape[0] != matrix.shape[1]:
        raise ShapeError(f"{describe(matrix)} has no inverse")
    return Matrix(np.linalg.inv(matrix.array))


def trace(matrix: Matrix) -> Matrix:
    """tr M, as a 1x1 matrix."""
    if matrix.shape[0] != matrix.shape[1]:
        raise ShapeError(f"{describe(matrix)} has no trace")
    return Matrix(np.trace(matrix.array))


def stack(rows: Sequence[Sequence[Matrix]]) -> Matrix:
    """The matrix made of blocks, row by row."""
    for row in rows:
        if len({block.shape[0] for block in row}) > 1:
            raise ShapeError("blocks of one row differ in height: " + ", ".join(describe(b) for b in row))
    widths = {sum(block.shape[1] for block in row) for row in rows}
    if len(widths) > 1:
        raise ShapeError(f"block rows differ in width: {sorted(widths)}")
    return Matrix(np.vstack([np.hstack([block.array for block in row]) for row in rows]))


def block_diagonal(*blocks: Matrix) -> Matrix:
    """blkdiag(B_1, B_2, ...)."""
    sizes = [block.shape for block in blocks]
    return stack(
        [[b if i == j else zeros(sizes[i][0], sizes[j][1]) for j in range(len(blocks))] for i, b in enumerate(blocks)]
    )


def zeros(rows: int, columns: int) -> Matrix:
    """The zero matrix."""
    return Matrix(np.zeros((rows, columns)))


def identity(size: int) -> Matrix:
    """The identity."""
    return Matrix(np.eye(size))


def kronecker(left: Matrix, right: Matrix) -> Matrix:
    """left (x) right: the block (i, j) is left_ij times right."""
    return Matrix(np.kron(left.array, right.array))


def vectorise(matrix: Matrix) -> Matrix:
    """vec M: the columns on top of each other."""
    return Matrix(matrix.array.reshape(-1, order="F"))


def diagonal(matrix: Matrix) -> Matrix:
    """diag M: the diagonal of M as a column."""
    return Matrix(np.diag(matrix.array))


def root(matrix: Matrix) -> Matrix:
    """The element-wise square root."""
    return Matrix(np.sqrt(matrix.array))
