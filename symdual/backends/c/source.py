"""The text of the translated functions: what goes into the header, and what into the C file."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from symdual.backends.c import declared
from symdual.backends.c.helpers import struct_text
from symdual.backends.c.kinds import INT, Group, Pointer, Record
from symdual.backends.c.names import remark
from symdual.backends.c.program import Function, Program
from symdual.backends.c.translator import Translator
from symdual.backends.c.unit import Unit

_WIDTH = 116
_SHORT = 40  # lines of a function
_TOLD = """\
/* With -ffast-math and the like compilers may change the order of sums and products; in some functions it matters.
   clang is told so in the function, gcc by an attribute of the function, which is then not inlined, or from version 12
   on at every operation, which it forgets in loops. Short functions are inline, also those of the header, which other
   files call all the same: their prototypes are not inline (C99, 6.7.4). Helpers are merged into their callers by
   force: gcc would call them from functions with that attribute, and loops with calls are not vectorised. */
#if defined(__clang__)
#define @_SUMS_STAY _Pragma("clang fp reassociate(off)")
#else
#define @_SUMS_STAY
#endif
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#define @_KEEPS_ORDER __attribute__((optimize("no-associative-math")))
#define @_INLINED inline
#define @_MERGED inline __attribute__((always_inline))
#else
#define @_KEEPS_ORDER
#define @_INLINED
#define @_MERGED inline
#endif
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define @_KEPT(x) __builtin_assoc_barrier(x)
#define @_KEEPS_ORDER_INLINE inline
#else
#define @_KEPT(x) (x)
#define @_KEEPS_ORDER_INLINE @_KEEPS_ORDER
#endif"""


def translated(
    program: Program,
    place: str,
    prefix: str,
    real: str = "double",
    closed_loop: bool = False,
    further: Mapping[str, Mapping[str, Any]] | None = None,
    wanted: Callable[[Function], bool] = lambda function: True,
) -> Translator:
    """Translate all entries of a package, and the costs; with `closed_loop` also its plant and its episodes.

    `further` are modules with other entries and their arguments, declared as in `symdual.entries`; `wanted` leaves
    entries out.
    """
    work = Translator(program, place, prefix, real)
    if any(unit.needs_memory for unit in _costs(work, wanted)):
        work = Translator(program, place, prefix, real, pointers_need_memory=True)
        _costs(work, wanted)
    for function in filter(wanted, entries(program)):
        work.publish(function, declared.kinds_of(work, function))
    if closed_loop:
        for function in declared.closed_loop_functions(program):
            if function.module == "plant":
                work.handed_over.add(function)
            work.publish(function, declared.kinds_of(work, function))
    for module, arguments in (further or {}).items():
        for function in program.functions(module):
            work.publish(function, declared.kinds_of(work, function, arguments))
    _forget_unused(work)
    return work


def _forget_unused(work: Translator) -> None:
    """Leave out functions that nothing calls once types are known, and what only they needed."""
    wanted = [unit for unit in work.units if unit.public]
    for unit in wanted:
        wanted += [other for other in unit.calls if not any(other is known for known in wanted)]
    work.units = [unit for unit in work.units if any(unit is known for known in wanted)]
    mentioned = {word for unit in work.units for word in re.findall(r"\w+", unit.text)}
    for names in (work.tables, work.helpers, work.macros):
        for name in [name for name in names if name not in mentioned]:
            del names[name]


def entries(program: Program) -> Iterator[Function]:
    """The functions of a package that are exported."""
    for module in declared.MODULES:
        yield from entries_of(program, module)


def entries_of(program: Program, module: str) -> list[Function]:
    """Those of one module."""
    if module not in declared.MODULES or not program.has(module):
        return []
    return [f for f in program.functions(module) if f.options.entry and not f.name.startswith("_")]


def costs(program: Program) -> dict[str, Function]:
    """The costs that a decision can minimise, by name."""
    found = {kind: program.function(value) for kind, value in program.module("decision")._COSTS.items()}
    return {kind: function for kind, function in found.items() if function is not None}


def _costs(work: Translator, wanted: Callable[[Function], bool]) -> list[Unit]:
    kinds = declared.cost_pointer(work).arguments
    functions = [function for function in costs(work.program).values() if wanted(function)]
    work.handed_over |= set(functions)
    return [work.publish(function, kinds) for function in functions]


# ------------------------------------------------------------ header


def declarations(work: Translator) -> str:
    """Types, constants and prototypes."""
    spelling = work.spelling
    parts = [
        f"typedef {work.real} {spelling.real};",
        constants(work),
        *(_record(work, name) for name in work.records),
        *_structs(work),
        *work.results.values(),
        *(_prototype(work, unit) for unit in work.units if unit.public),
    ]
    return "\n\n".join(part for part in parts if part)


def constants(work: Translator) -> str:
    """The names of sizes, columns, statuses and tolerances."""
    upper = work.prefix.upper()
    lines = [
        f"#define {upper}_INFINITY (({work.spelling.real})INFINITY)",
        f"#define {upper}_NAN (({work.spelling.real})NAN)",
    ]
    return "\n".join([*lines, *(f"#define {name} {text}" for name, text in sorted(work.macros.items()))])


