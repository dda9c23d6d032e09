"""Translates calls: of functions of the package, of numbers' own functions, of named tuples, of function pointers."""

from __future__ import annotations

import ast
import builtins
import math
from abc import abstractmethod
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from symdual.backends.c.kinds import ANY, BITS, BOOL, INT, REAL, Array, Group, Kind, Pointer, Record, joined
from symdual.backends.c.names import snake
from symdual.backends.c.program import AddressOf, Function
from symdual.backends.c.subscripts import Subscripts
from symdual.backends.c.values import EQUALITY, PRIMARY, SUM, UNARY, Value, truth, whole

#: functions of one or two reals that C has under this name; with an f behind it in single precision
LIBRARY = {
    **{
        name: name
        for name in (
            "acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh erf erfc exp expm1 floor fmod hypot log "
            "log10 log1p log2 pow sin sinh sqrt tan tanh"
        ).split()
    },
    "fabs": "fabs",
    "gamma": "tgamma",
    "lgamma": "lgamma",
    "trunc": "trunc",
}
_OF_NUMBERS = ("min", "max", "abs")  # whole or not
_OF_TWO = ("atan2", "copysign", "fmod", "hypot", "pow")
_TESTS = ("isnan", "isinf", "isfinite")
_CONVERSIONS = {int: INT, np.int64: INT, np.intp: INT, float: REAL, np.float64: REAL, bool: BOOL, np.bool_: BOOL}


