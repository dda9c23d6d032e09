"""Costs by expressions at run time: controllers, episodes, foreign plants, numbers that change, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symdual
from symdual.common.errors import SymdualError
from symdual.runtime.closed_loop import simulate
from symdual.runtime.controller import controller
from symdual.runtime.faults import require_finite
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.plants import cost_along, run_foreign
from symdual.runtime.problem import Problem

MODELS = Path(__file__).resolve().parents[1] / "models"


@pytest.fixture(scope="module")
def problem(shared_models: Callable[[Path], Path]) -> Problem:
    """x' = x + b u with cross terms, a reference of the input, and cosh x at the end."""
    return symdual.problem(symdual.load(shared_models(MODELS / "scenarios.py") / "squeezed"))


def _cost(states: np.ndarray, inputs: np.ndarray) -> float:
    off = inputs - 0.5
    return float(np.sum(states**2) + np.sum(off**2) + 0.2 * np.sum(states[:-1] * off) + np.cosh(states[-1]))


def test_episodes_report_the_cost_of_the_true_states(problem: Problem) -> None:
    problem = problem.changed(truth={"b": 0.6}, start=1.0)
    for name, episodes in simulate(problem, ["ce", "dual", "oracle"], runs=3).items():
        assert list(episodes.outcomes) == [0, 0, 0], name
        for run in range(3):
            states, inputs = episodes.states[run], episodes.inputs[run]
            assert episodes.costs[run] == pytest.approx(_cost(states[:, 0], inputs[:, 0]), rel=1e-12)
            assert cost_along(problem, states, inputs) == pytest.approx(episodes.costs[run], rel=1e-12)


def test_true_parameters_jump_when_they_are_told_to(problem: Problem) -> None:
    """x' = x + b u with b = 0.6 up to the third step and 1.7 from then on; the oracle is told."""
    silent = {**problem.package.numbers, "process_noise": np.zeros((1, 1))}
    package = replace(problem.package, numbers=silent)
    still = replace(problem.changed(start=1.0), package=package, plant=package)
    assert still.changed(truth={"b": 1.0}).truth_path is None
    for name, episodes in simulate(still, ["ce", "oracle"], runs=2).items():
        gains = np.diff(episodes.states[:, :, 0], axis=1) / episodes.inputs[:, :, 0]
        np.testing.assert_allclose(gains, [[0.6, 0.6, 0.6, 1.7, 1.7]] * 2, err_msg=name)
        if name == "oracle":
            np.testing.assert_allclose(episodes.means[:, :, 1], [[0.6, 0.6, 0.6, 1.7, 1.7, 1.7]] * 2)


def test_the_plan_minimises_the_cost(problem: Problem) -> None:
    """Against a general optimiser on the mean model."""
    from scipy.optimize import minimize

    def planned(inputs: np.ndarray) -> float:
        return _cost(np.concatenate([[1.5], 1.5 + np.cumsum(inputs)]), inputs)

    started = problem.changed(start=1.5)
    plan = controller(started, "ce").step(controller(started, "ce").init())[2]
    best = minimize(planned, np.zeros(5), bounds=[(-4, 4)] * 5)
    np.testing.assert_allclose(plan.planned_inputs[:, 0], best.x, atol=1e-4)


def test_weights_and_references_change_without_new_code(problem: Problem) -> None:
    flat = problem.changed(terminal_weights=0.0, cross_cost=0.0, input_reference=0.0, start=1.0)
    plain = controller(flat, "ce").act()
    assert plain < 0.0
    assert controller(flat.changed(input_reference={"force": 3.0}), "ce").act() > plain
    steep = controller(flat.changed(terminal_weights=100.0), "ce").step(controller(flat, "ce").init())[2]
    assert abs(steep.planned_states[-1, 0]) < 0.1
    assert flat.objective is not None
    assert flat.extended(3).objective is not None and flat.extended(3).horizon == 8


def test_a_moving_horizon_keeps_the_cost(problem: Problem) -> None:
    steady = controller(problem.changed(start=1.0, terminal_weights=0.0, cross_cost=0.0), "dual", window=4)
    for _ in range(12):
        u = steady.act(np.array([1.0]))
    assert np.isfinite(u).all()


def test_the_cost_of_a_foreign_plant_is_that_of_the_belief(problem: Problem) -> None:
    class Still:
        def reset(self, seed: int) -> np.ndarray:
            return np.array([1.0])

        def step(self, u: np.ndarray) -> np.ndarray:
            return np.array([0.5])

    episode = run_foreign(controller(problem.changed(start=1.0), "ce"), Still())
    assert episode.failure is None
    nx = 1
    expected = _cost(episode.means[:, 0], episode.inputs[:, 0])
    spread = episode.variances[:, 0]
    expected += float(np.sum(spread) + 0.5 * np.cosh(episode.means[-1, 0]) * spread[-1])
    assert nx == problem.package.NX
    assert episode.cost == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"terminal_weights": -1.0}, "must not be negative"),
        ({"cross_cost": 5.0}, "not positive semidefinite at step 0"),
        ({"input_reference": {"fource": 1.0}}, 'names "fource"'),
        ({"input_reference": np.nan}, "NaN"),
    ],
)
def test_bad_numbers_are_refused(problem: Problem, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(symdual.common.errors.SymdualError, match=sentence):
        problem.changed(**changes)


def test_code_without_such_a_cost_says_so(toy_package: LoadedPackage, problem: Problem) -> None:
    toy = symdual.problem(toy_package)
    with pytest.raises(SymdualError, match="input_reference needs code for it"):
        toy.changed(input_reference=1.0)
    with pytest.raises(SymdualError, match="knows no cost beyond W, U and r"):
        replace(toy, objective=problem.objective)


def test_a_search_without_limits_is_refused(packages: Path, problem: Problem) -> None:
    priced = symdual.problem(symdual.load(packages / "priced"))
    with pytest.raises(SymdualError, match="nothing is known of what its cost is at least"):
        controller(priced.changed(bounds={"force": (None, None)}), "dual")


def test_a_cost_that_is_not_finite_at_the_start_is_said(problem: Problem) -> None:
    with pytest.raises(
        SymdualError,
        match=r"cosh\(position\), in the cost of the end, is not finite at the start, x = \(1000\), u = \(0\)",
    ):
        controller(problem.changed(start=1000.0), "ce")
    require_finite(problem)
