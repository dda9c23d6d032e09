"""What a run of the benchmark found, its ratios, and its form as JSON."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from symdual.bench.contender import OWN
from symdual.bench.timing import Timing

LIMIT: Final = "C limit"
_PACKAGES: Final = ("symdual", "numpy", "numba", "sympy", "casadi", "jax", "filterpy", "symforce")


class Start(NamedTuple):
    """Seconds until a generated package is ready in a fresh process, by what has to be done first."""

    size: int
    what: str
    seconds: float


class Box(NamedTuple):
    """Time of one box of a dual decision (predict, nominal, cost-to-go, search) at one size."""

    size: int
    box: str
    microseconds: float


class Found(NamedTuple):
    """What a part of a run measured."""

    timings: tuple[Timing, ...] = ()
    boxes: tuple[Box, ...] = ()
    starts: tuple[Start, ...] = ()


@dataclass(frozen=True)
class Results:
    """All measurements of one run; times are the best over rounds and processes."""

    machine: str
    versions: dict[str, str]
    sizes: tuple[int, ...]
    rounds: int
    processes: int
    absent: dict[str, str]
    timings: tuple[Timing, ...]
    starts: tuple[Start, ...]
    boxes: tuple[Box, ...]

    def rows(self) -> tuple[str, ...]:
        """Return the names of all participants, the limit and symdual first."""
        return rows_of(self.timings)

    def best(self, size: int, kernel: str, row: str) -> Timing | None:
        """Return the fastest variant of a participant, or None when it has none for this kernel and size."""
        return best_of([t for t in self.timings if (t.size, t.kernel) == (size, kernel)], row)

    def base(self) -> str:
        """Return the participant that ratios refer to: the C limit, or symdual where nothing compiles C."""
        return base_of(self.timings)

    def ratio(self, size: int, kernel: str, row: str) -> float | None:
        """Return a participant's time in units of the base's time, or None when either is absent."""
        timing, base = self.best(size, kernel, row), self.best(size, kernel, self.base())
        return None if timing is None or base is None else timing.microseconds / base.microseconds

    def growth(self, kernel: str, row: str, size: int) -> float | None:
        """Return a kernel's time in units of its time at the next smaller size, or None."""
        smaller = [s for s in self.sizes if s < size]
        now = self.best(size, kernel, row)
        before = self.best(max(smaller), kernel, row) if smaller else None
        return None if now is None or before is None else now.microseconds / before.microseconds


def rows_of(timings: Iterable[Timing]) -> tuple[str, ...]:
    """Return the names of all participants, the limit and symdual first."""
    names = dict.fromkeys(timing.row for timing in timings)
    first = [name for name in (LIMIT, OWN) if name in names]
    return (*first, *(name for name in names if name not in first))


def best_of(timings: Iterable[Timing], row: str) -> Timing | None:
    """Return the fastest variant of a participant, or None."""
    return min((t for t in timings if t.row == row), key=lambda timing: timing.microseconds, default=None)


def base_of(timings: Iterable[Timing]) -> str:
    """Return the participant that ratios refer to."""
    return LIMIT if any(timing.row == LIMIT for timing in timings) else OWN


def machine() -> str:
    """Return processor, number of usable cores, operating system and Python in one line."""
    processor = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        lines = information.read_text().splitlines()
        processor = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), processor)
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{processor}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}, {python}"


def versions() -> dict[str, str]:
    """Return the versions of the packages that take part and are installed."""
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def fastest(timings: Iterable[Timing]) -> tuple[Timing, ...]:
    """Merge runs in several processes: of each variant the best time, in order of first appearance."""
    best: dict[tuple[int, str, str, str], Timing] = {}
    for timing in timings:
        key = (timing.size, timing.kernel, timing.row, timing.variant)
        if key not in best or timing.microseconds < best[key].microseconds:
            best[key] = timing
    return tuple(best.values())


def fastest_boxes(boxes: Iterable[Box]) -> tuple[Box, ...]:
    """Merge the boxes of several processes: the best time of each."""
    best: dict[tuple[int, str], Box] = {}
    for box in boxes:
        key = (box.size, box.box)
        if key not in best or box.microseconds < best[key].microseconds:
            best[key] = box
    return tuple(best.values())


def to_json(results: Results) -> str:
    """Return the results as JSON, with the ratio of every timing to the base of its kernel and size."""
    content: dict[str, Any] = asdict(results)
    content["ratios_to"] = results.base()
    content["timings"] = [_with_ratio(results, timing) for timing in results.timings]
    content["starts"] = [start._asdict() for start in results.starts]
    content["boxes"] = [box._asdict() for box in results.boxes]
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def _with_ratio(results: Results, timing: Timing) -> dict[str, Any]:
    base = results.best(timing.size, timing.kernel, results.base())
    ratio = None if base is None else timing.microseconds / base.microseconds
    return {**timing._asdict(), "ratio": ratio}


def from_rows(kind: type[Any], rows: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    """Return named tuples of one kind from plain rows, as they come out of a worker's file."""
    return tuple(kind(*row) for row in rows)
