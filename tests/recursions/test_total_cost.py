"""The cost of whole plans at their own distances from constraints: dense numpy, its slope, and what runs pay."""

from __future__ import annotations

from collections.abc import Callable
from math import erfc, exp, inf, pi, sqrt
from typing import Any

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import quad

from symdual import Model, unknown
from symdual.spec.objective import Objective
from symdual.spec.specification import specified

x, v, p = sp.symbols("x v p")
b = unknown("b", 1.0, 0.2)
STEPS = 4
Q, R = np.diag([1e-4, 1e-3]), np.diag([1e-3, 2e-3])
W, U, GOAL = np.diag([1.0, 0.1]), np.array([[0.05]]), np.array([1.5, 0.0])
PRICES, QUANTILES = np.array([300.0, 50.0, 200.0]), np.array([1.645, 0.0, 1.0])
MEAN, START = np.array([0.2, 0.1, 1.0]), np.diag([1e-3, 2e-3, 0.2])
INPUTS = np.array([[0.6], [0.9], [0.3], [-0.2]])


@pytest.fixture(scope="module")
def package(interpret: Callable[[Model], Any]) -> Any:
    """A constraint on a state, one on a state and an input, and one with the unknown in it."""
    model = Model([x, v], [p], [x + 0.5 * v, 0.9 * v + b * p], process_noise=Q, measurement_noise=R, name="whole")
    return interpret(specified(model, Objective(constraints=(x - 1.0, v + 0.2 * p - 0.9, b * x - 1.1))))


@pytest.fixture
def workspace(package: Any) -> Any:
    records = package.records
    settings = records.make_settings(Q, R, np.ones(1), np.zeros(1), np.array([[-3.0], [3.0]]), np.zeros(0))
    settings["constraint_weights"], settings["quantiles"], settings["weight"] = PRICES, QUANTILES, 0.7
    weights = records.make_stage_costs(
        np.tile(W, (STEPS + 1, 1, 1)), np.tile(U, (STEPS, 1, 1)), np.tile(GOAL, (STEPS + 1, 1))
    )
    return records.make_workspace(STEPS, weights, settings, planning=True)


def _whole(package: Any, workspace: Any, inputs: np.ndarray) -> float:
    belief = package.records.make_belief(MEAN, START)
    nominal = package.trajectory.follow(0, STEPS, belief, inputs, workspace)
    return float(package.planner.total_cost(0, STEPS, 0, nominal, belief, workspace))


def _hidden(g: float, sigma: float) -> float:
    """E max(0, g + sigma xi)^2 - max(0, g)^2 by quadrature."""

    def square(xi: float) -> float:
        return (g + sigma * xi) ** 2 * exp(-0.5 * xi * xi) / sqrt(2 * pi)

    return float(quad(square, -g / sigma, inf, epsabs=0.0, epsrel=1e-12)[0]) - max(g, 0.0) ** 2


