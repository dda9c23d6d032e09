"""What a derivation hands to the judge: symbols with values, and what must come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Printed:
    """What the paper prints under another id, so that editing that line changes what is said about this one.

    As a symbol of a case it is the value of that line under the other symbols of the case and ``symbols``; with
    ``parameters`` it is a function of these names.
    """

    id: str
    parameters: tuple[str, ...] = ()
    symbols: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Computed:
    """What must come out follows from other printed lines: ``function`` of their values, by name."""

    function: Callable[..., Any]
    lines: Mapping[str, Printed]


@dataclass(frozen=True, slots=True)
class Form:
    """Only the size of the result is known: the formula is a definition, not a claim."""

    rows: int
    columns: int = 1


@dataclass(frozen=True, slots=True)
class Meant:
    """What the formulas further on take the symbol to mean; the formula is a definition and has to agree with them."""

    value: Any


@dataclass(frozen=True, slots=True)
class Single:
    """The printed values, one for each place at which the paper gives the symbol, must all be the same."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """A schedule (first, last, value) must give every time step from ``first`` to ``last`` once, with these values."""

    first: int
    last: int
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Supplies:
    """The printed constants must contain every name that is needed; ``words`` say what some of them mean."""

    needed: frozenset[str]
    words: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Within:
    """Each named number must lie in its range, (lowest, highest)."""

    ranges: Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Case:
    """One confrontation: the printed formula under ``symbols`` against ``expected``."""

    where: str
    symbols: Mapping[str, Any]
    expected: Any


Cases = Callable[[], Iterable[Case]]


@dataclass(frozen=True, slots=True)
class Convention:
    """A reading that the paper does not print but under which the formula may be right."""

    statement: str
    cases: Cases


@dataclass(frozen=True, slots=True)
class Correction:
    """The form that the derivation gives, in LaTeX and for the machine."""

    latex: str
    machine: str
    reason: str


@dataclass(frozen=True, slots=True)
class Derivation:
    """An independent derivation of one printed quantity.

    ``method`` says in one sentence how the right-hand side was obtained.  It never sees the transcription; where the
    statement is about other printed lines, its cases name them (`Printed`).
    """

    method: str
    cases: Cases
    conventions: tuple[Convention, ...] = ()
    correction: Correction | None = None
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Undecidable:
    """A statement that no computation here decides; ``reason`` says why."""

    reason: str
