"""What keeps a forked process alive: it has one thread, and inherits locks that others held and what they half made.

multiprocessing (with "fork"), gunicorn and pytest-forked fork whenever they like. Locks of symdual are made here. What
waits for a thread does its work itself where the thread is not there (`backends.c.compilation`). What is made in
several steps for all threads is made under `MAKING`, which a fork waits for, as it does for numba's own lock and for
modules that other threads are importing: Python itself leaves these half imported and locked for ever.
"""

from __future__ import annotations

import concurrent.futures.thread as _thread_pools  # noqa: F401 (see below)
import importlib
import logging as _logging  # noqa: F401 (hooks of both must not come while a fork waits: the second half would run alone)
import os
import sys
import threading
import time
import weakref
from types import TracebackType
from typing import Any

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


#: held while modules of packages are run and translated, for a second or so; not while a compiler is waited for
MAKING = threading.RLock()

_AWAITED: list[Any] = [MAKING]
_held: tuple[Any, ...] = ()
_PATIENCE = 120.0  # seconds that a fork waits for imports, some of which compile
_AWAITED_IMPORTS = frozenset(
    {"symdual", "symdual_generated", "numba", "llvmlite", "numpy", "scipy", "sympy", "mpmath", "jinja2"}
) | frozenset(sys.stdlib_module_names)  # others may do whatever they like when they are imported, and for ever


def await_lock(lock: Any) -> None:
    """Let forks wait until a lock is free, and the forked process find it free."""
    _AWAITED.append(lock)


def _wait() -> None:
    """Before a fork: hold all locks that are awaited at a moment when no other thread imports anything."""
    global _held
    deadline = time.monotonic() + _PATIENCE
    while True:
        wanted = tuple(_AWAITED)
        for lock in wanted:
            lock.acquire()
        if not _others_import() or time.monotonic() > deadline:
            _held = wanted
            return
        for lock in reversed(wanted):
            lock.release()  # who imports may need it
        time.sleep(0.005)


def _go_on() -> None:
    """After a fork, in both processes."""
    for lock in reversed(_held):
        lock.release()


def _others_import() -> bool:
    """Whether another thread imports something, unless it may wait for what this one imports."""
    references = getattr(importlib._bootstrap, "_module_locks", {})
    locks = [(name.partition(".")[0], reference()) for name, reference in list(references.items())]
    owners = {(family, getattr(lock, "owner", None)) for family, lock in locks}
    me, alive = threading.get_ident(), set(sys._current_frames())
    if any(owner == me for _, owner in owners):
        return False
    return any(family in _AWAITED_IMPORTS and owner in alive for family, owner in owners)


def _renew_all() -> None:
    for lock in list(_LOCKS):
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait, after_in_parent=_go_on, after_in_child=_go_on)
    os.register_at_fork(after_in_child=_renew_all)
