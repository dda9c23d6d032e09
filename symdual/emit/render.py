"""Renders the templates: they see strings, numbers and small tuples, never SymPy; a test finds keys that are idle."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import jinja2
import jinja2.meta
import jinja2.nodes


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


@cache
def declared_keys(template: str) -> frozenset[str]:
    """The keys that a template and all that it includes or imports need."""
    source, _, _ = environment().loader.get_source(environment(), template)  # type: ignore[union-attr]
    tree = environment().parse(source)
    # what a template sets itself is not asked for, even where the analysis cannot see that it is set in time
    own = {
        node.target.name for node in tree.find_all(jinja2.nodes.Assign) if isinstance(node.target, jinja2.nodes.Name)
    }
    keys = set(jinja2.meta.find_undeclared_variables(tree)) - own
    for other in jinja2.meta.find_referenced_templates(tree):
        if other is not None:
            keys |= declared_keys(other)
    return frozenset(keys)


def render(template: str, context: Mapping[str, object]) -> str:
    """Render a template; a key that it needs and is not given is an error."""
    return environment().get_template(template).render(context)
