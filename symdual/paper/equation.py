"""One printed formula as data: where it stands, its LaTeX, and a form that a machine can evaluate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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
    title: str
    line: int
    latex: str
    machine: str
    label: str = ""
    introduces: str = ""
    inline: bool = False
    restated: tuple[Restated, ...] = ()

    @classmethod
    def of(cls, name: str, table: Mapping[str, Any]) -> Equation:
        """A table of TOML, in which the line is called ``inline`` or ``display`` by how the formula stands there."""
        given = dict(table)
        inline = "inline" in given
        line, restated = given.pop("inline" if inline else "display"), given.pop("restated", ())
        return cls(name, line=line, inline=inline, restated=tuple(Restated(**other) for other in restated), **given)

    @property
    def section(self) -> str:
        """Where it stands, which its id begins with."""
        return self.id.rpartition(".")[0]
