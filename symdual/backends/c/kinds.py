"""The types of the translated code, and how each is written in C.

A record is a struct and is handed on as a pointer; an array is a pointer to its first entry, or to its first row where
all further sizes are known (`None` is a size that is known at run time only, and travels beside the pointer); a named
tuple is a struct of pointers and numbers. An array without entries does not exist in C: it is left out wherever it
would stand.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from symdual.backends.c.names import snake


@dataclass(frozen=True)
class Scalar:
    """A number, or nothing at all."""

    name: str


ANY = -1  # a length that nobody asks for

INT, BOOL, REAL, BITS, VOID = (Scalar(name) for name in ("int", "bool", "real", "bits", "void"))


@dataclass(frozen=True)
class Record:
    """A record of the module `records`, by the name of its type there."""

    name: str


@dataclass(frozen=True)
class Array:
    """An array in row-major order."""

    element: Scalar | Record
    shape: tuple[int | None, ...]

    @property
    def empty(self) -> bool:
        """Whether it is known to have no entries."""
        return 0 in self.shape

    @property
    def nested(self) -> bool:
        """Whether C knows the length of its rows."""
        return None not in self.shape[1:]

    @property
    def run_time(self) -> list[int]:
        """The axes whose length is known at run time only."""
        return [axis for axis, length in enumerate(self.shape) if length is None]


@dataclass(frozen=True)
class Several:
    """What a function returns that returns more than one number."""

    items: tuple[Kind, ...]


@dataclass(frozen=True)
class Group:
    """A named tuple."""

    name: str
    fields: tuple[tuple[str, Kind], ...]


@dataclass(frozen=True)
class Pointer:
    """A function that is handed over, by the name of its type."""

    name: str
    arguments: tuple[Kind, ...]
    result: Kind


Kind = Scalar | Record | Array | Several | Group | Pointer


def joined(left: Kind, right: Kind) -> Kind | None:
    """The type that holds both, or None."""
    if left == right:
        return left
    order = [BOOL, INT, REAL]
    if left in order and right in order:
        return order[max(order.index(left), order.index(right))]
    if isinstance(left, Several) and isinstance(right, Several) and len(left.items) == len(right.items):
        items = [joined(a, b) for a, b in zip(left.items, right.items, strict=True)]
        return None if None in items else Several(tuple(item for item in items if item is not None))
    return None


class Spelling:
    """How types are written with a prefix."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.real = f"{prefix}_real_t"

    def name(self, kind: Kind) -> str:
        """The name of a type that has one."""
        if isinstance(kind, Scalar):
            return {"real": self.real, "bits": "uint64_t", "void": "void"}.get(kind.name, "int")
        if isinstance(kind, Record):
            return f"{self.prefix}_{snake(kind.name)}"
        if isinstance(kind, Several):
            return f"{self.prefix}_" + "_".join(kind_letters(item) for item in kind.items)
        if isinstance(kind, Pointer):
            return f"{self.prefix}_{kind.name}_t"
        assert isinstance(kind, Group)
        return f"{self.prefix}_{snake(kind.name)}"

    def declared(self, kind: Kind, name: str, constant: bool = False, noalias: bool = False) -> str:
        """The declaration of a variable or an argument, but for the sizes that go with an array.

        A record that lies `noalias` overlaps with no other argument.
        """
        before = "const " if constant else ""
        if isinstance(kind, Array):
            element = self.name(kind.element)
            if kind.nested and len(kind.shape) > 1:
                return f"{element} (*{name})" + "".join(f"[{length}]" for length in kind.shape[1:])
            return f"{before}{element} *{name}"
        if isinstance(kind, Record):
            return f"{before}{self.name(kind)} *{'restrict ' if noalias else ''}{name}"
        if isinstance(kind, Group):
            return f"const {self.name(kind)} *{name}"
        return f"{self.name(kind)} {name}"

    def arguments(self, kind: Kind, name: str, constant: bool = False, noalias: bool = False) -> list[str]:
        """The declarations of an argument: none for an array without entries, sizes after an array that needs them."""
        if isinstance(kind, Array):
            if kind.empty:
                return []
            return [self.declared(kind, name, constant), *(f"int {name}_{axis}" for axis in kind.run_time)]
        return [self.declared(kind, name, constant, noalias)]

    def member(self, kind: Kind, name: str) -> list[str]:
        """The members of a struct for a field: arrays of known size themselves."""
        if isinstance(kind, Array):
            sizes = "".join(f"[{length}]" for length in kind.shape)
            return [] if kind.empty else [f"{self.name(kind.element)} {name}{sizes}"]
        return [f"{self.name(kind)} {name}"]


def kind_letters(kind: Kind) -> str:
    """A short name for the items of what a function returns."""
    assert isinstance(kind, Scalar)
    return kind.name


def entries(kind: Array) -> int:
    """The number of entries of an array of known size."""
    return prod(length for length in kind.shape if length is not None)
