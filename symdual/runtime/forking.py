"""What keeps a forked process alive: it has one thread, and inherits the locks that others held.

multiprocessing (with "fork"), gunicorn and pytest-forked fork whenever they like. Locks of symdual are made here; what
waits for a thread does its work itself where the thread is not there (`symdual.backends.c.compilation`).
"""

from __future__ import annotations

import os
import threading
import weakref
from types import TracebackType

_LOCKS: weakref.WeakSet[Lock] = weakref.WeakSet()


class Lock:
    """A lock that a forked process finds open, whichever thread of its parent held it."""

    def __init__(self) -> None:
        self.renew()
        _LOCKS.add(self)

    def renew(self) -> None:
        """Forget who holds it."""
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()


def _renew_all() -> None:
    for lock in list(_LOCKS):
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
