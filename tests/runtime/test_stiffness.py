"""Models that are too fast for the step of their method: who left the numbers, where, and how fast it was."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import symdual
from symdual.common.errors import SymdualError, SymdualWarning
from symdual.runtime.belief import Belief
from symdual.runtime.closed_loop import Settings, simulate
from symdual.runtime.controller import State, controller
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Problem
from symdual.runtime.replay import Recording, replay
from symdual.runtime.stiffness import fastest_rate, fastest_within, too_fast

# a brake whose rate is 3 k x^2: from x = 100 on a step of Euler's method makes it ever faster
BRAKE = """
import sympy as sp
from symdual import Model, Scenario, unknown
x, u = sp.symbols("x u")
motion = [-unknown("k", mean=0.0, variance=1e-12) * x**3 + u]
{name} = Model([x], [u], derivatives=motion, step=0.1, measurement_noise=1e300, bounds={{u: (-1, 1)}}, **{options})
scenario = Scenario({name}, horizon=8, start=100.0, truth={{"k": 1.0}})
"""


@pytest.fixture(scope="module")
def brake(make_quickly: Callable[[str, str], LoadedPackage]) -> Problem:
    return symdual.problem(make_quickly("brake", BRAKE.format(name="brake", options={})))


@pytest.fixture(scope="module")
def finer(make_quickly: Callable[[str, str], LoadedPackage]) -> Problem:
    options = {"method": "rk4", "substeps": 2}
    return symdual.problem(make_quickly("finer", BRAKE.format(name="finer", options=options)))


@pytest.mark.parametrize("x", [1e-3, 0.5, 100.0, 1e6])
def test_the_fastest_rate_is_that_of_continuous_time(brake: Problem, finer: Problem, x: float) -> None:
    for problem in (brake, finer):
        found = fastest_rate(problem.package, 0, np.array([x]), np.zeros(1), np.array([2.0]))
        assert found == pytest.approx(6.0 * x**2, rel=1e-2, abs=1e-9)


def test_limits_are_those_of_the_methods(brake: Problem, finer: Problem) -> None:
    """3 k x^2 times the step, or its half, is 2 or 2.785."""
    for problem, limit, parts in ((brake, 2.0, 1), (finer, 2.785, 2)):
        edge = math.sqrt(limit * parts / 0.3)
        for share, said in ((0.99, False), (1.01, True)):
            point = 3, np.array([share * edge]), np.zeros(1), np.ones(1)
            assert bool(too_fast(problem.package, [point])) == said
    told = too_fast(finer.package, [(3, np.array([100.0]), np.zeros(1), np.ones(1))])
    assert "rk4" in told and "at step 3" in told and "3e+04" in told and "the substep of 0.05" in told
    assert "the limit is 2.785" in told


def test_a_plant_that_is_not_finite_is_told_from_filter_and_plan(brake: Problem) -> None:
    said = (
        r'run 0: the plant is not finite at step 5: the dynamics of "x" is infinite at .*; euler is not stable there: '
    )
    numbers = r"at step 0 the fastest rate is 3e.04, .* that is 3e.03, and the limit is 2"
    with pytest.warns(SymdualWarning, match=said + numbers):
        found = simulate(brake, ["ce"], 1)
    assert found["ce"].outcomes.tolist() == [1]


def test_a_prediction_and_a_plan_that_are_not_finite_are_told_apart(brake: Problem) -> None:
    far = Belief(np.array([1e110, 1.0]), np.diag([1.0, 1e-4]))
    one = controller(brake, "ce")
    said = (
        r'the filter\'s prediction is not finite any more at step 1: the dynamics of "x" is infinite .*; euler is not'
    )
    with pytest.raises(SymdualError, match=said):
        one.update(State(1, far, np.zeros(1)), [0.0])
    with pytest.raises(SymdualError, match=r"the certainty-equivalent plan at step 0 is not finite.*; euler is not"):
        one.choose(State(0, far, None))


def test_a_replay_says_it_too(brake: Problem) -> None:
    far = replace(brake, prior=Belief(np.array([1e110, 1.0]), np.diag([1.0, 1e-4])))
    rows = Recording(np.array([0.0, 0.1]), np.zeros((2, 1)), np.zeros((2, 1)), [2, 3], [])
    with pytest.raises(
        SymdualError, match=r"the filter's prediction is not finite any more at line 3 .*; euler is not"
    ):
        replay(far, rows)


# a stirred tank that ignites within a step: at 350 K it is slow, at 450 K a rate is hundreds a minute
TANK = """
import sympy as sp
from symdual import Model, Scenario, unknown
C, T, Tc = sp.symbols("C T Tc")
r = unknown("k0", 7.2e10, 2.5e19) * sp.exp(-8750 / T) * C
motion = [1 - C - r, 350 - T + unknown("heat", 209.2, 400.0) * r + 2.09 * (Tc - T)]
ignites = Model(
    [C, T], [Tc], derivatives=motion, step=0.1, method="rk4", substeps=2, process_noise=[1e-6, 0.04],
    measurement_noise=[1e-4, 0.5], bounds={Tc: (270, 330)},
)
options = dict(start=[0.5, 350.0], start_covariance=[1e-4, 1.0], reference=[0.3, 370])
scenario = Scenario(ignites, 20, state_cost=[100, 0.01], input_cost=1e-4, **options)
"""


@pytest.fixture(scope="module")
def ignites(make_quickly: Callable[[str, str], LoadedPackage]) -> Problem:
    return symdual.problem(make_quickly("ignites", TANK))


def test_the_fastest_rate_within_a_step_is_that_of_its_true_course(ignites: Problem) -> None:
    k, x, u, theta = 0, np.array([0.4, 376.0]), np.array([330.0]), np.array([7.2e10, 209.2])

    def slope(_: float, z: np.ndarray) -> np.ndarray:
        r = theta[0] * math.exp(-8750 / z[1]) * z[0]
        return np.array([1 - z[0] - r, 350 - z[1] + theta[1] * r + 2.09 * (u[0] - z[1])])

    course = solve_ivp(slope, (0.0, 0.1), x, rtol=1e-9, atol=1e-9, max_step=1e-3).y.T
    rates = [fastest_rate(ignites.package, k, state, u, theta) for state in course]
    assert max(rates) > 2 * rates[0]
    assert fastest_within(ignites.package, k, x, u, theta) == pytest.approx(max(rates), rel=0.03)


def test_a_plan_that_begins_at_a_plant_that_is_lost_says_so(ignites: Problem) -> None:
    """The plant left its course within a step long before, with numbers that are still finite."""
    said = (
        r"run 0: rk4 is not stable in the plant: at step 2 the fastest rate is .*, times the substep of 0.05 .*; "
        "after that, the certainty-equivalent plan at step .* is not finite"
    )
    with pytest.warns(SymdualWarning, match=said):
        found = simulate(ignites, ["ce"], 1, settings=Settings(truth="prior"))
    assert found["ce"].outcomes.tolist() == [3]
