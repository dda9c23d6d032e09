"""Section 6: what the text says about its table, computed from the lines that print it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from symdual.paper.case import (
    Case,
    Computed,
    Convention,
    Derivation,
    Meant,
    Printed,
    Supplies,
    Undecidable,
    Within,
)
from symdual.paper.derivations import settings
from symdual.paper.derivations.references import RUNS_DECIDE, from_lines
from symdual.paper.machine import counted
from symdual.paper.matrices import Matrix


def least_cost(system: Callable[..., Matrix], noise: Mapping[str, float], schedule: Any) -> float:
    """A lower bound of E[L] in experiment 2 for every controller: what the disturbances alone cost.

    The input reaches the position two steps later, so nobody can remove what the last two disturbances did to it:
    Var x_1 >= Q_11 and Var x_k >= (Q + A Q A')_11 from k = 2 on, with A the dynamics without slope.
    """
    still = counted([0.0, 0.0])
    columns = [system(Matrix(unit), still, Matrix(0.0), lambda i, at: 0.0).array for unit in np.eye(2)]
    a, q = np.hstack(columns), noise["Q"] * np.eye(2)
    spread = [0.0, float(q[0, 0]), float((q + a @ q @ a.T)[0, 0])]
    lightest: dict[int, float] = {}
    for first, last, value in schedule:
        for step in range(first, last + 1):
            lightest[step] = min(float(value[0][0]), lightest.get(step, math.inf))
    return sum(weight * spread[min(step, 2)] for step, weight in lightest.items())


def _bound(per_step: bool) -> Iterator[Case]:
    lines = {
        "system": Printed("6.2.system", ("x", "theta", "u", "varphi")),
        "noise": Printed("6.2.noise"),
        "schedule": Printed("6.2.weights"),
    }

    def least(system: Any, noise: Any, schedule: Any) -> Within:
        share = settings.last_step(schedule) if per_step else 1.0
        return Within({"oracle": (least_cost(system, noise, schedule) / share, math.inf)})

    yield Case(
        "Exp. 6.2, whatever the controller", {"matrix": Matrix, "table": Printed("6.5.table")}, Computed(least, lines)
    )


def _best(table: Mapping[str, Sequence[tuple[float, float]]], column: int, experiments: Sequence[int]) -> str:
    """The controller that has the lowest mean (0) or deviation (1) of those that learn, in all of these experiments."""
    learners = ("CE", "CE-BEB", "AD")
    winners = {min(learners, key=lambda name: table[name][e - 1][column]) for e in experiments}
    return winners.pop() if len(winners) == 1 else "different ones"


def _lowest_line(column: int, experiments: Sequence[int]) -> Iterator[Case]:
    function = partial(_best, column=column, experiments=experiments)
    yield Case(f"experiments {experiments}", {}, Computed(function, {"table": Printed("6.5.table")}))


def _lower_bound(table: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    winners = {min(table, key=lambda name: table[name][e][0]) for e in range(4)}
    return winners.pop() if len(winners) == 1 else "different ones"


ALL = (1, 2, 3, 4)

DERIVATIONS: dict[str, Derivation | Undecidable] = {
    "6.lower-bound": Derivation(
        "The lowest mean of every column of the table.",
        lambda: iter([Case("the table", {}, Computed(_lower_bound, {"table": Printed("6.5.table")}))]),
        remark="In the table; with an inexact model (Exp. 6.2) or nonlinear dynamics it need not be a bound.",
    ),
    "6.5.table": Derivation(
        "A line for every controller.",
        lambda: iter([Case("the table", {}, Supplies(frozenset({"Oracle", "CE", "CE-BEB", "AD"})))]),
    ),
    "6.runs": from_lines("the caption of the table", lambda runs: Meant(runs), runs=Printed("6.5.runs")),
    "6.5.runs": from_lines("the text of Section 6", lambda runs: runs, runs=Printed("6.runs")),
    "6.5.costs": Derivation(
        "A lower bound of E[L] in experiment 2 from its printed system, noise and weights: the disturbances alone.",
        partial(_bound, False),
        conventions=(Convention("the table's costs are L divided by the number of steps T", partial(_bound, True)),),
        remark="This excludes L itself for that column; it does not show that all columns have one unit.",
    ),
    "6.5.performance": Derivation("The lowest mean of those that learn.", partial(_lowest_line, 0, ALL)),
    "6.5.low-variance": Derivation(
        "The lowest standard deviation of those that learn.",
        partial(_lowest_line, 1, ALL),
        conventions=(
            Convention(
                "it is meant of Exp. 6.1, 6.2 and 6.4; in Exp. 6.3 that of CE is lower",
                partial(_lowest_line, 1, (1, 2, 4)),
            ),
        ),
    ),
    "6.5.instabilities": Undecidable(RUNS_DECIDE),
}
