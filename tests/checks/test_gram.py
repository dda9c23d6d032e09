"""The Gram matrix form against a recursive filter, for random systems with inputs, gaps and drift."""

from __future__ import annotations

import numpy as np
import pytest

from symdual.checks import gram
from symdual.common.arrays import Array


def _features(points: Array, frequencies: Array) -> Array:
    angles = points @ frequencies.T
    return np.hstack([np.sin(angles), np.cos(angles)]) / np.sqrt(len(frequencies))


def _recursive(
    start: tuple[Array, Array],
    steps: list[gram.Transition],
    seen: list[gram.Measurement],
    Q: Array,
    frequencies: Array,
    persistence: float,
    growth: float,
) -> tuple[Array, Array]:
    """A textbook Kalman filter on (x, weights), weights ~ N(0, I)."""
    n, p = len(start[0]), 2 * len(frequencies)
    mean = np.concatenate([start[0], np.zeros(p)])
    P = np.zeros((n + p, n + p))
    P[:n, :n], P[n:, n:] = start[1], np.eye(p)
    for step, measurement in zip(steps, seen, strict=True):
        A = np.zeros((n + p, n + p))
        A[:n, :n] = step.A
        A[:n, n:] = step.gains @ _features(np.array([v.point for v in step.values]), frequencies)
        A[n:, n:] = persistence * np.eye(p)
        mean = A @ mean + np.concatenate([step.c, np.zeros(p)])
        P = A @ P @ A.T
        P[:n, :n] += Q
        P[n:, n:] += growth * np.eye(p)
        rows = ~np.isnan(measurement.y)
        C = np.hstack([measurement.C, np.zeros((len(measurement.C), p))])[rows]
        K = np.linalg.solve(C @ P @ C.T + measurement.R[np.ix_(rows, rows)], C @ P).T
        mean = mean + K @ (measurement.y[rows] - C @ mean)
        P = P - K @ C @ P
    return mean, P


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("k", [1, 5, 20])
@pytest.mark.parametrize("drift", [(1.0, 0.0), (0.9, 0.1)])
def test_the_gram_form_is_the_recursive_filter(n: int, k: int, drift: tuple[float, float]) -> None:
    random = np.random.default_rng(10 * n + k)
    frequencies = random.normal(size=(4, 2))
    root = random.normal(size=(n, n))
    start = random.normal(size=n), root @ root.T + 0.1 * np.eye(n)
    Q = np.diag(random.uniform(0.1, 1.0, n)) + 0.05
    steps, seen = [], []
    for j in range(k):
        values = [gram.Value(0, random.normal(size=2), j) for _ in range(2)]
        A = 0.6 * random.normal(size=(n, n))
        B, u = random.normal(size=n), random.normal()
        steps.append(gram.Transition(A, random.normal(size=(n, 2)), values, B * u))
        y = random.normal(size=2)
        if j % 3 == 1:
            y[0] = np.nan
        seen.append(gram.Measurement(random.normal(size=(2, n)), y, np.diag([0.3, 0.7]) + 0.1))

    def kernel(a: Array, b: Array) -> float:
        return float((_features(a[None], frequencies) @ _features(b[None], frequencies).T)[0, 0])

    points = random.normal(size=(3, 2))
    asked = [gram.Value(0, point, k) for point in points]
    mean, covariance = gram.posterior(start, steps, seen, Q, gram.drifting([kernel], *drift), asked)
    z, P = _recursive(start, steps, seen, Q, frequencies, *drift)
    to_values = np.zeros((n + 3, len(z)))
    to_values[:n, :n], to_values[n:, n:] = np.eye(n), _features(points, frequencies)
    np.testing.assert_allclose(mean, to_values @ z, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(covariance, to_values @ P @ to_values.T, rtol=1e-9, atol=1e-9)
