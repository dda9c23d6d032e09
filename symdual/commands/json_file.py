"""The result of a command as a JSON file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from symdual.common.atomic_files import write_atomically
from symdual.common.errors import SymdualError


def write_json(file: Path | None, content: dict[str, Any]) -> None:
    """Write JSON in one go, so that a reader never sees half a file."""
    if file is None:
        return
    try:
        write_atomically(file, json_text(content).encode())
    except OSError as failure:
        raise SymdualError(f"cannot write {file}: {failure.strerror}") from failure


def json_text(content: dict[str, Any]) -> str:
    """JSON that every reader understands: it knows neither NaN nor infinity, so what is not finite is null."""
    return json.dumps(_plain(content), indent=2, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    """Numpy's numbers and arrays as those of Python, and anything that JSON does not know as text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)
