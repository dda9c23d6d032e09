"""The exact controller against adaptive quadrature, simulation, and what it must reduce to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from scipy import integrate, optimize, special

import symdual
from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.runtime import exact, nested_quadrature
from symdual.runtime.belief import Belief
from symdual.runtime.controller import State, controller
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Problem, problem


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


# ------------------------------------------------------------ hard problems


class Short(NamedTuple):
    """Three steps of x' = a x + b u + xi from the belief (x, m, v), and a first input."""

    x: float = 1.0
    m: float = 1.0
    v: float = 10.0
    a: float = 1.0
    q: float = 0.1
    W: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)
    U: tuple[float, ...] = (1.0, 1.0, 1.0)
    r: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
    u: float = -0.2

    @property
    def costs(self) -> tuple[Array, Array, Array]:
        return np.reshape(self.W, (4, 1, 1)), np.reshape(self.U, (3, 1, 1)), np.reshape(self.r, (4, 1))

    def cost(self, k: int, u: float, x: float, m: float, v: float) -> float:
        return nested_quadrature.cost(k, 3, u, x, m, v, self.a, self.q, *self.costs)


HARD = {
    "nearly known": Short(x=2.0, m=-0.4, v=1e-4, a=1.3, q=0.5),
    "unknown": Short(x=0.5, m=0.3, v=500.0, q=0.6),
    "quiet": Short(x=-1.0, m=0.05, v=2.0, a=0.9, q=1e-4),
    "loud": Short(x=0.1, m=0.6, v=0.6, q=8.0, W=(0.5, 3.4, 4.4, 4.2), U=(0.06, 2.4, 0.005)),
    "cheap inputs": Short(x=1.5, m=-0.2, v=1.0, U=(1e-3, 1e-3, 2e-3)),
    "references": Short(x=-0.7, m=0.9, v=0.8, a=-0.9, r=(0.3, -1.0, 2.0, 0.5), U=(0.1, 0.2, 0.05)),
    "only the end counts": Short(x=2.0, m=0.1, v=3.0, a=1.2, W=(0.0, 0.0, 0.0, 2.0), U=(0.01, 0.01, 0.01)),
    "a pole beside the mean": Short(x=1.0, m=5.0, v=1.0, U=(1e-3, 1e-3, 1e-3)),
    "narrow valleys": Short(
        x=0.341, m=0.632, v=0.256, a=0.94, q=0.368, W=(0.0, 0.166, 0.294, 3.35), U=(0.013, 0.0011, 0.098), u=-0.263
    ),
    "kinks that the rules do not see": Short(
        x=-0.0031,
        m=0.0117,
        v=0.0236,
        a=1.4818,
        q=0.0217,
        W=(0.0, 0.0, 0.138, 3.411),
        U=(0.222, 0.0011, 0.032),
        u=0.3517,
    ),
    "kinks side by side": Short(
        x=0.0056,
        m=-7.0229,
        v=653.1522,
        a=1.3427,
        q=0.614,
        W=(1.01, 0.305, 3.315, 1.349),
        U=(1.384, 0.2, 0.162),
        r=(0.789, 0.479, 0.319, 0.701),
        u=0.1165,
    ),
}


def test_the_faddeeva_function() -> None:
    random = np.random.default_rng(0)
    z = random.uniform(-6.4, 6.4, 2000) + 1j * np.append(0.0, 10 ** random.uniform(-6.0, 0.45, 1999))
    found = np.array([nested_quadrature.faddeeva(value.real, value.imag) for value in z])
    np.testing.assert_allclose(found, special.wofz(z), rtol=1e-13)


def trapezoid(short: Short, u: float, x: float, m: float, v: float) -> float:
    """J_1(u) of three steps: the last law applied at each of many points, no formula for its cost."""
    (_, w1, w2, w3), (_, u1, u2), (_, r1, r2, r3) = short.W, short.U, short.r
    s = np.sqrt(u * u * v + short.q)
    after = 1.0 / (1.0 / v + u * u / short.q)
    pole = np.sqrt(u2 / w3 + after) * s / (v * abs(u)) if u else np.inf
    step = min(0.1, pole / 6.0)
    e = step * np.arange(-int(10.0 / step), int(10.0 / step) + 1)
    y = short.a * x + m * u + s * e
    mean = after * (m / v + u * (y - short.a * x) / short.q)
    last = -w3 * mean * (short.a * y - r3) / (u2 + w3 * (mean**2 + after))
    missed = (short.a * y + mean * last - r3) ** 2 + after * last**2 + short.q
    total = np.exp(-0.5 * e * e) @ (w2 * (y - r2) ** 2 + u2 * last**2 + w3 * missed)
    return float(w1 * (x - r1) ** 2 + u1 * u * u + total * step / np.sqrt(2.0 * np.pi))


@pytest.mark.parametrize("name", HARD)
def test_two_steps_of_hard_problems(name: str) -> None:
    short = HARD[name]
    for scale in (-30.0, -3.0, -0.8, -0.05, 0.0, 0.01, 0.4, 1.7, 300.0):
        u = scale * np.sqrt(short.q / short.v)
        expected = trapezoid(short, u, short.x, short.m, short.v)
        assert short.cost(1, u, short.x, short.m, short.v) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", HARD)
def test_the_slope_of_the_cost(name: str) -> None:
    short = HARD[name]
    two = nested_quadrature.two_from(1, short.a, short.q, *short.costs)
    for scale in (-30.0, -1.0, -0.05, 0.0, 0.3, 1.7):
        u, step = scale * np.sqrt(short.q / short.v), 1e-4 * np.sqrt(short.q / short.v)
        value, slope = nested_quadrature.cost_and_slope(u, short.x, short.m, short.v, two)
        up, down = (
            nested_quadrature.cost_and_slope(u + sign * step, short.x, short.m, short.v, two)[0] for sign in (1, -1)
        )
        assert slope == pytest.approx((up - down) / (2 * step), rel=1e-6, abs=1e-10 * value / step)


