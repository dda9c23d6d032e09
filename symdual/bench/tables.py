"""The results as tables for the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from symdual.bench.contender import OWN
from symdual.bench.lines import factor, microseconds
from symdual.bench.results import Results
from symdual.bench.workload import HORIZON, KERNELS, TITLES


def table(results: Results) -> RenderableType:
    """Return all tables of a run: ratios per size, growth, boxes of a decision, start-up."""
    parts: list[RenderableType] = [_ratios(results, size) for size in results.sizes]
    if len(results.sizes) > 1:
        parts.append(_growth(results))
    if results.boxes:
        parts.append(_boxes(results))
    if results.starts:
        parts.append(_starts(results))
    parts += [Text(f"not here: {name} ({reason})", style="dim") for name, reason in results.absent.items()]
    return Group(*parts)


def _ratios(results: Results, size: int) -> Table:
    base = results.base()
    sheet = Table(title=f"{size} features: time, and ratio to {base}", title_justify="left")
    sheet.add_column("")
    for kernel in KERNELS:
        sheet.add_column(TITLES[kernel], justify="right")
    for row in results.rows():
        cells = [_cell(results, size, kernel, row) for kernel in KERNELS]
        if any(cells):
            sheet.add_row(row, *cells, style="bold" if row == OWN else None)
    sheet.caption = "* called from Python; all others are repeated inside compiled code"
    sheet.caption_justify = "left"
    return sheet


def _cell(results: Results, size: int, kernel: str, row: str) -> str:
    timing, ratio = results.best(size, kernel, row), results.ratio(size, kernel, row)
    if timing is None:
        return ""
    text = microseconds(timing.microseconds)
    if ratio is not None and row != results.base():
        text += f"  {factor(ratio)}"
    return text if timing.in_loop else text + "*"


def _growth(results: Results) -> Table:
    title = f"Growth of the dual cost ({HORIZON} steps) with the features: time, and ratio to the size before"
    sheet = Table(title=title, title_justify="left")
    sheet.add_column("")
    for size in results.sizes:
        sheet.add_column(str(size), justify="right")
    for row in results.rows():
        cells = []
        for size in results.sizes:
            timing, ratio = results.best(size, "dual_cost", row), results.growth("dual_cost", row, size)
            text = "" if timing is None else microseconds(timing.microseconds)
            cells.append(text if ratio is None else f"{text}  {factor(ratio)}")
        if any(cells):
            sheet.add_row(row, *cells, style="bold" if row == OWN else None)
    return sheet


def _boxes(results: Results) -> Table:
    sheet = Table(title="Where a dual decision of symdual spends its time", title_justify="left")
    sheet.add_column("")
    for size in results.sizes:
        sheet.add_column(f"{size} features", justify="right")
    for name in dict.fromkeys(box.box for box in results.boxes):
        times = {box.size: box.microseconds for box in results.boxes if box.box == name}
        sheet.add_row(name, *(microseconds(times[size]) if size in times else "" for size in results.sizes))
    return sheet


def _starts(results: Results) -> Table:
    sheet = Table(title="Start of a generated package in a fresh process, seconds", title_justify="left")
    sheet.add_column("")
    for size in results.sizes:
        sheet.add_column(f"{size} features", justify="right")
    for what in dict.fromkeys(start.what for start in results.starts):
        times = {start.size: start.seconds for start in results.starts if start.what == what}
        sheet.add_row(what, *(f"{times[size]:.2f}" if size in times else "" for size in results.sizes))
    return sheet
