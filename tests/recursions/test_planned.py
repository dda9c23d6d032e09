"""What a planning controller keeps of a decision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

CERTAIN, BEST, SECOND = 0, 1, 2


def _decided(case: Callable[..., Any], good: int) -> tuple[Any, Any]:
    """A problem and a desk with three plans that answer by feedback on the shelf, of which one goes on well."""
    c = case("mixed", horizon=4)
    desk, random = c.desk(), np.random.default_rng(2)
    c.package.calls.begin(0, 4, c.held, desk)
    for place, around in ((CERTAIN, 2.0), (BEST, 1.5), (SECOND, -1.5)):
        kept = desk.shelf[place]
        kept["u"][:4] = (0.0 if place == good else around) + 0.1 * random.normal(size=(4, c.reference.nu))
        c.package.calls.follow(0, 4, c.held, kept["u"][:4].copy(), desk)
        kept["z"] = desk.plan["z"][0]
        kept["Lx"][:4] = 0.02 * random.normal(size=(4, c.reference.nu, c.reference.nx))
        kept["begin"][0], kept["steps"][0] = 0, 4
    desk.story[0]["plan_u"] = desk.shelf[BEST, 0]["u"]
    return c, desk


def _behind(c: Any, desk: Any, place: int, first: np.ndarray) -> tuple[float, np.ndarray]:
    """J and inputs of a kept plan with another first input."""
    kept = desk.shelf[place].copy()
    desk.shelf[place, 0]["u"] = first
    nominal = c.package.shelf.resume(place, 0, 4, 0, desk)
    cost = c.package.planner.whole_cost(0, 4, 0, nominal, c.held, desk)
    desk.shelf[place] = kept
    return cost, desk.plan["u"][0, :4].copy()


@pytest.mark.parametrize("place", [SECOND, CERTAIN, BEST])
def test_the_plan_behind_the_input_is_kept_and_not_a_mixture(case: Callable[..., Any], place: int) -> None:
    """A first input that the look ahead found in another valley is followed by the plan of that valley."""
    c, desk = _decided(case, place)
    first = desk.shelf[place, 0]["u"] + 0.01
    wanted = [_behind(c, desk, other, first) for other in (CERTAIN, BEST, SECOND)]
    assert int(np.argmin([cost for cost, _ in wanted])) == place  # the problem is one where it matters
    before = desk.shelf["u"][BEST, :4].copy()
    u = first.copy()
    nominal = c.package.planned.answer(0, 4, c.held, desk, u)
    np.testing.assert_array_equal(u, first)
    np.testing.assert_allclose(desk.shelf["u"][BEST, :4], wanted[place][1], rtol=1e-12)
    states, inputs = desk.shelf["z"][BEST, :5], desk.shelf["u"][BEST, :4]
    assert nominal == pytest.approx(
        sum(c.cost.at(k, states[k], inputs[k]).value for k in range(4)) + c.cost.at(4, states[4], None).value
    )
    if place == SECOND:
        np.testing.assert_array_equal(desk.shelf["u"][SECOND, :4], before)  # the other valley is not forgotten
