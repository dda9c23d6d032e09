"""Whether a method can follow a model: of an explicit one the fastest rate, times the step, against its limit.

A rate is the absolute value of an eigenvalue, of those that decay, of the slope of a model in continuous time: what
grows may grow. A package has the slope of its
step only, f_x = 1 + h A + ..., with the length h among its numbers: one that is short enough gives A.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from symdual.common.arrays import Array
from symdual.integrators import INTEGRATORS, Implicit
from symdual.runtime import evaluate
from symdual.runtime.loading import LoadedPackage

_SHORT = 1e-3  # a step is short for a rate if their product is at most this
_PARTS = 32  # of a step, between which rates are looked at
_TRIES = 100  # of ever shorter steps: a model on its way out of the numbers may have any rate
_MOST = 1000  # substeps that are proposed


def fastest_rate(package: LoadedPackage, k: int, x: Array, u: Array, theta: Array) -> float:
    """The largest |eigenvalue| that decays, of the slope by x in continuous time; NaN where that is not finite."""
    length = step_length(package)
    still = evaluate.linearise(_with_step(package, 0.0), x, u, theta, k)[1]
    own = np.flatnonzero(np.diag(still))  # without inputs of the past, which keep nothing of themselves
    for _ in range(_TRIES):
        length *= _SHORT
        f_x = evaluate.linearise(_with_step(package, length), x, u, theta, k)[1]
        slope = (f_x[np.ix_(own, own)] - np.eye(len(own))) / length
        if np.isfinite(slope).all():
            rates = np.linalg.eigvals(slope)
            if float(np.abs(rates).max()) * length <= _SHORT:
                return float(np.abs(rates[rates.real < 0.0]).max(initial=0.0))
    return math.nan


def step_length(package: LoadedPackage) -> float:
    """How long the input of a model in continuous time holds."""
    return float(package.numbers["data"][package.DATA_ENTRIES["step_length"][0]])


def _with_step(package: LoadedPackage, length: float) -> LoadedPackage:
    data = package.numbers["data"].copy()
    data[package.DATA_ENTRIES["step_length"][0]] = length
    return replace(package, numbers={**package.numbers, "data": data})


def fastest_within(package: LoadedPackage, k: int, x: Array, u: Array, theta: Array) -> float:
    """The largest rate that a model meets in a step, along many short ones: what ignites is slow where it starts.

    Where even the short ones are too long, it is the rate at which they become so.
    """
    share = step_length(package) / _PARTS
    short, limit = _with_step(package, share), INTEGRATORS[package.METHOD].limit
    largest = math.nan
    for _ in range(_PARTS + 1):
        rate = fastest_rate(package, k, x, u, theta) if np.isfinite(x).all() else math.nan
        if math.isnan(rate):
            break
        largest = rate if math.isnan(largest) else max(largest, rate)
        if rate * share / package.SUBSTEPS > limit:
            break
        x = evaluate.dynamics(short, x, u, theta, k)
    return largest


def _without_stages(package: LoadedPackage, points: Iterable[tuple[int, Array, Array, Array]], where: str) -> str:
    """Where Newton's method finds no stages of an implicit step first, in the same form."""
    for k, x, u, theta in points:
        if np.isfinite(x).all() and not np.isfinite(evaluate.dynamics(package, x, u, theta, k)).all():
            return (
                f"; {package.METHOD} does not converge {where}: at step {k} Newton's method finds no solution, "
                "in however small parts of the step"
            )
    return ""


def too_fast(package: LoadedPackage, points: Iterable[tuple[int, Array, Array, Array]], where: str = "there") -> str:
    """Where the step is first too long along points (k, x, u, theta), as the end of a sentence; empty if nowhere."""
    if package.METHOD not in INTEGRATORS:
        return ""
    if isinstance(INTEGRATORS[package.METHOD], Implicit):
        return _without_stages(package, points, where)
    limit, substeps, length = INTEGRATORS[package.METHOD].limit, package.SUBSTEPS, step_length(package)
    for k, x, u, theta in points:
        rate = fastest_within(package, k, x, u, theta)
        if rate * length / substeps > limit:
            what, share = "substep" if substeps > 1 else "step", length / substeps
            needed = math.ceil(rate * length / limit)
            return (
                f"; {package.METHOD} is not stable {where}: at step {k} the fastest rate is {rate:.4g}, times the "
                f"{what} of {share:.4g} that is {rate * share:.3g}, and the limit is {limit:g}"
                + (f" (substeps={needed} would keep it)" if needed <= _MOST else "")
            )
    return ""
