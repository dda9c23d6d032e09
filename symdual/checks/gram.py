"""The belief on states and unknown functions in one go, by conditioning all that is Gaussian on all that was measured.

Transitions linearised at estimates, x_{j+1} = A_j x_j + sum_v gain_jv g_v(s_jv) + c_j + q_j, and measurements
y_j = C_j x_j + r_j make every x_j a linear map of w = (x_0, all values g_v(s_jv), all q_j). In the prior covariance of
w the part of the values is the Gram matrix of the kernel. Conditioning is then a single linear solve: the multi-step
form of the paper's Appendix A, without a recursion, a filter, or an inverse of the Gram matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from symdual.common.arrays import Array


class Value(NamedTuple):
    """A value of an unknown function: which function, where, and at which time."""

    function: int
    point: Array
    time: int


class Transition(NamedTuple):
    """One step: A (n, n), gains (n, v) of the values that it uses, the constant c (n,), and noise beside that of x."""

    A: Array
    gains: Array
    values: Sequence[Value]
    c: Array
    more_noise: Array | float = 0.0


class Measurement(NamedTuple):
    """y = C x + r, r ~ N(0, R); NaN entries were not measured."""

    C: Array
    y: Array
    R: Array


#: cov(g(a) at time i, g(b) at time j) of two values.
Covariance = Callable[[Value, Value], float]


def drifting(kernels: Sequence[Callable[[Array, Array], float]], persistence: float, growth: float) -> Covariance:
    """g_0 ~ GP(0, kappa), g_{j+1} = lambda g_j + e_j, e ~ GP(0, rho kappa).

    cov(g_i(a), g_j(b)) = lambda^|i-j| c_min(i,j) kappa(a, b),   c_0 = 1, c_{j+1} = lambda^2 c_j + rho.
    """

    def scale(time: int) -> float:
        c = 1.0
        for _ in range(time):
            c = persistence**2 * c + growth
        return c

    def covariance(a: Value, b: Value) -> float:
        if a.function != b.function:
            return 0.0
        first = min(a.time, b.time)
        return persistence ** abs(a.time - b.time) * scale(first) * kernels[a.function](a.point, b.point)

    return covariance


def posterior(
    start: tuple[Array, Array],
    transitions: Sequence[Transition],
    measurements: Sequence[Measurement],
    process_noise: Array,
    covariance: Covariance,
    asked: Sequence[Value],
) -> tuple[Array, Array]:
    """Mean and covariance of (x_k, asked values), k the number of transitions; measurement j is that of x_{j+1}."""
    mean0, covariance0 = start
    n, k = len(mean0), len(transitions)
    values = [value for step in transitions for value in step.values]
    size = n + len(values) + n * k
    prior = np.zeros((size, size))
    prior[:n, :n] = covariance0
    used = slice(n, n + len(values))
    prior[used, used] = [[covariance(a, b) for b in values] for a in values]
    prior[used.stop :, used.stop :] = _blocks([process_noise + step.more_noise for step in transitions])
    maps, offset, position = np.eye(n, size), mean0, n
    observed, residual, noise = [], [], []
    for j, (step, seen) in enumerate(zip(transitions, measurements, strict=True)):
        maps, offset = step.A @ maps, step.A @ offset + step.c
        maps[:, position : position + len(step.values)] += step.gains
        maps[:, used.stop + n * j : used.stop + n * (j + 1)] += np.eye(n)
        position += len(step.values)
        present = ~np.isnan(seen.y)
        observed.append((seen.C @ maps)[present])
        residual.append((seen.y - seen.C @ offset)[present])
        noise.append(seen.R[np.ix_(present, present)])
    H, e = np.vstack(observed), np.concatenate(residual)
    G = H @ prior @ H.T + _blocks(noise)
    # (x_k, asked values) before the measurements: covariance, and covariance with w
    cross = np.zeros((n + len(asked), size))
    cross[:n] = maps @ prior
    cross[n:, used] = [[covariance(a, b) for b in values] for a in asked]
    before = np.zeros((n + len(asked), n + len(asked)))
    before[:n, :n] = maps @ prior @ maps.T
    before[n:, :n] = cross[n:] @ maps.T
    before[:n, n:] = before[n:, :n].T
    before[n:, n:] = [[covariance(a, b) for b in asked] for a in asked]
    gain = np.linalg.solve(G, H @ cross.T).T
    mean = np.concatenate([offset, np.zeros(len(asked))]) + gain @ e
    return mean, before - gain @ H @ cross.T


def _blocks(matrices: Sequence[Array]) -> Array:
    total = np.zeros((sum(len(m) for m in matrices),) * 2)
    start = 0
    for matrix in matrices:
        total[start : start + len(matrix), start : start + len(matrix)] = matrix
        start += len(matrix)
    return total
