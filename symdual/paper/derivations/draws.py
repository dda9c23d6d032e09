"""Random numbers with few digits, so that a counterexample can be read and typed in."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from symdual.paper.matrices import Matrix


def source(*seed: int) -> Generator:
    """The generator of a case: the same numbers on every machine and in every run."""
    return np.random.default_rng([20160316, *seed])


def matrix(rng: Generator, rows: int, columns: int = 1) -> Matrix:
    """Entries with one decimal, none of them zero."""
    values = rng.integers(1, 16, size=(rows, columns)) * rng.choice([-1, 1], size=(rows, columns))
    return Matrix(values / 10.0)


def stable(rng: Generator, size: int) -> Matrix:
    """A transition matrix that neither dies out nor explodes within a few steps."""
    return Matrix(np.eye(size) * 0.5 + matrix(rng, size, size).array * 0.4)


def covariance(rng: Generator, size: int, scale: float = 1.0) -> Matrix:
    """A full symmetric positive definite matrix; two of them do not commute."""
    root = matrix(rng, size, size).array
    return Matrix((root @ root.T + 0.4 * np.eye(size)) * scale)
