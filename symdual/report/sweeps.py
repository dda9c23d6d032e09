"""The summary of a sweep in the terminal."""

from __future__ import annotations

import math

from rich.table import Table

from symdual.runtime.summary import Consistency, Mean, Summary


def summary_table(summary: Summary) -> Table:
    """One line per controller: cost, paired difference, failures and the consistency of the filter."""
    table = Table(box=None, padding=(0, 1, 0, 0), collapse_padding=True)
    table.add_column("", no_wrap=True)
    for title in ("L / T", "std", f"minus {summary.baseline}", "better", "failed", "NEES θ", "NEES x", "NIS"):
        table.add_column(title, justify="right", no_wrap=True)
    for c in summary.controllers:
        table.add_row(
            c.name,
            _with_error(c.cost),
            "-" if c.cost is None or c.cost.deviation is None else f"{c.cost.deviation:.3g}",
            _with_error(c.difference, sign=True),
            "-" if c.better is None else f"{100 * c.better:.0f} %",
            str(sum(c.failed.values())),
            *(_ratio(value) for value in (c.nees_parameters, c.nees_state, c.nis)),
        )
    return table


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
