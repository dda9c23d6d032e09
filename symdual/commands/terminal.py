"""What commands print with; rich is imported only when something is printed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from symdual.runtime.loading import LoadedPackage


_WIDE = 10_000  # columns; nothing that is printed has as many
_PAGE = 120


def new_console() -> Console:
    """A console that prints strings as they are and cuts nothing: what is wider than the window goes over its edge.

    Names, paths and headers are other people's words: brackets and colons in them mean nothing. What is to be coloured
    is a `Text`, or has a style.
    """
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, width=_WIDE)


def new_marked_console() -> Console:
    """A console for our own words only, with marks in them, broken into lines; wide enough for tables of a page."""
    from rich.console import Console

    return Console(highlight=False, width=max(_PAGE, Console().width))


def headed(name: str, rest: str = "") -> Text:
    """A line that begins with a name."""
    from rich.text import Text

    return Text.assemble((name, "bold"), rest)


def shown(folder: Path) -> str:
    """A folder as seen from here."""
    try:
        return str(folder.relative_to(Path.cwd()))
    except ValueError:
        return str(folder)


def try_other_filters(model_file: Path, model: str) -> str:
    """What to do about a filter that is too sure: which others there are for a model, and what compares them."""
    from symdual.checks.filters import filters_of
    from symdual.generation import wanted
    from symdual.spec.loading import load_model_file

    asked = next(one for one in wanted(load_model_file(model_file)) if one.name == model)
    own = asked.specification.filter
    others = [name for name, same in filters_of(asked)[0].items() if own not in (name, *same)]
    if not others:
        return f"no filter can differ from {own} on {model}: look at noise, drift and signals (docs/beliefs.md)"
    several = f"{', '.join(others[:-1])} or {others[-1]}" if len(others) > 1 else others[0]
    return f"{several} may be more honest here than {own}: compare by symdual check --belief {model_file}"


def idle_filter(package: LoadedPackage) -> list[str]:
    """A sentence about the filter that a model asks for, where it cannot differ from the one in use."""
    asked = getattr(package.module, "SAME_AS_EXTENDED", None)
    return [] if asked is None else [f"the filter {asked} cannot differ from extended on {package.name}"]


def print_remarks(console: Console, remarks: Sequence[str]) -> None:
    """What a user should know about what was derived, a line each."""
    from rich.text import Text

    for remark in remarks:
        console.print(Text.assemble(("note", "yellow"), f": {remark}"))
