"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

Cell = str | Text


class Row(NamedTuple):
    """A row with a style of its own."""

    cells: Sequence[Cell]
    style: str


def grid(
    header: Sequence[str],
    rows: Iterable[Sequence[Cell] | Row],
    title: str = "",
    note: str = "",
    left: Sequence[int] = (0,),
    wrapped: Sequence[int] = (),
) -> Table:
    """A table without lines.

    Args:
        header: the names of the columns, or nothing but empty ones.
        title, note: stand above and below it.
        left: columns that are set flush left; the others have numbers.
        wrapped: columns of sentences, which are broken into lines.
    """
    drawn = Table(
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        show_header=any(header),
        title=title or None,
        title_justify="left",
        title_style="bold",
        caption=note or None,
        caption_justify="left",
    )
    for i, name in enumerate(header):
        drawn.add_column(name, justify="left" if i in left else "right", no_wrap=i not in wrapped)
    for row in rows:
        if isinstance(row, Row):
            drawn.add_row(*row.cells, style=row.style)
        else:
            drawn.add_row(*row)
    return drawn
