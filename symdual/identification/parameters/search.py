"""The maximum of the objective, from several starts.

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
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.identification.likelihood import Optimum, Report, unreported
from symdual.identification.noise import Indices
from symdual.identification.parameters.objective import Objective
from symdual.identification.standard_errors import curvature, unscaled

FLAT = 1e-8  #: the decrement at the end, in units of log p: what is left to gain is half of it
RESTING = 1e-4  #: a decrement below this is an end
STEPS = 30  #: Newton's steps at most
ROUNDS = 12  #: how often the slope of -1/2 log|M| is taken anew at most
SAME = 1e-2  #: ends within so much of the objective are the same maximum
_DIFFERENCE = 1e-3  # the step of the differences, in deviations of a coordinate


class Start(NamedTuple):
    """Where a search ended, and the objective there."""

    end: Array
    objective: float


@dataclass(frozen=True, eq=False)
class ParameterOptimum(Optimum):
    """The end of the search; `decrement` is what is left.

    `kinked` says that the search ended at a jump of the objective, where no step improves it although its slope is not
    zero.
    """

    decrement: float
    kinked: bool


def maximise(
    objective: Objective, starts: int = 5, report: Report = unreported, begin: Array | None = None
) -> ParameterOptimum:
    """Search for the psi that explains the recordings best, from the model's own numbers on or from `begin`."""
    return _Search(objective, starts, report).run(objective.evidence.quantities.first if begin is None else begin)


