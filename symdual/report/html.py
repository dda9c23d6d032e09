"""Pages that need nothing but themselves: escaping, elements, the skeleton and its style, writing to disk.

Every text goes through `element`, which escapes all strings that are not `Markup` already. So a page is safe as long as
nobody wraps foreign text in `Markup`. Pages carry a policy that forbids requests to the network, and every script but
one of ours.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from markupsafe import Markup, escape

from symdual.common.atomic_files import write_atomically
from symdual.common.errors import SymdualError
from symdual.report.palette import page_colours

Content = str | Markup

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"  # and a script that is known by its hash
_EMPTY_ELEMENTS = frozenset({"meta", "br", "hr"})


def element(name: str, /, *children: Content, **attributes: str | int | float | None) -> Markup:
    """Return `<name attributes>children</name>`; strings are escaped, `Markup` is taken as it is.

    A trailing underscore of an attribute's name is dropped and others become hyphens: `class_`, `stroke_width`.
    An attribute that is None is left out.
    """
    pairs = [(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items() if value is not None]
    opening = Markup("").join(Markup(' {}="{}"').format(Markup(key), str(value)) for key, value in pairs)
    if name in _EMPTY_ELEMENTS:
        return Markup(f"<{name}{opening}>")
    return Markup(f"<{name}{opening}>{join(children)}</{name}>")


def join(parts: Iterable[Content], between: Content = "") -> Markup:
    """Put parts one after another; strings are escaped."""
    return Markup(escape(between)).join(escape(part) for part in parts)


def section(identifier: str, title: Content, *children: Content, level: int = 2) -> Markup:
    """Return a section with a heading that can be linked to."""
    return element("section", element(f"h{level}", title), *children, id=identifier)


def opening(title: Content, lead: Content, links: Iterable[tuple[str, Content]] = ()) -> Markup:
    """Return what a page begins with: its title, what it is about, and links to its sections by their identifiers."""
    jumps = [element("a", word, href=f"#{key}") for key, word in links]
    contents = element("nav", *jumps, aria_label="contents") if jumps else Markup("")
    return element("h1", title) + element("p", lead, class_="lead") + contents


def table(
    header: Sequence[Content], rows: Iterable[Sequence[Content]], numeric: Sequence[int] = (), class_: str = ""
) -> Markup:
    """Return a table in a box of its own that scrolls when it is too wide; columns in `numeric` are set flush right."""

    def cells(name: str, row: Sequence[Content]) -> Markup:
        return element(
            "tr", *(element(name, cell, class_="number" if i in numeric else None) for i, cell in enumerate(row))
        )

    head = element("thead", cells("th", header))
    body = element("tbody", *(cells("td", row) for row in rows))
    return element("div", element("table", head, body, class_=class_ or None), class_="wide", tabindex=0)


def formula(mathml: Markup, class_: str = "") -> Markup:
    """Put a `<math>` element into a box that scrolls by itself when the formula is wider than the page."""
    return element("div", mathml, class_=f"formula {class_}".strip(), tabindex=0)


def folded(summary: Content, *children: Content) -> Markup:
    """Return content that opens on a click, without a script."""
    return Markup("<details>") + element("summary", summary) + join(children) + Markup("</details>")


def page(title: str, body: Content, further_styles: str = "", script: str = "") -> str:
    """Return a whole page as text: no network, readable on a phone, in the dark and on paper.

    A `script` of ours runs when the page is there; the policy knows it by its hash and lets no other one run.
    """
    policy, own = _POLICY, Markup("")
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy, own = f"{_POLICY}; script-src 'sha256-{digest}'", Markup(f"<script>{script}</script>")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        Markup('<meta http-equiv="Content-Security-Policy" content="{}">').format(Markup(policy)),
        element("title", title),
        Markup('<link rel="icon" href="data:,">'),  # or a browser would ask a server for one
        Markup(f"<style>\n{page_colours()}{_style()}{further_styles}</style>"),
    )
    return f'<!doctype html>\n<html lang="en">\n{head}\n{element("body", body, own)}\n</html>\n'


@cache
def _style() -> str:
    return (Path(__file__).parent / "style.css").read_text(encoding="utf-8")


def write_page(file: Path, text: str) -> None:
    """Write a page in one go, so that a reader never sees half of it."""
    try:
        write_atomically(file, text.encode(errors="replace"))  # a docstring may hold what is no character
    except OSError as failure:
        raise SymdualError(f"cannot write {file}: {failure.strerror}") from failure
