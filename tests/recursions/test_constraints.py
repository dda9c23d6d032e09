"""Constraints in the generated recursions: the spread in closed loop, its identity, and what a plan promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import erfc, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual import Model, features, previous, signal, unknown
from symdual.checks import dense
from symdual.checks.kernels import check_kernels
from symdual.checks.recursions import check_recursions
from symdual.spec.objective import Objective, Terms
from symdual.spec.specification import Specification, specified

x, v, p, q = sp.symbols("x v p q")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def _curved() -> Specification:
    """Constraints on states, on inputs and their changes, with an unknown and a signal in them; unknowns that move."""
    a, b, wall = unknown("a", 0.4, 0.3), unknown("b", 1.0, 0.5), signal("wall", usual=1.0)
    motion = [x + 0.3 * v, 0.9 * v + b * p * sp.cos(x) - 0.2 * q + 0.2 * a * x]
    model = Model(
        [x, v], [p, q], motion, process_noise=0.01, measurement_noise=0.02, transition=[0.9, 1.1], name="curved"
    )
    constraints = (x - wall, v**2 + p**2 - 0.5, p - previous(p) - 0.2, a * x + 0.1 * v - 0.3)
    return specified(model, Objective(Terms((x - 2, p, q)), constraints=constraints))


def _many() -> Specification:
    slope = features.fourier("g", x, count=10, lengthscale=2.0)
    model = Model([x, v], [p], [x + 0.4 * v, v + slope + p], process_noise=0.01, measurement_noise=0.01, name="narrow")
    return specified(model, Objective(constraints=(x - 0.2, -v - 0.3)))


def _priced() -> Specification:
    """Walls that are felt, beside a cost by an expression: at order 2 both have their curvature."""
    b = unknown("b", 1.0, 0.2)
    model = Model([x], [p], [x + 0.5 * b * p], process_noise=0.01, measurement_noise=0.01, name="priced")
    return specified(
        model, Objective(Terms((x**2 + 0.1 * x * p,), squares=False), constraints=(x + 1.0, p + 0.2 * x + 0.5))
    )


def _hidden() -> Specification:
    """Constraints on a state, and on a state with an input, beside an unknown function."""
    slope = features.gaussian_process("g", x, lengthscale=2.0, memory=20)
    model = Model([x, v], [p], [x + 0.4 * v, v + slope + p], process_noise=0.01, measurement_noise=0.01, name="hidden")
    return specified(model, Objective(constraints=(x - 0.2, v + 0.3 * p - 0.4)))


@pytest.mark.parametrize("make", [_curved, _many, _priced, _hidden])
def test_spreads_costs_and_kernels_agree_with_dense_numpy(
    make: Callable[[], Model], interpret: Callable[..., Any]
) -> None:
    model = make()
    package = interpret(model)
    results = check_recursions(model, package) + check_kernels(model, package, points=3)
    assert [r for r in results if not r.passed] == []
    assert {"closed-loop deviation of constraints", "closed-loop deviation of constraints, learning off", "g"} <= {
        r.block for r in results
    }


@pytest.mark.parametrize("name", ["toy", "cart", "mixed", "drifting", "double"])
def test_the_trace_form_of_the_dual_cost_is_a_sum_over_spreads(case: Callable[..., Any], name: str) -> None:
    """Jd = sum_j tr W X_j + sum_j tr U L M_j L', X = S + M, at order 1."""
    c = case(name)
    inputs = 0.3 * np.random.default_rng(1).normal(size=(c.horizon, c.reference.nu))
    given = (c.reference, c.noise, c.cost, 0, c.belief, inputs)
    for learning in (True, False):
        loop = dense.closed_loop(*given, learning=learning)
        total = 0.0
        nx = c.reference.nx
        for j, (S, M) in enumerate(zip(loop.filtered, loop.covariances, strict=True)):
            total += float(np.sum(c.cost.state[j] * (S + M)[:nx, :nx]))
            if j < c.horizon:
                total += float(np.sum(c.cost.input[j] * (loop.gains[j] @ M @ loop.gains[j].T)))
        if learning:
            assert total == pytest.approx(dense.dual_cost(*given).uncertain, rel=1e-10)
            assert total == pytest.approx(c.cost_of("structured", 0, inputs)[1], rel=1e-10)


# ------------------------------------------------------------------ what a plan promises

