"""Plans from trajectories with gaps: what the backward pass promises, and where the gaps end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from symdual.checks import dense

from .conftest import Case

Make = Callable[..., Case]


def begun(c: Case, **settings: float) -> Any:
    """A workspace with the policy of the linearisation."""
    workspace = c.make_workspace(**settings)
    assert c.package.calls.begin(0, c.horizon, c.held, workspace) == c.package.nominal.CONVERGED
    return workspace


@pytest.mark.parametrize("name", ["tidal", "fading"])
def test_the_promise_with_gaps_is_kept_by_an_affine_model(case: Make, name: str) -> None:
    """From a trajectory that is none to the plan of dynamic programming: what changes is what was promised."""
    c = case(name)
    workspace = begun(c)
    resting = c.package.nominal.stay(0, c.horizon, workspace)
    x, still = c.belief.mean[: c.reference.nx], np.zeros((c.horizon, c.reference.nu))
    assert resting == pytest.approx(
        dense.nominal_cost(c.reference, c.cost, 0, [c.belief.mean] * (c.horizon + 1), still)
    )
    assert (workspace.plan["z"][0, :, : len(x)] == x).all()
    promised = c.package.backward.backward(0, c.horizon, 0, 0, True, True, 0.0, workspace)
    cost, _, _ = c.package.calls.certainty_equivalent(0, c.horizon, c.held, workspace, np.zeros(c.reference.nu))
    assert resting - promised == pytest.approx(cost, rel=1e-9)


@pytest.mark.parametrize("name", ["network", "mixed", "swing"])
def test_gaps_close_to_a_plan(case: Make, name: str) -> None:
    c = case(name, horizon=7)
    c.cost = c.cost._replace(bounds=0.8 * np.sign(c.cost.bounds))
    expected, status, _ = c.package.calls.certainty_equivalent(
        0, c.horizon, c.held, c.make_workspace(), np.zeros(c.reference.nu)
    )
    assert status == c.package.nominal.CONVERGED
    workspace = begun(c)
    cost, status, buffer, _ = c.package.shooting.shoot(0, c.horizon, np.inf, workspace)
    inputs, states = workspace.plan["u"][buffer, : c.horizon], workspace.plan["z"][buffer]
    assert status == c.package.nominal.CONVERGED and (np.abs(inputs) <= 0.8).all()
    assert cost == pytest.approx(expected, rel=1e-8)
    followed = dense.forward_pass(c.reference, c.noise, 0, c.belief.mean, inputs)
    np.testing.assert_allclose(states[: c.horizon + 1], followed, rtol=1e-9, atol=1e-9)
    assert cost == pytest.approx(dense.nominal_cost(c.reference, c.cost, 0, followed, inputs), rel=1e-9)


def test_a_rival_that_costs_less_than_to_stay_is_left_alone(case: Make) -> None:
    c = case("network")
    resting = c.package.nominal.stay(0, c.horizon, begun(c))
    for rival, tried in ((0.9 * resting, False), (1.1 * resting, True)):
        cost, status, _, _ = c.package.shooting.shoot(0, c.horizon, rival, begun(c))
        assert (status == c.package.nominal.CONVERGED) == np.isfinite(cost) == tried
