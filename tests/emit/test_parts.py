"""A package has what is asked for: a base, and parts that are there whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from symdual.common.package_folders import modules_of
from symdual.common.parts import PARTS
from symdual.derive.derivation import derive
from symdual.emit.package import package
from symdual.spec.loading import load_model_file

from ..goldens import model_file

FOLDERS = {
    "planned": {"controllers", "slopes", "dual_planner"},
    "thompson": {"controllers"},
    "rivals": {"controllers", "slopes", "dual_planner"},
    "likelihood": {"likelihood"},
}


def files_of(name: str, *parts: str) -> Mapping[str, bytes]:
    return package(derive(load_model_file(model_file(name)).specifications[name]), parts=parts).files


def folders(files: Mapping[str, bytes]) -> set[str]:
    return {file.partition("/")[0] for file in files if "/" in file}


@pytest.mark.parametrize("name", ["toy", "pendulum", "narrow"])
def test_each_part_is_there_where_it_is_asked_for(name: str) -> None:
    base, whole = files_of(name), files_of(name, *PARTS)
    assert folders(whole) - folders(base) == set().union(*FOLDERS.values())
    for part, own in FOLDERS.items():
        assert folders(files_of(name, part)) - folders(base) == own


def test_a_base_is_small_and_does_not_speak_of_parts() -> None:
    files = files_of("toy")
    assert len(modules_of(files)) <= 23
    own = {name for place in set().union(*FOLDERS.values()) for name in modules_of_templates(place)}
    for file, text in files.items():
        if file.endswith(".py"):
            imported = [line for line in text.decode().splitlines() if line.lstrip().startswith("from .")]
            assert not [line for line in imported if own & set(line.replace(",", " ").replace(".", " ").split())], file


def modules_of_templates(folder: str) -> set[str]:
    place = Path(__file__).resolve().parents[2] / "templates" / folder
    return {file.name.partition(".")[0] for file in place.iterdir()} - {"__init__"} | {folder}


def test_no_two_folders_have_modules_of_one_name() -> None:
    files = files_of("narrow", *PARTS)
    own = [file for file in files if file.endswith(".py") and not file.endswith("__init__.py")]
    assert len(modules_of(files)) == len(own) > 40
