"""The C compiler, where there is one, and shared libraries that are kept by the digest of what they are made of."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path

from symdual.errors import SymdualError
from symdual.runtime.places import cache_folder

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
_SECONDS = 300.0
_PROBE = "#include <math.h>\n#include <stdint.h>\n\ndouble probe(double x) { return sin(x); }\n"
_AT_WORK = ThreadPoolExecutor(thread_name_prefix="compiling")


def fast_flags(few: bool) -> tuple[str, ...]:
    """The flags of a package, with few states and unknowns or many."""
    return (*FAST, *SHORT_LOOPS) if few else FAST


class NoCompiler(SymdualError):
    """There is no C compiler on this machine."""


def compiler() -> str:
    """The C compiler: the one that $CC names, or gcc, clang or cc."""
    named = os.environ.get("CC")
    if named and shutil.which(named) is None:
        raise NoCompiler(f"the C compiler {named}, which $CC names, is not there")
    for name in (named, "gcc", "clang", "cc"):
        if name and (found := shutil.which(name)) is not None:
            return found
    raise NoCompiler("there is no C compiler: install gcc or clang, or name one in $CC")


def quickest() -> str:
    """The backend that is ready soonest: "c" where a C compiler works, "numba" otherwise, which takes longer.

    Both do the same up to rounding, which now and then tips a decision between two inputs that cost nearly the same. A
    compiler that is there may still lack headers or a linker, or a place to write to: a small library is made first.
    """
    try:
        shared_library(_PROBE)
    except SymdualError:
        return "numba"
    return "c"


def compile_files(sources: Sequence[Path], flags: Sequence[str], target: Path, command: str | None = None) -> str:
    """Compile C files to whatever the flags ask for; returns what the compiler said, raises when it refused."""
    line = [command or compiler(), *flags, "-o", str(target), *map(str, sources)]
    if "-c" not in flags:
        line.append("-lm")
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=_SECONDS)
    except subprocess.TimeoutExpired as failure:
        raise SymdualError(f"the C compiler took more than {_SECONDS:.0f} s") from failure
    except OSError as failure:
        raise _not_run(line[0], failure) from failure
    if done.returncode != 0:
        said = next((text for text in done.stderr.splitlines() if "error" in text), done.stderr.strip()[:300])
        silent = f"{line[0]} ended with status {done.returncode} and said nothing"
        raise SymdualError(f"the C compiler refused the translation: {said or silent}")
    if not target.exists():
        raise SymdualError(f"the C compiler {line[0]} ended well but wrote nothing: is it a compiler?")
    return done.stderr


def _not_run(command: str, failure: OSError) -> NoCompiler:
    return NoCompiler(f"the C compiler {command} cannot be run: {failure.strerror}")


def shared_library(text: str, flags: Sequence[str] = FAST) -> Path:
    """A shared library of one C text; one that was made before, by the same compiler for the same machine, is kept."""
    command = compiler()
    flags = (*flags, *_own_flags(command))
    about = "\0".join([text, command, _version(command), _processor(), *flags])
    name = hashlib.sha256(about.encode()).hexdigest()[:32]
    folder = cache_folder() / "c"
    library = folder / f"{name}.so"
    if library.is_file():
        return library
    try:
        folder.mkdir(parents=True, exist_ok=True)
        place = tempfile.TemporaryDirectory(dir=folder, prefix=f"{name}-")
    except OSError as failure:
        raise SymdualError(f"cannot write to the folder {folder}: {failure.strerror}") from failure
    with place as own:
        source, code, made = (Path(own) / f"{name}{end}" for end in (".c", ".o", ".so"))
        source.write_text(text)
        compile_files([source], ["-std=c99", *flags, "-fPIC", "-c"], code, command)
        # linked without the flags: linking with -ffast-math would switch off subnormal numbers in the whole process
        compile_files([code], ["-shared"], made, command)
        with suppress(FileExistsError):
            made.replace(library)
    return library


def begun(text: str, flags: Sequence[str] = FAST) -> Callable[[], Path]:
    """Begin to make a shared library in the background; returns what waits for it."""
    compiler()  # a machine without one is told so at once
    return _AT_WORK.submit(shared_library, text, flags).result


def _own_flags(command: str) -> tuple[str, ...]:
    """Flags of one compiler: functions of a library may be inlined although others could replace them.

    gcc at -O2 makes vectors of loops only whose length is a multiple of theirs, unless it is told to weigh costs.
    """
    inlined = "-fno-semantic-interposition"
    return (inlined,) if "clang" in _version(command) else (inlined, "-fvect-cost-model=dynamic")


@cache
def _version(command: str) -> str:
    try:
        done = subprocess.run([command, "--version"], capture_output=True, text=True)
    except OSError as failure:
        raise _not_run(command, failure) from failure
    return done.stdout.partition("\n")[0]


@cache
def _processor() -> str:
    """What tells processors apart: code for one may not run on another that shares the folder."""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next((line for line in lines if line.startswith(("flags", "Features"))), platform.machine())
    return f"{platform.machine()} {platform.processor()}"
