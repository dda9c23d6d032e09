"""Which numbers of a task are fitted: hyperparameters of its processes, and entries of its noise.

Noise has the coordinates of `symdual.estimation.quantities.NoiseBlock`: logarithms of deviations for a diagonal, the
entries of a Cholesky factor for a full matrix. Here noise and drift are one matrix on z = (x, theta).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from symdual.errors import SymdualError, did_you_mean
from symdual.estimation.quantities import NOISES, Indices, NoiseBlock
from symdual.numbers import Array


class Noises(NamedTuple):
    """The covariances of the noise on z (Z, Z) and on the measurements (Y, Y), or derivatives by them."""

    process_noise: Array
    measurement_noise: Array

    def of(self, block: NoiseBlock, states: int) -> tuple[Array, tuple[Indices, ...]]:
        """The matrix to which a block belongs, and its rows and columns there."""
        matrix = self.measurement_noise if block.kind == "measurement_noise" else self.process_noise
        rows = block.indices + (states if block.kind == "drift" else 0)
        return matrix, np.ix_(rows, rows)

    def under(self, blocks: Sequence[NoiseBlock], psi: Array, states: int) -> Noises:
        """With the entries of these blocks that psi stands for."""
        found = Noises(self.process_noise.copy(), self.measurement_noise.copy())
        for block, part in parts(blocks):
            matrix, where = found.of(block, states)
            matrix[where] = block.matrix(psi[part])
        return found

    def pulled(self, blocks: Sequence[NoiseBlock], psi: Array, states: int) -> Array:
        """The derivatives by psi, if these are the derivatives by the covariances."""
        found = [np.zeros(0)]
        for block, part in parts(blocks):
            matrix, where = self.of(block, states)
            found.append(block.pull(psi[part], matrix[where]))
        return np.concatenate(found)


def parts(blocks: Sequence[NoiseBlock]) -> Iterator[tuple[NoiseBlock, slice]]:
    """Each block with its part of the coordinates of all of them."""
    begin = 0
    for block in blocks:
        yield block, slice(begin, begin + len(block.entries))
        begin += len(block.entries)


def open_entries(states: Sequence[str], unknowns: Sequence[str], outputs: Sequence[str], noises: Noises) -> list[str]:
    """The names of the variances that are not zero, by group."""
    named = zip(NOISES, (states, outputs, unknowns), _diagonals(noises, len(states)), strict=True)
    return [
        f"{kind}[{label}]"
        for kind, labels, diagonal in named
        for label, variance in zip(labels, diagonal, strict=True)
        if variance > 0
    ]


def blocks_of(
    wanted: set[str],
    full: Sequence[str],
    states: Sequence[str],
    unknowns: Sequence[str],
    outputs: Sequence[str],
    noises: Noises,
) -> tuple[NoiseBlock, ...]:
    """The blocks of the named variances; those that `full` names, or the model has so, with their covariances."""
    found, n = [], len(states)
    matrices = noises.process_noise[:n, :n], noises.measurement_noise, noises.process_noise[n:, n:]
    for kind, labels, matrix in zip(NOISES, (states, outputs, unknowns), matrices, strict=True):
        indices = np.array([i for i, label in enumerate(labels) if f"{kind}[{label}]" in wanted], dtype=np.int64)
        if len(indices):
            start = matrix[np.ix_(indices, indices)]
            correlated = bool(np.any(start - np.diag(np.diag(start))))
            found.append(
                NoiseBlock(kind, tuple(labels[i] for i in indices), indices, kind in full or correlated, start)
            )
    return tuple(found)


def _diagonals(noises: Noises, states: int) -> tuple[Array, Array, Array]:
    own = np.diag(noises.process_noise)
    return own[:states], np.diag(noises.measurement_noise), own[states:]


def chosen(groups: dict[str, list[str]], only: Sequence[str], hold: Sequence[str]) -> set[str]:
    """The names of what is fitted, given all that can be by group (a family, a noise); all by default."""
    members = groups | {name: [name] for names in groups.values() for name in names}
    for name in (*only, *hold):
        if name not in members:
            raise SymdualError(f'there is nothing called "{name}" to fit{did_you_mean(name, list(members))}')
    asked = {n for name in (only or groups) for n in members[name]}
    found = asked - {n for name in hold for n in members[name]}
    if not found:
        raise SymdualError("nothing is left to fit")
    return found
