"""One process of the benchmark: all sizes, all participants side by side. Started by `symdual.bench.run`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from symdual.bench import workload
from symdual.bench.boxes import boxes as measure_boxes
from symdual.bench.contender import OWN, contender
from symdual.bench.results import Box
from symdual.bench.timing import Timing, measure

Progress = Callable[[str, float], None]


def measure_all(
    sizes: Sequence[int], peers: Sequence[str], rounds: int, build: Path, progress: Progress
) -> tuple[list[Timing], list[Box]]:
    """Return the timings of symdual and the given peers at each size, and the boxes of symdual's decision."""
    participants = [contender(name) for name in (OWN, *peers)]
    timings: list[Timing] = []
    boxes: list[Box] = []
    turns = len(sizes) * (len(participants) + 1)
    done = 0
    for size in sizes:
        work = workload.make(size)
        offered = []
        for name, participant in zip((OWN, *peers), participants, strict=True):
            progress(f"{size} features: preparing {name}", done / turns)
            offered += participant.implementations(work, build)
            done += 1
        progress(f"{size} features: timing", done / turns)
        timings += measure(size, offered, workload.reference(work), rounds)
        boxes += measure_boxes(work, build, rounds)
        done += 1
    return timings, boxes


def main(request: Path, answer: Path) -> None:
    """Read a request written by `symdual.bench.run` and write the rows measured; print progress."""
    asked = json.loads(request.read_text())

    def progress(text: str, fraction: float) -> None:
        print(f"{fraction:.4f} {text}", flush=True)

    build = Path(asked["build"])
    timings, boxes = measure_all(asked["sizes"], asked["peers"], asked["rounds"], build, progress)
    answer.write_text(json.dumps({"timings": timings, "boxes": boxes}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
