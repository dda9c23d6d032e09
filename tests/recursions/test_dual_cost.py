"""The dual cost: every generated form against the dense recursions and against exact costs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from symdual.checks import dense

from .conftest import Case

Make = Callable[..., Case]

# the interpreter warns where compiled code quietly gives the infinity that is meant
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")


def some_inputs(c: Case, k: int) -> np.ndarray:
    return c.random.normal(size=(c.horizon - k, c.reference.nu))


@pytest.mark.parametrize("name", ["toy", "cart", "drifting", "mixed", "values", "wide", "double", "lit"])
@pytest.mark.parametrize("k", [0, 3])
@pytest.mark.parametrize("learning", [True, False])
def test_structured_equals_dense(case: Make, name: str, k: int, learning: bool) -> None:
    c = case(name)
    inputs = some_inputs(c, k)
    found = c.cost_of("structured", k, inputs, learning)
    expected = dense.dual_cost(c.reference, c.noise, c.cost, k, c.belief, inputs, learning=learning)
    assert found[0] == pytest.approx(expected.nominal, rel=1e-12)
    assert found[1] == pytest.approx(expected.uncertain, rel=1e-12)


@pytest.mark.parametrize("name", ["toy", "cart", "network", "mixed", "lit"])
def test_second_order_equals_dense_with_and_without_fallback(case: Make, name: str) -> None:
    fallbacks = set()
    for seed in range(12):
        c = case(name, seed=seed)
        inputs = some_inputs(c, 1)
        found = c.cost_of("second_order", 1, inputs)
        expected = dense.dual_cost(c.reference, c.noise, c.cost, 1, c.belief, inputs, order=2)
        assert found[1] == pytest.approx(expected.uncertain, rel=1e-9)
        assert found[2] == expected.fallback
        fallbacks.add(expected.fallback)
    assert False in fallbacks
    assert name != "mixed" or True in fallbacks


@pytest.mark.parametrize(("name", "k"), [("long_cart", 0), ("larger", 1), ("sighted", 2)])
@pytest.mark.parametrize("learning", [True, False])
def test_low_rank_equals_dense(case: Make, name: str, k: int, learning: bool) -> None:
    c = case(name)
    inputs = some_inputs(c, k)
    expected = dense.dual_cost(c.reference, c.noise, c.cost, k, c.belief, inputs, learning=learning)
    assert c.cost_of("lowrank", k, inputs, learning)[1] == pytest.approx(expected.uncertain, rel=1e-12)


def test_low_rank_refuses_more_values_than_fit(case: Make) -> None:
    c = case("larger", horizon=9)
    calls, workspace, out = c.package.calls, c.make_workspace(), np.full((1, c.package.dual_cost.OUT), 7.0)
    assert c.cost_of("lowrank", 0, some_inputs(c, 0))[1] == np.inf
    assert calls.begin(0, 9, c.held, workspace) == c.package.nominal.CONVERGED
    assert calls.lowrank(0, 9, c.held, workspace, np.zeros((1, 1)), out) == c.package.nominal.BAD_ARGUMENT
    assert (out == 7.0).all()


def test_the_form_is_chosen_from_sizes_and_weights(case: Make) -> None:
    choose = case("long_cart").package.dual_cost.choose_form
    assert choose(10) == "lowrank"
    assert choose(11) == "structured"  # more values than parameters
    weights = np.zeros((41, 2, 2))
    weights[10, 1, 0] = 1.0
    assert choose(40, weights) == "lowrank"  # but those after the last weight do not count
    weights[11, 1, 1] = 1.0
    assert choose(40, weights) == "structured"
    assert choose(40, np.zeros((41, 2, 2))) == "lowrank"
    assert case("cart").package.dual_cost.choose_form(1) == "structured"  # few parameters
    assert case("drifting").package.dual_cost.choose_form(1) == "structured"  # drifting parameters


@pytest.mark.parametrize(
    ("name", "form"), [("larger", "lowrank"), ("mixed", "structured"), ("mixed", "second_order"), ("toy", "structured")]
)
@pytest.mark.parametrize("last", [0, 2, 4])
def test_what_follows_the_last_weight_is_left_out_and_costs_nothing(
    case: Make, name: str, form: str, last: int
) -> None:
    """Nine steps: too many for the low-rank form, if all were weighed."""
    c = case(name, horizon=9)
    c.cost.state[last + 1 :] = 0.0
    inputs = some_inputs(c, 0)
    expected = dense.dual_cost(
        c.reference, c.noise, c.cost, 0, c.belief, inputs, order=2 if form == "second_order" else 1
    )
    found = c.cost_of(form, 0, inputs)
    assert found[0] == pytest.approx(expected.nominal, rel=1e-11)
    assert found[1] == pytest.approx(expected.uncertain, rel=1e-9)
    assert found[2] == expected.fallback


@pytest.mark.parametrize(("name", "form"), [("cart", "structured"), ("larger", "lowrank"), ("mixed", "second_order")])
def test_inputs_at_a_bound_leave_the_recursion(case: Make, name: str, form: str) -> None:
    c = case(name)
    c.cost = c.cost._replace(bounds=0.5 * np.sign(c.cost.bounds))
    inputs = np.clip(some_inputs(c, 0), -0.5, 0.5)
    assert (np.abs(inputs) == 0.5).any()
    assert (np.abs(inputs) < 0.5).any()
    order = 2 if form == "second_order" else 1
    expected = dense.dual_cost(c.reference, c.noise, c.cost, 0, c.belief, inputs, order=order)
    assert c.cost_of(form, 0, inputs)[1] == pytest.approx(expected.uncertain, rel=1e-10)


@pytest.mark.parametrize("name", ["cart", "mixed"])
@pytest.mark.parametrize("order", [1, 2])
def test_caution_and_probing_are_all_of_the_uncertain_part(case: Make, name: str, order: int) -> None:
    """An identity of the equations themselves: two ways to write Jd."""
    c = case(name, seed=4)
    inputs = some_inputs(c, 0)
    whole = dense.dual_cost(c.reference, c.noise, c.cost, 0, c.belief, inputs, order=order)
    both = dense.parts(c.reference, c.noise, c.cost, 0, c.belief, inputs, order=order)
    if not whole.fallback:
        assert sum(both) == pytest.approx(whole.uncertain, rel=1e-10)


def batch(c: Case, function: str, k: int, candidates: np.ndarray, **settings: float) -> np.ndarray:
    """Results of a cost after preparing the decision."""
    workspace, calls, N = c.make_workspace(tolerance=1e-13, **settings), c.package.calls, c.package.nominal
    assert calls.begin(k, c.horizon, c.held, workspace) == N.CONVERGED
    out = np.zeros((len(candidates), c.package.dual_cost.OUT))
    assert getattr(calls, function)(k, c.horizon, c.held, workspace, candidates, out) == N.CONVERGED
    return out


@pytest.mark.parametrize(("horizon", "last"), [(5, 5), (10, 4)])
def test_a_batch_plans_each_candidate_and_weighs_its_uncertainty(case: Make, horizon: int, last: int) -> None:
    c = case("larger", horizon)
    c.cost.state[last + 1 :] = 0.0
    candidates = np.linspace(-1.0, 1.0, 3)[:, None]
    out = batch(c, "lowrank", 1, candidates, weight=0.7)
    for first, row in zip(candidates, out, strict=True):
        cost, inputs = dense.best_plan(c.reference, c.noise, c.cost, 1, c.belief.mean, first)
        expected = dense.dual_cost(c.reference, c.noise, c.cost, 1, c.belief, inputs)
        assert row[1] == pytest.approx(cost, rel=1e-9)
        assert row[2] == pytest.approx(expected.uncertain, rel=1e-5)
        assert row[0] == pytest.approx(row[1] + 0.7 * row[2], rel=1e-14)


def test_the_bonus_is_the_spread_that_the_input_can_change(case: Make) -> None:
    c = case("cart")
    candidates = np.array([[0.4]])
    delay = c.package.INPUT_DELAY
    out = batch(c, "bonus", 0, candidates, bonus=3.0)
    _, inputs = dense.best_plan(c.reference, c.noise, c.cost, 0, c.belief.mean, candidates[0])
    expected = dense.parameter_variance(c.reference, c.noise, 0, c.belief, inputs, delay)
    assert delay == 3
    assert out[0, 2] == pytest.approx(expected, rel=1e-6)
    assert out[0, 0] == pytest.approx(out[0, 1] + 3.0 * out[0, 2], rel=1e-14)


def toy_problem(c: Case, variance: float, Q: float) -> None:
    """x' = x + b u, b ~ N(1, variance), x_0 = 1 known, W = U = 1, r = 0, R = 0."""
    T = c.horizon
    c.belief = dense.Belief(np.array([1.0, 1.0]), np.diag([0.0, variance]))
    c.noise = dense.Noise(np.array([[Q]]), np.zeros((1, 1)), np.eye(1), np.zeros((1, 1)))
    c.cost = dense.Cost(
        np.ones((T + 1, 1, 1)), np.ones((T, 1, 1)), np.zeros((T + 1, 1)), np.array([[-np.inf], [np.inf]])
    )


