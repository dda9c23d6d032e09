"""What commands print with; rich is imported only when something is printed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

PATIENCE = 2.0  #: seconds after which work that goes on is shown


def new_console() -> Console:
    """A console that colours only what is marked."""
    from rich.console import Console

    return Console(highlight=False)


def new_progress(console: Console) -> Progress:
    """A bar with the time left, gone when it is done."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True)


@contextmanager
def late_progress(console: Console) -> Iterator[Callable[[str, float | None], None]]:
    """A function that is told what is being done and which share of it is done; its bar appears when work goes on.

    A share of None means that nobody knows.
    """
    started = time.perf_counter()
    bar = new_progress(console)
    number = bar.add_task("", total=None)

    def report(what: str, share: float | None) -> None:
        if console.is_terminal and not bar.live.is_started and time.perf_counter() - started > PATIENCE:
            bar.start()
        bar.update(number, description=what, total=None if share is None else 1.0, completed=share or 0.0)

    try:
        yield report
    finally:
        if bar.live.is_started:
            bar.stop()


def shown(folder: Path) -> str:
    """A folder as seen from here."""
    try:
        return str(folder.relative_to(Path.cwd()))
    except ValueError:
        return str(folder)
