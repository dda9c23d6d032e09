"""Unused imports of a rendered module are left out, and nothing else changes."""

from __future__ import annotations

from symdual.emit.imports import without_unused


def test_unused_names_go_and_used_ones_stay() -> None:
    source = (
        '"""M."""\n\nimport math\n\nimport numpy as np\nfrom numba import njit\n\n'
        "from .a import (\n    one,\n    two,\n)\n\n\nx = np.zeros(two)\n"
    )
    expected = '"""M."""\n\n\nimport numpy as np\n\nfrom .a import two\n\n\nx = np.zeros(two)\n'
    assert without_unused(source) == expected


def test_a_module_that_uses_everything_keeps_its_text() -> None:
    source = "import math\nfrom . import a as b\n\nx = math.pi * b.c\n"
    assert without_unused(source) == source


def test_long_statements_stand_one_name_a_line() -> None:
    names = [f"name_number_{i}" for i in range(12)]
    source = f"from .place import {', '.join(names)}, idle\n\nx = ({', '.join(names)})\n"
    result = without_unused(source)
    assert "idle" not in result
    assert result.startswith("from .place import (\n    name_number_0,\n")
