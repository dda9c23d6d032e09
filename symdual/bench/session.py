"""One process of the benchmark: all sizes, all participants side by side. Started by `symdual.bench.run`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from symdual.bench import workload
from symdual.bench.boxes import boxes as measure_boxes
from symdual.bench.contender import OWN, contender
from symdual.bench.results import Found
from symdual.bench.timing import measure

Progress = Callable[[str, float], None]


def measured(
    sizes: Sequence[int], peers: Sequence[str], rounds: int, build: Path, progress: Progress
) -> Iterator[Found]:
    """Yield, as they come, the timings of symdual and the given peers at each size and the boxes of its decision."""
    participants = [contender(name) for name in (OWN, *peers)]
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
        for timings in measure(size, offered, workload.reference(work), rounds):
            if timings:
                yield Found(timings=timings)
        yield Found(boxes=tuple(measure_boxes(work, build, rounds)))
        done += 1


def main(request: Path) -> None:
    """Read a request written by `symdual.bench.run`; print progress and what is measured, each a line of JSON."""
    asked = json.loads(request.read_text())

    def progress(text: str, fraction: float) -> None:
        print(json.dumps({"doing": text, "fraction": fraction}), flush=True)

    for found in measured(asked["sizes"], asked["peers"], asked["rounds"], Path(asked["build"]), progress):
        print(json.dumps({"timings": found.timings, "boxes": found.boxes}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
