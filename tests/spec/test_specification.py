"""What scenarios ask of the code of a model is one value; the model stays as it was written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

from symdual import Model, Scenario, SymdualError, previous, problem, signal, unknown
from symdual.spec.loading import load_model_file
from symdual.spec.specification import Specification, specification, specified
from symdual.spec.system import System

x, y, z, u = sp.symbols("x y z u")


def plain(state: sp.Symbol, name: str) -> Model:
    """A model that remembers nothing and hears nothing."""
    return Model([state], [u], [state + unknown("b") * u], process_noise=0.1, name=name)


ASKED: dict[str, Callable[[Model], Scenario]] = {
    "objective": lambda model: Scenario(model, 3, cost=[sp.sin(x)]),
    "combinations": lambda model: Scenario(model, 3, choices={u: [0.0, 1.0]}),
    "plants_have_state_dependent_noise": lambda model: Scenario(
        model, 3, plant=Model([x], [u], [x + u], process_noise=x**2 + 1, name="rough")
    ),
    "plants_have_state_bounds": lambda model: Scenario(
        model, 3, plant=Model([x], [u], [x + u], state_bounds={x: (0, None)}, name="dry")
    ),
    "memory": lambda model: Scenario(model, 3, cost=[x, u - previous(u)]),
    "constants": lambda model: Scenario(model, 3, cost=[x - signal("wish")]),
}


def test_a_model_has_no_field_for_what_scenarios_ask() -> None:
    assert {f.name for f in fields(Model)} == {f.name for f in fields(System)}
    own = {f.name for f in fields(Specification)} - {f.name for f in fields(Model)}
    assert own == {
        "objective",
        "combinations",
        *(f"plants_have_state_{what}" for what in ("dependent_noise", "bounds")),
    }
    assert own < set(ASKED)


@pytest.mark.parametrize("what", list(ASKED))
def test_a_scenario_changes_the_specification_and_not_the_model(what: str) -> None:
    model = plain(x, "m")
    before = dict(model.__dict__)
    scenario = ASKED[what](model)
    asked, alone = specification(model, {"s": scenario}), specification(model, {})
    assert getattr(asked, what) != getattr(alone, what)
    assert model.__dict__.keys() == before.keys() and all(model.__dict__[key] is before[key] for key in before)


def test_models_of_a_file_are_as_they_are_written(tmp_path: Path) -> None:
    file = tmp_path / "rates.py"
    file.write_text(
        "import sympy as sp\nfrom symdual import Model, Scenario, previous\nx, u = sp.symbols('x u')\n"
        "model = Model([x], [u], [x + u], name='m')\n"
        "scenario = Scenario(model, 3, cost=[x, u - previous(u)])\n"
    )
    contents = load_model_file(file)
    assert contents.models["m"].states == (x,)
    assert [s.name for s in contents.specifications["m"].states] == ["x", "previous_u"]
    assert contents.scenarios["rates"].model is contents.models["m"]
    assert len(contents.scenarios["rates"].start) == 2


def test_models_that_meet_in_scenarios_remember_equally_much() -> None:
    """Also where they meet by way of others, for the steps that any of them or of their costs looks back."""
    one, other, apart = plain(x, "one"), plain(y, "other"), plain(x, "apart")
    late = Model([z], [u], [z + previous(u, 3)], name="late")
    scenarios = {
        "first": Scenario(one, 4, plant=other, cost=[x, previous(u)]),
        "second": Scenario(other, 4, plant=late, cost=[y, previous(u)]),
        "third": Scenario(apart, 4),
    }
    found = {model.name: specification(model, scenarios).memory for model in (one, other, late, apart)}
    assert found == {"one": 3, "other": 3, "late": 3, "apart": 0}


def test_a_specification_is_frozen_and_names_its_terms_in_unknowns_of_the_model() -> None:
    """Those of a plant have the same names, and perhaps another prior."""
    model = Model([x], [u], [x + unknown("b", 1.0, 2.0) * u], name="m")
    plant = Model([x], [u], [x + unknown("b", 5.0, 0.1) * u], name="plant")
    scenario = Scenario(model, 3, plant=plant, constraints=[unknown("b", 1.0, 2.0) * x <= 1.0])
    asked = specification(plant, {"s": scenario})
    assert asked.objective is not None
    assert asked.objective.constraints[0].free_symbols == {x, *plant.unknowns}
    with pytest.raises(FrozenInstanceError):
        asked.combinations = 3  # type: ignore[misc]


def test_a_specification_without_scenarios_is_the_model() -> None:
    model = plain(x, "m")
    asked = specified(model)
    for field in fields(System):
        ours, theirs = getattr(asked, field.name), getattr(model, field.name)
        assert np.array_equal(ours, theirs) if isinstance(ours, np.ndarray) else ours == theirs
    assert (asked.objective, asked.combinations, asked.plants_have_state_dependent_noise) == (None, 0, False)


def test_a_scenario_may_bring_its_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They need a name then, and are models of the file like others."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "brought.py"
    file.write_text(
        "import sympy as sp\nfrom symdual import Model, Scenario\nx, u = sp.symbols('x u')\n"
        "def made(name, gain):\n    return Model([x], [u], [x + gain * u], process_noise=0.1, name=name)\n"
        "scenario = Scenario(made('inner', 1), 3, plant=made('real', 2), truth={})\n"
        "unrelated = made('', 3)\n"
    )
    assert set(load_model_file(file).specifications) == {"unrelated", "inner", "real"}
    made = problem(file)
    assert (made.package.name, made.plant.name) == ("inner", "real")
    file.write_text(file.read_text().replace("made('real', 2)", "made('', 2)"))
    with pytest.raises(SymdualError, match='the plant of the scenario "brought" has no name'):
        load_model_file(file)
