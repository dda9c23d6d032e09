"""How long each box of the paper's Fig. 2 takes for a dual decision of Exp 2, measured on this machine."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np

from symdual.runtime.costs import cost_pointer
from symdual.runtime.planning import Planning
from symdual.runtime.problem import Problem

ROUNDS = 20


class Boxes(NamedTuple):
    """Microseconds of each box at the first step, and how many candidates a search looks at.

    `decision`: a whole one, which is the sum of `certain` and, for every candidate, of the boxes of the loop.
    `certain`: the certainty-equivalent control; `nominal` and `cost_to_go`: the plan of one candidate, and its
    covariances (one step of prediction among them) and dual cost; `search`: what else a candidate costs; `plant`: one
    step of the true system; `filter`: prediction and update of the belief.
    """

    certain: float
    nominal: float
    cost_to_go: float
    search: float
    plant: float
    filter: float
    decision: float
    candidates: int


def measure_apart(problem: Problem) -> Boxes:
    """Time the boxes in a process that compiles nothing: with numba, one that did was seen to need 3 ms more for every
    call. The first of two fresh processes leaves its compiled code in the cache, the second one counts.
    """
    for _ in range(1 if problem.package.backend == "c" else 2):
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            boxes = pool.submit(measure, problem).result()
    return boxes


def measure(problem: Problem) -> Boxes:
    """Time the boxes; calls from Python cost a few microseconds each, which the small boxes contain."""
    package, end = problem.package, problem.horizon
    planning, table, u = Planning(problem), package.search.table(), np.zeros(package.NU)
    pointers = {name: cost_pointer(problem, name, end) for name in ("ce", planning.kind)}

    def decide(name: str) -> None:
        head = (pointers[name].address, name != "ce", problem.floors[0], 0, end)
        package.decision.decide_at(*head, planning.belief, planning.workspace, table, u)

    decide(planning.kind)
    count = int(table.report[package.search.REPORT_EVALUATIONS])
    tried = np.sort(table.candidates[:count], axis=0)

    def plans(last: int) -> None:
        for row in tried:
            package.calls.plan_through(0, last, row, planning.workspace)

    def costs(rows: int) -> None:
        planning.begin()
        planning.costs(tried[:rows])

    belief, filter_workspace = planning.belief.copy(), package.filter.make_filter_workspace(planning.settings.copy())
    statistics, y = np.zeros(3), np.zeros(package.NY)
    truth = np.concatenate([problem.start, np.zeros(problem.plant.NTHETA)])
    plant_work, after, data = np.zeros(problem.plant.WORK), np.zeros(package.NX), problem.plant.numbers["data"]
    kind = planning.kind
    seconds = _best(
        {
            "certain": lambda: decide("ce"),
            "search": lambda: decide(kind),
            "plans": lambda: plans(end),
            "short plans": lambda: plans(1),
            "costs": lambda: costs(count),
            "one cost": lambda: costs(1),
            "plant": lambda: problem.plant.kernels.dynamics(0, truth, u, data, plant_work, after),
            "predict": lambda: package.filter.predict(0, belief, u, filter_workspace),
            "update": lambda: package.filter.update(1, belief, y, filter_workspace, statistics),
        }
    )
    each = {name: 1e6 * value for name, value in seconds.items()}
    # differences, in which the calls from Python cancel: of plans over T steps and one, of all candidates and one
    plan = max(each["plans"] - each["short plans"], 0.0) / count * end / (end - 1)
    whole = max(each["costs"] - each["one cost"], 0.0) / (count - 1)
    # on a busy machine parts may seem to take longer than the whole: the whole decision is what counts
    decision = max(each["search"], each["certain"])
    loop = (decision - each["certain"]) / count
    inner = min(whole, loop)
    nominal_share = min(plan / whole, 1.0) if whole > 0.0 else 0.0
    return Boxes(
        certain=each["certain"],
        nominal=inner * nominal_share,
        cost_to_go=inner * (1.0 - nominal_share),
        search=loop - inner,
        plant=each["plant"],
        filter=each["predict"] + each["update"],
        decision=decision,
        candidates=count,
    )


def _best(calls: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Processor seconds of one call of each: the best of several rounds of about five milliseconds, taken in turn.

    What other programs do meanwhile is not counted, except for what it does to the caches.

    Every round begins with a call that does not count: the others have left their own plans behind.
    """

    def seconds(call: Callable[[], object], repeats: int) -> float:
        call()
        started = time.thread_time()
        for _ in range(repeats):
            call()
        return (time.thread_time() - started) / repeats

    first = {name: min(seconds(call, 1) for _ in range(3)) for name, call in calls.items()}
    repeats = {name: max(2, int(0.005 / max(value, 1e-7))) for name, value in first.items()}
    best = dict.fromkeys(calls, np.inf)
    for _ in range(ROUNDS):
        for name, call in calls.items():
            best[name] = min(best[name], seconds(call, repeats[name]))
    return best
