"""The gallery's programs run, on a few seeds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def printed(program: str, runs: int, folder: Path) -> str:
    """What a page of the gallery prints with so many runs; its sentence says what they can tell."""
    pytest.importorskip("matplotlib")
    command = [sys.executable, "-W", "ignore", str(ROOT / f"examples/gallery/{program}.py"), str(runs)]
    environment = {**os.environ, "MPLBACKEND": "agg"}
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)
    assert answer.returncode == 0, answer.stderr
    assert re.search(r"% (less|more) than|cannot be told apart|cost the same", answer.stdout)
    return answer.stdout


def numbers_of(controller: str, pattern: str, text: str) -> list[float]:
    """The numbers in the line of a controller that follows a pattern."""
    found = re.search(rf"^{controller} +{pattern}", text, re.MULTILINE)
    assert found, text
    return [float(number) for number in found.groups()]


@pytest.mark.soak
def test_dual_weighs_the_pendulum_while_nothing_is_asked_for(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    text = printed("gym_pendulum", 6, tmp_path)
    pattern = r"deviation of 1/mass when it begins to matter: ([\d.]+)"
    (waiting,), (weighing,) = (numbers_of(name, pattern, text) for name in ("ce", "dual"))
    assert weighing < 0.8 * waiting


@pytest.mark.soak
def test_a_pump_that_is_known_better_is_taken_nearer_to_the_brim(tmp_path: Path) -> None:
    text = printed("brim", 60, tmp_path)
    pattern = r"([\d.]+) % +([\d.]+) +[\d.]+$"
    kept = {name: numbers_of(name, pattern, text) for name in ("ce", "cautious", "dual", "planned")}
    violated, distance = ({name: row[i] for name, row in kept.items()} for i in (0, 1))
    assert violated["ce"] > 25.0 and max(violated[name] for name in ("cautious", "dual", "planned")) < 5.0
    assert distance["ce"] < distance["dual"] < distance["cautious"]


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


OWN = {"brim", "gym_pendulum"}  # which have tests of their own
COMPARED = sorted(p.stem for p in (ROOT / "examples/gallery").glob("[a-z]*.py") if "sentence(" in p.read_text())


@pytest.mark.soak
@pytest.mark.parametrize("program", [name for name in COMPARED if name not in OWN])
def test_a_page_of_the_gallery_runs_and_draws_its_conclusion(tmp_path: Path, program: str) -> None:
    printed(program, 4, tmp_path)


@pytest.mark.parametrize("program", COMPARED)
def test_the_code_that_is_shown_needs_symdual_alone(program: str) -> None:
    """What a page does besides is hidden, so that its code can be pasted."""
    text = (ROOT / f"examples/gallery/{program}.py").read_text()
    shown = re.sub(r"# sphinx_gallery_start_ignore\n.*?# sphinx_gallery_end_ignore\n", "", text, flags=re.S)
    assert shown != text
    assert "_compared" not in shown and not re.search(r"\bpage\.\w+\(|\bGALLERY\b|\bPACKAGES\b", shown)
    compile(shown, program, "exec")
