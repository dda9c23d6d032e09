"""Templates stay as short as one can read."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_LINES, _OF_A_FUNCTION, _ARGUMENTS = 350, 70, 10


def test_no_template_is_long() -> None:
    lengths = {file.name: len(file.read_text().splitlines()) for file in sorted((ROOT / "templates").glob("*.jinja"))}
    assert {name: length for name, length in lengths.items() if length > _LINES} == {}


def test_no_emitted_function_is_long_or_takes_much() -> None:
    """Kernels are as long as the model asks for."""
    found = {}
    for file in sorted((ROOT / "generated").glob("*/*.py")):
        if file.stem in ("kernels", "controller"):
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef):
                size = node.end_lineno - node.lineno + 1, len(node.args.args)
                if size[0] > _OF_A_FUNCTION or size[1] > _ARGUMENTS:
                    found[f"{file.parent.name}/{file.name}: {node.name}"] = size
    assert found == {}