def exact_toy_cost(u: float, eps: float) -> float:
    """E L for two steps with b ~ N(1, eps), Q = eps, R = 0, the second input optimal given x_1: quadrature over x_1."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    spread = eps * (u * u + 1.0)
    x1 = 1.0 + u + np.sqrt(spread) * nodes
    mean = 1.0 + u * (x1 - 1.0 - u) / (1.0 + u * u)
    variance = eps / (1.0 + u * u)
    last = x1**2 * (2.0 - mean**2 / (mean**2 + variance + 1.0)) + eps
    return float(1.0 + u * u + weights @ last / weights.sum())


def test_the_error_falls_with_the_order(case: Make) -> None:
    """Against the exact cost of the toy, order 1 errs by O(eps) and order 2 by O(eps^2)."""
    grid = np.linspace(-1.5, 0.5, 9)[:, None]
    errors: dict[str, list[float]] = {"structured": [], "second_order": []}
    scales = (1e-2, 1e-3, 1e-4)
    for eps in scales:
        c = case("toy", horizon=2)
        toy_problem(c, eps, eps)
        exact = np.array([exact_toy_cost(float(u[0]), eps) for u in grid])
        for name, found in errors.items():
            found.append(float(np.sqrt(np.mean((batch(c, name, 0, grid, order=2.0)[:, 0] - exact) ** 2))))
    for name, slope in (("structured", 1.0), ("second_order", 2.0)):
        measured = np.diff(np.log10(errors[name])) / np.diff(np.log10(scales))
        assert measured == pytest.approx([slope, slope], abs=0.1)


@pytest.mark.parametrize("learning", [1.0, 0.0])
def test_the_last_decision_is_the_open_loop_feedback_law(case: Make, learning: float) -> None:
    """At k = T - 1 the minimiser is -m x / (m^2 + v + 1), with and without learning."""
    c = case("toy", horizon=3)
    toy_problem(c, 0.7, 0.1)
    law = -1.0 / (1.0 + 0.7 + 1.0)
    around = law + np.array([[-0.1], [0.0], [0.1]])
    low, middle, high = batch(c, "structured", 2, around, learning=learning)[:, 0]
    assert low == pytest.approx(high, rel=1e-13)
    assert middle == pytest.approx(low - 0.01 * (1.0 + 0.7 + 1.0), rel=1e-13)


def test_linear_and_known_gives_the_exact_cost(case: Make) -> None:
    """a = W = U = x_0 = 1, b = 2, Q = .1, R = 0, T = 2: the optimal expected cost is 1.4269."""
    c = case("known", horizon=2)
    c.belief = dense.Belief(np.ones(1), np.zeros((1, 1)))
    c.noise = dense.Noise(np.array([[0.1]]), np.zeros((1, 1)), np.zeros((0, 0)), np.zeros((0, 0)))
    c.cost = dense.Cost(np.ones((3, 1, 1)), np.ones((2, 1, 1)), np.zeros((3, 1)), np.array([[-np.inf], [np.inf]]))
    u = np.zeros(1)
    c.package.calls.certainty_equivalent(0, 2, c.held, c.make_workspace(), u)
    found = batch(c, "structured", 0, u[None])[0, 0]
    last = 1.0 + 1.0 - 4.0 / 5.0  # K_1, since K_2 = 1
    first = 1.0 + last - (2.0 * last) ** 2 / (1.0 + 4.0 * last)
    assert found == pytest.approx(first + 0.1 * (last + 1.0), rel=1e-13)
    assert round(found, 4) == 1.4269


def test_cost_to_go_tends_to_the_algebraic_solution(case: Make) -> None:
    from scipy.linalg import solve_discrete_are

    c = case("offset", horizon=200)
    W, U = c.semidefinite(2, 1.0) + 0.1 * np.eye(2), np.array([[0.4]])
    open_bounds = np.array([[-np.inf], [np.inf]])
    c.cost = dense.Cost(np.tile(W, (201, 1, 1)), np.tile(U, (200, 1, 1)), np.zeros((201, 2)), open_bounds)
    workspace = c.make_workspace()
    c.package.calls.follow(0, 200, c.held, np.zeros((200, 1)), workspace)
    c.package.calls.jd_structured(0, 200, np.int64(0), np.int64(1), c.held, workspace)
    K = workspace.forms["xx"][1]
    limit = solve_discrete_are(np.array([[1.0, 0.1], [0.0, 0.9]]), np.array([[0.0], [1.0]]), W, U)
    assert pytest.approx(limit, rel=1e-10) == K


def test_orders_agree_without_second_derivatives(case: Make) -> None:
    c = case("offset")
    inputs = some_inputs(c, 0)
    assert c.cost_of("second_order", 0, inputs)[1] == pytest.approx(c.cost_of("structured", 0, inputs)[1], rel=1e-13)
    assert not c.cost_of("second_order", 0, inputs)[2]


def test_time_and_sizes_that_do_not_fit_are_a_status(case: Make) -> None:
    c = case("toy")
    calls, bad, out = c.package.calls, c.package.nominal.BAD_ARGUMENT, np.full((1, c.package.dual_cost.OUT), 7.0)
    workspace, one = c.make_workspace(), np.zeros((1, 1))
    short = workspace._replace(stages=workspace.stages[:-1])
    cheap = workspace._replace(stage_costs=workspace.stage_costs[:-1])
    for k, end, used in (
        (5, 5, workspace),
        (-1, 5, workspace),
        (0, 0, workspace),
        (0, 6, workspace),
        (0, 5, short),
        (0, 5, cheap),
    ):
        assert calls.begin(k, end, c.held, used) == bad
        assert calls.structured(k, end, c.held, used, one, out) == bad
        assert np.isnan(calls.follow(k, end, c.held, np.zeros((6, 1)), used))
    assert calls.structured(0, 5, c.held, workspace, np.zeros((2, 1)), out) == bad
    assert np.isnan(calls.follow(0, 5, c.held, np.zeros((3, 1)), workspace))
    assert (out == 7.0).all()


def test_unstable_plants_over_long_horizons_keep_their_digits(case: Make) -> None:
    """x' = A x + b u with eigenvalues 3 and 2.5 over 200 steps: errors must not grow as the plant does without control.

    Two ways to lose them: a cost-to-go that is not exactly symmetric, and a costate carried along the open plant. The
    dense recursion with 60 digits is the judge.
    """
    c = case("unstable", horizon=200)
    c.belief = dense.Belief(np.array([0.5, -0.3, 1.0]), np.diag([0.0, 0.0, 0.1]))
    c.noise = c.noise._replace(process=1e-2 * np.eye(2), measurement=1e-2 * np.eye(2))
    open_bounds = np.array([[-np.inf], [np.inf]])
    weights = np.tile(np.eye(2), (201, 1, 1))
    c.cost = dense.Cost(weights, np.full((200, 1, 1), 0.1), np.zeros((201, 2)), open_bounds)
    rows = {order: batch(c, name, 0, np.array([[-1.0], [0.5]]), order=order) for name, order in ORDERS}
    for order, out in rows.items():
        _, _, inputs = c.plan(0, np.array([0.5]))
        exact = precise_dual_cost(c, inputs, int(order))
        assert out[1, 2] == pytest.approx(exact, rel=1e-6)
        assert out[1, 4] == 0.0


ORDERS = (("structured", 1.0), ("second_order", 2.0))


def precise_dual_cost(c: Case, inputs: np.ndarray, order: int) -> float:
    """Jd of a plan for `unstable`, whose parameter multiplies the input, in 60 digits."""
    import mpmath as mp

    with mp.workdps(60):
        A0, b0 = mp.matrix([[3, mp.mpf("0.5")], [0, mp.mpf("2.5")]]), mp.matrix([0.2, 1])
        gain, steps = mp.mpf(c.belief.mean[2]), len(inputs)
        A = [mp.matrix(3, 3) for _ in range(steps)]
        B = mp.matrix([b0[0] * gain, b0[1] * gain, 0])
        x = [mp.matrix(c.belief.mean[:2])]
        # the plan in 60 digits: optimal feedback from the second input on
        K, gains = mp.eye(2), []
        for _ in range(steps):
            Bx = mp.matrix([B[0], B[1]])
            G = (Bx.T * K * Bx)[0] + mp.mpf("0.1")
            L = -(Bx.T * K * A0) / G
            gains.insert(0, L)
            Acl = A0 + Bx * L
            K = mp.eye(2) + Acl.T * K * Acl + L.T * mp.mpf("0.1") * L
        u = [mp.mpf(inputs[0, 0])]
        for j in range(steps):
            if j:
                u.append((gains[j] * x[j])[0])
            x.append(A0 * x[j] + b0 * gain * u[j])
            for i in range(2):
                for k in range(2):
                    A[j][i, k] = A0[i, k]
                A[j][i, 2] = b0[i] * u[j]
            A[j][2, 2] = 1
        Q, C = mp.diag([mp.mpf("0.01"), mp.mpf("0.01"), 0]), mp.matrix([[1, 0, 0], [0, 1, 0]])
        S = mp.diag([0, 0, mp.mpf("0.1")])
        W = mp.diag([1, 1, 0])
        filtered, differences = [S], []
        for j in range(steps):
            P = A[j] * S * A[j].T + Q
            taken = P * C.T * mp.inverse(C * P * C.T + mp.mpf("0.01") * mp.eye(2)) * C * P
            S = P - taken
            filtered.append(S)
            differences.append(taken)
        lam = [mp.matrix(2, 1) for _ in range(steps + 1)]
        lam[steps] = x[steps]
        for j in range(steps - 1, -1, -1):
            lam[j] = x[j] + A0.T * lam[j + 1]
        K, total = W, mp.mpf(0)
        for j in range(steps - 1, -1, -1):
            H = mp.matrix(3, 1)
            if order == 2:  # d2 (lam' f) / d gain d u
                H[2] = lam[j + 1][0] * b0[0] + lam[j + 1][1] * b0[1]
            total += sum((K * differences[j])[i, i] for i in range(3)) + sum((W * filtered[j])[i, i] for i in range(3))
            if j:
                G = (B.T * K * B)[0] + mp.mpf("0.1")
                M = H + A[j].T * K * B
                K = W + A[j].T * K * A[j] - M * M.T / G
        return float(total + sum((W * filtered[steps])[i, i] for i in range(3)))
