"""Which of a model's functions left the numbers: its equation, the variable and the point, from the kernels alone.

A filter evaluates f with its Jacobians at the mean, and h with its Jacobians where that leads. One of their entries is
infinite, or not a number, where a belief is lost: the derivative of a root at zero, a logarithm of what is negative.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from symdual.runtime import evaluate
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.noise import believed
from symdual.runtime.signals import tuned

if TYPE_CHECKING:
    from symdual.runtime.problem import Problem

Array = NDArray[np.float64]
_NAMED = 12  # numbers of a point that are told


def fault_of_model(problem: Problem, k: int, mean: Array, u: Array | None) -> str | None:
    """What was not finite on the way from a mean (NZ,) at step k - 1 with the input u, or at step k without one."""
    signals = believed(problem)
    before, now = (None, None) if signals is None else (signals[max(k - 1, 0)], signals[k])
    package, nx = problem.package, problem.package.NX
    x, theta = mean[:nx], mean[nx:]
    if u is not None:
        point = _point(package, mean, u)
        step = evaluate.jacobian(tuned(package, before), x, u, theta, k - 1)
        names = [f'the dynamics of "{name}"' for name in package.belief_names[:nx]]
        for found in _not_finite(package, names, step.f, np.hstack([step.f_x, step.f_theta, step.f_u])):
            return f"{found} at {point}"
        x = step.f
    seen = evaluate.observation_jacobian(tuned(package, now), x, theta, k)
    names = [f"the observation number {row}" for row in range(package.NY)]
    for found in _not_finite(package, names, seen.h, np.hstack([seen.h_x, seen.h_theta])):
        return f"{found} at {_point(package, np.concatenate([x, theta]), None)}"
    return None


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
    known += zip(package.belief_names[nx:], z[nx:], strict=True)
    told = ", ".join(f"{name} = {value:.6g}" for name, value in known[:_NAMED])
    return told + (", ..." if len(known) > _NAMED else "")
