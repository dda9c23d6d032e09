"""The tables of README.md, one for each question, from results.json.

    python benchmarks/markdown.py                         # writes the part of README.md below its mark
    symdual bench --json run.json && python benchmarks/markdown.py limit run.json
    python benchmarks/solver.py --backend c | python benchmarks/markdown.py solver -

With a key and a file, the table of that key is replaced by that of the file, with this machine and the date. The file
is what `symdual bench --json` writes, or a text with a table in Markdown, as the other programs print it. How the
figures were taken (`under`) and what they say (`reading`) are sentences in results.json, to be looked at by hand.
"""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from symdual.bench.lines import factor, microseconds
from symdual.bench.results import Results, from_rows, machine
from symdual.bench.timing import Timing
from symdual.bench.workload import KERNELS, TITLES

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
README = HERE / "README.md"
MARK = "<!-- from here on made by benchmarks/markdown.py from results.json -->\n"

Entry = dict[str, Any]


def line(cells: Sequence[str]) -> str:
    """One row of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def section(entry: Entry) -> str:
    """A question with its table: who measured it, when, and what it says."""
    columns, rows = ratios(entry["timings"]) if "timings" in entry else (entry["columns"], entry["rows"])
    said = f"`{entry['command']}`, {entry['date']}, {entry['machine']}. {entry['under']}"
    table = "\n".join([line(columns), "|" + "---|" * len(columns), *(line(row) for row in rows)])
    return "\n\n".join(part for part in (f"## {entry['question']}", said.strip(), table, entry["reading"]) if part)


def ratios(timings: list[list[Any]]) -> tuple[list[str], list[list[str]]]:
    """Time and ratio to the base for each size and participant."""
    sizes = tuple(dict.fromkeys(timing[0] for timing in timings))
    found = Results("", {}, sizes, 0, 0, {}, from_rows(Timing, timings), (), ())
    rows = []
    for size in sizes:
        rows += [[str(size) if i == 0 else "", *row] for i, row in enumerate(_rows_of_size(found, size))]
    return ["features", "", *(TITLES[kernel] for kernel in KERNELS)], rows


def _rows_of_size(found: Results, size: int) -> list[list[str]]:
    rows = []
    for row in found.rows():
        cells = []
        for kernel in KERNELS:
            timing, ratio = found.best(size, kernel, row), found.ratio(size, kernel, row)
            mark = "" if timing is None or timing.in_loop else "*"
            shown = "" if timing is None else microseconds(timing.microseconds) + mark
            cells.append(shown if ratio is None or row == found.base() else f"{shown} ({factor(ratio)})")
        if any(cells):
            rows.append([row, *cells])
    return rows


def measured(text: str) -> Entry:
    """What a file has measured: the timings of a run of the benchmark, or the last table of a text."""
    if text.lstrip().startswith("{"):
        return {"timings": [[row[field] for field in Timing._fields] for row in json.loads(text)["timings"]]}
    lines = text.splitlines()
    rule = max(i for i, one in enumerate(lines) if one.startswith("|-") or one.startswith("| -"))
    cells = [[cell.strip() for cell in one.strip().strip("|").split("|")] for one in lines]
    rows = [cells[i] for i in range(rule + 1, len(lines)) if lines[i].startswith("|")]
    return {"columns": cells[rule - 1], "rows": rows}


def readme(head: str, results: dict[str, Entry]) -> str:
    """The README: what people wrote above the mark, and the tables."""
    return head.partition(MARK)[0] + MARK + "\n" + "\n\n".join(section(one) for one in results.values()) + "\n"


def stored(results: dict[str, Entry]) -> str:
    """The results as JSON, a row of a table on a line."""
    return "{\n" + ",\n".join(f" {json.dumps(key)}: {_stored(entry)}" for key, entry in results.items()) + "\n}\n"


def _stored(entry: Entry) -> str:
    lines = []
    for key, value in entry.items():
        if key in ("rows", "timings"):
            shown = "[\n" + ",\n".join("   " + json.dumps(row) for row in value) + "\n  ]"
        else:
            shown = json.dumps(value)
        lines.append(f"  {json.dumps(key)}: {shown}")
    return "{\n" + ",\n".join(lines) + "\n }"


def main(key: str | None = None, file: str | None = None) -> None:
    """Take over what a file has measured, if one is given, and write README.md."""
    results = json.loads(RESULTS.read_text())
    if key is not None and file is not None:
        text = sys.stdin.read() if file == "-" else Path(file).read_text()
        today = datetime.date.today().isoformat()
        results[key] |= {"machine": machine(), "date": today, **measured(text)}
        RESULTS.write_text(stored(results))
    README.write_text(readme(README.read_text(), results))


if __name__ == "__main__":
    main(*sys.argv[1:3])
