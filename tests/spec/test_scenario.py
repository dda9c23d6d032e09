"""Scenarios: schedules, truths, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from symdual import Model, Scenario, features, unknown
from symdual.errors import ModelError

x, v, u = sp.symbols("x v u")
gain = unknown("gain", mean=1.0)
bumps = features.rbf("bumps", x, centres=[0.0, 1.0])
MODEL = Model([x, v], [u], [x + v, v + gain * u + bumps])


def test_schedules_are_constant_or_functions_of_the_step() -> None:
    scenario = Scenario(
        MODEL,
        horizon=3,
        state_cost=lambda k: [k, 0.0],
        input_cost=2.0,
        reference=lambda k: [10.0 * k, 0.0],
        start=[1.0, 2.0],
    )
    assert scenario.state_cost[:, 0, 0].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert scenario.input_cost.tolist() == [[[2.0]]] * 3
    assert scenario.reference[:, 0].tolist() == [0.0, 10.0, 20.0, 30.0]
    assert scenario.start.tolist() == [1.0, 2.0]


def test_truth_by_name_is_put_in_the_order_of_theta() -> None:
    scenario = Scenario(MODEL, 2, truth={"bumps": [5.0, 6.0], "gain": 7.0})
    assert scenario.truth is not None
    assert scenario.truth.tolist() == [7.0, 5.0, 6.0]


def test_prior_can_be_replaced() -> None:
    scenario = Scenario(MODEL, 2, prior_mean=[1, 2, 3], prior_covariance=[4, 5, 6])
    assert scenario.prior_mean.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(scenario.prior_covariance, np.diag([4.0, 5.0, 6.0]))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"horizon": 0}, "horizon"),
        ({"horizon": 2.5}, "horizon"),
        ({"state_cost": [1.0, -1.0]}, "smallest eigenvalue is -1"),
        ({"state_cost": lambda k: [1.0, -float(k)]}, "state_cost at step 1"),
        ({"input_cost": [1.0, 1.0]}, "input_cost"),
        ({"reference": np.nan}, "reference"),
        ({"start": [1.0]}, "start"),
        ({"start_covariance": [[1.0, 2.0], [2.0, 1.0]]}, "start_covariance"),
        ({"prior_mean": [1.0]}, "prior_mean"),
        ({"prior_covariance": -1.0}, "prior_covariance"),
        ({"truth": {"gain": 1.0}}, '"bumps"'),
        ({"truth": {"gain": 1.0, "bumps": [1.0, 2.0, 3.0]}}, '"bumps"'),
        ({"truth": {"gian": 1.0, "bumps": 0.0}}, 'did you mean "gain"'),
        ({"truth": [1.0, 2.0]}, "truth"),
        ({"bonus": -1.0}, "bonus"),
        ({"dual_weight": np.inf}, "dual_weight"),
        ({"plant": Model([x], [u], [x + u])}, "1 states, but the model has 2"),
        ({"name": "not a name"}, "identifier"),
    ],
)
def test_what_a_scenario_refuses(options: dict[str, object], said: str) -> None:
    with pytest.raises(ModelError) as problem:
        Scenario(MODEL, **({"horizon": 2} | options))
    assert said in str(problem.value)
