"""Which model file a package was generated from, and whether that has been edited since.

The note lies in the package's `__pycache__`: it is no part of the package, which has the same bytes everywhere.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

from symdual.common.atomic_files import write_atomically

_NOTE = Path("__pycache__") / "model-file.json"


def note(folder: Path, model_file: Path) -> None:
    """Write down that a package is what a model file says now; where nothing can be written, nothing is known later."""
    with suppress(OSError):
        place = os.path.relpath(model_file.resolve(), folder.resolve())
        content = json.dumps({"file": place, "digest": _digest(model_file)}).encode()
        if not (folder / _NOTE).is_file() or (folder / _NOTE).read_bytes() != content:
            (folder / _NOTE).parent.mkdir(exist_ok=True)
            write_atomically(folder / _NOTE, content)


def forget(folder: Path) -> None:
    """Drop the note of a package that was made from something else than a file."""
    with suppress(OSError):
        (folder / _NOTE).unlink()


def edited_model_file(folder: Path) -> Path | None:
    """The model file of a package if it has changed since; None if it has not, or if nothing is known of it."""
    file, changed = _origin(folder)
    return file if changed else None


def model_file_of(folder: Path) -> Path | None:
    """The model file of a package as long as it is what it was; None if nothing is known of it."""
    file, changed = _origin(folder)
    return None if changed else file


def _origin(folder: Path) -> tuple[Path | None, bool]:
    """The model file of a package, if one is known and there, and whether it has changed since."""
    try:
        written = json.loads((folder / _NOTE).read_bytes())
        file = Path(os.path.normpath(folder.resolve() / str(written["file"])))
        return file, _digest(file) != written["digest"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None, False


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
