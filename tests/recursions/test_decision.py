"""The search over the first input in the interpreter, with costs that are made up."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

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

    def cost(k: int, end: int, belief: Any, desk: Any, candidates: np.ndarray, out: np.ndarray) -> int:
        if math.isnan(candidates[0, 0]):
            candidates[0, 0] = 0.9
            return int(own.write_row(out[0], nominal, 1.0, math.inf, 1, False, 0, 0))
        return int(own.write_row(out[0], 1.0 + (candidates[0, 0] - 0.25) ** 2, 1.0, 0.5, 0, False, 0, 0))

    table, u = c.package.candidates.table(), np.zeros(1)
    place = c.package.candidates.Case(0, c.horizon, c.held, c.desk())
    status = decision.decide(cost, True, 0.1, place, table, u)
    assert (status == c.package.nominal.NOT_FINITE) is not found
    assert u[0] == pytest.approx(0.25 if found else 0.9, abs=1e-3)
