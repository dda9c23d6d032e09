"""Is a belief as wrong as it says? The one place that judges this, for recordings, sweeps and experiments.

The band is that of a claim, not of a hint: at 95 % one honest filter in twenty would be called dishonest, and a sweep
makes many such comparisons. The ratio and its band are always printed beside the word.
"""

from __future__ import annotations

from typing import NamedTuple

TAIL = 1e-3  # probability of a false alarm on each side
MARGIN = 1.5  # up to this factor a significant deviation is called slight
BAND = f"{100 * (1 - 2 * TAIL):g} % band"


class Verdict(NamedTuple):
    """Where the mean of a normalised squared error lies if the belief is honest, and what it is: a word."""

    low: float
    high: float
    word: str


def judge(ratio: float, freedom: float) -> Verdict:
    """Judge the mean of normalised squared errors: for an honest belief, freedom * ratio is chi-squared distributed.

    The word is "consistent", "overconfident" (errors are larger than the belief expects) or "underconfident", with
    "slightly" before it up to a factor of 1.5.
    """
    from scipy.special import chdtri

    low, high = (float(chdtri(freedom, tail)) / freedom for tail in (1.0 - TAIL, TAIL))
    if low <= ratio <= high:
        return Verdict(low, high, "consistent")
    word = "overconfident" if ratio > high else "underconfident"
    return Verdict(low, high, f"slightly {word}" if 1.0 / MARGIN <= ratio <= MARGIN else word)
