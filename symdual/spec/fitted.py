"""The file with which `symdual fit` hands hyperparameters to a model: JSON, numbers only.

    {"hyperparameters": {"g_lengthscale": {"value": 1.93, "standard_deviation": 0.21, ...}, ...}, ...}

Only the values are read; everything else is for people.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from symdual.errors import ModelError, SymdualError
from symdual.whole_file import write_whole


def read(file: Path) -> dict[str, float]:
    """The values by name."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return {str(key): float(entry["value"]) for key, entry in content["hyperparameters"].items()}
    except FileNotFoundError:
        raise ModelError(
            f"there is no file {file} with fitted hyperparameters; `symdual fit` writes it for a model without fitted="
        ) from None
    except OSError as problem:
        raise ModelError(f"the fitted hyperparameters cannot be read from {file}: {problem.strerror}") from problem
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise ModelError(f"{file} does not hold fitted hyperparameters as `symdual fit` writes them") from problem


def write(file: Path, content: Mapping[str, Any]) -> None:
    """Write the file in one go, so that a reader never sees half of it; equal content is equal bytes."""
    text = json.dumps(content, indent=2, allow_nan=False) + "\n"
    try:
        write_whole(file, text.encode())
    except OSError as problem:
        raise SymdualError(f"cannot write {file}: {problem.strerror}") from problem
