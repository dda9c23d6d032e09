"""The variables of a function: their names in C, their types, and what is assigned to them."""

from __future__ import annotations

import ast
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

from symdual.backends.c.calls import Calls
from symdual.backends.c.kinds import BOOL, INT, REAL, Array, Group, Kind, Record, Scalar, Several, joined
from symdual.backends.c.layout import Block, Line
from symdual.backends.c.names import safe, snake
from symdual.backends.c.program import Function
from symdual.backends.c.values import PRIMARY, UNARY, Value

if TYPE_CHECKING:
    from symdual.backends.c.translator import Translator

_AUGMENTED: dict[type, str] = {ast.Add: "+=", ast.Sub: "-=", ast.Mult: "*=", ast.Div: "/="}


class Variables(Calls):
    """Variables of one function, of which the types are assumed, and which of them are never read."""

    def __init__(self, translator: Translator, function: Function, kinds: dict[str, Kind], unread: set[str]) -> None:
        super().__init__(translator, function)
        self.kinds, self.unread = dict(kinds), unread
        self.settled = True  # whether every type was what it turned out to be from its first use on
        self.parameters = frozenset(function.arguments)
        self.body: list[Line | Block] = []
        self._sizes: dict[str, tuple[str, ...]] = {}
        self._roots: dict[str, frozenset[str]] = {}
        self._names: dict[str, str] = {}
        self._counters: list[str] = []
        self._assigned = function.assigned
        self._lengths = {  # arguments that Python does not have
            f"{safe(name)}_{axis}"
            for name, kind in kinds.items()
            if isinstance(kind, Array) and name in self.parameters
            for axis in kind.run_time
        }

    def spelled(self, name: str) -> str:
        """The name of a variable in C."""
        if name not in self._names:
            wanted = safe(name)
            prefix = self.spelling.prefix.lower()
            if wanted.lower().startswith(f"{prefix}_"):  # would look like a function of ours
                wanted = f"{'a' if prefix != 'a' else 'b'}_{wanted}"
            taken = {*self._names.values(), *self._lengths, "memory"}
            while wanted in taken:
                wanted += "_"
            self._names[name] = wanted
        return self._names[name]

    def _fresh(self, label: str) -> str:
        """A name for a variable that Python does not have."""
        for number in itertools.count(1):
            name = label if number == 1 else f"{label}_{number}"
            taken = name in self._names or name in self._assigned or name in self.parameters
            if not taken and safe(name) == name and name not in self._names.values():
                self._names[name] = name
                return name
        raise AssertionError

    def local(self, name: str) -> Value | None:
        """The variable of this name, if there is one."""
        if name in self._counters:
            return Value(INT, self.spelled(name), reads=frozenset({self.spelled(name)}))
        kind = self.kinds.get(name)
        if kind is None:
            return None
        code = self.spelled(name)
        sizes: tuple[str, ...] = ()
        if isinstance(kind, Array):
            own = tuple(f"{code}_{n}" if length is None else str(length) for n, length in enumerate(kind.shape))
            sizes = self._sizes.get(name, own)
        roots = frozenset({name}) | self._roots.get(name, frozenset())
        if isinstance(kind, Scalar | Group):
            roots = frozenset()
        return Value(kind, code, sizes=sizes, roots=roots, reads=frozenset({code}))

    def emit(self, text: str, *values: Value) -> None:
        """Add a statement."""
        self.body.append(Line(text, frozenset[str]().union(*(value.reads for value in values))))

    def assign(self, name: str, value: Value, node: ast.AST) -> None:
        """Assign to a variable."""
        known = self.kinds.get(name)
        kind = value.kind if known is None else joined(known, value.kind)
        if kind is None or (name in self._counters):
            raise self.fault(node, f"{name} has values of different types")
        self._note(name, kind)
        if name in self.parameters and known != kind:
            raise self.fault(node, f"the argument {name} is given a value of another type")
        if isinstance(kind, Array | Record):
            self._roots[name] = self._roots.get(name, frozenset()) | value.roots
            if isinstance(kind, Array):
                self._sizes[name] = value.sizes
                if len(kind.shape) > 1:
                    self.written |= value.roots | {name}
        value = self.numbers.converted(value, kind)
        target = self.spelled(name)
        self.body.append(Line(f"{target} = {value.code};", value.reads, target))

    def _note(self, name: str, kind: Kind) -> None:
        """Let a variable be of a type; a wider one than before makes what was translated so far void."""
        self.settled &= self.kinds.setdefault(name, kind) == kind
        self.kinds[name] = kind

    def made(self, group: Group, members: str, values: list[Value]) -> Value:
        """A struct that is made before the statement that is being translated."""
        name = self._fresh(safe(snake(group.name)))
        self.emit(f"const {self.spelling.name(group)} {name} = {members};", *values)
        return Value(group, f"&{name}", UNARY)

    def clear(self, code: str, kind: Array) -> None:
        """Set an array to zero, before the statement that is being translated."""
        if kind.element != REAL:
            raise self.fault(self.function.tree, "only arrays of reals are made with zeros")
        first = code if len(kind.shape) == 1 else f"&{code}{'[0]' * len(kind.shape)}"
        count = " * ".join(str(length) for length in kind.shape)
        self.emit(f"{self.translator.helper('clear')}({first}, {count});")

    # ------------------------------------------------------------ assignments

    def _Assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise self.fault(node, "the translator does not know several targets")
        target = node.targets[0]
        if isinstance(target, ast.Tuple):
            self._unpack(node, target)
        elif isinstance(target, ast.Name):
            self._name(node, target.id)
        else:
            self._store(node, target)

    def _name(self, node: ast.Assign, name: str) -> None:
        value = self.allocated(name, node.value)
        fresh = value is not None
        if value is None:
            value = self.value(node.value)
        if isinstance(value.kind, Group) or fresh or self._is_alias(node, name, value):
            if name in self.parameters or self._assigned[name] > 1:
                raise self.fault(node, f"{name} is given several arrays or tuples")
            self.aliases[name] = value
            return
        if name in self.unread:
            self._only_called(node.value, value)
            return
        self.assign(name, value, node)

    def _only_called(self, node: ast.expr, value: Value) -> None:
        """A value that nobody reads is not computed, but for what its calls do."""
        if _calls_something(node):
            self.emit(f"(void){value.at(UNARY)};", value)

    def _is_alias(self, node: ast.Assign, name: str, value: Value) -> bool:
        """Whether a name is nothing but a shorter one for a field, all along the function."""
        if not isinstance(value.kind, Array) or not isinstance(node.value, ast.Attribute):
            return False
        if value.kind.empty:
            return True
        base = node.value.value
        if not isinstance(base, ast.Name) or node not in self.function.tree.body or self._assigned[name] != 1:
            return False
        return self._assigned[base.id] <= (0 if base.id in self.parameters else 1)

    def _unpack(self, node: ast.Assign, target: ast.Tuple) -> None:
        names = [item.id if isinstance(item, ast.Name) else None for item in target.elts]
        if isinstance(node.value, ast.Tuple):
            self._exchange(node, target, node.value)
            return
        value = self.value(node.value)
        if not isinstance(value.kind, Several) or len(value.kind.items) != len(names) or None in names:
            raise self.fault(node, f"{ast.unparse(node)} does not fit")
        wanted = [(n, name) for n, name in enumerate(names) if name != "_" and name not in self.unread]
        if not wanted:
            self.emit(f"(void){value.code};", value)
            return
        if not value.code.isidentifier():
            kept = self._fresh("found")
            self.emit(f"const {self.translator.several(value.kind)} {kept} = {value.code};", value)
            value = replace(value, code=kept, reads=frozenset())
        for n, name in wanted:
            assert name is not None and isinstance(value.kind, Several)
            self.assign(name, Value(value.kind.items[n], f"{value.code}.item{n}", reads=value.reads), node)

    def _exchange(self, node: ast.Assign, target: ast.Tuple, source: ast.Tuple) -> None:
        """a, b = b, a: all values are taken before the first is written."""
        if len(target.elts) != len(source.elts):
            raise self.fault(node, f"{ast.unparse(node)} does not fit")
        kept = []
        for item in source.elts:
            value = self.number(item)
            name = self._fresh("kept")
            self.emit(f"const {self.spelling.name(value.kind)} {name} = {value.code};", value)
            kept.append(Value(value.kind, name))
        for item, value in zip(target.elts, kept, strict=True):
            if isinstance(item, ast.Name):
                self.assign(item.id, value, node)
            else:
                self._require_own(node, item)
                self._write(node, self.value(item), value, "=")

    def _store(self, node: ast.Assign, target: ast.expr) -> None:
        self._require_own(node, target)
        if isinstance(target, ast.Subscript) and _is_everything(target.slice):
            self._fill(node, target)
            return
        place, value = self.value(target), self.value(node.value)
        if isinstance(place.kind, Record) and place.kind == value.kind:
            self.written |= place.roots
            self.emit(f"{_pointee(place)} = {_pointee(value)};", place, value)
            return
        self._write(node, place, value, "=")

    def _require_own(self, node: ast.AST, target: ast.expr) -> None:
        """What is written to belongs to a variable of the function, not to a constant of the package."""
        base = target
        while isinstance(base, ast.Subscript | ast.Attribute):
            base = base.value
        if not isinstance(base, ast.Name) or (base.id not in self.aliases and self.local(base.id) is None):
            raise self.fault(node, f"{ast.unparse(target)} is no variable of the function")

    def _fill(self, node: ast.Assign, target: ast.Subscript) -> None:
        """array[:, :] = number."""
        array, value = self.value(target.value), self.numbers.as_real(self.number(node.value))
        if not isinstance(array.kind, Array) or array.kind.element != REAL or array.kind.run_time:
            raise self.fault(node, f"the translator does not know {ast.unparse(node)}")
        if value.constant != 0.0:
            raise self.fault(node, "an array is filled with zeros only")
        self.written |= array.roots
        self.clear(array.at(PRIMARY), array.kind)
        self.body[-1].uses |= array.reads

    def _write(self, node: ast.AST, place: Value, value: Value, sign: str) -> None:
        if not isinstance(place.kind, Scalar) or not isinstance(value.kind, Scalar):
            raise self.fault(node, f"{ast.unparse(node)} is not an assignment of a number")
        if place.kind == INT and value.kind == REAL:
            raise self.fault(node, f"{ast.unparse(node)} puts a real number into a whole one")
        self.written |= place.roots
        value = self.numbers.converted(value, place.kind)
        self.emit(f"{place.code} {sign} {value.code};", place, value)

    def _AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) not in _AUGMENTED:
            raise self.fault(node, f"the translator does not know {ast.unparse(node)}")
        sign = _AUGMENTED[type(node.op)]
        if self.function.kept and self.value(node.target).kind == REAL:
            raise self.fault(node, f"{ast.unparse(node)} does not keep the order of a sum: write it out")
        if not isinstance(node.target, ast.Name):
            self._require_own(node, node.target)
            place = self.value(node.target)
            if sign == "/=" and place.kind != REAL:
                raise self.fault(node, f"the translator does not know {ast.unparse(node)}")
            self._write(node, place, self.number(node.value), sign)
            return
        name, value = node.target.id, self.number(node.value)
        known = self.kinds.get(name)
        kind = None if known is None else joined(INT if known == BOOL else known, value.kind)
        wider = name in self.parameters and kind != known
        if kind is None or wider or name in self._counters or (sign == "/=" and kind != REAL):
            raise self.fault(node, f"the translator does not know {ast.unparse(node)}")
        self._note(name, kind)
        if name in self.unread:
            self._only_called(node.value, value)
            return
        value, target = self.numbers.converted(value, kind), self.spelled(name)
        self.body.append(Line(f"{target} {sign} {value.code};", value.reads, target, changes=True))


def _calls_something(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Call) for part in ast.walk(node))


def _is_everything(node: ast.expr) -> bool:
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return all(isinstance(p, ast.Slice) and p.lower is p.upper is p.step is None for p in parts)


def _pointee(value: Value) -> str:
    return value.code[1:] if value.code.startswith("&") else f"*{value.at(UNARY)}"
