"""Noise that depends: Q(x, u) and R(x) as matrices of expressions.

xi_k ~ N(0, Q(x_k, u_k, k)),      gamma_k ~ N(0, R(x_k, k))

Entries may contain states, inputs (of Q only: y_k is measured before u_k is chosen), the past of inputs, signals,
constants and time. Nothing is learned of an unknown from the size of noise, so unknowns may not stand there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from symdual.common.errors import ModelError, did_you_mean
from symdual.spec.expressions import as_expression
from symdual.spec.symbols import FeatureSum, Unknown

Matrix = tuple[tuple[sp.Expr, ...], ...]


def in_order(given: Any, names: Sequence[str], what: str) -> Any:
    """Noise that is given by names as a diagonal, zero where nothing is said; anything else as it is."""
    if not isinstance(given, Mapping):
        return given
    said = {str(name): value for name, value in given.items()}
    for name in said:
        if name not in names:
            raise ModelError(f'{what} names "{name}", which is none of {", ".join(names)}{did_you_mean(name, names)}')
    return [said.get(name, 0.0) for name in names]


@dataclass(frozen=True)
class Noise:
    """Q and R of a model as symmetric matrices of expressions; an entry that is a number stands there as one."""

    process: Matrix
    measurement: Matrix

    @property
    def expressions(self) -> tuple[sp.Expr, ...]:
        """The entries on and below the diagonals, those of Q first."""
        return lower(self.process) + lower(self.measurement)

    @property
    def named(self) -> tuple[tuple[str, sp.Expr], ...]:
        """The same entries with what they are, such as `process_noise[1, 0]`."""
        matrices = (("process_noise", self.process), ("measurement_noise", self.measurement))
        named = [f"{what}[{i}, {j}]" for what, matrix in matrices for i, j in places(len(matrix))]
        return tuple(zip(named, self.expressions, strict=True))

    def widened(self, own: int, size: int) -> Noise:
        """The same for a model with other states that remember inputs: these have no noise."""
        kept = [[self.process[i][j] if max(i, j) < own else sp.S.Zero for j in range(size)] for i in range(size)]
        return Noise(tuple(map(tuple, kept)), self.measurement)


def lower(matrix: Matrix) -> tuple[sp.Expr, ...]:
    """The entries on and below the diagonal, row by row."""
    return tuple(matrix[i][j] for i, j in places(len(matrix)))


def places(size: int) -> tuple[tuple[int, int], ...]:
    """Row and column of the entries on and below a diagonal, row by row."""
    return tuple((i, j) for i in range(size) for j in range(i + 1))


def depends(value: Any) -> bool:
    """Whether noise as a user gave it contains anything but numbers."""
    return any(isinstance(e, sp.Basic) and e.free_symbols for e in _entries(value))


def as_noise(value: Any, size: int, what: str) -> Matrix:
    """Noise as a matrix of expressions: one expression for all, one for each entry of a diagonal, or a matrix."""
    array = np.array(value.tolist() if isinstance(value, sp.MatrixBase) else value, dtype=object)
    if isinstance(value, sp.MatrixBase) and size > 1 and 1 in value.shape:
        array = array.ravel()
    if array.ndim < 2 and array.size in (1, size):
        diagonal = [as_expression(e, what) for e in np.broadcast_to(array.ravel(), size)]
        return tuple(tuple(diagonal[i] if i == j else sp.S.Zero for j in range(size)) for i in range(size))
    if array.shape != (size, size):
        raise ModelError(
            f"{what} must be one expression, {size} of them or a {size} x {size} matrix, but has shape {array.shape}"
        )
    entries = [[as_expression(e, f"{what}[{i}, {j}]") for j, e in enumerate(row)] for i, row in enumerate(array)]
    for i, j in places(size):
        if sp.expand(entries[i][j] - entries[j][i]) != 0:
            raise ModelError(
                f"{what} is not symmetric: its entry [{i}, {j}] is {entries[i][j]}, but [{j}, {i}] is {entries[j][i]}"
            )
    return tuple(tuple(entries[max(i, j)][min(i, j)] for j in range(size)) for i in range(size))


def noise_of(process: Any, measurement: Any, states: int, measured: int) -> Noise | None:
    """Q and R as expressions where one of them depends on something; both are code then."""
    if not depends(process) and not depends(measurement):
        return None
    return Noise(as_noise(process, states, "process_noise"), as_noise(measurement, measured, "measurement_noise"))


def refuse(expression: sp.Expr, inputs: tuple[sp.Symbol, ...], where: str) -> None:
    """Refuse noise that depends on something unknown, and noise of a measurement that depends on an input."""
    names = [s.name for s in expression.free_symbols if isinstance(s, Unknown)]
    names += [part.family.name for part in expression.atoms(FeatureSum)]
    if names:
        raise ModelError(
            f'{where} contains the unknown "{min(names)}"; noise may depend on states, inputs, signals and time only, '
            "for nothing is learned of an unknown from the size of noise"
        )
    for symbol in inputs if where.startswith("measurement_noise") else ():
        if symbol in expression.free_symbols:
            raise ModelError(
                f'{where} contains the input "{symbol.name}", which is chosen after the measurement; '
                f"previous({symbol.name}) is the one before"
            )


def _entries(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple, np.ndarray, sp.MatrixBase)):
        for part in value:
            yield from _entries(part)
    else:
        yield value
