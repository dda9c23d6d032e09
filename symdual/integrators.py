"""The only list of integrators: how a model in continuous time is taken over a step in which its input holds.

Everything that asks which there are reads `INTEGRATORS`: models, what is derived, the loops of generated code, models
with many digits, the dense twins, and what is said of steps that are too long. A step, or each of its substeps, is

    X_s = x + a_s h k_{s-1},     k_s = g(X_s, u, theta, t + a_s h),     x' = x + h sum_s b_s k_s           (explicit)
    X_i = x + h sum_j A_ij g(X_j, u, theta, t + c_j h),                 x' = X_s                           (implicit)

In the explicit ones each stage starts from the slope of the one before it. That is no limit up to the fourth order, and
it is what loops over stages need to keep least (`kernels/stages.py.jinja`). The implicit ones are collocation methods
whose last time is the end of the step; `kernels/collocation.py.jinja` solves their equations by Newton's method.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Explicit:
    """A row of the list.

    Args:
        name: what a model is told; title: what it is called in text.
        order: the power of the step with which its error in a given time falls.
        shift, share: a and b.
        limit: how large a decaying rate times the step may be before it grows instead.
    """

    name: str
    title: str
    order: int
    shift: tuple[Fraction, ...]
    share: tuple[Fraction, ...]
    limit: float

    @property
    def stages(self) -> int:
        """How often a substep evaluates the right-hand side."""
        return len(self.share)

    @property
    def denominator(self) -> int:
        """The common one of all shares."""
        return math.lcm(*(share.denominator for share in self.share))

    @property
    def numerators(self) -> tuple[int, ...]:
        """Shares times their common denominator."""
        return tuple(int(share * self.denominator) for share in self.share)


@dataclass(frozen=True)
class Implicit:
    """A row of the list whose stages are found together; it has no limit.

    Args:
        name, title, order: as of the others.
        polynomial: the coefficients, highest first, of the polynomial whose zeros are the times of the stages.
        nodes: these times c, the last of them 1; matrix: A, the integrals of Lagrange's polynomials up to each time.
        corrections: how many Newton's method makes at most; contraction: by which each is smaller than the one before;
            converged: the share of a state that the last one may have; newborn: how many times larger than a state a
            correction may be and still be compared with the one before.
        more_parts: than substeps, into which a step is divided at most; shortest: share of a substep.
    """

    name: str
    title: str
    order: int
    polynomial: tuple[int, ...]
    nodes: tuple[float, ...]
    matrix: tuple[tuple[float, ...], ...]
    limit: float = math.inf
    corrections: int = 12
    contraction: float = 0.1
    converged: float = 1e-12
    newborn: float = 1e6
    more_parts: int = 60
    shortest: float = 2.0**-14

    @property
    def stages(self) -> int:
        """How many there are in a part of a step."""
        return len(self.nodes)

    @property
    def extension(self) -> tuple[tuple[float, ...], ...]:
        """What the polynomial through start and stages is at the stages of the next part, if that is as long."""
        times = (0.0, *self.nodes)
        return tuple(tuple(_lagrange(times, j, 1.0 + c) for j in range(len(times))) for c in self.nodes)


Integrator = Explicit | Implicit


def _lagrange(times: tuple[float, ...], own: int, at: float) -> float:
    """The polynomial that is 1 at its own time and 0 at the others."""
    return math.prod((at - t) / (times[own] - t) for j, t in enumerate(times) if j != own)


def _parts(*numbers: int | str) -> tuple[Fraction, ...]:
    return tuple(map(Fraction, numbers))


_ROOT = math.sqrt(6.0)

INTEGRATORS: dict[str, Integrator] = {
    one.name: one
    for one in (
        Explicit("euler", "Euler's method", 1, _parts(0), _parts(1), 2.0),
        Explicit("midpoint", "the midpoint method", 2, _parts(0, "1/2"), _parts(0, 1), 2.0),
        Explicit("heun", "Heun's method", 2, _parts(0, 1), _parts("1/2", "1/2"), 2.0),
        Explicit(
            "rk4",
            "the classical Runge-Kutta method",
            4,
            _parts(0, "1/2", "1/2", 1),
            _parts("1/6", "1/3", "1/3", "1/6"),
            2.785,
        ),
        Implicit(
            "radau",
            "the Radau method of order 5",
            5,
            (10, -18, 9, -1),
            ((4 - _ROOT) / 10, (4 + _ROOT) / 10, 1.0),
            (
                ((88 - 7 * _ROOT) / 360, (296 - 169 * _ROOT) / 1800, (-2 + 3 * _ROOT) / 225),
                ((296 + 169 * _ROOT) / 1800, (88 + 7 * _ROOT) / 360, (-2 - 3 * _ROOT) / 225),
                ((16 - _ROOT) / 36, (16 + _ROOT) / 36, 1 / 9),
            ),
        ),
    )
}
