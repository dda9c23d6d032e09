"""Docstrings as they are written here, plain text with indented formulas, turned into what Sphinx reads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

SECTION = re.compile(r"(Args|Arguments|Attributes|Returns|Raises|Yields|Examples?|Note|Notes):$")


def translated(lines: list[str]) -> list[str]:
    """Indented paragraphs become literal blocks, sections such as `Args:` stay, marks with a meaning lose it."""
    out: list[str] = []
    inside: str | None = None  # a section, or "literal"
    for number, line in enumerate(lines):
        indented = line.startswith("    ")
        blank_before = number == 0 or not lines[number - 1].strip()
        if line.strip() and not indented:
            inside = "section" if SECTION.match(line) else None
        elif indented and blank_before and inside is None:
            inside = "literal"
            out += ["::", ""]
        if inside == "literal" or ">>>" in line:
            out.append(line)
        else:
            out.append(re.sub(r"(?<!\\)([*|]|(?<=\w)_(?!\w))", r"\\\1", line) if "`" not in line else _outside(line))
    return out


def _outside(line: str) -> str:
    """Escape outside of what stands between backticks."""
    parts = re.split(r"(`[^`]*`)", line)
    return "".join(p if p.startswith("`") else re.sub(r"([*|]|(?<=\w)_(?!\w))", r"\\\1", p) for p in parts)


def _process(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = translated(lines)


def setup(app: Sphinx) -> dict[str, Any]:
    """Before napoleon reads the sections."""
    app.connect("autodoc-process-docstring", _process, priority=100)
    return {"parallel_read_safe": True}
