"""The search over the first input in the interpreter, with costs that are made up."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from symdual.checks import dense

from .conftest import Case

Make = Callable[..., Case]


@pytest.mark.parametrize(("nominal", "found"), [(2.0, True), (math.inf, False)])
def test_the_others_are_tried_where_only_what_uncertainty_costs_has_no_value(
    case: Make, nominal: float, found: bool
) -> None:
    """Along the certainty-equivalent plan Jd is infinite. Without a plan there is nothing that others start from."""
    c = case("kink", horizon=3)
    c.cost = c.cost._replace(bounds=np.array([[-1.0], [1.0]]))
    own, decision = c.package.dual_cost, c.package.decision

    def cost(k: int, end: int, belief: Any, workspace: Any, candidates: np.ndarray, out: np.ndarray) -> int:
        if math.isnan(candidates[0, 0]):
            candidates[0, 0] = 0.9
            return int(own.write_row(out[0], nominal, 1.0, math.inf, 1, False, 0, 0))
        return int(own.write_row(out[0], 1.0 + (candidates[0, 0] - 0.25) ** 2, 1.0, 0.5, 0, False, 0, 0))

    table, u = c.package.search.table(), np.zeros(1)
    place = c.package.search.Case(0, c.horizon, c.held, c.make_workspace())
    status = decision.decide(cost, True, np.full(1, 0.1), place, table, u)
    assert (status == c.package.nominal.NOT_FINITE) is not found
    assert u[0] == pytest.approx(0.25 if found else 0.9, abs=1e-3)


def test_a_cost_that_cannot_be_right_is_never_the_lowest(case: Make) -> None:
    """Jd is no sum that may be negative: beyond rounding it has no value, and its candidate an infinite cost."""
    own = case("kink", horizon=3).package.dual_cost
    assert own.plausible(2.0, -2.0 - 1e-12) == pytest.approx(0.0, abs=1e-9)
    assert math.isnan(own.plausible(1e104, -1.1e104))
    row = np.zeros(own.OUT)
    own.write_row(row, 3.0, 1.0, own.plausible(1.0, -2.0), 0, False, 0, 0)
    assert row[own.OUT_COST] == math.inf and row[own.OUT_STATUS] == case("kink").package.nominal.NOT_FINITE


def test_planned_has_no_input_where_no_plan_has_a_cost(case: Make) -> None:
    """The certainty-equivalent plan is finite, but what uncertainty costs is beyond all numbers along every plan."""
    c = case("unstable", horizon=3)
    c.belief = dense.Belief(np.array([0.5, -0.3, 1.0]), np.diag([0.0, 0.0, 1e308]))
    records, row, u = c.package.records, np.zeros(c.package.dual_cost.OUT), np.zeros(1)
    workspace = records.make_workspace(c.horizon, records.make_stage_costs(*c.cost[:3]), c.settings, 1, True)
    with np.errstate(all="ignore"):
        status = c.package.planned.choose(0, c.horizon, c.held, workspace, u, row)
    assert status == c.package.nominal.NOT_FINITE
    assert math.isfinite(row[c.package.dual_cost.OUT_NOMINAL]) and row[c.package.dual_cost.OUT_COST] == math.inf
