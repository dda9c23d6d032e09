"""Inputs at their bounds answer as far as these allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import mpmath
import numpy as np
import pytest

import symdual
from symdual.checks import dense
from symdual.checks.search import CostCurve
from symdual.runtime.controller import State, controller
from symdual.runtime.loading import LoadedPackage

ROOM = """
import sympy as sp
from symdual import Model, Scenario, unknown
warmth, heat = sp.symbols("warmth heat")
gain = unknown("gain", mean=2.0, variance=0.55**2)
cold = Model([warmth], [heat], [warmth + 0.079 * (-10 - warmth) + gain * heat], process_noise=0.01,
             measurement_noise=0.04, bounds={heat: (0, 1.2)})
scenario = Scenario(cold, horizon=24, input_cost=0.1, reference=21.0, start=21.0, start_covariance=0.04)
"""


@pytest.mark.parametrize("g", [-3.0, -0.4, 0.0, 0.7, 2.5])
def test_added_excess_is_what_it_says(g: float) -> None:
    """To 50 digits by quadrature, and by a million draws."""
    s = 1.3
    with mpmath.workdps(50):
        above = mpmath.quad(lambda v: max(0, g + s * v) ** 2 * mpmath.npdf(v), [-12, -mpmath.mpf(g) / s, 12])
        exact = float((above - max(0, g) ** 2) / mpmath.mpf(s) ** 2)
    assert dense.added_excess(g, s) == pytest.approx(exact, abs=1e-14)
    draws = np.maximum(0.0, g + s * np.random.default_rng(0).standard_normal(1_000_000)) ** 2
    drawn = (draws.mean() - max(0.0, g) ** 2) / s**2
    assert dense.added_excess(g, s) == pytest.approx(drawn, abs=6 * draws.std() / 1e3)


@pytest.mark.parametrize(("w", "s"), [(1.5, 0.4), (1.2, 0.4), (0.6, 1.0), (-0.3, 0.2)])
def test_a_share_is_what_a_clipped_answer_saves(w: float, s: float) -> None:
    """By a million draws: the clipped answer beside the best fixed input, and its regression on the unclipped one."""
    v = s * np.random.default_rng(1).standard_normal(1_000_000)
    clipped, fixed = np.clip(w + v, 0.0, 1.2), np.clip(w, 0.0, 1.2)
    saved = (fixed - w - v) ** 2 - (clipped - w - v) ** 2
    share, gain = dense.share_of(w, s, fixed, 0.0, 1.2)
    assert share == pytest.approx(saved.mean() / s**2, abs=6 * saved.std() / s**2 / 1e3)
    assert gain == pytest.approx((clipped * v).mean() / s**2, abs=6 * (clipped * v).std() / s**2 / 1e3)


def test_a_room_on_a_cold_day_is_heated(make_quickly: Callable[[str, str], LoadedPackage]) -> None:
    """All that its heater has is needed; where a bound answers nothing, dual heats with .60: its runs cost 9 % more."""
    problem = symdual.problem(make_quickly("cold", ROOM))
    for name in ("ce", "cautious", "dual"):
        _, u, _ = controller(problem, name).step(State(0, problem.prior, None))
        assert u[0] == pytest.approx(1.2, abs=1e-3), name
    curve = CostCurve(problem, "dual", 1, 0, problem.prior)
    runs = symdual.simulate(problem, ["ce", "dual"], runs=200, seed=1, truth="prior")
    # what it says a run will cost is what runs cost
    costs = cast(np.ndarray, runs["dual"].costs)
    assert abs(float(curve(np.array([[1.2]]))[0]) - costs.mean()) < 3 * costs.std() / 200**0.5
    assert costs.mean() <= runs["ce"].costs.mean() * 1.001
