"""generated/ is what the generator writes, byte for byte; `make generated` writes it again."""

from __future__ import annotations

from pathlib import Path

import pytest

import symdual

ROOT = Path(__file__).resolve().parent.parent
COMMITTED = ROOT / "generated"
MODEL_FILES = sorted(
    file
    for folder in (ROOT / "symdual" / "paper" / "models", ROOT / "examples")
    for file in folder.glob("*.py")
    if not file.name.startswith("_")
)


def packages(folder: Path) -> dict[str, dict[str, bytes]]:
    """The files of each package; what Python and numba keep beside them is no part of it."""
    return {
        package.name: {
            str(file.relative_to(package)): file.read_bytes()
            for file in sorted(package.rglob("*"))
            if file.is_file() and "__pycache__" not in file.parts
        }
        for package in sorted(folder.iterdir())
        if package.is_dir()
    }


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    folder = tmp_path_factory.mktemp("fresh")
    for file in MODEL_FILES:
        symdual.generate(file, folder)
    return packages(folder)


def test_the_papers_models_and_the_examples_are_there() -> None:
    names = {file.stem for file in MODEL_FILES}
    assert names >= {"toy", "schedule", "relevance", "drift", "pendulum", "vehicle", "greenhouse"}


def test_every_package_is_committed_and_no_other(fresh: dict[str, dict[str, bytes]]) -> None:
    assert sorted(packages(COMMITTED)) == sorted(fresh), "run `make generated`"
    strays = [entry.name for entry in COMMITTED.iterdir() if not entry.is_dir()]
    assert strays == []


def test_committed_files_equal_a_fresh_run(fresh: dict[str, dict[str, bytes]]) -> None:
    committed = packages(COMMITTED)
    for name, files in fresh.items():
        assert sorted(committed[name]) == sorted(files), f"{name}: run `make generated`"
        for file, content in files.items():
            assert committed[name][file] == content, f"{name}/{file}: run `make generated`"
