"""`symdual export`: files, a report, and sentences for what cannot be exported."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from symdual.commands.group import main
from symdual.controllers import EXPORTED

MODEL = """
import sympy as sp
from symdual import Model, Scenario, unknown

position, double = sp.symbols("position double")
register = unknown("register", mean=1.0, variance=0.5)
model = Model(
    states=[position],
    inputs=[double],
    dynamics=[position + register * double],
    process_noise=1e-3,
    measurement_noise=1e-3,
    name="keyworded",
)
SCENARIO
"""
SCENARIO = "scenario = Scenario(model, horizon=3, state_cost=1.0, input_cost=0.1, reference=REFERENCE)"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "1.0")
    return tmp_path


def write(folder: Path, reference: str) -> None:
    text = MODEL.replace("SCENARIO", SCENARIO.replace("REFERENCE", reference))
    (folder / "model.py").write_text(textwrap.dedent(text))


def export(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["export", "model.py", *arguments])


def test_a_model_whose_names_are_keywords_of_c_is_exported(folder: Path) -> None:
    done = export("--c", "-o", "out", "--prefix", "axis", "--json", "report.json")
    assert done.exit_code == 0, done.output
    report = json.loads((folder / "report.json").read_text())
    assert report["files"] == ["out/axis/axis.h", "out/axis/axis.c"]
    assert report["sizeof"] == sum(report["memory"].values()) + (-sum(report["memory"].values())) % 8
    assert f"sizeof(axis_controller)  {report['sizeof']} bytes" in done.output
    assert report["controllers"] == [kind.name for kind in EXPORTED]
    code = (folder / "out/axis/axis.c").read_text()
    assert "axis_real_t double_ = u_in[0];" in code and "axis_real_t register_ = z_in[1];" in code
    assert "axis_act" in (folder / "out/axis/axis.h").read_text()


def test_single_precision_warns_with_the_numbers(folder: Path) -> None:
    write(folder, "3e7")
    done = export("--c", "--real", "float", "--controller", "ce")
    assert done.exit_code == 0, done.output
    assert "single precision: position has the size 3e+07 and a deviation of" in done.output
    assert "typedef float keyworded_real_t;" in (folder / "exported/keyworded/keyworded.h").read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "Missing option '--c'"),
        (["--c", "--prefix", "while"], 'the prefix "while" is a reserved word'),
        (["--c", "--prefix", "1st"], 'the prefix "1st" is no name in C'),
        (["--c", "--scenario", "other"], 'no scenario "other"'),
        (["--c", "--controller", "exact"], '"exact" cannot be exported'),
    ],
)
def test_what_makes_no_sense_is_refused(folder: Path, arguments: list[str], sentence: str) -> None:
    done = export(*arguments)
    assert done.exit_code == 2 and sentence in done.output
    assert not (folder / "exported").exists()


def test_a_model_without_a_scenario_is_refused(folder: Path) -> None:
    (folder / "model.py").write_text(textwrap.dedent(MODEL.replace("SCENARIO", "")))
    done = export("--c")
    assert done.exit_code == 2 and "has no Scenario" in done.output


def test_a_folder_that_cannot_be_written_is_named(folder: Path) -> None:
    (folder / "taken").write_text("a file")
    done = export("--c", "-o", "taken")
    assert done.exit_code == 2 and "cannot write to the folder taken" in done.output
    if os.geteuid() != 0:
        (folder / "shut").mkdir(mode=0o500)
        assert "cannot write to the folder shut" in export("--c", "-o", "shut").output


def test_check_says_that_there_is_no_compiler(folder: Path, no_compiler: Callable[[], None]) -> None:
    no_compiler()
    done = CliRunner().invoke(main, ["check", "model.py", "--c"])
    assert done.exit_code == 2 and "there is no C compiler: install gcc or clang" in done.output
