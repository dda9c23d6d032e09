"""The types of arguments: what `symdual.entries` declares, with the sizes of a package, as types of translated code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

from symdual.backends.c.kinds import ANY, BOOL, INT, REAL, VOID, Array, Kind, Pointer, Record
from symdual.backends.c.names import snake
from symdual.backends.c.program import Function, Program
from symdual.backends.c.translator import Translator
from symdual.backends.c.values import Untranslatable
from symdual.entries.decisions import Cost, PlantModule
from symdual.entries.package import CLASSES, entry
from symdual.entries.types import ANY as ANY_LENGTH
from symdual.entries.types import LEFT_TO_PYTHON, Shape, declared, shape_of, target_of

#: modules whose entries are exported
MODULES = ("kernels", "filter", "calls", "decision")

_NUMBERS: Mapping[Any, Kind] = {int: INT, bool: BOOL, float: REAL, type(None): VOID}


def kinds_of(translator: Translator, function: Function, further: Mapping[str, Any] | None = None) -> tuple[Kind, ...]:
    """The types of the arguments of an entry; of a function that is none, `further` are its declared arguments."""
    declaration = entry(function.module, function.name)
    known = further or ({} if declaration is None else declared(declaration))
    for name in function.arguments:
        if name not in known:
            raise Untranslatable(
                f"{translator.place}/{function.file}:{function.tree.lineno}: symdual/entries does not declare the "
                f"argument {name} of {function.name}"
            )
    return tuple(_kind(translator, known[name]) for name in function.arguments)


def cost_pointer(translator: Translator) -> Pointer:
    """The type of the costs between which a decision is made."""
    return _pointer(translator, Cost)


def names_of_a_cost() -> list[str]:
    """The names of its arguments."""
    return list(declared(vars(Cost)["__call__"]))


def closed_loop_functions(program: Program) -> list[Function]:
    """Plant and episode, for the closed loop on a desktop computer."""
    plant = {function.name: function for function in program.functions("plant")}
    (episode,) = (function for function in program.functions("episode") if function.name == "episode")
    return [*(plant[name] for name in get_type_hints(PlantModule) if name in plant), episode]


def _kind(translator: Translator, kind: Any) -> Kind:
    if kind in _NUMBERS:
        return _NUMBERS[kind]
    shape, target = shape_of(kind), target_of(kind)
    if shape is not None:
        return _array(translator, shape)
    return _group(translator, kind) if target is None else _pointer(translator, target)


def _array(translator: Translator, shape: Shape) -> Kind:
    sizes = translator.program.sizes
    if not shape.sizes:
        return Record(shape.record)
    lengths = [
        ANY if size == ANY_LENGTH else length for size, length in zip(shape.sizes, shape.lengths(sizes), strict=True)
    ]
    if shape.padded:  # as in the records
        lengths[-1] = int(sizes["WIDTH"])
    return Array(Record(shape.record) if shape.record else REAL, tuple(lengths))


def _pointer(translator: Translator, target: type) -> Pointer:
    call = vars(target)["__call__"]
    arguments = tuple(_kind(translator, kind) for kind in declared(call).values())
    return Pointer(snake(target.__name__), arguments, _NUMBERS[get_type_hints(call)["return"]])


def _group(translator: Translator, declaration: type) -> Kind:
    """A named tuple, with those of its declared fields that the package has."""
    module, name = CLASSES[declaration]
    known = get_type_hints(declaration, include_extras=True)
    fields = []
    for field in getattr(translator.program.module(module), name)._fields:
        if field not in known:
            raise Untranslatable(
                f"{translator.place}/{translator.program.file(module)}: symdual/entries does not declare the field "
                f"{field} of {name}"
            )
        if LEFT_TO_PYTHON not in getattr(known[field], "__metadata__", ()):
            fields.append((field, _kind(translator, known[field])))
    return translator.group(name, fields)
