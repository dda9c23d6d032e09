"""Compiled libraries on disk: kept for later processes, verified before they are loaded, loaded from what was verified.

A library lies in `libraries` under the SHA-256 of its bytes and of what it was made from. That digest is noted apart
from it, in `digests`, under the digest of what it was made from: source, flags, compiler, processor. A file is opened
once; what was read then is hashed and loaded, whatever becomes of the file. Against other users the folders protect,
to which nobody else can write (`symdual.runtime.places`), against damage the digests.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import os
import struct
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from symdual.common.errors import SymdualError, warn_once
from symdual.runtime.places import cache_folder, caching, own_content, private_folder, scratch

_MFD_EXEC = 0x10  # newer kernels want to be told that a file in memory will be executed; older ones do not know it


def found(made_from: str) -> bytes | None:
    """The library that was made from something, if it is there and whole; what is not is dropped, and said."""
    folders = _folders()
    if folders is None:
        return None
    note, library = folders.digests / made_from, None
    try:
        digest = own_content(note)
        if digest is None:
            return None
        library = folders.libraries / f"{_name(digest)}.so"
        content = own_content(library)
        if content is None or _digest(made_from, content) != _name(digest):
            raise ValueError("it is not what was kept")
    except ValueError as damage:
        for file in (note, library):
            if file is not None:
                with suppress(OSError):
                    file.unlink()
        warn_once(f"compiled code in {folders.libraries} was damaged ({damage}); it is compiled again")
        return None
    return content


def keep(made_from: str, content: bytes) -> None:
    """Keep a library for later processes; first itself, then its digest, so that nobody meets one without the other."""
    folders = _folders()
    if folders is None:
        return
    digest = _digest(made_from, content)
    try:
        _write(folders.libraries / f"{digest}.so", content)
        _write(folders.digests / made_from, digest.encode())
    except OSError as failure:
        warn_once(
            f"compiled code cannot be kept in {folders.libraries} ({failure.strerror}) and is compiled again every time"
        )


class _Folders(NamedTuple):
    digests: Path
    libraries: Path


def _folders() -> _Folders | None:
    """Where libraries are kept, if anywhere."""
    if not caching():
        return None
    try:
        folder = cache_folder()
        return _Folders(private_folder(folder / "digests"), private_folder(folder / "libraries"))
    except SymdualError as failure:
        warn_once(f"compiled code is not kept: {failure}")
        return None


def _digest(made_from: str, content: bytes) -> str:
    return hashlib.sha256(made_from.encode() + b"\0" + content).hexdigest()


def _name(digest: bytes) -> str:
    text = digest.decode("ascii", "replace")
    if len(text) != 64 or set(text) - set("0123456789abcdef"):
        raise ValueError("its digest is none")
    return text


def _write(file: Path, content: bytes) -> None:
    """Write a file in one go; a link in its place is replaced, not followed."""
    handle, fresh = tempfile.mkstemp(dir=file.parent, prefix=".new-")
    try:
        with open(handle, "wb") as stream:  # noqa: PTH123
            stream.write(content)
        Path(fresh).replace(file)
    except BaseException:
        with suppress(OSError):
            Path(fresh).unlink()
        raise


# ------------------------------------------------------------ loading


def loaded(content: bytes) -> ctypes.CDLL:
    """Load a library from its bytes: from memory where the system has files there, from a private folder elsewhere."""
    require_whole(content)
    with suppress(OSError):  # one that may not be executed, say
        if hasattr(os, "memfd_create"):
            return _from_memory(content)
    with scratch() as folder:
        file = folder / "library.so"
        file.write_bytes(content)
        try:
            return ctypes.CDLL(str(file))
        except OSError as failure:
            raise SymdualError(f"compiled code cannot be loaded: {failure}") from failure


_NUMBERS = itertools.count()


def _from_memory(content: bytes) -> ctypes.CDLL:
    """A file without a name, sealed.

    The system takes a library that it knows by its path for the same one, and numbers of files are used again: so paths
    are told apart by slashes and dots, which mean nothing, according to a number.
    """
    import fcntl

    try:
        handle = os.memfd_create("symdual", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING | _MFD_EXEC)
    except OSError:
        handle = os.memfd_create("symdual", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with open(handle, "wb") as stream:  # noqa: PTH123
        stream.write(content)
        stream.flush()
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(handle, fcntl.F_ADD_SEALS, seals)
        apart = f"{next(_NUMBERS):b}".replace("0", "/").replace("1", "/.")
        return ctypes.CDLL(f"/proc/self/fd{apart}/{handle}")


def require_whole(content: bytes) -> None:
    """Refuse what would end the process when it is loaded: an ELF file that is shorter than it says.

    Of other formats (Mach-O, DLL) the system's own loader says so.
    """
    if os.name != "posix" or os.uname().sysname != "Linux":
        return
    wide, order = content[4:5] == b"\x02", ">" if content[5:6] == b"\x02" else "<"
    header, entry = ("16xHHIQQQIHHHHHH", "IIQQQQQQ") if wide else ("16xHHIIIIIHHHHHH", "IIIIIIII")
    try:
        if content[:4] != b"\x7fELF":
            raise ValueError
        fields = struct.unpack_from(f"{order}{header}", content)
        start, size, count = fields[4], fields[8], fields[9]
        if count == 0 or size != struct.calcsize(f"{order}{entry}"):
            raise ValueError
        for n in range(count):
            segment = struct.unpack_from(f"{order}{entry}", content, start + n * size)
            offset, length = (segment[2], segment[5]) if wide else (segment[1], segment[4])
            if offset + length > len(content):
                raise ValueError
    except (struct.error, ValueError) as failure:
        raise SymdualError("what the C compiler wrote is no whole library") from failure
