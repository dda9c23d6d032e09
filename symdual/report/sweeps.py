"""The summary of a sweep as a table: in the terminal, as text, and in notebooks."""

from __future__ import annotations

import io
import math

from rich.table import Table

from symdual.report.grid import grid
from symdual.report.html import element, join, table
from symdual.runtime.summary import Consistency, Mean, Summary


def titles(summary: Summary) -> tuple[str, ...]:
    """What the columns of the table are."""
    return ("", "L / T", "std", f"minus {summary.baseline}", "better", "failed", "NEES θ", "NEES x", "NIS")


def rows(summary: Summary) -> list[tuple[str, ...]]:
    """One line per controller: cost, paired difference, failures and the consistency of the filter.

    A star marks a cost that is the mean of those episodes only that did not fail.
    """
    return [
        (
            c.name,
            _with_error(c.cost) + "*" * c.partial,
            "-" if c.cost is None or c.cost.deviation is None else f"{c.cost.deviation:.3g}",
            _with_error(c.difference, sign=True),
            "-" if c.better is None else f"{100 * c.better:.0f} %",
            str(sum(c.failed.values())),
            *(_ratio(value) for value in (c.nees_parameters, c.nees_state, c.nis)),
        )
        for c in summary.controllers
    ]


def summary_table(summary: Summary) -> Table:
    """The table for a terminal."""
    return grid(titles(summary), rows(summary))


def printed(summary: Summary) -> str:
    """The table and the sentences below it as plain text."""
    from rich.console import Console

    text = io.StringIO()
    console = Console(file=text, width=200, highlight=False, markup=False, emoji=False)
    console.print(summary_table(summary))
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    return "\n".join([*lines, *summary.sentences()])


def html(summary: Summary) -> str:
    """The table and the sentences below it for a notebook."""
    about = summary.about
    head = f"{about['scenario']}: {about['runs']} runs, seed {about['seed']}, truth: {about['settings']['truth']}"
    numbers = table(titles(summary), rows(summary), numeric=range(1, len(titles(summary))))
    return str(element("div", element("p", head), numbers, join(element("p", s) for s in summary.sentences())))


def _with_error(value: Mean | None, sign: bool = False) -> str:
    """A mean with as many digits as its standard error allows."""
    if value is None:
        return "-"
    plus = "+" if sign else ""
    if not value.error or value.error < 1e-6 * abs(value.mean):
        return f"{value.mean:{plus}.4g}"
    digits = 1 - math.floor(math.log10(value.error))
    if not 0 <= digits <= 5:
        return f"{value.mean:{plus}.3g} ± {value.error:.2g}"
    return f"{value.mean:{plus}.{digits}f} ± {value.error:.{digits}f}"


def _ratio(value: Consistency | None) -> str:
    return "-" if value is None else f"{value.mean:.3g}"
