"""The harness: it refuses contenders that compute something else, and takes the minimum of what it timed."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from symdual.bench import workload
from symdual.bench.contender import Implementation
from symdual.bench.timing import (
    BUDGET_SECONDS,
    SLICE_SECONDS,
    Disagreement,
    calibrate,
    error,
    interleave,
    measure,
    verify,
)
from symdual.bench.workload import Answer


class FakeClock:
    """A clock that only moves when work is done."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def task(self, seconds: Callable[[int], float]) -> Callable[[int], None]:
        """Return repeat(n) that takes n times seconds(visit)."""
        visits = [0]

        def repeat(n: int) -> None:
            self.now += n * seconds(visits[0])
            visits[0] += 1

        return repeat


def implementation(answer: Answer, kernel: str = "jacobian", row: str = "peer") -> Implementation:
    return Implementation(kernel, row, "test", lambda n: None, lambda: answer, True)


def test_a_right_answer_passes_with_its_error() -> None:
    work = workload.make(4)
    expected = workload.reference(work)["jacobian"]
    assert verify(4, implementation((expected[0] + 1e-13,)), expected) == pytest.approx(1e-13, rel=1e-2)


@pytest.mark.parametrize("entry", [(0, 1), (1, 0), (1, 5), (3, 3)])
def test_a_wrong_entry_is_refused_with_kernel_peer_and_size(entry: tuple[int, int]) -> None:
    expected = workload.reference(workload.make(4))["jacobian"]
    wrong = expected[0].copy()
    wrong[entry] += 1e-6
    with pytest.raises(Disagreement, match=r"peer \(test\) computes another jacobian with 4 features.*1\.0e-06"):
        verify(4, implementation((wrong,)), expected)


@pytest.mark.parametrize(
    "found",
    [
        (),
        (np.zeros(3),),
        (np.zeros((2, 2)), np.zeros(2)),
        (np.full((2, 2), np.nan),),
        (np.array([[1.0, 0.0], [0.0, np.inf]]),),
    ],
)
def test_answers_of_wrong_form_have_infinite_error(found: Answer) -> None:
    assert error(found, (np.eye(2),)) == math.inf


def test_error_is_relative_to_large_answers_and_absolute_for_small_ones() -> None:
    assert error((np.array([1001.0]),), (np.array([1000.0]),)) == pytest.approx(1e-3)
    assert error((np.array([0.002]),), (np.array([0.001]),)) == pytest.approx(1e-3)


def test_one_wrong_contender_stops_the_measurement_before_any_timing() -> None:
    work = workload.make(2)
    expected = {"jacobian": workload.reference(work)["jacobian"]}
    timed: list[int] = []
    right = Implementation("jacobian", "right", "test", timed.append, lambda: expected["jacobian"], True)
    with pytest.raises(Disagreement, match="liar"):
        list(measure(2, [right, implementation((np.eye(4),), row="liar")], expected, rounds=2))
    assert timed == [1]


def test_the_best_round_counts_for_each() -> None:
    clock = FakeClock()
    steady = clock.task(lambda visit: 3e-6)
    disturbed = clock.task(lambda visit: 2e-6 if visit % 5 == 4 else 9e-6)
    best = interleave([steady, disturbed], rounds=20, clock=clock)
    assert best == pytest.approx([3e-6, 2e-6])


def test_calibration_fills_the_slice_even_when_one_try_is_disturbed() -> None:
    clock = FakeClock()
    found = calibrate(clock.task(lambda visit: 0.5 if visit == 0 else 1e-6), clock)
    assert found.repetitions == pytest.approx(SLICE_SECONDS / 1e-6, rel=1e-2)
    assert found.best == pytest.approx(1e-6)
    assert found.spent == pytest.approx(clock.now)
    assert calibrate(clock.task(lambda visit: 0.5), clock).repetitions == 1


@pytest.mark.parametrize(("share", "calls"), [(1.1, 1 + 1), (0.4, 3 + 1), (0.1, 3 + 8)])
def test_slow_contenders_leave_when_their_budget_is_spent(share: float, calls: int) -> None:
    clock = FakeClock()
    visits: list[int] = []

    def slow(n: int) -> None:
        visits.append(n)
        clock.now += share * BUDGET_SECONDS

    quick = clock.task(lambda visit: 1e-3)
    best = interleave([slow, quick], rounds=50, clock=clock)
    assert visits == [1] * calls  # those that calibrate and those that are timed
    assert best == pytest.approx([share * BUDGET_SECONDS, 1e-3])


def test_what_a_slow_contender_shows_while_it_is_calibrated_counts() -> None:
    clock = FakeClock()
    better_first = clock.task(lambda visit: BUDGET_SECONDS * (1.1 if visit == 0 else 1.5))
    assert interleave([better_first], rounds=9, clock=clock) == pytest.approx([1.1 * BUDGET_SECONDS])


def test_a_kernel_is_told_before_the_next_one_is_timed() -> None:
    visits: list[str] = []

    def offer(kernel: str) -> Implementation:
        return Implementation(kernel, "a", "test", lambda n: visits.append(kernel), lambda: (np.eye(2),), True)

    parts = measure(2, [offer("jacobian"), offer("hessian")], {k: (np.eye(2),) for k in ("jacobian", "hessian")}, 1)
    assert [t.kernel for t in next(parts)] == ["jacobian"]
    assert visits.count("hessian") == 1 < visits.count("jacobian")  # only verified so far


def test_timings_carry_kernel_row_and_error() -> None:
    expected = {"jacobian": (np.eye(2),), "hessian": (np.ones((2, 2)),)}
    offered = [
        implementation((np.eye(2),), "jacobian", "a"),
        implementation((np.ones((2, 2)) + 1e-12,), "hessian", "a"),
        implementation((np.eye(2),), "jacobian", "b"),
    ]
    timings = [timing for part in measure(2, offered, expected, rounds=1) for timing in part]
    assert [(t.kernel, t.row) for t in timings] == [("jacobian", "a"), ("jacobian", "b"), ("hessian", "a")]
    assert [t.error for t in timings] == [0.0, 0.0, pytest.approx(1e-12, rel=1e-3)]
    assert all(t.microseconds >= 0.0 for t in timings)
