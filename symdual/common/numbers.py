"""Numbers that a user gives: finite, of the right shape, positive semidefinite; and names with numbers, in order."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from symdual.common.arrays import Array
from symdual.common.errors import ModelError, SymdualError

# a number as tables have it: `float` would also take 1_000 and the digits of every script
_CELL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)


def number_in(cell: str) -> float | None:
    """The number in a cell of a table, or None where there is none."""
    return float(cell) if _CELL.fullmatch(cell.strip()) else None


def as_numbers(value: ArrayLike, what: str) -> Array:
    """Return `value` as finite float64 numbers."""
    try:
        numbers = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as failure:
        raise ModelError(f"{what} must be numbers, but is {value!r}") from failure
    if not np.all(np.isfinite(numbers)):
        raise ModelError(f"{what} contains a value that is NaN or infinite")
    return numbers


def as_vector(value: ArrayLike, size: int, what: str) -> Array:
    """Return a vector of `size` numbers; one number stands for `size` equal ones."""
    numbers = as_numbers(value, what)
    if numbers.ndim == 0:
        return np.full(size, float(numbers))
    if numbers.shape != (size,):
        raise ModelError(f"{what} must be one number or {size} numbers, but has shape {numbers.shape}")
    return numbers


def as_weights(value: ArrayLike, size: int, what: str) -> Array:
    """Return `size` numbers that are not negative; one number stands for equal ones."""
    weights = as_vector(value, size, what)
    if size and weights.min() < 0:
        raise ModelError(f"{what} must not be negative, but contains {weights.min():g}")
    return weights


def as_matrix(value: ArrayLike, rows: int, columns: int, what: str) -> Array:
    """Return a matrix (rows, columns); one number stands for equal ones."""
    numbers = as_numbers(value, what)
    if numbers.ndim == 0:
        return np.full((rows, columns), float(numbers))
    if numbers.shape != (rows, columns):
        raise ModelError(f"{what} must be one number or a {rows} x {columns} matrix, but has shape {numbers.shape}")
    return numbers


def as_square(value: ArrayLike, size: int, what: str) -> Array:
    """Return a matrix (size, size); a number or a vector stands for a diagonal."""
    numbers = as_numbers(value, what)
    if numbers.ndim < 2:
        return np.diag(as_vector(numbers, size, what))
    if numbers.shape != (size, size):
        raise ModelError(
            f"{what} must be a number, {size} numbers or a {size} x {size} matrix, but has shape {numbers.shape}"
        )
    return numbers


def as_semidefinite(value: ArrayLike, size: int, what: str) -> Array:
    """Return a symmetric positive semidefinite matrix (size, size), or say its smallest eigenvalue."""
    matrix = as_square(value, size, what)
    if size == 0:
        return matrix
    symmetric = 0.5 * (matrix + matrix.T)
    if is_skew(matrix, 1e-12):
        raise ModelError(
            f"{what} is not symmetric (the smallest eigenvalue of its symmetric part is {_smallest(symmetric):.6g})"
        )
    fault = indefinite(symmetric, 1e-12)
    if fault is not None:
        raise ModelError(f"{what} is not positive semidefinite: {fault}")
    return symmetric


def _smallest(matrix: Array) -> float:
    """The smallest eigenvalue of a symmetric matrix."""
    diagonal = np.diag(matrix)
    return float(np.linalg.eigvalsh(matrix)[0] if np.any(matrix - np.diag(diagonal)) else np.min(diagonal))


def correlations(matrices: Array) -> tuple[Array, Array]:
    """d and C with M = diag(d) C diag(d), of symmetric matrices (..., n, n): d has the units of M, C has none.

    C is 1 on its diagonal, and zero in rows and columns where M has no variance.
    """
    variances = np.maximum(np.diagonal(matrices, axis1=-2, axis2=-1), 0.0)
    deviations = np.sqrt(variances)
    divisors = np.where(deviations > 0.0, deviations, np.inf)
    scaled = matrices / divisors[..., :, None] / divisors[..., None, :]
    np.einsum("...ii->...i", scaled)[...] = deviations > 0.0
    return deviations, scaled


def _sizes(matrix: Array, share: float) -> Array:
    """The unit of each row of a symmetric matrix; one without variance has that of a share of the largest entry."""
    diagonal = np.diag(matrix)
    return np.sqrt(np.where(diagonal > 0.0, diagonal, share * np.max(np.abs(matrix), initial=0.0)))


def is_skew(matrix: Array, share: float) -> bool:
    """Whether a matrix differs from its transpose by more than a share of what its rows have as their units."""
    sizes = _sizes(matrix, share)
    return bool(np.any(np.abs(matrix - matrix.T) > share * np.outer(sizes, sizes)))


def indefinite(matrix: Array, share: float) -> str | None:
    """What shows that a symmetric matrix is not positive semidefinite, whatever its units, or None.

    With variances of 1e20 and 1, a correlation of 2 is lost in the rounding of the eigenvalues: those of the
    correlations are looked at, and may be negative by `share`.
    """
    sizes = _sizes(matrix, share)
    divisors = np.where(sizes > 0.0, sizes, 1.0)
    least = _smallest(matrix / divisors[:, None] / divisors)
    if least >= -share:
        return None
    own = _smallest(matrix)
    if own < -share * float(np.max(np.abs(matrix))):
        return f"its smallest eigenvalue is {own:.6g}"
    return f"the smallest eigenvalue of its correlations is {least:.6g}"


def require_semidefinite(matrices: Array, what: str, share: float = 1e-9) -> None:
    """Raise unless every matrix of a stack is finite, symmetric and positive semidefinite up to a share."""
    if not np.all(np.isfinite(matrices)):
        raise SymdualError(f"{what} contains a value that is NaN or infinite")
    new = [0, *(1 + np.flatnonzero(np.any(matrices[1:] != matrices[:-1], axis=(1, 2))))]  # most repeat the one before
    for k in new[: len(matrices)]:
        if is_skew(matrices[k], share):
            raise SymdualError(f"{what} is not symmetric")
        fault = indefinite(matrices[k], share)
        if fault is not None:
            where = f" at step {k}" if len(matrices) > 1 else ""
            raise SymdualError(f"{what} is not positive semidefinite{where}: {fault}")


def root(covariance: Array) -> Array:
    """R with R R' = S: deviations times the symmetric root of the correlations; a zero matrix has a zero root.

    The symmetric root of S itself would mix units: the same random draws would be another one in other units.
    """
    deviations, C = correlations(covariance)
    values, vectors = np.linalg.eigh(C)
    return np.asarray(deviations[:, None] * ((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T))


def rounded(values: Array) -> Array:
    """Round to 12 significant digits, so that every machine writes the same bytes."""
    return np.array([float(f"{value:.12g}") for value in values.ravel()]).reshape(values.shape)


def require_joint(W: Array, U: Array, N: Array) -> None:
    """Raise unless [W N'; N U] is positive semidefinite at every step: a deviation would be worth a reward."""
    if not np.any(N):
        return
    for k in range(len(U)):
        fault = indefinite(np.block([[W[k], N[k].T], [N[k], U[k]]]), 1e-9)
        if fault is not None:
            raise ModelError(
                f"state_cost, cross_cost and input_cost together are not positive semidefinite at step {k}: {fault}"
            )


def natural_order(names: Iterable[str]) -> list[str]:
    """Sort names so that th2 comes before th10."""

    def key(name: str) -> list[tuple[int, int, str]]:
        parts = re.findall(r"\d+|\D+", name)
        return [(0, int(part), part) if part.isdigit() else (1, 0, part) for part in parts]

    return sorted(names, key=key)
