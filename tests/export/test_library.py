"""What a compiled translation remembers of its arguments."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from symdual.backends.c.kinds import Group
from symdual.backends.c.library import Library


class _Memory(Library):
    """A library without code, whose structs are numbers."""

    def __init__(self) -> None:
        self._single, self._kept, self._keeping = False, {}, threading.Lock()

    def _filled(self, kind: Group, given: Any, after: Any) -> Any:
        return ctypes.c_double(given[0])


@pytest.fixture
def hurried() -> Iterator[None]:
    """Threads that interrupt each other as often as can be."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("hurried")
def test_threads_that_hand_over_new_structs_get_their_own() -> None:
    """More of them than are remembered, so that every one takes the place of another."""
    memory, kind = _Memory(), Group("NoiseDraws", ())

    def hand(thread: int) -> None:
        for n in range(3000):
            given: tuple[float] = (float(10000 * thread + n),)
            handed: list[Any] = []
            memory._group(kind, given, handed, [])
            assert handed[0]._obj.value == given[0]

    with ThreadPoolExecutor(8) as parallel:
        list(parallel.map(hand, range(8)))
