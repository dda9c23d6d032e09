"""Declared types as numba is told them, where it cannot find them: of function pointers and of a workspace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, get_type_hints

from symdual.emit.record import Record
from symdual.entries.recursions import Workspace
from symdual.entries.types import declared, shape_of

_NUMBERS = {int: "int64", bool: "boolean", float: "float64", type(None): "void"}


class WorkspaceField(NamedTuple):
    """A field of the workspace of a decision, with its type."""

    name: str
    array: str


def signature(function: type, before: str = "") -> str:
    """The type of the functions that a pointer leads to; `before` stands before numba's own names."""
    call = vars(function)["__call__"]
    arguments = ", ".join(_text(kind, before) for kind in declared(call).values())
    return f"{_text(get_type_hints(call)['return'], before)}({arguments})"


def workspace_fields(records: Iterable[Record]) -> tuple[WorkspaceField, ...]:
    """The fields whose records a package has."""
    there = {record.name for record in records}
    kinds = get_type_hints(Workspace, include_extras=True)
    shapes = {name: shape for name, kind in kinds.items() if (shape := shape_of(kind)) and shape.record in there}
    return tuple(WorkspaceField(name, _text(kinds[name], "types.")) for name in shapes)


def _text(kind: Any, before: str) -> str:
    if kind in _NUMBERS:
        return before + _NUMBERS[kind]
    if kind is Workspace:
        return "WORKSPACE"
    shape = shape_of(kind)
    assert shape is not None, f"numba is told nothing of {kind}"
    dimensions = len(shape.sizes)
    if shape.record:
        return f"array_of({shape.record}{f', {dimensions}' if dimensions > 1 else ''})"
    return f"{before}float64[{', '.join([*':' * (dimensions - 1), '::1'])}]"
