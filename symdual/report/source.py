"""Python source with highlighting, as HTML that needs no script."""

from __future__ import annotations

import re
from functools import cache

from markupsafe import Markup
from pygments import highlight  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexers import PythonLexer  # type: ignore[import-untyped]

#: Names, blanks, punctuation and operators: set like the text around them.
_PLAIN = re.compile(r'<span class="(?:n|w|p|o)">([^<]*)</span>')


def highlighted(code: str) -> Markup:
    """The code in a box that scrolls; pygments escapes it."""
    inner = highlight(code, PythonLexer(), HtmlFormatter(nowrap=True))
    inner = _PLAIN.sub(r"\1", inner)  # most of a page would be marks without an effect
    return Markup(f'<pre class="code" tabindex="0"><code>{inner}</code></pre>')


@cache
def code_style() -> str:
    """The colours of `highlighted`, for light and dark pages; on paper the light ones."""

    def rules(style: str) -> str:
        lines = HtmlFormatter(style=style).get_style_defs(".code").splitlines()
        # the page itself decides about the background
        return "\n".join(line for line in lines if line.startswith(".code ."))

    light, dark = "print, (prefers-color-scheme: light)", "screen and (prefers-color-scheme: dark)"
    return f"@media {light} {{\n{rules('default')}\n}}\n@media {dark} {{\n{rules('github-dark')}\n}}\n"
