"""What speaks against a decision: impossible measurements, a belief far from its prior, an input that is not settled.

A decision is made all the same. `Info.doubts` always has these sentences; `act` warns of each kind once.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from symdual.common.arrays import Array
from symdual.runtime.belief import Belief
from symdual.runtime.info import Statistics
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Problem

RARE = 1e-9  #: how likely a measurement is, at most, that is called impossible
FAR = 6.0  #: deviations of the prior; a normal variable is further away with a probability of 2e-9
SAME = 1e-9  #: costs that differ by a smaller share are equal: plans stop when they gain less
APART = 1e-3  #: of the width of a search: inputs further apart are not the same


#: kinds of doubt; an exported controller has a bit for each, in this order
KINDS = ("measurement", "prior", "limit", "search")


class Doubt(NamedTuple):
    """One of `KINDS`, of which `act` warns once, and a sentence with numbers."""

    kind: str
    sentence: str


@cache
def least_impossible(measured: int) -> float:
    """A sum of so many squared standard normals exceeds m + 2 sqrt(m t) + 2 t with a probability of at most exp(-t)."""
    t = -math.log(RARE)
    return measured + 2.0 * math.sqrt(measured * t) + 2.0 * t


def doubt_of_measurement(k: int, statistics: Statistics) -> Doubt | None:
    """Whether a measurement is impossible under the belief before it."""
    most = least_impossible(statistics.measured)
    if not statistics.nis > most:
        return None
    return Doubt(
        "measurement",
        f"the measurement at step {k} contradicts the belief: its normalised innovation squared is "
        f"{statistics.nis:.4g}, and only one in {1 / RARE:.0e} should exceed {most:.4g}",
    )


def stays(package: LoadedPackage) -> bool:
    """Whether unknowns are where they were at first: those that drift may be anywhere later."""
    return package.TRANSITION == "identity" and package.DIFFUSION == "none" and not package.PROCESSES


class Priors:
    """How far unknowns may be from where they were believed to be at first; drifting ones may be anywhere."""

    def __init__(self, problem: Problem) -> None:
        package, nx = problem.package, problem.package.NX
        self._at = slice(nx, package.NZ if stays(package) else nx)
        self._names = package.belief_names[nx:]
        self._prior, self._mean = problem.prior, problem.prior.mean[self._at]
        self._deviation = np.sqrt(problem.prior.covariance.diagonal()[self._at])
        self._far = (FAR * self._deviation) ** 2

    def doubt(self, k: int, belief: Belief) -> Doubt | None:
        """Whether an unknown is far outside its prior."""
        away = belief.mean[self._at] - self._mean
        if not np.count_nonzero(away * away > self._far):  # faster than any()
            return None
        i = int(np.argmax(np.abs(away) - FAR * self._deviation))
        now, first = belief.of(self._names[i]), self._prior.of(self._names[i])
        return Doubt(
            "prior",
            f"the belief at step {k} is far outside its prior: {self._names[i]} = {now.mean:.4g}, "
            f"which was {first.mean:.4g} +- {first.deviation:.2g} at first",
        )


def doubt_of_plan(k: int, limited: bool) -> Doubt | None:
    """Whether a plan was still getting better when its iterations came to an end."""
    if not limited:
        return None
    return Doubt("limit", f"the plan at step {k} was not converged when it reached the limit of its iterations")


def doubt_of_end(k: int, candidates: Array, costs: Array, limits: Array, chosen: Array) -> Doubt | None:
    """Whether a search over several inputs stopped at its limit: a descent that arrives leaves its differences behind.

    Arguments are those of `doubt_of_search`.
    """
    tried = np.isfinite(costs)
    if chosen.size < 2 or np.count_nonzero(tried) < 2:
        return None
    away = np.abs(candidates[tried] - chosen) > APART * (limits[1] - limits[0])
    if np.count_nonzero(~away.any(axis=1)) > chosen.size:
        return None
    return Doubt(
        "limit",
        f"the search at step {k} had not settled when it reached its limit, after {np.count_nonzero(tried)} candidates",
    )


def doubt_of_search(k: int, candidates: Array, costs: Array, limits: Array, chosen: Array) -> Doubt | None:
    """Whether inputs (N, NU) that are apart cost the same, (N,), as the chosen one, as far as plans tell.

    `limits` (2, NU) are those of the search, or of the choices; the cost of what it did not try is infinite.
    """
    least = float(costs.min())
    same = costs <= least + SAME * abs(least)
    if np.count_nonzero(same) < 2 or not math.isfinite(least):
        return None
    width = limits[1] - limits[0]
    away = np.abs(candidates[same] - chosen) > APART * width
    if not away.any():
        return None
    other = candidates[same][np.flatnonzero(away.any(axis=1))[0]]
    u, v = (", ".join(f"{value:.4g}" for value in values) for values in (chosen, other))
    return Doubt("search", f"the input at step {k} is not determined: u = ({u}) costs {least:.6g}, and so does ({v})")
