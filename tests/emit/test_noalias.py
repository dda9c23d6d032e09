"""`options.NOALIAS` promises LLVM that no function meets the same number through two of its arguments and writes it.

Here every call of such a function is given copies of its arguments, each in memory of its own, and what it wrote is put
back afterwards: if the promise holds, nothing changes, to the last bit.
"""

from __future__ import annotations

import ctypes
import types
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symdual
from symdual.backends.c.program import Program
from symdual.checks import exported as checks
from symdual.checks.places import Place
from symdual.runtime.loading import LoadedPackage

#: every form of filter, transition and cost-to-go, one input and several, with slopes of plans and with processes
MODELS = ("toy", "rooted_mixing", "rough", "iterated", "pushed_again")
MORE = ("mixing", "vehicle", "drift")


class Alone(Program):
    """A package in plain Python whose functions with `NOALIAS` work on copies, one for each argument."""

    calls = 0

    def _options(self) -> types.ModuleType:
        module = super()._options()
        for name in ("NOALIAS", "ORDERED"):
            setattr(module, name, {**getattr(module, name), "apart": True})
        return module

    @property
    def _numba(self) -> types.ModuleType:  # type: ignore[override]
        numba = super()._numba
        usual = numba.njit

        def njit(**options: Any) -> Callable[[Any], Any]:
            keep = usual(**options)
            return lambda function: self._alone(function) if options.get("apart") else keep(function)

        numba.njit = njit
        return numba

    def _alone(self, function: Any) -> Any:
        @wraps(function)
        def called(*arguments: Any) -> Any:
            self.calls += 1
            copies = [_copy(one) for one in arguments]
            before = [_copy(one) for one in copies]
            result = function(*copies)
            for target, copy, old in zip(arguments, copies, before, strict=True):
                if isinstance(target, np.ndarray | np.void):
                    here, now, then = (_bytes(one) for one in (target, copy, old))
                    here[now != then] = now[now != then]
            return result

        return called


def _copy(value: Any) -> Any:
    if isinstance(value, np.void):
        own = np.empty(1, value.dtype)
        own[0] = value
        return own[0]
    return np.ascontiguousarray(value).copy() if isinstance(value, np.ndarray) else value


def _bytes(value: Any) -> np.ndarray:
    """The memory of an array, or of a record by way of one of its arrays."""
    if isinstance(value, np.ndarray):
        assert value.flags.c_contiguous
        return value.reshape(-1).view(np.uint8)
    name = next(name for name, (kind, _) in value.dtype.fields.items() if kind.shape and kind.itemsize)
    start = value[name].ctypes.data - value.dtype.fields[name][1]
    return np.frombuffer((ctypes.c_uint8 * value.dtype.itemsize).from_address(start), np.uint8)


class InPython:
    """A loaded package with the modules of a program in the place of its own."""

    def __init__(self, package: LoadedPackage, program: Program) -> None:
        self._package, self._program = package, program

    def __getattr__(self, name: str) -> Any:
        return self._program.module(name) if self._program.has(name) else getattr(self._package, name)


def numbers(package: LoadedPackage, program: Program) -> dict[str, np.ndarray]:
    """What filter and planning of a package compute."""
    python: Any = InPython(package, program)
    sizes = package.NX, package.NU, package.NTHETA
    place = Place(*(np.full(n, 0.4) for n in sizes), *(np.full(n, 0.3) for n in sizes), horizon=3)
    sample = checks._Sample(python, place, np.random.default_rng(1))
    calls = {
        (module, name): getattr(getattr(python, module), name)
        for module, name in checks._calls(package)
        if name != "cost_pointer"
    }
    return dict([*sample._filter(calls), *sample._planning(calls)])


@pytest.mark.parametrize("name", [*MODELS, *(pytest.param(name, marks=pytest.mark.soak) for name in MORE)])
def test_nothing_is_met_twice_and_written(
    name: str, package_of: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "HORIZON", 3)
    package = symdual.load(package_of(name), backend="numba")
    alone = Alone(package.files)
    apart = numbers(package, alone)
    assert alone.calls > 100
    for what, exact in numbers(package, Program(package.files)).items():
        np.testing.assert_array_equal(apart[what], exact, err_msg=what)


SHIFT = b"""
from numba import njit
from .options import NOALIAS


@njit(**NOALIAS)
def shift(a, b):
    for i in range(2):
        a[i + 1] = b[i]
"""


def test_what_is_met_twice_is_seen() -> None:
    files: Mapping[str, bytes] = {"twice.py": SHIFT, "options.py": b"", "__init__.py": b""}
    plain, alone = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0])
    Program(files).module("twice").shift(plain, plain)
    Alone(files).module("twice").shift(alone, alone)
    assert plain.tolist() == [1.0, 1.0, 1.0] and alone.tolist() == [1.0, 1.0, 2.0]
