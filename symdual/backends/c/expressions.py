"""Translates expressions: names, arithmetic, comparisons, fields, subscripts. Calls are in `calls`."""

from __future__ import annotations

import ast
import builtins
import operator
import types
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from symdual.backends.c.kinds import ANY, BITS, BOOL, INT, REAL, Array, Group, Kind, Record, joined
from symdual.backends.c.program import Function
from symdual.backends.c.values import (
    BOTH,
    CHOICE,
    EITHER,
    EQUALITY,
    FLIP,
    MASK,
    PRIMARY,
    PRODUCT,
    RELATION,
    SHIFT,
    SUM,
    UNARY,
    Untranslatable,
    Value,
    truth,
    whole,
)

if TYPE_CHECKING:
    from symdual.backends.c.translator import Translator
    from symdual.backends.c.unit import Unit

_ARITHMETIC: dict[type, tuple[str, int, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", SUM, operator.add),
    ast.Sub: ("-", SUM, operator.sub),
    ast.Mult: ("*", PRODUCT, operator.mul),
}
_OF_BITS: dict[type, tuple[str, int]] = {ast.BitAnd: ("&", MASK), ast.BitXor: ("^", FLIP)}
_COMPARISONS: dict[type, tuple[str, int, Callable[[Any, Any], bool]]] = {
    ast.Lt: ("<", RELATION, operator.lt),
    ast.LtE: ("<=", RELATION, operator.le),
    ast.Gt: (">", RELATION, operator.gt),
    ast.GtE: (">=", RELATION, operator.ge),
    ast.Eq: ("==", EQUALITY, operator.eq),
    ast.NotEq: ("!=", EQUALITY, operator.ne),
}
LARGEST = 2**31 - 1  # whole number that every int of 32 bits holds


class Expressions(ABC):
    """Expressions of one function, for the types of its variables."""

    def __init__(self, translator: Translator, function: Function) -> None:
        self.translator, self.function = translator, function
        self.numbers, self.spelling = translator.numbers, translator.spelling
        self.aliases: dict[str, Value] = {}
        self.written: set[str] = set()
        self.needs_memory = False
        self.calls: list[Unit] = []
        self.writing: set[ast.Call] = set()  # calls that write
        self._summands: set[ast.expr] = set()  # products in a sum, which may be fused with it

    def fault(self, node: ast.AST, what: str) -> Untranslatable:
        """An error that names the file and the line of a node."""
        line = getattr(node, "lineno", self.function.tree.lineno)
        return Untranslatable(f"{self.translator.place}/{self.function.file}:{line}: {what}")

    @abstractmethod
    def local(self, name: str) -> Value | None:
        """The variable of this name, if there is one."""

    # ------------------------------------------------------------ what a name means

    def value(self, node: ast.expr) -> Value:
        """The translation of an expression."""
        return self._fitting(node, self._any_value(node))

    def _fitting(self, node: ast.expr, found: Value) -> Value:
        if found.kind == INT and found.constant is not None and abs(found.constant) > LARGEST:
            raise self.fault(node, f"{ast.unparse(node)} does not fit into 32 bits")
        return found

    def _any_value(self, node: ast.expr) -> Value:
        found = self.thing(node)
        if not isinstance(found, Value):
            raise self.fault(node, f"{ast.unparse(node)} has no value in C")
        return found

    def thing(self, node: ast.expr) -> Any:
        """The translation of an expression, or what it stands for in Python: a module, a function, a table, a type."""
        method = getattr(self, f"_{type(node).__name__}", None)
        if method is None:
            raise self.fault(node, f"the translator does not know {type(node).__name__} ({ast.unparse(node)})")
        return method(node)

    def number(self, node: ast.expr) -> Value:
        """The translation of an expression that is a number."""
        found = self.value(node)
        if found.kind not in (INT, BOOL, REAL, BITS):
            raise self.fault(node, f"{ast.unparse(node)} is not a number")
        return found

    def condition(self, node: ast.expr) -> Value:
        """The translation of an expression of which only the truth matters."""
        return self._BoolOp(node, tested=True) if isinstance(node, ast.BoolOp) else self.number(node)

    def whole_number(self, node: ast.expr) -> Value:
        """The translation of an expression that is a whole number."""
        found = self.number(node)
        if found.kind not in (INT, BOOL):
            raise self.fault(node, f"{ast.unparse(node)} is not a whole number")
        return found if found.kind == INT else replace(found, kind=INT)

    def _Constant(self, node: ast.Constant) -> Value:
        if isinstance(node.value, bool):
            return truth(node.value)
        if isinstance(node.value, int):
            return whole(node.value)
        if isinstance(node.value, float):
            return self.numbers.real(self._scaled(node.value))
        raise self.fault(node, f"the translator does not know the constant {node.value!r}")

    def _scaled(self, number: float) -> float:
        """Tolerances of the recursions follow the precision; numbers that stand in kernels are the model's."""
        return number if self.function.module == "kernels" else self.numbers.tolerance(number)

    def _Name(self, node: ast.Name) -> Any:
        if node.id in self.aliases:
            return self.aliases[node.id]
        found = self.local(node.id)
        if found is not None:
            return found
        if node.id in self.function.names:
            return self._named(node, self.function.names[node.id], self.function.module, node.id)
        if hasattr(builtins, node.id):
            return getattr(builtins, node.id)
        raise self.fault(node, f"{node.id} is not known")

    def _named(self, node: ast.expr, found: Any, module: str, name: str) -> Any:
        """A constant under its name, or any other thing of Python as it is."""
        if isinstance(found, bool | np.bool_):
            return truth(bool(found))
        if isinstance(found, int | np.integer):
            return replace(whole(int(found)), code=self.translator.macro(module, name, int(found)), level=PRIMARY)
        if isinstance(found, float | np.floating):
            number = self.numbers.tolerance(float(found))  # what has a name is no number of the model's
            if not np.isfinite(number):
                return self.numbers.real(number)
            return replace(self.numbers.real(number), code=self.translator.macro(module, name, number), level=PRIMARY)
        return found

    def _Attribute(self, node: ast.Attribute) -> Any:
        base = self.thing(node.value)
        if isinstance(base, Value):
            return self._member(node, base)
        if isinstance(base, types.ModuleType):
            if not hasattr(base, node.attr):
                raise self.fault(node, f"{ast.unparse(node)} is not known")
            found = getattr(base, node.attr)
            if isinstance(found, float):  # of math
                return self.numbers.real(found)
            return self._named(node, found, base.__name__, node.attr)
        if isinstance(base, np.ndarray) and node.attr == "size":
            return whole(int(base.size))
        raise self.fault(node, f"the translator does not know {ast.unparse(node)}")

    def _member(self, node: ast.Attribute, base: Value) -> Value:
        if isinstance(base.kind, Array) and node.attr == "size" and len(base.kind.shape) == 1:
            return self.length(node, base, 0)
        fields: dict[str, Kind] = {}
        if isinstance(base.kind, Record):
            fields = self.translator.records[base.kind.name]
        elif isinstance(base.kind, Group):
            fields = dict(base.kind.fields)
        if node.attr not in fields:
            raise self.fault(node, f"there is no field {node.attr} in {ast.unparse(node.value)}")
        kind = fields[node.attr]
        if base.code.startswith("&"):
            before = f"{base.code[1:]}."
        else:
            before = f"{base.at(PRIMARY)}->"
        code = before + node.attr
        sizes: tuple[str, ...] = ()
        if isinstance(kind, Array):
            sizes = tuple(f"{code}_{n}" if length is None else str(length) for n, length in enumerate(kind.shape))
        # what a named tuple points to may be written, whoever holds the tuple
        roots = frozenset[str]() if isinstance(base.kind, Group) else base.roots
        return Value(kind, code, sizes=sizes, roots=roots, reads=base.reads)

    # ------------------------------------------------------------ arithmetic

    def _BinOp(self, node: ast.BinOp) -> Value:
        """a + b - c * d + ...: Python nests what stands to the left, so that a sum may have any number of terms."""
        chain = [node]
        while isinstance(chain[-1].left, ast.BinOp):
            chain.append(chain[-1].left)
        for part in chain:
            if isinstance(part.op, ast.Add | ast.Sub):
                self._summands |= {part.left, part.right}
        value = self.number(chain[-1].left)
        while chain:
            value = self._sum(chain, value) if self._is_plain_sum(chain[-1], value) else self._step(chain.pop(), value)
        return value

    def _is_plain_sum(self, node: ast.BinOp, left: Value) -> bool:
        """Whether a term is added to a real number that is not known, in any order."""
        plain = left.kind == REAL and left.constant is None and not self.function.kept
        return plain and isinstance(node.op, ast.Add | ast.Sub)

    def _sum(self, chain: list[ast.BinOp], first: Value) -> Value:
        """All terms that follow the first one, taken off the chain; put together once, however many they are."""
        parts, terms = [first.at(SUM)], [first]
        while chain and self._is_plain_sum(chain[-1], first):
            node = chain.pop()
            term = self.numbers.as_real(self.number(node.right))
            parts += [_ARITHMETIC[type(node.op)][0], term.at(PRODUCT)]
            terms.append(term)
        return Value(REAL, " ".join(parts), SUM).with_reads(*terms)

    def _step(self, node: ast.BinOp, left: Value) -> Value:
        """One operation on what stands to the left of it."""
        value = self._fitting(node, self._operation(node, left))
        if not self.function.kept or value.kind != REAL or value.constant is not None:
            return value
        if isinstance(node.op, ast.Mult | ast.Div) and node in self._summands:
            return value
        return self.translator.kept(value)

    def _operation(self, node: ast.BinOp, left: Value) -> Value:
        if isinstance(node.op, ast.Pow):
            return self._power(node, left)
        right = self._any_value(node.right) if left.kind == BITS else self.number(node.right)
        constant = None
        if isinstance(node.op, ast.LShift):
            if left.kind != BITS or right.constant is None:
                raise self.fault(node, "only bits of a number are shifted, by a known number of places")
            return Value(BITS, f"{left.at(UNARY)} << {right.code}", SHIFT, reads=left.reads)
        if BITS in (left.kind, right.kind):
            left, right = _as_bits(left), _as_bits(right)
            if type(node.op) in _OF_BITS:
                sign, level = _OF_BITS[type(node.op)]
                # compilers warn where these stand beside other operators without parentheses
                return Value(BITS, f"{left.at(PRIMARY)} {sign} {right.at(PRIMARY)}", level).with_reads(left, right)
        if isinstance(node.op, ast.Div):
            return self._quotient(left, right)
        if isinstance(node.op, ast.FloorDiv | ast.Mod):
            return self._whole_quotient(node, left, right)
        if type(node.op) not in _ARITHMETIC:
            raise self.fault(node, f"the translator does not know {ast.unparse(node)}")
        sign, level, compute = _ARITHMETIC[type(node.op)]
        kind = BITS if left.kind == BITS else (REAL if REAL in (left.kind, right.kind) else INT)
        left, right = self.numbers.converted(left, kind), self.numbers.converted(right, kind)
        if left.constant is not None and right.constant is not None and kind != BITS:
            constant = compute(left.constant, right.constant)
            if kind == INT and constant == left.constant and right.constant == 0:
                return left
        code = f"{left.at(level)} {sign} {right.at(level + 1)}"
        return Value(kind, code, level, constant).with_reads(left, right)

    def _quotient(self, left: Value, right: Value) -> Value:
        left, right = self.numbers.as_real(left), self.numbers.as_real(right)
        constant = left.constant / right.constant if left.constant is not None and right.constant else None
        code = f"{left.at(PRODUCT)} / {right.at(UNARY)}"
        return Value(REAL, code, PRODUCT, constant).with_reads(left, right)

    def _whole_quotient(self, node: ast.BinOp, left: Value, right: Value) -> Value:
        if left.kind != INT or right.kind != INT:
            raise self.fault(node, f"{ast.unparse(node)} is not a quotient of whole numbers")
        floor = isinstance(node.op, ast.FloorDiv)
        if left.constant is not None and right.constant:
            return whole(left.constant // right.constant if floor else left.constant % right.constant)
        name = self.translator.helper("floor_quotient" if floor else "floor_remainder")
        return Value(INT, f"{name}({left.code}, {right.code})").with_reads(left, right)

    def _power(self, node: ast.BinOp, base: Value) -> Value:
        base, exponent = self.numbers.as_real(base), self.number(node.right)
        if exponent.kind == INT and exponent.constant is not None and exponent.constant > 0:
            if exponent.constant == 1:
                return base
            if exponent.constant == 2 and base.level == PRIMARY and base.code.isidentifier():
                return Value(REAL, f"{base.code} * {base.code}", PRODUCT).with_reads(base)
            name = self.translator.helper(f"power_{exponent.constant}")
            return Value(REAL, f"{name}({base.code})").with_reads(base)
        exponent = self.numbers.as_real(exponent)
        name = self.translator.library("pow")
        return Value(REAL, f"{name}({base.code}, {exponent.code})").with_reads(base, exponent)

    def _UnaryOp(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            value = self.condition(node.operand)
            if value.constant is not None:
                return truth(not value.constant)
            return Value(BOOL, f"!{value.at(UNARY)}", UNARY).with_reads(value)
        value = self.number(node.operand)
        if isinstance(node.op, ast.USub) and value.kind in (INT, REAL):
            constant = None if value.constant is None else -value.constant
            inner = value.at(UNARY)
            return replace(
                value, code=f"-({inner})" if inner[0] == "-" else f"-{inner}", level=UNARY, constant=constant
            )
        if isinstance(node.op, ast.UAdd):
            return value
        raise self.fault(node, f"the translator does not know {ast.unparse(node)}")

    # ------------------------------------------------------------ truth

    def _Compare(self, node: ast.Compare) -> Value:
        values = [self.number(part) for part in (node.left, *node.comparators)]
        if any(v.level < PRIMARY and not v.code.replace("_", "").isalnum() for v in values[1:-1]):
            raise self.fault(node, "a comparison between more than two values needs a plain name in the middle")
        parts = [self._comparison(node, op, *pair) for op, *pair in zip(node.ops, values, values[1:], strict=False)]
        return parts[0] if len(parts) == 1 else self._conjunction(parts)

    def _comparison(self, node: ast.AST, op: ast.cmpop, left: Value, right: Value) -> Value:
        if type(op) not in _COMPARISONS:
            raise self.fault(node, f"the translator does not know {ast.unparse(node)}")
        sign, level, compute = _COMPARISONS[type(op)]
        if left.constant is not None and right.constant is not None:
            return truth(bool(compute(left.constant, right.constant)))
        if isinstance(op, ast.Eq | ast.NotEq) and {left.kind, right.kind} == {BITS, INT}:
            left, right = _as_bits(left), _as_bits(right)  # these have no order: C's have no sign, Python's have one
        kind = joined(left.kind, right.kind)
        if kind is None:
            raise self.fault(node, f"{ast.unparse(node)} compares values of different types")
        left, right = self.numbers.converted(left, kind), self.numbers.converted(right, kind)
        return Value(BOOL, f"{left.at(SUM)} {sign} {right.at(SUM)}", level).with_reads(left, right)

    def _BoolOp(self, node: ast.BoolOp, tested: bool = False) -> Value:
        either = isinstance(node.op, ast.Or)
        kept: list[Value] = []
        for item in node.values:
            part = self.condition(item)
            if part.kind != BOOL and not tested:
                raise self.fault(node, f"{ast.unparse(node)} is one of its numbers in Python, but a truth value in C")
            if part.constant is None:
                kept.append(part)
            elif bool(part.constant) is either:  # which settles the matter
                return self._settled(node, kept, either)
        if not kept:
            return truth(not either)
        if len(kept) == 1:
            return replace(kept[0], kind=BOOL)
        if not either:
            return self._conjunction(kept)
        return Value(BOOL, " || ".join(part.at(BOTH + 1) for part in kept), EITHER).with_reads(*kept)

    def _settled(self, node: ast.BoolOp, before: list[Value], outcome: bool) -> Value:
        """What is known before it is evaluated; nothing is left out that would have an effect."""
        if before and any(part in self.writing for part in ast.walk(node)):
            raise self.fault(node, f"{ast.unparse(node)} is known, but contains a call that writes")
        return truth(outcome)

    @staticmethod
    def _conjunction(parts: list[Value]) -> Value:
        return Value(BOOL, " && ".join(part.at(BOTH) for part in parts), BOTH).with_reads(*parts)

    def _IfExp(self, node: ast.IfExp) -> Value:
        test = self.condition(node.test)
        if test.constant is not None:
            return self.value(node.body if test.constant else node.orelse)
        yes, no = self.number(node.body), self.number(node.orelse)
        kind = joined(yes.kind, no.kind)
        if kind is None:
            raise self.fault(node, f"the two values of {ast.unparse(node)} have different types")
        yes, no = self.numbers.converted(yes, kind), self.numbers.converted(no, kind)
        code = f"{test.at(CHOICE + 1)} ? {yes.at(CHOICE + 1)} : {no.at(CHOICE + 1)}"
        return Value(kind, code, CHOICE).with_reads(test, yes, no)

    def _Tuple(self, node: ast.Tuple) -> tuple[Value, ...]:
        return tuple(self.value(item) for item in node.elts)

    def length(self, node: ast.AST, array: Value, axis: int) -> Value:
        """The length of an array along an axis."""
        assert isinstance(array.kind, Array)
        known = array.kind.shape[axis]
        if known == ANY:
            raise self.fault(node, "the length of this array is not handed over")
        return whole(known) if known is not None else Value(INT, array.sizes[axis], reads=array.reads)


def _as_bits(value: Value) -> Value:
    """Bits, or a whole number as bits."""
    return value if value.kind == BITS else replace(value, kind=BITS, code=f"UINT64_C({value.code})", level=PRIMARY)