A, B, Q, R = (
    np.array([[1.0, 0.4], [-0.2, 0.9]]),
    np.array([[0.1], [0.7]]),
    np.diag([0.002, 0.005]),
    np.diag([0.003, 0.01]),
)
STEPS = 8


@pytest.fixture(scope="module")
def known(interpret: Callable[[Model], Any]) -> Any:
    """Linear, known, measured with noise, one constraint that is active: x <= 1 where x = 2 is wanted."""
    motion = list(sp.Matrix(A) * sp.Matrix([x, v]) + sp.Matrix(B) * p)
    model = Model([x, v], [p], motion, process_noise=Q, measurement_noise=R, name="walled")
    return interpret(specified(model, Objective(constraints=(x - 1.0,))))


@pytest.mark.parametrize("probability", [0.9, 0.95, 0.99])
def test_a_plan_keeps_what_it_promises(known: Any, probability: float) -> None:
    """4000 runs with the plan's own feedback: violations at each step are as frequent as the plan says."""
    records, calls, zeros = known.records, known.calls, np.zeros(0)
    settings = records.make_settings(Q, R, zeros, zeros, np.array([[-np.inf], [np.inf]]), zeros)
    settings["constraint_weights"], settings["quantiles"] = 1e4, NormalDist().inv_cdf(probability)
    W, r = np.repeat(np.diag([1.0, 0.1])[None], STEPS + 1, 0), np.tile([2.0, 0.0], (STEPS + 1, 1))
    workspace = records.make_workspace(STEPS, records.make_stage_costs(W, np.full((STEPS, 1, 1), 0.01), r), settings)
    start = np.diag([0.001, 0.002])
    belief, u = records.make_belief(np.array([0.2, 0.3]), start), np.zeros((1, 1))
    out = np.zeros((1, known.dual_cost.OUT))
    known.backoff.ce_with_backoff(0, STEPS, belief, workspace, u[0])
    known.dual_cost.structured(0, STEPS, belief, workspace, u, out)
    buffer = _buffer_of(workspace, out[0, known.dual_cost.OUT_NOMINAL], known)
    plan, sigma = workspace.plan[buffer], workspace.stages["sigma"][: STEPS + 1, 0]
    gains = workspace.stages["gain_x"][:STEPS].copy()
    gains[0] = 0.0
    promised = np.array([0.5 * erfc(-plan["g"][j, 0] / (sqrt(2) * max(sigma[j], 1e-300))) for j in range(STEPS + 1)])
    observed = _followed(plan["z"][: STEPS + 1], plan["u"][:STEPS], gains, start)
    error = np.sqrt(promised * (1 - promised) / 4000) + 1e-4
    assert np.all(np.abs(observed - promised) < 3 * error)
    # where the wall is felt, the promise is what was asked for, but for the softness of the wall
    felt = plan["near"][2:, 0] > 0.2 * (1 - probability)
    assert felt.sum() >= 3
    np.testing.assert_allclose(promised[2:][felt], 1 - probability, rtol=0.25)
    assert calls is known.calls


def _buffer_of(workspace: Any, cost: float, package: Any) -> int:
    """The buffer of the plan that was evaluated last: its g and distances belong to the notes."""
    assert np.isfinite(cost)
    return int(np.argmin([abs(workspace.plan["g"][s, :, 0]).sum() == 0 for s in (0, 1)]))


def _followed(states: np.ndarray, inputs: np.ndarray, gains: np.ndarray, start: np.ndarray) -> np.ndarray:
    """How often x > 1 with u = plan + L (estimate - plan) and a Kalman filter, over 4000 runs."""
    random = np.random.default_rng(0)
    S, runs = start, 4000
    truth = states[0] + random.multivariate_normal(np.zeros(2), start, runs)
    estimate = np.tile(states[0], (runs, 1))
    found = [np.mean(truth[:, 0] > 1.0)]
    for j in range(STEPS):
        u = inputs[j] + (estimate - states[j]) @ gains[j].T
        truth = truth @ A.T + u @ B.T + random.multivariate_normal(np.zeros(2), Q, runs)
        estimate, S = estimate @ A.T + u @ B.T, A @ S @ A.T + Q
        K = S @ np.linalg.inv(S + R)
        y = truth + random.multivariate_normal(np.zeros(2), R, runs)
        estimate, S = estimate + (y - estimate) @ K.T, S - K @ S
        found.append(np.mean(truth[:, 0] > 1.0))
    return np.array(found)


