"""Exported models for these tests: compiled quickly, once, into a cache of their own."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symdual
from symdual.backends.c import backend, compilation, compilers, source
from symdual.backends.c.backend import library_text
from symdual.backends.c.library import Library
from symdual.backends.c.program import Program
from symdual.derive.derivation import derive
from symdual.emit.package import package
from symdual.runtime.loading import LoadedPackage
from symdual.spec.loading import load_model_file

from ..goldens import ROOT as ROOT
from ..goldens import model_file

STRICT = ("-std=c99", *compilation.WARNINGS, "-Werror")
FAST = compilation.fast_flags(few=True)


@pytest.fixture(scope="module", autouse=True)
def quicker_builds(shared: Path) -> Iterator[None]:
    """Compile with sums in their order, and keep nothing for the user or for tests of other folders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compilation, "FAST", ("-O1",))
        patch.setattr(backend, "_BACKENDS", {})
        patch.setenv("XDG_CACHE_HOME", str(shared / "libraries"))
        yield


@pytest.fixture(scope="session")
def c_compiler() -> compilers.Command:
    """The C compiler; without one the test is skipped."""
    try:
        return compilers.compiler()
    except compilers.NoCompiler as failure:
        pytest.skip(str(failure))


@pytest.fixture(scope="session")
def through_c(c_compiler: str, package_of: Callable[[str], Path]) -> Callable[[str], LoadedPackage]:
    """Return a function that loads the package of a model of the project through C."""
    return lambda name: symdual.load(package_of(name), backend="c")


@cache
def files_of(name: str) -> Mapping[str, bytes]:
    """The files of the package of a model of the project, which need not be on the disk."""
    return package(derive(load_model_file(model_file(name)).specifications[name])).files


@pytest.fixture
def compiled_probe(c_compiler: str) -> Callable[[str, dict[str, Any]], tuple[object, object]]:
    """Return a function that runs a module in Python and in C; it is put beside the modules of the toy package."""

    def run(text: str, arguments: dict[str, Any]) -> tuple[object, object]:
        program = Program({**files_of("toy"), "probe.py": f"import math\nimport numpy as np\n{text}".encode()})
        work = source.translated(program, "toy", "probing", further={"probe": arguments})
        library = Library(work, compilation.shared_library(library_text(work), (*STRICT, "-O1")))
        units = {u.function.name: u for u in work.units if u.function.module == "probe"}
        compiled = type("Compiled", (), {name: staticmethod(library.function(unit)) for name, unit in units.items()})
        return program.module("probe"), compiled

    return run


def other_compiler(name: str) -> str:
    """A compiler that need not be there; without it the test is skipped with a sentence."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def close(got: object, exact: object, tolerance: float = 1e-12) -> bool:
    """Whether two arrays agree to a share of the largest number."""
    a, b = np.asarray(got, dtype=float), np.asarray(exact, dtype=float)
    if not np.array_equal(np.isnan(a), np.isnan(b)) or not np.array_equal(np.isinf(a), np.isinf(b)):
        return False
    known = np.isfinite(b)
    return bool(
        np.max(np.abs(a[known] - b[known]), initial=0.0) <= tolerance * np.max(np.abs(b[known]), initial=1e-300)
    )
