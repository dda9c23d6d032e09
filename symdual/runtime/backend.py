"""What a package asks of a backend: something that makes its modules, or some of them, another way than numba does."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Protocol

from symdual.common.errors import SymdualError


class BackendFailure(SymdualError):
    """Something that a backend could not translate, compile or load."""


class Backend(Protocol):
    """Modules of a package that are not made by numba."""

    @property
    def make(self) -> MakeBackend:
        """What makes such a backend of another package; it can be pickled."""

    def offers(self, module: str) -> bool:
        """Whether it has a module of this name."""

    def module(self, name: str) -> types.ModuleType:
        """A module with compiled functions; to look one up, or to call it, may raise `BackendFailure`."""

    @property
    def given_up(self) -> bool:
        """Whether it offers nothing any more, because of a failure."""

    def give_up(self, failure: BackendFailure) -> bool:
        """Leave everything to numba from now on, and say why; False if it was asked for, and may not."""


#: Makes a backend of the name, the digest and the files of a package.
MakeBackend = Callable[[str, str, Mapping[str, bytes]], Backend]
