"""Every function of a package is used: inner ones by others of it, all others by these or by symdual."""

from __future__ import annotations

import ast
import dis
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType
from typing import NamedTuple

import pytest

from ..goldens import ROOT, body

#: Python asks for the first by itself; those of a process carry its name, which fits put together
ASKED = {"__getattr__", "kernel_g", "slopes_g"}
INNER = {"INNER", "INNER_ALLOCATING", "NOALIAS", "ORDERED"}


class Uses(NamedTuple):
    """The names that each function of a package uses, those used outside of functions, and which are inner ones."""

    functions: dict[str, set[str]]
    outside: set[str]
    inner: set[str]


def _within(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _within(constant)


def uses(sources: Iterable[str]) -> Uses:
    """Who uses whom, by name: imported names and a function's own do not count."""
    functions, outside, inner, other = defaultdict[str, set[str]](set), set[str](), set[str](), set[str]()
    for source in sources:
        own = _uses_of(source)
        outside |= own.outside
        inner |= own.inner
        other |= own.functions.keys() - own.inner
        for name, used in own.functions.items():
            functions[name] |= used
    return Uses(functions, outside, inner - other)


@cache
def _uses_of(source: str) -> Uses:
    tree = ast.parse(source)
    code = compile(tree, "module", "exec", dont_inherit=True)
    functions = defaultdict[str, set[str]](set)
    outside = {one.argval for one in dis.get_instructions(code) if one.opname == "LOAD_NAME"}
    aliases = {alias.asname: alias.name for alias in ast.walk(tree) if isinstance(alias, ast.alias)}
    for one in (one for one in code.co_consts if isinstance(one, CodeType) and one.co_name[0] != "<"):
        names = {name for part in _within(one) for name in part.co_names}
        functions[one.co_name] |= {aliases.get(name, name) for name in names} - {one.co_name}
    decorated = {
        one.name: {part.id for mark in one.decorator_list for part in ast.walk(mark) if isinstance(part, ast.Name)}
        for one in tree.body
        if isinstance(one, ast.FunctionDef)
    }
    return Uses(functions, outside, {name for name, words in decorated.items() if words & INNER})


def unreached(package: Uses) -> set[str]:
    """The inner functions that neither other functions nor tables lead to."""
    reached = set[str]()
    waiting = [*package.outside, *(name for name in package.functions if name not in package.inner)]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += package.functions.get(name, ())
    return package.inner - reached


@pytest.fixture(scope="module")
def used(every_package: list[Path]) -> dict[str, Uses]:
    """Who uses whom in each package of the project."""
    return {folder.name: uses(body(file, folder.name) for file in folder.rglob("*.py")) for folder in every_package}


def test_every_function_of_a_package_is_used(used: dict[str, Uses]) -> None:
    for name, package in used.items():
        assert len(package.inner) > 100
        assert unreached(package) == set(), name


def test_every_entry_is_used_in_some_package_or_by_symdual(used: dict[str, Uses]) -> None:
    text = "\n".join(file.read_text() for file in (ROOT / "symdual").rglob("*.py"))
    needed: dict[str, bool] = defaultdict(bool)
    for package in used.values():
        names = package.outside.union(*package.functions.values())
        for name in set(package.functions) - package.inner:
            needed[name] |= name in names
    idle = {name for name, use in needed.items() if not use and f".{name}" not in text and f'"{name}"' not in text}
    assert idle <= ASKED


FAR = '''"""Some functions; `idle` is mentioned."""

from .options import NOALIAS, INNER


@njit(**INNER)
def shared(x):
    """Called as something else."""
    return deep(x)


@njit(**NOALIAS, forceinline=True)
def deep(
    x,
):
    return x


# why this one is there
@njit(**INNER)
def idle(x):
    """As `idle(x)` does."""
    return idle(x) + only_of_idle(x)


@njit(**INNER)
def only_of_idle(x):
    return x


@njit(**INNER)
def in_table(x):
    return x


TABLE = {"in_table": in_table}


@njit(**INNER)
def member(x):
    return x


@njit(**INNER)
def outer(x):
    return x
'''
NEAR = '''"""An entry."""

from . import far
from .far import idle, shared as known


@njit(**ENTRY)
def entry(x):
    """Not `idle`, nor far.outer."""
    return known(x) + far.member(x)


def outer(x):
    return x
'''


def test_what_is_unused_is_found() -> None:
    found = uses([FAR, NEAR])
    assert unreached(found) == {"idle", "only_of_idle"}  # by name alone: there is another `outer`
    assert "shared" in found.functions["entry"]
    assert unreached(uses([FAR])) == {"shared", "deep", "idle", "only_of_idle", "member", "outer"}
