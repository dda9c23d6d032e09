"""`symdual generate`: written once, compiled when asked."""

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


def test_generate_writes_once_and_recognises_an_unchanged_model(here: Path) -> None:
    (here / "good.py").write_text(GOOD + "other = Model([x], [u], [x - u])\n")
    result = run("generate", "good.py", "--no-compile", "--json", "result.json")
    assert result.exit_code == 0, result.output
    assert sorted(p.name for p in (here / "generated").iterdir()) == ["good", "other"]
    models = json.loads((here / "result.json").read_text())["models"]
    assert [(m["name"], m["changed"]) for m in models] == [("good", True), ("other", True)]
    assert "dynamics_hessian" in models[0]["operations"]
    times = {p: p.stat().st_mtime_ns for p in (here / "generated").rglob("*")}
    result = run("generate", "good.py", "--no-compile", "--json", "result.json")
    assert result.exit_code == 0
    assert result.stdout.count("up to date") == 2
    assert {p: p.stat().st_mtime_ns for p in (here / "generated").rglob("*")} == times
    models = json.loads((here / "result.json").read_text())["models"]
    assert [m["changed"] for m in models] == [False, False]


@pytest.mark.soak
def test_generate_compiles_what_was_only_written(here: Path) -> None:
    # a model of its own: code that this process has compiled already is not compiled for another folder
    (here / "good.py").write_text(HEAD + "model = Model([x], [u], [0.123 * x + sp.sin(u)])\n")
    run("generate", "good.py", "--no-compile")
    package = here / "generated" / "good"
    assert not list(package.rglob("*.nbc"))
    result = run("generate", "good.py", "--json", "result.json")
    assert result.exit_code == 0, result.output
    assert "up to date" in result.stdout
    (model,) = json.loads((here / "result.json").read_text())["models"]
    assert model["changed"] is False and "filter" in model["compile_seconds"]
    assert all(
        list(package.rglob(f"{name}*.nbc")) for name in ("filter.predict", "filter.update", "decision.decide_at")
    )
    run("generate", "good.py", "--json", "result.json")
    (model,) = json.loads((here / "result.json").read_text())["models"]
    assert "compile_seconds" not in model
