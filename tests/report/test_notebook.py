"""What models, scenarios and beliefs show of themselves in a notebook."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

import symdual
from symdual import Belief, Model, Scenario, features, unknown
from symdual.report.facts import of_scenario
from tests.goldens import ROOT

x, v, u = sp.symbols("x v u")


def rail() -> Model:
    slope = features.fourier("g", x, count=4)
    return Model([x, v], [u], derivatives=[v, slope + u / unknown("mass", 1.0, 0.1)], step=0.1, name="rail")


def test_a_model_is_typeset() -> None:
    shown = rail()._repr_html_()
    assert (
        shown.count("<math") >= 3
        and "<mfrac><mrow><mi>d</mi><mi>x</mi></mrow><mrow><mi>d</mi><mi>t</mi></mrow></mfrac>" in shown
    )
    assert "rail" in shown and "5 unknowns" in shown and "fourier, 2 x 2" in shown


def test_a_scenario_says_what_is_to_be_done() -> None:
    scenario = Scenario(rail(), horizon=12, state_cost=[10.0, 0.0], reference=lambda k: [k, 0.0])
    shown = scenario._repr_html_()
    assert "12 steps" in shown and "x 10, v 0" in shown and "changes with time" in shown and "<math" in shown
    assert repr(scenario) == (
        "<Scenario without a name: 12 steps with <Model rail: states x, v, "
        "inputs u, unknowns mass, g_sin (2), g_cos (2)>>"
    )


def test_a_cost_by_expressions_and_constraints_are_shown() -> None:
    weights = {"cost_weights": lambda k: [k, 2.0], "terminal_weights": [3.0]}
    squares = Scenario(rail(), 9, cost=[x - v, v], terminal_cost=[x], **weights, constraints=[x <= 1], probability=0.9)
    lines = [" ".join(line) for line in of_scenario(squares)]
    assert "cost of a step w_k (-v + x)^2 + 2 (v)^2" in lines and "cost of the end 3 (x)^2" in lines
    assert "constraint x - 1 <= 0 with probability 0.9" in lines
    assert not any(line.startswith(("state cost", "reference")) for line in lines)
    added = Scenario(rail(), 9, cost=u**2 - x, terminal_cost=-v, state_cost=[1.0, 0.0])
    lines = [" ".join(line) for line in of_scenario(added)]
    assert "cost of a step u**2 - x" in lines and "cost of the end -v" in lines and "state cost x 1, v 0" in lines


def test_a_belief_has_names() -> None:
    belief = Belief(np.array([1.0, 2.0]), np.diag([4.0, 0.25]), None, ("x", "<b>"))
    shown = belief._repr_html_()
    assert "&lt;b&gt;" in shown and "<b>" not in shown and "0.5" in shown
    assert repr(belief) == "<Belief x = 1 +- 2, <b> = 2 +- 0.5>"
    assert "z[1]" in Belief(np.zeros(2), np.eye(2))._repr_html_()


def test_what_is_long_is_cut_and_said() -> None:
    many = Belief(np.zeros(60), np.eye(60))
    assert "and 20 more" in many._repr_html_() and "and 52 more" in repr(many)
    long = sp.Add(*(sp.sin(x * i) ** i for i in range(1, 400)))
    assert "operations" in Model([x], [u], [long + u])._repr_html_()


def test_what_a_program_works_with_shows_itself(shared_models: Callable[[Path], Path]) -> None:
    problem = symdual.problem(symdual.load(shared_models(ROOT / "symdual/paper/models/toy.py") / "toy"))
    dual = symdual.controller(problem, "dual")
    state, _, info = dual.step(dual.init(), {"x": 0.3})
    episodes = symdual.simulate(problem, "ce", runs=3)["ce"]
    shown: list[tuple[Any, list[str]]] = [
        (problem, ["2 steps", "u -inf to inf", "the model itself", "<td>b</td>"]),
        (dual, ["0 of 2", "to the end", "<td>b</td>"]),
        (info, ["converged", "certainty equivalent", "caution", "<td>b</td>"]),
        (state, ["standard deviation", "<td>b</td>"]),
        (episodes, ["3 of 2 steps", "3 x 3 x 2", "x, b", "+-"]),
    ]
    for value, words in shown:
        assert [word for word in words if word not in value._repr_html_()] == []
        assert len(repr(value)) < 200
        lines = str(value).splitlines()
        assert len(lines) >= 3 and all(len(line) < 100 and line == line.rstrip() for line in lines)
    assert str(dual).splitlines()[-1].split() == ["b", "1", "3.16"]
    dual.act()
    assert repr(dual) == "<Controller dual of toy: step 1 of 2, <Belief x = 1 +- 0, b = 1 +- 3.2>>"
