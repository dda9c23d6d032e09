"""The README's own model with the README's own commands: the first thing that is shown must work."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from symdual.commands import main
from symdual.spec.loading import load_model_file

TEXT = (Path(__file__).parents[1] / "README.md").read_text()
MODEL, PROGRAM = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
PRINTED = re.search(r"    \$ symdual (simulate cart.py)\n((?:    .*\n)+)", TEXT)
NUMBER = re.compile(r"[-+]?\d+\.?\d*")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with nothing but the model, as the reader's own."""
    (tmp_path / "cart.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_simulate_prints_what_is_printed(folder: Path) -> None:
    """Word by word, and the numbers up to what another compiler's rounding may do to a decision."""
    assert PRINTED is not None
    said = CliRunner().invoke(main, PRINTED[1].split())
    assert said.exit_code == 0, said.output
    expected = [line.removeprefix("    ").rstrip() for line in PRINTED[2].splitlines()]
    lines = [line.rstrip() for line in said.output.splitlines() if line.strip()][-len(expected) :]
    for line, shown in zip(lines, expected, strict=True):
        assert NUMBER.sub("", line).split() == NUMBER.sub("", shown).split()
        numbers = [[float(number) for number in NUMBER.findall(text)] for text in (line, shown)]
        assert numbers[0] == pytest.approx(numbers[1], rel=0.1, abs=2.0 if "%" in shown else 1e-3)


def test_the_starter_is_the_same_cart(folder: Path) -> None:
    (folder / "starter").mkdir()
    assert CliRunner().invoke(main, ["new", "starter/cart"]).exit_code == 0
    own, other = (load_model_file(folder / name).scenarios["cart"] for name in ("cart.py", "starter/cart.py"))
    assert str(own.model.dynamics) == str(other.model.dynamics) and own.horizon == other.horizon
    for numbers in ("reference", "state_cost", "input_cost", "start_covariance", "prior_covariance"):
        assert (getattr(own, numbers) == getattr(other, numbers)).all(), numbers


def test_the_program_works(folder: Path, fresh_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    answer = fresh_python(PROGRAM + "\nprint(force.shape)", folder)
    assert answer.stdout.splitlines()[-1] == "(1,)"


def test_every_command_of_the_table_exists() -> None:
    named = re.findall(r"(?m)^\| `symdual ([a-z]+(?: (?:check|run))?)", TEXT)
    assert set(main.commands) <= {name.split()[0] for name in named}
    for name in named:
        said = CliRunner().invoke(main, [*name.split(), "--help"])
        assert said.exit_code == 0, said.output
