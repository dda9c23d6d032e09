"""The words in which arguments are declared: what the type checker knows of one, and beside it what compiled code must.

Numbers are `int`, `float` and `bool`. An array is `Annotated[Array, shaped("NX", "NU")]`, with the names of sizes as
the package has them; named tuples are classes of this room, whose fields are declared likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple, Protocol, get_type_hints

from numpy.typing import NDArray

from symdual.common.arrays import Array

Records = NDArray[Any]  # of a type that the module `records` of a package declares

RUN_TIME = ":"  # a length that is known at run time only
ANY = "*"  # a length that nobody asks for


class Shape(NamedTuple):
    """The lengths of an array: sums and products of names of sizes.

    A size is one of the module `records`, or of the module before a dot. `record` is the type of the entries, where
    these are no numbers; `padded` rows may have WIDTH entries, of which the surplus stays as it is.
    """

    sizes: tuple[str, ...]
    record: str = ""
    padded: bool = False

    def lengths(self, names: Mapping[str, Any]) -> tuple[int | None, ...]:
        """The lengths with the values of names; None for those that are not known before run time."""
        # the texts are those of this room
        return tuple(None if size in (RUN_TIME, ANY) else int(eval(size, {}, names)) for size in self.sizes)


def shaped(*sizes: str, of: str = "", padded: bool = False) -> Shape:
    """The shape of an array."""
    return Shape(sizes, of, padded)


class PointerTo(NamedTuple):
    """An address, or what has one: of a function with the arguments of this protocol's call."""

    function: type


#: of a field that compiled functions do not use
LEFT_TO_PYTHON = "left to Python"


class Pointer(Protocol):
    """A compiled function that other compiled code calls by its address."""

    @property
    def address(self) -> int:
        """The address."""


def declared(function: Callable[..., Any]) -> dict[str, Any]:
    """The names of the arguments of a declared function, in their order, with their types."""
    hints = get_type_hints(function, include_extras=True)
    return {name: kind for name, kind in hints.items() if name != "return"}


def shape_of(kind: Any) -> Shape | None:
    """The shape of an array."""
    return next((mark for mark in getattr(kind, "__metadata__", ()) if isinstance(mark, Shape)), None)


def target_of(kind: Any) -> type | None:
    """The protocol of the function that a pointer leads to."""
    marks = getattr(kind, "__metadata__", ())
    return next((mark.function for mark in marks if isinstance(mark, PointerTo)), None)


# vectors that many entries are given
State = Annotated[Array, shaped("NX")]
Input = Annotated[Array, shaped("NU")]
Measurement = Annotated[Array, shaped("NY")]
Augmented = Annotated[Array, shaped("NZ")]
Data = Annotated[Array, shaped("DATA")]
Work = Annotated[Array, shaped("WORK")]
AnyLength = Annotated[Array, shaped(ANY)]  # as a plant wants it, which may be of another package

# matrices
StateByState = Annotated[Array, shaped("NX", "NX")]
InputByState = Annotated[Array, shaped("NU", "NX")]
InputByInput = Annotated[Array, shaped("NU", "NU")]

# of a decision
Belief = Annotated[Records, shaped("1", of="GAUSSIAN")]
Candidates = Annotated[Array, shaped(RUN_TIME, "NU")]
Results = Annotated[Array, shaped(RUN_TIME, "dual_cost.OUT")]
Statistics = Annotated[Array, shaped("3")]
