"""`symdual identify` and `symdual fit` of unknowns and noise on the command line, with a compiled cart."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from symdual.commands import main

from ..identification.conftest import RIDES, ROOT, as_csv, cart_file, ride

__all__ = ["cart_file"]  # a fixture


@pytest.fixture(autouse=True)
def here(tmp_path: Path, packages: Path, cart_file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "generated").symlink_to(packages)  # the compiled cart
    (tmp_path / "cart.py").write_text(cart_file.read_text())
    for name, rows, seed in (("one", 120, 41), ("two", 80, 42), ("unseen", 100, 43)):
        (tmp_path / f"{name}.csv").write_text(as_csv(ride(rows, seed)))
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def test_a_fit_is_printed_written_and_validated(here: Path) -> None:
    answer = run(
        "fit", "cart.py", "one.csv", "two.csv", "--validate", "unseen.csv", "--starts", "2", "--json", "out.json"
    )
    assert answer.exit_code == 0, answer.output
    stored = json.loads((here / "cart.fit.json").read_text())
    report = json.loads((here / "out.json").read_text())
    assert {key: report[key] for key in stored} == stored
    assert answer.output.startswith("cart: 2 recordings, 200 steps, 180 measurements")
    for name, entry in stored["unknowns"].items():
        (line,) = (line for line in answer.output.splitlines() if line.strip().startswith(f"{name} "))
        assert f"{entry['value']:.4g}" in line and f"+- {entry['standard_deviation']:.2g}" in line
    assert "process_noise[velocity]" in answer.output and "one: start[position]" in answer.output
    assert "2 of 2 starts end here" in answer.output
    assert "unseen: position: error" in answer.output
    assert len(report["figures"]) == 6 and all(Path(path).is_file() for path in report["figures"])
    assert report["validation"][0]["consistency"]["verdict"] in ("consistent", "overconfident", "underconfident")


def test_the_fitted_model_is_not_compiled_again(here: Path) -> None:
    answer = run("fit", "cart.py", "one.csv", "--only", "drive", "--only", "measurement_noise", "--starts", "1")
    assert answer.exit_code == 0, answer.output
    content = json.loads((here / "cart.fit.json").read_text())
    assert list(content["unknowns"]) == ["drive"] and "process_noise" not in content and "start" not in content


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("one.csv", "--only", "drive", "--hold", "drive"), "there is nothing to fit"),
        (("one.csv", "--only", "driv"), 'nothing called "driv" to fit; did you mean "drive"?'),
        (("one.csv", "--starts", "0"), "at least one start"),
        (("none.csv",), "cannot read none.csv"),
        (("uneven.csv",), "only when asked (resample)"),
        (("one.csv", "-o", "missing/fit.json"), "cannot write missing/fit.json"),
        (("backwards.csv",), "line 4: the times must increase"),
        (("renamed.csv",), 'no column "position"; did you mean "positions"?'),
    ],
)
def test_bad_input_is_one_sentence(here: Path, arguments: tuple[str, ...], said: str) -> None:
    table = ride(20, 0)
    (here / "uneven.csv").write_text(as_csv(dict(table, time=np.arange(20) ** 1.1)))
    (here / "backwards.csv").write_text(as_csv(dict(table, time=np.array([0.0, 1.0, 0.5, *range(3, 20)]))))
    renamed = {key if key != "position" else "positions": column for key, column in table.items()}
    (here / "renamed.csv").write_text(as_csv(renamed))
    answer = run("fit", "cart.py", *arguments)
    assert answer.exit_code == 2
    (line,) = answer.stderr.splitlines()
    assert said in line
    assert not (here / "cart.fit.json").exists()


def test_uneven_times_are_resampled_when_asked(here: Path) -> None:
    (here / "uneven.csv").write_text(as_csv(dict(ride(40, 0), time=np.arange(40) ** 1.02)))
    assert run("fit", "cart.py", "uneven.csv", "--resample", "--starts", "1", "--anyway").exit_code == 0


def test_identify_before_and_after(here: Path) -> None:
    answer = run("identify", "cart.py", "--steps", "20", "--bound", "wind=-0.5:0.5", "--json", "out.json")
    assert answer.exit_code == 0, answer.output
    assert answer.output.startswith("cart: the best experiment found, 20 steps")
    report = json.loads((here / "out.json").read_text())
    assert list(report["unknowns"]) == ["drive", "friction", "side"] and report["kind"] == "best"
    assert max(np.abs(report["inputs"]["wind"])) <= 0.5
    assert (here / "results/cart.identify.png").stat().st_size > 20_000
    again = run("identify", "cart.py", "results/cart.identify.csv")
    assert again.output.startswith("cart: this plan, 20 steps")
    seen = run("identify", "cart.py", "one.csv")
    assert seen.output.startswith("cart: this recording, 119 steps")


def test_bounds_that_are_none(here: Path) -> None:
    for text in ("wind", "wind=1", "wind=a:b"):
        answer = run("identify", "cart.py", "--bound", text)
        assert (
            answer.exit_code == 2 and f'--bound needs INPUT=LOW:HIGH, such as force=-1:1, not "{text}"' in answer.stderr
        )


@pytest.mark.soak
def test_the_examples_in_the_documentation(here: Path) -> None:
    """What docs/fit.md and docs/identify.md show is what comes out."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", RIDES], check=True, cwd=here)
    for page, command in (
        ("fit.md", ["fit", "cart.py", "monday.csv", "tuesday.csv", "--validate", "unseen.csv"]),
        ("identify.md", ["identify", "cart.py", "--steps", "60"]),
    ):
        text = (ROOT / "docs" / page).read_text()
        shown = re.search(rf"    \$ symdual {re.escape(' '.join(command))}\n((?:    .*\n)+)", text)
        assert shown is not None
        answer = CliRunner(env={"COLUMNS": "100"}).invoke(main, command)
        assert textwrap.dedent(shown[1]) == "\n".join(line.rstrip() for line in answer.stdout.splitlines()) + "\n"
