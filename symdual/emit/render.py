"""Renders the templates: they see strings, numbers and small tuples, never SymPy; a test finds keys that are idle."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import jinja2


def template_folder() -> Path:
    """The templates inside the installed package, or those of the repository."""
    installed = Path(__file__).parent.parent / "templates"
    return installed if installed.is_dir() else installed.parent.parent / "templates"


@cache
def environment() -> jinja2.Environment:
    """One environment for all templates: undefined names are errors."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(template_folder()),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def render(template: str, context: Mapping[str, object]) -> str:
    """Render a template; a key that it needs and is not given is an error."""
    return environment().get_template(template).render(context)
