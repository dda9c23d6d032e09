"""Noise that depends on where the system is: where it is no covariance, a sentence says which entry, when and where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.common.numbers import indefinite
from symdual.runtime import evaluate
from symdual.runtime.faults import shown
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.signals import with_signals

if TYPE_CHECKING:
    from symdual.runtime.closed_loop import Episodes, NoiseDraws
    from symdual.runtime.problem import Problem

NEGATIVE = -1e-12  #: an eigenvalue that is negative by a smaller share of the largest entry is rounding


def has_state_dependent_noise(package: LoadedPackage) -> bool:
    """Whether the noise of a package depends on anything."""
    return hasattr(package, "NOISE")


def fault_of_step(package: LoadedPackage, k: int, x: Array, u: Array, signals: Array | None = None) -> str | None:
    """What is wrong with Q(x, u) at step k, whose signals (S,) are given, or None."""
    if not has_state_dependent_noise(package):
        return None
    Q = evaluate.process_noise(with_signals(package, signals), x, u, k)
    return _fault(package, "process_noise", Q, f"step {k}, x = {shown(x)}, u = {shown(u)}")


def fault_of_measurement(package: LoadedPackage, k: int, x: Array, signals: Array | None = None) -> str | None:
    """What is wrong with R(x) at step k, whose signals (S,) are given, or None."""
    if not has_state_dependent_noise(package):
        return None
    R = evaluate.measurement_noise(with_signals(package, signals), x, k)
    return _fault(package, "measurement_noise", R, f"step {k}, x = {shown(x)}")


def fault_along(package: LoadedPackage, k: int, states: Array, inputs: Array, signals: Array | None) -> str | None:
    """What is wrong first along a plan from step k: states (K+1, NX), inputs (K, NU), the signals (T+1, S) by time."""
    for j, u in enumerate(inputs):
        here, there = (None, None) if signals is None else (signals[k + j], signals[k + j + 1])
        found = fault_of_step(package, k + j, states[j], u, here)
        found = found or fault_of_measurement(package, k + j + 1, states[j + 1], there)
        if found is not None:
            return found
    return None


def believed(problem: Problem) -> Array | None:
    """The signals (T+1, S) of the model of a problem as it believes them."""
    return None if problem.signals is None else problem.signals.of(problem.package)[0]


def require_noise(problem: Problem) -> None:
    """Raise when the noise of the model or of its plant is no covariance where an episode begins."""
    heard = (
        ()
        if problem.signals is None
        else (problem.signals.of(problem.package)[0], problem.signals.of(problem.plant)[1])
    )
    for package, rows in zip((problem.package, problem.plant), heard or (None, None), strict=True):
        u = np.clip(np.zeros(package.NU), *problem.bounds)
        found = fault_along(package, 0, problem.start[None].repeat(2, axis=0), u[None], rows)
        if found is not None:
            raise SymdualError(found)


def fault_of_filter(problem: Problem, k: int, mean: Array, u: Array | None) -> str | None:
    """Why a belief with this mean (NZ,) at step k - 1 was lost with the input u, or at step k without one."""
    package, nx = problem.package, problem.package.NX
    if not has_state_dependent_noise(package):
        return None
    signals = believed(problem)
    before, now = (None, None) if signals is None else (signals[max(k - 1, 0)], signals[k])
    x = mean[:nx]
    if u is not None:
        found = fault_of_step(package, k - 1, x, u, before)
        if found is not None:
            return found
        x = evaluate.dynamics(with_signals(package, before), x, u, mean[nx:], k - 1)
    return fault_of_measurement(package, k, x, now)


def faults_of_episodes(problem: Problem, noise_draws: NoiseDraws, episodes: Episodes) -> tuple[int, str] | None:
    """The first episode that ended early because of its noise, and what was wrong with that, or None."""
    heard = (None, None) if problem.signals is None else problem.signals.of(problem.plant)
    for n in np.flatnonzero(episodes.outcomes != 0):
        k = int(np.flatnonzero(np.isfinite(episodes.states[n]).all(axis=1))[-1])
        if k == len(episodes.inputs[n]) or np.isnan(episodes.inputs[n, k]).any():
            continue
        u = episodes.inputs[n, k]
        found = _fault_of_plant(problem, k, int(n), episodes, noise_draws, heard[1])
        own = fault_of_filter(problem, k + 1, episodes.z_means[n, k], u)
        found = found or own
        if found is not None:
            return int(n), found
    return None


def _fault_of_plant(
    problem: Problem, k: int, n: int, episodes: Episodes, noise_draws: NoiseDraws, signals: Array | None
) -> str | None:
    """What was wrong with the noise of the true system in step k of run n: the step is made once more."""
    plant, nx = problem.plant, problem.package.NX
    if not has_state_dependent_noise(plant):
        return None
    x, u = episodes.states[n, k], episodes.inputs[n, k]
    theta = noise_draws.wander[n, k - 1] if k and noise_draws.wander.shape[1] else noise_draws.truths[n]
    here, there = (None, None) if signals is None else (signals[k], signals[k + 1])
    found = fault_of_step(plant, k, x, u, here)
    if found is not None:
        return found
    at_step = with_signals(plant, here)
    moved = evaluate.dynamics(at_step, x, u, theta, k) + noise_of_step(at_step, k, x, u, noise_draws.process[n, k, :nx])
    return fault_of_measurement(plant, k + 1, plant.within_bounds(moved), there)


def noise_of_step(plant: LoadedPackage, k: int, x: Array, u: Array, drawn: Array) -> Array:
    """The noise of a step of the true system: what was drawn, with variance 1 where it depends and is scaled here."""
    if not has_state_dependent_noise(plant):
        return drawn
    _require(fault_of_step(plant, k, x, u))
    return np.asarray(_lower_root(evaluate.process_noise(plant, x, u, k)) @ drawn)


def noise_of_measurement(plant: LoadedPackage, k: int, x: Array, drawn: Array) -> Array:
    """The noise of a measurement of the true system, as that of a step."""
    if not has_state_dependent_noise(plant):
        return drawn
    _require(fault_of_measurement(plant, k, x))
    return np.asarray(_lower_root(evaluate.measurement_noise(plant, x, k)) @ drawn)


def _require(fault: str | None) -> None:
    if fault is not None:
        raise SymdualError(fault)


def _lower_root(matrix: Array) -> Array:
    """L, lower triangular, with L L' = M, as the generated code draws: a pivot of zero gives a column of zeros."""
    size = len(matrix)
    root = np.zeros((size, size))
    for j in range(size):
        pivot = matrix[j, j] - root[j, :j] @ root[j, :j]
        if pivot > -NEGATIVE * abs(matrix[j, j]):
            root[j, j] = np.sqrt(pivot)
            root[j + 1 :, j] = (matrix[j + 1 :, j] - root[j + 1 :, :j] @ root[j, :j]) / root[j, j]
    return root


def _fault(package: LoadedPackage, what: str, matrix: Array, where: str) -> str | None:
    """The first entry that is no number, a variance that is negative, or a matrix that is not positive semidefinite."""
    for i, j in np.argwhere(~np.isfinite(np.tril(matrix))):
        return f"{_entry(package, what, i, j)} is {matrix[i, j]:g}, not a finite number, at {where}"
    for i in np.flatnonzero(np.diag(matrix) < 0.0):
        return f"{_entry(package, what, i, i)} becomes negative: it is {matrix[i, i]:.6g} at {where}"
    fault = indefinite(matrix, -NEGATIVE)
    return None if fault is None else f"{what} is not positive semidefinite: {fault} at {where}"


def _entry(package: LoadedPackage, what: str, i: np.int64, j: np.int64) -> str:
    name = f"{what}[{i}, {j}]"
    return f"{name} = {package.NOISE[name]}" if name in package.NOISE else name
