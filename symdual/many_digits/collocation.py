"""Implicit steps with many digits: how a step is divided is found in double precision, its stages with all digits.

The rule by which kernels divide a step is part of the map that they are (`emit.collocation` has it in words). It is
written down here once more, with matrices, for whatever is to say what a kernel ought to return.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import mpmath
import numpy as np

from symdual.common.arrays import Array
from symdual.integrators import Implicit
from symdual.many_digits.arithmetic import DIGITS, Number

Slope = Callable[[float, Array], Array]  # of the time within the step, as a share of it, and the state
ExactSlope = Callable[[Number, list[Number]], list[Number]]
_MOST = 100  # corrections with many digits
_LEFT = mpmath.mpf(10) ** (6 - DIGITS)  # of these, as a share of the state


class Part(NamedTuple):
    """A part of a step: when it starts and how long it is, as shares of the step, and its stages (s, n)."""

    time: float
    share: float
    stages: Array


def divided(method: Implicit, slope: Slope, jacobian: Slope, x: Array, step: float, substeps: int) -> list[Part] | None:
    """The parts of a step; None where there is no end to them."""
    parts, warm = list[Part](), False
    start = x
    for substep in range(substeps):
        done, share = 0.0, 1.0
        while done < 1.0:
            share = min(share, 1.0 - done)
            if len(parts) == substeps + method.more_parts or share < method.shortest:
                return None
            part = Part((substep + done) / substeps, share / substeps, np.tile(start, (method.stages, 1)))
            if warm:
                before = parts[-2].stages[-1] if len(parts) > 1 else x
                part = part._replace(stages=np.array(method.extension) @ np.vstack([before, parts[-1].stages]))
            found = _corrected(method, slope, jacobian, start, part, step)
            warm = found is not None and share == 1.0
            if found is None:
                share /= 2
                continue
            parts.append(found)
            start, done, share = found.stages[-1], done + share, 2 * share
    return parts


def system(method: Implicit, slopes: Array, length: float) -> Array:
    """J = 1 - h A x G_x for G_x of all stages (s, n, n)."""
    s, n, _ = slopes.shape
    return np.asarray(
        np.eye(s * n) - length * np.block([[a * g for a, g in zip(row, slopes, strict=True)] for row in method.matrix])
    )


def _corrected(method: Implicit, slope: Slope, jacobian: Slope, x: Array, part: Part, step: float) -> Part | None:
    """Newton's method; None where corrections do not shrink as they should, or det J is not positive."""
    h, X, before, A = step * part.share, part.stages, np.inf, np.array(method.matrix)
    times = [part.time + part.share * c for c in method.nodes]
    with np.errstate(all="ignore"):
        for _ in range(method.corrections):
            k = np.stack([slope(t, state) for t, state in zip(times, X, strict=True)])
            G = np.stack([jacobian(t, state) for t, state in zip(times, X, strict=True)])
            J = system(method, G, h)
            if not (np.isfinite(J).all() and np.isfinite(k).all() and np.linalg.slogdet(J)[0] > 0):
                return None
            d = np.linalg.solve(J, (X - x - h * A @ k).ravel()).reshape(X.shape)
            moved = np.einsum("iab,ib->ia", np.abs(G), np.abs(X))
            size = np.abs(x) + (np.abs(X) + h * (np.abs(k) + moved)).sum(axis=0)
            shares = np.where(d == 0.0, 0.0, np.abs(d) / (size + np.abs(d)))
            compared = np.abs(d) <= method.newborn * (np.abs(x) + np.abs(X).sum(axis=0))
            largest = shares.max()
            if not (np.isfinite(d).all() and shares[compared].max(initial=0.0) <= method.contraction * before):
                return None
            X, before = X - d, largest
            if largest <= method.converged:
                return part._replace(stages=X)
    return None


@cache
def exact_matrix(method: Implicit, precision: int) -> tuple[list[Number], list[list[Number]]]:
    """The times and A of a method with so many bits, from its polynomial."""
    assert mpmath.mp.prec == precision
    nodes = sorted(mpmath.polyroots(method.polynomial, maxsteps=500, extraprec=4 * precision))
    rows = []
    for c in nodes:
        row = []
        for j, own in enumerate(nodes):
            polynomial = [mpmath.mpf(1)]  # Lagrange's, lowest power first
            for m, other in enumerate(nodes):
                if m != j:
                    shifted, kept = [mpmath.mpf(0), *polynomial], [*polynomial, mpmath.mpf(0)]
                    polynomial = [(a - other * b) / (own - other) for a, b in zip(shifted, kept, strict=True)]
            row.append(mpmath.fsum(a * c ** (power + 1) / (power + 1) for power, a in enumerate(polynomial)))
        rows.append(row)
    return nodes, rows


class ExactPart(NamedTuple):
    """A part with many digits: its start and its stages."""

    start: list[Number]
    stages: list[list[Number]]


def exact_parts(
    method: Implicit, slope: ExactSlope, slopes: list[Array], x: list[Number], step: Number, parts: list[Part]
) -> Iterator[ExactPart]:
    """The stages of all parts, corrected until nothing is left; `slopes` are G_x of their stages (s, n, n)."""
    nodes, A = exact_matrix(method, mpmath.mp.prec)
    for part, G in zip(parts, slopes, strict=True):
        h, n = step * mpmath.mpf(part.share), len(x)
        scale = np.abs(part.stages).max(axis=0)
        scale = np.tile(np.where(scale > 0.0, scale, 1.0), method.stages)
        J = system(method, G, float(h))
        inverse = np.linalg.inv(J * scale / scale[:, None]) * scale[:, None] / scale
        weights = [[mpmath.mpf(v) for v in row] for row in inverse]
        X = [[mpmath.mpf(v) for v in row] for row in part.stages]
        for _ in range(_MOST):
            times = (mpmath.mpf(part.time) + c * mpmath.mpf(part.share) for c in nodes)
            k = [slope(t, state) for t, state in zip(times, X, strict=True)]
            r = [
                X[i][a] - x[a] - h * mpmath.fsum(A[i][j] * k[j][a] for j in range(len(nodes)))
                for i in range(len(nodes))
                for a in range(n)
            ]
            d = [mpmath.fdot(row, r) for row in weights]
            X = [[X[i][a] - d[i * n + a] for a in range(n)] for i in range(len(nodes))]
            if all(abs(v) <= _LEFT * mpmath.mpf(size) for v, size in zip(d, scale, strict=True)):
                break
        yield ExactPart(x, X)
        x = X[-1]
