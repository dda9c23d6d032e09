"""What a controller or a fit needs is added to a package when it is first used, without a word from the user."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp
from click.testing import CliRunner

import symdual
from symdual import Model, Scenario, SymdualError, SymdualWarning, unknown
from symdual.commands import main
from symdual.common.package_folders import read_manifest
from symdual.common.parts import PARTS
from symdual.identification.parameters.prior_model import prior_model
from symdual.runtime.problem import Problem

x, u = sp.symbols("x u")
TEXT = """
import sympy as sp
from symdual import Model, Scenario, unknown
x, u = sp.symbols("x u")
model = Model([x], [u], [x + unknown("b", 1.0, 0.5) * u], process_noise=0.1, measurement_noise=0.1)
scenario = Scenario(model, horizon=3, start=2.0)
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gain.py").write_text(TEXT)
    return tmp_path / "gain.py"


def parts(folder: Path | str = "generated/gain") -> list[str]:
    manifest = read_manifest(Path(folder))
    assert manifest is not None
    return list(manifest["parts"])


def scenario() -> Scenario:
    b = unknown("b", 1.0, 0.5)
    return Scenario(Model([x], [u], [x + b * u], process_noise=0.1, measurement_noise=0.1, name="gain"), 3, start=2.0)


def test_a_package_has_what_is_asked_for_and_keeps_it(file: Path) -> None:
    symdual.generate(file)
    assert parts() == [] and not Path("generated/gain/dual_planner").exists()
    symdual.generate(file, parts="likelihood")
    assert parts() == ["likelihood"]
    symdual.problem(file, parts=["planned"])
    assert parts() == ["likelihood", "planned"]
    (made,) = symdual.generate(file)
    assert not made.changed and parts() == ["likelihood", "planned"]
    with pytest.raises(SymdualError, match='no part "plans"'):
        symdual.generate(file, parts="plans")


USES: Mapping[str, Callable[[Path], Any]] = {
    "a file": lambda file: file,
    "a problem of a file": symdual.problem,
    "a package of a file": lambda file: symdual.load(symdual.generate(file)[0].folder),
    "a scenario": lambda file: scenario(),
    "a problem of a scenario": lambda file: symdual.problem(scenario()),
    "a changed problem": lambda file: symdual.problem(scenario()).changed(input_cost=0.5),
}


@pytest.mark.parametrize("use", USES)
def test_planned_adds_its_part(file: Path, use: str) -> None:
    problem = USES[use](file)
    found = symdual.problem(problem, parts="planned")
    assert parts() == ["planned"] and found.package.parts == {"planned"}
    assert symdual.problem(found, parts="planned") is found
    if isinstance(problem, Problem):
        np.testing.assert_array_equal(found.input_cost, problem.input_cost)
        assert found.plant_is_model and found.package.DIGEST != problem.package.DIGEST
        assert problem.package.parts == frozenset()  # who has the old one can go on


def test_a_controller_does_it_without_a_word(file: Path, recwarn: pytest.WarningsRecorder) -> None:
    problem = symdual.problem(file)
    dual = symdual.controller(problem, "dual").act()
    assert parts() == [] and np.isfinite(symdual.controller(problem, "planned").act()).all()
    assert parts() == ["planned"] and not recwarn.list
    np.testing.assert_array_equal(symdual.controller(symdual.problem(file), "dual").act(), dual)


def test_what_was_pickled_goes_on_with_a_package_that_has_grown(file: Path) -> None:
    stored = pickle.dumps(symdual.problem(file))
    symdual.generate(file, parts=PARTS)
    assert pickle.loads(stored).package.parts == set(PARTS)
    file.write_text(TEXT.replace("[x + ", "[2 * x + "))
    symdual.generate(file)
    with pytest.raises(SymdualError, match="has been generated anew since"):
        pickle.loads(stored)


def test_a_package_alone_says_which_command_adds_the_part(file: Path) -> None:
    symdual.generate(file)
    shutil.copytree("generated/gain", "elsewhere/gain", ignore=shutil.ignore_patterns("__pycache__"))
    problem = symdual.problem(symdual.load("elsewhere/gain"))
    with pytest.raises(
        SymdualError, match=r"elsewhere/gain .* without the part planned: `symdual generate --with plan"
    ):
        symdual.controller(problem, "planned")
    with pytest.raises(AttributeError, match="no module likelihood; its parts: none"):
        _ = problem.package.likelihood


def test_a_package_whose_model_file_was_edited_is_left_as_it_is(file: Path) -> None:
    symdual.generate(file)
    file.write_text(TEXT.replace("0.5", "0.7"))
    with pytest.warns(SymdualWarning, match="was edited"):
        problem = symdual.problem(symdual.load("gain"))
    with pytest.raises(SymdualError, match="`symdual generate --with planned`"):
        symdual.controller(problem, "planned")
    assert parts() == []


def test_what_a_fit_needs(file: Path) -> None:
    symdual.generate(file)
    assert prior_model(file).package.parts == {"likelihood"} == set(parts())


def test_a_sweep_goes_on_with_a_package_that_has_grown(file: Path) -> None:
    problem = symdual.problem(file)
    with symdual.sweep(problem, ["ce"], runs=2) as first:
        costs = first.array("ce", "costs")
    with symdual.sweep(problem, ["ce", "planned"], runs=2, resume=True) as both:
        assert both.controllers == ("ce", "planned")
        np.testing.assert_array_equal(both.array("ce", "costs"), costs)


def test_the_command(file: Path) -> None:
    command = ["generate", "gain.py", "--no-compile"]
    done = CliRunner().invoke(
        main, ["generate", "gain.py", "--no-compile", "--with", "planned", "--with", "likelihood"]
    )
    assert done.exit_code == 0 and parts() == ["likelihood", "planned"]
    done = CliRunner().invoke(main, [*command, "--with", "plans"])
    assert done.exit_code == 2 and 'no part "plans"' in done.output
