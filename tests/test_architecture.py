"""What may import what, as docs/architecture.md says: rooms know those before them in the flow, and no others."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: for all rooms; they know only one another
COMMON = {"__version__", "choices", "errors", "numbers", "schedules", "shown", "whole_file"}
KNOWN: dict[str, set[str]] = {
    "spec": set(),
    "derive": {"spec"},
    "emit": {"derive", "spec"},
    "runtime": set(),
    "export": {"runtime", "emit"},
    **{room: set() for room in COMMON - {"__version__"}},
}
FOREIGN = {"spec": {"jinja2", "numba"}, "derive": {"jinja2", "numba"}, "runtime": {"sympy", "jinja2"}}


def imported(room: str) -> Iterator[tuple[str, str]]:
    """All that the modules of a room import, within functions and for types too: (place, name)."""
    place = ROOT / "symdual" / room
    for file in sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]:
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0 and node.module, f"{file} imports relatively"
                names = [f"symdual.{name}" for name in names] if node.module == "symdual" else [node.module]
            for name in names:
                yield f"{file.relative_to(ROOT)}:{node.lineno}", name


@pytest.mark.parametrize("room", sorted(KNOWN))
def test_a_room_knows_those_before_it_only(room: str) -> None:
    allowed = KNOWN[room] | COMMON | {room}
    parts = [(place, name.split(".")) for place, name in imported(room)]
    against = [
        f"{place} imports {'.'.join(name)}"
        for place, name in parts
        if name[0] == "symdual" and len(name) > 1 and name[1] not in allowed
    ]
    against += [f"{place} imports {name[0]}" for place, name in parts if name[0] in FOREIGN.get(room, ())]
    assert not against


@pytest.mark.parametrize("page", ["README.md", "docs/architecture.md"])
def test_the_map_names_every_room(page: str) -> None:
    text = (ROOT / page).read_text()
    rooms = {
        path.stem for path in (ROOT / "symdual").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert {room for room in rooms - {"__init__", "__main__"} if f"symdual/{room}`" not in text} == set()
