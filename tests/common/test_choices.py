"""Inputs with a finite set of values: what may be given, and what follows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual import Model, Scenario, unknown
from symdual.common.choices import choice_table, combinations, narrowed
from symdual.common.errors import ModelError

x, valve, heat = sp.symbols("x valve heat")
model = Model([x], [valve, heat], [x + valve + unknown("b") * heat], bounds={valve: (0.0, 2.0)}, name="m")


def test_a_table_has_the_values_of_each_input_in_order() -> None:
    scenario = Scenario(model, 3, choices={valve: [2.0, 0.0, 0.5], "heat": [1, -1]})
    np.testing.assert_array_equal(scenario.choices, [[0.0, 0.5, 2.0], [-1.0, 1.0, np.nan]])
    assert scenario.combinations == 6
    assert combinations(scenario.choices).tolist() == [[v, h] for v in (0.0, 0.5, 2.0) for h in (-1.0, 1.0)]
    assert "choices" in scenario.numbers()


def test_a_scenario_without_choices_has_none() -> None:
    scenario = Scenario(model, 3)
    assert scenario.combinations == 0 and "choices" not in scenario.numbers()


def test_free_inputs_are_zero_in_combinations_and_keep_their_bounds() -> None:
    table = choice_table({"valve": [0.0, 1.0]}, ["valve", "heat"], np.array([[0.0, -np.inf], [2.0, np.inf]]))
    assert combinations(table).tolist() == [[0.0, 0.0], [1.0, 0.0]]
    bounds = narrowed(np.array([[0.0, -3.0], [2.0, 3.0]]), table)
    assert bounds.tolist() == [[0.0, -3.0], [1.0, 3.0]]


@pytest.mark.parametrize(
    ("choices", "sentence"),
    [
        ({valve: [0.0, 3.0]}, 'the choice 3 of "valve" is outside its bounds, 0 to 2'),
        ({valve: []}, 'the choices of "valve" are empty'),
        ({valve: [1.0, 0.0, 1.0]}, 'the choices of "valve" contain 1 more than once'),
        ({valve: [0.0, np.nan]}, 'the choices of "valve" contains a value that is NaN or infinite'),
        ({valve: [0.0, np.inf]}, "NaN or infinite"),
        ({valve: ["open"]}, "must be numbers"),
        ({valve: "01"}, "must be a list of numbers"),
        ({valve: 1.0}, "must be a list of numbers"),
        ({x: [0.0]}, 'choices names "x", which is not an input'),
        ({"valv": [0.0]}, 'did you mean "valve"'),
        ([0.0, 1.0], "must be a mapping"),
        ({valve: np.linspace(0, 2, 27), heat: np.arange(19)}, "513 combinations"),
    ],
)
def test_bad_choices_are_refused(choices: Any, sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence):
        Scenario(model, 3, choices=choices)
