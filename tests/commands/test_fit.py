"""`symdual fit`: what it prints and writes, models that read it, and one sentence for each kind of bad input."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from threadpoolctl import threadpool_limits

import symdual
from symdual import Scenario
from symdual.commands import main
from symdual.spec.loading import load_model_file

ROOT = Path(__file__).parents[2]
HEAD = """\
import sympy as sp
from pathlib import Path
from symdual import Model, Scenario, constant, covariances, features, unknown
x, v, u = sp.symbols("x v u")
"""
MODEL = """\
g = features.gaussian_process("g", x{fitted})
model = Model([x], [u], [0.5 * x + u + g], process_noise=0.01, measurement_noise=0.01)
scenario = Scenario(model, 5)
"""
GOOD = HEAD + MODEL.format(fitted="")


def recording(rows: int = 30) -> str:
    random = np.random.default_rng(0)
    x, lines = 0.0, ["time,u,x"]
    for k in range(rows):
        u = float(random.normal())
        lines.append(f"{k},{u!r},{x + 0.1 * random.normal():.6f}")
        x = 0.5 * x + u + np.sin(x) + 0.1 * float(random.normal())
    return "\n".join(lines) + "\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(GOOD)
    (tmp_path / "data.csv").write_text(recording())
    return tmp_path


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small matrices on many threads only wait for each other."""
    with threadpool_limits(limits=1):
        yield


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["fit", *(arguments or ("model.py", "data.csv"))])


def test_what_is_printed_is_what_is_written(here: Path) -> None:
    result = run("model.py", "data.csv", "--json", "report.json")
    assert result.exit_code == 0
    stored = json.loads((here / "model.fit.json").read_text())
    report = json.loads((here / "report.json").read_text())
    assert report.pop("file") == "model.fit.json"
    assert stored == report
    assert list(stored["hyperparameters"]) == ["g_amplitude", "g_lengthscale"]
    for name, entry in stored["hyperparameters"].items():
        (line,) = (line for line in result.stdout.splitlines() if line.strip().startswith(name))
        assert f"{entry['value']:.4g}" in line
        assert f"+- {entry['standard_deviation']:.2g}" in line
        assert f"(a factor of {np.exp(entry['standard_deviation'] / entry['value']):.3g})" in line
    assert f"log-likelihood {stored['log_likelihood']:.6g}" in result.stdout
    assert f"converged, {stored['agreeing']} of {stored['searches']} starts end here" in result.stdout
    assert stored["measured"] == 30
    assert sorted(p.name for p in here.iterdir()) == ["data.csv", "model.fit.json", "model.py", "report.json"]


def test_a_model_reads_the_file(here: Path) -> None:
    assert run().exit_code == 0
    fitted = ', fitted=Path(__file__).with_name("model.fit.json")'
    (here / "model.py").write_text(HEAD + MODEL.format(fitted=fitted))
    model = load_model_file("model.py").models["model"]
    stored = json.loads((here / "model.fit.json").read_text())["hyperparameters"]
    assert {c.name: c.value for c in model.constants} == {name: entry["value"] for name, entry in stored.items()}
    (family,) = model.families
    assert family.process is not None
    assert {c.name: c.value for c in family.process.kernel.free_symbols if hasattr(c, "value")} == {
        name: entry["value"] for name, entry in stored.items()
    }
    # fitted again from there, nothing changes but the start
    again = symdual.fit(Scenario(model, 5, name="again"), here / "data.csv")
    for name, entry in stored.items():
        assert again[name].first == entry["value"]
        assert again[name].value == pytest.approx(entry["value"], rel=1e-3)


@pytest.mark.parametrize("row", ["9,1e200,0", "9,1,1e200", "9,-1e308,0", "9,1,1e308", "9,1e160,-1e160"])
def test_numbers_whose_squares_overflow_are_said(here: Path, row: str) -> None:
    rows = recording().splitlines()
    (here / "data.csv").write_text("\n".join([*rows[:10], row, *rows[11:]]) + "\n")
    result = run("model.py", "data.csv", "--anyway")
    assert result.exit_code == 2, result.output
    assert result.output.startswith("symdual: the likelihood of the recording is not a number")
    assert result.output.count("\n") == 1
    assert not (here / "model.fit.json").exists()


