"""What was measured, in lines of text: told while a run goes on, so that one that is cut off was not for nothing."""

from __future__ import annotations

from collections.abc import Sequence

from symdual.bench.results import Box, Found, Start, base_of, best_of, rows_of
from symdual.bench.timing import Timing
from symdual.bench.workload import TITLES


def microseconds(value: float) -> str:
    """Return a time with three significant digits and its unit."""
    if value < 1e3:
        return f"{value:.3g} us"
    return f"{value / 1e3:.3g} ms" if value < 1e6 else f"{value / 1e6:.3g} s"


def factor(value: float) -> str:
    """Return a ratio with two decimals when small and none when large."""
    return f"{value:.2f}x" if value < 10 else f"{value:.0f}x"


def lines(found: Found) -> list[str]:
    """Return a line for each kernel and size with the times of all, one for a decision, one for each start."""
    timings = dict.fromkeys((t.size, t.kernel) for t in found.timings)
    decisions = dict.fromkeys(box.size for box in found.boxes)
    return [
        *(_compared([t for t in found.timings if (t.size, t.kernel) == one]) for one in timings),
        *(_decision([box for box in found.boxes if box.size == size]) for size in decisions),
        *(_start(start) for start in found.starts),
    ]


def _compared(timings: Sequence[Timing]) -> str:
    base = best_of(timings, base_of(timings))
    parts = []
    for row in rows_of(timings):
        best = best_of(timings, row)
        assert best is not None
        ratio = "" if base is None or row == base.row else f" ({factor(best.microseconds / base.microseconds)})"
        parts.append(f"{row} {microseconds(best.microseconds)}{ratio}")
    return f"{timings[0].size} features, {TITLES[timings[0].kernel]}: {'; '.join(parts)}"


def _decision(boxes: Sequence[Box]) -> str:
    parts = [f"{box.box.partition(':')[2].strip() or box.box} {microseconds(box.microseconds)}" for box in boxes]
    return f"{boxes[0].size} features, in a decision of symdual: {'; '.join(parts)}"


def _start(start: Start) -> str:
    return f"{start.size} features, {start.what}: {start.seconds:.2f} s"
