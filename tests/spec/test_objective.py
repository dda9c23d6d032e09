"""Costs by expressions as users give them, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual import Model, Scenario, constant, features, unknown
from symdual.common.errors import ModelError
from symdual.spec.loading import load_model_file
from symdual.spec.objective import Objective, Terms, merged
from symdual.spec.specification import specified

x, v, u, w, k = sp.symbols("x v u w k")
model = Model([x, v], [u, w], [x + v, v + u + unknown("b") * w], time=k, name="m")


def test_a_cost_takes_the_place_of_the_usual_weights() -> None:
    scenario = Scenario(model, 4, cost=[x - 1, u])
    assert not np.any(scenario.state_cost) and not np.any(scenario.input_cost)
    assert np.all(scenario.cost_weights == 1.0) and scenario.cost_weights.shape == (4, 2)
    beside = Scenario(model, 4, cost=sp.exp(x), input_cost=2.0)
    assert np.all(beside.input_cost == 2.0 * np.eye(2)) and not np.any(beside.state_cost)
    assert Scenario(model, 4).objective is None


def test_lists_are_residuals_and_expressions_are_values() -> None:
    objective = Scenario(model, 4, cost=[x - 1, u], terminal_cost=sp.cos(x)).objective
    assert objective is not None
    assert objective.stage == Terms((x - 1, u), squares=True)
    assert objective.final == Terms((sp.cos(x),), squares=False)


def test_weights_may_be_a_schedule() -> None:
    scenario = Scenario(model, 3, cost=[x, u], cost_weights=lambda step: [step, 1.0])
    assert scenario.cost_weights.tolist() == [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"cost": unknown("b") * x}, 'cost contains the unknown "b"'),
        ({"cost": features.fourier("g", x, count=2)}, 'cost contains the features "g"'),
        ({"cost": sp.Symbol("speed") * x}, 'cost contains "speed", which is none of x, v, u, w, k'),
        ({"cost": sp.sqrt(-1) * x}, "not a finite real number"),
        ({"cost": x * sp.oo}, "infin|not a finite|changes nothing"),
        ({"cost": sp.floor(x)}, "no derivative where it jumps"),
        ({"cost": "x**2"}, "is the text"),
        ({"cost": []}, "empty list"),
        ({"cost": [x, k]}, "no state or input"),
        ({"terminal_cost": x * u}, 'terminal_cost contains the input "u"'),
        ({"cost": [x, u], "cost_weights": [1.0, -1.0]}, "must not be negative"),
        ({"cost": [x, u], "cost_weights": [1.0]}, "one number or 2 numbers"),
        ({"cost": [x, u], "cost_weights": np.nan}, "NaN or infinite"),
        ({"cross_cost": np.ones((2, 2)), "state_cost": 0.1}, "not positive semidefinite at step 0"),
        ({"cross_cost": [1.0, 2.0]}, "one number or a 2 x 2 matrix"),
        ({"input_reference": np.inf}, "NaN or infinite"),
    ],
)
def test_bad_costs_are_refused_in_one_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence):
        Scenario(model, 4, **options)


def test_a_cost_is_quadratic_only_where_all_residuals_are_affine() -> None:
    assert Objective(Terms((x - 2 * u + k,))).affine(model)
    assert not Objective(Terms((x * u,))).affine(model)
    assert not Objective(Terms((x**2,), squares=False)).affine(model)
    assert not Objective(Terms((x,)), Terms((sp.sin(x),))).affine(model)


def test_residuals_of_inputs_alone_bound_how_far_an_input_is_worth_its_cost() -> None:
    slopes = Objective(Terms((2 * u - w, x + u, u - 1, sp.sin(u)))).input_slopes(model)
    assert slopes is not None
    assert slopes.tolist() == [[2.0, -1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    assert Objective(Terms((u**2,), squares=False)).input_slopes(model) is None


def test_two_costs_of_one_model_need_two_models() -> None:
    one, other = Objective(Terms((x,))), Objective(Terms((v,)))
    assert merged({"a": one, "b": None, "c": Objective()}, model) == one
    with pytest.raises(ModelError, match='"a" and "b" give the model "m" different expressions as cost'):
        merged({"a": one, "b": other}, model)


def test_a_model_file_gives_its_models_what_its_scenarios_ask_for(tmp_path: Path) -> None:
    """The plant too, in its own symbols: the oracle believes in it."""
    file = tmp_path / "two.py"
    file.write_text(
        "import sympy as sp\n"
        "from symdual import Model, Scenario, constant, unknown\n"
        "x, u, y = sp.symbols('x u y')\n"
        "level = constant('level', 2.0)\n"
        "model = Model([x], [u], [x + unknown('b') * u], name='believed')\n"
        "true = Model([y], [u], [y + sp.sin(u)], name='true')\n"
        "scenario = Scenario(model, 3, plant=true, cost=[x - level, u])\n"
    )
    contents = load_model_file(file)
    believed, true = contents.specifications["believed"], contents.specifications["true"]
    assert believed.objective is not None and true.objective is not None
    level, y = constant("level", 2.0), sp.Symbol("y")
    assert true.objective.stage.expressions == (y - level, u)
    assert [c.name for c in true.constants] == ["level"]
    assert contents.scenarios["two"].model is contents.models["believed"]
    assert contents.scenarios["two"].plant is contents.models["true"]


def test_a_constant_of_a_cost_must_not_be_another_one_of_the_model() -> None:
    taken = Model([x], [u], [x + constant("c", 1.0) * u], name="taken")
    with pytest.raises(ModelError, match='"c" in a cost is given to two different symbols'):
        specified(taken, Objective(Terms((x * constant("c", 2.0),))))