def test_columns_that_are_not_known_are_named(here: Path) -> None:
    rows = recording().splitlines()
    (here / "data.csv").write_text("\n".join([rows[0] + ",note", *(row + ",1" for row in rows[1:])]) + "\n")
    assert "columns that the model does not know: note\n" in run().stdout


def test_uneven_times_and_covariances_when_asked(here: Path) -> None:
    rows = recording().splitlines()
    (here / "data.csv").write_text("\n".join([*rows[:8], rows[8].replace("7,", "7.4,", 1), *rows[9:]]) + "\n")
    (here / "model.py").write_text(
        GOOD.replace("Model([x], [u], [", "Model([x, v], [u], [").replace("+ g]", "+ g, 0.5 * v + x], observation=[x]")
    )
    result = run("model.py", "data.csv", "--resample", "--full", "process_noise", "--starts", "1")
    assert result.exit_code == 0, result.output
    assert "process_noise[v,x]" in result.stdout
    assert np.array(json.loads((here / "model.fit.json").read_text())["process_noise"]).shape == (2, 2)


@pytest.mark.soak
def test_equal_inputs_give_equal_bytes(here: Path) -> None:
    """In fresh processes, and however many threads there are for linear algebra."""
    command = [sys.executable, "-m", "symdual", "fit", "model.py", "data.csv", "-o"]
    for threads in ("1", "2"):
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        subprocess.run([*command, f"{threads}.json"], check=True, capture_output=True, env=environment)
    assert (here / "1.json").read_bytes() == (here / "2.json").read_bytes()


@pytest.mark.soak
def test_the_example_in_the_documentation(here: Path) -> None:
    """The text of docs/fit-gaussian-process.md is run, and what it shows is what comes out."""
    text = (ROOT / "docs" / "fit-gaussian-process.md").read_text()
    model, drive, *_ = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (here / "cart.py").write_text(model)
    subprocess.run([sys.executable, "-W", "ignore", "-c", drive], check=True, cwd=here)
    result = run("cart.py", "monday.csv", "tuesday.csv")
    shown = re.search(r"    \$ symdual fit cart.py monday.csv tuesday.csv\n((?:    .*\n)+)", text)
    assert shown is not None
    printed, promised = result.stdout.split(), shown.group(1).split()
    assert len(printed) == len(promised)
    for word, expected in zip(printed, promised, strict=True):
        if re.fullmatch(r"[0-9.]+(e-\d+)?[,)]?", expected):  # another machine may round differently
            assert float(word.rstrip(",)")) == pytest.approx(float(expected.rstrip(",)")), rel=0.02)
        else:
            assert word == expected


# ---------------------------------------------------------------- bad input

