"""Translates the statements of a function."""

from __future__ import annotations

import ast
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

from symdual.export.calls import Calls
from symdual.export.facts import assignments
from symdual.export.kinds import BOOL, INT, REAL, VOID, Array, Group, Kind, Record, Scalar, Several, joined
from symdual.export.layout import Block, Line
from symdual.export.names import safe
from symdual.export.program import Function
from symdual.export.values import PRIMARY, SUM, UNARY, Value, whole

if TYPE_CHECKING:
    from symdual.export.translator import Translator

_AUGMENTED: dict[type, str] = {ast.Add: "+=", ast.Sub: "-=", ast.Mult: "*=", ast.Div: "/="}


class Statements(Calls):
    """The body of one function for given types of its variables.

    Types may turn out wider than they were assumed, and variables may turn out never to be read; then it is done again.
    """

    def __init__(
        self, translator: Translator, function: Function, kinds: dict[str, Kind], unread: set[str], result: Kind
    ) -> None:
        super().__init__(translator, function)
        self.kinds, self.unread, self.result = dict(kinds), unread, result
        self.parameters = frozenset(function.arguments)
        self.body: list[Line | Block] = []
        self._sizes: dict[str, tuple[str, ...]] = {}
        self._roots: dict[str, frozenset[str]] = {}
        self._names: dict[str, str] = {}
        self._counters: list[str] = []
        self._assigned, self._loose = function.assigned, function.loose

    def run(self) -> None:
        """Translate all statements."""
        body = self.function.tree.body
        first = body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            body = body[1:]
        self._all(body)

    # ------------------------------------------------------------ variables

    def spelled(self, name: str) -> str:
        """The name of a variable in C."""
        if name not in self._names:
            wanted = safe(name)
            prefix = self.spelling.prefix
            if wanted.lower().startswith(f"{prefix.lower()}_"):  # would look like a function of ours
                wanted = f"a_{wanted}"
            while wanted in self._names.values() or wanted == "memory":
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
        self.kinds[name] = kind
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

    def made(self, group: Group, members: str, values: list[Value]) -> Value:
        """A struct that is made before the statement that is being translated."""
        name = self._fresh(safe(group.name.lower()))
        self.emit(f"const {self.spelling.name(group)} {name} = {members};", *values)
        return Value(group, f"&{name}", UNARY)

    def clear(self, code: str, kind: Array) -> None:
        """Set an array to zero, before the statement that is being translated."""
        if kind.element != REAL:
            raise self.fault(self.function.tree, "only arrays of reals are made with zeros")
        first = code if len(kind.shape) == 1 else f"&{code}{'[0]' * len(kind.shape)}"
        count = " * ".join(str(length) for length in kind.shape)
        self.emit(f"{self.translator.helper('clear')}({first}, {count});")

    # ------------------------------------------------------------ statements

    def _all(self, statements: list[ast.stmt]) -> bool:
        """Translate statements; True when what follows them is never reached."""
        return any(self._one(statement) for statement in statements)

    def _one(self, node: ast.stmt) -> bool:
        method = getattr(self, f"_{type(node).__name__}", None)
        if method is None:
            raise self.fault(node, f"the translator does not know the statement {type(node).__name__}")
        return bool(method(node))

    def _inside(self, head: str, statements: list[ast.stmt], *values: Value, counter: str | None = None) -> bool:
        outer = self.body
        block = Block(head, frozenset[str]().union(*(value.reads for value in values)), counter)
        self.body = block.body
        ended = self._all(statements)
        self.body = outer
        if block.body or head.startswith("while"):
            self.body.append(block)
        return ended

    def _Pass(self, node: ast.Pass) -> None:
        pass

    def _Break(self, node: ast.Break) -> bool:
        self.emit("break;")
        return True

    def _Continue(self, node: ast.Continue) -> bool:
        self.emit("continue;")
        return True

    def _Expr(self, node: ast.Expr) -> None:
        value = self.value(node.value)
        if value.code:
            self.emit(f"{value.code};" if value.kind == VOID else f"(void){value.code};", value)

    def _Return(self, node: ast.Return) -> bool:
        if node.value is None:
            self.emit("return;")
            return True
        if isinstance(node.value, ast.Tuple):
            items = [self.number(item) for item in node.value.elts]
            kind = self._returned(node, Several(tuple(item.kind for item in items)))
            assert isinstance(kind, Several)
            fitted = [self.numbers.converted(item, wanted) for item, wanted in zip(items, kind.items, strict=True)]
            name = self.translator.several(kind)
            self.emit(f"return ({name}){{{', '.join(item.code for item in fitted)}}};", *fitted)
            return True
        value = self.value(node.value)
        kind = self._returned(node, value.kind)
        if kind != value.kind and isinstance(kind, Several):
            raise self.fault(
                node, f"{ast.unparse(node)} returns values of other types than the function does elsewhere"
            )
        value = self.numbers.converted(value, kind)
        self.emit(f"return {value.code};", value)
        return True

    def _returned(self, node: ast.AST, kind: Kind) -> Kind:
        if not isinstance(kind, Scalar | Several):
            raise self.fault(node, "only numbers are returned")
        found = kind if self.result == VOID else joined(self.result, kind)
        if found is None:
            raise self.fault(node, "the function returns values of different types")
        self.result = found
        return found

    def _If(self, node: ast.If) -> bool:
        test = self.number(node.test)
        if test.constant is not None:
            return self._all(node.body if test.constant else node.orelse)
        (yes, first), (no, second) = self._apart(node.body), self._apart(node.orelse)
        if yes or no:
            self.body.append(
                Block(f"if ({test.code})" if yes else f"if (!{test.at(UNARY)})", test.reads, body=yes or no)
            )
        if yes and no:
            self._else(no)
        return bool(node.orelse) and first and second

    def _apart(self, statements: list[ast.stmt]) -> tuple[list[Line | Block], bool]:
        outer, self.body = self.body, []
        ended = self._all(statements)
        inner, self.body = self.body, outer
        return inner, ended

    def _else(self, inner: list[Line | Block]) -> None:
        first, *others = inner
        if isinstance(first, Block) and first.head.startswith("if (") and all(_is_else(item) for item in others):
            first.head = f"else {first.head}"
            self.body += inner
        else:
            self.body.append(Block("else", body=inner))

    def _While(self, node: ast.While) -> None:
        count = len(self.body)
        test = self.number(node.test)
        if node.orelse or len(self.body) != count:
            raise self.fault(node, "the translator does not know this while")
        self._inside(f"while ({test.code})", node.body, test)

    # ------------------------------------------------------------ loops

    def _For(self, node: ast.For) -> None:
        if node.orelse or not isinstance(node.target, ast.Name):
            raise self.fault(node, "the translator does not know this for")
        if isinstance(node.iter, ast.Tuple):
            self._over_items(node, node.iter)
            return
        call = node.iter
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in ("range", "prange")):
            raise self.fault(node, f"a loop over {ast.unparse(node.iter)} is not a loop over a range")
        bounds = [self.whole_number(argument) for argument in call.args]
        if len(bounds) > 2:
            raise self.fault(node, "the translator does not know ranges with a step")
        first, end = bounds if len(bounds) == 2 else (whole(0), bounds[0])
        if first.constant is not None and end.constant is not None and end.constant <= first.constant:
            return
        changed = {self._names.get(name, name) for name in assignments(node.body)}
        if end.constant is None and _depends(end, changed):
            end = self._kept(node.target.id, end)
        self._counted(node, first, end)

    def _kept(self, name: str, end: Value) -> Value:
        kept = self._fresh(f"{safe(name)}_end" if name != "_" else "turns")
        self.kinds[kept] = INT
        self.body.append(Line(f"{kept} = {end.code};", end.reads, kept))
        return Value(INT, kept, reads=frozenset({kept}))

    def _counted(self, node: ast.For, first: Value, end: Value) -> None:
        assert isinstance(node.target, ast.Name)
        name = node.target.id
        own = name != "_" and name not in self._loose and name not in self._counters and name not in self.kinds
        counter = self.spelled(name) if own else self._fresh("turn")
        head = f"for (int {counter} = {first.code}; {counter} < {end.at(SUM)}; {counter}++)"
        if own:
            self._counters.append(name)
            self._inside(head, node.body, first, end, counter=counter)
            self._counters.remove(name)
            return
        self._copying(head, counter, Value(INT, counter, reads=frozenset({counter})), node, first, end)

    def _copying(self, head: str, counter: str, item: Value, node: ast.For, *values: Value) -> None:
        """A loop whose variable is one of the function's own, set at the beginning of every turn."""
        assert isinstance(node.target, ast.Name)
        outer, block = self.body, Block(head, frozenset[str]().union(*(v.reads for v in values)), counter)
        self.body = block.body
        if node.target.id != "_" and node.target.id not in self.unread:
            self.assign(node.target.id, item, node)
        self._all(node.body)
        self.body = outer
        if block.body:
            self.body.append(block)

    def _over_items(self, node: ast.For, items: ast.Tuple) -> None:
        values = [self.number(item) for item in items.elts]
        kind: Kind | None = BOOL
        for value in values:
            kind = None if kind is None else joined(kind, value.kind)
        if kind is None or not values:
            raise self.fault(node, "the items of this loop have different types")
        fitted = [self.numbers.converted(value, kind) for value in values]
        name, counter = self._fresh("items"), self._fresh("turn")
        text = ", ".join(value.code for value in fitted)
        self.emit(f"const {self.spelling.name(kind)} {name}[{len(values)}] = {{{text}}};", *fitted)
        head = f"for (int {counter} = 0; {counter} < {len(values)}; {counter}++)"
        self._copying(head, counter, Value(kind, f"{name}[{counter}]", reads=frozenset({counter})), node)

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
            if _calls_something(node.value) and value.level == PRIMARY:
                self.emit(f"(void){value.code};", value)
            return
        self.assign(name, value, node)

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
                self._write(node, self.value(item), value, "=")

    def _store(self, node: ast.Assign, target: ast.expr) -> None:
        if isinstance(target, ast.Subscript) and _is_everything(target.slice):
            self._fill(node, target)
            return
        place, value = self.value(target), self.value(node.value)
        if isinstance(place.kind, Record) and place.kind == value.kind:
            self.written |= place.roots
            self.emit(f"{_pointee(place)} = {_pointee(value)};", place, value)
            return
        self._write(node, place, value, "=")

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
        if not isinstance(node.target, ast.Name):
            self._write(node, self.value(node.target), self.number(node.value), sign)
            return
        name, value = node.target.id, self.number(node.value)
        known = self.kinds.get(name)
        kind = None if known is None else joined(INT if known == BOOL else known, value.kind)
        if kind is None or name in self._counters or (sign == "/=" and kind != REAL):
            raise self.fault(node, f"the translator does not know {ast.unparse(node)}")
        self.kinds[name] = kind
        if name in self.unread:
            return
        value, target = self.numbers.converted(value, kind), self.spelled(name)
        self.body.append(Line(f"{target} {sign} {value.code};", value.reads, target, changes=True))


# ------------------------------------------------------------ small questions


def _depends(end: Value, changed: set[str]) -> bool:
    """Whether the end of a loop could change while it runs."""
    return bool(changed & end.reads) or any(mark in end.code for mark in ("[", "->", "("))


def _is_else(item: Line | Block) -> bool:
    return isinstance(item, Block) and item.head.startswith("else")


def _calls_something(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Call) for part in ast.walk(node))


def _is_everything(node: ast.expr) -> bool:
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return all(isinstance(p, ast.Slice) and p.lower is p.upper is p.step is None for p in parts)


def _pointee(value: Value) -> str:
    return value.code[1:] if value.code.startswith("&") else f"*{value.at(UNARY)}"