class Calls(Subscripts):
    """Calls of one function."""

    def _Call(self, node: ast.Call) -> Any:
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            raise self.fault(node, f"{ast.unparse(node)} has arguments with names or stars")
        if isinstance(node.func, ast.Attribute) and node.func.attr == "view":
            return self._view(node)
        called = self.thing(node.func)
        if isinstance(called, Value):
            return self._indirect(node, called)
        if isinstance(called, AddressOf):
            return self.value(node.args[0])
        function = self.translator.program.function(called)
        if function is not None:
            return self._direct(node, function)
        if isinstance(called, type) and hasattr(called, "_fields"):
            return self._grouped(node, called)
        return self._builtin(node, called)

    # ------------------------------------------------------------ functions of the package

    def _direct(self, node: ast.Call, function: Function) -> Value:
        arguments = [self.value(argument) for argument in node.args]
        if (function.module, function.name) == ("kernels", "_nearest"):
            # Python rounds by adding a number and taking it off, of which a compiler that reorders sums leaves nothing
            return Value(REAL, f"{self.translator.library('rint')}({arguments[0].code})").with_reads(arguments[0])
        unit = self.translator.unit(function, tuple(a.kind for a in arguments), node, self)
        if unit.empty:
            return Value(unit.result, "")
        self.calls.append(unit)
        if unit.written:
            self.writing.add(node)
        for argument, name in zip(arguments, function.arguments, strict=True):
            # C99 hands on no rows that must not be written
            if name in unit.written or (isinstance(argument.kind, Array) and len(argument.kind.shape) > 1):
                self.written |= argument.roots
        codes = [code for argument in arguments for code in self._handed_over(argument)]
        if unit.needs_memory:
            self.needs_memory = True
            codes.append("memory")
        return Value(unit.result, f"{unit.name}({', '.join(codes)})").with_reads(*_there(arguments))

    @staticmethod
    def _handed_over(value: Value) -> list[str]:
        """An argument as C sees it: no array without entries, and sizes beside an array that needs them."""
        if isinstance(value.kind, Array):
            if value.kind.empty:
                return []
            return [value.code, *(value.sizes[axis] for axis in value.kind.run_time)]
        return [value.code]

    def _indirect(self, node: ast.Call, called: Value) -> Value:
        kind = called.kind
        if not isinstance(kind, Pointer):
            raise self.fault(node, f"{ast.unparse(node.func)} is not a function")
        if len(node.args) != len(kind.arguments):
            raise self.fault(node, f"{ast.unparse(node.func)} takes {len(kind.arguments)} arguments")
        self.writing.add(node)
        codes, values = [], [self.value(argument) for argument in node.args]
        for value, wanted in zip(values, kind.arguments, strict=True):
            self.written |= value.roots
            codes += self._handed_over(self._fitted(node, value, wanted))
        if self.translator.pointers_need_memory:
            self.needs_memory = True
            codes.append("memory")
        return Value(kind.result, f"{called.at(PRIMARY)}({', '.join(codes)})").with_reads(called, *_there(values))

    def _fitted(self, node: ast.AST, value: Value, wanted: Kind) -> Value:
        """An argument in the type that a function pointer asks for: lengths that are known become sizes at run time."""
        if value.kind == wanted:
            return value
        if isinstance(value.kind, Array) and isinstance(wanted, Array) and value.kind.element == wanted.element:
            shapes = list(zip(value.kind.shape, wanted.shape, strict=False))
            if len(value.kind.shape) == len(wanted.shape) and all(w in (None, ANY, v) for v, w in shapes):
                return replace(value, kind=wanted)
        kind = joined(value.kind, wanted)
        if kind != wanted:
            raise self.fault(node, f"an argument of {ast.unparse(node)} has another type than it is declared with")
        return self.numbers.converted(value, wanted)

    def _grouped(self, node: ast.Call, kind: Any) -> Value:
        """A named tuple: a struct on the stack; its arrays are pointers."""
        names = list(kind._fields)
        if len(node.args) != len(names):
            raise self.fault(node, f"{ast.unparse(node.func)} has {len(names)} fields")
        values = []
        for name, argument in zip(names, node.args, strict=True):
            values.append(self._field_value(f"{snake(kind.__name__.rpartition('.')[2])}_{name}", argument))
        group = self.translator.group(
            kind.__name__.rpartition(".")[2], tuple(zip(names, (v.kind for v in values), strict=True))
        )
        for value in values:
            self.written |= value.roots
        codes = [code for value in values for code in self._handed_over(value)]
        return self.made(group, "{" + ", ".join(codes) + "}", _there(values))

    @abstractmethod
    def made(self, group: Group, members: str, values: list[Value]) -> Value:
        """A struct that is made before the statement that is being translated."""

    def _field_value(self, label: str, node: ast.expr) -> Value:
        fresh = self.allocated(label, node)
        return self.value(node) if fresh is None else fresh

    def allocated(self, label: str, node: ast.expr) -> Value | None:
        """An array that the expression allocates, as a part of the memory; None if it allocates nothing."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return None
        if ast.unparse(node.func) not in ("np.empty", "np.zeros"):
            return None
        parts = node.args[0].elts if isinstance(node.args[0], ast.Tuple) else [node.args[0]]
        shape = tuple(self.whole_number(part).constant for part in parts)
        if None in shape:
            raise self.fault(node, f"the size of {ast.unparse(node)} is not known before run time")
        element: Any = REAL
        if len(node.args) > 1:
            element = self._element(node)
        kind = Array(element, tuple(int(length) for length in shape if length is not None))
        self.needs_memory = True
        code = f"memory->{self.translator.reserve(self.function, label, kind)}"
        if node.func.attr == "zeros":
            self.clear(code, kind)
        return Value(kind, code, sizes=tuple(str(length) for length in kind.shape))

    def _element(self, node: ast.Call) -> Kind:
        wanted = self.thing(node.args[1])
        if wanted in (np.int64, int):
            return INT
        if isinstance(wanted, np.dtype):
            name = self.translator.record_name(wanted)
            if name is not None:
                return Record(name)
        raise self.fault(node, f"the translator does not know arrays of {ast.unparse(node.args[1])}")

    @abstractmethod
    def clear(self, code: str, kind: Array) -> None:
        """Set an array to zero, before the statement that is being translated."""

    # ------------------------------------------------------------ functions of numbers

    def _builtin(self, node: ast.Call, called: Any) -> Value:
        name = getattr(called, "__name__", "")
        kind = _CONVERSIONS.get(called) if isinstance(called, type) else None
        own = any(getattr(module, name, None) is called for module in (builtins, math, np))
        if kind is None and not (own and name in (*_OF_NUMBERS, *_TESTS, *LIBRARY)):
            raise self.fault(node, f"the translator does not know the function {ast.unparse(node.func)}")
        values = [self.number(argument) for argument in node.args]
        if len(values) < 2 if name in ("min", "max") else len(values) != (2 if name in _OF_TWO else 1):
            raise self.fault(node, f"the translator does not know {ast.unparse(node)} with {len(values)} arguments")
        if kind is not None:
            return self._converted(kind, values[0])
        if name == "abs":
            return self._absolute(node, values[0])
        if name in _OF_NUMBERS:
            return reduce(lambda a, b: self._extreme(name, a, b), values)
        reals = [self.numbers.as_real(value) for value in values]
        if name in _TESTS:
            return Value(BOOL, f"{name}({reals[0].code})").with_reads(*reals)
        code = f"{self.translator.library(LIBRARY[name])}({', '.join(value.code for value in reals)})"
        return Value(REAL, code, constant=_computed(name, reals)).with_reads(*reals)

    def _converted(self, kind: Kind, value: Value) -> Value:
        if kind == INT:
            return self._to_whole(value)
        if kind == REAL:
            return self.numbers.as_real(value)
        if value.constant is not None:
            return truth(bool(value.constant))
        return value if value.kind == BOOL else Value(BOOL, f"{value.at(SUM)} != 0", EQUALITY).with_reads(value)

    def _to_whole(self, value: Value) -> Value:
        if value.kind == REAL:
            if value.constant is not None and math.isfinite(value.constant):
                return whole(int(value.constant))
            return Value(INT, f"(int){value.at(UNARY)}", UNARY).with_reads(value)
        return replace(value, kind=INT) if value.kind == BOOL else value

    def _extreme(self, name: str, left: Value, right: Value) -> Value:
        kind = joined(left.kind, right.kind)
        if kind == REAL:
            left, right = self.numbers.as_real(left), self.numbers.as_real(right)
        elif left.constant is not None and right.constant is not None:
            return whole((max if name == "max" else min)(left.constant, right.constant))
        helper = self.translator.helper(name if kind == REAL else f"{name}_int")
        return Value(REAL if kind == REAL else INT, f"{helper}({left.code}, {right.code})").with_reads(left, right)

    def _absolute(self, node: ast.AST, value: Value) -> Value:
        if value.kind == BITS:
            raise self.fault(node, "bits of a number have no size")
        if value.kind == REAL:
            return Value(REAL, f"{self.translator.library('fabs')}({value.code})").with_reads(value)
        return Value(INT, f"{self.translator.helper('max_int')}({value.code}, -{value.at(UNARY)})").with_reads(value)

    def _view(self, node: ast.Call) -> Value:
        """`np.float64(x).view(np.int64)` and back: the bits of a number in double precision."""
        assert isinstance(node.func, ast.Attribute)
        value, wanted = self.number(node.func.value), self.thing(node.args[0])
        if wanted is np.int64 and value.kind == REAL and not self.numbers.single:
            return Value(BITS, f"{self.translator.helper('bits_of')}({value.code})").with_reads(value)
        if wanted is np.float64 and value.kind == BITS:
            return Value(REAL, f"{self.translator.helper('number_of')}({value.code})").with_reads(value)
        raise self.fault(node, f"the translator does not know {ast.unparse(node)}")


def _computed(name: str, values: list[Value]) -> float | None:
    """The value of a function at known numbers, where there is one."""
    if not hasattr(math, name) or any(value.constant is None for value in values):
        return None
    try:
        return float(getattr(math, name)(*(value.constant for value in values)))
    except (ValueError, OverflowError):
        return None


def _there(values: list[Value]) -> list[Value]:
    """Values that exist in C: arrays without entries do not."""
    return [value for value in values if not (isinstance(value.kind, Array) and value.kind.empty)]
