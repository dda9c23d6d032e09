"""An implicit step with many digits, from the derived expressions: its derivatives, with bounds on rounding.

The equations are those of `emit.collocation`. An error dr of the equations that are solved moves the stages by
J^-1 dr, and so do errors of G_x and of what stands on the right-hand sides: |J^-1| carries all bounds along.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mpmath
import numpy as np

from symdual.checks.substeps import Link, Step, add_curvature, product
from symdual.common.arrays import Array
from symdual.integrators import Implicit
from symdual.many_digits.arithmetic import EPSILON, Bounded, Number, known, plus
from symdual.many_digits.collocation import ExactPart, Part, exact_matrix

Place = Callable[[Sequence[Bounded], mpmath.mpf, Sequence[Bounded]], None]
Numbers = dict[tuple[int, int], Bounded]


class _Solved:
    """A part: its stages with bounds, and what its linear equations need."""

    def __init__(
        self,
        method: Implicit,
        link: Link,
        place: Place,
        part: Part,
        exact: ExactPart,
        start: list[Bounded],
        step: Number,
    ) -> None:
        self.nodes, matrix = exact_matrix(method, mpmath.mp.prec)
        self.n, self.s = len(start), method.stages
        self.weights = [[step * mpmath.mpf(part.share) * a for a in row] for row in matrix]  # h A
        self.times = [mpmath.mpf(part.time) + c * mpmath.mpf(part.share) for c in self.nodes]
        nothing = [known(0.0)] * self.n
        slopes, ends = list[Numbers](), list[list[Bounded]]()
        for time, state in zip(self.times, exact.stages, strict=True):
            place([known(v) for v in state], time, nothing)
            slopes.append({(a, b): link.first(a, b) for a in range(self.n) for b in range(self.n)})
            ends.append(link.ends())
        size = self.n * self.s
        system = mpmath.eye(size)
        self.doubt = np.zeros((size, size))  # of J
        for i, a, j, b in self._indices():
            own = slopes[j][a, b]
            system[i * self.n + a, j * self.n + b] -= self.weights[i][j] * own.value
            error = own.error + EPSILON * float(abs(own.value))
            self.doubt[i * self.n + a, j * self.n + b] = float(abs(self.weights[i][j])) * error
        self.inverse = system**-1
        self.carried = np.array([[float(abs(v)) for v in row] for row in self.inverse.tolist()])
        doubt = [
            start[a].error
            + EPSILON * float(abs(start[a].value) + abs(exact.stages[i][a]))
            + sum(
                float(abs(w)) * (own[a].error + EPSILON * float(abs(own[a].value)))
                for w, own in zip(row, ends, strict=True)
            )
            for i, row in enumerate(self.weights)
            for a in range(self.n)
        ]
        errors = self.carried @ np.array(doubt)
        self.stages = [
            [Bounded(v, float(errors[i * self.n + a])) for a, v in enumerate(state)]
            for i, state in enumerate(exact.stages)
        ]

    def _indices(self) -> list[tuple[int, int, int, int]]:
        own, states = range(self.s), range(self.n)
        return [(i, a, j, b) for i in own for a in states for j in own for b in states]

    def solution(self, right: list[Bounded], transposed: bool = False) -> list[Bounded]:
        """x of J x = b, or of J' x = b."""
        inverse = self.inverse.T if transposed else self.inverse
        carried, doubt = (self.carried.T, self.doubt.T) if transposed else (self.carried, self.doubt)
        found = inverse * mpmath.matrix([b.value for b in right])
        sizes: Array = np.array([float(abs(v)) for v in found])
        own = np.array([b.error + EPSILON * float(abs(b.value)) for b in right])
        errors = carried @ (own + doubt @ sizes) + EPSILON * sizes
        return [Bounded(v, float(e)) for v, e in zip(found, errors, strict=True)]


def implicit(
    method: Implicit,
    link: Link,
    place: Place,
    parts: Sequence[tuple[Part, ExactPart]],
    x: Sequence[Bounded],
    costate: Sequence[Bounded],
    columns: Sequence[int],
    step: Number,
) -> Step:
    """Go through all parts and back. `place` sets state, time within the step and costate; states come first."""
    n = len(x)
    states, others, nothing = range(n), [c for c in columns if c >= n], [known(0.0)] * n
    here, tangent = list(x), {(i, c): known(float(i == c)) for i in states for c in columns}
    passed = list[tuple[_Solved, list[Numbers]]]()
    for part, exact in parts:
        one = _Solved(method, link, place, part, exact, here, step)
        free = list[Numbers]()
        for time, state in zip(one.times, one.stages, strict=True):
            place(state, time, nothing)
            free.append({(a, c): link.first(a, c) for a in states for c in others})
        Z = [Numbers() for _ in one.stages]
        for c in columns:
            right = [
                plus(
                    [tangent[a, c], *(product(known(w), own[a, c]) for w, own in zip(row, free, strict=True) if c >= n)]
                )
                for row in one.weights
                for a in states
            ]
            for place_of, value in enumerate(one.solution(right)):
                Z[place_of // n][place_of % n, c] = value
        passed.append((one, Z))
        here, tangent = one.stages[-1], Z[-1]
    hessians: dict[tuple[int, int], list[Bounded]] = {(a, b): [] for a in columns for b in columns if a <= b}
    lam = list(costate)
    for one, Z in reversed(passed):
        mu = one.solution([known(0.0)] * (n * (one.s - 1)) + lam, transposed=True)
        lam = [plus([mu[i * n + a] for i in range(one.s)]) for a in states]
        for j, (time, state) in enumerate(zip(one.times, one.stages, strict=True)):
            nu = [plus([product(known(one.weights[i][j]), mu[i * n + a]) for i in range(one.s)]) for a in states]
            place(state, time, nu)
            add_curvature(hessians, link, Z[j], n, columns)
    second = {pair: plus(terms) if terms else known(0.0) for pair, terms in hessians.items()}
    return Step(here, tangent, second | {(b, a): value for (a, b), value in second.items()})