def _record(work: Translator, name: str) -> str:
    about, remarks = _remarks(work, name)
    lines = [f"/* {about} */"] if about else []
    lines.append("typedef struct {")
    for field, kind in work.records[name].items():
        text = f"  /* {remarks[field]} */" if remarks.get(field) else ""
        lines += [f"    {member};{text}" for member in work.spelling.member(kind, field)]
    return "\n".join([*lines, f"}} {work.spelling.name(Record(name))};"])


def _remarks(work: Translator, name: str) -> tuple[str, dict[str, str]]:
    """What the package says about a record and its fields."""
    text = work.program.text("records")
    found = re.search(rf"(?:^# ([^\n]*)\n)?^{name} = _record\(\n(.*?)^\)", text, re.M | re.S)
    if found is None:
        return "", {}
    fields = re.findall(r'^    \("(\w+)".*\),(?:  # (.*))?$', found[2], re.M)
    return remark(found[1] or ""), {field: remark(about) for field, about in fields}


def _structs(work: Translator) -> Iterator[str]:
    """Named tuples, the memory, and the type of a cost, each after those that it is made of."""
    spelling = work.spelling
    if work.memory:
        reals_first = sorted(work.memory.items(), key=lambda item: item[1].element == INT)
        lines = [f"    {member};" for name, kind in reals_first for member in spelling.member(kind, name)]
        head = ["/* arrays that functions keep while they run */", "typedef struct {"]
        yield "\n".join([*head, *lines, f"}} {work.prefix}_memory;"])
    for group in _ordered(list(work.groups)):
        for _, kind in group.fields:
            if isinstance(kind, Pointer) and kind.name != "cost":
                yield _typedef(work, kind, [f"a{n}" for n in range(len(kind.arguments))])
        yield struct_text(spelling, group)
        if group.name == "Workspace":
            yield "/* a cost of many first inputs */\n" + _typedef(
                work, declared.cost_pointer(work), declared.names_of_a_cost()
            )


def _typedef(work: Translator, pointer: Pointer, names: list[str]) -> str:
    spelling = work.spelling
    arguments = [a for n, k in zip(names, pointer.arguments, strict=True) for a in spelling.arguments(k, n)]
    if work.pointers_need_memory:
        arguments.append(f"{work.prefix}_memory *memory")
    result = spelling.name(pointer.result)
    return _wrapped(f"typedef {result} (*{spelling.name(pointer)})({', '.join(arguments)});")


def _ordered(groups: list[Group]) -> list[Group]:
    done: list[Group] = []

    def visit(group: Group) -> None:
        for _, kind in group.fields:
            if isinstance(kind, Group):
                visit(kind)
        if group not in done:
            done.append(group)

    workspace = [group for group in groups if group.name == "Workspace"]
    for group in [*workspace, *groups]:
        visit(group)
    return done


def _prototype(work: Translator, unit: Unit) -> str:
    return "\n".join([*_comment(unit.function), _wrapped(unit.signature.replace("@", unit.name), ";")])


def _comment(function: Function) -> list[str]:
    title = remark(function.title)
    if not title:
        return []
    lines = [line for part in title.split("\n") for line in textwrap.wrap(part.strip(), _WIDTH - 6) or [""]]
    return [f"/* {lines[0]}" + (" */" if len(lines) == 1 else ""), *(f"   {line}" for line in lines[1:-1])] + (
        [f"   {lines[-1]} */"] if len(lines) > 1 else []
    )


def _wrapped(text: str, end: str = "") -> str:
    """A signature in lines of a readable length."""
    if len(text) + len(end) <= _WIDTH:
        return text + end
    return "\n".join(
        textwrap.wrap(text + end, _WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    )


# ------------------------------------------------------------ C file


def definitions(work: Translator) -> str:
    """Tables, helpers and functions, callees first."""
    parts = [_told_to_compilers(work), "\n".join(work.tables.values()), *work.helpers.values()]
    parts += [_function(work, unit) for unit in work.units]
    return "\n\n".join(part for part in parts if part)


def _told_to_compilers(work: Translator) -> str:
    """How compilers are told that the order of operations matters somewhere, and what is worth inlining."""
    return _TOLD.replace("@", work.prefix.upper())


def _function(work: Translator, unit: Unit) -> str:
    comment = [] if unit.public else _comment(unit.function)
    signature = _wrapped(_hints(work, unit) + unit.signature.replace("@", unit.name))
    first = [f"    {work.prefix.upper()}_SUMS_STAY"] if unit.function.options.ordered else []
    return "\n".join([*comment, signature, "{", *first, *unit.body, "}"])


def _hints(work: Translator, unit: Unit) -> str:
    """What stands before the result: a call of a short function costs as much as what it does."""
    upper, linkage = work.prefix.upper(), "" if unit.public else "static "
    if unit.function.options.ordered:
        return f"{linkage}{upper}_KEEPS_ORDER{'_INLINE' if unit.function.kept else ''} "
    if len(unit.body) > _SHORT:
        return linkage
    return f"{upper}_INLINED " if unit.public else "static inline "


def spelled_cost(work: Translator, kind: str) -> str:
    """The name of a cost in C."""
    function = costs(work.program)[kind]
    return next(unit.name for unit in work.units if unit.function is function)
