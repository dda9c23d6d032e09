"""The gallery's programs run, on a few seeds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.soak
def test_pendulum_of_unknown_mass(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    figure = tmp_path / "pendulum.png"
    program = ROOT / "examples/gallery/gym_pendulum.py"
    command = [sys.executable, str(program), "--seeds", "3", "--figure", str(figure), "-o", str(tmp_path / "generated")]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert "ce minus dual on the same seeds" in answer.stdout
    assert figure.stat().st_size > 50_000


@pytest.mark.soak
def test_a_pump_of_unknown_strength(tmp_path: Path) -> None:
    figure = tmp_path / "brim.png"
    program = ROOT / "examples/gallery/brim.py"
    command = [sys.executable, str(program), "--runs", "20", "--figure", str(figure), "-o", str(tmp_path / "generated")]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    levels = [float(level) for level in re.findall(r"level at the end (\d\.\d+)", answer.stdout)]
    over = [float(share) for share in re.findall(r"over the brim (\d+\.\d) %", answer.stdout)]
    assert levels[0] > levels[2] > levels[1] and over[0] > 10 * over[2]
    assert figure.stat().st_size > 50_000


@pytest.mark.parametrize(
    ("program", "recording", "alone", "learned"),
    [("cascaded_tanks", "cascaded_tanks.csv", 0.6, 0.4), ("heat_exchanger", "exchanger.csv", 0.45, 0.35)],
)
def test_recordings_of_others(tmp_path: Path, program: str, recording: str, alone: float, learned: float) -> None:
    folder = os.environ.get("SYMDUAL_RECORDINGS")
    if folder is None or not (Path(folder) / recording).is_file():
        pytest.skip(f"{recording} is not here: SYMDUAL_RECORDINGS names the folder of recordings")
    figure = tmp_path / "figure.png"
    command = [sys.executable, str(ROOT / f"examples/gallery/{program}.py"), "--figure", str(figure)]
    answer = subprocess.run([*command, "-o", str(tmp_path)], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    errors = [float(e) for e in re.findall(r"root mean square error .* (\d\.\d+) \(expected", answer.stdout)]
    assert errors[0] <= alone and errors[1] <= learned
    assert figure.stat().st_size > 50_000


@pytest.mark.parametrize("program", ["cascaded_tanks", "heat_exchanger"])
def test_a_recording_that_is_not_here_is_said(tmp_path: Path, program: str) -> None:
    command = [sys.executable, str(ROOT / f"examples/gallery/{program}.py"), str(tmp_path / "none.csv")]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert answer.returncode == 1 and answer.stderr.startswith("the recording is not here")


COMPARED = sorted(p.stem for p in (ROOT / "examples/gallery").glob("[a-z]*.py") if "sentence(" in p.read_text())


@pytest.mark.soak
@pytest.mark.parametrize("program", COMPARED)
def test_a_page_of_the_gallery_runs_and_draws_its_conclusion(tmp_path: Path, program: str) -> None:
    command = [sys.executable, "-W", "ignore", str(ROOT / f"examples/gallery/{program}.py"), "4"]
    environment = {**os.environ, "MPLBACKEND": "agg"}
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert answer.returncode == 0, answer.stderr
    assert re.search(r"% (less|more) than|cannot be told apart|cost the same", answer.stdout)
