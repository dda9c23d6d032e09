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

    kernels = here / "generated" / "good" / "kernels/kernels.py"
    flipped = kernels.read_text().replace("f_theta_out[0, 0] = u", "f_theta_out[0, 0] = -u")
    assert flipped != kernels.read_text()
    kernels.write_text(flipped)
    result = run("check", "good.py", "--kernels", "--points", "3", "--json", "result.json")
    assert result.exit_code == 1, result.output
    assert "f by b" in result.stdout
    assert "kernels/kernels.py" in result.stdout
    report = json.loads((here / "result.json").read_text())
    assert report["passed"] is False
    assert {row["block"] for row in report["models"]["good"] if not row["passed"]} == {
        "f by b",
        "file kernels/kernels.py",
    }

    assert run("generate", "good.py", "--no-compile").exit_code == 0
    assert run("check", "good.py", "--kernels", "--points", "3").exit_code == 0
