"""Shared libraries of C texts: made by the machine's C compiler, in the background, and kept for the next time."""

from __future__ import annotations

import hashlib
import math
import os
import platform
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes import c_double
from functools import cache
from pathlib import Path

from symdual.backends.c import kept
from symdual.backends.c.compilers import (
    SECONDS,
    Command,
    candidates,
    compile_files,
    compiler,
    linking_flags,
    own_flags,
    version,
)
from symdual.common.errors import SymdualError, warn_once
from symdual.runtime.places import scratch

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wdouble-promotion", "-Wshadow")
#: sums may be reordered and products fused, as in the package; NaN and infinity keep their meaning. Vectors in loops
#: only: elsewhere they join numbers that were just written one by one, and wait for them.
FAST = (
    "-O2",
    "-ftree-vectorize",
    "-fno-tree-slp-vectorize",
    "-march=native",
    "-ffast-math",
    "-fno-finite-math-only",
    "-ffp-contract=fast",
)
#: besides, where loops over states and unknowns are short: unrolling them takes time, which pays for small models only
SHORT_LOOPS = ("-O3",)
_PROBE = "#include <math.h>\n#include <stdint.h>\n\ndouble probe(double x) { return sin(x); }\n"
_PROBE_SECONDS = 60.0


def fast_flags(few: bool) -> tuple[str, ...]:
    """The flags of a package, with few states and unknowns or many."""
    return (*FAST, *SHORT_LOOPS) if few else FAST


def quickest() -> str:
    """The backend that is ready soonest: "c" where a C compiler works, "numba" otherwise, which takes longer.

    Both do the same up to rounding, which now and then tips a decision between two inputs that cost nearly the same. A
    compiler that is there and does not work is said.
    """
    try:
        working()
    except SymdualError as failure:
        if os.environ.get("CC") or next(candidates(), None) is not None:
            warn_once(f"{failure}; numba compiles instead, which takes longer")
        return "numba"
    return "c"


def working() -> Command:
    """The first C compiler that works; what is wrong with the first of all where none does.

    One that is there may still lack headers or a linker, write code for another machine, or never end: it has to make a
    small library, which is loaded and called.
    """
    failures: list[SymdualError] = []
    for command in candidates():
        failure = _fault(command, FAST)
        if failure is None:
            return command
        failures.append(failure)
    if failures:
        raise failures[0]
    return compiler()  # which says that there is none


@cache
def _fault(command: Command, flags: tuple[str, ...]) -> SymdualError | None:
    """What is wrong with a compiler, if anything; it is asked once in a process."""
    try:
        made_from = _made_from(_PROBE, command, flags)
        if kept.found(made_from) is None:
            content = _made(_PROBE, command, flags, _PROBE_SECONDS)
            sine = kept.loaded(content).probe
            sine.restype, sine.argtypes = c_double, [c_double]
            if abs(sine(0.5) - math.sin(0.5)) > 1e-12:
                return SymdualError(f"the C compiler {' '.join(command)} computes a wrong sine")
            kept.keep(made_from, content)
    except SymdualError as failure:
        return failure
    return None


def shared_library(text: str, flags: Sequence[str] | None = None) -> bytes:
    """A shared library of one C text, for `kept.loaded`; one that was made before, in the same way, is taken again."""
    return begun(text, flags)()


def begun(text: str, flags: Sequence[str] | None = None) -> Callable[[], bytes]:
    """Begin to make a shared library in the background; returns what waits for it."""
    command = working()  # a machine without one is told so at once
    chosen = tuple(FAST if flags is None else flags)
    made_from = _made_from(text, command, chosen)
    known = kept.found(made_from)
    if known is not None:
        return lambda: known

    def make() -> bytes:
        content = _made(text, command, chosen, SECONDS)
        kept.keep(made_from, content)
        return content

    return _InBackground(make)


def _made_from(text: str, command: Command, flags: tuple[str, ...]) -> str:
    """The digest of all that a library depends on."""
    about = "\0".join(["1", text, *command, version(command), _processor(), *flags, *own_flags(command)])
    return hashlib.sha256(about.encode()).hexdigest()


def _made(text: str, command: Command, flags: tuple[str, ...], seconds: float) -> bytes:
    with scratch() as folder:
        source, code, library = (folder / f"package{end}" for end in (".c", ".o", ".so"))
        source.write_text(text)
        compile_files([source], ["-std=c99", *flags, *own_flags(command), "-fPIC", "-c"], code, command, seconds)
        # linked without the flags: linking with -ffast-math would switch off subnormal numbers in the whole process
        compile_files([code], linking_flags(command), library, command, seconds)
        content = library.read_bytes()
    kept.require_whole(content)
    return content


def _at_once() -> threading.BoundedSemaphore:
    return threading.BoundedSemaphore(max(2, os.cpu_count() or 1))


_turns = _at_once()  # compilers take memory too


def _renew_turns() -> None:
    global _turns
    _turns = _at_once()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_turns)  # those who had a turn are the parent's threads


class _InBackground:
    """Something that is made in a thread of its own. A forked process has no such thread, and makes it by itself."""

    def __init__(self, make: Callable[[], bytes]) -> None:
        self._make = make
        self._made: bytes | None = None
        self._failure: BaseException | None = None
        # a daemon: at the end of the process nobody waits for it
        self._thread = threading.Thread(target=self._work, name="compiling", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            with _turns:
                self._made = self._make()
        except BaseException as failure:  # raised again where it is waited for
            self._failure = failure

    def __call__(self) -> bytes:
        self._thread.join()
        if self._made is None and self._failure is None:
            self._work()
        if self._failure is not None:
            raise self._failure
        assert self._made is not None
        return self._made


@cache
def _processor() -> str:
    """What tells processors apart: code for one may not run on another that shares the folder."""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next((line for line in lines if line.startswith(("flags", "Features"))), platform.machine())
    return f"{platform.machine()} {platform.processor()}"
