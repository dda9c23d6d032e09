"""The C compiler: where it is, what it calls itself, and how it is run so that an odd one ends in a sentence."""

from __future__ import annotations

import atexit
import importlib.util
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from symdual.common.errors import SymdualError
from symdual.runtime.places import cache_folder

Command = tuple[str, ...]
SECONDS = 300.0  # of one file; a large model takes twenty
_ANSWER = 10.0  # seconds to say its version
_HEARD = 64 * 1024  # bytes of what a compiler says; some never stop


class NoCompiler(SymdualError):
    """There is no C compiler on this machine, or none that can be run."""


def candidates() -> Iterator[Command]:
    """C compilers in the order of preference: the one that $CC names, or else cc, gcc, clang and that of `ziglang`."""
    named = os.environ.get("CC", "").strip()
    if named:
        yield _named(named)
        return
    for name in ("cc", "gcc", "clang"):
        if (found := shutil.which(name)) is not None:
            yield (found,)
    if importlib.util.find_spec("ziglang") is not None:  # the extra `compiler`
        yield (sys.executable, "-P", "-m", "ziglang", "cc")  # not one that lies in the current folder


def compiler() -> Command:
    """The first of them; it is not tried."""
    for command in candidates():
        return command
    raise NoCompiler(
        'there is no C compiler: install gcc or clang, name one in $CC, or get one by `pip install "symdual[compiler]"`'
    )


def _named(text: str) -> Command:
    """A command as $CC has it: a program, whose path may have spaces in it, or a program with arguments."""
    try:
        split = shlex.split(text)
    except ValueError as failure:
        raise NoCompiler(f"$CC is no command ({failure}): {text}") from failure
    for program, *arguments in ([text], split):
        if (found := shutil.which(program)) is not None:
            return (found, *arguments)
    # not by Path, which raises where a name is too long or a folder may not be looked into
    there = text if os.path.exists(text) else split[0]  # noqa: PTH110
    folder, file = os.path.isdir(there), os.path.exists(there)  # noqa: PTH110, PTH112
    why = "is a folder" if folder else "may not be executed" if file else "is not there"
    raise NoCompiler(f"the C compiler {there}, which $CC names, {why}")


class Said(NamedTuple):
    """How a command ended, negative for a signal, and the beginning of what it said."""

    status: int
    text: str


def run(command: Sequence[str], arguments: Sequence[str], seconds: float) -> Said:
    """Run a compiler; one that takes too long is ended, with all that it has started."""
    spelled = " ".join(command)
    try:
        process = subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **_own_cache(command), "LC_ALL": "C"},  # errors are looked for in English
            start_new_session=True,
        )
    except OSError as failure:
        raise NoCompiler(f"the C compiler {spelled} cannot be run: {failure.strerror}") from failure
    _RUNNING.add(process)
    try:
        text = _heard(process, time.monotonic() + seconds)
    except TimeoutError as failure:
        raise SymdualError(f"the C compiler {spelled} took more than {seconds:.0f} s and was ended") from failure
    finally:
        _end(process)
        process.wait()
        _RUNNING.discard(process)
    return Said(process.returncode, text)


def _heard(process: subprocess.Popen[bytes], deadline: float) -> str:
    """What a process says until it ends, or its beginning; what it leaves running may hold its output for ever."""
    said = bytearray()

    def listen() -> None:
        assert process.stdout is not None
        with process.stdout as stream:
            while more := os.read(stream.fileno(), _HEARD):
                said.extend(more[: _HEARD - len(said)])

    listening = threading.Thread(target=listen, daemon=True)
    listening.start()
    while listening.is_alive() or process.poll() is None:
        if time.monotonic() > deadline:
            raise TimeoutError
        listening.join(0.1)
        if process.poll() is not None:
            listening.join(0.1)
            break
        if not listening.is_alive():
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
    return bytes(said).decode("utf-8", "replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process that still runs, with all that it has started."""
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()


_RUNNING: set[subprocess.Popen[bytes]] = set()


def _end_all() -> None:
    """At the end of this process nobody waits for what is still being compiled in the background."""
    for process in list(_RUNNING):
        _end(process)


atexit.register(_end_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_RUNNING.clear)  # they are the parent's


def compile_files(
    sources: Sequence[Path],
    flags: Sequence[str],
    target: Path,
    command: Sequence[str] | None = None,
    seconds: float = SECONDS,
) -> str:
    """Compile C files to whatever the flags ask for; returns what the compiler said, raises when it refused."""
    command = compiler() if command is None else command
    libraries = () if "-c" in flags or "-nostdlib" in flags else ("-lm",)
    status, text = run(command, [*flags, "-o", str(target), *map(str, sources), *libraries], seconds)
    if status < 0:
        raise SymdualError(f"the C compiler {' '.join(command)} was ended by {_signal_name(-status)}")
    if status > 0:
        rows = text.strip().splitlines()
        said = next((row for row in rows if "error" in row), rows[-1] if rows else "")[:300]
        silent = f"{' '.join(command)} ended with status {status} and said nothing"
        raise SymdualError(f"the C compiler refused the translation: {said or silent}")
    if not target.is_file():
        raise SymdualError(f"the C compiler {' '.join(command)} ended well but wrote nothing: is it a compiler?")
    return text


def own_flags(command: Command) -> tuple[str, ...]:
    """Flags of one compiler: functions of a library may be inlined although others could replace them.

    gcc at -O2 makes vectors of loops only whose length is a multiple of theirs, unless it is told to weigh costs.
    """
    inlined = "-fno-semantic-interposition"
    return (inlined,) if "clang" in version(command) else (inlined, "-fvect-cost-model=dynamic")


@cache
def version(command: Command) -> str:
    """The line in which a compiler says what it is; a wrapper may say other things before."""
    lines = run(command, ["--version"], _ANSWER).text.splitlines()
    return next((line for line in lines if re.search(r"\d\.\d", line)), "")


def linking_flags(command: Command) -> tuple[str, ...]:
    """How a shared library is linked.

    zig would compile a C library for it first, which takes half a minute; that of Python is in the process already.
    """
    return ("-shared", "-nostdlib") if is_zig(command) and sys.platform == "linux" else ("-shared",)


def is_zig(command: Sequence[str]) -> bool:
    """Whether it is the compiler that the extra `compiler` brings."""
    return "ziglang" in command


def _own_cache(command: Sequence[str]) -> dict[str, str]:
    """zig may link what it has compiled before into a library: a private place for that, unless the user has one."""
    if not is_zig(command):
        return {}
    names = ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")
    return {name: str(cache_folder() / "zig") for name in names if name not in os.environ}


def _signal_name(number: int) -> str:
    try:
        return f"the signal {signal.Signals(number).name}"
    except ValueError:
        return f"the signal {number}"
