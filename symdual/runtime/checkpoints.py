"""Checkpoints: the chunks of a sweep that are done, each in a file of its own that is whole or does not exist.

A file starts with the SHA-256 of the rest; then come a mark and the payload. The mark is the SHA-256 of the sweep's
identity (its seed is part of that), the controller and the range of runs. So a file that was torn, that belongs to
another sweep, or that has the name of another chunk, is never taken for a finished one.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from symdual.common.atomic_files import write_atomically
from symdual.common.errors import SymdualError
from symdual.runtime.results import ABOUT, UNREADABLE, Chunk, Description, described

#: what can be done, on the command line and in a program
CONTINUE = "continue with --resume (in Python resume=True)"
ELSEWHERE = "choose another folder with -o (in Python folder=)"

_LINE = 65  # a SHA-256 in hexadecimal digits, and the end of the line
_SUFFIX = ".chunk"


@dataclass(frozen=True)
class Checkpoints:
    """The folder of the finished chunks of one sweep."""

    folder: Path
    description: Description
    digests: dict[Chunk, str] = field(default_factory=dict)

    def begin(self) -> None:
        """Make the folder and write down which sweep it belongs to."""
        try:
            self.folder.mkdir(exist_ok=True)
            write_atomically(self.folder / ABOUT, json.dumps(self.description.to_json(), indent=1).encode())
        except OSError as failure:
            raise SymdualError(f"cannot write to the folder {self.folder}: {failure.strerror}") from failure

    def write(self, chunk: Chunk, payload: bytes) -> None:
        """Keep a finished chunk."""
        body = self._mark(chunk) + payload
        digest = hashlib.sha256(body).hexdigest()
        try:
            write_atomically(self._file(chunk), f"{digest}\n".encode() + body)
        except OSError as failure:
            raise SymdualError(
                f"cannot write {self._file(chunk)}: {failure.strerror}; the {len(self.digests)} chunks that are done "
                f"are kept, {CONTINUE}"
            ) from failure
        self.digests[chunk] = hashlib.sha256(payload).hexdigest()

    def find(self, chunk: Chunk) -> bool:
        """Whether a chunk is done; reads it, and raises ValueError if its file is damaged."""
        if chunk in self.digests:
            return True
        try:
            content = self._file(chunk).read_bytes()
        except FileNotFoundError:
            return False
        except OSError as failure:
            raise ValueError(failure.strerror) from failure
        body = content[_LINE:]
        if content[:_LINE] != f"{hashlib.sha256(body).hexdigest()}\n".encode():
            raise ValueError("its checksum does not fit")
        if body[:_LINE] != self._mark(chunk):
            raise ValueError("its file holds other runs, or those of another sweep")
        self.digests[chunk] = hashlib.sha256(body[_LINE:]).hexdigest()
        return True

    def read(self, chunk: Chunk, first: int, size: int) -> bytes:
        """Bytes of the payload of a finished chunk."""
        with self._file(chunk).open("rb") as file:
            file.seek(2 * _LINE + first)
            return file.read(size)

    def remove(self) -> None:
        """Delete the folder once the results are written."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _mark(self, chunk: Chunk) -> bytes:
        whose = f"{self.description.digest} {chunk.controller} {chunk.start} {chunk.stop}"
        return f"{hashlib.sha256(whose.encode()).hexdigest()}\n".encode()

    def _file(self, chunk: Chunk) -> Path:
        return self.folder / f"{chunk.controller}-{chunk.start:07d}-{chunk.stop:07d}{_SUFFIX}"


def kept(folder: Path) -> int:
    """The number of chunks in a folder of checkpoints."""
    return len(list(folder.glob(f"*{_SUFFIX}")))


def owner(folder: Path) -> Description | None:
    """Which sweep a folder of checkpoints belongs to, or None when that cannot be read."""
    try:
        return described(json.loads((folder / ABOUT).read_bytes()))
    except UNREADABLE:
        return None
