"""Templates stay as short as one can read."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from ..goldens import ROOT, distinct

_LINES, _OF_A_FUNCTION, _ARGUMENTS = 350, 70, 10
_SHARE, _SHARE_OF_ALL = 0.26, 0.13  # of the lines of a template: what a model may lack is decided there, in the open


def test_no_template_is_long() -> None:
    lengths = {file.name: len(file.read_text().splitlines()) for file in (ROOT / "templates").rglob("*.jinja")}
    assert len(lengths) > 50
    assert {name: length for name, length in lengths.items() if length > _LINES} == {}


def test_templates_are_code_with_holes() -> None:
    statements = total = 0
    for file in sorted((ROOT / "templates").rglob("*.jinja")):
        lines = re.sub(r"{#.*?#}", lambda found: re.sub(".+", "", found[0]), file.read_text(), flags=re.S).splitlines()
        own = sum("{%" in line for line in lines)
        assert own <= _SHARE * len(lines), f"{file.name}: {own / len(lines):.1%} of its lines are statements of jinja"
        statements, total = statements + own, total + len(lines)
    assert statements <= _SHARE_OF_ALL * total


def test_nothing_is_multiplied_by_zero_to_see_whether_it_is_finite() -> None:
    """Where sums may be reordered, a C compiler takes the sum of such products for zero, whatever the factors are."""
    zero = re.compile(r"(?<![\d.])0\.0 \*|\* 0\.0(?!\d)")
    found = {file.name for file in (ROOT / "templates").rglob("*.jinja") if zero.search(file.read_text())}
    assert found == set()


def test_no_emitted_function_is_long_or_takes_much(every_package: list[Path]) -> None:
    """Kernels are as long as the model asks for."""
    found = {}
    for file, text in distinct(every_package):
        if file.stem == "kernels":
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                size = node.end_lineno - node.lineno + 1, len(node.args.args)
                if size[0] > _OF_A_FUNCTION or size[1] > _ARGUMENTS:
                    found[f"{file.parent.name}/{file.name}: {node.name}"] = size
    assert found == {}
