"""Numbers that change while a controller runs: it goes on as one that was made with them, and forgets nothing."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symdual
from symdual.common.errors import SymdualError
from symdual.runtime.info import State
from symdual.runtime.loading import LoadedPackage

# a level that is fed and leaks; the limit is a constant, the leak a signal
BASIN = """
import sympy as sp
from symdual import Model, Scenario, constant, signal, unknown
level, flow, inflow = sp.symbols("level flow inflow")
rim, leak = constant("rim", 1.6), signal("leak", 0.1)
gain = unknown("gain", 1.0, 0.2)
basin = Model(
    [level, flow],
    [inflow],
    [0.9 * level + 0.3 * flow - leak, 0.5 * flow + gain * sp.sin(inflow)],
    process_noise=1e-3,
    measurement_noise=1e-3,
    bounds={inflow: (-1.5, 1.5)},
)
scenario = Scenario(
    basin,
    8,
    state_cost=[1.0, 0.1],
    input_cost=0.1,
    start=[1.5, 0.5],
    reference=[1.9, 0.0],
    constraints=[level <= rim],
    signals={leak: 0.1},
)
"""
CHANGES: list[dict[str, Any]] = [
    {"reference": {"level": 0.3}},
    {"state_cost": {"level": 5.0}, "input_cost": 0.5},
    {"bounds": {"inflow": (-0.2, 0.3)}},
    {"constants": {"rim": 1.52}, "constraint_weight": 40.0},
    {"probability": 0.6},
    {"signals": {"leak": 0.4}},
    {"horizon": 5},
    {"horizon": 14},
    {"window": 3},
]


@pytest.fixture(scope="module")
def basin(make_quickly: Callable[[str, str], LoadedPackage]) -> LoadedPackage:
    return make_quickly("basin", BASIN)


@pytest.mark.parametrize("numbers", CHANGES, ids=lambda numbers: "-".join(numbers))
def test_it_decides_as_one_that_was_made_with_these_numbers(basin: LoadedPackage, numbers: dict[str, Any]) -> None:
    problem = symdual.problem(basin)
    running, same = symdual.controller(problem, "dual"), symdual.controller(problem, "dual")
    for y in ([1.5, 0.5], [1.6, 0.6]):
        running.act(y)
        same.act(y)
    before = running.problem
    running.change(**numbers)
    assert before is problem  # which belongs to others, too
    y, state = [1.7, 0.6], running._live[0]
    other = {name: value for name, value in numbers.items() if name != "window"}
    made = symdual.controller(problem.changed(**other), "dual", window=numbers.get("window"))
    expected = made.step(State(2, state.belief, state.u), y)[1]
    assert running.act(y).tobytes() == expected.tobytes() != same.act(y).tobytes()


@pytest.mark.parametrize("name", ["ce", "planned", "thompson"])
def test_plans_follow_a_horizon_that_grows_or_shrinks(basin: LoadedPackage, name: str) -> None:
    running = symdual.controller(symdual.problem(basin), name, options=symdual.Options(samples=0, starts=1))
    running.act([0.0, 0.0])
    for horizon in (20, 4, 11):
        running.change(horizon=horizon)
        u = running.act([0.5, 0.1])
        fresh = symdual.controller(running.problem, name, options=running.options)
        assert running.problem.horizon == horizon and np.isfinite(u).all() and abs(u[0]) <= 1.5
        if name == "ce":  # one valley: with the plan of before, or without
            again = fresh.choose(State(running.k - 1, running.belief, None))[1]
            assert u == pytest.approx(again, abs=1e-3)
    with pytest.raises(SymdualError, match="the horizon cannot be 3: the controller is at step 4"):
        running.change(horizon=3)
    assert running.problem.horizon == 11


def test_what_was_said_of_signals_is_kept_unless_it_is_said_anew(basin: LoadedPackage) -> None:
    running = symdual.controller(symdual.problem(basin), "dual", window=4)
    for k in range(12):
        running.act([0.4, 0.1], signals={"leak": 0.1 + 0.01 * k})
    running.change(reference={"level": 0.7})
    told, y = symdual.controller(running.problem, "dual", window=4), [0.5, 0.1]
    told.step(State(11, running.belief, None), signals={"leak": 0.21})
    state = running._live[0]
    assert running.act(y) == told.step(State(12, state.belief, state.u), y)[1]
    running.change(signals={"leak": 0.9})
    told, state = (
        symdual.controller(symdual.problem(basin).changed(reference={"level": 0.7}), "dual", window=4),
        running._live[0],
    )
    told.step(State(12, state.belief, None), signals={"leak": 0.9})
    assert running.act(y) == told.step(State(13, state.belief, state.u), y)[1]


def test_an_input_costs_the_same_for_ever(basin: LoadedPackage) -> None:
    running = symdual.controller(symdual.problem(basin), "ce", window=4)
    for _ in range(14):  # the room of costs grows meanwhile
        running.act()
    costs = running.solver.workspace.stage_costs["U"]
    assert len(costs) > 14 and np.all(costs[:-1] == 0.1)


def test_what_is_refused_changes_nothing(basin: LoadedPackage) -> None:
    running, same = (symdual.controller(symdual.problem(basin), "dual") for _ in range(2))
    wrong: list[dict[str, Any]] = [
        {"reference": {"lvl": 1.0}},
        {"bounds": {"inflow": (1.0, -1.0)}},
        {"input_cost": 0.0, "bounds": {"inflow": (None, None)}},
        {"window": 0},
        {"target": 1.0},
    ]
    for numbers in wrong:
        with pytest.raises(SymdualError):
            running.change(**numbers)
    with pytest.raises(SymdualError, match=r'has no argument "target", only .*, constants, .*, window'):
        running.change(target=1.0)
    assert running.problem is same.problem or running.problem.bounds.tolist() == [[-1.5], [1.5]]
    assert running.act([0.1, 0.0]) == same.act([0.1, 0.0])


def test_a_constant_changes_with_what_a_gaussian_process_remembers(
    make_quickly: Callable[[str, str], LoadedPackage],
) -> None:
    text = """
        import sympy as sp
        from symdual import Model, Scenario, constant, features
        x, u = sp.symbols("x u")
        wind = features.gaussian_process("wind", x, memory=6)
        pushed = Model([x], [u], [x + wind + constant("push", 1.0) * u], process_noise=0.1, measurement_noise=0.01)
        scenario = Scenario(pushed, horizon=8, input_cost=0.1, reference=1.0)
    """
    running = symdual.controller(symdual.problem(make_quickly("pushed", textwrap.dedent(text))), "ce")
    running.act([0.0])
    running.act([0.5])
    before = running.belief
    running.change(constants={"push": -1.0})
    assert before.memory is not None and running.belief.memory is not None
    assert np.sum(before.memory != running.belief.memory) == 1
    again = symdual.controller(symdual.problem(running.problem.package).changed(constants={"push": -1.0}), "ce")
    state = State(2, running.belief, running._live[0].u)
    assert running.act([0.6]) == pytest.approx(again.step(state, [0.6])[1], abs=1e-5)
