"""Leaves out the functions of a rendered package that nobody calls: which are called depends on the model.

Whoever calls from Python calls an entry, and what stands outside of functions hands others over. An inner function, one
that compiled code alone can call (`options.INNER` and what is made of it) or that is private to its module by name, is
of use only if one of these leads to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from symdual.emit.imports import GAP, IMPORTS, names_in, parts_of

_INNER = re.compile(
    r"(?:#.*\n)*@njit\((?:\*\*(?:INNER|INNER_ALLOCATING|APART|ORDERED)\b.*\ndef (?=\w)|.*\ndef (?=_))(\w+)\("
)
_TEXT = re.compile(r'"""[\s\S]*?"""|"[^"\n]*"|#[^\n]*')
_MEMBER = re.compile(r"(?<![\w.])(\w+)\.(\w+)")

_Place = tuple[str, str]  # module, function


class _Module(NamedTuple):
    """A module: its parts, the inner functions among them by name, and what its names mean that others define."""

    parts: tuple[str, ...]
    inner: Mapping[str, str]
    imported: Mapping[str, _Place]
    others: frozenset[str]


def without_unreached(sources: Mapping[str, str]) -> dict[str, str]:
    """Return the modules of a package, by name, without inner functions that nothing else in it leads to."""
    modules = {name: _module(source) for name, source in sources.items()}
    reached: set[_Place] = set()
    waiting = [place for name, module in modules.items() for place in _first(name, module)]
    while waiting:
        name, function = place = waiting.pop()
        if place not in reached and name in modules and function in modules[name].inner:
            reached.add(place)
            waiting += _meant(name, modules[name], modules[name].inner[function])
    return {name: _kept(module, {f for of, f in reached if of == name}) for name, module in modules.items()}


def _module(source: str) -> _Module:
    parts = tuple(parts_of(source))
    imported, others = dict[str, _Place](), set[str]()
    for statement in IMPORTS.finditer(source):
        if not statement[1].startswith("from ."):
            continue
        origin = statement[1].split()[1].removeprefix(".")
        for alias in re.split(r",\s*", statement[2].strip("()\n, ")):
            own, _, other = alias.partition(" as ")
            if origin:
                imported[other or own] = origin, own
            else:
                others.add(own)
    inner = {found[1]: part for part in parts if (found := _INNER.match(part))}
    return _Module(parts, inner, imported, frozenset(others))


def _first(name: str, module: _Module) -> Iterator[_Place]:
    """What is reached from entries and from outside of functions."""
    for part in module.parts:
        if not _INNER.match(part):
            yield from _meant(name, module, IMPORTS.sub("", part))


def _meant(name: str, module: _Module, part: str) -> Iterator[_Place]:
    """The functions that the names in a part may stand for."""
    for word in set(names_in(part)):
        if word in module.inner:
            yield name, word
        elif word in module.imported:
            yield module.imported[word]
    if module.others:
        yield from (found for found in _MEMBER.findall(_TEXT.sub("", part)) if found[0] in module.others)


def _kept(module: _Module, reached: set[str]) -> str:
    """A module without those of its inner functions that are not reached."""
    idle = {part for function, part in module.inner.items() if function not in reached}
    return GAP.join(part for part in module.parts if part not in idle)
