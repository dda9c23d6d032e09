"""A problem: checked arrays, the oracle's view of it, and longer versions of it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import sympy as sp

import symdual
from symdual import Model, constant, features
from symdual.common.errors import SymdualError
from symdual.runtime.belief import Belief
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Problem

if TYPE_CHECKING:
    from tests.conftest import Interpreted


def test_a_scenario_becomes_arrays(toy: Problem) -> None:
    assert toy.horizon == 2
    assert toy.prior.mean.tolist() == [1.0, 1.0]
    assert toy.prior.covariance.tolist() == [[0.0, 0.0], [0.0, 10.0]]
    assert toy.bonus == 0.1
    assert toy.truth is not None and toy.truth.tolist() == [2.0]
    assert toy.plant is toy.package
    assert toy.start.tolist() == [1.0]


def test_names_stand_for_places_in_all_that_is_about_unknowns(pair_package: LoadedPackage) -> None:
    problem = symdual.problem(pair_package)
    truth, names = [0.5, 0.3, -0.5], {"d": -0.5, "b": 0.5, "c": 0.3}
    assert problem.for_oracle(names).prior.mean.tolist() == problem.for_oracle(np.array(truth)).prior.mean.tolist()
    x, u = [1.0, 2.0], [0.1, 0.2]
    moved = symdual.evaluate.dynamics(pair_package, x, u, names)
    assert moved.tolist() == symdual.evaluate.dynamics(pair_package, x, u, truth).tolist()
    with pytest.raises(SymdualError, match='theta has no value for "c"'):
        symdual.evaluate.dynamics(pair_package, x, u, {"b": 0.5, "d": 0.1})
    with pytest.raises(SymdualError, match='theta names "e", which is none of b, c, d'):
        symdual.evaluate.dynamics(pair_package, x, u, names | {"e": 0.5})


def test_the_bounds_are_the_models_unless_others_are_given(toy: Problem) -> None:
    assert toy.bounds.tolist() == [[-np.inf], [np.inf]]
    assert replace(toy, input_bounds=np.array([[-2.0], [0.5]])).bounds.tolist() == [[-2.0], [0.5]]


def test_the_oracle_knows_plant_and_truth_and_keeps_the_bounds(
    toy: Problem, quick_offset_package: LoadedPackage
) -> None:
    input_bounds = np.array([[-2.0], [0.5]])
    known = replace(toy, plant=quick_offset_package, truth=np.array([0.3]), input_bounds=input_bounds).for_oracle(
        np.array([0.7])
    )
    assert known.package.module is quick_offset_package.module
    assert known.prior.mean.tolist() == [1.0, 0.7]
    assert not known.prior.covariance.any()
    assert known.bounds.tolist() == input_bounds.tolist()


# ------------------------------------------------------------------------------------------------ other numbers


def test_changes_by_name_leave_the_rest(pair_package: LoadedPackage) -> None:
    problem = symdual.problem(pair_package)
    before = copy.deepcopy(problem)
    other = problem.changed(
        prior_mean={"b": 2.0},
        prior_covariance={"d": 0.25},
        start={sp.Symbol("q"): 3.0},
        state_cost={"p": 7.0},
        input_cost={"v": 0.5},
        reference={"q": 1.5},
        truth={"c": 9.0},
        bounds={"u": (-1.0, None)},
        bonus=3.0,
    )
    assert other.prior.mean.tolist() == [1.0, 3.0, 2.0, 0.3, -0.5]
    assert np.diag(other.prior.covariance).tolist() == [0.0, 0.0, 2.0, 1.0, 0.25]
    assert [np.diag(W).tolist() for W in other.state_cost] == [[7.0, 1.0]] * 5
    assert [np.diag(U).tolist() for U in other.input_cost] == [[0.1, 0.5]] * 4
    assert other.reference.tolist() == [[0.0, 1.5]] * 5
    assert other.truth is not None and other.truth.tolist() == [0.5, 9.0, -0.5]
    assert other.bounds.tolist() == [[-1.0, -np.inf], [np.inf, np.inf]]
    assert (other.bonus, other.dual_weight) == (3.0, problem.dual_weight)
    assert other.package is problem.package and other.plant is problem.plant
    for key in ("state_cost", "input_cost", "reference", "truth", "bounds"):
        assert np.array_equal(getattr(problem, key), getattr(before, key))
    assert all(np.array_equal(a, b) for a, b in zip(problem.prior[:2], before.prior[:2], strict=True))


def test_changes_of_all_at_once_are_those_of_a_scenario(pair_package: LoadedPackage) -> None:
    problem = symdual.problem(pair_package)
    other = problem.changed(
        horizon=6,
        state_cost=lambda k: [k, 1.0],
        input_cost=2.0,
        reference=lambda k: {"p": float(k)},
        start=[4.0, 5.0],
        start_covariance=[[1.0, 0.5], [0.5, 1.0]],
        prior_mean=0.0,
        prior_covariance=[1.0, 2.0, 3.0],
        truth=[1.0, 2.0, 3.0],
        bounds=[[-1.0, -2.0], [1.0, 2.0]],
    )
    assert other.horizon == 6
    assert other.state_cost[:, 0, 0].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert other.input_cost.tolist() == [[[2.0, 0.0], [0.0, 2.0]]] * 6
    assert other.reference.tolist() == [[float(k), 0.0] for k in range(7)]
    assert other.prior.mean.tolist() == [4.0, 5.0, 0.0, 0.0, 0.0]
    expected = np.diag([1.0, 1.0, 1.0, 2.0, 3.0])
    expected[0, 1] = expected[1, 0] = 0.5
    assert other.prior.covariance.tolist() == expected.tolist()
    assert other.truth is not None and other.truth.tolist() == [1.0, 2.0, 3.0]
    assert other.input_bounds is not None and other.input_bounds.tolist() == [[-1.0, -2.0], [1.0, 2.0]]
    assert problem.changed(horizon=2).state_cost.tolist() == problem.state_cost[:3].tolist()
    assert replace(problem, truth=None).changed(truth={"b": 1.0, "c": 2.0, "d": 3.0}).truth is not None


def test_a_variance_by_name_has_no_covariances(pair_package: LoadedPackage) -> None:
    problem = symdual.problem(pair_package)
    correlated = problem.prior.covariance + 0.1
    other = replace(problem, prior=Belief(problem.prior.mean, correlated)).changed(prior_covariance={"c": 5.0})
    expected = correlated.copy()
    expected[3], expected[:, 3], expected[3, 3] = 0.0, 0.0, 5.0
    assert other.prior.covariance.tolist() == expected.tolist()


def test_the_constants_of_the_model_and_of_a_plant_that_is_the_model(
    toy: Problem, interpreted: Callable[[Model], Interpreted]
) -> None:
    x, u = sp.symbols("x u")
    slope = constant("slope", 0.9)
    wave = features.fourier("g", x, count=4)
    rendered = interpreted(Model([x], [u], [slope * x + u + wave], name="constants"))
    package = LoadedPackage("constants", Path(), rendered.module, rendered.numbers)
    prior = Belief(np.zeros(package.NZ), np.eye(package.NZ))
    problem = replace(toy, package=package, plant=package, prior=prior, truth=np.zeros(4))
    other = problem.changed(constants={"slope": 0.5})
    start, _ = package.DATA_ENTRIES["slope"]
    assert other.package.numbers["data"][start] == 0.5 and package.numbers["data"][start] == 0.9
    assert other.plant is other.package and other.package.module is package.module
    changed = np.flatnonzero(other.package.numbers["data"] != package.numbers["data"])
    assert changed.tolist() == [start]
    apart = replace(problem, plant=toy.plant, truth=toy.truth).changed(constants={"slope": 0.5})
    assert apart.plant is toy.plant
    with pytest.raises(SymdualError, match=r'constants names "slop", which is none of .*slope; did you mean "slope"\?'):
        problem.changed(constants={"slop": 0.5})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prior_mean": {"bb": 1.0}}, r'prior_mean names "bb", which is none of b, c, d; did you mean "b"\?'),
        ({"prior_mean": [1.0]}, "prior_mean must be one number or 3 numbers, but has shape"),
        ({"prior_covariance": {"b": -1.0}}, 'prior_covariance of "b" is not positive semidefinite'),
        ({"state_cost": {"p": np.nan}}, 'state_cost of "p" contains a value that is NaN or infinite'),
        ({"reference": lambda k: [np.inf, 0.0]}, "reference at step 0 contains a value that is NaN or infinite"),
        ({"horizon": 0}, "the horizon must be at least 1, not 0"),
        ({"horizon": 2.5}, "the horizon must be a whole number, not 2.5"),
        ({"truth": {"b": "many"}}, "truth of \"b\" must be numbers, but is 'many'"),
        ({"bounds": {"w": (0, 1)}}, 'bounds names "w", which is not an input'),
        ({"bounds": {"u": 3.0}}, r'the bounds of "u" must be a pair \(lower, upper\), but are 3.0'),
        ({"bounds": {"u": (1.0, -1.0)}}, 'the bounds of "u" leave no room: 1 to -1'),
        ({"bonus": -1.0}, "bonus and dual_weight must be finite and not negative"),
    ],
)
def test_changes_that_cannot_be(pair_package: LoadedPackage, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SymdualError, match=message):
        symdual.problem(pair_package).changed(**changes)


def test_a_truth_that_was_not_given_is_given_whole(pair_package: LoadedPackage) -> None:
    drawn = replace(symdual.problem(pair_package), truth=None)
    with pytest.raises(SymdualError, match='truth has no value for the unknown "c" of the plant'):
        drawn.changed(truth={"b": 1.0})


def test_a_problem_shows_itself_in_one_line(pair_package: LoadedPackage, toy: Problem) -> None:
    problem = symdual.problem(pair_package)
    assert (
        repr(problem)
        == "<Problem pair: 4 steps, model pair, states p, q, inputs u, v, unknowns b, c, d, plant the model itself>"
    )
    assert repr(replace(toy, name="other")).startswith(
        "<Problem other: 2 steps, model toy, states x, inputs u, unknowns b"
    )


def test_a_problem_can_be_pickled_and_copied(pair_package: LoadedPackage) -> None:
    problem = symdual.problem(pair_package).changed(prior_mean={"b": 2.0})
    for twin in (pickle.loads(pickle.dumps(problem)), copy.deepcopy(problem), copy.copy(problem)):
        assert twin.package.module is problem.package.module and twin.plant is twin.package
        for key in ("state_cost", "input_cost", "reference", "truth", "bounds"):
            assert np.array_equal(getattr(twin, key), getattr(problem, key))
        assert all(np.array_equal(a, b) for a, b in zip(twin.prior[:2], problem.prior[:2], strict=True))
    twin = copy.deepcopy(problem)
    twin.package.numbers["data"] = np.ones(1)
    assert "data" in problem.package.numbers and problem.package.numbers["data"].size == 0


def test_a_pickle_of_a_package_that_was_generated_anew_is_refused(tmp_path: Path) -> None:
    x, u = sp.symbols("x u")

    def made(factor: float) -> LoadedPackage:
        model = Model([x], [u], [sp.Float(factor) * x + u], name="anew")
        return symdual.load(symdual.generate(model, tmp_path)[0].folder)

    stored = pickle.dumps(made(0.5))
    assert pickle.loads(stored).name == "anew"
    made(0.25)
    with pytest.raises(SymdualError, match="anew has been generated anew since something that uses it was pickled"):
        pickle.loads(stored)


# ------------------------------------------------------------------------------------------------ longer


def test_extending_holds_the_last_values(toy: Problem) -> None:
    schedule = replace(toy, reference=np.array([[1.0], [2.0], [3.0]]))
    longer = schedule.extended(3)
    assert longer.horizon == 5
    assert longer.reference.ravel().tolist() == [1.0, 2.0, 3.0, 3.0, 3.0, 3.0]


def test_a_singular_input_cost_has_a_floor_of_zero_whatever_the_rounding(pair_package: LoadedPackage) -> None:
    problem = symdual.problem(pair_package)
    flat = np.repeat(np.array([[0.1, 0.3], [0.3, 0.9]])[None], problem.horizon, axis=0)  # rank one, eigenvalue 1e-17
    assert replace(problem, input_cost=flat).floors.tolist() == [[0.0, 0.0]] * problem.horizon
    assert problem.floors == pytest.approx(np.full((problem.horizon, 2), 0.1))


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
        ({"input_bounds": np.array([[1.0], [-1.0]])}, 'the bounds of "u" leave no room: 1 to -1'),
        ({"input_bounds": np.array([[np.nan], [1.0]])}, 'the bounds of "u" leave no room: nan to 1'),
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
        symdual.problem(toy_package, "tov")
    without = replace(toy_package, plants={})
    with pytest.raises(SymdualError, match="the model file of toy has no Scenario"):
        symdual.problem(without)
    numbers = toy_package.numbers | {
        key.replace("scenario.toy", "scenario.late"): value for key, value in toy_package.numbers.items()
    }
    both = replace(toy_package, numbers=numbers, plants={"toy": "toy", "late": "toy"})
    with pytest.raises(SymdualError, match="toy has several scenarios; name one of late, toy"):
        symdual.problem(both)
    assert symdual.problem(both, "late").name == "late"
