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

OPTIMISED: Final = ("-O3", "-march=native", "-ffast-math")


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
    half_done, code = library.with_suffix(".part"), library.with_suffix(".o")
    # linked without the flags: linking with -ffast-math would switch off subnormal numbers in the whole process
    lines = (
        [command, *flags, "-fPIC", "-c", "-o", str(code), str(source)],
        [command, "-shared", "-o", str(half_done), str(code), "-lm"],
    )
    if not all(_done_in_time(line, seconds) for line in lines):
        given_up.touch()
        return None
    half_done.replace(library)
    return library


def _done_in_time(line: Sequence[str], seconds: float) -> bool:
    """Run one command; a session of its own lets the compiler's children end with it."""
    job = subprocess.Popen(line, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        return job.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
        return False
