"""`load`: a generated package, compiled by the machine's C compiler, or by numba where there is none."""

from __future__ import annotations

from pathlib import Path

from symdual.backends.c.compilation import quickest
from symdual.common.errors import SymdualError, did_you_mean
from symdual.runtime import loading
from symdual.runtime.loading import LoadedPackage

BACKENDS = ("numba", "c")


def load(name: str | Path, backend: str | None = None) -> LoadedPackage:
    """Load a generated package by its name or folder.

    A name is looked up in `generated/` of the current folder, then in the user's cache folder, then as a folder. The
    files are verified against the manifest: a package that was edited by hand or written by another version is refused.
    A package whose model file was edited since is loaded as it is, with a warning.

    With backend "c" its functions are translated to C and compiled by the machine's C compiler, which takes seconds;
    with "numba" they are numba's, which takes longer and needs no compiler. By default it is C where a compiler works,
    and numba takes over with a warning where C fails later.
    """
    if backend is None:
        package = loading.load(name)
        return preferring_c(package) if quickest() == "c" else package
    if backend not in BACKENDS:
        raise SymdualError(f'there is no backend "{backend}"{did_you_mean(backend, BACKENDS)}; known: numba, c')
    package = loading.load(name)
    return package if backend == "numba" else in_c(package)


def in_c(package: LoadedPackage) -> LoadedPackage:
    """The same package through C."""
    from symdual.backends.c.backend import backend_of

    return package.through(backend_of)


def preferring_c(package: LoadedPackage) -> LoadedPackage:
    """The same package through C as long as that works."""
    from symdual.backends.c.backend import preferred_of

    return package.through(preferred_of)
