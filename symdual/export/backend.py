"""A generated package through C: the same modules, with the compiled functions of a shared library in them.

What a module does in Python (making records, choosing a form) is the package's own code, run without numba. Modules
that no controller needs (`likelihood`, `process`) are those of numba.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from symdual.export import compilation, source
from symdual.export.library import Library
from symdual.export.program import Program
from symdual.export.translator import Translator

PREFIX = "package"
_NUMBAS = ("likelihood", "process", "options")


class Address(NamedTuple):
    """A function pointer, as the package hands it over."""

    address: int


_BACKENDS: dict[str, CBackend] = {}


def backend_of(name: str, digest: str, files: Mapping[str, bytes]) -> CBackend:
    """The backend of a package; the same code is translated once in a process."""
    if digest not in _BACKENDS:
        _BACKENDS[digest] = CBackend(name, files)
    return _BACKENDS[digest]


class CBackend:
    """The modules of one package in C."""

    name = "c"

    def __init__(self, name: str, files: Mapping[str, bytes]) -> None:
        self._name, self._program = name, Program(files)
        self._modules: dict[str, types.ModuleType] = {}

    def offers(self, module: str) -> bool:
        """Whether a module has a form in C, or needs none."""
        return module not in _NUMBAS

    @cached_property
    def work(self) -> Translator:
        """The translation."""
        return source.translated(self._program, self._name, PREFIX, closed_loop=True)

    @cached_property
    def library(self) -> Library:
        """The compiled translation."""
        return Library(self.work, compilation.shared_library(library_text(self.work), compilation.FAST))

    def module(self, name: str) -> types.ModuleType:
        """A module with compiled functions."""
        if name not in self._modules:
            self._modules[name] = self._made(name)
        return self._modules[name]

    def _made(self, name: str) -> types.ModuleType:
        if not any(function.options.entry for function in self._program.functions(name)):
            return self._program.module(name)  # nothing in it is compiled
        module, work = self._program.module(name), self.work
        for unit in work.units:
            if unit.public and unit.function.module == name and unit.function.options.entry:
                setattr(module, unit.function.name, self.library.function(unit))
        if name == "decision":
            self._pointers(module)
        if name == "plant":
            for function in ("move", "measure"):
                setattr(module, function, Address(self.library.address(f"{PREFIX}_plant_{function}")))
        if name == "episode":
            self._episodes(module)
        return module

    def _pointers(self, module: types.ModuleType) -> None:
        known = {kind: Address(self.library.address(source.spelled_cost(self.work, kind))) for kind in module._COSTS}
        module.cost_pointer = known.__getitem__  # type: ignore[attr-defined]

    def _episodes(self, module: types.ModuleType) -> None:
        unit = next(u for u in self.work.units if u.function.module == "episode" and u.function.name == "episode")
        module.episode = self.library.function(unit)  # type: ignore[attr-defined]
        module.claim = _Claim()  # type: ignore[attr-defined]

        def episodes(threads: int, *rest: Any) -> None:
            counter = np.zeros(1, np.int64)
            _side_by_side(threads, lambda: module.work_off(counter, *rest))

        module.episodes = episodes  # type: ignore[attr-defined]


class _Claim:
    """`options.claim` among threads of Python."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __call__(self, counter: Any) -> int:
        with self._lock:
            counter[0] += 1
            return int(counter[0]) - 1


def _side_by_side(threads: int, work: Callable[[], None]) -> None:
    """Run the same work in several threads; C runs without Python's lock. The first fault is raised."""
    faults: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as fault:  # raised below
            faults.append(fault)

    running = [threading.Thread(target=guarded) for _ in range(threads - 1)]
    for thread in running:
        thread.start()
    guarded()
    for thread in running:
        thread.join()
    if faults:
        raise faults[0]


def library_text(work: Translator) -> str:
    """Everything in one C file."""
    return "\n\n".join(
        ["#include <math.h>\n#include <stdint.h>", source.declarations(work), source.definitions(work), ""]
    )
