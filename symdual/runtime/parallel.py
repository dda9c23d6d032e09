"""Runs compiled code that releases the interpreter lock in several threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence


def in_threads(works: Sequence[Callable[[], object]]) -> None:
    """Do all of these at once and wait for them; raises what the first of them that failed raised.

    The first is done by the thread that calls. The others have threads that are daemons, so that a process that was
    interrupted does not wait for compiled calls to end.
    """
    failures: list[BaseException] = []

    def do(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as failure:  # raised again below
            failures.append(failure)

    threads = [threading.Thread(target=do, args=(work,), daemon=True) for work in works[1:]]
    for thread in threads:
        thread.start()
    do(works[0])
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
