"""Noise among what is fitted: its matrices, and the coordinates of their entries.

The coordinates psi are the logarithms of standard deviations for a diagonal, and for a full matrix M = L L' the
logarithms of the diagonal of L and its other entries in units of the deviations at the start: noise is always positive
definite.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from symdual.common.arrays import Array

Indices = NDArray[np.int64]

REACH = math.log(1e4)  #: what is fitted by its logarithm stays within this factor of where it starts (as a logarithm)
NOISES = ("process_noise", "measurement_noise", "drift")


class Noises(NamedTuple):
    """Q (NX, NX), R (NY, NY) and Xi (NTHETA, NTHETA), or the derivatives of a scalar by them, dl = tr(slope dM)."""

    process_noise: Array
    measurement_noise: Array
    drift: Array

    def under(self, blocks: Sequence[NoiseBlock], psi: Array) -> Noises:
        """With the entries of these blocks that psi stands for."""
        found = Noises(*(matrix.copy() for matrix in self))
        for block, part in parts(blocks):
            getattr(found, block.kind)[np.ix_(block.indices, block.indices)] = block.matrix(psi[part])
        return found

    def pulled(self, blocks: Sequence[NoiseBlock], psi: Array) -> Array:
        """The derivatives by psi, if these are the derivatives by the matrices."""
        found = [np.zeros(0)]
        for block, part in parts(blocks):
            slope = getattr(self, block.kind)[np.ix_(block.indices, block.indices)]
            found.append(block.pull(psi[part], slope))
        return np.concatenate(found)


@dataclass(frozen=True, eq=False)
class NoiseBlock:
    """Entries of one of the matrices of noise: a diagonal, or the full matrix between some of its rows."""

    kind: str
    labels: tuple[str, ...]
    indices: Indices
    full: bool
    start: Array

    @property
    def names(self) -> list[str]:
        """A name for each coordinate, in their order: row by row of the lower triangle."""
        return [
            f"{self.kind}[{self.labels[i]}]" if i == j else f"{self.kind}[{self.labels[i]},{self.labels[j]}]"
            for i, j in self.entries
        ]

    @property
    def entries(self) -> list[tuple[int, int]]:
        """Row and column of each coordinate within the block."""
        size = len(self.indices)
        return [(i, j) for i in range(size) for j in range(i + 1) if self.full or i == j]

    @property
    def logarithms(self) -> list[bool]:
        """Whether each coordinate is a logarithm."""
        return [i == j for i, j in self.entries]

    @property
    def first(self) -> Array:
        """The coordinates of the matrix at the start."""
        root = self._root_at_start()
        return np.array([math.log(root[i, i]) if i == j else root[i, j] / self._unit(i) for i, j in self.entries])

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Where each coordinate may go."""
        return [
            (p - REACH, p + REACH) if i == j else (-math.inf, math.inf)
            for p, (i, j) in zip(self.first, self.entries, strict=True)
        ]

    def matrix(self, psi: Array) -> Array:
        """L L'."""
        root = self._root(psi)
        return root @ root.T

    def pull(self, psi: Array, slope: Array) -> Array:
        """Derivatives by the coordinates from those by the matrix: dl/dL = 2 slope L."""
        root = self._root(psi)
        by_root = 2.0 * slope @ root
        return np.array(
            [by_root[i, i] * root[i, i] if i == j else by_root[i, j] * self._unit(i) for i, j in self.entries]
        )

    def tangents(self, psi: Array) -> Array:
        """dM / dpsi for each coordinate, (coordinates, rows, rows)."""
        root, found = self._root(psi), []
        for i, j in self.entries:
            by = np.zeros_like(root)
            by[i, j] = root[i, i] if i == j else self._unit(i)
            found.append(by @ root.T + root @ by.T)
        return np.array(found)

    def _root(self, psi: Array) -> Array:
        root = np.zeros((len(self.indices), len(self.indices)))
        for value, (i, j) in zip(psi, self.entries, strict=True):
            root[i, j] = math.exp(value) if i == j else value * self._unit(i)
        return root

    def _root_at_start(self) -> Array:
        return np.asarray(np.linalg.cholesky(self.start if self.full else np.diag(np.diag(self.start))), np.float64)

    def _unit(self, i: int) -> float:
        return math.sqrt(float(self.start[i, i]))


def parts(blocks: Sequence[NoiseBlock], begin: int = 0) -> Iterator[tuple[NoiseBlock, slice]]:
    """Each block with its part of coordinates of which the first `begin` are others."""
    for block in blocks:
        yield block, slice(begin, begin + len(block.entries))
        begin += len(block.entries)


def blocks_of(
    wanted: Collection[str], full: Sequence[str], labels: Mapping[str, Sequence[str]], noises: Noises
) -> tuple[NoiseBlock, ...]:
    """The blocks of the named variances; those that `full` names, or the model has so, with their covariances."""
    found = []
    for kind in NOISES:
        named = [i for i, label in enumerate(labels[kind]) if f"{kind}[{label}]" in wanted]
        if named:
            indices = np.array(named, dtype=np.int64)
            start = getattr(noises, kind)[np.ix_(indices, indices)]
            correlated = bool(np.any(start - np.diag(np.diag(start))))
            own = tuple(labels[kind][i] for i in named)
            found.append(NoiseBlock(kind, own, indices, kind in full or correlated, start))
    return tuple(found)
