"""Archives of arrays (.npz, not compressed) whose bytes depend on nothing but their content.

An archive is written member by member and each member part by part, so that it may be larger than the memory. Where the
bytes of a member lie follows from the members alone, so that a damaged archive can still be read where it is whole.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import BinaryIO, NamedTuple

import numpy as np

from symdual.common.arrays import Array

_HEADER = 30  # bytes of a member's header in a zip file, before its name
_LARGE_HEADER = 20  # further bytes for a member that is too large for 32 bits


class Member(NamedTuple):
    """One file of an archive: its name, its first bytes, and how many bytes in which parts follow them."""

    name: str
    head: bytes
    size: int
    parts: Callable[[], Iterable[bytes]]


def array_member(name: str, dtype: str, shape: tuple[int, ...], parts: Callable[[], Iterable[bytes]]) -> Member:
    """An array as numpy stores it, its entries given in C order as bytes."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": dtype, "fortran_order": False, "shape": shape})
    return Member(f"{name}.npy", head.getvalue(), math.prod(shape) * np.dtype(dtype).itemsize, parts)


def text_member(name: str, content: bytes) -> Member:
    """A text, which numpy gives back as bytes."""
    return Member(name, b"", len(content), lambda: (content,))


def write_archive(file: BinaryIO, members: Iterable[Member]) -> None:
    """Write the members in their order to a file that can seek."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for member in members:
            info = zipfile.ZipInfo(member.name, date_time=(1980, 1, 1, 0, 0, 0))
            info.create_system = 3
            info.file_size = len(member.head) + member.size
            with archive.open(info, "w") as target:
                target.write(member.head)
                for part in member.parts():
                    target.write(part)


def data_offsets(members: Sequence[Member]) -> list[int]:
    """Where the parts of each member begin in the archive that `write_archive` makes of them."""
    offsets, position = [], 0
    for member in members:
        large = (len(member.head) + member.size) * 1.05 > zipfile.ZIP64_LIMIT  # as zipfile decides it
        position += _HEADER + len(member.name.encode()) + (_LARGE_HEADER if large else 0) + len(member.head)
        offsets.append(position)
        position += member.size
    return offsets


def stored_arrays(arrays: Mapping[str, Array], texts: Mapping[str, bytes] = MappingProxyType({})) -> bytes:
    """An archive of arrays of numbers, sorted by name, after texts."""
    buffer = io.BytesIO()
    numbers = {name: np.asarray(arrays[name], dtype="<f8", order="C") for name in sorted(arrays)}
    heads = [text_member(name, content) for name, content in texts.items()]
    write_archive(buffer, [*heads, *(_whole(name, array) for name, array in numbers.items())])
    return buffer.getvalue()


def _whole(name: str, array: Array) -> Member:
    return array_member(name, "<f8", array.shape, lambda: (array.tobytes(),))
