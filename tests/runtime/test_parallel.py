"""Threads for compiled code: all of them work, and none fails unheard."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from symdual.runtime.parallel import in_threads


def test_all_work_at_once() -> None:
    meeting = threading.Barrier(3)
    found: list[int] = []

    def work(n: int) -> None:
        meeting.wait(timeout=60)  # none could go on alone
        found.append(n)

    in_threads([partial(work, n) for n in range(3)])
    assert sorted(found) == [0, 1, 2]


@pytest.mark.parametrize("place", [0, 1])
def test_a_failure_is_raised_when_all_are_done(place: int) -> None:
    done: list[int] = []

    def work(n: int) -> None:
        if n == place:
            raise ValueError("no")
        done.append(n)

    with pytest.raises(ValueError, match="no"):
        in_threads([partial(work, n) for n in range(2)])
    assert done == [1 - place]