def least(short: Short, x: float, m: float, v: float) -> tuple[float, float]:
    """V_1 and its input: the two deepest points of a fine grid, each refined on finer ones."""

    def costs(inputs: Array) -> Array:
        return np.array([short.cost(1, u, x, m, v) for u in inputs])

    reach = np.sqrt(short.cost(1, 0.0, x, m, v) / short.U[1])
    scale = min(np.sqrt(short.q / v), reach)
    grid = scale * np.sinh(np.linspace(-1.0, 1.0, 301) * np.arcsinh(1.01 * reach / scale))
    found = costs(grid)
    inner = 1 + np.flatnonzero((found[1:-1] <= found[:-2]) & (found[1:-1] <= found[2:]))
    best = []
    for i in inner[np.argsort(found[inner])[:2]]:
        low, high = grid[i - 1], grid[i + 1]
        for _ in range(4):
            fine = np.linspace(low, high, 13)
            values = costs(fine)
            at = int(np.argmin(values))
            low, high = fine[max(at - 1, 0)], fine[min(at + 1, 12)]
        best.append((values[at], fine[at]))
    return min(best)


def between_kinks(short: Short, u: float) -> float:
    """J_0(u) by adaptive quadrature between the places at which the best next input changes its sign."""
    s = np.sqrt(u * u * short.v + short.q)
    after = 1.0 / (1.0 / short.v + u * u / short.q)

    def value(e: float) -> tuple[float, float]:
        return least(short, short.a * short.x + short.m * u + s * e, short.m + short.v * u / s * e, after)

    edges, scan = [-7.0, 7.0], np.linspace(-7.0, 7.0, 57)
    if abs(short.m) * s < 7.0 * short.v * abs(u):  # V is even in the mean
        edges.append(-short.m * s / (short.v * u))
        scan = np.sort(np.append(scan, [edges[-1] - 1e-6, edges[-1] + 1e-6]))
    signs = [np.sign(value(e)[1]) for e in scan]
    for (low, high), (before, behind) in zip(pairwise(scan), pairwise(signs), strict=True):
        if before != behind and high - low > 1e-5:
            edges.append(optimize.bisect(lambda e: np.sign(value(e)[1]) or 1.0, low, high, xtol=1e-6))

    def integrand(e: float) -> float:
        return np.exp(-0.5 * e * e) * value(e)[0] / np.sqrt(2.0 * np.pi)

    edges = sorted([*edges, -2.0, 0.0, 2.0])
    accuracy = 1e-9 * integrand(1.0)
    total = sum(integrate.quad(integrand, *ends, epsabs=accuracy, epsrel=1e-9)[0] for ends in pairwise(edges))
    return float(short.W[0] * (short.x - short.r[0]) ** 2 + short.U[0] * u * u + total)


@pytest.mark.parametrize("name", HARD)
def test_three_steps_of_hard_problems(name: str) -> None:
    short = HARD[name]
    found = short.cost(0, short.u, short.x, short.m, short.v)
    assert found == pytest.approx(between_kinks(short, short.u), rel=3e-9)


def test_what_is_not_a_number_comes_to_an_end() -> None:
    for field in ("x", "m", "v", "a", "q"):
        short = Short()._replace(**{field: np.nan})
        assert np.isnan(short.cost(0, 0.3, short.x, short.m, short.v))
    assert not np.isfinite(Short().cost(0, 0.3, 1e200, 1.0, 10.0))


def test_without_process_noise_one_input_tells_all() -> None:
    """Then x' = a x + b u is b itself: the cost of a known gain, averaged over the prior."""
    short = Short(q=0.0)
    b = 1.0 + np.sqrt(10.0) * (e := np.linspace(-10.0, 10.0, 4001))
    share = np.exp(-0.5 * e * e) / np.exp(-0.5 * e * e).sum()
    for u in (-0.5, 0.2):
        x1 = 1.0 + b * u
        K = 1.0 + 1.0 / (1.0 + b * b)
        expected = 1.0 + u * u + share @ (x1**2 * (1.0 + K / (1.0 + b * b * K)))
        assert short.cost(0, u, 1.0, 1.0, 10.0) == pytest.approx(expected, rel=1e-8)


# ------------------------------------------------------------ what it must be


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
        ({"input_bounds": np.array([[-1.0], [1.0]])}, "the input must have no bounds"),
        ({"prior": Belief(np.ones(2), np.eye(2))}, "the start must be known"),
        ({"input_cost": np.zeros((2, 1, 1))}, "the input cost must be positive|has no limit"),
    ],
)
def test_problems_that_do_not_fit_are_named(toy: Problem, changes: dict[str, object], message: str) -> None:
    with pytest.raises(SymdualError, match=message):
        controller(replace(toy, **changes), "exact")  # type: ignore[arg-type]


def test_models_that_do_not_fit_are_named(
    toy: Problem, pair_package: LoadedPackage, quick_offset_package: LoadedPackage
) -> None:
    with pytest.raises(SymdualError, match=r'"exact" does not fit the model pair: .* one state, one input'):
        controller(problem(symdual.load(pair_package.folder)), "exact")
    with pytest.raises(SymdualError, match="does not fit the model toy: at most 3 steps can be treated, not 4"):
        controller(toy.extended(2), "exact")
    short = problem(quick_offset_package)
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
