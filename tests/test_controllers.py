"""The list of controllers: nobody else has one, and the documentation says the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from symdual.common.parts import PARTS, checked_parts
from symdual.controllers import CONTROLLERS, COSTS, EXPORTED, NAMES, OPTIONS, parts_for
from symdual.report.palette import LOOKS

ROOT = Path(__file__).parents[1]


def test_the_page_of_controllers_says_what_the_list_says() -> None:
    rows = re.findall(r"(?m)^\| `(\w+)` \| (.*?) \|", (ROOT / "docs/controllers.md").read_text())
    assert dict(rows) == {name: kind.help for name, kind in CONTROLLERS.items()}


def test_the_page_of_exported_controllers_names_them_all() -> None:
    text = (ROOT / "docs/export-c.md").read_text()
    assert f"which controller decides: {', '.join(f'`{kind.name}`' for kind in EXPORTED)}" in text


def test_entries_refer_to_what_there_is() -> None:
    for kind in CONTROLLERS.values():
        assert kind.cost == "dual" or kind.cost in COSTS
        assert not kind.without_effect or kind.without_effect in COSTS
        assert set(kind.options) <= set(OPTIONS)
    assert all(option.least <= option.default <= option.most for option in OPTIONS.values())
    assert {name for kind in CONTROLLERS.values() for name in kind.options} == set(OPTIONS)


def test_planned_thompson_and_rivals_need_parts() -> None:
    for name in ("planned", "thompson"):
        assert parts_for(name) == parts_for(["ce", name]) == {name} <= set(PARTS)
    for name in ("rollout", "scenario", "information", "dither"):
        assert parts_for(name) == {"rivals"} <= set(PARTS)
    assert parts_for(("oracle", "ce", "cautious", "beb", "dual", "exact")) == frozenset()
    assert checked_parts("rivals") == {"rivals", "planned"}


def test_no_two_look_alike() -> None:
    for part in ("colour", "marker"):
        assert len({str(getattr(look, part)) for look in LOOKS.values()}) == len(LOOKS), part


@pytest.mark.parametrize("folder", ["runtime", "export", "report", "commands"])
def test_nobody_else_lists_them(folder: str) -> None:
    """No tuple, set or dictionary of three names or more."""
    name = rf'"(?:{"|".join(NAMES)})"'
    several = re.compile(rf"{name}(?:: [^,\n]+)?,\s*{name}(?:: [^,\n]+)?,\s*{name}")
    found = [file.name for file in (ROOT / "symdual" / folder).rglob("*.py") if several.search(file.read_text())]
    assert not found
