"""One function in C: the translation of a function of a package for given types of its arguments."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from symdual.backends.c.kinds import VOID, Array, Kind, Record, Scalar
from symdual.backends.c.layout import Line, declare, lines_of, printed
from symdual.backends.c.program import Function
from symdual.backends.c.statements import Statements

if TYPE_CHECKING:
    from symdual.backends.c.translator import Translator

_PATIENCE = 12  # rounds until types and unread variables do not change any more


@dataclass
class Unit:
    """A translated function.

    `written` are the arguments through which it writes, `needs_memory` says that it, or one that it calls, keeps arrays
    in the memory that is handed from function to function, `empty` that it does nothing.
    """

    function: Function
    kinds: tuple[Kind, ...]
    name: str = ""
    result: Kind = VOID
    written: frozenset[str] = frozenset()
    needs_memory: bool = False
    empty: bool = False
    public: bool = False
    signature: str = ""
    body: list[str] = field(default_factory=list)
    calls: list[Unit] = field(default_factory=list, repr=False)

    @property
    def text(self) -> str:
        """All but the name, which is the same for functions that do the same."""
        return "\n".join([self.signature, *self.body])


def translate(translator: Translator, function: Function, kinds: tuple[Kind, ...]) -> Unit:
    """Translate a function for these types of its arguments."""
    variables = dict(zip(function.arguments, kinds, strict=True))
    unread: set[str] = set()
    result: Kind = VOID
    for _ in range(_PATIENCE):
        work = Statements(translator, function, variables, unread, result)
        work.run()
        found = _unread(work)
        if work.settled and found <= unread:
            break
        variables, unread, result = work.kinds, unread | found, work.result
    else:
        raise work.fault(function.tree, f"the types in {function.name} do not settle")
    return _finished(translator, work, kinds)


def _read(work: Statements) -> set[str]:
    return {name for item in lines_of(work.body) for name in item.uses}


def _unread(work: Statements) -> set[str]:
    """Variables that are set and never read."""
    read = _read(work)
    targets = {item.target for item in lines_of(work.body) if isinstance(item, Line) and item.target}
    return {
        name
        for name, kind in work.kinds.items()
        if isinstance(kind, Scalar | Array | Record)
        and name not in work.parameters
        and work.spelled(name) in targets - read
    }


def _finished(translator: Translator, work: Statements, kinds: tuple[Kind, ...]) -> Unit:
    function, spelling = work.function, translator.spelling
    body = work.body
    if function in translator.handed_over:  # called through a pointer, whose type is the same for all
        work.written |= work.parameters
        work.needs_memory |= translator.pointers_need_memory
    if body and isinstance(body[-1], Line) and body[-1].text == "return;":
        body.pop()
    locals_ = {work.spelled(name): (name, kind) for name, kind in work.kinds.items() if name not in work.parameters}
    targets = [
        item.target for item in lines_of(body) if isinstance(item, Line) and item.target and item.target in locals_
    ]

    def declaration(code: str) -> str:
        name, kind = locals_[code]
        return spelling.declared(kind, code, name not in work.written)

    before = declare(body, list(dict.fromkeys(targets)))
    arguments: list[str] = []
    noalias = _do_not_alias(kinds)
    for name, kind in zip(function.arguments, kinds, strict=True):
        constant = isinstance(kind, Array | Record) and name not in work.written
        arguments += spelling.arguments(kind, work.spelled(name), constant, noalias)
    if work.needs_memory:
        arguments.append(f"{spelling.prefix}_memory *memory")
    lines = [f"    {spelling.declared(locals_[code][1], code)} = 0;" for code in before]
    mentioned = "\n".join(printed(body, declaration))
    words = set(re.findall(r"(?<![\w.>])[A-Za-z_]\w*", mentioned))
    unused = [one for one in arguments if _argument_name(one) not in words]
    lines += [f"    (void){_argument_name(one)};" for one in unused]
    lines += mentioned.split("\n") if mentioned else []
    result = spelling.name(work.result) if work.result == VOID else translator.result_name(work.result)
    return Unit(
        function,
        kinds,
        result=work.result,
        written=frozenset(work.written & work.parameters),
        needs_memory=work.needs_memory,
        empty=not body and work.result == VOID,
        signature=f"{result} @({', '.join(arguments) or 'void'})",
        body=lines,
        calls=work.calls,
    )


def _do_not_alias(kinds: tuple[Kind, ...]) -> bool:
    """Whether no two arguments can overlap: records of different types never do, but arrays are parts of records."""
    records = [kind for kind in kinds if isinstance(kind, Record)]
    plain = all(isinstance(kind, Record | Scalar) for kind in kinds)
    return plain and len(set(records)) == len(records) > 1


def _argument_name(declaration: str) -> str:
    if "(*" in declaration:
        return declaration.partition("(*")[2].partition(")")[0]
    return declaration.split()[-1].lstrip("*")
