"""Combinations of unknowns that no experiment can tell apart, because no measurement depends on them.

Take unknowns and first states, zeta = (theta, x_0), at random, apply random inputs, and differentiate the expected
measurements of N steps by zeta. With 50 digits a direction v(zeta) along which none of them changes is told from one
along which they change a little. A model with such a direction is the same for all zeta on a curve, d zeta / ds = v.

A direction that has the same shape wherever it is looked at has a name:

    v_i = w_i zeta_i    a scaling: only the products zeta_i^n zeta_j^m with n w_i + m w_j = 0 can be learned
    v_i = w_i           a shift: only the sums n zeta_i + m zeta_j with n w_i + m w_j = 0 can be learned
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import mpmath
import numpy as np

from symdual.many_digits.arithmetic import DIGITS, Number
from symdual.many_digits.model import ExactModel, first_difference
from symdual.spec.system import System

DRAWS = 3
NOTHING = mpmath.mpf(10) ** -25  #: relative to the largest derivative, what is smaller is zero
LARGEST = 64  #: quantities with which this is still a matter of seconds


class Ambiguity(NamedTuple):
    """Quantities of which only combinations can be learned.

    `kind` is "never" (it shows in no measurement), "scaling", "shift" or "direction"; `weights` belong to the names;
    `combinations` are those that can be learned, in words, empty for a mere direction.
    """

    kind: str
    names: tuple[str, ...]
    weights: tuple[float, ...]
    combinations: tuple[str, ...]

    def sentence(self) -> str:
        """What it means."""
        if self.kind == "never":
            return f"{self.names[0]} shows in no measurement, whatever the experiment"
        listed = f"{', '.join(self.names[:-1])} and {self.names[-1]}"
        if self.combinations:
            return f"{listed} show only through {' and '.join(self.combinations)}: no experiment can tell them apart"
        parts = [f"{w:+.3g} {name}" for w, name in zip(self.weights, self.names, strict=True)]
        return f"{listed} cannot be told apart by any experiment: near the prior, {' '.join(parts)} changes nothing"


def ambiguities(model: System, start: Sequence[float | None]) -> tuple[Ambiguity, ...]:
    """The combinations that stay unknown in every experiment; `start` holds the first states that are known.

    A direction of first states alone (a state that never shows) is none of the unknowns' business and is left out.
    Models with more than `LARGEST` unknowns are not looked at.
    """
    random = np.random.default_rng(0)
    names = [*model.unknown_names, *(s.name for s in model.states)]
    places = [*range(len(model.unknown_names))]
    places += [len(places) + i for i, known in enumerate(start) if known is None]
    if len(places) > LARGEST:
        return ()
    draws = [_Draw(model, places, start, random) for _ in range(DRAWS)]
    directions = [draw.directions() for draw in draws]
    fewest = min(len(found) for found in directions)
    usual = [(draw, found) for draw, found in zip(draws, directions, strict=True) if len(found) == fewest]
    found = []
    for number in range(fewest):
        shapes = [(draw.values, vectors[number]) for draw, vectors in usual]
        support = [i for i, v in enumerate(shapes[0][1]) if abs(v) > mpmath.mpf(10) ** -15]
        if any(places[i] < len(model.unknown_names) for i in support):
            found.append(_named([names[places[i]] for i in support], support, shapes))
    return tuple(found)


class _Draw:
    """Random numbers for everything, and the derivatives of the measurements there."""

    def __init__(
        self, model: System, places: list[int], start: Sequence[float | None], random: np.random.Generator
    ) -> None:
        self.model, self.places = ExactModel(model), places
        self.nx, self.count = len(model.states), len(model.unknown_names)
        covariance = model.prior_covariance
        spread = np.sqrt(covariance if covariance.ndim == 1 else np.diag(covariance))
        theta = model.prior_mean + (0.3 * spread + 0.1) * random.uniform(0.5, 1.5, self.count)
        drawn = random.uniform(0.3, 1.5, self.nx)
        state = [value if known is None else known for value, known in zip(drawn, start, strict=True)]
        low = np.where(np.isfinite(model.lower), model.lower, -1.0)
        high = np.where(np.isfinite(model.upper), model.upper, low + 2.0)
        self.steps = len(places) // len(model.observation) + 3
        self.inputs = random.uniform(low, high, (self.steps, len(low)))
        usual = np.array([s.value for s in model.signals])
        self.signals = usual + np.where(usual == 0, 1.0, usual) * random.uniform(-0.5, 0.5, (self.steps, len(usual)))
        self.everything = [mpmath.mpf(float(v)) for v in (*theta, *state)]
        self.values = [self.everything[i] for i in places]

    def directions(self) -> list[list[Number]]:
        """A basis of the directions without effect, each with as few quantities as its first one needs."""
        with mpmath.workdps(DIGITS):
            return _null_space(self._derivatives())

    def _derivatives(self) -> list[list[Number]]:
        """The derivatives of all measurements by the quantities, row by row, along with those of the state."""
        state = self.everything[self.count :]
        theta = self.everything[: self.count]
        moved = [[mpmath.mpf(int(place == self.count + i)) for place in self.places] for i in range(self.nx)]
        rows = []
        for k in range(self.steps):
            point = [*state, *theta]
            self.model.set_signals(self.signals[k])
            rows += self._chain(partial(self._measured, k), point, moved)
            moved = self._chain(partial(self._next, k), point, moved)
            state = self._next(k, point)
        return rows

    def _measured(self, k: int, point: list[Number]) -> list[Number]:
        return self.model.observation(k, point[: self.nx], point[self.nx :])

    def _next(self, k: int, point: list[Number]) -> list[Number]:
        inputs = [mpmath.mpf(float(v)) for v in self.inputs[k]]
        return self.model.dynamics(k, point[: self.nx], inputs, point[self.nx :])

    def _chain(
        self, function: Callable[[list[Number]], list[Number]], point: list[Number], moved: list[list[Number]]
    ) -> list[list[Number]]:
        """d function / d quantities, through the state and directly."""
        by = [first_difference(function, point, i) for i in range(self.nx)]
        direct = {i: first_difference(function, point, self.nx + i) for i in self.places if i < self.count}
        outputs = len(by[0])
        return [
            [
                mpmath.fsum(by[i][row] * moved[i][column] for i in range(self.nx))
                + (direct[place][row] if place in direct else 0)
                for column, place in enumerate(self.places)
            ]
            for row in range(outputs)
        ]


def _null_space(rows: list[list[Number]]) -> list[list[Number]]:
    """The null space of a matrix, reduced: each vector is one for a column of its own and few others.

    Gaussian elimination with the largest pivot; columns are scaled to their largest entry first. A column without any
    entry is a vector of its own.
    """
    count = len(rows[0])
    scale = [max(abs(row[j]) for row in rows) for j in range(count)]
    matrix = [[row[j] / scale[j] if scale[j] > 0 else mpmath.mpf(0) for j in range(count)] for row in rows]
    pivots: list[tuple[int, int]] = []
    left = list(range(len(matrix)))
    for column in range(count):
        best = max(left, key=lambda i: abs(matrix[i][column]), default=None)
        if best is None or abs(matrix[best][column]) < NOTHING:
            continue
        left.remove(best)
        pivots.append((best, column))
        inverse = 1 / matrix[best][column]
        matrix[best] = [value * inverse for value in matrix[best]]
        for i in range(len(matrix)):
            factor = matrix[i][column]
            if i != best and factor != 0:
                matrix[i] = [a - factor * b for a, b in zip(matrix[i], matrix[best], strict=True)]
    taken = {column for _, column in pivots}
    found = []
    for free in (j for j in range(count) if j not in taken):
        vector = [mpmath.mpf(0)] * count
        vector[free] = mpmath.mpf(1)
        for row, column in pivots:
            value = -matrix[row][free]
            vector[column] = value if abs(value) > NOTHING else mpmath.mpf(0)
        found.append([v / s if s > 0 else v for v, s in zip(vector, scale, strict=True)])
    return found


def _named(names: list[str], support: list[int], shapes: list[tuple[list[Number], list[Number]]]) -> Ambiguity:
    if len(support) == 1:
        return Ambiguity("never", tuple(names), (1.0,), ())
    ratios = [[vector[i] / values[i] for i in support] for values, vector in shapes]
    scaling = _constant(ratios)
    if scaling is not None:
        return Ambiguity("scaling", tuple(names), tuple(map(float, scaling)), _combined(names, scaling, _product))
    shift = _constant([[vector[i] for i in support] for _, vector in shapes])
    if shift is not None:
        return Ambiguity("shift", tuple(names), tuple(map(float, shift)), _combined(names, shift, _sum))
    last = [float(shapes[-1][1][i]) for i in support]
    size = float(np.linalg.norm(last))
    return Ambiguity("direction", tuple(names), tuple(value / size for value in last), ())


def _constant(vectors: list[list[Number]]) -> list[Fraction] | None:
    """The vectors up to a factor, as simple fractions, if they are all the same."""
    first = None
    for vector in vectors:
        largest = max(vector, key=abs)
        reduced = [Fraction(float(v / largest)).limit_denominator(64) for v in vector]
        exact = [mpmath.mpf(f.numerator) / f.denominator for f in reduced]
        if any(abs(e - v / largest) > 1e-9 for e, v in zip(exact, vector, strict=True)):
            return None
        anchor = reduced[0]
        normal = [f / anchor for f in reduced]
        if first is not None and normal != first:
            return None
        first = normal
    return first


def _combined(names: list[str], weights: list[Fraction], join: Callable[..., str]) -> tuple[str, ...]:
    """One combination less than there are quantities: each other one with the first."""
    found = []
    for name, weight in zip(names[1:], weights[1:], strict=True):
        # n w_0 + m w_i = 0 with whole numbers, n positive
        ratio = -weights[0] / weight
        found.append(join((names[0], ratio.denominator), (name, ratio.numerator)))
    return tuple(found)


def _product(*factors: tuple[str, int]) -> str:
    above = [name if n == 1 else f"{name}**{n}" for name, n in factors if n > 0]
    below = [name if n == -1 else f"{name}**{-n}" for name, n in factors if n < 0]
    top = "*".join(above) or "1"
    return top + "".join(f"/{name}" for name in below)


def _sum(*terms: tuple[str, int]) -> str:
    parts = [f"{'-' if n < 0 else '+'} {name if abs(n) == 1 else f'{abs(n)}*{name}'}" for name, n in terms]
    return " ".join(parts).removeprefix("+ ")
