"""The results as tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from symdual.bench.contender import OWN
from symdual.bench.lines import factor, microseconds
from symdual.bench.results import Results
from symdual.bench.workload import HORIZON, KERNELS, TITLES
from symdual.report.grid import Row, grid


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
    rows = [(row, *(_cell(results, size, kernel, row) for kernel in KERNELS)) for row in results.rows()]
    return grid(
        ("", *(TITLES[kernel] for kernel in KERNELS)),
        _own_in_bold(rows),
        f"{size} features: time, and ratio to {results.base()}",
        "* called from Python; all others are repeated inside compiled code",
    )


def _own_in_bold(rows: Iterable[Sequence[str]]) -> list[Sequence[str] | Row]:
    """Rows that have a number, ours in bold."""
    kept = [row for row in rows if any(row[1:])]
    return [Row(row, "bold") if row[0] == OWN else row for row in kept]


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
    rows = []
    for row in results.rows():
        cells = []
        for size in results.sizes:
            timing, ratio = results.best(size, "dual_cost", row), results.growth("dual_cost", row, size)
            text = "" if timing is None else microseconds(timing.microseconds)
            cells.append(text if ratio is None else f"{text}  {factor(ratio)}")
        rows.append((row, *cells))
    return grid(("", *map(str, results.sizes)), _own_in_bold(rows), title)


def _boxes(results: Results) -> Table:
    found = {(box.box, box.size): microseconds(box.microseconds) for box in results.boxes}
    return _by_size(results, found, "Where a dual decision of symdual spends its time")


def _starts(results: Results) -> Table:
    found = {(start.what, start.size): f"{start.seconds:.2f}" for start in results.starts}
    return _by_size(results, found, "Start of a generated package in a fresh process, seconds")


def _by_size(results: Results, found: Mapping[tuple[str, int], str], title: str) -> Table:
    """A row for each name, a column for each size."""
    names = dict.fromkeys(name for name, _ in found)
    rows = [(name, *(found.get((name, size), "") for size in results.sizes)) for name in names]
    return grid(("", *(f"{size} features" for size in results.sizes)), rows, title)
