"""Run the benchmark in fresh processes, one after the other, and put their results together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from symdual.bench.contender import PEERS, contender
from symdual.bench.results import Box, Found, Results, fastest, fastest_boxes, from_rows, machine, versions
from symdual.bench.session import Progress
from symdual.bench.start import c_starts, complaint, starts
from symdual.bench.timing import Timing
from symdual.common.errors import SymdualError

SIZES: Final = (2, 30, 100, 300)
# every participant on one core, set before its libraries are loaded
ONE_THREAD: Final = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}


class BenchmarkError(SymdualError):
    """A run that cannot be done as asked, or that broke off."""


def run(
    sizes: Sequence[int] = SIZES,
    peers: Sequence[str] | None = None,
    rounds: int = 25,
    processes: int = 1,
    progress: Progress | None = None,
    tell: Callable[[Found], None] | None = None,
) -> Results:
    """Measure symdual beside its peers on the Fourier cart and return all times.

    Args:
        sizes: numbers of features, even.
        peers: names out of `PEERS`; all that are installed when None. One that is named must be there.
        rounds: visits to each implementation; the fastest counts.
        processes: fresh processes, one after the other; the fastest counts.
        progress: called with a text and the fraction done.
        tell: called with what was measured, as soon as it was.
    """
    wanted = _checked(sizes, rounds, processes)
    chosen, absent = _available(peers)
    found: list[Found] = []
    with tempfile.TemporaryDirectory(prefix="symdual-bench-") as folder:
        request = {"sizes": wanted, "peers": chosen, "rounds": rounds, "build": folder}
        report = progress or (lambda text, fraction: None)
        for part in _parts(request, processes, Path(folder), report):
            found.append(part)
            if tell is not None:
                tell(part)
        report("done", 1.0)
    return Results(
        machine=machine(),
        versions=versions(),
        sizes=tuple(wanted),
        rounds=rounds,
        processes=processes,
        absent=absent,
        timings=fastest(timing for part in found for timing in part.timings),
        starts=tuple(start for part in found for start in part.starts),
        boxes=fastest_boxes(box for part in found for box in part.boxes),
    )


def _parts(request: dict[str, Any], processes: int, build: Path, report: Progress) -> Iterator[Found]:
    """Yield what is measured, process by process, and then how long packages take to start."""
    for turn in range(processes):

        def partial(text: str, fraction: float, turn: int = turn) -> None:
            report(f"process {turn + 1} of {processes}, {text}", (turn + fraction) / (processes + 1))

        yield from _session(request, build, partial)
    sizes, beside = request["sizes"], "export" in request["peers"]
    alone = sizes if beside else sizes[-2:]  # by itself, two sizes show whether it grows
    for done, size in enumerate(alone):
        text = f"{size} features: start of a package in fresh processes"
        report(text, (processes + done / len(alone)) / (processes + 1))
        yield Found(starts=(*starts(size, build), *(c_starts(size, build) if beside else ())))


def _checked(sizes: Sequence[int], rounds: int, processes: int) -> list[int]:
    for size in sizes:
        if size < 2 or size % 2:
            raise BenchmarkError(f"the number of features must be even and at least 2, not {size}")
    if not sizes:
        raise BenchmarkError("no number of features is given")
    if rounds < 1:
        raise BenchmarkError(f"the number of rounds must be at least 1, not {rounds}")
    if processes < 1:
        raise BenchmarkError(f"the number of processes must be at least 1, not {processes}")
    return sorted(set(sizes))


def _available(peers: Sequence[str] | None) -> tuple[list[str], dict[str, str]]:
    """Return the peers that take part, and why the others do not."""
    asked = PEERS if peers is None else tuple(dict.fromkeys(peers))
    reasons = {name: contender(name).missing() for name in asked}
    absent = {name: reason for name, reason in reasons.items() if reason is not None}
    if absent and peers is not None:
        raise BenchmarkError(f"a peer that was asked for cannot run: {next(iter(absent.values()))}")
    return [name for name in asked if name not in absent], absent


def _session(request: dict[str, Any], build: Path, progress: Progress) -> Iterator[Found]:
    """Run one process and yield what it measures."""
    asked, errors = build / "request.json", build / "errors.txt"
    asked.write_text(json.dumps(request))
    command = [sys.executable, "-m", "symdual.bench.session", str(asked)]
    with (
        errors.open("w") as complaints,
        subprocess.Popen(
            command, env={**os.environ, **ONE_THREAD}, stdout=subprocess.PIPE, stderr=complaints, text=True
        ) as worker,
    ):
        assert worker.stdout is not None
        yield from heard(worker.stdout, progress)
    if worker.returncode != 0:
        raise BenchmarkError(f"a process of the benchmark broke off: {complaint(errors.read_text())}")


def heard(lines: Iterable[str], progress: Progress) -> Iterator[Found]:
    """Yield what a process says it measured, and pass on what it is doing; other lines some library has printed."""
    for line in lines:
        try:
            said = json.loads(line)
        except ValueError:
            continue
        match said:
            case {"doing": str(text), "fraction": float(fraction)}:
                progress(text, fraction)
            case {"timings": list(timings), "boxes": list(boxes)}:
                yield Found(from_rows(Timing, timings), from_rows(Box, boxes))
