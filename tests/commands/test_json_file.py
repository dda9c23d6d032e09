"""Results as JSON: strict, whatever the numbers are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

import numpy as np

from symdual.commands.json_file import json_text, write_json


def refuse(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is no JSON")


def test_what_is_not_finite_is_null() -> None:
    content = {
        "number": float("nan"),
        "numpy": np.float64("-inf"),
        "array": np.array([[1.0, np.nan], [np.inf, 2.0]]),
        "nested": [(1.5, float("inf")), {"deep": {"deeper": np.float32("nan")}}],
        "flag": np.bool_(True),
        "count": np.int64(3),
        "path": Path("a/b"),
        "nothing": None,
    }
    assert json.loads(json_text(content), parse_constant=refuse) == {
        "number": None,
        "numpy": None,
        "array": [[1.0, None], [None, 2.0]],
        "nested": [[1.5, None], {"deep": {"deeper": None}}],
        "flag": True,
        "count": 3,
        "path": "a/b",
        "nothing": None,
    }


def test_it_is_written_or_not(tmp_path: Path) -> None:
    write_json(None, {"a": 1})
    write_json(tmp_path / "out.json", {"a": 1})
    assert json.loads((tmp_path / "out.json").read_text()) == {"a": 1}
