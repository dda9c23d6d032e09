"""Markdown tables from the file that `symdual bench --json FILE` writes.

python benchmarks/markdown.py benchmarks/results.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from symdual.bench.lines import factor, microseconds
from symdual.bench.results import Box, Results, Start, from_rows
from symdual.bench.timing import Timing
from symdual.bench.workload import KERNELS, TITLES


def results(content: dict[str, Any]) -> Results:
    """Return the results that a JSON file holds."""
    tables = {"timings": Timing, "starts": Start, "boxes": Box}
    for name, kind in tables.items():
        content[name] = from_rows(kind, [[row[field] for field in kind._fields] for row in content[name]])
    names = Results.__dataclass_fields__
    return Results(**{name: content[name] for name in names} | {"sizes": tuple(content["sizes"])})


def line(*cells: str) -> str:
    """Return one row of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def head(*cells: str) -> list[str]:
    """Return the first two rows of a Markdown table."""
    return [line(*cells), "|" + "---|" * len(cells)]


def ratios(found: Results) -> list[str]:
    """Return one table per size: time and ratio to the base."""
    text = []
    for size in found.sizes:
        text += ["", f"### {size} features", "", *head("", *(TITLES[kernel] for kernel in KERNELS))]
        for row in found.rows():
            cells = []
            for kernel in KERNELS:
                timing, ratio = found.best(size, kernel, row), found.ratio(size, kernel, row)
                mark = "" if timing is None or timing.in_loop else "*"
                shown = "" if timing is None else microseconds(timing.microseconds) + mark
                cells.append(shown if ratio is None or row == found.base() else f"{shown} ({factor(ratio)})")
            if any(cells):
                text.append(line(row, *cells))
    return text


def growth(found: Results) -> list[str]:
    """Return the dual cost over all sizes, with the ratio to the size before."""
    text = ["", "### Growth of the dual cost with the number of features", ""]
    text += head("", *(str(size) for size in found.sizes))
    for row in found.rows():
        cells = []
        for size in found.sizes:
            timing, ratio = found.best(size, "dual_cost", row), found.growth("dual_cost", row, size)
            shown = "" if timing is None else microseconds(timing.microseconds)
            cells.append(shown if ratio is None else f"{shown} ({factor(ratio)})")
        if any(cells):
            text.append(line(row, *cells))
    return text


def by_size(title: str, sizes: tuple[int, ...], cells: dict[str, dict[int, str]]) -> list[str]:
    """Return a table with one column per size."""
    text = ["", f"### {title}", "", *head("", *(f"{size} features" for size in sizes))]
    return text + [line(name, *(values.get(size, "") for size in sizes)) for name, values in cells.items()]


def main(file: Path) -> None:
    """Print all tables of a results file."""
    found = results(json.loads(file.read_text()))
    packages = ", ".join(f"{name} {version}" for name, version in sorted(found.versions.items()))
    text = [f"{found.machine}; {packages}.", f"Best of {found.rounds} rounds in {found.processes} processes."]
    boxes: dict[str, dict[int, str]] = {}
    for box in found.boxes:
        boxes.setdefault(box.box, {})[box.size] = microseconds(box.microseconds)
    starts: dict[str, dict[int, str]] = {}
    for start in found.starts:
        starts.setdefault(start.what, {})[start.size] = f"{start.seconds:.2f} s"
    text += ratios(found) + growth(found)
    text += by_size("Where a dual decision spends its time", found.sizes, boxes)
    text += by_size("Start of a generated package in a fresh process", found.sizes, starts)
    print("\n".join(text))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
