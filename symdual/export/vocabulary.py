"""What the arguments of entries are: kernels say it in their docstrings, the recursions have a small vocabulary."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from symdual.export.kinds import ANY, BOOL, INT, REAL, VOID, Array, Kind, Pointer, Record
from symdual.export.names import snake
from symdual.export.program import Function, Layout, Members, Program
from symdual.export.translator import Translator
from symdual.export.values import Untranslatable

#: modules whose entries are exported
MODULES = ("kernels", "filter", "filter_covariance", "calls", "decision")

#: arguments of entries by name: a number, or an array with names of sizes (: is a length that is known at run time)
_ARGUMENTS = {
    "k": "int",
    "end": "int",
    "buffer": "int",
    "order": "int",
    "cost": "real",
    "limit": "int",
    "tolerance": "real",
    "searching": "bool",
    "floor": "real[NU]",
    "fixed": "int",
    "belief": "GAUSSIAN[1]",
    "point": "POINT[1]",
    "u": "real[NU]",
    "y": "real[NY]",
    "stats": "real[3]",
    "first_input": "real[NU]",
    "inputs": "real[:,NU]",
    "states": "real[:,NX]",
    "candidates": "real[:,NU]",
    "out": "real[:,OUT]",
}


def kinds_of(translator: Translator, function: Function, meanings: Mapping[str, str] | None = None) -> tuple[Kind, ...]:
    """The types of the arguments of an entry; `meanings` go before the vocabulary."""
    if function.module == "kernels":
        return _kernel_kinds(translator, function)
    own = meanings or {}
    return tuple(
        parsed(translator, own[name]) if name in own else _kind(translator, function, name)
        for name in function.arguments
    )


def _kind(translator: Translator, function: Function, name: str) -> Kind:
    program = translator.program
    if name == "workspace":
        return group_of(translator, program.module("records").WORKSPACE)
    if name == "table":
        return instance_group(translator, program.module("candidates").table())
    if name == "filter_workspace":
        records = program.module("records")
        return instance_group(translator, program.module("filter").make_filter_workspace(np.zeros(1, records.SETTINGS)))
    if name == "address":
        return cost_pointer(translator)
    if name not in _ARGUMENTS:
        raise Untranslatable(
            f"{translator.place}/{function.file}:{function.tree.lineno}: the translator does not know what the "
            f"argument {name} of {function.name} is"
        )
    return parsed(translator, _ARGUMENTS[name])


def parsed(translator: Translator, text: str) -> Kind:
    """A type from its description."""
    element, _, sizes = text.partition("[")
    scalar: Any = {"int": INT, "bool": BOOL, "real": REAL}.get(element, Record(element))
    if not sizes:
        return scalar  # type: ignore[no-any-return]
    return Array(scalar, tuple(_size(translator, part) for part in sizes.rstrip("]").split(",")))


def _size(translator: Translator, part: str) -> int | None:
    if part == ":":
        return None
    if part == "~":
        return ANY
    if "+" in part:
        return sum(_size(translator, term.strip()) or 0 for term in part.split("+"))
    if part.isdigit():
        return int(part)
    module = {"OUT": "dual_cost", "STATS": "episode"}.get(part, "records")
    return int(getattr(translator.program.module(module), part))


def cost_pointer(translator: Translator) -> Pointer:
    """The type of the costs between which a decision is made."""
    names = ("k", "end", "belief", "workspace", "candidates", "out")
    first = next(iter(translator.program.functions("decision")))
    return Pointer("cost", tuple(_kind(translator, first, name) for name in names), INT)


def group_of(translator: Translator, members: Members) -> Kind:
    """A named tuple whose type numba was told: arrays of records, of any length."""
    fields: list[tuple[str, Kind]] = []
    for name, layout in zip(members.kind._fields, members.fields, strict=True):  # type: ignore[attr-defined]
        record = translator.record_name(layout.element) if isinstance(layout, Layout) else None
        if record is None:
            raise Untranslatable(f"{translator.place}/records.py: the translator does not know the field {name}")
        fields.append((name, Array(Record(record), (None,) * layout.dimensions)))
    return translator.group(members.kind.__name__.rpartition(".")[2], fields)


def instance_group(translator: Translator, instance: Any) -> Kind:
    """A named tuple of arrays like those of an instance."""
    fields: list[tuple[str, Kind]] = []
    for name, array in zip(instance._fields, instance, strict=True):
        record = translator.record_name(array.dtype) if array.dtype.names else None
        fields.append((name, Array(REAL if record is None else Record(record), array.shape)))
    return translator.group(type(instance).__name__, fields)


# ------------------------------------------------------------ kernels


def _kernel_kinds(translator: Translator, function: Function) -> tuple[Kind, ...]:
    shapes = _shapes(translator, function)
    width = int(translator.program.module("records").WIDTH)
    kinds: list[Kind] = []
    for name in function.arguments:
        if name == "time_index":
            kinds.append(INT)
        elif name in shapes:
            shape = shapes[name]
            # rows of f_theta and h_theta have whole vectors in the records
            kinds.append(Array(REAL, (*shape[:-1], width) if name in ("f_theta_out", "h_theta_out") else shape))
        else:
            raise Untranslatable(
                f"{translator.place}/{function.file}:{function.tree.lineno}: the docstring of {function.name} does not "
                f"say what shape the argument {name} has"
            )
    return tuple(kinds)


def _shapes(translator: Translator, function: Function) -> dict[str, tuple[int, ...]]:
    text = re.search(r"Shapes: (.*?)\.\n", (ast.get_docstring(function.tree) or "") + "\n", re.S)
    if text is None:
        return {}
    other = re.match(r"as in (\w+)", text[1])
    found: dict[str, tuple[int, ...]] = {}
    if other is not None:
        named = {one.name: one for one in translator.program.functions("kernels")}
        found = _shapes(translator, named[other[1]])
    own = vars(translator.program.module("kernels"))
    for name, sizes in re.findall(r"(\w+) \(([\w+ ,]+)\)", text[1]):
        terms = [part.replace(" ", "").split("+") for part in sizes.split(",") if part.strip()]
        found[name] = tuple(sum(int(n) if n.isdigit() else int(own[n]) for n in part) for part in terms)
    return found


# ------------------------------------------------------------ closed loop

_ANY = "real[~]"  # as long as the plant wants it
_PLANT = {
    "move": ("int", *(_ANY,) * 5),
    "measure": ("int", *(_ANY,) * 4),
    "process_noise_at": ("int", *(_ANY,) * 4, "real[NX,NX]"),
    "measurement_noise_at": ("int", *(_ANY,) * 3, "real[NY,NY]"),
}
_NOISE = {"state_dependent_noise": "bool", "Q": "real[2,NX,NX]", "R": "real[2,NY,NY]"}
_EPISODE = {
    "Controls": {
        "cost": "",
        "searching": "bool",
        "floors": "real[:,NU]",
        "window": "int",
        "informed": "bool",
    },
    "NoiseDraws": {
        "truths": "real[:,:]",
        "process": "real[:,:,NX]",
        "measurement": "real[:,:,NY]",
        "wander": "real[:,:,:]",
        "seeds": "real[:]",
    },
    "ThreadWorkspace": {
        "belief": "",
        "workspace": "",
        "table": "",
        "truth": _ANY,
        "plant_work": _ANY,
        "x": "real[NX]",
        "y": "real[NY]",
        "u": "real[NU]",
        "stats": "real[3]",
    },
    "EpisodeLog": {
        "states": "real[:,:,NX]",
        "inputs": "real[:,:,NU]",
        "means": "real[:,:,NZ]",
        "variances": "real[:,:,NZ]",
        "steps": "real[:,:,STATS]",
        "finals": "GAUSSIAN[:]",
        "constraints": "real[:,:,NC]",  # where there are constraints
    },
}


def closed_loop_functions(program: Program) -> list[Function]:
    """Plant and episode, for the closed loop on a desktop computer."""
    plant = {function.name: function for function in program.functions("plant")}
    (episode,) = (function for function in program.functions("episode") if function.name == "episode")
    return [*(plant[name] for name in _PLANT if name in plant), episode]


def closed_loop_kinds(translator: Translator, function: Function) -> tuple[Kind, ...]:
    """The types of the arguments of a plant's function, or of an episode."""
    if function.module == "plant":
        translator.handed_over.add(function)
        return _plant_kinds(translator, function.name)
    return tuple(_episode_kind(translator, function, name) for name in function.arguments)


