"""The certainty-equivalent plan against general optimisers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from symdual.checks import dense

from .conftest import Case

Make = Callable[..., Case]

# the interpreter warns where compiled code quietly gives the infinity that is meant
pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid value|divide by zero) encountered:RuntimeWarning")


def least_squares_inputs(c: Case, k: int, first: np.ndarray) -> np.ndarray:
    """The plan of an affine model by brute force: all weighted residuals as one linear map of the inputs."""
    steps, m = c.horizon - k, c.reference.nu

    def residuals(free: np.ndarray) -> np.ndarray:
        inputs = np.vstack([first[None], free.reshape(steps - 1, m)])
        states = dense.forward_pass(c.reference, c.noise, k, c.belief.mean, inputs)
        parts = []
        for i, z in enumerate(states):
            root = np.linalg.cholesky(c.cost.state[k + i] + 1e-300 * np.eye(c.reference.nx))
            parts.append(root.T @ (z[: c.reference.nx] - c.cost.reference[k + i]))
        for i, u in enumerate(inputs):
            parts.append(np.linalg.cholesky(c.cost.input[k + i]).T @ u)
        return np.concatenate(parts)

    zero = residuals(np.zeros((steps - 1) * m))
    columns = [residuals(unit) - zero for unit in np.eye((steps - 1) * m)]
    free = np.linalg.lstsq(np.array(columns).T, -zero, rcond=None)[0]
    return np.vstack([first[None], free.reshape(steps - 1, m)])


@pytest.mark.parametrize(("name", "k"), [("double", 0), ("double", 2), ("tidal", 1), ("fading", 1)])
def test_affine_plan_is_the_least_squares_solution(case: Make, name: str, k: int) -> None:
    c = case(name)
    assert c.package.LINEAR
    assert (name == "double") == c.package.nominal.STEADY
    first = np.array([0.3, -0.6])[: c.reference.nu]
    cost, status, inputs = c.plan(k, first)
    expected = least_squares_inputs(c, k, first)
    assert status == c.package.nominal.CONVERGED
    assert inputs == pytest.approx(expected, rel=1e-9, abs=1e-10)
    states = dense.forward_pass(c.reference, c.noise, k, c.belief.mean, expected)
    assert cost == pytest.approx(dense.nominal_cost(c.reference, c.cost, k, states, expected), rel=1e-12)


@pytest.mark.parametrize("name", ["cart", "drifting", "mixed"])
def test_nonlinear_plan_is_a_minimum(case: Make, name: str) -> None:
    c = case(name)
    first = np.full(c.reference.nu, 0.4)
    cost, status, inputs = c.plan(0, first)
    best, expected = dense.best_plan(c.reference, c.noise, c.cost, 0, c.belief.mean, first, start=inputs)
    assert status == c.package.nominal.CONVERGED
    assert cost == pytest.approx(best, rel=1e-10)
    assert inputs == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(("name", "bound"), [("double", 0.3), ("cart", 0.8), ("mixed", 0.25)])
def test_bounds_are_kept_and_optimal(case: Make, name: str, bound: float) -> None:
    c = case(name, horizon=7)
    first = np.zeros(c.reference.nu)
    free_cost, _, free = c.plan(0, first)
    c.cost = c.cost._replace(bounds=bound * np.sign(c.cost.bounds))
    cost, status, inputs = c.plan(0, first)
    best, expected = dense.best_plan(c.reference, c.noise, c.cost, 0, c.belief.mean, first, start=inputs)
    assert status == c.package.nominal.CONVERGED
    assert (np.abs(free[1:]) > bound).any()
    assert (np.abs(inputs) <= bound).all()
    assert cost == pytest.approx(best, rel=1e-8)
    assert inputs == pytest.approx(expected, abs=1e-3)
    # clipping the free plan would not have done
    clipped = np.clip(free, -bound, bound)
    states = dense.forward_pass(c.reference, c.noise, 0, c.belief.mean, clipped)
    assert cost < dense.nominal_cost(c.reference, c.cost, 0, states, clipped) - 1e-6
    assert cost > free_cost


@pytest.mark.parametrize(
    ("start", "first"), [((-1.3, 0.7, 1.7), 0.0), ((-1.0, 4.9, 1.8), -4.0), ((-1.3, 0.4, 1.7), 4.0)]
)
def test_a_step_that_no_length_makes_useful_is_damped(
    case: Make, start: tuple[float, float, float], first: float
) -> None:
    """Swinging up: where bounds hold and release inputs, an undamped step may point uphill however short it is."""
    c = case("swing", horizon=20)
    late = (np.arange(21) >= 10).astype(float)[:, None, None]
    upright = np.tile([1.57, 0.0], (21, 1))
    bounds = np.array([[-6.0], [6.0]])
    c.cost = dense.Cost(late * np.diag([10.0, 0.1]), np.full((20, 1, 1), 0.01), upright, bounds)
    c.belief = c.belief._replace(mean=np.array(start))
    cost, status, inputs = c.plan(0, np.array([first]), tolerance=1e-9)
    best, _ = dense.best_plan(c.reference, c.noise, c.cost, 0, c.belief.mean, np.array([first]), start=inputs)
    assert status == c.package.nominal.CONVERGED
    assert cost == pytest.approx(best, rel=1e-6)


def test_a_candidate_does_not_depend_on_those_before_it(case: Make) -> None:
    c = case("cart", horizon=8)
    candidates = np.linspace(-6.0, 6.0, 13)[:, None]
    forward = costs_of(c, candidates)
    assert np.array_equal(costs_of(c, candidates[::-1].copy())[::-1], forward)
    assert np.array_equal(np.concatenate([costs_of(c, one[None]) for one in candidates]), forward)
    assert forward[:, c.package.dual_cost.OUT_ITERATIONS].max() > 2


def costs_of(c: Case, candidates: np.ndarray) -> np.ndarray:
    """The rows of results of candidates, after the certainty-equivalent plan."""
    calls, workspace, out = c.package.calls, c.make_workspace(), np.zeros((len(candidates), c.package.dual_cost.OUT))
    calls.certainty_equivalent(0, c.horizon, c.held, workspace, np.zeros(1))
    calls.structured(0, c.horizon, c.held, workspace, candidates, out)
    return out


def test_the_certainty_equivalent_input_minimises_over_the_first_input_too(case: Make) -> None:
    c = case("cart")
    u = np.zeros(1)
    cost, status, _ = c.package.calls.certainty_equivalent(0, c.horizon, c.held, c.make_workspace(tolerance=1e-13), u)
    assert status == c.package.nominal.CONVERGED
    assert cost == pytest.approx(c.plan(0, u)[0], rel=1e-12)
    assert c.plan(0, u + 1e-3)[0] > cost
    assert c.plan(0, u - 1e-3)[0] > cost


def test_a_plan_that_is_not_finite_is_a_status(case: Make) -> None:
    c = case("cart")
    c.belief = c.belief._replace(mean=np.full(c.reference.nz, 1e200))
    calls, workspace = c.package.calls, c.make_workspace()
    calls.begin(0, c.horizon, c.held, workspace)
    cost, status, _, _ = calls.plan_through(0, c.horizon, np.zeros(1), workspace)
    assert cost == np.inf
    assert status == c.package.nominal.NOT_FINITE


def test_no_cost_at_all_moves_nothing(case: Make) -> None:
    """W = 0 and U = 0: every plan is optimal; the inputs without curvature stay where they are."""
    c = case("double")
    c.cost = c.cost._replace(state=np.zeros_like(c.cost.state), input=np.zeros_like(c.cost.input))
    cost, status, inputs = c.plan(0, np.ones(2))
    assert cost == 0.0
    assert status == c.package.nominal.CONVERGED
    assert inputs[1:] == pytest.approx(np.zeros((c.horizon - 1, 2)))


def test_a_limit_of_iterations_is_reported(case: Make) -> None:
    c = case("cart")
    calls, workspace = c.package.calls, c.make_workspace(iterations=1.0, tolerance=0.0)
    calls.begin(0, c.horizon, c.held, workspace)
    assert calls.plan_through(0, c.horizon, np.ones(1), workspace)[1] == c.package.nominal.ITERATION_LIMIT


def recount(c: Case, inputs: np.ndarray) -> float:
    states = dense.forward_pass(c.reference, c.noise, 0, c.belief.mean, inputs)
    return dense.nominal_cost(c.reference, c.cost, 0, states, inputs)


def towards(c: Case, *reference: float) -> None:
    """The kinked model from x = 0.5 with b = 1, drawn to a reference."""
    c.belief = c.belief._replace(mean=np.array([0.5, 1.0]))
    T = c.horizon
    c.cost = dense.Cost(np.ones((T + 1, 1, 1)), np.full((T, 1, 1), 0.1), np.array(reference)[:, None], c.cost.bounds)


def test_a_start_that_leads_out_of_the_numbers_is_replaced(case: Make) -> None:
    c, first = case("cart"), np.array([0.4])
    expected, _, inputs = c.plan(0, first)
    cost, status, found = c.plan(0, first, 1e-9, (1e80, 0.0))
    assert status == c.package.nominal.CONVERGED
    assert cost == pytest.approx(expected, rel=1e-8)
    assert found == pytest.approx(inputs, abs=1e-3)


def test_a_kink_is_approached_as_far_as_steps_lead(case: Make) -> None:
    """Down is out of reach, so no push is best; from a push, full steps jump over the kink."""
    c, first = case("kink", horizon=3), np.array([0.3])
    towards(c, 0.5, -1.0, -1.0, -1.0)
    cost, status, inputs = c.plan(0, first, 1e-9, (0.0, 1.0))
    assert status in (c.package.nominal.STALLED, c.package.nominal.ITERATION_LIMIT)
    assert cost == pytest.approx(recount(c, inputs), rel=1e-12)
    assert cost == pytest.approx(recount(c, np.array([[0.3], [0.0], [0.0]])), rel=1e-8)


def test_the_start_decides_between_plans_on_either_side_of_a_kink(case: Make) -> None:
    """Up at time 2, then out of reach: the push at time 1 pays, but without any push no slope shows it."""
    c, first = case("kink", horizon=3), np.array([0.3])
    towards(c, 0.5, 0.8, 3.0, 1.0)
    cost, _, inputs = c.plan(0, first, 1e-9, (0.0, 1.0))
    assert inputs[1, 0] > 0.5
    assert cost == pytest.approx(recount(c, inputs), rel=1e-12)
    assert cost < recount(c, np.array([[0.3], [0.0], [0.0]])) - 1.0


def held_at(c: Case, value: float) -> float:
    """The cost of one input that never changes."""
    return float(c.package.calls.follow(0, c.horizon, c.held, np.full((c.horizon, 1), value), c.make_workspace()))


def certain_plan(c: Case, start: float, reference: float, bound: float) -> tuple[float, int, np.ndarray]:
    """(cost, status, inputs) of the certainty-equivalent plan of a model with one state, one input and b = 1."""
    T = c.horizon
    c.belief = c.belief._replace(mean=np.array([start, 1.0]))
    costs = np.ones((T + 1, 1, 1)), np.full((T, 1, 1), 1e-4), np.full((T + 1, 1), reference)
    c.cost = dense.Cost(*costs, np.array([[-bound], [bound]]))
    workspace, first = c.make_workspace(), np.zeros(1)
    cost, status, buffer = c.package.calls.certainty_equivalent(0, T, c.held, workspace, first)
    return cost, status, workspace.plan["u"][buffer, :T].copy()


def test_there_is_a_plan_while_inputs_at_their_bounds_are_finite(case: Make) -> None:
    """Nothing is finite at rest, not for a single step."""
    c = case("ratio", horizon=3)
    cost, status, inputs = certain_plan(c, start=0.0, reference=-0.5, bound=0.7)
    assert held_at(c, 0.0) == np.inf and held_at(c, -0.7) < held_at(c, 0.7) < np.inf
    assert status == c.package.nominal.CONVERGED and cost < held_at(c, -0.7)
    assert cost == pytest.approx(recount(c, inputs), rel=1e-12) and np.abs(inputs).max() <= 0.7


def test_no_plan_is_worse_than_doing_nothing(case: Make) -> None:
    """The linearisation at rest leads over a ridge into a far valley that is much higher."""
    c = case("far_valley", horizon=2)
    cost, _, inputs = certain_plan(c, start=0.0, reference=1.0, bound=20.0)
    assert held_at(c, 20.0) > 100.0
    assert cost == pytest.approx(recount(c, inputs), rel=1e-12)
    assert cost < held_at(c, 0.0)


@pytest.mark.parametrize("bound", [3.0, np.inf])
def test_an_input_that_has_no_slope_where_it_rests_is_tried_elsewhere(case: Make, bound: float) -> None:
    """One input acts by its square, the other one moves; candidates start from the plan that is found, too."""
    c, T = case("numb", horizon=4), 4
    c.belief = c.belief._replace(mean=np.array([1.0, 0.0, 0.8]))
    weights = np.tile(np.eye(2), (T + 1, 1, 1)), np.tile(0.01 * np.eye(2), (T, 1, 1))
    c.cost = dense.Cost(*weights, np.tile([4.0, 0.5], (T + 1, 1)), np.array([[-bound, -bound], [bound, bound]]))
    workspace, first = c.make_workspace(tolerance=1e-12), np.zeros(2)
    cost, status, buffer = c.package.calls.certainty_equivalent(0, T, c.held, workspace, first)
    inputs = workspace.plan["u"][buffer, :T].copy()
    assert status == c.package.nominal.CONVERGED and cost == pytest.approx(recount(c, inputs), rel=1e-12)
    starts = np.random.default_rng(0).uniform(-3.0, 3.0, (8, T, 2))
    found = [
        dense.best_plan(c.reference, c.noise, c.cost, 0, c.belief.mean, s[0], start=s)[0] for s in [*starts, inputs]
    ]
    assert cost <= min(found) * (1.0 + 1e-6)
    assert c.package.calls.plan_through(0, T, first, workspace)[0] == pytest.approx(cost, rel=1e-9)


def test_a_first_plan_is_not_that_of_the_nearest_valley(case: Make) -> None:
    """The first ripple is too low; from rest one ends there, from the bound in one that is high enough."""
    c = case("ripples", horizon=2)
    nearest, _, _ = certain_plan(c, start=0.0, reference=3.6, bound=20.0)
    workspace, first = c.make_workspace(), np.zeros(1)
    cost, _, buffer = c.package.ce_solver.solve_ce(0, 2, c.held, workspace, first)
    inputs = workspace.plan["u"][buffer, :2].copy()
    assert cost == pytest.approx(recount(c, inputs), rel=1e-12) and cost < nearest - 0.2
    np.testing.assert_array_equal(first, inputs[0])
    np.testing.assert_array_equal(workspace.stored_plans["u"][0, :2], inputs)


def test_a_plan_that_has_not_converged_is_repeated_by_its_policy(case: Make) -> None:
    """Candidates start from it: a step that nobody has tried might lead anywhere."""
    c = case("swing", horizon=8)
    workspace, first = c.make_workspace(iterations=1.0, tolerance=0.0), np.zeros(1)
    _, status, buffer = c.package.calls.certainty_equivalent(0, c.horizon, c.held, workspace, first)
    assert status == c.package.nominal.ITERATION_LIMIT
    plan, stages = workspace.plan[buffer, : c.horizon], workspace.stages[: c.horizon]
    repeated = np.einsum("jac,jc->ja", stages["policy_gain"], plan["z"][:, : c.reference.nx]) + stages["policy_offset"]
    assert repeated == pytest.approx(plan["u"], abs=1e-9)
    assert np.abs(stages["feedforward"]).max() > 1e-3  # which would have led elsewhere
