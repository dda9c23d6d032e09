"""Translates the statements of a function."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from symdual.backends.c.facts import assignments
from symdual.backends.c.kinds import BOOL, INT, VOID, Kind, Scalar, Several, joined
from symdual.backends.c.layout import Block, Line
from symdual.backends.c.names import safe
from symdual.backends.c.order import is_kept
from symdual.backends.c.program import Function
from symdual.backends.c.subscripts import TABLE
from symdual.backends.c.values import SUM, UNARY, Value, whole
from symdual.backends.c.variables import Variables

if TYPE_CHECKING:
    from symdual.backends.c.translator import Translator


class Statements(Variables):
    """The body of one function for given types of its variables.

    Types may turn out wider than they were assumed, and variables may turn out never to be read; then it is done again.
    """

    def __init__(
        self, translator: Translator, function: Function, kinds: dict[str, Kind], unread: set[str], result: Kind
    ) -> None:
        super().__init__(translator, function, kinds, unread)
        self.result, self._loose = result, function.loose
        self._bare = False  # whether it returns without a number somewhere

    def run(self) -> None:
        """Translate all statements."""
        body = self.function.tree.body
        first = body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            body = body[1:]
        ended = self._all(body)
        if self.result != VOID and (not ended or self._bare):
            raise self.fault(body[-1], f"{self.function.name} does not return a number on every way through it")
        if TABLE in self.written:
            raise self.fault(self.function.tree, f"{self.function.name} writes to {TABLE}")

    def _all(self, statements: list[ast.stmt]) -> bool:
        """Translate statements; True when what follows them is never reached."""
        return any(self._one(statement) for statement in statements)

    def _one(self, node: ast.stmt) -> bool:
        method = getattr(self, f"_{type(node).__name__}", None)
        if method is None:
            raise self.fault(node, f"the translator does not know the statement {type(node).__name__}")
        ended = bool(method(node))
        if self.writing and not is_kept(node, self.writing):
            raise self.fault(node, "C may read what stands beside a call that writes before or after the call")
        return ended

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
            self._bare = True
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
        self.settled &= self.result in (VOID, found)
        self.result = found
        return found

    def _If(self, node: ast.If) -> bool:
        test = self.condition(node.test)
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
        test = self.condition(node.test)
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


def _depends(end: Value, changed: set[str]) -> bool:
    """Whether the end of a loop could change while it runs."""
    return bool(changed & end.reads) or any(mark in end.code for mark in ("[", "->", "("))


def _is_else(item: Line | Block) -> bool:
    return isinstance(item, Block) and item.head.startswith("else")
