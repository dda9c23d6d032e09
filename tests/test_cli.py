"""The command line: exit status, one sentence for each kind of bad input, and nothing written."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from symdual import __version__
from symdual.cli import main

HEAD = """\
import numpy as np
import sympy as sp
from symdual import Model, Scenario, constant, features, unknown
x, v, u = sp.symbols("x v u")
"""
GOOD = HEAD + "model = Model([x], [u], [x + unknown('b', 1.0) * u])\n"

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def entries(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


#: what is wrong, the end of the model file, and what must be said
BAD = {
    "undeclared": ("m = Model([x], [u], [x + sp.Symbol('uu')])", "'uu'", 'did you mean "u"'),
    "without dynamics": ("m = Model([x, v], [u], [x + u])", '"v" has no dynamics'),
    "name twice": ("m = Model([x], [u], [x + unknown('x')])", '"x"'),
    "state and input": ("m = Model([x], [x], [x])", '"x"'),
    "keyword": ("s = sp.Symbol('lambda'); m = Model([s], [u], [s])", "keyword"),
    "identifier": ("s = sp.Symbol('a b'); m = Model([s], [u], [s])", "identifier"),
    "shadowing": ("s = sp.Symbol('work'); m = Model([s], [u], [s])", '"work"'),
    "code": ("s = sp.Symbol('x); import os #'); m = Model([s], [u], [s])", "x); import os #"),
    "undefined function": ("m = Model([x], [u], [sp.Function('q')(x)])", "'q'"),
    "function": ("m = Model([x], [u], [sp.gamma(x)])", "gamma"),
    "jump": ("m = Model([x], [u], [sp.floor(x)])", "floor", "derivative"),
    "shape": ("m = Model([x], [u], [x], process_noise=[1, 2])", "process_noise", "shape (2,)"),
    "covariance": ("m = Model([x, v], [u], [x, v], process_noise=[[1, 2], [2, 1]])", "smallest eigenvalue is -1"),
    "nan": ("m = Model([x], [u], [x], measurement_noise=np.nan)", "measurement_noise", "NaN"),
    "infinite": ("c = constant('c', np.inf)", '"c"', "infinite"),
    "no features": ("g = features.fourier('g', x, count=0)", '"g"', "0 features"),
    "raises": ("1 / 0", "ZeroDivisionError"),
    "syntax": ("x = (", "not valid Python"),
    "no model": ("m = 3", "contains no Model"),
}


@pytest.mark.parametrize("command", ["generate", "show", "check"])
@pytest.mark.parametrize("case", BAD)
def test_bad_models(here: Path, command: str, case: str) -> None:
    text, *said = BAD[case]
    (here / "bad.py").write_text(HEAD + text + "\n")
    result = run(command, "bad.py")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("symdual: bad.py")
    assert case == "no model" or line.startswith("symdual: bad.py:5: ")
    for part in said:
        assert part in line
    assert result.stdout.strip() == ""
    assert entries(here) == ["bad.py"]


@pytest.mark.parametrize("command", ["generate", "show", "check"])
def test_missing_model_file(here: Path, command: str) -> None:
    result = run(command, "missing.py")
    assert result.exit_code == 2
    assert result.stderr == "symdual: the model file missing.py does not exist\n"
    assert entries(here) == []


@pytest.mark.parametrize("command", ["generate", "check"])
def test_a_folder_that_cannot_be_written(here: Path, command: str) -> None:
    (here / "good.py").write_text(GOOD)
    (here / "occupied").write_text("")
    result = run(command, "good.py", "-o", "occupied")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "cannot write to the folder" in line
    assert entries(here) == ["good.py", "occupied"]


@pytest.mark.parametrize("command", ["generate", "show", "check"])
@pytest.mark.parametrize("file", ["missing/result.json", "."])
def test_a_json_file_that_cannot_be_written_is_refused_before_any_work(here: Path, command: str, file: str) -> None:
    (here / "good.py").write_text(GOOD)
    result = run(command, "good.py", "--json", file)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert f"cannot write {file}" in line
    assert entries(here) == ["good.py"]


def test_debug_shows_the_traceback(here: Path) -> None:
    (here / "bad.py").write_text(HEAD + "1 / 0\n")
    result = run("--debug", "generate", "bad.py")
    assert isinstance(result.exception, Exception)
    assert isinstance(result.exception.__cause__, ZeroDivisionError)


# -------------------------------------------------------------------- good input


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


def test_generate_compiles_what_was_only_written(here: Path) -> None:
    # a model of its own: code that this process has compiled already is not compiled for another folder
    (here / "good.py").write_text(HEAD + "model = Model([x], [u], [0.123 * x + sp.sin(u)])\n")
    run("generate", "good.py", "--no-compile")
    cache = here / "generated" / "good" / "__pycache__"
    assert not list(cache.glob("*.nbc"))
    result = run("generate", "good.py", "--json", "result.json")
    assert result.exit_code == 0, result.output
    assert "up to date" in result.stdout
    (model,) = json.loads((here / "result.json").read_text())["models"]
    assert model["changed"] is False and "dynamics" in model["compile_seconds"]
    assert list(cache.glob("kernels.dynamics-*.nbc"))
    run("generate", "good.py", "--json", "result.json")
    (model,) = json.loads((here / "result.json").read_text())["models"]
    assert "compile_seconds" not in model


def test_show_prints_equations_with_the_generic_index(here: Path) -> None:
    (here / "good.py").write_text(
        HEAD + "model = Model([x, v], [u], [x + v, v + features.rbf('g', x, [0.0, 1.0, 2.0]) + u])\n"
    )
    result = run("show", "good.py", "--json", "result.json")
    assert result.exit_code == 0, result.output
    assert "sum_i(" in result.stdout
    assert "g[i]" in result.stdout
    (shown,) = json.loads((here / "result.json").read_text())["models"]
    assert shown["structure"]["theta_rows"] == [1]
    assert {e["block"] for e in shown["equations"]} == {"f_x", "f_u", "f_theta", "h_x", "f_zz"}
    assert entries(here) == ["good.py", "result.json"]


def test_check_passes_and_then_names_a_flipped_sign(here: Path) -> None:
    (here / "good.py").write_text(GOOD)
    result = run("check", "good.py", "--kernels", "--points", "3", "--json", "result.json")
    assert result.exit_code == 0, result.output
    report = json.loads((here / "result.json").read_text())
    assert report["passed"] is True
    assert all(row["passed"] for row in report["models"]["good"])

    kernels = here / "generated" / "good" / "kernels.py"
    flipped = kernels.read_text().replace("f_theta_out[0, 0] = u", "f_theta_out[0, 0] = -u")
    assert flipped != kernels.read_text()
    kernels.write_text(flipped)
    result = run("check", "good.py", "--kernels", "--points", "3", "--json", "result.json")
    assert result.exit_code == 1, result.output
    assert "f by b" in result.stdout
    assert "kernels.py" in result.stdout
    report = json.loads((here / "result.json").read_text())
    assert report["passed"] is False
    assert {row["block"] for row in report["models"]["good"] if not row["passed"]} == {"f by b", "file kernels.py"}

    assert run("generate", "good.py", "--no-compile").exit_code == 0
    assert run("check", "good.py", "--kernels", "--points", "3").exit_code == 0


def test_help_and_version_import_nothing_heavy(fresh_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    code = """
        import sys
        from symdual.cli import main
        for option in ("--help", "--version"):
            try:
                main([option], prog_name="symdual")
            except SystemExit as finished:
                assert finished.code == 0
        print([name for name in ("sympy", "numpy", "numba", "jinja2", "rich", "matplotlib") if name in sys.modules])
    """
    printed = fresh_python(code, ROOT).stdout
    assert "generate" in printed
    assert __version__ in printed
    assert printed.endswith("[]\n")


def test_python_dash_m() -> None:
    result = subprocess.run([sys.executable, "-m", "symdual", "--version"], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0
    assert __version__ in result.stdout
