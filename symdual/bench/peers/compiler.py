"""The C compiler, if there is one, and shared libraries kept by the hash of their source and flags."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

OPTIMISED: Final = ("-O3", "-march=native", "-ffast-math", "-shared", "-fPIC")


def compiler() -> str | None:
    """Return the C compiler named by $CC, or gcc, or cc, or None."""
    return next(
        (found for name in (os.environ.get("CC"), "gcc", "cc") if name and (found := shutil.which(name))),
        None,
    )


def shared_library(source: Path, flags: Sequence[str], build: Path, seconds: float) -> Path | None:
    """Compile one C file; None when the compiler refuses the flags or needs longer than `seconds`."""
    command = compiler()
    if command is None:
        return None
    key = hashlib.sha256(source.read_bytes() + "\0".join([command, *flags]).encode()).hexdigest()[:24]
    library = build / f"{source.stem}_{key}.so"
    given_up = library.with_suffix(".given_up")
    if library.exists():
        return library
    if given_up.exists():
        return None
    half_done = library.with_suffix(".part")
    line = [command, *flags, "-o", str(half_done), str(source), "-lm"]
    # a session of its own, so that the compiler's own children end with it
    job = subprocess.Popen(line, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        status = job.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        status = job.wait()
    if status != 0:
        given_up.touch()
        return None
    half_done.replace(library)
    return library
