"""The example that a person follows: exported, compiled with its main.c, and equal to Python line by line."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from symdual.backends.c.compilers import compile_files
from symdual.commands.group import main

from .conftest import ROOT, STRICT


@pytest.mark.soak
def test_the_example_prints_what_python_prints(
    c_compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "examples" / "export", tmp_path / "export")
    shutil.copy(ROOT / "examples" / "pendulum.py", tmp_path)
    folder = tmp_path / "export"
    monkeypatch.chdir(folder)
    assert len((folder / "main.c").read_text().splitlines()) <= 40
    done = CliRunner().invoke(main, ["export", "../pendulum.py", "--c", "--controller", "planned"])
    assert done.exit_code == 0, done.output
    place = folder / "exported/pendulum"
    sources = [folder / "main.c", place / "pendulum.c"]
    compile_files(sources, [*STRICT, "-O2", f"-I{place}"], folder / "swing")
    printed = subprocess.run(["./swing"], capture_output=True, text=True, check=True).stdout
    twin = subprocess.run([sys.executable, "twin.py", "c"], capture_output=True, text=True, check=True).stdout
    assert printed == twin and len(printed.splitlines()) == 30
    rules = (folder / "Makefile").read_text()
    assert "export $< --c --controller planned" in rules and "main.c exported/pendulum/pendulum.c -lm" in rules
