"""`symdual check`: passes, and names a flipped sign."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from symdual.commands import main

HEAD = """\
import sympy as sp
from symdual import Model, unknown
x, u = sp.symbols("x u")
"""
GOOD = HEAD + "model = Model([x], [u], [x + unknown('b', 1.0) * u])\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def test_check_passes_and_then_names_a_flipped_sign(here: Path) -> None:
    (here / "good.py").write_text(GOOD)
    result = run("check", "good.py", "--kernels", "--points", "3", "--json", "result.json")
    assert result.exit_code == 0, result.output
    report = json.loads((here / "result.json").read_text())
    assert report["passed"] is True
    assert "good: all is well in" in result.stdout and "compared with 50-digit values" in result.stdout
    assert all(row["passed"] for row in report["models"]["good"])
    assert "f by" not in result.stdout

    kernels = here / "generated" / "good" / "kernels/kernels.py"
    flipped = kernels.read_text().replace("f_theta_out[0, 0] = u", "f_theta_out[0, 0] = -u")
    assert flipped != kernels.read_text()
    kernels.write_text(flipped)
    result = run("check", "good.py", "--kernels", "--points", "3", "--json", "result.json")
    assert result.exit_code == 1, result.output
    assert "f by b" in result.stdout and "f by x" not in result.stdout
    assert "kernels/kernels.py" in result.stdout
    report = json.loads((here / "result.json").read_text())
    assert report["passed"] is False
    assert {row["block"] for row in report["models"]["good"] if not row["passed"]} == {
        "f by b",
        "file kernels/kernels.py",
    }

    assert run("generate", "good.py", "--no-compile").exit_code == 0
    assert run("check", "good.py", "--kernels", "--points", "3").exit_code == 0


BELIEF = (
    HEAD
    + """from symdual import Scenario
v = sp.Symbol("v")
a, b = unknown("a", 1.0, 0.09), unknown("b", 1.0, 0.09)
motion = [x + 0.3 * v, v + 0.3 * a * b * u]
model = Model([x, v], [u], motion, measurement_noise=1e-4, process_noise=1e-4)
scenario = Scenario(model, horizon=6, reference=[1.0, 0.0], input_cost=0.1)
"""
)


def test_belief_compares_filters_and_a_dishonest_one_is_a_miss(here: Path) -> None:
    (here / "pushed.py").write_text(BELIEF)
    (here / "honest.py").write_text(BELIEF.replace("process_noise=1e-4)", 'process_noise=1e-4, filter="second_order")'))
    for name, own, status in (("pushed", "extended", 1), ("honest", "second_order", 0)):
        result = run("check", f"{name}.py", "--belief", "--runs", "30", "--json", "result.json")
        assert result.exit_code == status, result.output
        assert f"{name}: 30 systems drawn from the prior" in result.stdout and f"{own}*" in result.stdout
        assert "take second_order: " in result.stdout
        found = json.loads((here / "result.json").read_text())
        assert found["passed"] is (status == 0)
        assert found["scenarios"][name]["chosen"] == "second_order" and found["scenarios"][name]["own"] == own
        assert (here / "generated" / name / "manifest.json").is_file()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--belief", "--kernels"], "give one of them"),
        (["--backend", "c"], "--backend is for --belief"),
        (["--belief", "--runs", "0"], "the number of runs must be at least 1, not 0"),
        (["--belief"], "good.py has no Scenario"),
    ],
)
def test_bad_options_are_one_sentence(here: Path, options: list[str], sentence: str) -> None:
    (here / "good.py").write_text(GOOD)
    result = run("check", "good.py", *options)
    assert result.exit_code == 2 and sentence in result.output and "Traceback" not in result.output
