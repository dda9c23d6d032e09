"""A budget for each decision of `planned`: the same work on every machine, and seconds that become such a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symdual
from symdual.common.errors import SymdualError, SymdualWarning
from symdual.runtime import budgets
from symdual.runtime.budgets import Budget
from symdual.runtime.controller import Controller, load_controller
from symdual.runtime.info import Info
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.options import Options, Planned
from symdual.runtime.problem import Problem

TROLLEY = """
import sympy as sp
from symdual import Model, Scenario, unknown
x, v, u = sp.symbols("x v u")
b, c = unknown("b", mean=0.3, variance=1.0), unknown("c", mean=0.2, variance=0.1)
trolley = Model(
    [x, v], [u], [x + 0.3 * v, v + 0.3 * (b * u - c * sp.sin(v))], process_noise=1e-3, measurement_noise=1e-2,
    observation=[x], bounds={u: (-2, 2)},
)
scenario = Scenario(trolley, horizon=12, start=[0.3, 0.0], state_cost=[1.0, 0.1], input_cost=0.05)
"""


@pytest.fixture(scope="module")
def trolley(make_quickly: Callable[[str, str], LoadedPackage]) -> Problem:
    return symdual.problem(symdual.load(make_quickly("trolley", TROLLEY).folder), parts=["planned"])


def decided(problem: Problem, **options: Any) -> tuple[Info, Planned]:
    """The first decision with such options."""
    planned = Controller(problem, "planned", options=Options(**options))
    info = planned.step(planned.init())[2]
    assert info.planned is not None
    return info, info.planned


def test_a_budget_that_is_not_used_up_changes_nothing(trolley: Problem) -> None:
    free, told = decided(trolley)
    assert not told.cut
    ample, again = decided(trolley, work=told.work + 1)
    assert not again.cut and again.work == told.work
    assert free.planned_inputs.tobytes() == ample.planned_inputs.tobytes()
    assert decided(trolley, work=told.work - 1)[1].cut


def test_it_ends_where_the_budget_does_with_the_best_so_far(trolley: Problem) -> None:
    """Work stays near its limit, and more of it makes a better plan, from the certainty-equivalent one on."""
    costs = []
    for work in (1, 400, 800, 1200):
        info, told = decided(trolley, work=work, samples=0)
        assert told.cut and work <= told.work <= work + 50 * trolley.horizon
        assert "used up after" in str(info)
        costs.append(told.starts[told.won].improved)
        assert costs[-1] <= told.starts[0].cost  # J of the certainty-equivalent plan
        assert np.isfinite(info.planned_inputs).all() and np.abs(info.planned_inputs).max() <= 2.0
    assert costs == sorted(costs, reverse=True) and costs[-1] < costs[0]
    same = [decided(trolley, work=400)[0].planned_inputs.tobytes() for _ in range(2)]
    assert same[0] == same[1]


def test_rollouts_are_as_many_as_the_budget_allows(trolley: Problem) -> None:
    trolley = trolley.changed(prior_mean={"b": 0.1})  # where `planned` is neither `ce` nor `cautious`
    without = decided(trolley, samples=0)[1].work
    everything = decided(trolley)[1]
    assert everything.race
    few = decided(trolley, work=without + (everything.work - without) // 2)[1]
    assert few.race and few.cut and few.work < everything.work
    assert decided(trolley, work=without + 1)[1].race == ()


def test_seconds_become_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that takes 2 ms, and 1 microsecond for each step of a plan."""
    clock = [0.0]

    def decide(work: int) -> float:
        clock[0] += 2e-3 + 1e-6 * work
        return work

    monkeypatch.setattr(budgets, "perf_counter", lambda: clock[0])
    budget = Budget(0.01)
    budget.measure(decide, steps=20)
    assert budget.work == pytest.approx(1e6 * (0.8 * 0.01 - 2e-3), abs=1)
    budget.learn(2e-3 + 4e-6 * 100, 100)  # four times as slow: at once
    assert budget.work == pytest.approx(1500, abs=1)
    budget.learn(2e-3 + 1e-6 * 100, 100)  # back again: little by little
    assert 1500 < budget.work < 2000
    with pytest.warns(SymdualWarning, match="less than the certainty-equivalent plan alone takes here, 0.002 s"):
        Budget(1e-3).measure(decide, steps=20)


def test_steps_that_take_longer_later_are_measured_up_to_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """A microsecond for each of the first thousand steps, ten for each later one, and no more than 20000 are needed."""
    clock, asked = [0.0], list[int]()

    def decide(limit: int) -> float:
        asked.append(limit)
        work = min(max(limit, 500), 20000)
        clock[0] += 1e-3 + 1e-6 * min(work, 1000) + 1e-5 * max(work - 1000, 0)
        return work

    monkeypatch.setattr(budgets, "perf_counter", lambda: clock[0])
    for seconds, most in ((0.02, 4000), (1.0, 40000)):
        asked.clear()
        budget = Budget(seconds)
        budget.measure(decide, steps=20)
        assert max(asked) <= most
        began = clock[0]
        decide(budget.work)
        assert 0.2 * min(seconds, 0.19) < clock[0] - began <= budgets.CAUTION * seconds


def test_a_controller_with_a_budget(trolley: Problem, tmp_path: Any) -> None:
    own = symdual.controller(trolley, "planned", budget=10.0)
    assert own.act()["u"] == symdual.controller(trolley, "planned").act()["u"]  # ample
    limit = own.solver.settings["work"][0]
    own.change(horizon=10)
    own.act([0.9])
    assert own.budget == 10.0 and own.solver.settings["work"][0] != limit  # it goes on learning
    own.save(tmp_path / "own.npz")
    assert load_controller(tmp_path / "own.npz", symdual.load, trolley.package).budget == 10.0
    with pytest.raises(SymdualError, match='the controller "dual" has no budget'):
        symdual.controller(trolley, "dual", budget=0.01)
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(SymdualError, match="must be a positive number of seconds"):
            symdual.controller(trolley, "planned", budget=wrong)
