"""Which of a model's functions left the numbers: its equation, the variable and the point, from the kernels alone.

A filter evaluates f with its Jacobians at the mean, and h with its Jacobians where that leads; one of second order has
second derivatives as well. One of their entries is infinite, or not a number, where a belief is lost: the derivative of
a root at zero, a logarithm of what is negative.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from symdual.common.arrays import Array
from symdual.common.transforms import values_of
from symdual.runtime import evaluate
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.noise import believed
from symdual.runtime.signals import with_signals

if TYPE_CHECKING:
    from symdual.runtime.problem import Problem

_NAMED = 12  # numbers of a point that are told


def fault_of_model(problem: Problem, k: int, mean: Array, u: Array | None) -> str | None:
    """What was not finite on the way from a mean (NZ,) at step k - 1 with the input u, or at step k without one."""
    return fault_of_step(problem, k, mean, u) or _fault_of_observation(problem, k, mean, u)


def fault_of_step(problem: Problem, k: int, mean: Array, u: Array | None) -> str | None:
    """The same of the dynamics alone, which the filter predicts with."""
    if u is None:
        return None
    package, nx = problem.package, problem.package.NX
    step = _moved(problem, k, mean, u)
    names = [f'the dynamics of "{name}"' for name in package.belief_names[:nx]]
    for found in _not_finite(package, names, step.f, np.hstack([step.f_x, step.f_theta, step.f_u])):
        return f"{found} at {_point(package, mean, u)}"
    if of_second_order(package):
        here = with_signals(package, _signals_before(problem, k))
        curved = evaluate.hessians(here, mean[:nx], u, mean[nx:], k - 1)[:, : package.NZ, : package.NZ]
        for found in _not_curved(package, names, curved, package.moments.CURVED[: package.moments.OF_DYNAMICS]):
            return f"{found} at {_point(package, mean, u)}"
    return None


def of_second_order(package: LoadedPackage) -> bool:
    """Whether the filter of a package has terms of second order."""
    return hasattr(package.records, "CURVED_ROWS")


def fault_of_plant(plant: LoadedPackage, k: int, x: Array, u: Array, theta: Array) -> str | None:
    """Which state of a plant, whose signals are set, is not finite after step k; its derivatives do not matter."""
    moved = evaluate.dynamics(plant, x, u, theta, k)
    for name, value in zip(plant.belief_names, moved, strict=False):
        if not np.isfinite(value):
            return f'the dynamics of "{name}" is {_word(value)} at {_point(plant, np.concatenate([x, theta]), u)}'
    return None


def _moved(problem: Problem, k: int, mean: Array, u: Array) -> evaluate.Jacobian:
    nx, here = problem.package.NX, with_signals(problem.package, _signals_before(problem, k))
    return evaluate.jacobian(here, mean[:nx], u, mean[nx:], k - 1)


def _signals_before(problem: Problem, k: int) -> Array | None:
    signals = believed(problem)
    return None if signals is None else signals[max(k - 1, 0)]


def _fault_of_observation(problem: Problem, k: int, mean: Array, u: Array | None) -> str | None:
    package, signals, nx = problem.package, believed(problem), problem.package.NX
    x, theta = mean[:nx] if u is None else _moved(problem, k, mean, u).f, mean[nx:]
    now = None if signals is None else signals[k]
    here = with_signals(package, now)
    seen = evaluate.observation_jacobian(here, x, theta, k)
    names = [f"the observation number {row}" for row in range(package.NY)]
    for found in _not_finite(package, names, seen.h, np.hstack([seen.h_x, seen.h_theta])):
        return f"{found} at {_point(package, np.concatenate([x, theta]), None)}"
    if of_second_order(package):
        curved = np.array([evaluate.observation_hessian(here, x, theta, row, k) for row in np.eye(package.NY)])
        for found in _not_curved(package, names, curved, package.moments.CURVED[package.moments.OF_DYNAMICS :]):
            return f"{found} at {_point(package, np.concatenate([x, theta]), None)}"
    return None


def _not_curved(package: LoadedPackage, names: list[str], curved: Array, rows: NDArray[np.int64]) -> Iterator[str]:
    """What is not finite among second derivatives (all rows, NZ, NZ) of functions with these names; `rows` are curved.

    They come as sums over the rows with weights, and zero times what is infinite is not a number: what is infinite is
    told first, and where there is nothing of this kind all rows that may be meant are named.
    """
    for word, lost in (("infinite", np.isinf(curved[rows])), ("not a number", np.isnan(curved[rows]))):
        for i, j in np.argwhere(lost.any(axis=0)):
            one, other = package.belief_names[i], package.belief_names[j]
            meant = " or ".join(names[row] for row in rows[lost[:, i, j]])
            yield f'the second derivative of {meant} by "{one}" and "{other}" is {word}'


def _not_finite(package: LoadedPackage, names: list[str], values: Array, slopes: Array) -> Iterator[str]:
    """What is not finite among functions with these names, and among their derivatives by z and u."""
    variables = [*package.belief_names, *package.INPUTS]
    for name, value, row in zip(names, values, slopes, strict=True):
        if not np.isfinite(value):
            yield f"{name} is {_word(value)}"
        for variable, slope in zip(variables, row, strict=False):
            if not np.isfinite(slope):
                yield f'the derivative of {name} by "{variable}" is {_word(slope)}'


def _word(value: float) -> str:
    return "not a number" if np.isnan(value) else "infinite"


def _point(package: LoadedPackage, z: Array, u: Array | None) -> str:
    """States, inputs and as many unknowns as can be read, with their names."""
    nx = package.NX
    known = list(zip(package.belief_names[:nx], z[:nx], strict=True))
    known += [] if u is None else list(zip(package.INPUTS, u, strict=True))
    known += zip(package.belief_names[nx:], values_of(package.transforms, z)[nx:], strict=True)
    told = ", ".join(f"{name} = {value:.6g}" for name, value in known[:_NAMED])
    return told + (", ..." if len(known) > _NAMED else "")
