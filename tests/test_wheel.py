"""The wheel, unpacked in a read-only place, generates and checks: templates and the paper's models are inside."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The content of the wheel in a folder that may only be read."""
    pytest.importorskip("hatchling", reason="hatchling builds the wheel")
    target, folder = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = target.glob("symdual-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    everything = [folder, *folder.rglob("*")]
    for entry in everything:
        entry.chmod(entry.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    yield folder
    for entry in everything:
        if entry.is_dir():
            entry.chmod(entry.stat().st_mode | stat.S_IWUSR)


def run(site: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "NUMBA"))}
    environment |= {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )


def test_what_is_inside(site: Path) -> None:
    inside = {str(file.relative_to(site)) for file in site.rglob("*") if file.is_file()}
    templates = ROOT / "templates"
    for file in templates.rglob("*.jinja"):
        assert f"symdual/templates/{file.relative_to(templates)}" in inside
    for file in (ROOT / "symdual" / "paper" / "models").glob("*.py"):
        assert f"symdual/paper/models/{file.name}" in inside
    assert "symdual/py.typed" in inside
    assert not any(name.startswith(("tests", "examples", "benchmarks", "generated")) for name in inside)


def test_generate_and_check_from_there(site: Path, tmp_path: Path) -> None:
    before = {file: file.stat().st_mtime_ns for file in site.rglob("*")}
    where = run(site, tmp_path, "-c", "import symdual; print(symdual.__file__)").stdout.strip()
    assert Path(where) == site / "symdual" / "__init__.py"
    model = str(site / "symdual" / "paper" / "models" / "toy.py")
    checked = run(site, tmp_path, "-m", "symdual", "check", model, "--kernels", "--points", "2")
    assert "toy" in checked.stdout
    assert "MISS" not in checked.stdout
    assert [entry.name for entry in tmp_path.iterdir()] == ["generated"]
    assert [entry.name for entry in (tmp_path / "generated").iterdir()] == ["toy"]
    assert {file: file.stat().st_mtime_ns for file in site.rglob("*")} == before
