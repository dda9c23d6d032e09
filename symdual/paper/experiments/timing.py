"""How long each box of the paper's Fig. 2 takes for a dual decision of Exp 2, measured on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from symdual.runtime.controller import cost_pointer
from symdual.runtime.planning import Planning
from symdual.runtime.problem import Problem

ROUNDS = 7


class Boxes(NamedTuple):
    """Microseconds of each box at the first step, and how many candidates a search looks at.

    `certain`: the certainty-equivalent control; `nominal` and `cost_to_go`: the plan of one candidate, and its
    covariances and dual cost; `search`: a whole decision; `plant`: one step of the true system; `predict`, `update`:
    one step of the filter.
    """

    certain: float
    nominal: float
    cost_to_go: float
    search: float
    plant: float
    predict: float
    update: float
    candidates: int


def measure(problem: Problem) -> Boxes:
    """Time the boxes; calls from Python cost a few microseconds each, which the small boxes contain."""
    package, end = problem.package, problem.horizon
    planning, table, u = Planning(problem), package.candidates.table(), np.zeros(package.NU)
    pointers = {name: cost_pointer(problem, name, end) for name in ("certain", planning.kind)}

    def decide(name: str) -> None:
        head = (pointers[name].address, name != "certain", float(problem.floors[0]), 0, end)
        package.decision.decide_at(*head, planning.belief, planning.desk, table, u)

    decide(planning.kind)
    count = int(table.report[package.candidates.REPORT_EVALUATIONS])
    tried = np.sort(table.candidates[:count], axis=0)

    def plans() -> None:
        planning.begin()
        for row in tried:
            planning.plan(row)

    def costs() -> None:
        planning.begin()
        planning.costs(tried)

    belief, tray = planning.belief.copy(), package.filter.tray(planning.task.copy())
    statistics, y = np.zeros(3), np.zeros(package.NY)
    truth = np.concatenate([problem.start, np.zeros(problem.plant.NTHETA)])
    plant_work, after = np.zeros(problem.plant.WORK), np.zeros(package.NX)
    move = problem.plant.plant.move
    kind = planning.kind
    seconds = {
        "certain": _best(lambda: decide("certain")),
        "search": _best(lambda: decide(kind)),
        "plans": _best(plans),
        "costs": _best(costs),
        "plant": _best(lambda: move(0, truth, u, problem.plant.numbers["data"], plant_work, after)),
        "predict": _best(lambda: package.filter.predict(0, belief, u, tray)),
        "update": _best(lambda: package.filter.update(1, belief, y, tray, statistics)),
    }
    each = {name: 1e6 * value for name, value in seconds.items()}
    one_plan = each["plans"] / count
    return Boxes(
        certain=each["certain"],
        nominal=one_plan,
        cost_to_go=max(each["costs"] / count - one_plan, 0.0),
        search=each["search"],
        plant=each["plant"],
        predict=each["predict"],
        update=each["update"],
        candidates=count,
    )


def _best(call: Callable[[], object]) -> float:
    """Seconds of one call: the best of several rounds of about ten milliseconds."""
    call()
    started = time.perf_counter()
    call()
    repeats = max(1, int(0.01 / max(time.perf_counter() - started, 1e-7)))
    best = np.inf
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for _ in range(repeats):
            call()
        best = min(best, (time.perf_counter() - started) / repeats)
    return float(best)