class _Search:
    def __init__(self, objective: Objective, starts: int, report: Report) -> None:
        self.objective, self.report, self.count = objective, report, starts
        self.evidence = objective.evidence
        self.quantities = objective.evidence.quantities
        self.bounds = np.array(self.quantities.bounds).reshape(-1, 2)
        self.scale = np.eye(self.quantities.size)

    def run(self, begin: Array) -> ParameterOptimum:
        first = self.evidence.at(begin)
        if not math.isfinite(first.log_likelihood):
            raise SymdualError(
                "the filter breaks down with the model's own numbers: the likelihood of the recording is zero or its "
                "belief is not finite"
            )
        self.scale = self._scale(begin)
        ends = [self._descend(start, number) for number, start in enumerate(self._starts(begin))]
        best = max(ends, key=lambda end: end.objective)
        psi = best.end
        self.scale = self._scale(psi)  # what is a deviation may be much smaller here than at the start
        psi = self._descend(psi, len(ends) - 1).end
        psi, M, decrement, stuck = self._at_rest(psi)
        kinked = stuck and decrement > RESTING
        return ParameterOptimum(
            psi=psi,
            value=self.evidence.at(psi),
            first=first,
            curvature=self._secant_curvature(psi) if kinked else M,
            at_bound=[int(b) for b in self._at_bound(psi)],
            searches=len(ends),
            agreeing=sum(end.objective > best.objective - SAME for end in ends),
            converged=kinked or decrement < RESTING,
            decrement=decrement,
            kinked=kinked,
        )

    def _at_rest(self, psi: Array) -> tuple[Array, Array, float, bool]:
        """Newton's steps and the slope of -1/2 log|M| in turn; curvature, decrement, and whether no step was a gain."""
        if not self.objective.counts_volume:
            return self._polish(psi)
        for number in range(ROUNDS):
            self.report(f"noise, round {number + 1}", 1.0)
            self.objective.volume_slope = self.objective.volume_slope_at(psi)
            before = psi
            psi, M, decrement, stuck = self._polish(psi)
            if np.max(np.abs(psi - before)[self.quantities.places :]) < 1e-4:
                break
        return psi, M - self.objective.volume_curvature(psi), decrement, stuck

    # ------------------------------------------------------------------------------------ coordinates

    def _scale(self, psi: Array) -> Array:
        """T, block by block: the inverse root of the expected curvature."""
        q = self.quantities
        scale = np.zeros((q.size, q.size))
        expected = self.objective.expected_curvature(psi)
        # what neither the recordings nor a prior tell at the start is given a share of the size of the others
        largest = max(float(np.max(np.diag(expected), initial=0.0)), 1e-12)
        unit = 1.0 / np.sqrt(np.maximum(np.diag(expected), 1e-12 * largest))
        root = np.linalg.cholesky(expected * np.outer(unit, unit) + 1e-9 * np.eye(q.places))
        scale[: q.places, : q.places] = unit[:, None] * np.linalg.inv(root).T
        noise = np.arange(q.places, q.size)
        scale[noise, noise] = 1.0 / math.sqrt(2.0 * max(self.evidence.measured / max(len(noise), 1), 1.0))
        return scale

    def _inside(self, psi: Array) -> Array:
        return np.clip(psi, self.bounds[:, 0], self.bounds[:, 1])

    # ------------------------------------------------------------------------------------ starts

    def _starts(self, first: Array) -> list[Array]:
        """The model's own numbers and others around them, always the same ones.

        Unknowns and first states up to a prior deviation away, standard deviations of noise up to a factor of e.
        """
        q = self.quantities
        random = np.random.Generator(np.random.PCG64(0))
        spread = np.sqrt(np.maximum(np.diag(np.linalg.pinv(self.objective.precision, hermitian=True)), 0.0))
        spread[q.places :] = [1.0 if np.isfinite(low) else 0.0 for low, _ in q.bounds[q.places :]]
        found = [first]
        for _ in range(self.count - 1):
            step = spread * random.uniform(-1.0, 1.0, q.size)
            for _ in range(6):  # a model need not be finite everywhere
                psi = self._inside(first + step)
                if math.isfinite(self.evidence.at(psi).log_likelihood):
                    found.append(psi)
                    break
                step *= 0.5
        return found

    def _descend(self, start: Array, number: int) -> Start:
        q, scale = self.quantities, self.scale
        begun = self.objective.at(start)[0]
        units = np.diag(scale)[q.places :]
        low, high = (self.bounds[q.places :].T - start[q.places :]) / units
        box = [(None, None)] * q.places + [
            (a if np.isfinite(a) else None, b if np.isfinite(b) else None) for a, b in zip(low, high, strict=True)
        ]
        count = 0

        def negative(point: Array) -> tuple[float, Array]:
            nonlocal count
            count += 1
            value, gradient = self.objective.at(self._inside(start + scale @ point))
            self.report(f"start {number + 1} of {self.count}, {value:.6g}", (number + 1 - 0.95**count) / self.count)
            # a wall, where the filter breaks down: the line search turns back
            return (-value, -(scale.T @ gradient)) if math.isfinite(value) else (abs(begun) + 1e6, np.zeros(q.size))

        options = {"maxiter": 300, "ftol": 1e-10, "gtol": 1e-3, "maxcor": 20}
        found = minimize(negative, np.zeros(q.size), jac=True, method="L-BFGS-B", bounds=box, options=options)
        end = self._inside(start + scale @ found.x)
        return Start(end, self.objective.at(end)[0])

    # ------------------------------------------------------------------------------------ the end

    def _polish(self, psi: Array) -> tuple[Array, Array, float, bool]:
        """Newton's steps; the curvature at the end, the decrement that is left, and whether no step was a gain."""
        objective, gradient = self.objective.at(psi)
        for step in range(STEPS):
            self.report(f"at the end, step {step + 1}", 1.0)
            M = curvature(lambda at: self.objective.at(at)[1], psi, _DIFFERENCE, self.scale)
            free = self._free(psi, gradient)
            values, vectors = np.linalg.eigh((self.scale.T @ M @ self.scale)[np.ix_(free, free)])
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
                return psi, M, decrement, True
            psi, objective, gradient = better
        return psi, M, decrement, False

    def _better(self, psi: Array, objective: float, newton: Array) -> tuple[Array, float, Array] | None:
        """The first of ever shorter steps that is a gain."""
        for halvings in range(40):
            candidate = self._inside(psi + self.scale @ (0.5**halvings * newton))
            value, gradient = self.objective.at(candidate)
            if value > objective:
                return candidate, value, gradient
        return None

    def _secant_curvature(self, psi: Array) -> Array:
        """The same from values one deviation away, along each axis and each pair, which averages over jumps."""
        size, here = len(psi), self.objective.at(psi)[0]

        def drop(*axes: int) -> float:
            """By how much the objective falls, on average over both signs."""
            step = self.scale[:, list(axes)].sum(axis=1)
            return here - 0.5 * sum(self.objective.at(self._inside(psi + sign * step))[0] for sign in (1.0, -1.0))

        single = np.array([drop(i) for i in range(size)])
        scaled = np.diag(2.0 * single)
        for i in range(size):
            for j in range(i):
                scaled[i, j] = scaled[j, i] = drop(i, j) - single[i] - single[j]
        values, vectors = np.linalg.eigh(scaled)
        # hardly any curvature, or the wrong one, would be an effect of the jumps
        return unscaled((vectors * np.maximum(values, 1e-2)) @ vectors.T, self.scale)

    def _at_bound(self, psi: Array) -> Indices:
        low, high = self.bounds.T
        return np.asarray((psi >= high - 1e-9).astype(int) - (psi <= low + 1e-9).astype(int))

    def _free(self, psi: Array, gradient: Array) -> Indices:
        """The coordinates that are not held by a bound."""
        at = self._at_bound(psi)
        return np.flatnonzero(~((at > 0) & (gradient > 0) | (at < 0) & (gradient < 0)))
