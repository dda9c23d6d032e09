"""What may import what, as docs/architecture.md says: rooms know those before them in the flow, and no others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: for all rooms
COMMON = {"__version__", "common", "controllers", "integrators"}
KNOWN: dict[str, set[str]] = {
    "spec": set(),
    "derive": {"spec"},
    "entries": set(),
    "emit": {"derive", "spec", "entries"},
    "runtime": {"entries"},
    "backends": {"runtime", "entries"},
    "export": {"runtime", "emit", "entries", "backends"},
    "common": set(),
    "many_digits": {"spec"},
    "generation": {"spec", "derive", "emit", "runtime"},
    "checks": {
        *("spec", "derive", "emit", "entries", "runtime", "backends", "export", "generation"),
        *("many_digits", "identification"),
    },
    "api": {"spec", "emit", "runtime", "backends", "generation", "checks"},
    "environments": {"api", "runtime"},
}
FOREIGN = {
    "entries": {"sympy", "jinja2", "numba"},
    "spec": {"jinja2", "numba"},
    "derive": {"jinja2", "numba"},
    "runtime": {"sympy", "jinja2"},
}


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


#: what once had two meanings, and where its only definition is
ONCE = {
    "Array": "common/arrays.py",
    "Fit": "identification/result.py",
    "Recording": "runtime/replay.py",
    "Certainty": "identification/standard_errors.py",
    "certainty": "identification/standard_errors.py",
}


@pytest.mark.parametrize("name", sorted(ONCE))
def test_one_definition_of_each(name: str) -> None:
    """Of an alias, a class or a function of a module; the translator to C has its own kind of array."""
    found = set()
    for file in (ROOT / "symdual").rglob("*.py"):
        for node in ast.parse(file.read_text()).body:
            targets = node.targets if isinstance(node, ast.Assign) else [node]
            if any(name in (getattr(target, "name", ""), getattr(target, "id", "")) for target in targets):
                found.add(file.relative_to(ROOT / "symdual").as_posix())
    assert found - {"backends/c/kinds.py"} == {ONCE[name]}


#: how a page, a table of the terminal or a colour would be made, and who alone does it
MAKERS = {
    "a page": (r"<!doctype", {"report/html.py"}),
    "a table": (r"(?s)from rich\.table import.*= (Table|Grid)(\.grid)?\(", {"report/grid.py"}),
    "a colour": (r"#[0-9a-fA-F]{6}\b", {"report/palette.py", "controllers.py"}),
}


@pytest.mark.parametrize("what", sorted(MAKERS))
def test_report_has_the_only_maker_of(what: str) -> None:
    """Colours in style sheets are variables; on paper ink is black."""
    pattern, allowed = MAKERS[what]
    files = [f for kind in ("py", "css", "js", "j2") for f in (ROOT / "symdual").rglob(f"*.{kind}")]
    made = [file for file in files if re.search(pattern, file.read_text().partition("@media print")[0])]
    assert {file.relative_to(ROOT / "symdual").as_posix() for file in made} == allowed


def test_identification_does_not_know_its_checks() -> None:
    """They know its filter: what both need of many digits has a room of its own."""
    assert not [place for place, name in imported("identification") if name.startswith("symdual.checks")]


def test_the_likelihoods_do_not_know_each_other() -> None:
    """But for the filter that predicts with features in place of processes."""
    shared = {"symdual.identification.parameters.prior_model"}
    for one, other in (("parameters", "processes"), ("processes", "parameters")):
        names = {name for _, name in imported(f"identification/{one}")}
        assert {name for name in names if name.startswith(f"symdual.identification.{other}")} <= shared


def test_the_map_names_every_room() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    rooms = {
        path.stem for path in (ROOT / "symdual").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert {room for room in rooms - {"__init__", "__main__"} if f"symdual/{room}`" not in text} == set()
