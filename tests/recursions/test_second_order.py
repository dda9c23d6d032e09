"""The second-order filter against exact Gaussian moments: of quadratic maps it is exact."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
import sympy as sp

from symdual.checks import dense
from symdual.checks.recursions import check_recursions
from symdual.checks.slopes import SLOPE
from symdual.spec.specification import specified

from .conftest import Case
from .test_filter import Filter

Make = Callable[..., Case]

ROOT = sp.Matrix(4, 4, lambda i, j: sp.Rational(1 + (3 * i + 2 * j) % 5, 7) * (1 if j <= i else 0))
MEAN = [sp.Rational(3, 10), sp.Rational(-7, 10), sp.Rational(11, 10), sp.Rational(1, 5)]
INPUT = sp.Rational(13, 10)


def expectation(polynomial: sp.Expr, normal: tuple[sp.Symbol, ...]) -> sp.Rational:
    """The expectation of a polynomial in independent standard normal variables, as a fraction."""
    total = sp.Integer(0)
    for powers, coefficient in sp.Poly(polynomial, *normal).terms():
        if all(power % 2 == 0 for power in powers):
            total += coefficient * sp.prod([sp.factorial2(power - 1) for power in powers if power > 0])
    return total


def exact_moments(maps: list[sp.Expr], z: list[sp.Symbol]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of polynomials in z ~ N(MEAN, ROOT ROOT'), in exact fractions."""
    normal = sp.symbols("xi0:4")
    drawn = {s: m + e for s, m, e in zip(z, MEAN, ROOT * sp.Matrix(normal), strict=True)}
    values = [sp.expand(f.xreplace(drawn)) for f in maps]
    means = [expectation(f, normal) for f in values]
    covariance = np.zeros((len(maps), len(maps)))
    for i, j in itertools.combinations_with_replacement(range(len(maps)), 2):
        product = expectation(sp.expand((values[i] - means[i]) * (values[j] - means[j])), normal)
        covariance[i, j] = covariance[j, i] = float(product.evalf(50))
    return np.array([float(m.evalf(50)) for m in means]), covariance


@pytest.mark.parametrize("name", ["quadratic", "rooted_quadratic"])
def test_moments_of_quadratic_maps_are_exact(case: Make, name: str) -> None:
    c = case(name)
    c.belief = dense.Belief(np.array(MEAN, dtype=float), np.array(ROOT * ROOT.T, dtype=float))
    c.noise = c.noise._replace(measurement=np.diag([0.3, 0.2]))
    z = [*c.model.states, *c.model.unknowns]
    motion = [f.xreplace({c.model.inputs[0]: INPUT}) for f in c.model.dynamics]
    generated = Filter(c)
    generated.predict(0, np.array([float(INPUT)]))
    mean, covariance = exact_moments([sp.nsimplify(f) for f in motion] + z[2:], z)
    covariance[:2, :2] += c.noise.process
    assert generated.z == pytest.approx(mean, rel=1e-14)
    assert np.abs(generated.covariance - covariance).max() <= 1e-13 * np.abs(covariance).max()
    generated, y = Filter(c), np.array([0.4, -0.2])
    generated.update(0, y)
    seen = [sp.nsimplify(h) for h in c.model.observation]
    mean, covariance = exact_moments(seen + z, z)
    S, cross = covariance[:2, :2] + c.noise.measurement, covariance[2:, :2]
    gain = np.linalg.solve(S, cross.T).T
    assert generated.z == pytest.approx(c.belief.mean + gain @ (y - mean[:2]), rel=1e-13)
    left = c.belief.covariance - gain @ S @ gain.T
    assert np.abs(generated.covariance - left).max() <= 1e-13 * np.abs(left).max()


def test_moments_agree_with_a_million_samples(case: Make) -> None:
    c = case("quadratic")
    c.belief = dense.Belief(np.array(MEAN, dtype=float), np.array(ROOT * ROOT.T, dtype=float))
    generated, u, runs = Filter(c), np.array([0.7]), 1_000_000
    generated.predict(0, u)
    drawn = np.random.default_rng(0).multivariate_normal(*c.belief, size=runs)
    motion = sp.lambdify([*c.model.states, *c.model.unknowns, *c.model.inputs], c.model.dynamics)
    values = np.stack(np.broadcast_arrays(*motion(*drawn.T, u[0])), axis=1)
    spread = values.std(axis=0)
    assert np.abs(generated.z[:2] - values.mean(axis=0)).max() < 5 * spread.max() / np.sqrt(runs)
    own = (generated.covariance[:2, :2] - c.noise.process) / np.outer(spread, spread)
    assert np.abs(own - np.corrcoef(values.T)).max() < 0.02


@pytest.mark.parametrize("name", ["second_network", "second_product", "rooted_quadratic", "second_lit"])
def test_plans_count_what_the_filter_counts(case: Make, name: str) -> None:
    """Covariances, dual cost and its slope: dense, and the slope against differences of the model in 50 digits."""
    c = case(name)
    results = check_recursions(specified(c.model), c.package)
    assert [r for r in results if not r.passed] == []
    assert {r.oracle for r in results if r.block == SLOPE} == {"dense", "50 digits"}


def test_the_cost_of_a_step_is_exact_but_for_the_square_of_the_drift(case: Make) -> None:
    """E (x - r)' W (x - r) = Jbar + Jd + d' W d, for f of second degree, order 2, and d = 1/2 tr(H_i S)."""
    c = case("quadratic", horizon=1)
    c.belief = dense.Belief(np.array(MEAN, dtype=float), np.array(ROOT * ROOT.T, dtype=float))
    u = np.array([float(INPUT)])
    motion = [sp.nsimplify(f.xreplace({c.model.inputs[0]: INPUT})) for f in c.model.dynamics]
    mean, covariance = exact_moments(motion, [*c.model.states, *c.model.unknowns])
    W, off = c.cost.state[1], mean - c.cost.reference[1]
    begin = c.cost.at(0, c.belief.mean, u).value + np.sum(c.cost.state[0] * c.belief.covariance[:2, :2])
    expected = begin + off @ W @ off + np.sum(W * (covariance + c.noise.process))
    drift = mean - c.reference.dynamics(0, c.belief.mean, u)
    nominal, uncertain, fallback = c.cost_of("second_order", 0, u[None])
    assert not fallback
    assert nominal + uncertain + drift @ W @ drift == pytest.approx(expected, rel=1e-12)
    _, first_order, _ = c.cost_of("structured", 0, u[None])
    slope = W @ (c.reference.dynamics(0, c.belief.mean, u) - c.cost.reference[1])
    assert first_order + 2 * slope @ drift == pytest.approx(uncertain, rel=1e-12)
