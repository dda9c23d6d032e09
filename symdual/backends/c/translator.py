"""From the entries of a package to all functions that they need, each once for each set of types, callees first."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from symdual.backends.c import helpers
from symdual.backends.c.expressions import Expressions
from symdual.backends.c.kinds import REAL, Array, Group, Kind, Several, Spelling
from symdual.backends.c.program import Function, Program
from symdual.backends.c.unit import Unit, translate
from symdual.backends.c.values import PRIMARY, Numbers, Untranslatable, Value
from symdual.controllers import EXPORTED

#: macros of an exported controller itself; a constant of the same name has that of its module before it
TAKEN = frozenset(
    """
    IS_INCLUDED INLINED MERGED KEEPS_ORDER KEEPS_ORDER_INLINE KEPT SUMS_STAY INFINITY NAN PLAN_STEPS COST_TIMES
    CONTROLLER_BYTES FINE LIMITED STUCK ENDED INFINITE_MEASUREMENT LOST_BELIEF LOST_PLAN
    NOT_READY REFUSED NO_SIGNAL DOUBT_MEASUREMENT DOUBT_PRIOR DOUBT_LIMIT DOUBT_SEARCH
    """.split()
) | {kind.name.upper() for kind in EXPORTED}


@dataclass
class Translator:
    """What functions share: names, constants, tables, helpers, structs; and the functions that are done."""

    program: Program
    place: str
    prefix: str
    real: str
    records: dict[str, dict[str, Kind]] = field(init=False)
    units: list[Unit] = field(init=False, default_factory=list)
    macros: dict[str, str] = field(init=False, default_factory=dict)
    tables: dict[str, str] = field(init=False, default_factory=dict)
    helpers: dict[str, str] = field(init=False, default_factory=dict)
    groups: dict[Group, str] = field(init=False, default_factory=dict)
    results: dict[Several, str] = field(init=False, default_factory=dict)
    memory: dict[str, Array] = field(init=False, default_factory=dict)
    pointers_need_memory: bool = False
    handed_over: set[Function] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        """Read the records of the package."""
        self.spelling = Spelling(self.prefix)
        self.numbers = Numbers(self.real, self.spelling)
        self._done: dict[tuple[int, tuple[Kind, ...]], Unit] = {}
        self._running: list[Function] = []
        module = self.program.module("records")
        self._types = {name: value for name, value in vars(module).items() if isinstance(value, np.dtype)}
        self.records = {name: self._fields(kind) for name, kind in self._types.items()}
        self._ambiguous = self._several_meanings()

    def _fields(self, kind: np.dtype[Any]) -> dict[str, Kind]:
        found: dict[str, Kind] = {}
        assert kind.fields is not None and kind.names is not None
        for name in kind.names:
            own = kind.fields[name][0]
            found[name] = Array(REAL, own.shape) if own.shape else REAL
        return found

    def record_name(self, kind: Any) -> str | None:
        """The name of a type of records."""
        return next((name for name, own in self._types.items() if own == kind), None)

    def _several_meanings(self) -> set[str]:
        """Constants that have one name and several values in different modules, or a name that is taken."""
        values: dict[str, set[float]] = {}
        for module in self.program.names:
            for name, value in vars(self.program.module(module)).items():
                if name.isupper() and isinstance(value, int | float | np.number):
                    values.setdefault(name, set()).add(float(value))
        return {name for name, found in values.items() if len(found) > 1} | TAKEN

    # ------------------------------------------------------------ functions

    def unit(
        self,
        function: Function,
        kinds: tuple[Kind, ...],
        node: ast.AST | None = None,
        caller: Expressions | None = None,
    ) -> Unit:
        """The translation of a function for these types of its arguments."""
        key = (id(function), kinds)
        if key in self._done:
            return self._done[key]
        if len(kinds) != len(function.arguments):
            problem = f"{function.name} takes {len(function.arguments)} arguments, not {len(kinds)}"
            raise caller.fault(node, problem) if caller and node else Untranslatable(problem)
        if function in self._running:
            raise Untranslatable(f"{self.place}/{function.file}:{function.tree.lineno}: {function.name} calls itself")
        self._running.append(function)
        found = self._shortcut(function, kinds) or translate(self, function, kinds)
        self._running.pop()
        found = self._named(found)
        self._done[key] = found
        return found

    def publish(self, function: Function, kinds: tuple[Kind, ...]) -> Unit:
        """Translate a function that others may call, even if it does nothing."""
        found = self.unit(function, kinds)
        if found.empty and not any(found is unit for unit in self.units):
            self.units.append(found)
        found.public = True
        return found

    def _named(self, unit: Unit) -> Unit:
        """The same function under a name; one that does the same for other types is taken instead."""
        twins = [other for other in self.units if other.function is unit.function]
        for twin in twins:
            if twin.text == unit.text:
                return twin
        base = f"{self.prefix}_{unit.function.module}_{unit.function.name.strip('_')}"
        unit.name = base if not twins else f"{base}_{len(twins) + 1}"
        if not unit.empty:
            self.units.append(unit)
        return unit

    def _shortcut(self, function: Function, kinds: tuple[Kind, ...]) -> Unit | None:
        """Sine, cosine and exponential in single precision: the polynomials are made for double."""
        if not self.numbers.single or function.module != "kernels":
            return None
        if function.name == "_sincos":
            return helpers.wave_function(self.spelling, function, self.several(Several((REAL, REAL))))
        found = re.fullmatch(r"_(sincos|exp)_(\d+)", function.name)
        if found is None:
            return None
        return helpers.block_function(self.spelling, function, kinds, found[1], int(found[2]))

    # ------------------------------------------------------------ what functions ask for

    def macro(self, module: str, name: str, value: float) -> str:
        """The name of a constant."""
        owner = self._owner(module, name)
        upper = self.prefix.upper()
        full = f"{upper}_{owner.upper()}_{name}" if name in self._ambiguous else f"{upper}_{name}"
        full = re.sub(r"_{2,}", "_", full)
        text = str(value) if isinstance(value, int) else self.numbers.real(value).code
        self.macros[full] = f"({text})" if text.startswith("-") else text
        return full

    def _owner(self, module: str, name: str) -> str:
        """The module in which a constant is defined."""
        while True:
            source = self.program.imported_from(module, name)
            if source is None:
                return module
            module = source

    def table(self, module: str, text: str, array: Any) -> str:
        """The name of a table of known numbers."""
        label = text if text.isidentifier() else "choice"
        sizes = "".join(f"[{length}]" for length in array.shape)
        kind = "int" if array.dtype.kind == "i" else self.spelling.real
        numbers = _braces(array, lambda n: str(int(n)) if kind == "int" else self.numbers.real(float(n)).code)
        owner = self._owner(module, label) if text.isidentifier() else module
        for number in range(1, 1000):
            name = f"{self.prefix}_{owner}_{label.lower()}" + (f"_{number}" if number > 1 else "")
            text_ = f"static const {kind} {name}{sizes} = {numbers};"
            if self.tables.setdefault(name, text_) == text_:
                return name
        raise AssertionError

    def helper(self, name: str) -> str:
        """The name of a helper function, which is written where it is used."""
        full = f"{self.prefix}_{name}"
        self.helpers[full] = helpers.text(name, full, self.spelling, f"{self.prefix.upper()}_MERGED")
        return full

    def kept(self, value: Value) -> Value:
        """The same value, which compilers must not take apart to reorder sums or products."""
        return replace(value, code=f"{self.prefix.upper()}_KEPT({value.code})", level=PRIMARY)

    def library(self, name: str) -> str:
        """The name of a function of math.h."""
        return f"{name}f" if self.numbers.single else name

    def group(self, name: str, fields: Iterable[tuple[str, Kind]]) -> Group:
        """The type of a named tuple."""
        wanted = tuple(fields)
        same = [group for group in self.groups if group.name.rstrip("0123456789_") == name]
        for group in same:
            if group.fields == wanted:
                return group
        group = Group(name if not same else f"{name}_{len(same) + 1}", wanted)
        self.groups[group] = helpers.struct_text(self.spelling, group)
        return group

    def several(self, kind: Several) -> str:
        """The name of the struct that holds several results."""
        if kind not in self.results:
            self.results[kind] = helpers.result_text(self.spelling, kind)
        return self.spelling.name(kind)

    def result_name(self, kind: Kind) -> str:
        """The name of what a function returns."""
        return self.several(kind) if isinstance(kind, Several) else self.spelling.name(kind)

    def reserve(self, function: Function, label: str, kind: Array) -> str:
        """The name of an array in the memory; no function calls itself, so each has its own for good."""
        name = f"{function.name.strip('_')}_{label}"
        for number in range(1, 100):
            full = name if number == 1 else f"{name}_{number}"
            if self.memory.setdefault(full, kind) == kind:
                return full
        raise AssertionError


def _braces(array: Any, spelled: Any) -> str:
    if array.ndim == 0:
        return str(spelled(array))
    return "{" + ", ".join(_braces(item, spelled) for item in array) + "}"
