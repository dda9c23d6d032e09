"""The exported C beside the hand-written limit, both with the flags that symdual itself compiles C with.

    python benchmarks/same_flags.py [--features 2 30 100] [--rounds 60]

`symdual bench` tries several builds of either and takes the best of each; here the flags are the same. The limit has
its sizes as constants, as the exported C has, and is tried with sines of its own and with those of the C library.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from symdual.backends.c.backend import FEW, library_text
from symdual.backends.c.compilation import fast_flags, shared_library
from symdual.backends.c.library import Library
from symdual.backends.loading import in_c
from symdual.bench import workload
from symdual.bench.contender import Implementation
from symdual.bench.peers import c_limit, compiler, own_c, own_side

KERNELS = {"ekf": "EKF step", "dual_cost": "dual cost"}
SECONDS = 2e-3  # of each visit at least: a call from Python takes some 30 us besides


def exported(work: workload.Workload, build: Path) -> Iterator[Implementation]:
    """The filter step and the dual cost of the exported C, in the form that it would choose."""
    package = own_side.generated(work, build)
    translation = own_c.translated_loops(package)
    library = shared_library(own_c.with_barrier(library_text(translation)), fast_flags(package.NZ <= FEW))
    loops = own_c.loops(translation, Library(translation, library))
    yield own_side.ekf(work, in_c(package), loops)
    form = package.dual_cost.choose_form(workload.HORIZON)
    yield from (one for one in own_side.dual_costs(work, in_c(package), loops) if one.variant == form)


def limit(work: workload.Workload, build: Path) -> Iterator[Implementation]:
    """The same of the C limit."""
    for sines in ((), ("-DPOLY",)):
        flags = (*fast_flags(work.features + 2 <= FEW), f"-DFIXF={work.features}", *sines)
        library = compiler.shared_library(c_limit.SOURCE, flags, build, c_limit.COMPILE_SECONDS)
        if library is not None:
            offered = c_limit.implementations_of(work, library, " ".join(sines))
            yield from (one for one in offered if one.kernel in KERNELS)


def nanoseconds(one: Implementation, count: int) -> float:
    """Time of one call, over `count` of them."""
    start = time.perf_counter()
    one.repeat(count)
    return 1e9 * (time.perf_counter() - start) / count


def enough(one: Implementation) -> int:
    """How many calls take SECONDS."""
    count = 1
    while count * nanoseconds(one, count) < 1e9 * SECONDS:
        count *= 2
    return count


def compare(features: int, rounds: int, build: Path) -> None:
    """Print the ratios for one size."""
    work = workload.make(features)
    sides = {"own": list(exported(work, build)), "limit": list(limit(work, build))}
    for kernel, title in KERNELS.items():
        taking_part = [(side, one) for side, some in sides.items() for one in some if one.kernel == kernel]
        counts = [enough(one) for _, one in taking_part]
        best = dict.fromkeys(sides, float("inf"))
        for _ in range(rounds):
            for (side, one), count in zip(taking_part, counts, strict=True):
                best[side] = min(best[side], nanoseconds(one, count))
        own, limited = best["own"], best["limit"]
        print(f"{features:4d} features  {title:9s}  {own:10.1f} ns, limit {limited:10.1f} ns: {own / limited:.2f}x")


def main() -> None:
    """Compare sizes one after another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=int, nargs="+", default=[2, 30, 100])
    parser.add_argument("--rounds", type=int, default=60)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for features in arguments.features:
            compare(features, arguments.rounds, Path(folder))


if __name__ == "__main__":
    main()
