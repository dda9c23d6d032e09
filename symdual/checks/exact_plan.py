"""The dual cost of a plan with many digits, from the model as written, and its slope along a direction of inputs.

    P_{j+1} = A S_j A' + blkdiag(Q, Xi),      S_{j+1} = P_{j+1} - P_{j+1} C' (C P_{j+1} C' + R)^-1 C P_{j+1}
    K_j = W_j + A' K_{j+1} A - M' (U_j + B' K_{j+1} B)^-1 M,      M = N_j + B' K_{j+1} A,        K_T = W_T
    Jd = sum_{j=0..T} tr W_j S_j + sum_{j=0..T-1} tr K_{j+1} (P_{j+1} - S_{j+1})

Jacobians are differences of f and h, the slope is a difference of Jd: no derivative of symdual's is used. Q, R, W, N
and U are those of each point (`exact_cost`). With a filter of second order Q and R have 1/2 tr(F_a S F_b S) on top,
with second differences F of f and h. Only the `active` entries of z are uncertain; inputs at their bounds answer
nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import mpmath
import numpy as np

from symdual.checks import dense
from symdual.checks.exact_cost import ExactSurroundings
from symdual.common.arrays import Array
from symdual.many_digits.arithmetic import DIGITS, Number
from symdual.many_digits.model import STEP, first_difference

MOST = 16  #: augmented states that are all active; of more, all states and FEW unknowns are
FEW = 6
_STEP = mpmath.mpf(10) ** -15  # of a difference, in units of the direction


def active_entries(nx: int, transition: Array) -> list[int]:
    """Entries of z that are uncertain in the check: all, or of many that do not mix the states and a few more."""
    nz = nx + len(transition)
    if nz <= MOST or np.any(transition - np.diag(np.diag(transition))):
        return list(range(nz))
    return [*range(nx), *range(nx, nz, max(1, (nz - nx) // FEW))][: nx + FEW]


class _Step(NamedTuple):
    """A step of a plan: A, B, the curvature of its cost, and what the measurement behind it teaches."""

    A: Any
    B: Any
    H: Any
    learned: Any


class ExactPlan:
    """Jd of plans from one belief, with learning, as a function of the inputs."""

    def __init__(
        self,
        around: ExactSurroundings,
        noise: dense.Noise,
        belief: dense.Belief,
        bounds: Array,
        active: Sequence[int],
        second_order: bool = False,
    ) -> None:
        self._around, self._model, self._active = around, around.model, list(active)
        self._second_order = second_order
        self._belief, self._bounds, self._nx = belief, bounds, len(around.model.model.states)
        self._moving = [place - self._nx for place in active if place >= self._nx]
        self._D = mpmath.matrix(noise.transition.tolist()) if noise.transition.size else mpmath.matrix(0)
        self._diffusion = noise.diffusion

    def slope(self, inputs: Array, direction: Array, weights: Array | None = None) -> float:
        """d Jd(inputs + s direction) / ds at s = 0; NaN along a plan that runs away further than the digits reach.

        `weights` (T, NU) are added to those of the inputs that answer, and held; infinite for those that do not.
        """
        with mpmath.workdps(DIGITS):
            up, down = (self._moved(inputs, direction, step) for step in (_STEP, -_STEP))
            if weights is None:
                weights = np.where((inputs > self._bounds[0]) & (inputs < self._bounds[1]), 0.0, np.inf)
            try:
                return float((self.value(up, weights) - self.value(down, weights)) / (2 * _STEP))
            except ZeroDivisionError:  # a matrix that is singular to all digits, or has no finite entries
                return math.nan

    @staticmethod
    def _moved(inputs: Array, direction: Array, step: Number) -> list[list[Number]]:
        pairs = [zip(a, b, strict=True) for a, b in zip(inputs, direction, strict=True)]
        return [[mpmath.mpf(u) + step * mpmath.mpf(d) for u, d in pair] for pair in pairs]

    def value(self, inputs: Sequence[Sequence[Number]], weights: Array) -> Number:
        """Jd; `weights` (T, NU) are added to those of inputs that answer, and are infinite for those that do not."""
        z, total = [mpmath.mpf(v) for v in self._belief.mean], mpmath.mpf(0)
        S, steps = self._chosen(self._belief.covariance), []
        for j, u in enumerate(inputs):
            self._around.set_signals(j)
            H = self._around.curvature(j, z[: self._nx], list(u))
            total += self._weighted(H, S)
            Q = self._around.process(j, z[: self._nx], list(u))
            if self._second_order:
                Q = Q + self._moments(partial(self._next, j, list(u)), z, S)
            z, A, B = self._linearised(j, z, list(u))
            P = self._shaken(A * S * A.T, Q)
            self._around.set_signals(j + 1)
            S = self._measured(j + 1, z, P)
            steps.append(_Step(A, B, H, P - S))
        last = self._around.curvature(len(steps), z[: self._nx], None)
        total += self._weighted(last, S)
        K = self._weight(last)
        for j in range(len(steps) - 1, -1, -1):
            learned = steps[j].learned
            total += mpmath.fsum(K[i, c] * learned[c, i] for i in range(K.rows) for c in range(K.cols))
            if j > 0:
                K = self._stepped_back(K, steps[j], weights[j])
        return total

    def _chosen(self, matrix: Array) -> Any:
        return mpmath.matrix(matrix[np.ix_(self._active, self._active)].tolist())

    def _shaken(self, P: Any, Q: Any) -> Any:
        """P + blkdiag(Q, Xi)."""
        for i, c in np.ndindex(self._nx, self._nx):
            P[i, c] += Q[i, c]
        for i, a in enumerate(self._moving):
            for c, b in enumerate(self._moving):
                P[self._nx + i, self._nx + c] += mpmath.mpf(self._diffusion[a, b])
        return P

    def _weight(self, H: Any) -> Any:
        W = mpmath.zeros(len(self._active))
        for i, c in np.ndindex(self._nx, self._nx):
            W[i, c] = H[i, c]
        return W

    def _weighted(self, H: Any, S: Any) -> Number:
        return mpmath.fsum(H[i, c] * S[c, i] for i, c in np.ndindex(self._nx, self._nx))

    def _next(self, k: int, u: list[Number], z: list[Number]) -> list[Number]:
        """f."""
        return self._model.dynamics(k, z[: self._nx], u, z[self._nx :])

    def _expected(self, k: int, z: list[Number]) -> list[Number]:
        """h."""
        return self._model.observation(k, z[: self._nx], z[self._nx :])

    def _moments(self, function: Callable[[list[Number]], list[Number]], z: list[Number], S: Any) -> Any:
        """1/2 tr(F_a S F_b S)."""
        size = len(self._active)
        bends = [
            self._differences(partial(self._difference, function, place), z, self._active) for place in self._active
        ]
        rows = range(len(bends[0][0]))
        spread = [mpmath.matrix([[bends[i][c][row] for c in range(size)] for i in range(size)]) * S for row in rows]
        found = mpmath.zeros(len(spread))
        for a, b in np.ndindex(len(spread), len(spread)):
            product = spread[a] * spread[b]
            found[a, b] = mpmath.fsum(product[i, i] for i in range(size)) / 2
        return found

    def _difference(
        self, function: Callable[[list[Number]], list[Number]], place: int, at: list[Number]
    ) -> list[Number]:
        (found,) = self._differences(function, at, [place])
        return found

    def _linearised(self, k: int, z: list[Number], u: list[Number]) -> tuple[list[Number], Any, Any]:
        """The next z, A by the active entries, and B."""
        nx, size = self._nx, len(self._active)
        x, theta = z[:nx], z[nx:]
        by_z = self._differences(partial(self._next, k, u), z, self._active)
        by_u = self._differences(lambda p: self._model.dynamics(k, x, p, theta), u, range(len(u)))
        A, B = mpmath.zeros(size), mpmath.zeros(size, len(u))
        for i in range(nx):
            for c in range(size):
                A[i, c] = by_z[c][i]
            for c in range(len(u)):
                B[i, c] = by_u[c][i]
        for i, a in enumerate(self._moving):
            for c, b in enumerate(self._moving):
                A[nx + i, nx + c] = self._D[a, b]
        moved = [mpmath.fsum(self._D[i, c] * theta[c] for c in range(len(theta))) for i in range(len(theta))]
        return [*self._model.dynamics(k, x, u, theta), *moved], A, B

    def _measured(self, k: int, z: list[Number], P: Any) -> Any:
        columns = self._differences(partial(self._expected, k), z, self._active)
        C = mpmath.matrix(columns).T
        seen = C * P
        R = self._around.measurement(k, z[: self._nx])
        if self._second_order:
            R = R + self._moments(partial(self._expected, k), z, P)
        return P - seen.T * _inverse(seen * C.T + R) * seen

    def _stepped_back(self, K: Any, step: _Step, weights: Array) -> Any:
        free = [int(a) for a in np.flatnonzero(np.isfinite(weights))]
        n, A, H = self._nx, step.A, step.H
        before = self._weight(H) + A.T * K * A
        if not free:
            return before
        own = mpmath.matrix([[step.B[i, a] for a in free] for i in range(step.B.rows)])
        U = mpmath.matrix([[H[n + a, n + b] + (weights[a] if a == b else 0) for b in free] for a in free])
        M = own.T * K * A
        for row, a in enumerate(free):
            for i in range(n):
                M[row, i] += H[n + a, i]
        return before - M.T * _inverse(U + own.T * K * own) * M

    @staticmethod
    def _differences(
        function: Callable[[list[Number]], list[Number]], at: list[Number], places: Sequence[int]
    ) -> list[list[Number]]:
        """Slopes by some arguments; steps have the units of these."""
        return [first_difference(function, at, place, STEP * (abs(at[place]) or 1)) for place in places]


def _inverse(matrix: Any) -> Any:
    """M^-1; mpmath finds no pivot among what is not finite, and does not say so."""
    if not all(mpmath.isfinite(entry) for entry in matrix):
        raise ZeroDivisionError
    return matrix**-1
