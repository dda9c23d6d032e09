"""Work that goes on, as a bar in a terminal or a notebook; rich is imported only when there is one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from symdual.runtime.warm import Work

PATIENCE = 2.0  #: seconds after which work that goes on is shown


def new_progress(timed: bool = True) -> Progress:
    """A bar with the time left, gone when it is done; while it is there, its own console prints above it.

    Where it is not `timed`, what is said beside it tells the time left.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    what = TextColumn("{task.description}", markup=False)
    columns: list[ProgressColumn] = [
        what,
        BarColumn(),
        TimeElapsedColumn(),
        *([TimeRemainingColumn()] if timed else []),
    ]
    return Progress(*columns, console=Console(highlight=False, markup=False, emoji=False), transient=True)


@contextmanager
def side_by_side() -> Iterator[Callable[[str, str, float], None]]:
    """A bar for each of several pieces of work: told which one, what is done there, and which share of it is done.

    A share that is NaN leaves the bar where it is.
    """
    bar = new_progress(timed=False)
    numbers: dict[str, TaskID] = {}

    def report(where: str, what: str, share: float) -> None:
        if where not in numbers:
            numbers[where] = bar.add_task(where, total=1.0)
        completed = None if math.isnan(share) else share
        bar.update(numbers[where], description=f"{where}: {what}", completed=completed)

    with bar:
        yield report


@contextmanager
def late_progress(timed: bool = True) -> Iterator[Callable[[str, float | None], None]]:
    """A function that is told what is being done and which share of it is done; its bar appears when work goes on.

    A share of None means that nobody knows.
    """
    started = time.perf_counter()
    bar = new_progress(timed)
    number = bar.add_task("", total=None)

    def report(what: str, share: float | None) -> None:
        seen = bar.console.is_terminal or bar.console.is_jupyter
        if seen and not bar.live.is_started and time.perf_counter() - started > PATIENCE:
            bar.start()
        bar.update(number, description=what, total=None if share is None else 1.0, completed=share or 0.0)

    try:
        yield report
    finally:
        if bar.live.is_started:
            bar.stop()


def show_compiling(works: Sequence[Work]) -> dict[str, float]:
    """Compile parts of packages on all cores, and say what is compiled, how far it is and how long it will take."""
    from symdual.runtime.warm import Doing, warm

    if not works:
        return {}
    name = ", ".join(dict.fromkeys(work.folder.name for work in works))
    with late_progress(timed=False) as report:

        def tell(doing: Doing) -> None:
            report(f"compiling {name}: {doing.what}; about {max(1, round(doing.left))} s left", doing.share)

        return warm(works, tell)
