"""What all tests share: packages without files, compiled packages made once, and fresh interpreters."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import textwrap
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symdual
from symdual import Model
from symdual.emit.package import Package, package
from symdual.runtime.loading import LoadedPackage

ROOT = Path(__file__).resolve().parent.parent


class Interpreted:
    """A package run by the interpreter, without numba and without files: fast where compiling is not the point."""

    def __init__(self, rendered: Package, kernels: str | None = None) -> None:
        self._module = _execute(rendered.files["__init__.py"].decode())
        self.source = rendered.files["kernels.py"].decode() if kernels is None else kernels
        self.kernels = _execute(self.source)
        with np.load(io.BytesIO(rendered.files["data.npz"])) as stored:
            self.numbers = {key: stored[key] for key in stored.files}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_module"], name)


def _execute(source: str) -> types.ModuleType:
    plain = source.replace("from numba import njit", "def njit(**options):\n    return lambda function: function\n")
    plain = plain.replace("from . import one_name\n\n__name__ = one_name(__spec__)\n", "")
    module = types.ModuleType("interpreted")
    exec(compile(plain, "interpreted", "exec"), module.__dict__)
    return module


@pytest.fixture(scope="session")
def interpreted() -> Callable[[Model], Interpreted]:
    """Return a function that runs a model's kernels without compiling them."""

    def run(model: Model, kernels: str | None = None) -> Interpreted:
        return Interpreted(package(model if model.name else model.named("anonymous")), kernels)

    return run


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Model], LoadedPackage]:
    """Return a function that generates and loads a named model; the same model is generated once."""
    folder = tmp_path_factory.mktemp("compiled")

    def run(model: Model) -> LoadedPackage:
        return symdual.load(symdual.generate(model, folder)[0].folder)

    return run


@pytest.fixture(scope="session")
def fresh_python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs code in a new interpreter, from a given folder, and returns what it printed."""

    def run(
        code: str, folder: Path, check: bool = True, with_symdual: bool = True, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "NUMBA"))}
        if with_symdual:
            clean["PYTHONPATH"] = str(ROOT)
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            cwd=folder,
            env=clean | environment,
            check=check,
            capture_output=True,
            text=True,
        )

    return run
