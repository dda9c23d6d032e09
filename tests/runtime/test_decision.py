"""The search over the input finds the global minimum, within bounds, and never looks where no minimum can be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import symdual
from symdual.checks.search import CostCurve, brute_force, certainty_equivalent, compare, random_decision
from symdual.runtime.belief import Belief
from symdual.runtime.controller import State, controller
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Problem


def varied(problem: Problem, random: np.random.Generator) -> Problem:
    """The same model with another cost and reference."""
    nx, nu = problem.package.NX, problem.package.NU
    factor = random.standard_normal((nu, nu))
    given = (0.1 * np.eye(nu) + 0.03 * factor @ factor.T) * 10.0 ** random.uniform(-1.0, 1.0)
    return replace(
        problem,
        state_cost=np.repeat(np.diag(10.0 ** random.uniform(-1, 0.7, nx))[None], problem.horizon + 1, axis=0),
        input_cost=np.repeat(given[None], problem.horizon, axis=0),
        reference=np.repeat(random.standard_normal(nx)[None], problem.horizon + 1, axis=0),
    )


@pytest.mark.parametrize("name", ["dual", "cautious", "beb"])
def test_one_input_finds_the_global_minimum(toy: Problem, name: str) -> None:
    random = np.random.default_rng(11)
    longer = toy.extended(4)
    for _ in range(60):
        problem = varied(longer, random)
        k, belief = random_decision(problem, random)
        result = compare(controller(problem, name), k, belief, points=600)
        assert result.excess < 1e-6, (k, belief, result)
        assert abs(result.best[0]) <= result.radius


@pytest.mark.parametrize(("seed", "count", "expected"), [(7, 115, {1, 2}), (8, 24, {1, 2})])
def test_order_two_is_left_where_its_cost_jumps(toy: Problem, seed: int, count: int, expected: set[int]) -> None:
    """A candidate that falls back to order 1 makes the cost jump; if it might have won, all are judged at order 1.

    So they are if the best lies at the edge of a jump: the last one of the second seed, whose Jd of order 2 is 0 there.
    """
    random = np.random.default_rng(seed)
    longer = toy.extended(4)
    orders = set()
    for _ in range(count):
        problem = varied(longer, random)
        k, belief = random_decision(problem, random)
        _, u, info = controller(problem, "dual", order=2).step(State(k, belief, None))
        curve = CostCurve(problem, "dual", info.order, k, belief)
        grid = np.linspace(info.candidates.min(), info.candidates.max(), 2001)[:, None]
        assert curve(u[None])[0] <= curve(grid).min() * (1 + 1e-4)
        if info.order == 2:
            beside = curve(u[None] + 1e-6 * np.array([[1.0], [-1.0]]) * (1 + abs(u[0])))
            assert beside == pytest.approx(curve(u[None])[0], rel=1e-3)
        assert (info.order == 1) == (info.fallbacks > 0) or info.order == 2
        orders.add(info.order)
    assert orders == expected


@pytest.mark.parametrize(("low", "high", "start"), [(-0.01, 4.0, 1.0), (-4.0, 0.01, -1.0)])
def test_an_input_at_its_bound_leaves_all_points_to_the_other_side(
    toy: Problem, low: float, high: float, start: float
) -> None:
    problem = replace(toy.extended(2), input_bounds=np.array([[low], [high]]))
    belief = Belief(np.array([start, 1.0]), np.diag([0.0, 0.1]))
    planned = certainty_equivalent(problem, 0, belief)[0]
    assert planned in (low, high)
    _, _, info = controller(problem, "dual").step(State(0, belief, None))
    assert np.sum(info.candidates == planned) < 5 < 41 < len(np.unique(info.candidates))


def test_two_inputs_find_the_global_minimum(pair_package: LoadedPackage) -> None:
    random = np.random.default_rng(5)
    base = symdual.problem(pair_package)
    for _ in range(20):
        problem = varied(base, random)
        k, belief = random_decision(problem, random)
        result = compare(controller(problem, "dual"), k, belief, points=60)
        assert result.excess < 1e-4, (k, belief, result)
        assert np.all(np.abs(result.best) <= result.radius)


SIX = """
import sympy as sp
from symdual import Model, Scenario, unknown
x, u = sp.symbols("x:6"), sp.symbols("u:6")
motion = [x[i] + unknown(f"gain_{i}", mean=0.3, variance=0.5) * u[i] for i in range(6)]
six = Model(list(x), list(u), motion, process_noise=0.05, measurement_noise=0.01)
scenario = Scenario(six, horizon=4, input_cost=0.1, start=1.0)
"""


def test_six_inputs_find_the_best_of_many_valleys(make_quickly: Callable[[str, str], LoadedPackage]) -> None:
    """Six plants side by side: a push either way teaches each gain, and each input can be searched by itself."""
    problem, random = symdual.problem(make_quickly("six", SIX)), np.random.default_rng(1)
    for _ in range(8):
        mean = np.concatenate([random.normal(0.0, 1.5, 6), random.normal(0.2, 0.5, 6)])
        belief = Belief(mean, np.diag(np.concatenate([np.zeros(6), random.uniform(0.1, 0.6, 6)])))
        _, u, _ = controller(problem, "dual").step(State(0, belief, None))
        curve = CostCurve(problem, "dual", 1, 0, belief)
        best = np.asarray(u)
        for axis in range(6):
            line = np.repeat(best[None], 2001, axis=0)
            line[:, axis] = np.linspace(-6.0, 6.0, 2001)
            best = line[np.argmin(curve(line))]
        assert curve(np.asarray(u)[None])[0] <= curve(best[None])[0] * (1 + 1e-6)


def test_the_best_valley_may_lie_on_the_other_side_of_zero(toy: Problem) -> None:
    # nothing is wanted before step 4, and the gain may have either sign: there is a valley for a push either way
    wanted = (np.arange(7) >= 4).astype(float)
    problem = replace(
        toy.extended(4),
        input_cost=np.full((6, 1, 1), 0.01),
        reference=wanted[:, None],
        state_cost=wanted[:, None, None],
    )
    belief = Belief(np.array([0.0, 0.1]), np.diag([0.0, 0.3]))
    _, u, info = controller(problem, "dual").step(State(0, belief, None))
    costs = info.costs[:, 0]
    valleys = np.flatnonzero((costs[1:-1] < costs[:-2]) & (costs[1:-1] < costs[2:]))
    assert {-1.0, 1.0} <= set(np.sign(info.candidates[1:-1, 0][valleys]))
    planned = certainty_equivalent(problem, 0, belief)
    assert u[0] < 0.0 < planned[0]  # descent from the certainty-equivalent input would end in the wrong valley
    curve = CostCurve(problem, "dual", 1, 0, belief)
    _, best = brute_force(curve, planned, np.array([-40.0]), np.array([40.0]), 4000)
    assert float(curve(u[None])[0]) <= best * (1 + 1e-7)


@pytest.mark.parametrize("name", ["ce", "cautious", "beb", "dual"])
def test_bounds_are_respected_and_searched(toy: Problem, name: str) -> None:
    random = np.random.default_rng(2)
    at_bound = 0
    for _ in range(40):
        low, high = np.sort(random.uniform(-0.5, 0.5, 2))
        problem = replace(varied(toy.extended(2), random), input_bounds=np.array([[low], [high]]))
        k, belief = random_decision(problem, random)
        _, u, info = controller(problem, name).step(State(k, belief, None))
        assert low <= u[0] <= high
        assert info.candidates.min() >= low and info.candidates.max() <= high
        assert np.all((info.planned_inputs >= low) & (info.planned_inputs <= high))
        at_bound += u[0] in (low, high)
        if name != "ce":
            grid = np.linspace(low, high, 400)[:, None]
            curve = CostCurve(problem, name, 1, k, belief)
            assert float(curve(u[None])[0]) <= float(curve(grid).min()) * (1 + 1e-9)
    assert at_bound > 3


def test_bounds_of_two_inputs(pair_package: LoadedPackage) -> None:
    input_bounds = np.array([[-0.2, -0.1], [0.3, 0.05]])
    problem = replace(symdual.problem(pair_package), input_bounds=input_bounds)
    _, u, info = controller(problem, "dual").step(controller(problem, "dual").init())
    assert np.all(info.candidates >= input_bounds[0]) and np.all(info.candidates <= input_bounds[1])
    corners = np.array([[a, b] for a in input_bounds[:, 0] for b in input_bounds[:, 1]])
    curve = CostCurve(problem, "dual", 1, 0, problem.prior)
    assert float(curve(u[None])[0]) <= float(curve(corners).min())


def test_the_search_covers_the_radius_and_no_more(toy: Problem) -> None:
    _, _, info = controller(toy, "dual").step(controller(toy, "dual").init())
    planned = certainty_equivalent(toy, 0, toy.prior)
    radius = np.sqrt(CostCurve(toy, "dual", 1, 0, toy.prior)(planned[None])[0] / 1.0)
    assert info.candidates.max() == pytest.approx(radius, rel=1e-12)
    assert info.candidates.min() == pytest.approx(-radius, rel=1e-12)
    # beyond it the input alone costs more than the certainty-equivalent input with all its consequences
    beyond = CostCurve(toy, "dual", 1, 0, toy.prior)(np.array([[1.001 * radius], [-1.001 * radius], [3 * radius]]))
    assert np.all(beyond > radius**2)


POLE = """
import sympy as sp
from symdual import Model, Scenario, unknown
place, angle, speed, rate, force = sp.symbols("place angle speed rate force")
mass, s, c = unknown("mass", mean=0.15, variance=1e-4), sp.sin(angle), sp.cos(angle)
pushed = (force + mass * s * (0.5 * rate**2 - 9.81 * c)) / (1.0 + mass * s**2)
turned = (9.81 * s - pushed * c) / 0.5
pole = Model([place, angle, speed, rate], [force], derivatives=[speed, rate, pushed, turned], step=0.04, method="rk4",
             bounds={force: (-10, 10)})
scenario = Scenario(pole, horizon=40, input_cost=1e-3, start=[0.164, 0.256, 0.028, 0.433],
                    state_cost=lambda k: [10.0, 100.0, 10.0, 10.0] if k == 40 else [0.1, 0.1, 0.01, 0.01])
"""


def test_a_pole_that_all_its_force_can_just_hold_is_held(make_quickly: Callable[[str, str], LoadedPackage]) -> None:
    """Four steps of full force are needed at once; plans that start at the bounds, or from rest, let it fall (185)."""
    ce = controller(symdual.problem(make_quickly("pole", POLE)), "ce")
    _, _, info = ce.step(ce.init())
    assert info.planned_inputs[:4] == pytest.approx(10.0)
    assert np.abs(info.planned_states[:, 1]).max() < 0.4
