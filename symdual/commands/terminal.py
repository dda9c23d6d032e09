"""What commands print with; rich is imported only when something is printed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


def new_console() -> Console:
    """A console that colours only what is marked."""
    from rich.console import Console

    return Console(highlight=False)


def new_progress(console: Console) -> Progress:
    """A bar with the time left, gone when it is done."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True)


def shown(folder: Path) -> str:
    """A folder as seen from here."""
    try:
        return str(folder.relative_to(Path.cwd()))
    except ValueError:
        return str(folder)


def print_remarks(console: Console, remarks: Sequence[str]) -> None:
    """What a user should know about what was derived, a line each."""
    from rich.markup import escape

    for remark in remarks:
        console.print(f"[yellow]note[/]: {escape(remark)}")
