"""A budget in seconds for a decision of `planned`, as steps of plans: what the code counts is the same everywhere.

    seconds = fixed + each * work

`fixed` is what comes before the counting begins, such as the certainty-equivalent plan. Both are measured by two
decisions at the prior when the controller is made, and `each` again at every decision that follows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from time import perf_counter

from symdual.common.errors import SymdualError, SymdualWarning

CAUTION = 0.8  #: of the budget is planned with: between two looks at what was used lies the work of a plan or two
FORGETTING = 0.1  #: how fast a decision that was slow is forgotten
_LITTLE, _MORE = 1, 20  # plans, of the two decisions that are measured
_TIMES = 3


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
        """Find out by decisions of two sizes; `decide` makes one with a limit of work and returns what was done."""
        (least, little), (most, more) = (self._fastest(decide, plans * steps) for plans in (_LITTLE, _MORE))
        self._each = max((most - least) / max(more - little, 1.0), 1e-3 * most / more)
        self._fixed = max(least - self._each * little, 0.0)
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
