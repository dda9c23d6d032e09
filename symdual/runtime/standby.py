"""numba takes over where C fails: everything of a package at once, because their function pointers do not mix."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from symdual.runtime.backend import BackendFailure
from symdual.runtime.loading import LoadedPackage

T = TypeVar("T")


def with_standby(packages: tuple[LoadedPackage, ...], build: Callable[[], T]) -> T:
    """What `build` makes with packages; where C fails meanwhile, all of it once more, by numba.

    Whoever asked for C hears of the failure instead.
    """
    try:
        return build()
    except BackendFailure as failure:
        others = [package.c for package in packages if package.c is not None]
        if not all(backend.give_up(failure) for backend in others):
            raise
    return build()
