"""Arrays whose last axis has the user's names: `states["position"]`. In everything else they are numpy's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symdual.common.display import first_few, shown
from symdual.common.errors import SymdualError, did_you_mean


def place_of(names: Sequence[str], name: str, what: str) -> int | list[int]:
    """The place of a name among those of an axis; the name of a family stands for the places of all its weights.

    The weights of a family `v` are called `v[0]`, or `v_sin[0]` where it has several kinds of them. `what` is told of
    in the sentence for a name that is not there.
    """
    if name in names:
        return list(names).index(name)
    weight = re.compile(rf"{re.escape(name)}(_[^_\[\]]+)?\[\d+\]")
    weights = [place for place, own in enumerate(names) if weight.fullmatch(own)]
    if weights:
        return weights
    raise SymdualError(f'{what} nothing of "{name}", only of {first_few(names)}{did_you_mean(name, names)}')


class NamedArray(NDArray[Any]):
    """An array with names along its last axis; rows of it keep them, what is computed from it is a plain array.

    >>> u = symdual.controller(problem, "ce").act()
    >>> bool(u["u"] == u[0]), type(u + 1.0).__name__
    (True, 'ndarray')
    """

    names: tuple[str, ...]

    def __array_finalize__(self, source: Any) -> None:
        """A view that numpy makes by itself has no names: its last axis may be another one."""
        self.names = ()

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """What functions of numpy make of it is plain."""
        return np.asarray(array)[()]

    def __getitem__(self, key: Any) -> Any:
        """The values of a name, or what numpy would give."""
        values = np.asarray(self)
        if isinstance(key, str):
            if not self.names:
                raise SymdualError(f'this array has no names any more: ask for "{key}" before computing with it')
            return values[..., place_of(self.names, key, "this array says")][()]
        found = values[key]
        keeps = self.ndim > 1 and (isinstance(key, slice) or np.ndim(key) == 0) and np.ndim(found) > 0
        return named(found, self.names) if keeps and not isinstance(key, tuple) else found

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __reduce__(self) -> Any:
        """Copies and pickles keep the names."""
        return named, (np.asarray(self), self.names)

    def __deepcopy__(self, memo: Any) -> NamedArray:
        return named(np.array(self), self.names)

    def __copy__(self) -> NamedArray:
        return named(np.array(self), self.names)

    def __repr__(self) -> str:
        plain = np.array_repr(np.asarray(self))
        return f"{plain[:-1]}, names={', '.join(self.names)})" if self.names else plain

    def _repr_html_(self) -> str:
        """The first rows under their names, for notebooks."""
        return str(shown("an array in a notebook", self))


def named(values: NDArray[Any], names: Sequence[str]) -> NamedArray:
    """The same numbers with names along the last axis, which has as many entries."""
    array: NamedArray = np.asarray(values).view(NamedArray)
    array.names = tuple(names)
    return array
