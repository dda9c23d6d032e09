"""Scenarios: schedules, truths, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual import Model, Scenario, features, previous, signal, unknown
from symdual.common.errors import ModelError

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


def test_prior_can_be_replaced_by_name() -> None:
    scenario = Scenario(MODEL, 2, prior_mean={"bumps": [2, 3]}, prior_covariance={gain: 4.0, "bumps": [[2, 1], [1, 2]]})
    assert scenario.prior_mean.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(scenario.prior_covariance, [[4, 0, 0], [0, 2, 1], [0, 1, 2]])
    with pytest.raises(ModelError, match='prior_mean names "gian", which is none of gain, bumps; did you mean "gain"'):
        Scenario(MODEL, 2, prior_mean={"gian": 2.0})


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
    with pytest.raises(ModelError) as failure:
        Scenario(MODEL, **({"horizon": 2} | options))
    assert said in str(failure.value)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda model: Scenario(model, True), "whole number of at least 1, but is True"),
        (lambda model: Scenario(model, 10**12), "no more than 1000000 steps can be planned"),
        (lambda model: Scenario(model, 3, plant=3), "the plant of a scenario must be a Model, but is 3"),
        (lambda model: Scenario("model", 3), "the model of a scenario must be a Model, but is 'model'"),
        (lambda model: Scenario(model, 3, signals=[1.0]), "signals must be a mapping"),
        (lambda model: Scenario(model, 3, past=[1.0]), "past must be a mapping"),
        (lambda model: signal(3), "has the name 3, which is not a text"),
    ],
)
def test_things_of_another_kind_are_refused_in_a_sentence(make: Callable[[Model], Any], sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence):
        make(MODEL)


def test_whole_numbers_of_numpy_are_whole_numbers() -> None:
    assert Scenario(Model([x], [u], [x + previous(u, np.int64(2))]), np.int64(3)).horizon == 3


def test_numbers_may_be_given_by_names() -> None:
    level, warmth, heat, flow = sp.symbols("level warmth heat flow")
    arguments = {"states": [level, warmth], "inputs": [heat, flow], "dynamics": [level + flow, warmth + heat]}
    own = Model(**arguments, process_noise={warmth: 0.2}, measurement_noise={"level": 0.1})
    assert own.process_noise.tolist() == [[0.0, 0.0], [0.0, 0.2]]
    assert own.measurement_noise.tolist() == [[0.1, 0.0], [0.0, 0.0]]
    scenario = Scenario(
        own,
        3,
        state_cost=lambda k: {"level": 1.0 + k},
        input_cost={flow: 2.0},
        reference={"warmth": 20.0},
        start={"level": 1.0},
        start_covariance={"warmth": 4.0},
    )
    assert scenario.state_cost[2].tolist() == [[3.0, 0.0], [0.0, 0.0]]
    assert scenario.input_cost[0].tolist() == [[0.0, 0.0], [0.0, 2.0]]
    assert scenario.reference[3].tolist() == [0.0, 20.0]
    assert scenario.start.tolist() == [1.0, 0.0]
    assert scenario.start_covariance.tolist() == [[0.0, 0.0], [0.0, 4.0]]
    with pytest.raises(ModelError, match='reference names "warmht", which is none of level, warmth; did you mean'):
        Scenario(own, 3, reference={"warmht": 1.0})
    with pytest.raises(ModelError, match='state_cost at step 0 names "heat"'):
        Scenario(own, 3, state_cost=lambda k: {"heat": 1.0})
    with pytest.raises(ModelError, match='process_noise names "flow"'):
        Model(**arguments, process_noise={"flow": 1.0})
