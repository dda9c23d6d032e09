"""The statements of a kernel as small tuples of strings: all that the template sees."""

from __future__ import annotations

from typing import NamedTuple

from symdual.derive.pieces import Limits

OF_A_LINE = Limits(
    terms=40, depth=30
)  #: of the expression of a statement; Python's parser allows some 100 brackets within each other


class Line(NamedTuple):
    """One statement: `target operator value`."""

    target: str
    operator: str
    value: str

    kind: str = "line"


class Loop(NamedTuple):
    """A loop over the features of a family, with a comment that says whose."""

    comment: str
    length: int
    lines: tuple[Line, ...]

    kind: str = "loop"


MERGED = 40  #: lines of a kernel that is short


class Call(NamedTuple):
    """A call of a block function, such as `_sincos_32(work, 0, 32, 64)`."""

    code: str

    kind: str = "call"


Step = Line | Loop | Call


class Kernel(NamedTuple):
    """The body of one generated function."""

    unpack: tuple[Line, ...]
    steps: tuple[Step, ...]
    work: int
    operations: str
    sincos_counts: tuple[int, ...]
    exp_counts: tuple[int, ...]
    helpers: frozenset[str]

    @property
    def merged(self) -> bool:
        """Whether it is best made part of its callers: short, with sine and cosine found one by one."""
        lines = sum(len(step.lines) if isinstance(step, Loop) else 1 for step in self.steps)
        return "_sincos" in self.helpers and lines <= MERGED
