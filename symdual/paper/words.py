"""Non-commutative polynomials: block algebra with letters in place of numbers.

A polynomial is a sum of words; a word is a product of letters.  A letter may be symmetric, may have a transpose of its
own, and may have a formal inverse, which cancels against the letter beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True, order=True)
class Letter:
    """One non-commuting symbol."""

    name: str
    symmetric: bool = False
    transposed: bool = False
    inverted: bool = False

    def transpose(self) -> Letter:
        """The letter of the transposed matrix."""
        if self.symmetric:
            return self
        return Letter(self.name, False, not self.transposed, self.inverted)

    def invert(self) -> Letter:
        """The letter of the inverse matrix."""
        return Letter(self.name, self.symmetric, self.transposed, not self.inverted)

    def __str__(self) -> str:
        return self.name + ("'" if self.transposed else "") + ("^-1" if self.inverted else "")


def _reduced(word: Iterable[Letter]) -> tuple[Letter, ...]:
    out: list[Letter] = []
    for letter in word:
        if out and out[-1] == letter.invert():
            out.pop()
        else:
            out.append(letter)
    return tuple(out)


class Polynomial:
    """A sum of words with rational coefficients; the empty word is the identity."""

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[tuple[Letter, ...], Fraction]) -> None:
        self.terms = {word: value for word, value in terms.items() if value}

    @property
    def T(self) -> Polynomial:
        """The transpose: every word reversed, every letter transposed."""
        return Polynomial({tuple(x.transpose() for x in reversed(w)): c for w, c in self.terms.items()})

    def __add__(self, other: Polynomial) -> Polynomial:
        total = dict(self.terms)
        for word, value in other.terms.items():
            total[word] = total.get(word, Fraction(0)) + value
        return Polynomial(total)

    def __neg__(self) -> Polynomial:
        return Polynomial({word: -value for word, value in self.terms.items()})

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + (-other)

    def __matmul__(self, other: Polynomial) -> Polynomial:
        total: dict[tuple[Letter, ...], Fraction] = {}
        for left, a in self.terms.items():
            for right, b in other.terms.items():
                word = _reduced((*left, *right))
                total[word] = total.get(word, Fraction(0)) + a * b
        return Polynomial(total)

    def __mul__(self, factor: int) -> Polynomial:
        return Polynomial({word: value * factor for word, value in self.terms.items()})

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        parts = []
        for word, value in sorted(self.terms.items()):
            product = " ".join(map(str, word)) or "I"
            parts.append(("+ " if value > 0 else "- ") + ("" if abs(value) == 1 else f"{abs(value)} ") + product)
        return " ".join(parts).removeprefix("+ ")

    __repr__ = __str__


def letter(name: str, *, symmetric: bool = False) -> Polynomial:
    """The polynomial that is one letter."""
    return Polynomial({(Letter(name, symmetric),): Fraction(1)})


def unit() -> Polynomial:
    """The identity: the empty word."""
    return Polynomial({(): Fraction(1)})


def nothing() -> Polynomial:
    """The zero polynomial."""
    return Polynomial({})


def invert(polynomial: Polynomial) -> Polynomial:
    """The formal inverse of a single word."""
    if len(polynomial.terms) != 1:
        raise ValueError(f"only a single word has a formal inverse, not {polynomial}")
    ((word, value),) = polynomial.terms.items()
    return Polynomial({tuple(x.invert() for x in reversed(word)): 1 / value})


class Blocks:
    """A matrix of polynomials."""

    __slots__ = ("rows",)

    def __init__(self, rows: Sequence[Sequence[Polynomial]]) -> None:
        self.rows = tuple(tuple(row) for row in rows)

    @property
    def shape(self) -> tuple[int, int]:
        """Block rows and block columns."""
        return len(self.rows), len(self.rows[0])

    def __matmul__(self, other: Blocks) -> Polynomial | Blocks:
        if self.shape[1] != other.shape[0]:
            raise ValueError(f"{self.shape} blocks times {other.shape} blocks")
        return blocks([[self._entry(row, other, j) for j in range(other.shape[1])] for row in self.rows])

    @staticmethod
    def _entry(row: Sequence[Polynomial], other: Blocks, column: int) -> Polynomial:
        total = nothing()
        for left, right in zip(row, other.rows, strict=True):
            total = total + left @ right[column]
        return total

    def __add__(self, other: Blocks) -> Blocks:
        pairs = zip(self.rows, other.rows, strict=True)
        return Blocks([[a + b for a, b in zip(left, right, strict=True)] for left, right in pairs])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Blocks) and self.rows == other.rows

    def __hash__(self) -> int:
        return hash(self.rows)

    def __str__(self) -> str:
        return "[" + "; ".join(", ".join(map(str, row)) for row in self.rows) + "]"

    __repr__ = __str__


def blocks(rows: Sequence[Sequence[Polynomial]]) -> Polynomial | Blocks:
    """A matrix of polynomials; a single block is the polynomial itself."""
    if len(rows) == 1 and len(rows[0]) == 1:
        return rows[0][0]
    return Blocks(rows)
