"""What passes between a controller and its caller: its state from step to step, and how a decision came about."""

from __future__ import annotations

from typing import NamedTuple

from symdual.common.arrays import Array
from symdual.common.display import shown
from symdual.common.named_arrays import NamedArray
from symdual.entries.types import Records
from symdual.runtime.belief import Belief
from symdual.runtime.options import Guard, Planned

STATUS = ("converged", "iteration limit", "stalled", "not finite", "bad argument")


class State(NamedTuple):
    """What a controller carries from step to step: the time, the belief, the input applied last, and its plans.

    `oracle`, `ce` and `planned` go on with the plans of the step before; the others make new ones (None).
    """

    k: int
    belief: Belief
    u: Array | None
    plans: Records | None = None

    def __repr__(self) -> str:
        return f"<State step {self.k}: {self.belief!r}>"

    def __str__(self) -> str:
        """What is believed, as a table."""
        return f"before step {self.k}\n{self.belief}"

    def _repr_html_(self) -> str:
        """What is believed, for notebooks."""
        return self.belief._repr_html_()


class Statistics(NamedTuple):
    """What a measurement says about the belief: its log-likelihood, normalised innovation squared, measured entries.

    `rejected` are the names of those that were too far off, where the model counts outliers.
    """

    log_likelihood: float
    nis: float
    measured: int
    rejected: tuple[str, ...] = ()


class Parts(NamedTuple):
    """The cost of the chosen input: J = certainty_equivalent + caution + probing + bonus.

    `caution` is what uncertainty would cost if nothing more were learned about theta; `probing`, at most zero at order
    1 up to rounding, is what the planned learning takes off; `bonus` is tau tr S_theta. The cost of `planned` is that
    of its look ahead, and what this sees beyond the plan stands under probing, with either sign. The exact cost is not
    a sum of these: for `exact`, all that is not certainty-equivalent stands under caution. So it does for `dual` beside
    constraints; `symdual.explain` tells them apart.
    """

    certainty_equivalent: float
    caution: float
    probing: float
    bonus: float


class Info(NamedTuple):
    """What is only looked at: how a decision came about.

    `candidates` (N, NU) are the inputs that the search looked at, in ascending order, and `costs` (N, 3) their costs:
    J, its certainty-equivalent part Jbar, and its uncertain part (Jd, or tr S_theta for `beb`). `planned_states` and
    `planned_inputs` are the nominal plan through the chosen input. `status` is that of the certainty-equivalent plan;
    `evaluations`, `fallbacks` (from order 2 to order 1) and `iterations` are sums over all candidates, and `order` is
    that of the cost that was minimised: 1 where order 2 jumped at or below the winner. `planned` tells what the
    controller of that name tried; None for the others, and where there was nothing to learn. `doubts` are sentences on
    what speaks against the decision: a measurement that cannot be, an unknown far outside its prior, a plan or an input
    that is not settled (see `symdual.runtime.doubts`); usually there are none. `rejected` are the names of the measured
    numbers that were too far off and counted less (`Model(outliers=...)`). `guard` tells what rollouts said of the
    input of `dual` under guard (`Options(guard=True)`); None where it agrees with those of `ce` and `cautious`.
    """

    k: int
    before: Belief
    after: Belief
    log_likelihood: float
    nis: float
    measured: int
    candidates: NamedArray
    costs: Array
    parts: Parts
    planned_states: NamedArray
    planned_inputs: NamedArray
    status: str
    evaluations: int
    fallbacks: int
    iterations: int
    order: int
    planned: Planned | None = None
    doubts: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    guard: Guard | None = None

    def __repr__(self) -> str:
        parts = ", ".join(f"{name} {value:.4g}" for name, value in self.parts._asdict().items() if value)
        doubts = "".join(f"; {sentence}" for sentence in self.doubts)
        return f"<Info step {self.k}: {self.status}, cost {sum(self.parts):.4g} ({parts}){doubts}>"

    def __str__(self) -> str:
        """What the decision costs and what was believed, as a table."""
        return str(shown("a decision in a terminal", self))

    def _repr_html_(self) -> str:
        """What the decision costs and what was believed, for notebooks."""
        return str(shown("a decision in a notebook", self))
