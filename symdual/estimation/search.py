"""The maximum of log p(y | psi) + log p(psi), from several starts.

The search works in coordinates q, psi = start + T q, in which the expected curvature at the start is the unit matrix:
for entries of z_0 it is that of the filter's sensitivities with the prior, for noise that of so many independent
measurements. From each start L-BFGS-B runs with the exact gradient. From the best end Newton's steps follow, with the
curvature from differences of the exact gradient, until the decrement g' H^-1 g is zero to rounding.

Where a model has kinks (Min, Max, Abs, Piecewise) the covariance of the filter jumps as a kink passes an estimate, and
with it the likelihood. Then the best end need not be a smooth maximum; its curvature is taken from values a deviation
away.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from symdual.errors import SymdualError
from symdual.estimation.likelihood import Likelihood, Value
from symdual.estimation.quantities import Indices
from symdual.runtime.problem import Array

SPREAD = 1.0  #: further starts lie so many prior deviations away, and noise within this many powers of e
FLAT = 1e-8  #: the decrement at the end, in units of log p: what is left to gain is half of it
STEPS = 30  #: Newton's steps at most
SAME = 1e-2  #: ends within so much of log p are the same maximum
_DIFFERENCE = 1e-3  # the step of the differences, in deviations of a coordinate

Report = Callable[[str, float], None]


class Start(NamedTuple):
    """Where a search began and ended."""

    psi: Array
    objective: float
    end: Array
    end_objective: float


class Optimum(NamedTuple):
    """The end of the search.

    `objective` is log p(y | psi) + log p(psi), `value` its first term with the gradient; `curvature` (size, size) is
    minus the second derivatives of the objective, `at_bound` -1, 0 or 1 for each coordinate, `decrement` what is left;
    `kinked` says that the search ended at a jump of the objective, where no step improves it although its slope is not
    zero.
    """

    psi: Array
    value: Value
    objective: float
    first: Value
    curvature: Array
    at_bound: list[int]
    starts: tuple[Start, ...]
    decrement: float
    kinked: bool

    @property
    def converged(self) -> bool:
        """Whether nothing is left to gain."""
        return self.kinked or self.decrement < 1e-4

    @property
    def agreeing(self) -> int:
        """How many starts ended at the best maximum found from any of them."""
        best = max(start.end_objective for start in self.starts)
        return sum(start.end_objective > best - SAME for start in self.starts)


def maximise(
    likelihood: Likelihood, with_prior: bool = True, starts: int = 5, report: Report = lambda text, share: None
) -> Optimum:
    """Search for the psi that explains the recordings best."""
    return _Search(likelihood, with_prior, starts, report).run()


class _Search:
    def __init__(self, likelihood: Likelihood, with_prior: bool, starts: int, report: Report) -> None:
        self.likelihood, self.report, self.count = likelihood, report, starts
        q = likelihood.quantities
        self.mean, self.precision = q.prior_mean(), q.prior_precision()
        self.weight = 1.0 if with_prior else 0.0
        self.bounds = np.array(q.bounds).reshape(-1, 2)

    def run(self) -> Optimum:
        q = self.likelihood.quantities
        first = self.likelihood.at(q.first)
        if not math.isfinite(first.log_likelihood):
            raise SymdualError(
                "the filter breaks down with the model's own numbers: the likelihood of the recording is zero or its "
                "belief is not finite"
            )
        self.scale = self._scale(q.first)
        ends = [self._descend(start, number) for number, start in enumerate(self._starts(q.first))]
        best = max(ends, key=lambda end: end.end_objective)
        self.scale = self._scale(best.end)  # what is a deviation may be much smaller here than at the start
        best = self._descend(best.end, len(ends) - 1)
        psi, curvature, decrement, stuck = self._polish(best.end)
        kinked = stuck and decrement > 1e-4
        return Optimum(
            psi=psi,
            value=self.likelihood.at(psi),
            objective=self._objective(psi)[0],
            first=first,
            curvature=self._secant_curvature(psi) if kinked else curvature,
            at_bound=[int(b) for b in self._at_bound(psi)],
            starts=tuple(ends),
            decrement=decrement,
            kinked=kinked,
        )

    # ------------------------------------------------------------------------------------ objective

    def _objective(self, psi: Array) -> tuple[float, Array]:
        value = self.likelihood.at(psi)
        off = psi - self.mean
        pull = self.weight * self.precision @ off
        return value.log_likelihood - 0.5 * float(off @ pull), value.gradient - pull

    def _scale(self, psi: Array) -> Array:
        """T, block by block: the inverse root of the expected curvature."""
        q = self.likelihood.quantities
        scale = np.zeros((q.size, q.size))
        told = self.likelihood.information(psi)
        places = slice(0, q.places)
        expected = told + self.precision[places, places]
        # without a prior, what the recording does not tell at the start is given a share of its own size
        size = np.maximum(np.abs(np.diag(expected)), 1e-12 * max(float(np.max(np.diag(expected), initial=0.0)), 1e-12))
        root = np.linalg.cholesky(expected / np.sqrt(np.outer(size, size)) + 1e-9 * np.eye(q.places))
        scale[places, places] = np.diag(1.0 / np.sqrt(size)) @ np.linalg.inv(root).T
        noise = np.arange(q.places, q.size)
        scale[noise, noise] = 1.0 / math.sqrt(2.0 * max(self.likelihood.measured / max(len(noise), 1), 1.0))
        return scale

    # ------------------------------------------------------------------------------------ starts

    def _starts(self, first: Array) -> list[Array]:
        """The model's own numbers and others around them, always the same ones."""
        q = self.likelihood.quantities
        random = np.random.Generator(np.random.PCG64(0))
        variance = np.linalg.pinv(self.precision, hermitian=True)
        spread = np.sqrt(np.maximum(np.diag(variance), 0.0))
        spread[q.places :] = [1.0 if np.isfinite(low) else 0.0 for low, _ in q.bounds[q.places :]]
        found = [first]
        for _ in range(self.count - 1):
            step = SPREAD * spread * random.uniform(-1.0, 1.0, q.size)
            for _ in range(6):  # a model need not be finite everywhere
                psi = np.clip(first + step, self.bounds[:, 0], self.bounds[:, 1])
                if math.isfinite(self.likelihood.at(psi).log_likelihood):
                    found.append(psi)
                    break
                step *= 0.5
        return found

    def _descend(self, start: Array, number: int) -> Start:
        q = self.likelihood.quantities
        scale = self.scale
        begun = self._objective(start)[0]
        worst = abs(begun) + 1e6
        noise = np.arange(q.places, q.size)
        units = np.diag(scale)[noise]
        box = [(None, None)] * q.places + [
            ((low - p) / unit if np.isfinite(low) else None, (high - p) / unit if np.isfinite(high) else None)
            for (low, high), p, unit in zip(self.bounds[noise], start[noise], units, strict=True)
        ]
        count = 0

        def negative(point: Array) -> tuple[float, Array]:
            nonlocal count
            count += 1
            objective, gradient = self._objective(self._inside(start + scale @ point))
            self.report(f"start {number + 1} of {self.count}, {objective:.6g}", (number + 1 - 0.95**count) / self.count)
            if not math.isfinite(objective):
                return worst, np.zeros(q.size)
            return -objective, -(scale.T @ gradient)

        options = {"maxiter": 300, "ftol": 1e-10, "gtol": 1e-3, "maxcor": 20}
        found = minimize(negative, np.zeros(q.size), jac=True, method="L-BFGS-B", bounds=box, options=options)
        end = self._inside(start + scale @ found.x)
        return Start(start, begun, end, self._objective(end)[0])

    def _inside(self, psi: Array) -> Array:
        return np.clip(psi, self.bounds[:, 0], self.bounds[:, 1])

    # ------------------------------------------------------------------------------------ the end

    def _polish(self, psi: Array) -> tuple[Array, Array, float, bool]:
        """Newton's steps; the curvature at the end, the decrement that is left, and whether no step was a gain."""
        objective, gradient = self._objective(psi)
        for step in range(STEPS):
            self.report(f"at the end, step {step + 1}", 1.0)
            curvature = self._curvature(psi)
            free = self._free(psi, gradient)
            values, vectors = np.linalg.eigh(self._scaled(curvature, free))
            along = vectors.T @ (self.scale.T @ gradient)[free]
            # a direction without curvature, or with the wrong one, is followed along the gradient
            values = np.maximum(np.abs(values), 1e-6)
            decrement = float(np.sum(along**2 / values))
            if decrement < FLAT:
                break
            newton = np.zeros(len(psi))
            newton[free] = vectors @ (along / values)
            better = self._better(psi, objective, newton)
            if better is None:
                return psi, curvature, decrement, True
            psi, objective, gradient = better
        return psi, curvature, decrement, False

    def _better(self, psi: Array, objective: float, newton: Array) -> tuple[Array, float, Array] | None:
        """The first of ever shorter steps that is a gain."""
        for halvings in range(40):
            candidate = self._inside(psi + self.scale @ (0.5**halvings * newton))
            value, gradient = self._objective(candidate)
            if value > objective:
                return candidate, value, gradient
        return None

    def _scaled(self, curvature: Array, free: Indices) -> Array:
        own: Array = (self.scale.T @ curvature @ self.scale)[np.ix_(free, free)]
        return own

    def _curvature(self, psi: Array) -> Array:
        """Minus the second derivatives of the objective by psi, from differences of the exact gradient."""
        size = len(psi)
        inverse = np.linalg.inv(self.scale)
        rows = []
        for axis in range(size):
            step = _DIFFERENCE * self.scale[:, axis]
            up, down = self._objective(psi + step)[1], self._objective(psi - step)[1]
            rows.append(self.scale.T @ (down - up) / (2.0 * _DIFFERENCE))
        scaled = np.array(rows)
        return np.asarray(inverse.T @ (0.5 * (scaled + scaled.T)) @ inverse)

    def _secant_curvature(self, psi: Array) -> Array:
        """The same from values one deviation away, along each axis and each pair, which averages over jumps."""
        size, scale = len(psi), self.scale

        def drop(*axes: int) -> float:
            """By how much the objective falls, on average over both signs."""
            step = scale[:, list(axes)].sum(axis=1)
            here = self._objective(psi)[0]
            return here - 0.5 * sum(self._objective(self._inside(psi + sign * step))[0] for sign in (1.0, -1.0))

        single = np.array([drop(i) for i in range(size)])
        scaled = np.diag(2.0 * single)
        for i in range(size):
            for j in range(i):
                scaled[i, j] = scaled[j, i] = drop(i, j) - single[i] - single[j]
        values, vectors = np.linalg.eigh(scaled)
        inverse = np.linalg.inv(scale)
        # less curvature than the prior alone has would be an effect of the jumps
        scaled = (vectors * np.maximum(values, 1e-2)) @ vectors.T
        return np.asarray(inverse.T @ scaled @ inverse)

    def _at_bound(self, psi: Array) -> Indices:
        low, high = self.bounds.T
        return np.asarray((psi >= high - 1e-9).astype(int) - (psi <= low + 1e-9).astype(int))

    def _free(self, psi: Array, gradient: Array) -> Indices:
        """The coordinates that are not held by a bound."""
        at = self._at_bound(psi)
        return np.flatnonzero(~((at > 0) & (gradient > 0) | (at < 0) & (gradient < 0)))
