"""What others read of the project without running it: how to cite it, and what is run for each change."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import symdual

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(file: Path) -> Any:
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def supported() -> set[str]:
    """The Python versions that the project says it supports."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    return {
        line.rpartition(" ")[2] for line in listed if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", line)
    }


def test_the_citation_is_of_this_version() -> None:
    citation = read(ROOT / "CITATION.cff")
    assert citation["version"] == symdual.__version__
    assert f"## [{citation['version']}] - {citation['date-released']}" in (ROOT / "CHANGELOG.md").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_a_workflow_runs_what_the_makefile_has(file: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    steps = [step.get("run", "") for job in read(file)["jobs"].values() for step in job["steps"]]
    asked = {target for step in steps for target in re.findall(r"^make ([\w-]+)", step, re.MULTILINE)}
    assert asked <= targets
    assert asked or "build" in "".join(steps)


def test_all_supported_versions_are_tested() -> None:
    jobs = read(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]
    assert set(jobs["newest"]["strategy"]["matrix"]["python"]) == supported()
