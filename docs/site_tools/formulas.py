"""Formulas as MathML, which browsers typeset themselves: nothing is fetched from a network."""

from __future__ import annotations

from typing import Any, Literal

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def _typeset(text: str, display: Literal["inline", "block"] = "inline") -> str:
    """A formula as MathML; the converter knows rows by another name than GitHub, for which the pages are written."""
    return convert(text.replace("{aligned}", "{split}"), display=display)


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(_typeset(node.astext()))
    raise nodes.SkipNode


def _display(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="formula">{_typeset(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """In place of MathJax."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    return {"parallel_read_safe": True}
