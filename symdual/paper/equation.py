"""One printed formula as data: where it stands, its LaTeX, and a form that a machine can evaluate."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Restated:
    """The same quantity as the paper prints it at another place."""

    line: int
    machine: str


@dataclass(frozen=True, slots=True)
class Equation:
    """A formula exactly as printed, slips included.

    ``latex`` is the source text and ``line`` the line of the paper's source at which it begins; ``machine`` is the same
    formula in the notation of `symdual.paper.machine`.  ``introduces`` names the symbol that the paper defines here, if
    any.  ``restated`` holds what the paper prints for the same quantity elsewhere.
    """

    id: str
    section: str
    title: str
    line: int
    latex: str
    machine: str
    label: str = ""
    introduces: str = ""
    inline: bool = False
    restated: tuple[Restated, ...] = ()
