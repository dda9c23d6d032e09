"""Runs the chunks of a sweep on this machine, with as many threads as wanted, so that Ctrl-C is heard at once.

The compiled loop releases the interpreter lock and runs in threads in the background. The main thread waits where it
can be interrupted.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator
from types import TracebackType
from typing import Any, Self

from symdual.common.errors import SymdualError
from symdual.runtime.results import Chunk
from symdual.runtime.sweep import CHUNK, Execute, Sweep

_SECONDS = 1.5  # of one compiled call; what is lost when the process is killed
_BYTES = 64 * 2**20  # of results and covariances in one compiled call


def on_this_machine(jobs: int | None = None, say: Callable[[str], None] = lambda what: None) -> Execute:
    """How `run_sweep` runs chunks here.

    Args:
        jobs: the number of threads; all that the machine has by default, and never more than those.
        say: is told which controller is being compiled or loaded.
    """
    if jobs is not None and jobs < 1:
        raise SymdualError(f"jobs must be at least 1, not {jobs}")

    def execute(sweep: Sweep, pending: list[Chunk]) -> Generator[tuple[Chunk, bytes], None, None]:
        with Background() as background:
            threads = background.call(_use_threads, jobs)
            for name in dict.fromkeys(chunk.controller for chunk in pending):
                say(f"compiling or loading {name}")
                background.call(warm, sweep, name)
            yield from _rounds(sweep, pending, threads, background)

    return execute


def warm(sweep: Sweep, name: str) -> None:
    """Compile or load everything that episodes with a controller call, by running a single one."""
    one = [Chunk(name, 0, 1)]
    sweep.payloads(one, sweep.noise_draws(one))


def _use_threads(jobs: int | None) -> int:
    import numba

    available = int(numba.get_num_threads())
    threads = available if jobs is None else min(jobs, available)
    numba.set_num_threads(threads)  # holds for the thread that calls, which is the one in the background
    return threads


def _rounds(sweep: Sweep, pending: list[Chunk], threads: int, background: Background) -> Iterator[tuple[Chunk, bytes]]:
    """Run the same stretch of runs with every controller, then the next; its length follows the time that it takes."""
    starts = list(dict.fromkeys(chunk.start for chunk in pending))
    missing = set(pending)
    most = max(1, _BYTES // _chunk_bytes(sweep))
    width = max(1, 4 * threads // CHUNK)
    while starts:
        stretch, starts = starts[:width], starts[width:]
        slowest, noise_draws, drawn = 0.0, None, None
        for name in sweep.controllers:
            stops = [min(start + CHUNK, sweep.runs) for start in stretch]
            chunks = [c for c in map(Chunk, [name] * len(stretch), stretch, stops) if c in missing]
            if not chunks:
                continue
            ranges = [chunk[1:] for chunk in chunks]
            if noise_draws is None or drawn != ranges:
                noise_draws, drawn = sweep.noise_draws(chunks), ranges
            began = time.perf_counter()
            yield from background.call(sweep.payloads, chunks, noise_draws)
            slowest = max(slowest, time.perf_counter() - began)
        width = min(most, 2 * width) if slowest < _SECONDS / 2 else max(1, width // 2) if slowest > _SECONDS else width


def _chunk_bytes(sweep: Sweep) -> int:
    """What a chunk takes in memory: its results, and the last covariances, which are not kept."""
    sizes = sweep.description.sizes
    results = [sum(sweep.description.spans(name, CHUNK)[-1]) for name in sweep.controllers]
    return max(results) + CHUNK * 8 * max(sizes[name]["belief"] for name in sweep.controllers) ** 2


class Background:
    """A thread that does one thing after another for a thread that waits and can be interrupted meanwhile."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        # a daemon, so that a process that was interrupted does not wait for the compiled call to end
        self._thread = threading.Thread(target=self._work, name="symdual sweep", daemon=True)
        self._thread.start()

    def call(
        self, function: Callable[..., Any], *arguments: Any, meanwhile: Callable[[], object] = lambda: None
    ) -> Any:
        """Call a function in the background and return its value; `meanwhile` is called here ten times a second."""
        self._tasks.put((function, arguments))
        while True:
            try:
                value, problem = self._answers.get(timeout=0.1)
            except queue.Empty:
                if not self._thread.is_alive():
                    raise SymdualError("a sweep cannot go on in a process that was forked from it") from None
                meanwhile()
                continue
            if problem is not None:
                raise problem
            return value

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tasks.put(None)  # lets the thread end when it is done

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            function, arguments = task
            try:
                self._answers.put((function(*arguments), None))
            except BaseException as failure:  # raised again where `call` waits
                self._answers.put((None, failure))
