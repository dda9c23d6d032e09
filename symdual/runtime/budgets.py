"""A budget in seconds for a decision of `planned`, as steps of plans: what the code counts is the same everywhere.

    seconds = fixed + each * work

`fixed` is the time before the counting begins, such as that of the certainty-equivalent plan. The first steps may take
a tenth of the time of later ones, which compute gradients and rollouts. So when the controller is made, decisions at
the prior are measured, each with twice the work of the one before, until one exceeds the budget or needs no more.
`each` is the largest that is seen, and every later decision corrects it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from time import perf_counter

from symdual.common.errors import SymdualError, SymdualWarning

CAUTION = 0.8  #: of the budget is planned with: between two looks at what was used lies the work of a plan or two
FORGETTING = 0.1  #: how fast a decision that was slow is forgotten
_TIMES = 3  # that a decision is measured


class Budget:
    """How much a decision may do in some seconds, on this machine and as far as it is known by now."""

    def __init__(self, seconds: float) -> None:
        if not 0.0 < seconds < float("inf"):
            raise SymdualError(f"the budget of a decision must be a positive number of seconds, not {seconds!r}")
        self.seconds = seconds
        self._fixed = self._each = 0.0

    @property
    def known(self) -> bool:
        """Whether something was measured already."""
        return self._each > 0.0

    @property
    def work(self) -> int:
        """The steps of plans that the next decision may go through, at least one."""
        return max(1, min(int((CAUTION * self.seconds - self._fixed) / self._each), 2**31 - 1))

    def measure(self, decide: Callable[[int], float], steps: int) -> None:
        """Find out by decisions of growing size; `decide` makes one with a limit of work and returns what was done."""
        found, limit, enough = list[tuple[float, float]](), steps, False
        while len(found) < 2 or not (enough or found[-1][0] > self.seconds):
            seconds, work = self._fastest(decide, limit)
            found.append((seconds, work))
            enough, limit = work < limit, 2 * max(limit, int(work))
        (least, little), (more, much) = found[:2]
        slope = max((more - least) / max(much - little, 1.0), 0.0)
        self._fixed = max(least - slope * little, 0.0)
        self._each = max(max((seconds - self._fixed) / work, 1e-3 * seconds / work) for seconds, work in found)
        if self._fixed > self.seconds:
            warnings.warn(
                f"the budget of {self.seconds:g} s is less than the certainty-equivalent plan alone takes here, "
                f"{self._fixed:.2g} s; decisions will take longer",
                SymdualWarning,
                stacklevel=6,
            )

    @staticmethod
    def _fastest(decide: Callable[[int], float], limit: int) -> tuple[float, float]:
        """Time and work of a decision, the least of a few: the first one loads what all need, others are disturbed."""
        found = []
        for _ in range(_TIMES):
            began = perf_counter()
            work = max(decide(limit), 1.0)
            found.append((perf_counter() - began, work))
        return min(found)

    def learn(self, seconds: float, work: float) -> None:
        """Take a decision into account: at once where it was slower than expected, little by little where not."""
        if work > 0.0:
            seen = max(seconds - self._fixed, 0.0) / work
            self._each = max(seen, self._each + FORGETTING * (seen - self._each))
