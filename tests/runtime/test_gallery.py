"""The gallery's programs run, on a few seeds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_pendulum_of_unknown_mass(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    figure = tmp_path / "pendulum.png"
    program = ROOT / "examples/gallery/gym_pendulum.py"
    command = [sys.executable, str(program), "--seeds", "3", "--figure", str(figure), "-o", str(tmp_path / "generated")]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert "ce minus dual on the same seeds" in answer.stdout
    assert figure.stat().st_size > 50_000
