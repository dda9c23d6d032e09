"""Files that are written in one go: a reader sees all of the new content, or what was there before."""

from __future__ import annotations

from pathlib import Path


def write_whole(file: Path, content: bytes) -> None:
    """Write beside the file and rename; whatever goes wrong, nothing else is left behind."""
    fresh = file.with_name(f".{file.name}.new")
    try:
        fresh.write_bytes(content)
        fresh.replace(file)
    finally:
        fresh.unlink(missing_ok=True)
