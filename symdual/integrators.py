"""The only list of integrators: how a model in continuous time is taken over a step in which its input holds.

Everything that asks which there are reads `INTEGRATORS`: models, what is derived, the loops of generated code, models
with many digits, the dense twins, and what is said of steps that are too long. A step, or each of its substeps, is

    X_s = x + a_s h k_{s-1},     k_s = g(X_s, u, theta, t + a_s h),     x' = x + h sum_s b_s k_s

so each stage starts from the slope of the one before it. That is no limit up to the fourth order, and it is what loops
over stages need to keep least. `kernels/stages.py.jinja` has these loops.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Integrator:
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


def _parts(*numbers: int | str) -> tuple[Fraction, ...]:
    return tuple(map(Fraction, numbers))


INTEGRATORS = {
    one.name: one
    for one in (
        Integrator("euler", "Euler's method", 1, _parts(0), _parts(1), 2.0),
        Integrator("midpoint", "the midpoint method", 2, _parts(0, "1/2"), _parts(0, 1), 2.0),
        Integrator("heun", "Heun's method", 2, _parts(0, 1), _parts("1/2", "1/2"), 2.0),
        Integrator(
            "rk4",
            "the classical Runge-Kutta method",
            4,
            _parts(0, "1/2", "1/2", 1),
            _parts("1/6", "1/3", "1/3", "1/6"),
            2.785,
        ),
    )
}
