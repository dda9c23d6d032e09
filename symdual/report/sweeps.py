"""The summary of a sweep in the terminal."""

from __future__ import annotations

from rich.table import Table

from symdual.runtime.summary import Consistency, Mean, Summary


def summary_table(summary: Summary) -> Table:
    """One line per controller: cost, paired difference, failures and the consistency of the filter."""
    table = Table(box=None, padding=(0, 2, 0, 0), collapse_padding=True)
    table.add_column("controller", no_wrap=True)
    for title in ("L / T", "std", f"minus {summary.baseline}", "better", "failed", "NEES θ", "NEES x", "NIS"):
        table.add_column(title, justify="right", no_wrap=True)
    for c in summary.controllers:
        table.add_row(
            c.name,
            _with_error(c.cost),
            "-" if c.cost is None or c.cost.deviation is None else f"{c.cost.deviation:.4g}",
            _with_error(c.difference, sign=True),
            "-" if c.better is None else f"{100 * c.better:.0f} %",
            str(sum(c.failed.values())),
            *(_ratio(value) for value in (c.nees_parameters, c.nees_state, c.nis)),
        )
    return table


def _with_error(value: Mean | None, sign: bool = False) -> str:
    if value is None:
        return "-"
    mean = f"{value.mean:+.4g}" if sign else f"{value.mean:.4g}"
    return mean if value.error is None else f"{mean} ± {value.error:.2g}"


def _ratio(value: Consistency | None) -> str:
    return "-" if value is None else f"{value.mean:.3g}"
