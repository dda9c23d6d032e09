"""A generated package through C: the same modules, with the compiled functions of a shared library in them.

What a module does in Python (making records, choosing a form) is the package's own code, run without numba. Modules
that no controller needs (`likelihood`, `process`) are those of numba.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from symdual.backends.c import compilation, source
from symdual.backends.c.library import Library
from symdual.backends.c.program import Function, Program
from symdual.backends.c.translator import Translator
from symdual.backends.c.values import Untranslatable
from symdual.common.errors import SymdualError, warn_once
from symdual.runtime.backend import BackendFailure, MakeBackend
from symdual.runtime.forking import MAKING, Lock

PREFIX = "package"
FEW = 8  # states and unknowns, over which loops are short
#: modules that are compiled by themselves, as is every cost; all else is compiled together
_PARTS = {"kernels": "kernels", "calls": "calls", "plant": "episode", "episode": "episode"}
_BY_THEMSELVES = ("kernels", "calls")  # whose functions are handed no pointers, so that numba's may take their place
_NUMBAS = ("likelihood", "process", "options")


class Pointer:
    """A function pointer, as the package hands it over; who asks for its address waits for the compiler."""

    def __init__(self, find: Callable[[], int]) -> None:
        self._find = find
        self._address: int | None = None

    @property
    def address(self) -> int:
        """The address."""
        if self._address is None:
            self._address = self._find()
        return self._address


_BACKENDS: dict[str, CBackend] = {}


def backend_of(name: str, digest: str, files: Mapping[str, bytes]) -> CBackend:
    """The backend of a package; the same code is translated once in a process."""
    with MAKING:
        if digest not in _BACKENDS:
            _BACKENDS[digest] = CBackend(name, files)
        return _BACKENDS[digest]


def preferred_of(name: str, digest: str, files: Mapping[str, bytes]) -> Preferred:
    """The same with numba on standby."""
    return backend_of(name, digest, files).preferred


class CBackend:
    """The modules of one package in C.

    They are translated and compiled in parts, each when one of its functions is first looked up: who only wants a
    decision does not wait for episodes. A part is waited for when a function is called, or the address of a cost asked
    for, so that several are compiled at the same time.
    """

    def __init__(self, name: str, files: Mapping[str, bytes]) -> None:
        self._name, self._program = name, Program(files)
        self._modules: dict[str, types.ModuleType] = {}
        self._parts: dict[str, tuple[Translator, Library]] = {}
        self.preferred = Preferred(self)

    @property
    def make(self) -> MakeBackend:
        """What makes such a backend of another package."""
        return backend_of

    def offers(self, module: str) -> bool:
        """Whether a module has a form in C, or needs none."""
        return module not in _NUMBAS

    @property
    def given_up(self) -> bool:
        """Never: who asked for C hears of its failures."""
        return False

    def give_up(self, failure: BackendFailure) -> bool:
        """Refuse, as above."""
        return False

    def module(self, name: str) -> types.ModuleType:
        """A module with compiled functions."""
        if name not in self._modules:
            _ask_compiler()
            with MAKING:
                if name not in self._modules:
                    self._modules[name] = self._made(name)
        return self._modules[name]

    def _made(self, name: str) -> types.ModuleType:
        if name == "controller":  # plain Python that calls compiled functions
            return self._program.run_again(name, self.module)
        module = copied(self._program.module(name))
        if name == "plant":
            self._plant(module)
        elif name == "episode":
            self._episodes(module)
        else:
            self._offer(name, module)
        if name == "decision":
            module.cost_pointer = self._cost_pointer  # type: ignore[attr-defined]
        return module

    def _offer(self, name: str, module: types.ModuleType) -> None:
        """Let the entries of a module be translated when one of them is first looked up."""
        entries = {function.name: function for function in source.entries_of(self._program, name)}
        for entry in entries:
            delattr(module, entry)

        def find(wanted: str) -> Any:
            if wanted not in entries:
                raise AttributeError(f"the module {name} of {self._name} has no {wanted}")
            work, library = self._part(_PARTS.get(name, "controller"))
            for unit in work.units:
                if unit.public and unit.function in entries.values():
                    setattr(module, unit.function.name, library.function(unit))
            return vars(module)[wanted]

        module.__getattr__ = find  # type: ignore[method-assign]

    def require(self, module: str) -> None:
        """Wait until the part is loaded in which the functions of a module are, or raise what went wrong."""
        self._part(_PARTS[module])[1].require()

    def _part(self, part: str) -> tuple[Translator, Library]:
        if part not in self._parts:
            _ask_compiler()
            try:
                with MAKING:
                    if part not in self._parts:
                        self._parts[part] = self._begun(part)
            except SymdualError as failure:
                raise BackendFailure(str(failure)) from failure
            except RecursionError as failure:
                raise BackendFailure(f"an expression of {self._name} is too deep to be translated to C") from failure
        return self._parts[part]

    def _begun(self, part: str) -> tuple[Translator, Library]:
        costs = {function: _cost_part(kind) for kind, function in source.costs(self._program).items()}

        def wanted(function: Function) -> bool:
            return costs.get(function, _PARTS.get(function.module, "controller")) == part

        work = source.translated(self._program, self._name, PREFIX, closed_loop=part == "episode", wanted=wanted)
        if work.pointers_need_memory:
            raise Untranslatable(f"{self._name}: a cost that keeps arrays cannot be compiled by itself")
        library = compilation.begun(
            library_text(work), compilation.fast_flags(work.program.module("records").NZ <= FEW)
        )
        return work, Library(work, library)

    def _cost_pointer(self, kind: str) -> Pointer:
        work, library = self._part(_cost_part(kind))
        return Pointer(lambda: library.address(source.spelled_cost(work, kind)))

    def _plant(self, module: types.ModuleType) -> None:
        work, library = self._part("episode")
        for name in (unit.function.name for unit in work.units if unit.function.module == "plant"):
            setattr(module, name, Pointer(partial(library.address, f"{PREFIX}_plant_{name}")))

    def _episodes(self, module: types.ModuleType) -> None:
        """The loop over episodes is the package's own, in Python; C runs without Python's lock."""
        work, library = self._part("episode")
        unit = next(u for u in work.units if (u.function.module, u.function.name) == ("episode", "episode"))
        run = types.FunctionType(module.episodes.__code__, vars(module))
        module.episode = library.function(unit)  # type: ignore[attr-defined]
        module.claim = _Claim()  # type: ignore[attr-defined]

        module.episodes = run  # type: ignore[attr-defined]


class Preferred:
    """C as long as it works. From its first failure on, whatever is looked up is numba's."""

    def __init__(self, c: CBackend) -> None:
        self._c, self.given_up = c, False

    @property
    def make(self) -> MakeBackend:
        """What makes such a backend of another package."""
        return preferred_of

    def offers(self, module: str) -> bool:
        """Whether a module is C's; of one that is called function by function, this is known when it is compiled."""
        if self.given_up or not self._c.offers(module):
            return False
        if module in _BY_THEMSELVES:
            try:
                self._c.require(module)
            except BackendFailure as failure:
                return not self.give_up(failure)
        return True

    def module(self, name: str) -> types.ModuleType:
        """A module with compiled functions."""
        return self._c.module(name)

    def give_up(self, failure: BackendFailure) -> bool:
        """Leave everything to numba from now on."""
        self.given_up = True
        warn_once(f"{failure}; numba compiles instead, which takes longer")
        return True


def _ask_compiler() -> None:
    """Find out which compiler works before others have to wait; whoever needs one is told if there is none."""
    with suppress(SymdualError):
        compilation.working()


def _cost_part(kind: str) -> str:
    """The part in which a cost is."""
    return f"cost {kind}"


def copied(module: types.ModuleType) -> types.ModuleType:
    """A module with the same names: those of the original are what is translated."""
    twin = types.ModuleType(module.__name__)
    vars(twin).update(vars(module))
    return twin


class _Claim:
    """`options.claim` among threads of Python."""

    def __init__(self) -> None:
        self._lock = Lock()

    def __call__(self, counter: Any) -> int:
        with self._lock:
            counter[0] += 1
            return int(counter[0]) - 1


def library_text(work: Translator) -> str:
    """Everything in one C file."""
    return "\n\n".join(
        ["#include <math.h>\n#include <stdint.h>", source.declarations(work), source.definitions(work), ""]
    )
