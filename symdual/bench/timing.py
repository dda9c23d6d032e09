"""Check that everybody computes the same, then time everybody in turn: the minimum over the rounds counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from symdual.bench.contender import Implementation
from symdual.bench.workload import Answer
from symdual.common.errors import SymdualError

TOLERANCE: Final = 1e-9
SLICE_SECONDS: Final = 2e-3
BUDGET_SECONDS: Final = 1.0
LARGEST_REPEAT: Final = 1 << 20


class Disagreement(SymdualError):
    """A contender whose numbers differ from the reference; it is not timed."""


class Timing(NamedTuple):
    """The best time of one implementation at one size, and its largest relative error."""

    size: int
    kernel: str
    row: str
    variant: str
    microseconds: float
    in_loop: bool
    error: float


def error(found: Answer, expected: Answer) -> float:
    """Largest deviation relative to the largest expected entry, or to 1; inf for a wrong shape or NaN."""
    if len(found) != len(expected):
        return np.inf
    worst = 0.0
    for got, wanted in zip(found, expected, strict=True):
        if np.shape(got) != np.shape(wanted) or not np.all(np.isfinite(got)):
            return np.inf
        worst = max(worst, float(np.max(np.abs(got - wanted)) / max(1.0, float(np.max(np.abs(wanted))))))
    return worst


def verify(size: int, implementation: Implementation, expected: Answer) -> float:
    """Run an implementation once and return its error; raise `Disagreement` when it exceeds the tolerance."""
    implementation.repeat(1)
    deviation = error(implementation.answer(), expected)
    if deviation > TOLERANCE:
        raise Disagreement(
            f"{implementation.row} ({implementation.variant}) computes another {implementation.kernel} "
            f"with {size} features: relative deviation {deviation:.1e}, allowed {TOLERANCE:.0e}"
        )
    return deviation


class Calibration(NamedTuple):
    """How many repetitions fill a slice of time, the best seconds of one of them, and what it took to find out."""

    repetitions: int
    best: float
    spent: float


def calibrate(repeat: Callable[[int], object], clock: Callable[[], float] = time.perf_counter) -> Calibration:
    """Take the largest count of three tries, since a try can be disturbed; fewer where these cost the whole budget."""
    counts: list[int] = []
    best, begin = np.inf, clock()
    while len(counts) < 3 and clock() - begin <= BUDGET_SECONDS:
        count = 1
        while True:
            start = clock()
            repeat(count)
            elapsed = clock() - start
            if elapsed >= SLICE_SECONDS or count >= LARGEST_REPEAT:
                break
            count *= 4
        counts.append(max(1, int(count * min(1.0, SLICE_SECONDS / max(elapsed, 1e-9)))))
        best = min(best, elapsed / count)
    return Calibration(max(counts), best, clock() - begin)


def interleave(
    repeats: Sequence[Callable[[int], object]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Return the best seconds per repetition of each; every round visits each of them once.

    One that has used up its time budget is left out of the later rounds: a slow one is hardly disturbed by what
    lasts for a moment, and its tries count as well.
    """
    tries = [calibrate(repeat, clock) for repeat in repeats]
    best, spent = [one.best for one in tries], [one.spent for one in tries]
    for turn in range(rounds):
        for index, repeat in enumerate(repeats):
            if turn > 0 and spent[index] > BUDGET_SECONDS:
                continue
            start = clock()
            repeat(tries[index].repetitions)
            elapsed = clock() - start
            spent[index] += elapsed
            best[index] = min(best[index], elapsed / tries[index].repetitions)
    return best


def measure(
    size: int, implementations: Sequence[Implementation], reference: Mapping[str, Answer], rounds: int
) -> Iterator[tuple[Timing, ...]]:
    """Verify all implementations, then time those of each kernel side by side; yield one kernel after the other."""
    errors = [verify(size, one, reference[one.kernel]) for one in implementations]
    for kernel in reference:
        chosen = [(one, err) for one, err in zip(implementations, errors, strict=True) if one.kernel == kernel]
        seconds = interleave([one.repeat for one, _ in chosen], rounds)
        yield tuple(
            Timing(size, kernel, one.row, one.variant, 1e6 * best, one.in_loop, err)
            for (one, err), best in zip(chosen, seconds, strict=True)
        )
