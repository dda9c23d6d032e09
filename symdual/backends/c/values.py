"""Expressions of C on their way: text, type, and what is known of them while translating."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from symdual.backends.c.kinds import BOOL, INT, REAL, Kind, Spelling
from symdual.common.errors import SymdualError

# how tightly operators bind
PRIMARY, UNARY, PRODUCT, SUM, SHIFT, RELATION, EQUALITY = 15, 14, 13, 12, 11, 10, 9
MASK, FLIP, BOTH, EITHER, CHOICE = 8, 7, 5, 4, 3

DIGITS_OF_FLOAT = math.log(2.0**-23) / math.log(2.0**-52)  # for each digit of double
SMALL = 1e-6  # numbers up to this one in the recursions are tolerances
TINY = 1e-100  # and these guard against underflow
RANGE_OF_FLOAT = math.log(2.0**-126) / math.log(2.0**-1022)


class Untranslatable(SymdualError):
    """A part of a package that has no translation to C, with its file and line."""


@dataclass(frozen=True)
class Value:
    """An expression; of an array or a record, the expression of a pointer to it.

    `constant` is its value where that is known, `sizes` are the lengths of an array as expressions, `roots` the names
    of the variables through which it was reached, `reads` all names in it.
    """

    kind: Kind
    code: str
    level: int = PRIMARY
    constant: Any = None
    sizes: tuple[str, ...] = ()
    roots: frozenset[str] = frozenset()
    reads: frozenset[str] = frozenset()

    def at(self, level: int) -> str:
        """The text, in parentheses where it binds less tightly than `level`."""
        return self.code if self.level >= level else f"({self.code})"

    def with_reads(self, *others: Value) -> Value:
        """The same with the names in others."""
        reads = self.reads.union(*(other.reads for other in others))
        return Value(self.kind, self.code, self.level, self.constant, self.sizes, self.roots, reads)


class Numbers:
    """How numbers are written for a type of reals."""

    def __init__(self, real: str, spelling: Spelling) -> None:
        self.single = real == "float"
        self._spelling = spelling

    def real(self, number: float) -> Value:
        """A real number as a literal."""
        upper = self._spelling.prefix.upper()
        if math.isnan(number):
            return Value(REAL, f"{upper}_NAN", constant=number)
        if math.isinf(number):
            code = f"{upper}_INFINITY" if number > 0 else f"-{upper}_INFINITY"
            return Value(REAL, code, PRIMARY if number > 0 else UNARY, constant=number)
        text = repr(float(number)) + ("f" if self.single else "")
        return Value(REAL, text, PRIMARY if math.copysign(1.0, number) > 0 else UNARY, constant=float(number))

    def tolerance(self, number: float) -> float:
        """What becomes of a number in the recursions: in single precision a tolerance keeps its share of the digits."""
        size = abs(number)
        if not self.single or size == 0.0 or size > SMALL or not math.isfinite(size):
            return number
        power = RANGE_OF_FLOAT if size < TINY else DIGITS_OF_FLOAT
        return math.copysign(float(f"{size**power:.3g}"), number)

    def as_real(self, value: Value) -> Value:
        """A number as a real one."""
        if value.kind == REAL:
            return value
        if value.constant is not None and value.code.lstrip("-").isdigit():
            return self.real(float(value.constant))
        constant = None if value.constant is None else float(value.constant)
        return replace(
            value, kind=REAL, code=f"({self._spelling.real}){value.at(UNARY)}", level=UNARY, constant=constant
        )

    def converted(self, value: Value, kind: Kind) -> Value:
        """A number as another type that holds it."""
        if kind == REAL:
            return self.as_real(value)
        if kind == INT and value.kind == BOOL:
            return replace(value, kind=INT)
        return value


def whole(number: int) -> Value:
    """A whole number as a literal."""
    return Value(INT, str(number), PRIMARY if number >= 0 else UNARY, constant=int(number))


def truth(flag: bool) -> Value:
    """A truth value as a literal."""
    return Value(BOOL, str(int(flag)), constant=bool(flag))
