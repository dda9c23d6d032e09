"""Section 2: sizes, densities, the expected cost on a linear system, and Bellman's equation on an exact example."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import sympy as sp

from symdual.common.arrays import Array
from symdual.paper.case import Case, Computed, Convention, Correction, Derivation, Form, Meant, Printed
from symdual.paper.derivations import draws
from symdual.paper.derivations.gaussians import beside, expectation, moments, scalar_expectation
from symdual.paper.machine import Indexed, counted
from symdual.paper.matrices import Matrix, stack, vectorise

SIZES = ((1, 2, 1), (2, 3, 1), (3, 2, 2))
"""Triples (n, m, d): states, features, measurements."""


def _plant(n: int, m: int, d: int) -> dict[str, object]:
    rng = draws.source(2, n, m, d)
    mix, shift = draws.matrix(rng, n, n), draws.matrix(rng, n, 1)
    weights = draws.matrix(rng, m, n)
    parameters = (m + 1) * n
    return {
        "n": n,
        "m": m,
        "k": 0,
        "x": counted([draws.matrix(rng, n)], 0),
        "u": counted([draws.matrix(rng, 1)], 0),
        "xi": counted([draws.matrix(rng, n)], 0),
        "gamma": counted([draws.matrix(rng, d)], 0),
        "theta": counted([draws.matrix(rng, parameters)], 0),
        "A": counted([draws.matrix(rng, n, m)], 0),
        "B": counted([draws.matrix(rng, n, 1)], 0),
        "C": draws.matrix(rng, d, n),
        "D": draws.matrix(rng, parameters, parameters),
        "Q": draws.covariance(rng, n),
        "R": draws.covariance(rng, d),
        "Xi": draws.covariance(rng, parameters),
        "f": lambda x, u: Matrix(np.tanh(mix.array @ x.array) + shift.array * u.array[0, 0]),
        "phi": lambda x: Matrix(np.sin(weights.array @ x.array)),
        "x_hat": draws.matrix(rng, n),
        "theta_hat": draws.matrix(rng, parameters),
        "Sxx": draws.covariance(rng, n),
        "Sxt": draws.matrix(rng, n, parameters),
        "Stx": draws.matrix(rng, parameters, n),
        "Stt": draws.covariance(rng, parameters),
        "N": beside,
        "stack": stack,
    }


def _sized(rows: Callable[[int, int, int], tuple[int, int]]) -> Iterator[Case]:
    for n, m, d in SIZES:
        yield Case(f"n = {n}, m = {m}, d = {d}", _plant(n, m, d), Form(*rows(n, m, d)))


def _definition(method: str, rows: Callable[[int, int, int], tuple[int, int]]) -> Derivation:
    return Derivation(method, partial(_sized, rows))


def _density(line: str, disturbance: str, noise: str) -> Iterator[Case]:
    """Mean and covariance of what a line prints, over its disturbance."""
    for n, m, d in SIZES:
        plant = _plant(n, m, d)
        cov = plant[noise]
        assert isinstance(cov, Matrix)

        def spread(value: Callable[[Indexed], Matrix], cov: Matrix = cov) -> Matrix:
            mean, wide = moments(
                lambda e: value(counted([Matrix(e)], 0)).array[:, 0], np.zeros(cov.shape[0]), cov.array
            )
            return beside(Matrix(mean), Matrix(wide))

        yield Case(f"n = {n}, d = {d}", plant, Computed(spread, {"value": Printed(line, (disturbance,))}))


def _parameter_length() -> Iterator[Case]:
    for n, m, d in SIZES:
        rng = draws.source(21, n, m, d)
        theta = stack([[vectorise(draws.matrix(rng, n, m))], [vectorise(draws.matrix(rng, n, 1))]])
        yield Case(f"n = {n}, m = {m}", {"n": n, "m": m}, theta.shape[0])


def _cost_form() -> Iterator[Case]:
    for n, horizon in ((1, 2), (2, 3)):
        symbols, _, _ = _open_loop(n, horizon)
        family = {name: [m.array for _, m in symbols[name].items()] for name in ("x", "r", "W", "u", "U")}  # type: ignore[attr-defined]
        gaps = [x - r for x, r in zip(family["x"], family["r"], strict=True)]
        states = sum(float((g.T @ w @ g)[0, 0]) for g, w in zip(gaps, family["W"], strict=True))
        inputs = sum(float((u.T @ price @ u)[0, 0]) for u, price in zip(family["u"], family["U"], strict=True))
        yield Case(f"n = {n}, T = {horizon}", symbols, Meant(Matrix(states + inputs)))


def _open_loop(n: int, horizon: int) -> tuple[dict[str, object], list[float], list[tuple[Array, Array]]]:
    """A linear system under fixed inputs: its symbols, E[cost from k on] and the marginals of x_k.

    All states are one linear map of (x_0, xi_0, ..., xi_{T-1}); every expectation follows from that map at once.
    """
    rng = draws.source(22, n, horizon)
    a, b = draws.stable(rng, n).array, draws.matrix(rng, n).array
    q, s0 = draws.covariance(rng, n).array, draws.covariance(rng, n).array
    m0 = draws.matrix(rng, n).array[:, 0]
    inputs = [draws.matrix(rng, 1) for _ in range(horizon)]
    references = [draws.matrix(rng, n) for _ in range(horizon + 1)]
    weights = [draws.covariance(rng, n) for _ in range(horizon + 1)]
    prices = [draws.covariance(rng, 1) for _ in range(horizon)]
    power = [np.linalg.matrix_power(a, i) for i in range(horizon + 1)]
    marginals, tails = [], []
    for k in range(horizon + 1):
        forced = sum((power[k - 1 - i] @ b[:, 0] * inputs[i].array[0, 0] for i in range(k)), np.zeros(n))
        noise = sum((power[k - 1 - i] @ q @ power[k - 1 - i].T for i in range(k)), np.zeros((n, n)))
        marginals.append((power[k] @ m0 + forced, power[k] @ s0 @ power[k].T + noise))
    stage = []
    for k, (mean, cov) in enumerate(marginals):
        gap = mean - references[k].array[:, 0]
        price = prices[k].array[0, 0] * inputs[k].array[0, 0] ** 2 if k < horizon else 0.0
        stage.append(float(gap @ weights[k].array @ gap + np.trace(weights[k].array @ cov) + price))
    tails = [sum(stage[k:]) for k in range(horizon + 1)]
    symbols: dict[str, object] = {
        "T": horizon,
        "u": counted(inputs, 0),
        "x": counted([Matrix(mean) for mean, _ in marginals], 0),
        "r": counted(references, 0),
        "W": counted(weights, 0),
        "U": counted(prices, 0),
        "J": counted([Matrix(tail) for tail in tails], 0),
    }
    return symbols, tails, marginals


def _expected_cost() -> Iterator[Case]:
    for n, horizon in ((1, 3), (2, 3), (3, 2)):
        symbols, tails, marginals = _open_loop(n, horizon)
        for k in range(horizon):
            belief = {"E": partial(expectation, mean=marginals[k][0], cov=marginals[k][1]), "k": k}
            yield Case(f"n = {n}, T = {horizon}, k = {k}", {**symbols, **belief}, Matrix(tails[k]))


def _terminal_cost() -> Iterator[Case]:
    for n, horizon in ((1, 3), (2, 3), (3, 2)):
        symbols, tails, marginals = _open_loop(n, horizon)
        belief = {"E": partial(expectation, mean=marginals[-1][0], cov=marginals[-1][1])}
        yield Case(f"n = {n}, T = {horizon}", {**symbols, **belief}, Matrix(tails[-1]))


def _past_inputs() -> Iterator[Case]:
    a, b, start = sp.symbols("a b x0")
    for k in (1, 2, 4):
        inputs = sp.symbols(f"u0:{k}")
        state = start
        for value in inputs:
            state = a * state + b * value
        depends = frozenset(i for i, value in enumerate(inputs) if sp.expand(state).diff(value) != 0)
        yield Case(f"k = {k}", {"k": k}, depends)


class _TwoSteps:
    """A scalar linear system with noisy measurements, two inputs, and its exact optimal cost."""

    def __init__(self, seed: int) -> None:
        rng = draws.source(23, seed)
        self.a, self.b, self.mean = (float(draws.matrix(rng, 1).array[0, 0]) for _ in range(3))
        self.variance, self.q, self.noise = (float(draws.covariance(rng, 1).array[0, 0]) for _ in range(3))
        self.w = [float(draws.covariance(rng, 1).array[0, 0]) for _ in range(3)]
        self.u = [float(draws.covariance(rng, 1).array[0, 0]) for _ in range(2)]
        self.r = [float(draws.matrix(rng, 1).array[0, 0]) for _ in range(3)]

    def last_step(self, mean: float, variance: float) -> float:
        """J*_1 of a Gaussian belief: the best input found from three evaluations of a parabola."""

        def cost(u: float) -> float:
            ahead = self.a * mean + self.b * u - self.r[2]
            spread = self.a**2 * variance + self.q
            now = self.w[1] * ((mean - self.r[1]) ** 2 + variance)
            return now + self.u[1] * u**2 + self.w[2] * (ahead**2 + spread)

        return lowest(cost)

    def without_measurement(self, u: float) -> float:
        """J*_1 of the predicted belief."""
        return self.last_step(self.a * self.mean + self.b * u, self.a**2 * self.variance + self.q)

    def with_measurement(self, u: float) -> float:
        """E over y_1 of J*_1 of the updated belief."""
        centre, spread = self.a * self.mean + self.b * u, self.a**2 * self.variance + self.q
        gain = spread / (spread + self.noise)
        return scalar_expectation(
            lambda y: self.last_step(centre + gain * (y - centre), (1 - gain) * spread), centre, spread + self.noise, 5
        )

    def exact(self) -> float:
        """min over u_0 and u_1 = alpha + beta (y_1 - E y_1) of E[L], a quadratic function of (u_0, alpha, beta)."""

        def cost(z: Array) -> float:
            u0, alpha, beta = z
            x1 = self.a * self.mean + self.b * u0
            v1 = self.a**2 * self.variance + self.q
            x2 = self.a * x1 + self.b * alpha
            v2 = (self.a + self.b * beta) ** 2 * v1 + self.b**2 * beta**2 * self.noise + self.q
            v_input = beta**2 * (v1 + self.noise)
            first = self.w[0] * ((self.mean - self.r[0]) ** 2 + self.variance) + self.u[0] * u0**2
            second = self.w[1] * ((x1 - self.r[1]) ** 2 + v1) + self.u[1] * (alpha**2 + v_input)
            return float(first + second + self.w[2] * ((x2 - self.r[2]) ** 2 + v2))

        return lowest_quadratic(cost, 3)


def lowest(cost: Callable[[float], float]) -> float:
    """The minimum of a parabola, from three of its values."""
    left, centre, right = cost(-1.0), cost(0.0), cost(1.0)
    curvature, slope = left - 2 * centre + right, (right - left) / 2
    return centre - slope**2 / (2 * curvature)


def lowest_quadratic(cost: Callable[[Array], float], size: int) -> float:
    """The minimum of a quadratic function of several variables, from its values on a stencil."""
    unit = np.eye(size)
    centre = cost(np.zeros(size))
    slope = np.array([(cost(e) - cost(-e)) / 2 for e in unit])
    hessian = np.array([[cost(e + g) - cost(e) - cost(g) + centre for g in unit] for e in unit])
    return float(centre - 0.5 * slope @ np.linalg.solve(hessian, slope))


def _bellman(measured: bool) -> Iterator[Case]:
    for seed in range(3):
        system = _TwoSteps(seed)
        symbols = {
            "k": 0,
            "r": counted(system.r, 0),
            "W": counted(system.w, 0),
            "U": counted(system.u, 0),
            "Jstar": system.with_measurement if measured else system.without_measurement,
            "minimum": lowest,
            "E": partial(scalar_expectation, mean=system.mean, variance=system.variance, count=5),
        }
        yield Case(f"scalar system {seed + 1}, T = 2", symbols, system.exact())


DERIVATIONS = {
    "2.dynamics": _definition("Sizes: f, x and xi have n entries.", lambda n, m, d: (n, 1)),
    "2.observation": _definition("Sizes: C is d x n and y has d entries.", lambda n, m, d: (d, 1)),
    "2.density-state": Derivation(
        "Mean and covariance of the printed next state over xi, by Gauss-Hermite quadrature.",
        partial(_density, "2.dynamics", "xi", "Q"),
    ),
    "2.density-observation": Derivation(
        "Mean and covariance of the printed measurement over gamma, by Gauss-Hermite quadrature.",
        partial(_density, "2.observation", "gamma", "R"),
    ),
    "2.features": _definition("Sizes: A is n x m, B is n x 1.", lambda n, m, d: (n, 1)),
    "2.parameter-size": Derivation("The stacked columns of A and B, counted.", _parameter_length),
    "2.prior": _definition(
        "Sizes of the blocks: mean and covariance of (x, theta).",
        lambda n, m, d: ((m + 2) * n, 1 + (m + 2) * n),
    ),
    "2.constant-parameters": _definition("Sizes.", lambda n, m, d: ((m + 1) * n, 1)),
    "2.drift": _definition("Sizes.", lambda n, m, d: ((m + 1) * n, 1 + (m + 1) * n)),
    "2.cost": Derivation("Term by term, as the expected cost below takes it: without a factor 1/2.", _cost_form),
    "2.expected-cost": Derivation(
        "E[L] from step k on for linear systems under fixed inputs, from the joint distribution of the trajectory.",
        _expected_cost,
    ),
    "2.past-inputs": Derivation(
        "The inputs on which x_k depends, by differentiation of the unrolled dynamics.",
        _past_inputs,
        correction=Correction(
            r"\vec{u}_{0:k-1}", "span(0, k - 1)", "The first input is u_0; it moves x_1 and every later state."
        ),
    ),
    "2.terminal-cost": Derivation(
        "E[(x_T - r_T)' W_T (x_T - r_T)] from the joint distribution of the trajectory.", _terminal_cost
    ),
    "2.optimal-cost": Derivation(
        "Scalar systems with noisy measurements and two inputs: the best affine policy, found by brute force.",
        partial(_bellman, False),
        conventions=(
            Convention(
                "the expectation runs over x_k and over the next measurement y_{k+1}, on which p(x_{k+1}) depends",
                partial(_bellman, True),
            ),
        ),
    ),
}
