"""Decisions against which something speaks: they are made, and it is said."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest

import symdual
from symdual.common.errors import DoubtWarning
from symdual.runtime.controller import Controller, controller
from symdual.runtime.doubts import RARE, doubt_of_end, doubt_of_plan, doubt_of_search, least_impossible
from symdual.runtime.info import Statistics
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Problem

# a turntable of unknown inertia, measured finely
TURNTABLE = """
import sympy as sp
from symdual import Model, Scenario, unknown
angle, speed, torque = sp.symbols("angle speed torque")
lightness = unknown("lightness", mean=1.0, variance=0.35**2)
motion = [angle + 0.1 * speed, speed + 0.1 * lightness * torque]
turntable = Model([angle, speed], [torque], motion, process_noise=1e-6, measurement_noise=1e-4)
scenario = Scenario(turntable, horizon=12, input_cost=0.1, start=[1.0, 0.0])
"""


@pytest.fixture(scope="module")
def turntable(make_quickly: Callable[[str, str], LoadedPackage]) -> Problem:
    return symdual.problem(make_quickly("turntable", TURNTABLE))


def _contradicted(one: Controller, steps: int = 6) -> list[warnings.WarningMessage]:
    """Warnings of a controller whose table turns the other way, ever faster."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", DoubtWarning)
        y, speed = np.array([1.0, 0.0]), 0.0
        for _ in range(steps):
            u = one.act(y)
            speed -= 0.6 * float(u[0])
            y = y + np.array([0.1 * speed, 0.0])
            y[1] = speed
    return [one for one in told if one.category is DoubtWarning]


def test_measurements_that_contradict_the_model_are_told_once(turntable: Problem) -> None:
    one = controller(turntable, "ce")
    told = [str(warning.message) for warning in _contradicted(one)]
    assert one.belief.mean[2] < 1.0 - 6 * 0.35
    assert sum("contradicts the belief: its normalised innovation squared" in text for text in told) == 1
    assert sum("far outside its prior: lightness = -" in text for text in told) == 1
    assert any("which was 1 +- 0.35 at first" in text for text in told)


def test_the_info_always_tells(turntable: Problem) -> None:
    one = controller(turntable, "ce")
    state = one.init()
    state, _, info = one.step(state, [1.0, 0.0])
    assert info.doubts == ()
    for k in (1, 2):
        state, _, info = one.step(state, [40.0 * k, -30.0 * k])
        assert len(info.doubts) >= 1 and f"the measurement at step {k}" in info.doubts[0]


def test_warnings_tell_nothing_where_all_is_well(turntable: Problem) -> None:
    one, x, random = controller(turntable, "dual"), np.array([1.0, 0.0]), np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(10):
            u = one.act(x + 0.01 * random.normal(size=2))
            x = np.array([x[0] + 0.1 * x[1], x[1] + 0.12 * u[0]])


@pytest.mark.parametrize("measured", [1, 2, 7, 40])
def test_what_is_called_impossible_is_rarer_than_stated(measured: int) -> None:
    """Against the tail of chi-square by quadrature in its logarithm."""
    most = least_impossible(measured)
    grid = np.linspace(most, most + 400.0, 400_001)
    density = np.exp((measured / 2 - 1) * np.log(grid) - grid / 2)
    whole = np.linspace(1e-9, most + 400.0, 2_000_001) ** 2  # finer where the density is steep
    whole = whole[whole <= most + 400.0]
    total = np.trapezoid(np.exp((measured / 2 - 1) * np.log(whole) - whole / 2), whole)
    assert np.trapezoid(density, grid) / total < RARE


def test_a_search_with_two_minima_that_cost_the_same_is_not_determined() -> None:
    candidates, limits = np.array([[-1.0], [0.0], [1.0]]), np.array([[-2.0], [2.0]])
    told = doubt_of_search(3, candidates, np.array([2.0, 5.0, 2.0]), limits, candidates[0])
    assert (
        told is not None and told.sentence == "the input at step 3 is not determined: u = (-1) costs 2, and so does (1)"
    )
    assert doubt_of_search(3, candidates, np.array([2.0, 5.0, 2.1]), limits, candidates[0]) is None
    assert doubt_of_search(3, candidates, np.array([2.0, 2.0, 5.0]), 1e3 * limits, candidates[0]) is None


def test_a_plan_that_was_cut_off_is_told() -> None:
    told = doubt_of_plan(4, limited=True)
    assert told is not None and "step 4" in told.sentence
    assert doubt_of_plan(4, limited=False) is None


def test_a_search_that_has_not_settled_is_told() -> None:
    """A descent that has arrived leaves its differences beside the best one; a candidate alone does not."""
    limits, chosen = np.array([[-2.0, -2.0], [2.0, 2.0]]), np.array([0.5, 0.5])
    corners = np.array([[0.5, 0.5], [0.5001, 0.5], [0.5, 0.5001], [-1.0, 1.0], [0.0, 0.0]])
    assert doubt_of_end(2, corners, np.array([1.0, 1.1, 1.2, 3.0, 4.0]), limits, chosen) is None
    told = doubt_of_end(2, corners[[0, 1, 3, 4]], np.array([1.0, 1.1, 3.0, 4.0]), limits, chosen)
    assert told is not None and told.kind == "limit" and "at step 2 had not settled" in told.sentence
    assert "after 4 candidates" in told.sentence
    assert doubt_of_end(2, corners[:1], np.array([1.0]), limits, chosen) is None  # nothing was searched


# where an input is squared, its opposite is worth as much
SQUARED = """
import sympy as sp
from symdual import Model, Scenario, unknown
x, u = sp.symbols("x u")
mirrored = Model([x], [u], [x + unknown("b", -0.5, 0.04) * u**2], process_noise=1e-2, measurement_noise=1e-3)
scenario = Scenario(mirrored, 8, input_cost=0.1, start=[1.0]{more})
"""


def test_an_input_whose_opposite_is_worth_as_much_is_told(make_quickly: Callable[[str, str], LoadedPackage]) -> None:
    with pytest.warns(DoubtWarning, match="the input at step 0 is not determined"):
        controller(symdual.problem(make_quickly("mirrored", SQUARED.format(more=""))), "dual").act([1.0])


def test_choices_that_are_worth_as_much_are_told(make_quickly: Callable[[str, str], LoadedPackage]) -> None:
    text = SQUARED.format(more=", choices={u: [-1.0, 0.0, 1.0]}").replace("mirrored", "chosen")
    problem = symdual.problem(make_quickly("chosen", text))
    for name in ("ce", "planned"):
        with pytest.warns(DoubtWarning, match=r"not determined: u = \(-?1\) costs .*, and so does \(-?1\)"):
            controller(problem, name).act([1.0])


def test_the_limit_of_the_plan_through_the_input_is_told(turntable: Problem) -> None:
    """Not of the certainty-equivalent plan alone."""
    one = controller(turntable, "dual")
    _, u, _ = one.step(one.init(), [1.0, 0.0])
    solver, columns = one.solver, turntable.package.dual_cost
    statistics, status = Statistics(0.0, 0.0, 2), turntable.package.nominal.CONVERGED
    assert solver.doubts(0, one.belief, statistics, u, status) == []
    won = int(solver.table.out[:, columns.OUT_COST].argmin())
    solver.table.out[won, columns.OUT_STATUS] = turntable.package.nominal.ITERATION_LIMIT
    assert [doubt.kind for doubt in solver.doubts(0, one.belief, statistics, u, status)] == ["limit"]