#: what is wrong: the model file after its head and the recording (None: the good ones), arguments, what must be said
BAD: dict[str, tuple[str | None, str | None, tuple[str, ...], str]] = {
    "several models": (
        "m, n = (Model([x], [u], [features.gaussian_process(name, x)]) for name in ('g', 'h'))",
        None,
        (),
        "name one of m, n",
    ),
    "no such model": (None, None, ("--model", "modle"), 'has no model "modle"; did you mean "model"?'),
    "no scenario": (
        "model = Model([x], [u], [features.gaussian_process('g', x)])",
        None,
        (),
        "has no Scenario of model",
    ),
    "several scenarios": (
        MODEL.format(fitted="") + "other = Scenario(model, 5, start=1.0)",
        None,
        (),
        "name one of model, other",
    ),
    "no such scenario": (
        None,
        None,
        ("--scenario", "modul"),
        'has no scenario "modul"; did you mean "model"?',
    ),
    "no hyperparameters": (
        "g = features.gaussian_process('g', x, lambda a, b: sp.exp(-(a - b)**2))\n"
        "model = Model([x], [u], [g]); s = Scenario(model, 5)",
        None,
        (),
        "have no hyperparameters",
    ),
    "negative hyperparameter": (
        "k = lambda a, b: sp.exp(-(a - b)**2 + 0 * constant('c', -1.0)) * (2 + constant('c', -1.0))\n"
        "model = Model([x], [u], [features.gaussian_process('g', x, k)]); s = Scenario(model, 5)",
        None,
        (),
        'the hyperparameter "c" is -1; only positive ones can be fitted',
    ),
    "shared constant": (
        "c = constant('c', 2.0); k = lambda a, b: sp.exp(-c * (a - b)**2)\n"
        "model = Model([x], [u], [c * x + features.gaussian_process('g', x, k)]); s = Scenario(model, 5)",
        None,
        (),
        '"c" stands in the kernel of "g" and in the dynamics',
    ),
    "no recording": (None, None, ("model.py", "missing.csv"), "cannot read missing.csv"),
    "wrong columns": (None, "time,w,x\n0,1,1\n1,1,1\n", (), 'data.csv has no column "u"'),
    "nothing measured": (None, "time,u,x\n0,1,\n1,1,NaN\n2,1,\n3,1,\n", (), "nothing was measured in data"),
    "one row": (None, "time,u,x\n0,1,2\n", (), "data has a single row, too few"),
    "few rows": (None, "time,u,x\n0,1,2\n1,1,1\n2,0,1\n", (), "only 2 measurements of the recording depend on"),
    "measured before": (
        None,
        "time,u,x\n0,1,2\n1,1,\n2,0,\n3,0,\n",
        (),
        "only 0 measurements of the recording depend on",
    ),
    "too long": (
        None,
        "time,u,x\n0,1,2\n1,1,2\n2,1,1\n9000,0,1\n",
        (),
        "covers 9000 steps with 9000 values of Gaussian processes",
    ),
    "not finite": (
        "g = features.gaussian_process('g', u)\n"
        "model = Model([x], [u], [sp.log(x) + g], process_noise=0.1, measurement_noise=0.1)\n"
        "s = Scenario(model, 5, start=-1.0)",
        None,
        (),
        "the model or a derivative of it is not finite at step 0",
    ),
    "no prior": (None, None, ("--likelihood",), "so there is no likelihood without it"),
    "uneven times": (None, "time,u,x\n0,1,2\n1,1,1\n2.5,0,1\n3.5,0,1\n", (), "only when asked (resample)"),
    "another unit": (None, "time,u,x\n0,1,0\n1,1,1\n2,0,9000\n3,0,1\n", (), 'data, line 4: "x" is 9000, but the model'),
    "no matrix": (None, None, ("--full", "g"), '"g" is no matrix of noise'),
    "no recording to predict": (None, None, ("--validate", "missing.csv"), "cannot read missing.csv"),
    "a folder": (None, None, ("-o", "."), "cannot write .: it is a folder"),
    "no folder": (None, None, ("-o", "missing/fit.json"), "cannot write missing/fit.json: its folder is missing"),
    "a file for a folder": (
        None,
        None,
        ("-o", "data.csv/fit.json"),
        "cannot write data.csv/fit.json: its folder is missing",
    ),
    "no folder for the report": (None, None, ("--json", "missing/fit.json"), "cannot write missing/fit.json"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(here: Path, case: str) -> None:
    model, data, arguments, said = BAD[case]
    if model is not None:
        (here / "model.py").write_text(HEAD + model + "\n")
    if data is not None:
        (here / "data.csv").write_text(data)
    files = () if arguments and arguments[0] == "model.py" else ("model.py", "data.csv")
    result = run(*files, *arguments)
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("symdual: ")
    assert said in line
    assert result.stdout == ""
    assert sorted(p.name for p in here.iterdir()) == ["data.csv", "model.py"]
