"""The optimum of a scalar system with an unknown gain against closed forms, nested quadrature and simulation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from symdual.common.errors import SymdualError
from symdual.runtime import exact, nested_quadrature
from symdual.runtime.controller import controller
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Problem, problem
from symdual.runtime.unknown_gain import UnknownGain

BELIEFS = [(0.0, 0.3, 1.0), (1.0, 0.1, 4.0), (-3.0, 2.0, 0.5), (0.2, -1.0, 1.0)]


@pytest.mark.parametrize(("x", "m", "P"), BELIEFS)
def test_the_last_step_in_closed_form(x: float, m: float, P: float) -> None:
    """min_u (a x + m u)^2 + P u^2 + s^2 = (a x)^2 P / (m^2 + P) + s^2, at u = -m a x / (m^2 + P)."""
    best = UnknownGain(a=0.9, noise=2.0, weight=3.0)
    least = 3.0 * (x * x + (0.9 * x) ** 2 * P / (m * m + P) + 2.0)
    assert best.cost(1, x, m, P) == pytest.approx(least, rel=1e-4)
    cost, u = best.best(1, x, m, P)
    assert cost == pytest.approx(least, rel=1e-9)
    assert u == pytest.approx(-m * 0.9 * x / (m * m + P), abs=2e-4)


@pytest.mark.parametrize(("x", "m", "P"), BELIEFS)
@pytest.mark.parametrize("steps", [2, 3])
def test_short_problems_against_nested_quadrature(steps: int, x: float, m: float, P: float) -> None:
    """Another method, for inputs that cost next to nothing."""
    W, U, r = np.full((4, 1, 1), 2.0), np.full((3, 1, 1), 1e-9), np.zeros((4, 1))
    best = UnknownGain(a=0.9, noise=0.5, weight=2.0)
    for u in (-0.7, 0.1, 1.5):
        expected = nested_quadrature.cost(3 - steps, 3, u, x, m, P, 0.9, 0.5, W, U, r)
        assert best.cost_of(u, steps, x, m, P) == pytest.approx(expected, rel=2e-4)


def test_its_inputs_cost_what_it_says() -> None:
    """Episodes of the optimal inputs, the gain drawn from the prior."""
    best, steps, count = UnknownGain(a=0.9, noise=1.0, weight=1.0), 4, 1500
    random = np.random.default_rng(0)
    costs = np.zeros(count)
    for i in range(count):
        x, m, P, b = 1.0, 0.3, 1.0, 0.3 + random.standard_normal()
        costs[i] = x * x
        for k in range(steps):
            _, u = best.best(steps - k, x, m, P)
            after = 0.9 * x + b * u + random.standard_normal()
            s = u * u * P + 1.0
            m, P = m + P * u / s * (after - 0.9 * x - m * u), P / s
            x = after
            costs[i] += x * x
    error = costs.std() / math.sqrt(count)
    assert costs.mean() == pytest.approx(best.cost(steps, 1.0, 0.3, 1.0), abs=4 * error)
    assert error < 0.03 * costs.mean()


def test_nothing_is_lost_by_the_best_input_and_something_by_others() -> None:
    best = UnknownGain(a=0.9, noise=1.0, weight=1.0)
    _, u = best.best(4, 0.5, 0.4, 1.0)
    assert best.loss(u, 4, 0.5, 0.4, 1.0) == pytest.approx(0.0, abs=1e-12)
    assert min(best.loss(u + way, 4, 0.5, 0.4, 1.0) for way in (-0.3, 0.3)) > 1e-3


def test_a_gain_that_is_nearly_known_costs_its_noise_only() -> None:
    """Far out: V_n tends to n + (a eta)^2 / (1 + beta^2), also beyond the grid."""
    best = UnknownGain(a=0.9, noise=1.0, weight=1.0)
    assert best.cost(4, 10.0, 200.0, 1.0) - 100.0 == pytest.approx(4.0 + 81.0 / 200.0**2, abs=1e-3)


def test_problems_that_fit_and_that_do_not(toy: Problem) -> None:
    free = replace(toy, input_cost=np.zeros_like(toy.input_cost))
    found = exact.optimum(free)
    assert (found.a, found.noise, found.weight) == (1.0, 0.1, 1.0)
    with pytest.raises(SymdualError, match="does not fit the model toy: inputs must cost nothing"):
        exact.optimum(toy)
    with pytest.raises(SymdualError, match="the reference must be zero"):
        exact.optimum(replace(free, reference=np.ones_like(free.reference)))
    with pytest.raises(SymdualError, match="always the same"):
        exact.optimum(replace(free, state_cost=free.state_cost * np.array([1.0, 1.0, 2.0])[:, None, None]))


INTEGRATOR = """
import sympy as sp
from symdual import Model, Scenario, unknown
x, u = sp.symbols("x u")
b = unknown("b", mean=0.03, variance=1.0)
integrator = Model([x], [u], [x + b * u], process_noise=1.0, measurement_noise=0.0)
scenario = Scenario(integrator, horizon=2, state_cost=1.0, input_cost=1e-6, start=3.0)
"""


@pytest.mark.parametrize(
    ("steps", "x", "m", "most"),
    [(2, 3.0, 0.03, 0.005), (2, 1.0, 0.1, 0.005), pytest.param(8, 3.0, 0.3, 0.01, marks=pytest.mark.soak)],
)
def test_planned_is_near_the_optimum_away_from_zero(
    make_quickly: Callable[[str, str], LoadedPackage], steps: int, x: float, m: float, most: float
) -> None:
    """Where the gain is hardly known, certainty equivalence would cost a thousand times as much as the best plan."""
    task = problem(make_quickly("integrator", INTEGRATOR)).changed(horizon=steps, start=[x], prior_mean={"b": m})
    (u,) = controller(task, "planned").act()
    best = UnknownGain(a=1.0, noise=1.0, weight=1.0)
    assert best.loss(u, steps, x, m, 1.0) < most * best.cost(steps, x, m, 1.0)
