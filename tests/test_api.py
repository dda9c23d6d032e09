"""The front door: models, scenarios, files, packages and problems stand for a problem alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import symdual
from symdual import Model, Scenario, SymdualError, unknown
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.sweep import Sweep
from symdual.runtime.sweep import sweep as planned_sweep
from symdual.spec.loading import gathered

x, u = sp.symbols("x u")
TOY = Path(symdual.__file__).parent / "paper/models/toy.py"


def toy_model(name: str = "toy") -> Model:
    """The model of the toy's file, made elsewhere."""
    b = unknown("b", mean=1.0, variance=10.0)
    return Model(states=[x], inputs=[u], dynamics=[x + b * u], process_noise=0.1, measurement_noise=0.0, name=name)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_scenario_is_a_problem(elsewhere: Path) -> None:
    problem = symdual.problem(Scenario(toy_model(""), horizon=4, start=2.0, bonus=0.5))
    assert (problem.name, problem.package.name, problem.horizon, problem.bonus) == ("model", "model", 4, 0.5)
    assert problem.start[0] == 2.0
    assert (elsewhere / "generated" / "model" / "manifest.json").is_file()
    assert symdual.problem(Scenario(toy_model("other"), horizon=3)).package.name == "other"
    (made,) = symdual.generate(Scenario(toy_model(""), horizon=4, start=2.0, bonus=0.5))
    assert not made.changed  # the same scenario is the same package


def test_a_scenario_for_a_package_that_is_there(toy_package: LoadedPackage) -> None:
    problem = symdual.problem(toy_package, Scenario(toy_model(), horizon=7, truth={"b": -1.0}))
    assert problem.package is toy_package and problem.horizon == 7
    assert problem.truth is not None and problem.truth[0] == -1.0
    with pytest.raises(SymdualError, match="was not generated from the model of this scenario"):
        symdual.problem(toy_package, Scenario(Model([x], [u], [x - u], name="toy"), horizon=7))
    with pytest.raises(SymdualError, match="about another model"):
        symdual.problem(toy_model(), Scenario(toy_model(), horizon=7))


def test_a_scenario_that_asks_more_of_the_code_needs_another_package(toy_package: LoadedPackage) -> None:
    asking = Scenario(toy_model(), horizon=3, cost=[sp.sin(x)])
    with pytest.raises(SymdualError, match="what it asks for"):
        symdual.problem(toy_package, asking)


def test_a_model_alone_is_no_problem(elsewhere: Path) -> None:
    with pytest.raises(SymdualError, match="the model has no Scenario"):
        symdual.problem(toy_model())
    assert symdual.load(toy_model("alone")).name == "alone"


def test_names_of_what_has_none() -> None:
    plain = Scenario(toy_model(""), horizon=2, plant=toy_model(""))
    contents = gathered(plain)
    assert list(contents.models) == ["model", "model_plant"] and list(contents.scenarios) == ["model"]
    with pytest.raises(SymdualError, match='both called "same"'):
        gathered(Scenario(toy_model("same"), horizon=2, plant=toy_model("same")))


def test_the_truth_is_drawn_where_there_is_none(monkeypatch: pytest.MonkeyPatch, toy_package: LoadedPackage) -> None:
    plans: list[Sweep] = []
    monkeypatch.setattr("symdual.api.simulated", plans.append)
    told = symdual.problem(toy_package)
    symdual.simulate(told, "ce", runs=2)
    symdual.simulate(symdual.problem(toy_package, Scenario(toy_model(), horizon=2)), ["ce"], runs=2)
    symdual.simulate(told, ["ce"], runs=2, truth="drift")
    assert [plan.settings.truth for plan in plans] == ["scenario", "prior", "drift"]


def test_in_memory_and_in_files_are_the_same(toy_package: LoadedPackage, tmp_path: Path) -> None:
    problem = symdual.problem(toy_package)
    held = symdual.simulate(problem, ["ce", "dual"], runs=5, seed=3, truth="prior")
    with symdual.sweep(problem, ["ce", "dual"], runs=5, seed=3, truth="prior", folder=tmp_path) as kept:
        for name in ("ce", "dual"):
            for field in ("states", "inputs", "means", "variances", "costs", "nees_parameters", "truths"):
                np.testing.assert_array_equal(held.array(name, field), kept.array(name, field))
        assert str(held.summary()) == str(kept.summary())
    with symdual.open_results(tmp_path / "toy") as again:
        assert again.controllers == ("ce", "dual")
    with pytest.raises(SymdualError, match="there are no results"):
        symdual.open_results(tmp_path / "nowhere")


def test_advice_names_options_and_arguments(toy_package: LoadedPackage, tmp_path: Path) -> None:
    problem = symdual.problem(toy_package)
    symdual.sweep(problem, "ce", runs=2, folder=tmp_path).close()
    with pytest.raises(SymdualError, match=r"overwrite it with --force \(in Python force=True\), or choose"):
        symdual.sweep(problem, "ce", runs=2, seed=1, folder=tmp_path)
    symdual.sweep(problem, "ce", runs=2, seed=1, folder=tmp_path, force=True).close()


def test_a_controller_from_any_of_these(toy_package: LoadedPackage) -> None:
    first = symdual.controller(toy_package, "ce").act()
    assert first == symdual.controller(symdual.problem(toy_package), "ce").act()


def test_light_problems_need_no_sympy(
    toy_package: LoadedPackage, tmp_path: Path, fresh_python: Callable[..., object]
) -> None:
    code = f"""
        import sys, symdual
        problem = symdual.problem(symdual.load({str(toy_package.folder)!r}))
        symdual.controller(problem, "ce").act()
        assert not {{"sympy", "jinja2"}} & set(sys.modules)
    """
    fresh_python(code, tmp_path)


def test_a_sweep_that_is_planned_in_any_order(toy_package: LoadedPackage) -> None:
    plan = planned_sweep(symdual.problem(toy_package), ["dual"], 2)
    assert plan.description.identity["names"]["belief"] == ["x", "b"]
