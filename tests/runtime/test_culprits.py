"""Which function of a model left the numbers, as `act` tells it; through C, which compiles in no time."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import symdual
from symdual import Model, Scenario, SymdualError, unknown
from symdual.common.errors import SymdualWarning
from symdual.runtime.belief import Belief
from symdual.runtime.culprits import fault_of_model
from symdual.runtime.problem import Problem

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
level, height, pump = sp.symbols("level height pump")
outflow = unknown("outflow", mean=0.5, variance=0.01)


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """A vessel with a hole, and a float whose sensor is a logarithm."""
    flow = level + 0.1 * (pump - outflow * sp.sqrt(level))
    model = Model(
        [level, height], [pump], [flow, 0.5 * height + level], observation=[level, sp.log(height)], name="vessel"
    )
    scenario = Scenario(model, 5, state_cost=[1.0, 0.0], input_cost=0.1, start=[1.0, 2.0], reference=[1.0, 2.0])
    return symdual.problem(scenario, folder=tmp_path_factory.mktemp("vessel"), backend="c")


def test_act_names_the_equation_the_variable_and_the_point(problem: Problem) -> None:
    ce = symdual.controller(problem, "ce")
    ce.reset(Belief(np.array([0.0, 2.0, 0.5]), np.diag([0.1, 0.1, 0.01])))
    with pytest.warns(SymdualWarning, match='at step 0 could not be improved: the derivative .* "level" by "level"'):
        u = ce.act()
    said = rf'at step 1: the derivative of the dynamics of "level" by "level" is infinite at .* pump = {u[0]:.6g}, out'
    with pytest.raises(SymdualError, match=said):
        ce.act([0.1, 0.2])


def test_a_plan_that_is_nowhere_finite_names_it_too(problem: Problem) -> None:
    ce = symdual.controller(problem, "ce")
    ce.reset(Belief(np.array([-1.0, 2.0, 0.5]), np.diag([0.1, 0.1, 0.01])))
    said = 'from whatever start: the dynamics of "level" is not a number at level = -1, height = 2, pump = 0, outflow'
    with pytest.raises(SymdualError, match=said):
        ce.act()


def test_the_filter_names_what_it_met_on_its_way(problem: Problem) -> None:
    ce = symdual.controller(problem, "ce")
    lost = ce.init()._replace(k=1, u=np.array([-1.0]), belief=Belief(np.array([0.0, 2.0, 0.5]), 0.1 * np.eye(3)))
    with pytest.raises(SymdualError, match=r'not finite any more at step 1: .* "level" by "level" .* pump = -1, out'):
        ce.update(lost, [0.1, 0.2])


def test_observations_are_looked_at_where_the_model_goes(problem: Problem) -> None:
    found = fault_of_model(problem, 3, np.array([1.0, -4.0, 0.5]), np.array([0.2]))
    assert found == "the observation number 1 is not a number at level = 0.97, height = -1, outflow = 0.5"
    assert fault_of_model(problem, 3, np.array([1.0, 2.0, 0.5]), np.array([0.2])) is None
    assert fault_of_model(problem, 0, np.array([1.0, 0.0, 0.5]), None) == (
        "the observation number 1 is infinite at level = 1, height = 0, outflow = 0.5"
    )


SOFT = (level**2) ** sp.Rational(3, 4)  # has a slope everywhere, and no second derivative at zero


@pytest.mark.parametrize(("filter", "square_root"), [("second_order", False), ("recalibrated_second_order", True)])
@pytest.mark.parametrize("where", ['the dynamics of "height"', "the observation number 1"])
def test_second_derivatives_that_are_not_finite_are_named_and_nothing_is_lost(
    where: str, square_root: bool, filter: str, tmp_path: Path
) -> None:
    """Neither is a measurement quietly left out."""
    moves = where.startswith("the dynamics")
    model = Model(
        [level, height],
        [pump],
        [0.9 * level + outflow * pump, height + (outflow * SOFT if moves else 0)],
        observation=[height, level + (0 if moves else SOFT)],
        process_noise=0.01,
        measurement_noise=0.01,
        filter=filter,
        square_root=square_root,
        name="soft",
    )
    scenario = Scenario(model, 3, start_covariance=[0.1, 0.1], input_cost=1.0)
    ce = symdual.controller(symdual.problem(scenario, folder=tmp_path, backend="c"), "ce")
    said = rf'the second derivative of {where} by "level" and "level" is not a number at level = 0'
    state = ce.init()
    before = state.belief
    if moves:
        state = state._replace(k=1, u=np.array([0.0]))
    with pytest.raises(SymdualError, match=said):
        ce.update(state, [0.1, 0.2])
    assert state.belief is before
