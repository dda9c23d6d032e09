"""Inputs with a finite set of values at run time: every controller keeps to them and takes the best one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

import symdual
from symdual.common.errors import ModelError, SymdualError
from symdual.runtime.belief import Belief
from symdual.runtime.closed_loop import Settings, simulate
from symdual.runtime.controller import controller
from symdual.runtime.costs import cost_pointer, settings_of, stage_costs_of
from symdual.runtime.planning import Planning
from symdual.runtime.problem import Problem
from symdual.runtime.results import Results
from symdual.runtime.sweep import run_sweep, sweep
from symdual.runtime.threads import on_this_machine

MODELS = Path(__file__).resolve().parents[1] / "models"
CONTROLLERS = ("oracle", "ce", "cautious", "beb", "dual", "planned")


@pytest.fixture(scope="module")
def folder(shared_models: Callable[[Path], Path]) -> Path:
    return shared_models(MODELS / "scenarios.py")


@pytest.fixture(scope="module")
def in_c(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Problem]:
    """Return a function that gives the problem of a model, translated to C, which compiles in no time."""
    from symdual.backends.c import compilers

    try:
        compilers.compiler()
    except compilers.NoCompiler as failure:
        pytest.skip(str(failure))
    return lambda name: symdual.problem(symdual.load(folder / name, backend="c"))


@pytest.mark.parametrize("name", CONTROLLERS)
def test_every_controller_keeps_to_its_choices(in_c: Callable[[str], Problem], name: str) -> None:
    problem = in_c("valved")
    (episodes,) = simulate(problem, [name], runs=3).values()
    assert set(episodes.inputs[:, :, 0].ravel()) <= {0.0, 0.5, 2.0}
    assert np.all(np.abs(episodes.inputs[:, :, 1]) <= 1.0)
    assert np.ptp(episodes.inputs[:, :, 0]) > 0.0  # and makes use of them


@pytest.mark.parametrize("name", ["cautious", "dual"])
def test_the_best_combination_is_found(in_c: Callable[[str], Problem], name: str) -> None:
    """Against a grid of the free input beside every choice, with the cost of the same package."""
    problem = in_c("valved")
    one = controller(problem, name)
    _, u, info = one.step(one.init())
    planning = Planning(problem, name)
    planning.begin()
    grid = np.array([[valve, heat] for valve in (0.0, 0.5, 2.0) for heat in np.linspace(-1.0, 1.0, 401)])
    costs = planning.costs(grid)[:, 0]
    best = grid[np.argmin(costs)]
    assert u[0] == best[0]
    assert u[1] == pytest.approx(best[1], abs=0.01)
    assert min(info.costs[:, 0]) == pytest.approx(costs.min(), rel=1e-4)
    assert info.planned_inputs[0].tolist() == u.tolist()
    assert np.all((info.planned_inputs[1:, 0] >= 0.0) & (info.planned_inputs[1:, 0] <= 2.0))  # relaxed


def test_planned_with_nothing_to_learn_is_ce_beside_choices_too(in_c: Callable[[str], Problem]) -> None:
    problem = in_c("valved")
    package = replace(
        problem.package, numbers={**problem.package.numbers, "process_noise": np.zeros((problem.package.NX,) * 2)}
    )
    known = Belief(problem.prior.mean, np.zeros_like(problem.prior.covariance), None)
    problem = replace(problem, package=package, plant=package, prior=known)
    found = simulate(problem, ["planned", "ce"], 3, settings=Settings(truth="prior"))
    assert np.array_equal(found["planned"].inputs, found["ce"].inputs)
    steps = [controller(problem, name).act() for name in ("planned", "ce")]
    assert np.array_equal(*steps)


def test_planned_takes_the_best_answer_of_its_plan(in_c: Callable[[str], Problem]) -> None:
    one = controller(in_c("valved"), "planned")
    _, u, info = one.step(one.init())
    assert sorted(info.candidates[:, 0]) == [0.0, 0.5, 2.0]
    assert len(set(info.candidates[:, 1])) == 1  # the free input is as planned
    assert u.tolist() == info.candidates[np.argmin(info.costs[:, 0])].tolist()
    assert info.planned_inputs[0].tolist() == u.tolist()


@pytest.mark.parametrize("name", ["ce", "cautious", "dual", "planned"])
def test_choices_beside_constraints(in_c: Callable[[str], Problem], name: str) -> None:
    problem = in_c("narrow")
    found = simulate(problem, [name], runs=4, settings=Settings(truth="prior"))[name]
    assert set(found.inputs.ravel()) <= {-1.0, 0.0, 1.0}
    assert found.constraints.shape == (4, 6, 2)


@pytest.mark.parametrize("model", ["valved", "narrow"])
@pytest.mark.parametrize(("name", "kind"), [("ce", "ce"), ("dual", "structured"), ("planned", "planned")])
def test_combinations_cost_the_same_in_every_order(
    in_c: Callable[[str], Problem], model: str, name: str, kind: str
) -> None:
    """An alternative that is tried changes nothing for those after it."""
    problem = in_c(model)
    package, steps, settings = problem.package, problem.horizon, settings_of(problem, name, 1)
    workspace = package.records.make_workspace(steps, stage_costs_of(problem), settings, 1, planning=name == "planned")
    held, address = package.records.make_belief(*problem.prior[:2]), cost_pointer(problem, kind, steps).address
    table, u = package.search.table(), np.zeros(package.NU)
    package.decision.decide_at(address, name != "planned", problem.floors[0], 0, steps, held, workspace, table, u)
    tried = table.candidates[package.search.DISCRETE_ROWS :][:3].copy()
    before = workspace.stored_plans.copy()

    def costs(order: tuple[int, ...]) -> list[float]:
        """Of each combination, tried in an order."""
        found = np.zeros((3, package.dual_cost.OUT))
        for n in order:
            package.decision.price_at(address, 0, steps, held, workspace, tried[n : n + 1].copy(), found[n : n + 1])
        return list(found[:, package.dual_cost.OUT_COST])

    wanted = costs((0, 1, 2))
    assert len(set(wanted)) == 3  # or the test could not fail
    for order in permutations(range(3)):
        assert costs(order) == pytest.approx(wanted, rel=1e-9)
    assert np.array_equal(workspace.stored_plans, before)


@pytest.mark.parametrize("model", ["valved", "narrow"])
@pytest.mark.parametrize(("name", "place"), [("ce", 0), ("planned", 1)])
def test_the_stored_plan_is_the_one_applied(in_c: Callable[[str], Problem], model: str, name: str, place: int) -> None:
    one = controller(in_c(model), name)
    state = one.init()
    for _ in range(3):
        state, u, info = one.step(state, state.belief.mean[: one.problem.package.NY])
        assert state.plans is not None
        np.testing.assert_array_equal(state.plans["u"][place, 0], u)
        np.testing.assert_array_equal(state.plans["u"][place, : len(info.planned_inputs)], info.planned_inputs)


@pytest.mark.soak
def test_numba_and_c_decide_alike(folder: Path, in_c: Callable[[str], Problem]) -> None:
    problems = symdual.problem(symdual.load(folder / "valved", backend="numba")), in_c("valved")
    first, second = (controller(problem, "dual") for problem in problems)
    for y in (None, [0.4], [-0.2]):
        np.testing.assert_allclose(first.act(y), second.act(y), rtol=1e-6, atol=1e-6)


def test_choices_change_without_new_code(in_c: Callable[[str], Problem]) -> None:
    problem = in_c("valved")
    other = problem.changed(choices={"valve": [0.25, 1.0]})
    assert other.bounds[:, 0].tolist() == [0.25, 1.0]
    assert controller(other, "ce").act()[0] in (0.25, 1.0)
    free = problem.changed(choices={}, bounds={"valve": (0.0, 2.0)})
    assert free.choices is None
    assert controller(free, "ce").act()[0] not in (0.0, 0.5)
    with pytest.raises(SymdualError, match="room for 3 combinations"):
        problem.changed(choices={"valve": [0.0, 0.5, 1.0, 2.0]})
    with pytest.raises(ModelError, match="outside its bounds"):
        problem.changed(bounds={"valve": (0.0, 1.0)})


def test_exact_control_does_not_know_choices(in_c: Callable[[str], Problem]) -> None:
    with pytest.raises(SymdualError, match='"exact" does not know inputs with a finite set of values'):
        controller(in_c("valved"), "exact")


def test_a_sweep_knows_its_choices(in_c: Callable[[str], Problem], tmp_path: Path) -> None:
    problem = in_c("valved")
    file = run_sweep(sweep(problem, ["ce"], 2), tmp_path / "sweep", on_this_machine())
    with Results(file) as results:
        assert results.about["choices"] == {"valve": [0.0, 0.5, 2.0]}
        assert set(results.array("ce", "inputs")[:, :, 0].ravel()) <= {0.0, 0.5, 2.0}
    other = problem.changed(choices={"valve": [0.0, 1.0]})
    with pytest.raises(SymdualError):  # they are another problem
        run_sweep(sweep(other, ["ce"], 2), tmp_path / "sweep", on_this_machine(), resume=True)


def test_a_million_steps_and_hostile_measurements(in_c: Callable[[str], Problem]) -> None:
    problem = in_c("valved").changed(choices={"valve": [0.0, 0.5], "heat": [0.25]})
    (episodes,) = simulate(problem, ["beb"], 1, settings=Settings(window=3, length=1_000_000)).values()
    assert episodes.outcomes.tolist() == [0] and np.all(np.isfinite(episodes.states))
    assert set(np.unique(episodes.inputs[:, :, 0])) <= {0.0, 0.5}
    one = controller(problem, "dual", window=3)
    for k in range(60):
        y = [np.nan] if k % 3 == 0 else [1e6 * (-1) ** k]
        assert one.act(y)[0] in (0.0, 0.5)
    with pytest.raises(SymdualError, match="the measurement is infinite"):
        one.act([np.inf])
