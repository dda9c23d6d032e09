"""Curvature of a cost and noise at a point with many digits, from the expressions as written, by differences.

squares:  H = [W N'; N U] + sum_i w_i t_i,v' t_i,v,        v = (x, u)
values:   H = [W N'; N U] + 1/2 sum_i w_i t_i,vv  without its negative eigenvalues
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np

from symdual.checks import dense
from symdual.common.arrays import Array
from symdual.many_digits.arithmetic import Number
from symdual.many_digits.model import ExactModel, first_difference, second_difference
from symdual.runtime.objective import Objective
from symdual.spec.noise import lower, places
from symdual.spec.objective import Terms
from symdual.spec.specification import Specification


def expressions(model: Specification) -> list[Any]:
    """What `ExactModel.others` has to know: entries of Q and R, terms of a step and of the end."""
    noise = () if model.noise is None else (*lower(model.noise.process), *lower(model.noise.measurement))
    asked = model.objective
    return [*noise, *(() if asked is None else (*asked.stage.expressions, *asked.final.expressions))]


class ExactSurroundings:
    """Curvature of the cost and covariances of the noise along a plan; signals (T + 1, count) change with time."""

    def __init__(
        self,
        model: Specification,
        noise: dense.Noise,
        cost: dense.Cost,
        numbers: Objective | None,
        signals: Array | None,
    ) -> None:
        self.model = ExactModel(model, expressions(model))
        self._noise, self._cost, self._numbers, self._signals = noise, cost, numbers, signals
        self._depends, self._asked = model.noise is not None, model.objective
        self._nx, self._nu, self._ny = len(model.states), len(model.inputs), len(model.observation)
        self._entries = (len(places(self._nx)), len(places(self._ny))) if self._depends else (0, 0)

    def set_signals(self, time: int) -> None:
        """Let the signals be those of a time."""
        if self._signals is not None:
            self.model.set_signals([mpmath.mpf(value) for value in self._signals[time]])

    def process(self, time: int, x: list[Number], u: list[Number]) -> Any:
        """Q of a step."""
        if not self._depends:
            return mpmath.matrix(self._noise.process.tolist())
        return _symmetric(self.model.others(time, x, u, self._no_theta())[: self._entries[0]], self._nx)

    def measurement(self, time: int, x: list[Number]) -> Any:
        """R of a measurement."""
        if not self._depends:
            return mpmath.matrix(self._noise.measurement.tolist())
        found = self.model.others(time, x, [mpmath.mpf(0)] * self._nu, self._no_theta())
        return _symmetric(found[self._entries[0] : sum(self._entries)], self._ny)

    def curvature(self, time: int, x: list[Number], u: list[Number] | None) -> Any:
        """[W N'; N U] at a point; u is None at the end."""
        n, m = self._nx, self._nu
        H = mpmath.zeros(n + m)
        blocks = [(0, 0, self._cost.state[time])]
        if u is not None:
            blocks.append((n, n, self._cost.input[time]))
            if self._numbers is not None:
                N = self._numbers.cross_cost[time]
                blocks += [(n, 0, N), (0, n, N.T)]
        for row, column, block in blocks:
            for i, c in np.ndindex(*block.shape):
                H[row + i, column + c] = mpmath.mpf(block[i, c])
        if self._asked is None or self._numbers is None:
            return H
        before = sum(self._entries)
        stage, final = self._asked.stage, self._asked.final
        if u is not None:
            return self._bent(H, time, [*x, *u], stage, before, self._numbers.cost_weights[time])
        start = before + len(stage.expressions)
        return self._bent(H, time, [*x, *[mpmath.mpf(0)] * m], final, start, self._numbers.terminal_weights)

    def _bent(self, H: Any, time: int, v: list[Number], terms: Terms, start: int, weights: Array) -> Any:
        """H with what the terms of the cost add to it."""
        if not terms:
            return H

        def values(at: list[Number]) -> list[Number]:
            found = self.model.others(time, at[: self._nx], at[self._nx :], self._no_theta())
            return found[start : start + len(weights)]

        def half(at: list[Number]) -> Number:
            return mpmath.fsum(mpmath.mpf(w) * t for w, t in zip(weights, values(at), strict=True)) / 2

        size = len(v)
        if terms.squares:
            slopes = [first_difference(values, v, i) for i in range(size)]
            for i, c in np.ndindex(size, size):
                parts = zip(weights, slopes[i], slopes[c], strict=True)
                H[i, c] += mpmath.fsum(mpmath.mpf(w) * a * b for w, a, b in parts)
            return H
        for i, c in places(size):
            bend = second_difference(half, v, i, c)
            H[i, c] += bend
            H[c, i] += bend if i != c else 0
        eigenvalues, axes = mpmath.eigsy(H)
        return axes * mpmath.diag([max(value, mpmath.mpf(0)) for value in eigenvalues]) * axes.T

    def _no_theta(self) -> list[Number]:
        return [mpmath.mpf(0)] * (len(self.model.model.unknowns) + sum(f.size for f in self.model.model.families))


def _symmetric(entries: Sequence[Number], size: int) -> Any:
    found = mpmath.zeros(size)
    for (i, j), value in zip(places(size), entries, strict=True):
        found[i, j] = found[j, i] = value
    return found
