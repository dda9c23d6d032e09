"""What rollouts simulate besides a plain system: violated constraints, and functions that are not known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual import Model, features, unknown
from symdual.spec.objective import Objective
from symdual.spec.specification import specified

x, u = sp.symbols("x u")
BEST = 1


def _workspace(package: Any, steps: int, data: np.ndarray) -> Any:
    records = package.records
    settings = records.make_settings(
        0.01 * np.eye(1), 0.04 * np.eye(1), np.ones(package.records.NTHETA), np.zeros(package.records.NTHETA),
        np.array([[-3.0], [3.0]]), data,
    )  # fmt: skip
    costs = records.make_stage_costs(np.ones((steps + 1, 1, 1)), 0.1 * np.ones((steps, 1, 1)), np.zeros((steps + 1, 1)))
    workspace = records.make_workspace(steps, costs, settings, planning=True)
    kept = workspace.stored_plans[BEST]
    kept["u"][:steps, 0], kept["steps"][0] = np.linspace(1.0, -0.5, steps), steps
    log = workspace.decision_log[0]
    log["entry_place"][0], log["entry_follow"][0] = BEST, steps
    return workspace


def test_a_violation_costs_its_weighted_square_where_it_happens(interpret: Callable[[Model], Any]) -> None:
    """The same rollout with weights and without; a constraint with the input does not count at the end."""
    model = Model([x], [u], [x + unknown("b", 1.0, 0.2) * u], process_noise=0.01, measurement_noise=0.04, name="walls")
    package = interpret(specified(model, Objective(constraints=(x - 1.0, x + u - 0.8))))
    workspace, held = _workspace(package, 3, np.zeros(0)), package.records.make_belief([0.4, 1.0], np.diag([0.1, 0.2]))
    rollouts, simulation = package.rollouts, package.simulation
    simulation.prepare(held[0], workspace)

    seen: list[tuple[int, bool, float, float]] = []
    usual = simulation.cost

    def noted(k: int, last: bool, workspace: Any) -> float:
        seen.append((k, last, float(workspace.rollout[0]["z"][0]), float(workspace.rollout[0]["u"][0])))
        return float(usual(k, last, workspace))

    for number in range(6):
        costs = []
        for weights in ([0.0, 0.0], [30.0, 7.0]):
            workspace.settings["constraint_weights"] = weights
            seen.clear()
            simulation.cost = noted
            try:
                costs.append(rollouts.simulate_rollout(number, 0, 0, 3, 1e9, held, workspace))
            finally:
                simulation.cost = usual
        wanted = sum(
            30.0 * max(0.0, state - 1.0) ** 2 + (0.0 if last else 7.0 * max(0.0, state + pull - 0.8) ** 2)
            for _, last, state, pull in seen
        )
        assert costs[1] - costs[0] == pytest.approx(wanted)
        assert wanted > 0.0


@np.errstate(over="ignore")  # of lanes that pad a vector of exponents
def test_a_rollout_beside_an_unknown_function_costs_what_the_look_ahead_expects(
    interpret: Callable[[Model], Any],
) -> None:
    """Over one step the look ahead is exact, and nothing that a rollout draws is remembered after it."""
    slope = features.gaussian_process("g", x, lengthscale=1.0, amplitude=0.5, memory=6)
    package = interpret(
        Model([x], [u], [0.9 * x + u + slope], process_noise=0.01, measurement_noise=0.04, name="sloped")
    )
    data, n = np.array(package.numbers["data"], dtype=float), package.records.NTHETA
    workspace = _workspace(package, 1, data)
    mean, covariance = np.zeros(1 + n), np.zeros((1 + n, 1 + n))
    mean[0], covariance[0, 0] = 0.4, 0.1
    held = package.records.make_belief(mean, covariance)
    expected = package.look_ahead.cost_ahead(BEST, 0, 1, np.array([1.0]), False, held, workspace)
    before = workspace.settings["numbers"].copy()
    costs = [package.rollouts.simulate_rollout(number, 0, 0, 1, 1e9, held, workspace) for number in range(400)]
    np.testing.assert_array_equal(workspace.settings["numbers"][:, -2:], before[:, -2:])
    assert abs(np.mean(costs) - expected) < 4.0 * np.std(costs) / 20.0
    assert np.std(costs) > 0.1 * expected
    again = [package.rollouts.simulate_rollout(number, 0, 0, 1, 1e9, held, workspace) for number in range(5)]
    assert again == costs[:5]
