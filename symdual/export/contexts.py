"""What the templates of an exported controller are given: a frozen tuple whose fields are the keys of both.

A key that nobody supplies is found by the type checker, one that nobody uses by a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from symdual.export.setters import OptionSetter, Setter

Lines = tuple[str, ...]


class Choice(NamedTuple):
    """A controller: its name, its cost, and how its settings differ from those of the others."""

    name: str
    number: int
    cost: str
    searching: bool
    planning: bool
    stored: int
    settings: Mapping[str, str]

    @property
    def entry(self) -> str:
        """Its cost as a line of a table."""
        return f"{self.cost}, /* {self.name} */"


class DoubtNumbers(NamedTuple):
    """From where on something speaks against a decision (see `symdual.runtime.doubts`), in words and spelled in C."""

    rare: float
    far: float
    exponent: str  # the logarithm of `rare`, positive
    far_squared: str
    same: str  # share by which equal costs may differ
    apart: str  # share of a search beyond which inputs differ
    cost: int  # columns of the results of a candidate
    status: int
    fixed: bool  # whether unknowns stay where they are
    best: int | None  # place of the plan of a guarded input; None where nobody is guarded


class ControllerContext(NamedTuple):
    """A controller in C: its header and its file, with numbers spelled as these write them."""

    p: str  # prefix
    P: str
    real: str
    model: str
    scenario: str
    digest: str
    declarations: str  # of all translated functions
    definitions: str
    names: Lines  # what the entries of x, u, y and theta are
    z_places: tuple[tuple[str, int], ...]  # name and first entry in z of states and unknowns
    choices: tuple[Choice, ...]
    first: Choice  # that which decides until another is chosen
    # sizes
    size: int  # of the struct in bytes
    steps: int
    horizon: int
    window: int  # 0 for none
    times: int  # for which there is a cost
    inputs: int  # of these, those with an input
    candidates: int
    nx: int
    nu: int
    ny: int
    ntheta: int
    nz: int
    ndata: int
    signals: int
    # what the model has
    memory: bool
    processes: bool
    choosing: bool
    weighted: bool  # costs have terms with weights
    # parts
    scratch: Lines  # declarations
    workspace: Lines  # statements that fill a workspace
    table: Lines  # members of a table
    vectors: tuple[Setter, ...]
    matrices: tuple[Setter, ...]
    options: tuple[OptionSetter, ...]
    statuses: Mapping[str, int]  # of a step, by name
    chosen: Lines  # statements that set what a controller has of its own
    doubts: DoubtNumbers
    factorise: str  # what a new belief needs in square-root form, on a line of its own
    # numbers
    first_settings: str
    costs: Lines  # different ones
    places: tuple[int, ...]  # which of them each time has
    floors: Lines
    mean: Lines
    covariance: tuple[Lines, ...]  # rows, or one row with the variances if diagonal
    diagonal: bool
    loose: tuple[int, ...]  # 1 for what is known of functions
    # what depends on the precision
    slack: str
    fabs: str
    sqrt: str
