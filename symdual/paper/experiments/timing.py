"""How long each box of the paper's Fig. 2 takes for a dual decision of Exp 2, measured on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from symdual.runtime.controller import cost_kind, cost_pointer, cost_settings
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
    package, numbers, end = problem.package, problem.package.numbers, problem.horizon
    noise = (numbers["process_noise"], numbers["measurement_noise"], numbers["transition"], numbers["drift"])
    cost = (problem.state_cost, problem.input_cost, problem.reference, problem.bounds, numbers["data"])
    spaces = package.decision.workspace(end)
    work, small, wide, candidates, _, report = spaces
    u = np.zeros(package.NU)
    kind = cost_kind(problem, "dual", 1, end)
    pointers = {name: cost_pointer(problem, name) for name in ("certain", kind)}
    settings = cost_settings(problem, "dual")

    def decide(name: str) -> None:
        head = (pointers[name], name != "certain", problem.floors[0], 0, end, *problem.prior[:2])
        package.decision.decide(*head, *noise, *cost, settings, *spaces, u)

    decide(kind)
    count = int(report[package.decision.REPORT_EVALUATIONS])
    table = np.sort(candidates[:count], axis=0)
    out = np.zeros((count, package.dual_cost.OUT))
    evaluate = getattr(package.dual_cost, f"dual_costs_{kind}")
    nominal = package.nominal

    def begin() -> None:
        nominal.begin(0, end, problem.prior.mean, numbers["transition"], *cost, work, small, wide)

    def plans() -> None:
        begin()
        for row in table:
            nominal.nominal(0, end, row, *cost, settings, work, small, wide)

    def costs() -> None:
        begin()
        evaluate(0, end, *problem.prior[:2], *noise, *cost, settings, table, work, small, wide, out)

    filter_work, filter_space = package.filter.workspace()
    mean, covariance = (part.copy() for part in problem.prior[:2])
    statistics, y = np.zeros(3), np.zeros(package.NY)
    truth = np.concatenate([problem.start, np.zeros(problem.plant.NTHETA)])
    plant_work, after = np.zeros(problem.plant.WORK), np.zeros(package.NX)
    move = problem.plant.plant.move

    def predict() -> None:
        process, _, transition, drift = noise
        package.filter.predict(
            0, mean, covariance, u, process, transition, drift, numbers["data"], filter_work, filter_space
        )

    def update() -> None:
        package.filter.update(1, mean, covariance, y, noise[1], numbers["data"], filter_work, filter_space, statistics)

    seconds = {
        "certain": _best(lambda: decide("certain")),
        "search": _best(lambda: decide(kind)),
        "plans": _best(plans),
        "costs": _best(costs),
        "plant": _best(lambda: move(0, truth, u, problem.plant.numbers["data"], plant_work, after)),
        "predict": _best(predict),
        "update": _best(update),
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


def _best(call: Callable[[], None]) -> float:
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
