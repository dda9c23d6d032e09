"""Every address in the site that does not lead away must lead somewhere, to the place named after `#` too."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from sphinx.application import Sphinx


class Anchors(HTMLParser):
    """The addresses that a page mentions, and the places in it that have a name."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note addresses and names."""
        for key, value in attrs:
            if value is None:
                continue
            if key in ("href", "src") and not (tag == "link" and ("rel", "canonical") in attrs):
                self.addresses.append(value)
            elif key in ("id", "name"):
                self.places.add(value)


def broken(folder: Path) -> Iterator[str]:
    """Addresses in the pages of a folder that lead nowhere, each with its page."""
    pages = {path.resolve(): Anchors(path.read_text()) for path in sorted(folder.rglob("*.html"))}
    for path, page in pages.items():
        for address in page.addresses:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            place = unquote(parts.fragment)
            if not target.exists():
                yield f"{path.relative_to(folder.resolve())}: {address} does not exist"
            elif place and target in pages and place not in pages[target].places:
                yield f"{path.relative_to(folder.resolve())}: {address} has no such place"


def check(app: Sphinx, problem: Exception | None) -> None:
    """End the build if an address leads nowhere."""
    if problem is not None or app.builder.format != "html":
        return
    from sphinx.errors import ExtensionError

    found = list(broken(Path(app.outdir)))
    if found:
        raise ExtensionError(f"{len(found)} addresses lead nowhere:\n" + "\n".join(found[:50]))


def setup(app: Sphinx) -> dict[str, Any]:
    """After everything is written."""
    app.connect("build-finished", check)
    return {"parallel_read_safe": True}
