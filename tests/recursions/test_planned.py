"""What a planning controller keeps of a decision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

CERTAIN, BEST, SECOND = 0, 1, 2


def _decided(case: Callable[..., Any], good: int) -> tuple[Any, Any]:
    """A problem and a workspace with three stored plans that answer by feedback, of which one goes on well."""
    c = case("mixed", horizon=4)
    workspace, random = c.make_workspace(), np.random.default_rng(2)
    c.package.calls.begin(0, 4, c.held, workspace)
    for place, around in ((CERTAIN, 2.0), (BEST, 1.5), (SECOND, -1.5)):
        kept = workspace.stored_plans[place]
        kept["u"][:4] = (0.0 if place == good else around) + 0.1 * random.normal(size=(4, c.reference.nu))
        c.package.calls.follow(0, 4, c.held, kept["u"][:4].copy(), workspace)
        kept["z"] = workspace.plan["z"][0]
        kept["gain_x"][:4] = 0.02 * random.normal(size=(4, c.reference.nu, c.reference.nx))
        kept["begin"][0], kept["steps"][0] = 0, 4
    workspace.decision_log[0]["plan_u"] = workspace.stored_plans[BEST, 0]["u"]
    return c, workspace


def _behind(c: Any, workspace: Any, place: int, first: np.ndarray) -> tuple[float, np.ndarray]:
    """J and inputs of a kept plan with another first input."""
    kept = workspace.stored_plans[place].copy()
    workspace.stored_plans[place, 0]["u"] = first
    nominal = c.package.trajectory.warm_start(place, 0, 4, 0, workspace)
    cost = c.package.planner.total_cost(0, 4, 0, nominal, c.held, workspace)
    workspace.stored_plans[place] = kept
    return cost, workspace.plan["u"][0, :4].copy()


@pytest.mark.parametrize("place", [SECOND, CERTAIN, BEST])
def test_the_plan_behind_the_input_is_kept_and_not_a_mixture(case: Callable[..., Any], place: int) -> None:
    """A first input that the look ahead found in another valley is followed by the plan of that valley."""
    c, workspace = _decided(case, place)
    first = workspace.stored_plans[place, 0]["u"] + 0.01
    wanted = [_behind(c, workspace, other, first) for other in (CERTAIN, BEST, SECOND)]
    assert int(np.argmin([cost for cost, _ in wanted])) == place  # the problem is one where it matters
    before = workspace.stored_plans["u"][BEST, :4].copy()
    u = first.copy()
    nominal = c.package.planned.finish_decision(0, 4, c.held, workspace, u)
    np.testing.assert_array_equal(u, first)
    np.testing.assert_allclose(workspace.stored_plans["u"][BEST, :4], wanted[place][1], rtol=1e-12)
    states, inputs = workspace.stored_plans["z"][BEST, :5], workspace.stored_plans["u"][BEST, :4]
    assert nominal == pytest.approx(
        sum(c.cost.at(k, states[k], inputs[k]).value for k in range(4)) + c.cost.at(4, states[4], None).value
    )
    if place == SECOND:
        np.testing.assert_array_equal(
            workspace.stored_plans["u"][SECOND, :4], before
        )  # the other valley is not forgotten


def _orders(count: int) -> list[list[int]]:
    """Other orders than the ascending one in which alternatives can be tried; one tries each twice."""
    ascending = list(range(count))
    return [ascending[::-1], [n for n in ascending for _ in range(2)]]


def _evaluated(one: Callable[[int], float], stored_plans: np.ndarray, count: int) -> None:
    """Assert that alternatives cost the same in every order, and leave the stored plans as they were."""
    before = stored_plans.copy()
    wanted = [one(n) for n in range(count)]
    assert len(set(wanted)) > 1  # or the test could not fail
    for order in _orders(count):
        for n in order:
            assert one(n) == wanted[n]
    np.testing.assert_array_equal(stored_plans, before)


@pytest.fixture(scope="module")
def chosen(case: Callable[..., Any]) -> tuple[Any, Any]:
    """A problem of two steps, and the workspace that a decision of `planned` has left behind."""
    c = case("swing", horizon=2)
    workspace = c.make_workspace(starts=1, looking=0, samples=0)._replace(
        gradients=np.zeros(3, c.package.records.GRADIENT), covariances=np.zeros(3, c.package.records.GAUSSIAN)
    )
    u, row = np.zeros(c.reference.nu), np.zeros(c.package.dual_cost.OUT)
    c.package.planned.choose(0, 2, c.held, workspace, u, row)
    np.testing.assert_array_equal(
        workspace.stored_plans[BEST, 0]["u"], u
    )  # the stored plan begins with what is applied
    return c, workspace


def test_a_look_ahead_does_not_depend_on_the_looks_before(chosen: tuple[Any, Any]) -> None:
    c, workspace = chosen
    inputs = workspace.decision_log[0]["start_u"][0] + np.array([[0.0], [0.3], [-0.4]])

    def look(n: int) -> float:
        return c.package.look_ahead.cost_ahead(BEST, 0, 2, inputs[n], False, c.held, workspace)

    _evaluated(look, workspace.stored_plans[: SECOND + 1], 3)


def test_a_start_does_not_depend_on_the_starts_before(chosen: tuple[Any, Any]) -> None:
    c, workspace = chosen
    c.package.ce_solver.solve_ce(0, 2, c.held, workspace, np.zeros(c.reference.nu))

    def kick(n: int) -> float:
        return c.package.starts.perturbed(0, 2, 0, (0.0, 0.3, -0.4)[n], np.zeros(c.reference.nu), workspace)[0]

    _evaluated(kick, workspace.stored_plans[: SECOND + 1], 3)


def test_a_rollout_does_not_depend_on_the_rollouts_before(chosen: tuple[Any, Any]) -> None:
    c, workspace = chosen
    decision_log = workspace.decision_log[0]
    for n, place in enumerate((BEST, CERTAIN, BEST)):
        decision_log["entry_place"][n], decision_log["entry_follow"][n] = place, 1 + n // 2
    c.package.simulation.prepare(c.held[0], workspace)

    def future(n: int) -> float:
        return c.package.rollouts.simulate_rollout(n, n, 0, 2, 1e6, c.held, workspace)

    _evaluated(future, workspace.stored_plans[: SECOND + 1], 3)
