"""The examples in docstrings, all of them executed, on one compiled model."""

from __future__ import annotations

import doctest
import inspect
import io
import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import pytest
import sympy

import symdual
from symdual.runtime.loading import LoadedPackage

TOY = Path(symdual.__file__).parent / "paper/models/toy.py"
NEEDS = {"GymPlant": "gymnasium", "open_results": "pandas", "Labelled": "pandas", "plot": "matplotlib"}


def _own(module: ModuleType) -> list[str]:
    """The public functions and classes of a module that is itself public."""
    return list(module.__all__)


def _public() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in symdual.__all__:
        value = getattr(symdual, name)
        if name == "__version__":
            continue
        found[name] = value
        if isinstance(value, ModuleType):
            found |= {f"{name}.{own}": getattr(value, own) for own in _own(value)}
    found["Labelled"] = symdual.Simulation.__mro__[1]
    return found


PUBLIC = _public()


@pytest.fixture(scope="session")
def examples(tmp_path_factory: pytest.TempPathFactory, toy_package: LoadedPackage) -> dict[str, Any]:
    """What examples may use: `symdual`, `sympy`, `numpy`, the toy's file and problem, and a folder of their own."""
    folder = tmp_path_factory.mktemp("examples")
    symdual.controller(symdual.problem(toy_package), "dual")  # compiled before the cache is copied
    shutil.copytree(toy_package.folder, folder / "generated" / "toy")
    problem = symdual.problem(symdual.load(folder / "generated" / "toy"))
    return {"symdual": symdual, "sympy": sympy, "numpy": numpy, "toy": TOY, "problem": problem, "folder": folder}


@pytest.fixture
def in_folder(examples: dict[str, Any]) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(examples["folder"])
    yield
    os.chdir(before)


@pytest.mark.parametrize("name", list(PUBLIC))
def test_every_public_name_has_an_example(name: str) -> None:
    assert ">>> " in (inspect.getdoc(PUBLIC[name]) or ""), name


@pytest.mark.parametrize("name", list(PUBLIC))
def test_the_example_says_the_truth(name: str, examples: dict[str, Any], in_folder: None) -> None:
    for needed in {NEEDS[part] for part in name.split(".") if part in NEEDS}:
        pytest.importorskip(needed)
    value, said = PUBLIC[name], io.StringIO()
    finder = doctest.DocTestFinder(recurse=inspect.isclass(value), exclude_empty=True)
    runner = doctest.DocTestRunner()
    for own in finder.find(value, name, globs=dict(examples), module=inspect.getmodule(value)):
        if not isinstance(value, ModuleType) or own.name == name:
            with warnings.catch_warnings():
                runner.run(own, out=said.write)
    assert runner.failures == 0, said.getvalue()