def _plant_kinds(translator: Translator, name: str) -> tuple[Kind, ...]:
    return tuple(parsed(translator, text) for text in _PLANT[name])


def _part_kind(translator: Translator, function: Function, name: str) -> Kind:
    return cost_pointer(translator) if name == "cost" else _kind(translator, function, name)


def _plant_field(translator: Translator, name: str) -> Kind:
    if name in _PLANT:
        return Pointer(f"plant_{name}", _plant_kinds(translator, name), VOID)
    known = {"data": _ANY, "signals": "real[:,:]", "place": "int", **_NOISE}
    return parsed(translator, known[name])


def _episode_kind(translator: Translator, function: Function, name: str) -> Kind:
    if name in ("n", "horizon"):
        return INT
    if name == "plant":
        fields = translator.program.module("episode").Plant._fields
        return translator.group("Plant", [(field, _plant_field(translator, field)) for field in fields])
    group = {snake(title): title for title in _EPISODE}.get(name)
    if group is not None:
        own = getattr(translator.program.module("episode"), group)._fields
        fields = [(f, text) for f, text in _EPISODE[group].items() if f in own]
        return translator.group(
            group,
            [(f, parsed(translator, text) if text else _part_kind(translator, function, f)) for f, text in fields],
        )
    return _kind(translator, function, name)
