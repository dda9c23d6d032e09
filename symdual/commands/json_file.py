"""The result of a command as a JSON file."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from symdual.errors import SymdualError
from symdual.whole_file import write_whole


def write_json(file: Path | None, content: dict[str, Any]) -> None:
    """Write JSON in one go, so that a reader never sees half a file."""
    if file is None:
        return
    text = json.dumps(content, indent=2, default=_plain) + "\n"
    try:
        write_whole(file, text.encode())
    except OSError as problem:
        raise SymdualError(f"cannot write {file}: {problem.strerror}") from problem


def finite(value: float) -> float | None:
    """JSON knows no infinity."""
    return value if math.isfinite(value) else None


def _plain(value: object) -> object:
    """Numpy numbers and arrays as plain Python, anything else as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
