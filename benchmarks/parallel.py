"""How well episodes use several cores: `python benchmarks/parallel.py [--threads N] [--rounds N] [--json FILE]`.

Fifty episodes of experiment 2 with `dual` (and with `ce`), on one thread and on N, beside what the machine allows: N
processes that know nothing of each other, each running the same episodes on one thread at the same moment. All are
visited in turn; the efficiency of N threads is t(1 thread) / (N t(N threads)), that of the machine t(1 thread) /
t(slowest of N processes). Medians over the rounds, and the best round of each.
"""

from __future__ import annotations

import json
import multiprocessing
import tempfile
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import click
import numba
import numpy as np

import symdual
from symdual.paper.experiments.plan import MODELS
from symdual.runtime.closed_loop import Settings, draw, plant_problem, run
from symdual.runtime.problem import problem

EPISODES = 50


class Work:
    """The episodes of one controller, ready to be timed."""

    def __init__(self, folder: Path, name: str) -> None:
        self._problem = plant_problem(problem(symdual.load(folder / "schedule")), Settings())
        self._noise_draws = draw(self._problem, Settings(), np.random.SeedSequence(0).spawn(EPISODES))
        self._name = name

    def seconds(self, threads: int) -> float:
        numba.set_num_threads(threads)
        start = time.perf_counter()
        run(self._problem, self._name, self._noise_draws, Settings())
        return time.perf_counter() - start


def neighbour(folder: Path, name: str, gate: Barrier, answers: Any, rounds: int) -> None:
    """One of the processes that run the same episodes beside each other."""
    work = Work(folder, name)
    work.seconds(1)
    for _ in range(rounds):
        gate.wait()
        answers.put(work.seconds(1))
        gate.wait()


def measure(folder: Path, name: str, threads: int, rounds: int) -> np.ndarray:
    """Seconds (rounds, 3) on one thread, on several, and of the slowest of several processes."""
    context = multiprocessing.get_context("spawn")
    gate, answers = context.Barrier(threads + 1), context.Queue()
    arguments = (folder, name, gate, answers, rounds)
    others = [context.Process(target=neighbour, args=arguments) for _ in range(threads)]
    for other in others:
        other.start()
    work = Work(folder, name)
    work.seconds(1), work.seconds(threads)
    times = np.zeros((rounds, 3))
    for row in times:
        row[0], row[1] = work.seconds(1), work.seconds(threads)
        gate.wait()
        row[2] = max(answers.get() for _ in others)
        gate.wait()
    for other in others:
        other.join()
    return times


@click.command(help=__doc__)
@click.option("--threads", default=2, show_default=True, type=click.IntRange(1, numba.config.NUMBA_NUM_THREADS))
@click.option("--rounds", default=15, show_default=True, type=click.IntRange(min=1))
@click.option("--json", "json_file", type=click.Path(path_type=Path))
def main(threads: int, rounds: int, json_file: Path | None) -> None:
    results = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        symdual.generate(MODELS / "schedule.py", folder)
        for name in ("dual", "ce"):
            Work(folder, name).seconds(1)  # compiles, so that the others only load
            one, several, apart = measure(folder, name, threads, rounds).T
            results[name] = {
                "seconds": [float(one.min()), float(several.min())],
                "efficiency": [
                    float(np.median(one / (threads * several))),
                    float(one.min() / (threads * several.min())),
                ],
                "machine": [float(np.median(one / apart)), float(one.min() / apart.min())],
            }
            print(f"{name}: {one.min():.4f} s on one thread, {several.min():.4f} s on {threads}", flush=True)
            for what, key in ((f"{threads} threads", "efficiency"), (f"{threads} separate processes", "machine")):
                median, best = results[name][key]
                print(f"    efficiency of {what}: median {median:.3f}, best rounds {best:.3f}", flush=True)
    if json_file is not None:
        json_file.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
