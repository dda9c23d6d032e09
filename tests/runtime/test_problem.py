"""A problem: checked arrays, the oracle's view of it, and longer versions of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from symdual.errors import SymdualError
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Belief, Problem, problem


def test_a_scenario_becomes_arrays(toy: Problem) -> None:
    assert toy.horizon == 2
    assert toy.prior.mean.tolist() == [1.0, 1.0]
    assert toy.prior.covariance.tolist() == [[0.0, 0.0], [0.0, 10.0]]
    assert toy.bonus == 0.1
    assert toy.truth is not None and toy.truth.tolist() == [2.0]
    assert toy.plant is toy.package
    assert toy.start.tolist() == [1.0]


def test_the_bounds_are_the_models_unless_others_are_given(toy: Problem) -> None:
    assert toy.bounds.tolist() == [[-np.inf], [np.inf]]
    assert replace(toy, limits=np.array([[-2.0], [0.5]])).bounds.tolist() == [[-2.0], [0.5]]


def test_the_oracle_knows_plant_and_truth_and_keeps_the_bounds(toy: Problem, offset_package: LoadedPackage) -> None:
    limits = np.array([[-2.0], [0.5]])
    known = replace(toy, plant=offset_package, truth=np.array([0.3]), limits=limits).for_oracle(np.array([0.7]))
    assert known.package.module is offset_package.module
    assert known.prior.mean.tolist() == [1.0, 0.7]
    assert not known.prior.covariance.any()
    assert known.bounds.tolist() == limits.tolist()


def test_extending_holds_the_last_values(toy: Problem) -> None:
    schedule = replace(toy, reference=np.array([[1.0], [2.0], [3.0]]))
    longer = schedule.extended(3)
    assert longer.horizon == 5
    assert longer.reference.ravel().tolist() == [1.0, 2.0, 3.0, 3.0, 3.0, 3.0]


def test_a_singular_input_cost_has_a_floor_of_zero_whatever_the_rounding(pair_package: LoadedPackage) -> None:
    task = problem(pair_package)
    flat = np.repeat(np.array([[0.1, 0.3], [0.3, 0.9]])[None], task.horizon, axis=0)  # rank one, eigenvalue 1e-17
    assert replace(task, input_cost=flat).floors.tolist() == [0.0] * task.horizon
    assert task.floors.tolist() == pytest.approx([0.1] * task.horizon)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"input_cost": np.zeros((0, 1, 1))}, "the horizon is zero"),
        ({"state_cost": np.ones((2, 1, 1))}, r"state_cost must have shape \(3, 1, 1\), but has \(2, 1, 1\)"),
        ({"state_cost": np.array([1.0, -1.0, 1.0]).reshape(3, 1, 1)}, "state_cost is not positive .* at step 1"),
        ({"reference": np.full((3, 1), np.nan)}, "reference contains a value that is NaN"),
        ({"reference": "far"}, "reference must be an array of numbers"),
        ({"truth": np.array([np.inf])}, "truth contains a value that is NaN or infinite"),
        ({"truth": np.zeros(2)}, r"truth must have shape \(1,\)"),
        ({"limits": np.array([[1.0], [-1.0]])}, "limits must have lower bounds that are below"),
        ({"limits": np.array([[np.nan], [1.0]])}, "limits must have lower bounds that are below"),
        ({"prior": Belief(np.ones(2), np.diag([1.0, -1.0]))}, "the covariance of the belief is not positive"),
        ({"prior": Belief(np.ones(2), np.array([[1.0, 0.5], [0.0, 1.0]]))}, "the belief is not symmetric"),
        ({"prior": Belief(np.array([1.0, np.nan]), np.eye(2))}, "the belief contains a value that is NaN"),
        ({"prior": Belief(np.ones(3), np.eye(3))}, r"the mean of the belief must have shape \(2,\)"),
    ],
)
def test_bad_numbers_are_named(toy: Problem, changes: dict[str, object], message: str) -> None:
    with pytest.raises(SymdualError, match=message):
        replace(toy, **changes)  # type: ignore[arg-type]


def test_a_plant_of_other_sizes_is_refused(toy: Problem, pair_package: LoadedPackage) -> None:
    with pytest.raises(SymdualError, match=r"the plant pair has other numbers of states, .* than toy"):
        replace(toy, plant=pair_package, truth=None)


def test_scenarios_are_found_by_name(toy_package: LoadedPackage) -> None:
    with pytest.raises(SymdualError, match='toy has no scenario "tov"; did you mean "toy"'):
        problem(toy_package, "tov")
    without = LoadedPackage(toy_package.name, toy_package.folder, toy_package.module, toy_package.numbers, {})
    with pytest.raises(SymdualError, match="the model file of toy has no Scenario"):
        problem(without)
    numbers = toy_package.numbers | {
        key.replace("scenario.toy", "scenario.late"): value for key, value in toy_package.numbers.items()
    }
    both = LoadedPackage("toy", toy_package.folder, toy_package.module, numbers, {"toy": "toy", "late": "toy"})
    with pytest.raises(SymdualError, match="toy has several scenarios; name one of late, toy"):
        problem(both)
    assert problem(both, "late").name == "late"
