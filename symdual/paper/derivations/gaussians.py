"""Expectations under Gaussian distributions, by quadrature."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from symdual.common.arrays import Array
from symdual.paper.matrices import Matrix


def normal_nodes(count: int) -> tuple[Array, Array]:
    """Nodes and weights of the Gauss-Hermite rule for the standard normal density."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, weights / np.sqrt(2.0 * np.pi)


def points(mean: Array, cov: Array) -> Iterator[tuple[float, Array]]:
    """Weighted points that integrate polynomials of degree 5 against N(mean, cov) exactly."""
    nodes, weights = normal_nodes(3)
    values, vectors = np.linalg.eigh(cov)
    factor = vectors * np.sqrt(np.clip(values, 0.0, None))
    for combination in product(range(3), repeat=len(mean)):
        index = list(combination)
        yield float(np.prod(weights[index])), mean + factor @ nodes[index]


def expectation(function: Callable[[Matrix], Any], mean: Array, cov: Array) -> Any:
    """E[function(x)] for x ~ N(mean, cov); exact when the function is a polynomial of degree five or less."""
    total: Any = None
    for weight, point in points(mean, cov):
        term = function(Matrix(point)) * weight
        total = term if total is None else total + term
    return total


def scalar_expectation(function: Callable[[float], float], mean: float, variance: float, count: int = 40) -> float:
    """E[function(x)] for a scalar x ~ N(mean, variance)."""
    nodes, weights = normal_nodes(count)
    values = [function(mean + float(np.sqrt(variance)) * float(node)) for node in nodes]
    return float(weights @ np.array(values))


def moments(function: Callable[[Array], Array], mean: Array, cov: Array) -> tuple[Array, Array]:
    """Mean and covariance of function(x) for x ~ N(mean, cov)."""
    sampled = [(weight, function(point)) for weight, point in points(mean, cov)]
    centre = np.sum([weight * value for weight, value in sampled], axis=0)
    spread = np.sum([weight * np.outer(value - centre, value - centre) for weight, value in sampled], axis=0)
    return centre, spread


def beside(mean: Matrix, cov: Matrix) -> Matrix:
    """Mean and covariance side by side, as one value to compare."""
    if mean.shape != (cov.shape[0], 1) or cov.shape[0] != cov.shape[1]:
        raise ValueError(f"a mean of size {mean.shape} with a covariance of size {cov.shape}")
    return Matrix(np.hstack([mean.array, cov.array]))
