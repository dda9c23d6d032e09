"""Knows whether this process was forked from one whose OpenMP threads were running.

They do not come along, and GNU's OpenMP ends such a process as soon as it wants to use them. Threads that were not
started yet, and numba's other layers of threads, are not affected.
"""

from __future__ import annotations

import os
from importlib import import_module

from symdual.errors import SymdualError

_lost_threads = False


def require_threads() -> None:
    """Raise where parallel code would end the process without a word that helps."""
    if _lost_threads:
        raise SymdualError(
            "this process was forked from one that had run parallel code, and cannot run episodes; start it by "
            'multiprocessing.get_context("spawn"), or set NUMBA_THREADING_LAYER=workqueue'
        )


def _look_back() -> None:
    """Runs in every forked process: has numba begun to use GNU's OpenMP in the one that it comes from?"""
    global _lost_threads
    try:
        used = import_module("numba").threading_layer() == "omp"
    except ValueError:  # no parallel code has run
        return
    _lost_threads = used and import_module("numba.np.ufunc.omppool").openmp_vendor == "GNU"


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_look_back)