def test_backoffs_shrink_with_learning_and_vanish_for_ce(interpret: Callable[[Model], Any]) -> None:
    """An unknown gain: dual expects to know it soon, cautious does not, ce does not ask."""
    model = Model([x], [p], [x + unknown("b", 1.0, 0.3) * p], process_noise=1e-4, measurement_noise=1e-4, name="brim")
    package = interpret(specified(model, Objective(constraints=(x - 1.0,))))
    records = package.records
    levels = {}
    for name, learning, quantile in (("ce", 1.0, 0.0), ("cautious", 0.0, 1.645), ("dual", 1.0, 1.645)):
        settings = records.make_settings(
            np.full((1, 1), 1e-4),
            np.full((1, 1), 1e-4),
            np.ones(1),
            np.zeros(1),
            np.array([[-9.0], [9.0]]),
            np.zeros(0),
        )
        settings["constraint_weights"], settings["quantiles"], settings["learning"] = 1e3, quantile, learning
        weights = records.make_stage_costs(np.ones((7, 1, 1)), np.full((6, 1, 1), 0.01), np.full((7, 1), 2.0))
        workspace = records.make_workspace(6, weights, settings)
        belief, u = records.make_belief(np.array([0.0, 1.0]), np.diag([1e-4, 0.3])), np.zeros(1)
        _, _, buffer = package.backoff.ce_with_backoff(0, 6, belief, workspace, u)
        levels[name] = workspace.plan["z"][buffer, 1:7, 0].copy()
    assert np.all(levels["ce"] > 0.99)
    # all of u_0 is as uncertain as the gain: u + 1.645 sqrt(0.3) u = 1
    assert levels["cautious"][0] == pytest.approx(1 / (1 + 1.645 * 0.3**0.5), rel=0.05)
    assert np.all(levels["dual"][2:] > levels["cautious"][2:])
    assert np.all(levels["dual"][2:] > 0.9)


# ------------------------------------------------------------------ walls that move


@pytest.fixture(scope="module")
def vessel(interpret: Callable[[Model], Any]) -> Any:
    """A pump of unknown strength, a brim, and a step that must not be too long."""
    motion = [x + 0.5 * v, 0.8 * v + unknown("b", 1.0, 0.2) * p]
    model = Model([x, v], [p], motion, process_noise=1e-3, measurement_noise=1e-3, name="vessel")
    return interpret(specified(model, Objective(constraints=(x - 1.0, v - 0.5))))


def test_a_plan_follows_a_wall_that_moves_back(vessel: Any) -> None:
    """One step leads to where the wall is now; without it the plan would not see the wall, and run far beyond it."""
    records, ones, noise = vessel.records, np.ones(1), np.diag([1e-3, 1e-3])
    settings = records.make_settings(noise, noise, ones, 0.0 * ones, np.array([[-np.inf], [np.inf]]), np.zeros(0))
    settings["constraint_weights"], settings["quantiles"] = 1e3, 1.645
    W, U = np.repeat(np.diag([1.0, 0.1])[None], 6, 0), np.full((5, 1, 1), 0.01)
    workspace = records.make_workspace(5, records.make_stage_costs(W, U, np.tile([2.0, 0.0], (6, 1))), settings)
    belief = records.make_belief(np.array([0.3, 0.1, 1.0]), np.diag([1e-3, 1e-3, 0.2]))
    module, constraints, u = vessel.backoff, vessel.constraints, np.zeros(1)
    _, _, buffer = module.ce_with_backoff(0, 5, belief, workspace, u)
    touched = workspace.plan["g"][buffer] + workspace.plan["backoff"][buffer] > 0.0
    assert touched.sum() >= 3
    constraints.mark_held(5, buffer, workspace)
    workspace.plan["backoff"] *= 0.6
    before = module.count_again(0, 5, buffer, workspace)
    assert not np.any(workspace.plan["near"][buffer])
    after, moved = module.follow_constraints(0, 5, np.int64(0), buffer, before, workspace)
    settled, _, buffer, iterations = vessel.nominal.descend(0, 5, np.int64(0), moved, after, -np.inf, workspace)
    assert after < before
    assert settled == pytest.approx(after, rel=1e-6) and iterations <= 2
    assert np.array_equal(workspace.plan["near"][buffer] > 0.0, touched)
