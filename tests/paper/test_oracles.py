"""The independent derivations against textbook results that none of the printed formulas is."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from scipy.linalg import solve_discrete_are

from symdual.paper.derivations import draws, expansion
from symdual.paper.derivations.feedback import Noise, expected_cost, feedback_cost
from symdual.paper.derivations.filtering import covariances
from symdual.paper.derivations.least_squares import Problem, best_inputs, random_problem, tail, total_cost, trajectory
from symdual.paper.derivations.multistep import Steps
from symdual.paper.derivations.toy import gaussian_moment
from symdual.paper.derivations.weights import Learning


def test_least_squares_cost_is_the_cost_of_its_inputs() -> None:
    problem = random_problem((1,), 2, 1, 4)
    start = np.array([0.3, -1.2])
    inputs, cost = best_inputs(problem, start)
    assert cost == pytest.approx(total_cost(problem, trajectory(problem, start, inputs), inputs), rel=1e-12)
    for shift in (0.1, -0.1):
        moved = inputs + shift
        assert total_cost(problem, trajectory(problem, start, moved), moved) > cost


def test_long_horizon_tends_to_the_algebraic_riccati_equation() -> None:
    short = random_problem((2,), 2, 1, 1)
    steps = 60
    problem = Problem(
        short.a * steps, short.b * steps, short.w[:1] * (steps + 1), short.u * steps, short.r[:1] * (steps + 1)
    )
    limit = solve_discrete_are(short.a[0], short.b[0], short.w[0], short.u[0])
    assert tail(problem, 0)[0] == pytest.approx(limit, rel=1e-8)


def test_expected_cost_of_a_known_linear_system() -> None:
    """a = W = U = x_0 = 1, b = 2, Q = 0.1, R = 0, T = 2: 1.4269."""
    one = np.eye(1)
    problem = Problem((one,) * 2, (2 * one,) * 2, (one,) * 3, (one,) * 2, (np.zeros(1),) * 3)
    noise = Noise(np.zeros((1, 1)), 0.1 * one, np.zeros((1, 1)), one)
    assert expected_cost(problem, noise, np.ones(1)) == pytest.approx(1.4269, abs=5e-5)


def test_feedback_never_costs_more_than_none() -> None:
    problem = random_problem((3,), 2, 1, 3)
    rng = draws.source(1)
    parts = [draws.covariance(rng, 2).array for _ in range(2)]
    blind = Noise(parts[0], parts[1], 1e12 * np.eye(2), np.eye(2))
    seeing = Noise(parts[0], parts[1], 1e-9 * np.eye(2), np.eye(2))
    assert feedback_cost(problem, seeing) < feedback_cost(problem, blind)


@pytest.mark.parametrize("toy", expansion.EXAMPLES)
def test_second_derivatives_complete_the_dual_cost(toy: expansion.Toy) -> None:
    """With lam f_zz and lam f_zu the dual cost is the exact coefficient; without them it is not."""
    problem, noise = toy.linearised()
    states, inputs = toy.nominal()
    spread = covariances(problem.a, noise.s0, noise.q, noise.c, noise.r)
    weight, price = problem.w[0], problem.u[0]
    # Half cost: lam_2 = W x_2, lam_1 = W x_1 + a lam_2; f = a x + b u has f_bu = 1 and no other second derivative.
    lam = [0.0, toy.w * states[1] + toy.a * toy.w * states[2], toy.w * states[2]]
    k2 = weight
    cross = np.array([[0.0], [lam[2]]])
    gain = cross + problem.a[1].T @ k2 @ problem.b[1]
    k1 = weight + problem.a[1].T @ k2 @ problem.a[1]
    k1 = k1 - gain @ np.linalg.inv(price + problem.b[1].T @ k2 @ problem.b[1]) @ gain.T
    later = {1: k1, 2: k2}
    dual = np.trace(weight @ spread[2, 2])
    for j in (0, 1):
        dual += np.trace(weight @ spread[j, j] + later[j + 1] @ (spread[j + 1, j] - spread[j + 1, j + 1]))
    assert inputs[0] == toy.u0
    assert dual == pytest.approx(toy.exact_coefficient(), rel=1e-10)
    assert feedback_cost(problem, noise) != pytest.approx(toy.exact_coefficient(), rel=1e-2)


def test_gaussian_moments() -> None:
    mean, variance = sp.symbols("m v")
    assert sp.expand(gaussian_moment(4, mean, variance) - (mean**4 + 6 * mean**2 * variance + 3 * variance**2)) == 0


def test_joint_conditioning_equals_the_recursive_filter() -> None:
    """x_k given y_{1:k} by conditioning the joint Gaussian at once."""
    for n, k in ((1, 4), (3, 3)):
        steps = Steps(n, k, n)
        v = steps.numbers
        cov_y = steps.measurement_covariance()
        cov_x = cov_y - steps.parts["calR"].array
        last = slice((k - 1) * n, k * n)
        gain = cov_x[last] @ np.linalg.inv(cov_y)
        prior = steps.from_start @ v["m0"]
        assert steps.belief.mean == pytest.approx(prior[last] + gain @ (v["y"].reshape(-1) - prior), rel=1e-9)
        assert steps.belief.cov == pytest.approx(cov_x[last, last] - gain @ cov_x[:, last], rel=1e-8, abs=1e-10)


def test_random_matrices_do_not_commute_and_are_not_symmetric() -> None:
    v = Steps(3, 2, 3).numbers
    assert not np.allclose(v["Q"] @ v["R"], v["R"] @ v["Q"])
    assert not np.allclose(v["A0"], v["A0"].T)
    assert not np.allclose(v["Q"], np.diag(np.diag(v["Q"])))
    assert np.all(v["m0"] != 0)
    assert np.all(Learning(2, 3).numbers["w0"] != 0)
