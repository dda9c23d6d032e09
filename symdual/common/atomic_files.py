"""Files that are written in one go: a reader sees all of the new content, or what was there before.

What is there and is no ordinary file (a device, a pipe) is written into, as a shell does; a link is followed, and an
ordinary file keeps its mode. When what is there is this process's own output, the content goes there in its turn.
"""

from __future__ import annotations

import errno
import glob
import os
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from symdual.common.errors import SymdualError


def write_atomically(file: Path, content: bytes) -> None:
    """Write a file in one go; whatever goes wrong, nothing else is left behind."""
    with atomic_file(file) as stream:
        stream.write(content)


@contextmanager
def atomic_file(file: Path) -> Iterator[BinaryIO]:
    """A stream whose content becomes the file when the block ends well, and is gone when it does not."""
    there = _status(file)
    own = None if there is None else _own_output(there)
    if own is not None:
        with os.fdopen(os.dup(own), "wb") as stream:
            yield stream
    elif there is not None and not stat.S_ISREG(there.st_mode):
        with file.open("wb") as stream:
            yield stream
    else:
        with _beside(Path(os.path.realpath(file)), there) as stream:
            yield stream


def require_writable(file: Path) -> None:
    """Refuse a file that cannot be written before any work is done."""
    try:
        there = _status(file)
    except OSError as failure:
        raise SymdualError(f"cannot write {file}: {failure.strerror}") from failure
    if there is not None and stat.S_ISDIR(there.st_mode):
        raise SymdualError(f"cannot write {file}: it is a folder")
    if there is not None and not os.access(file, os.W_OK):
        raise SymdualError(f"cannot write {file}: {os.strerror(errno.EACCES)}")
    folder = Path(os.path.realpath(file)).parent
    if (there is None or stat.S_ISREG(there.st_mode)) and not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise SymdualError(f"cannot write {file}: its folder is missing or cannot be written")


def _status(file: Path) -> os.stat_result | None:
    """What is there, links followed; None for nothing, or for a link to nothing."""
    try:
        return file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _own_output(there: os.stat_result) -> int | None:
    """The output of this process that ends in what is there, with all that has been printed written out."""
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        with suppress(OSError):  # closed
            if os.path.samestat(there, os.fstat(number)):
                with suppress(OSError, ValueError, AttributeError):  # something else stands in for the stream
                    stream.flush()
                return number
    return None


@contextmanager
def _beside(file: Path, there: os.stat_result | None) -> Iterator[BinaryIO]:
    """Write beside the file and rename."""
    fresh = file.with_name(f"{_begun(file)}{os.getpid()}-{threading.get_ident()}.new")  # two writers never share it
    try:
        with fresh.open("wb") as stream:
            yield stream
        if there is not None:
            fresh.chmod(stat.S_IMODE(there.st_mode))
        fresh.replace(file)
    finally:
        fresh.unlink(missing_ok=True)


def _begun(file: Path) -> str:
    """How the names of unfinished files begin; short, so that every name that a file may have leaves room for it."""
    return f".{file.name[:40]}."


def remove_unfinished(file: Path) -> None:
    """Delete what killed writers of a file left; the caller knows that none is at work."""
    for left in file.parent.glob(f"{glob.escape(_begun(file))}*.new"):
        left.unlink(missing_ok=True)
