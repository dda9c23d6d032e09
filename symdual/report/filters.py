"""Filters side by side as a table."""

from __future__ import annotations

from rich.table import Table

from symdual.checks.filters import Comparison, FilterRow
from symdual.report.grid import Row, grid

#: what stands below the table
NOTE = "* the model's own; error at the end in deviations of the prior; time of a step relative to the first"


def filter_table(found: Comparison) -> Table:
    """One line per filter, and below them where the numbers of an honest one lie."""
    errors = "error θ" if found.subject == "unknowns" else "error x"
    header = ("filter", "NEES", "median", "NIS", errors, "lost", "time")
    own = found.row(found.own).name
    rows = [_cells(row, row.name == own) for row in found.rows]
    honest = [_band(found.honest.get(key)) for key in ("nees", "median", "nis")]
    return grid(header, [*rows, Row(("honest", *honest, "", "", ""), "dim")])


def _cells(row: FilterRow, own: bool) -> tuple[str, ...]:
    numbers = (_number(value) for value in (row.nees, row.median, row.nis, row.error))
    return (row.name + "*" * own, *numbers, str(row.lost), "-" if row.time is None else f"{row.time:.2f}")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _band(band: tuple[float, float] | None) -> str:
    return "-" if band is None else f"{band[0]:.2f} to {band[1]:.2f}"
