"""Translates subscripts: entries, rows and runs of arrays, entries of tables of known numbers."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from symdual.backends.c.expressions import LARGEST, Expressions
from symdual.backends.c.kinds import ANY, INT, REAL, Array, Record, Several
from symdual.backends.c.values import PRIMARY, PRODUCT, SUM, UNARY, Value, whole

TABLE = "a table of known numbers"  # the root of what lies in one


class Subscripts(Expressions):
    """Subscripts of one function."""

    def _Subscript(self, node: ast.Subscript) -> Any:
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            return self._shape(node, self.thing(node.value.value))
        base = self.thing(node.value)
        if isinstance(base, Value) and isinstance(base.kind, Array):
            return self._part(node, base)
        if isinstance(base, Value) and isinstance(base.kind, Several):
            index = self.whole_number(node.slice).constant
            if index is None or not 0 <= index < len(base.kind.items):
                raise self.fault(node, f"{ast.unparse(node)} needs a known index")
            return Value(base.kind.items[index], f"{base.at(PRIMARY)}.item{index}", reads=base.reads)
        if isinstance(base, np.ndarray) and isinstance(node.slice, ast.Slice):
            return self._table_run(node, node.slice, base)
        if isinstance(base, np.ndarray | tuple):
            return self._entry(node, base)
        raise self.fault(node, f"the translator does not know {ast.unparse(node)}")

    def _shape(self, node: ast.Subscript, base: Any) -> Value:
        axis = self.whole_number(node.slice).constant
        if isinstance(base, np.ndarray) and axis in range(base.ndim):
            return whole(base.shape[axis])
        if isinstance(base, Value) and isinstance(base.kind, Array) and axis in range(len(base.kind.shape)):
            return self.length(node, base, axis)
        raise self.fault(node, f"the translator does not know {ast.unparse(node)}")

    def _entry(self, node: ast.Subscript, table: Any) -> Value:
        """An entry of a table of numbers."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        indices = [self.whole_number(part) for part in parts]
        if all(index.constant is not None for index in indices):
            found = table
            try:
                for index in indices:
                    found = found[index.constant]
            except (IndexError, TypeError) as failure:
                raise self.fault(node, f"{ast.unparse(node)} is not an entry of its table") from failure
            if isinstance(found, Value):
                return found
            if isinstance(found, int | float | np.number):
                return self._literal(found)
            raise self.fault(node, f"{ast.unparse(node)} is not a number")
        if isinstance(table, tuple) and table and isinstance(table[0], Value):
            if any(item.constant is None for item in table):
                raise self.fault(node, f"{ast.unparse(node)} is not a table of known numbers")
            table = np.array([item.constant for item in table])
        array = np.asarray(table)
        if array.ndim != len(indices) or array.dtype.kind not in "if" or not array.size:
            raise self.fault(node, f"{ast.unparse(node)} is not an entry of a table of numbers")
        name = self.translator.table(self.function.module, ast.unparse(node.value), array)
        code = name + "".join(f"[{index.code}]" for index in indices)
        return Value(INT if array.dtype.kind == "i" else REAL, code).with_reads(*indices)

    def _table_run(self, node: ast.Subscript, part: ast.Slice, table: Any) -> Value:
        """A run of entries of a table, which nobody may write."""
        if table.ndim != 1 or table.dtype.kind not in "if" or not table.size:
            raise self.fault(node, f"{ast.unparse(node)} is not a part of a table of numbers")
        name = self.translator.table(self.function.module, ast.unparse(node.value), table)
        kind = Array(INT if table.dtype.kind == "i" else REAL, table.shape)
        return self._run(node, part, Value(kind, name, sizes=(str(table.size),), roots=frozenset({TABLE})))

    def _literal(self, number: Any) -> Value:
        if isinstance(number, int | np.integer):
            return whole(int(number))
        return self.numbers.real(self._scaled(float(number)))

    def _part(self, node: ast.Subscript, base: Value) -> Value:
        """An entry, a row, or a run of entries or rows of an array."""
        assert isinstance(base.kind, Array)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(parts) > len(base.kind.shape):
            raise self.fault(node, f"{ast.unparse(node)} has too many indices")
        if base.kind.empty:
            if 0 not in base.kind.shape[len(parts) :]:
                raise self.fault(node, f"{ast.unparse(node.value)} has no entries")
            return Value(Array(base.kind.element, base.kind.shape[len(parts) :]), "")
        *before, last = parts
        if isinstance(last, ast.Slice):
            return self._run(node, last, self._row(node, base, before) if before else base)
        return self._row(node, base, parts)

    def _row(self, node: ast.Subscript, base: Value, parts: list[ast.expr]) -> Value:
        """An entry or a row."""
        assert isinstance(base.kind, Array)
        indices = [self.whole_number(part) for part in parts]
        for index, length in zip(indices, base.kind.shape, strict=False):
            known = index.constant
            if known is not None and (known < 0 or (length not in (None, ANY) and known >= length)):
                raise self.fault(node, f"{ast.unparse(node)} lies outside of its array")
        rest = base.kind.shape[len(indices) :]
        code = self._nested(base, indices) if base.kind.nested else self._flat(base, indices)
        if not rest:
            pointer = "&" if isinstance(base.kind.element, Record) else ""
            entry = Value(base.kind.element, pointer + code, UNARY if pointer else PRIMARY, roots=base.roots)
            return entry.with_reads(base, *indices)
        return Value(
            Array(base.kind.element, rest), code, sizes=base.sizes[len(indices) :], roots=base.roots
        ).with_reads(base, *indices)

    @staticmethod
    def _nested(base: Value, indices: list[Value]) -> str:
        return base.at(PRIMARY) + "".join(f"[{index.code}]" for index in indices)

    def _flat(self, base: Value, indices: list[Value]) -> str:
        """The place of an entry, or of a row, of an array whose rows have a length that is known at run time."""
        assert isinstance(base.kind, Array)
        place = indices[0]
        for axis in range(1, len(base.kind.shape)):
            if axis < len(indices):
                code = f"{place.at(PRODUCT)} * {base.sizes[axis]} + {indices[axis].at(PRODUCT)}"
                place = Value(INT, code, SUM)
            else:
                place = Value(INT, f"{place.at(PRODUCT)} * {base.sizes[axis]}", PRODUCT)
        code = f"{base.at(PRIMARY)}[{place.code}]"
        rest = base.kind.shape[len(indices) :]
        if not rest:
            return code
        rows = Array(base.kind.element, rest)
        if len(rest) > 1 and rows.nested:
            lengths = "".join(f"[{length}]" for length in rest[1:])
            return f"(({self.spelling.name(base.kind.element)} (*){lengths})&{code})"
        return f"(&{code})"

    def _run(self, node: ast.Subscript, part: ast.Slice, base: Value) -> Value:
        assert isinstance(base.kind, Array)
        if part.step is not None or not base.kind.nested:
            raise self.fault(node, f"the translator does not know {ast.unparse(node)}")
        first = whole(0) if part.lower is None else self.whole_number(part.lower)
        count, size = self._count(node, part, first, base)
        code = base.code if first.constant == 0 else f"&{base.at(PRIMARY)}[{first.code}]"
        kind = Array(base.kind.element, (count, *base.kind.shape[1:]))
        level = base.level if first.constant == 0 else UNARY
        return Value(kind, code, level, sizes=(size, *base.sizes[1:]), roots=base.roots).with_reads(base, first)

    def _count(self, node: ast.AST, part: ast.Slice, first: Value, base: Value) -> tuple[int | None, str]:
        """How many entries a slice has."""
        assert isinstance(base.kind, Array)
        length = base.kind.shape[0]
        last = LARGEST if length is None or length == ANY else length
        upper = self.length(node, base, 0) if part.upper is None else self.whole_number(part.upper)
        if any(end.constant is not None and not 0 <= end.constant <= last for end in (first, upper)):
            raise self.fault(node, f"{ast.unparse(node)} reaches beyond its array, or counts from its end")
        if first.constant is not None and upper.constant is not None:
            count = max(upper.constant - first.constant, 0)
            return count, str(count)
        ends, begins = part.upper, part.lower
        sum_ = isinstance(ends, ast.BinOp) and isinstance(ends.op, ast.Add) and begins is not None
        if sum_ and ast.dump(ends.left) == ast.dump(begins):  # type: ignore[union-attr, arg-type]
            added = self.whole_number(ends.right)  # type: ignore[union-attr]
            return added.constant, added.at(PRIMARY)
        return None, f"({upper.at(SUM)} - {first.at(PRODUCT)})"
