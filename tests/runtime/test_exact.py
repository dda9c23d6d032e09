"""The exact controller against adaptive quadrature, simulation, and what it must reduce to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, optimize

from symdual.errors import SymdualError
from symdual.runtime import exact
from symdual.runtime.controller import State, controller
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Belief, Problem, problem


def last_value(x: float, m: float, v: float) -> float:
    """V_{T-1} of the toy, W = U = 1, Q = 0.1, by minimising numerically."""
    found = optimize.minimize_scalar(lambda u: u * u + (x + m * u) ** 2 + v * u * u)
    return x * x + found.fun + 0.1


def adaptive(u: float, x: float, m: float, v: float, value: Callable[[float, float, float], float]) -> float:
    """x^2 + u^2 + E V(x', m', v') by adaptive quadrature; Bayes' rule written with precisions instead of gains."""
    s = np.sqrt(u * u * v + 0.1)
    precision = 1.0 / v + u * u / 0.1

    def integrand(y: float) -> float:
        density = np.exp(-0.5 * ((y - x - m * u) / s) ** 2) / (s * np.sqrt(2 * np.pi))
        return density * value(y, (m / v + u * (y - x) / 0.1) / precision, 1.0 / precision)

    centre = x + m * u
    edges = np.linspace(centre - 9 * s, centre + 9 * s, 7)
    parts = [integrate.quad(integrand, a, b, epsabs=1e-9, epsrel=1e-9, limit=200)[0] for a, b in pairwise(edges)]
    return float(x * x + u * u + sum(parts))


@pytest.mark.parametrize("u", [-2.0, -0.6, -0.15, 0.0, 0.4])
def test_two_steps_against_adaptive_quadrature(toy: Problem, u: float) -> None:
    assert exact.expected_cost(toy, 0, toy.prior, u) == pytest.approx(adaptive(u, 1.0, 1.0, 10.0, last_value), rel=1e-7)


def test_the_first_input_is_the_minimum_of_adaptive_quadrature(toy: Problem) -> None:
    found = optimize.minimize_scalar(
        lambda u: adaptive(u, 1.0, 1.0, 10.0, closed_value),
        bounds=(-0.6, 0.3),
        method="bounded",
        options={"xatol": 1e-7},
    )
    _, u, info = controller(toy, "exact").step(controller(toy, "exact").init())
    assert u[0] == pytest.approx(found.x, abs=2e-5)
    assert sum(info.parts) == pytest.approx(found.fun, rel=1e-8)


def closed_value(x: float, m: float, v: float) -> float:
    return 2 * x * x + 0.1 - (m * x) ** 2 / (1 + m * m + v)


def test_three_steps_against_nested_quadrature(toy: Problem) -> None:
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()

    def two_steps(u: np.ndarray, x: float, m: float, v: float) -> np.ndarray:
        """J_{T-2} on a grid of inputs, by Gauss and Hermite."""
        s = np.sqrt(u * u * v + 0.1)[:, None]
        y = x + m * u[:, None] + s * nodes
        after = v * 0.1 / s**2
        mean = m + v * u[:, None] / s * nodes
        return x * x + u * u + (2 * y * y + 0.1 - (mean * y) ** 2 / (1 + mean**2 + after)) @ weights

    def value(x: float, m: float, v: float) -> float:
        coarse = np.linspace(-4.0, 4.0, 801) * max(1.0, abs(x))
        costs = two_steps(coarse, x, m, v)
        best = int(np.argmin(costs))
        fine = np.linspace(coarse[max(best - 1, 0)], coarse[min(best + 1, 800)], 401)
        return float(two_steps(fine, x, m, v).min())

    u = -0.18
    s = np.sqrt(u * u * 10.0 + 0.1)

    def integrand(e: float) -> float:
        density = np.exp(-0.5 * e * e) / np.sqrt(2 * np.pi)
        return float(density * value(1.0 + u + s * e, 1.0 + 10.0 * u / s * e, 1.0 / s**2))

    # V has a kink: whether to push up or down changes with the sign of the gain
    parts = [integrate.quad(integrand, a, a + 1.0, epsabs=1e-6, epsrel=1e-6, limit=20)[0] for a in range(-7, 7)]
    expected = 1.0 + u * u + sum(parts)
    assert exact.expected_cost(toy.extended(1), 0, toy.prior, u) == pytest.approx(expected, rel=2e-6)


def test_the_cost_is_what_episodes_cost(toy: Problem) -> None:
    """Draw the gain from the prior, apply u and then the last law; the mean of L is the exact cost."""
    random = np.random.default_rng(0)
    count, u = 400_000, -0.3
    b, e0, e1 = 1.0 + np.sqrt(10.0) * random.standard_normal(count), *np.sqrt(0.1) * random.standard_normal((2, count))
    x1 = 1.0 + b * u + e0
    s = u * u * 10.0 + 0.1
    m, v = 1.0 + 10.0 * u / s * (x1 - 1.0 - u), 10.0 * 0.1 / s
    u1 = -m * x1 / (1.0 + m * m + v)
    x2 = x1 + b * u1 + e1
    costs = 1.0 + u * u + x1**2 + u1**2 + x2**2
    error = costs.std() / np.sqrt(count)
    assert exact.expected_cost(toy, 0, toy.prior, u) == pytest.approx(costs.mean(), abs=4 * error)


def test_at_the_last_step_it_is_dual_and_cautious(toy: Problem) -> None:
    last = State(1, Belief(np.array([1.5, 0.4]), np.diag([0.0, 2.0])), None)
    _, u, info = controller(toy, "exact").step(last)
    assert u[0] == pytest.approx(-0.4 * 1.5 / (1 + 2.0 + 0.16), abs=1e-6)
    assert sum(info.parts) == pytest.approx(sum(controller(toy, "dual").step(last)[2].parts), rel=1e-9)


def test_with_a_known_gain_it_is_ce_and_the_exact_lqg_cost(toy: Problem) -> None:
    known = replace(toy, prior=Belief(np.array([1.0, 2.0]), np.zeros((2, 2))))
    _, u, info = controller(known, "exact").step(controller(known, "exact").init())
    assert u[0] == pytest.approx(controller(known, "ce").act()[0], abs=1e-6)
    assert sum(info.parts) == pytest.approx(1.4269, abs=5e-5)
    longer = known.extended(1)
    assert controller(longer, "exact").act()[0] == pytest.approx(controller(longer, "ce").act()[0], abs=1e-4)


def test_nothing_beats_it(toy: Problem) -> None:
    least = sum(controller(toy, "exact").step(controller(toy, "exact").init())[2].parts)
    for name in ("ce", "cautious", "beb", "dual"):
        assert exact.expected_cost(toy, 0, toy.prior, controller(toy, name).act()[0]) > least


def test_it_follows_a_reference(toy: Problem) -> None:
    moved = replace(toy, reference=np.full((3, 1), 4.0), prior=Belief(np.array([5.0, 1.0]), toy.prior.covariance))
    # x - 4 is not a state of the same toy (a = 1 moves the reference with it), so the input is that of x = 1
    assert controller(moved, "exact").act()[0] == pytest.approx(controller(toy, "exact").act()[0], abs=1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"limits": np.array([[-1.0], [1.0]])}, "the input must have no bounds"),
        ({"prior": Belief(np.ones(2), np.eye(2))}, "the start must be known"),
        ({"input_cost": np.zeros((2, 1, 1))}, "the input cost must be positive|has no limit"),
    ],
)
def test_tasks_that_do_not_fit_are_named(toy: Problem, changes: dict[str, object], message: str) -> None:
    with pytest.raises(SymdualError, match=message):
        controller(replace(toy, **changes), "exact")  # type: ignore[arg-type]


def test_models_that_do_not_fit_are_named(
    toy: Problem, pair_package: LoadedPackage, offset_package: LoadedPackage
) -> None:
    with pytest.raises(SymdualError, match=r'"exact" does not fit the model pair: .* one state, one input'):
        controller(problem(pair_package), "exact")
    with pytest.raises(SymdualError, match="does not fit the model toy: at most 3 steps can be treated, not 4"):
        controller(toy.extended(2), "exact")
    short = problem(offset_package)
    short = replace(
        short, state_cost=short.state_cost[:3], input_cost=short.input_cost[:2], reference=short.reference[:3]
    )
    with pytest.raises(SymdualError, match=r"the model offset: it is not x' = a x \+ b u"):
        controller(short, "exact")


def test_a_missing_measurement_is_named(toy: Problem) -> None:
    chosen = controller(toy, "exact")
    chosen.act()
    with pytest.raises(SymdualError, match='"exact" needs a measurement at step 1'):
        chosen.act(None)


def test_its_results_are_laid_out_as_in_packages(toy_package: LoadedPackage) -> None:
    cost = toy_package.dual_cost
    columns = (
        cost.OUT_COST,
        cost.OUT_NOMINAL,
        cost.OUT_UNCERTAIN,
        cost.OUT_STATUS,
        cost.OUT_FALLBACK,
        cost.OUT_ITERATIONS,
    )
    assert columns == (0, 1, 2, 3, 4, 5)
    assert (toy_package.nominal.CONVERGED, toy_package.nominal.NOT_FINITE) == (0, 3)