class _Dense:
    """Jbar + 0.7 Jd with full matrices; Jd as a sum over the covariances in closed loop, not in its trace form."""

    def __init__(self, inputs: np.ndarray) -> None:
        self.inputs, self.z = inputs, [MEAN]
        self.A, self.S, self.learned = [], [START], []
        B, C = np.array([[0.0], [MEAN[2]], [0.0]]), np.eye(2, 3)
        self.B = B
        for u in inputs:
            A = np.array([[1.0, 0.5, 0.0], [0.0, 0.9, u[0]], [0.0, 0.0, 1.0]])
            predicted = A @ self.S[-1] @ A.T
            predicted[:2, :2] += Q
            gain = predicted @ C.T @ np.linalg.inv(C @ predicted @ C.T + R)
            self.A.append(A)
            self.learned.append(gain @ C @ predicted)
            self.S.append(predicted - gain @ C @ predicted)
            self.z.append(
                np.array([self.z[-1][0] + 0.5 * self.z[-1][1], 0.9 * self.z[-1][1] + MEAN[2] * u[0], MEAN[2]])
            )

    def constraints(self, j: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """g, g_z and g_u; at the end the constraint with an input in it does not count."""
        (x, v, b), u = self.z[j], (self.inputs[j, 0] if j < STEPS else 0.0)
        g = np.array([x - 1.0, v + 0.2 * u - 0.9, b * x - 1.1])
        return g, np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [b, 0.0, x]]), np.array([[0.0], [0.2], [0.0]])

    def curvature(self, j: int, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """W on z, N and U with each constraint counted by its share."""
        _, g_z, g_u = self.constraints(j)
        slopes = g_z * np.array([1.0, 1.0, 0.0])  # curvature by the states
        whole = np.zeros((3, 3))
        whole[:2, :2] = W
        prices = PRICES * shares
        return whole + slopes.T * prices @ slopes, g_u.T * prices @ slopes, U + g_u.T * prices @ g_u

    def closed_loop(self, shares: np.ndarray) -> tuple[np.ndarray, float]:
        """sigma of all constraints, and what uncertainty costs but for excesses, of which gains know by shares."""
        gains = [np.zeros((1, 3))] * STEPS
        K = self.curvature(STEPS, shares[STEPS])[0]
        for j in range(STEPS - 1, 0, -1):
            H, N, Huu = self.curvature(j, shares[j])
            effort, mixed = Huu + self.B.T @ K @ self.B, N + self.B.T @ K @ self.A[j]
            gains[j] = -np.linalg.solve(effort, mixed)
            K = H + self.A[j].T @ K @ self.A[j] + mixed.T @ gains[j]
        M, sigma, total = np.zeros((3, 3)), np.zeros((STEPS + 1, 3)), 0.0
        for j in range(STEPS + 1):
            L = gains[j] if j < STEPS else np.zeros((1, 3))
            _, g_z, g_u = self.constraints(j)
            answered = g_z + (g_u @ L if j < STEPS else 0.0)
            sigma[j] = np.sqrt(np.diag(g_z @ self.S[j] @ g_z.T) + np.diag(answered @ M @ answered.T))
            H, _, Huu = self.curvature(j, np.zeros(3))
            total += np.trace(H @ (self.S[j] + M)) + np.trace(Huu @ L @ M @ L.T)
            if j < STEPS:
                loop = self.A[j] + self.B @ L
                M = loop @ M @ loop.T + self.learned[j]
        return sigma, total

    def cost(self) -> float:
        shares = np.zeros((STEPS + 1, 3))
        counted = np.ones((STEPS + 1, 3))
        counted[STEPS, 1] = 0.0
        g = np.array([self.constraints(j)[0] for j in range(STEPS + 1)])
        for _ in range(2):
            sigma, _ = self.closed_loop(shares)
            shares = counted * np.vectorize(lambda a, s: 0.5 * erfc(-a / (s * sqrt(2))))(g, sigma)
        sigma, uncertain = self.closed_loop(shares)
        uncertain += float(np.sum(PRICES * counted * np.vectorize(_hidden)(g, sigma)))
        return self.nominal(QUANTILES * sigma) + 0.7 * uncertain

    def nominal(self, distances: np.ndarray) -> float:
        """L with penalties at given distances."""
        states = np.array([z[:2] - GOAL for z in self.z])
        total = np.einsum("ji,ik,jk->", states, W, states) + U[0, 0] * float(np.sum(self.inputs**2))
        excess = np.maximum(np.array([self.constraints(j)[0] for j in range(STEPS + 1)]) + distances, 0.0)
        excess[STEPS, 1] = 0.0
        return float(total + np.sum(PRICES * excess**2))


@pytest.mark.parametrize("scale", [0.2, 0.6, 1.0])
def test_the_cost_is_that_of_full_matrices(package: Any, workspace: Any, scale: float) -> None:
    inputs = scale * INPUTS
    expected = _Dense(inputs).cost()
    assert _whole(package, workspace, inputs) == pytest.approx(expected, rel=1e-10)
    # it is a function of the plan alone: what was evaluated before does not matter
    _whole(package, workspace, -inputs)
    assert _whole(package, workspace, inputs) == pytest.approx(expected, rel=1e-10)


def test_the_slope_knows_that_backoffs_follow_the_plan(package: Any, workspace: Any) -> None:
    """The slope of the dense cost is that of L at distances that are held, and twice the gradient."""
    belief = package.records.make_belief(MEAN, START)
    inputs = 0.6 * INPUTS
    _whole(package, workspace, inputs)
    package.adjoint.dual_gradient(0, STEPS, STEPS, np.int64(0), 0.7, belief, workspace)
    held = workspace.plan["backoff"][0, : STEPS + 1].copy()
    assert held[1:, 0].min() > 0.01
    for j in range(STEPS):
        step = np.zeros_like(inputs)
        step[j] = 1e-5
        up, down = _Dense(inputs + step), _Dense(inputs - step)
        slope = (up.cost() - down.cost()) / 2e-5
        at_held = (up.nominal(held) - down.nominal(held)) / 2e-5
        assert slope == pytest.approx(at_held + 2.0 * workspace.stages["gradient_u"][j, 0], rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("a", [-30.0, -8.0, -1.645, -0.1, 0.0, 0.5, 4.0, 30.0])
def test_a_spread_adds_what_quadrature_says(package: Any, a: float) -> None:
    hidden = package.uncertain_cost.hidden_excess
    expected = _hidden(2.0 * a, 2.0)
    assert hidden(2.0 * a, 2.0) == pytest.approx(expected, rel=1e-9, abs=1e-14)
    # before the wall and behind it, all of it is the variance
    assert hidden(2.0 * a, 2.0) + hidden(-2.0 * a, 2.0) == pytest.approx(4.0, rel=1e-15)
    assert hidden(a, 0.0) == 0.0
    assert hidden(-1.0, 1e-170) == 0.0
    assert np.isnan(hidden(a, np.nan))


# ------------------------------------------------------------------ what runs pay

A, B, NOISE, SENSOR = (
    np.array([[1.0, 0.4], [-0.2, 0.9]]),
    np.array([[0.1], [0.7]]),
    np.diag([0.002, 0.005]),
    np.diag([0.003, 0.01]),
)
RUNS = 40000


def test_what_a_plan_costs_is_what_runs_with_its_feedback_pay(interpret: Callable[[Model], Any]) -> None:
    """Linear and known, so that all expansions are exact: J is the mean of cost and penalties, but for the distance."""
    motion = list(sp.Matrix(A) * sp.Matrix([x, v]) + sp.Matrix(B) * p)
    model = Model([x, v], [p], motion, process_noise=NOISE, measurement_noise=SENSOR, name="paid")
    package = interpret(specified(model, Objective(constraints=(x - 1.0, v + 0.2 * p - 0.6))))
    records, zeros, prices = package.records, np.zeros(0), np.array([400.0, 100.0])
    settings = records.make_settings(NOISE, SENSOR, zeros, zeros, np.array([[-9.0], [9.0]]), zeros)
    settings["constraint_weights"], settings["quantiles"], settings["weight"] = prices, 1.0, 1.0
    weights = records.make_stage_costs(
        np.tile(W, (STEPS + 1, 1, 1)), np.tile(U, (STEPS, 1, 1)), np.tile(GOAL, (STEPS + 1, 1))
    )
    workspace, start = records.make_workspace(STEPS, weights, settings, planning=True), np.diag([0.004, 0.006])
    belief, inputs = records.make_belief(np.array([0.75, 0.2]), start), np.array([[0.4], [0.1], [-0.1], [0.2]])
    nominal = package.trajectory.follow(0, STEPS, belief, inputs, workspace)
    cost = package.planner.total_cost(0, STEPS, 0, nominal, belief, workspace)
    plan, gains = workspace.plan[0], workspace.stages["gain_x"][:STEPS].copy()
    gains[0] = 0.0
    g, far = plan["g"][: STEPS + 1], plan["backoff"][: STEPS + 1]
    kept = prices * (np.maximum(g + far, 0.0) ** 2 - np.maximum(g, 0.0) ** 2)
    kept[STEPS, 1] = 0.0
    paid = _paid(plan["z"][: STEPS + 1], plan["u"][:STEPS], gains, start, prices)
    assert cost - kept.sum() == pytest.approx(paid.mean(), abs=3 * paid.std() / sqrt(RUNS))
    assert paid.std() / sqrt(RUNS) < 0.01 * paid.mean()


def _paid(states: np.ndarray, inputs: np.ndarray, gains: np.ndarray, start: np.ndarray, prices: np.ndarray) -> Any:
    """Cost and penalties of runs with u = plan + L (estimate - plan) and a Kalman filter."""
    random = np.random.default_rng(0)

    def noise(covariance: np.ndarray) -> np.ndarray:
        return random.multivariate_normal(np.zeros(2), covariance, RUNS)

    def cost(truth: np.ndarray) -> np.ndarray:
        off = truth - GOAL
        return np.einsum("ri,ij,rj->r", off, W, off) + prices[0] * np.maximum(truth[:, 0] - 1.0, 0.0) ** 2

    truth, estimate, S = states[0] + noise(start), np.tile(states[0], (RUNS, 1)), start
    total = cost(truth)
    for j in range(STEPS):
        u = inputs[j] + (estimate - states[j]) @ gains[j].T
        total += U[0, 0] * u[:, 0] ** 2 + prices[1] * np.maximum(truth[:, 1] + 0.2 * u[:, 0] - 0.6, 0.0) ** 2
        truth, estimate, S = truth @ A.T + u @ B.T + noise(NOISE), estimate @ A.T + u @ B.T, A @ S @ A.T + NOISE
        K = S @ np.linalg.inv(S + SENSOR)
        estimate, S = estimate + (truth + noise(SENSOR) - estimate) @ K.T, S - K @ S
        total += cost(truth)
    return total
