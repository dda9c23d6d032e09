"""What a record is, and what a model may need of records."""

from __future__ import annotations

from typing import NamedTuple

ENTRIES_OF_NOISE = "max(NX * (NX + 1), NY * (NY + 1)) // 2"  #: on and below the diagonal of Q or R


class Field(NamedTuple):
    """One field: its name, its shape in terms of the size constants, and what it holds."""

    name: str
    shape: tuple[str, ...]
    meaning: str

    @property
    def declaration(self) -> str:
        """The entry of numpy's list of fields."""
        if not self.shape:
            return f'("{self.name}", "f8"),'
        sizes = ", ".join(self.shape) + ("," if len(self.shape) == 1 else "")
        return f'("{self.name}", "f8", ({sizes})),'


class Record(NamedTuple):
    """A record type with the lifetime of its content."""

    name: str
    lifetime: str
    fields: tuple[Field, ...]


class Needs(NamedTuple):
    """What a model asks of the records of its package."""

    square_root: bool
    second_order: bool
    outliers: bool
    refinement: str
    smooths: bool
    wide: int
    pairs: int
    processes: bool
    lowrank: bool
    transition: str
    diffusion: str
    observation_curved: bool
    has_expression_cost: bool
    signals: bool
    constrained: bool
    saturation: bool
    state_dependent_noise: bool
    discrete: bool
    likelihood: bool
    rivals: bool

    @property
    def exact(self) -> bool:
        """Whether slopes of the dual cost are no differences."""
        return not self.constrained and (self.lowrank or not self.processes)
