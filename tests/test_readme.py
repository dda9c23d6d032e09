"""The README's own model with the README's own commands: the first thing that is shown must work."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from symdual.commands import main

TEXT = (Path(__file__).parents[1] / "README.md").read_text()
MODEL, PROGRAM = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
PRINTED = re.search(r"    \$ symdual (generate cart.py)\n((?:    .*\n)+)", TEXT)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with nothing but the model, as the reader's own."""
    (tmp_path / "cart.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_generate_says_what_is_printed(folder: Path) -> None:
    assert PRINTED is not None
    said = CliRunner().invoke(main, [*PRINTED[1].split(), "--no-compile"])
    assert said.exit_code == 0, said.output
    lines = [line.rstrip() for line in said.output.splitlines()]
    shown = [line.removeprefix("    ") for line in PRINTED[2].splitlines()]
    assert shown[-1] == "..." and shown[:-1] == lines[: len(shown) - 1]


@pytest.mark.soak
def test_simulate_and_the_program_work(
    folder: Path, fresh_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    said = CliRunner().invoke(
        main, ["simulate", "cart.py", "--controller", "dual", "--controller", "ce", "--runs", "2"]
    )
    assert said.exit_code == 0, said.output
    answer = fresh_python(PROGRAM + "\nprint(u.shape)", folder)
    assert answer.stdout.strip() == "(1,)"


def test_every_command_of_the_table_exists() -> None:
    named = re.findall(r"(?m)^\| `symdual ([a-z]+(?: (?:check|run))?)", TEXT)
    assert set(main.commands) <= {name.split()[0] for name in named}
    for name in named:
        said = CliRunner().invoke(main, [*name.split(), "--help"])
        assert said.exit_code == 0, said.output
