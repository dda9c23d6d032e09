"""Processes that work side by side: whoever has nothing to do takes the next experiment, or the next figure.

crew.call(function, ...)   begins it in one of the processes
crew.finished(calls)       hands over those that are done, and meanwhile passes on what the processes say
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from threadpoolctl import threadpool_limits

from symdual.common.errors import SymdualError, SymdualWarning

Report = Callable[[str, str, float], None]  #: hears on what there is work, what is done there, and how far it is
Tell = Callable[[str], None]  #: hears a whole sentence

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")
_SECONDS = 0.1  # between two looks at what the processes say
_spoken: Any = None  # in a process of a crew: the queue to the one that waits


class Crew:
    """As many processes as there are cores; they end with the block, and at once when it is left by an exception."""

    def __init__(self, report: Report, tell: Tell) -> None:
        context = multiprocessing.get_context("spawn")
        self._report, self._tell, self._spoken = report, tell, context.SimpleQueue()
        self._pool = ProcessPoolExecutor(os.cpu_count() or 1, context, _begin, (self._spoken,))

    def call(
        self, function: Callable[_Given, _Found], *arguments: _Given.args, **named: _Given.kwargs
    ) -> Future[_Found]:
        """Begin a call; function and arguments are pickled."""
        return self._pool.submit(function, *arguments, **named)

    def finished(self, calls: Iterable[Future[_Found]]) -> Iterator[Future[_Found]]:
        """Each call when it is done; raises what it has raised."""
        waiting = set(calls)
        while waiting:
            done, waiting = wait(waiting, _SECONDS, FIRST_COMPLETED)
            self._listen()
            for call in done:
                try:
                    call.result()
                except BrokenProcessPool as failure:
                    raise SymdualError(
                        "a process was ended from outside, perhaps because the memory is full; go on with --resume"
                    ) from failure
                yield call

    def _listen(self) -> None:
        while not self._spoken.empty():
            kind, *said = self._spoken.get()
            (self._report if kind == "report" else self._tell)(*said)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            for process in multiprocessing.active_children():
                process.terminate()
        self._pool.shutdown(cancel_futures=True)


def report(where: str, what: str, share: float) -> None:
    """Say, from a process of a crew, what is done and how far it is."""
    _spoken.put(("report", where, what, share))


def tell(sentence: str) -> None:
    """Say a whole sentence from a process of a crew."""
    _spoken.put(("tell", sentence))


def _begin(spoken: Any) -> None:
    """Ctrl-C ends a process without a word, whose finished work is kept; each keeps to one core for linear algebra."""
    global _spoken
    _spoken = spoken
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threadpool_limits(1)
    shown = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
        if issubclass(category, SymdualWarning):
            tell(str(message))
        else:
            shown(message, category, *rest, **named)

    warnings.showwarning = show
