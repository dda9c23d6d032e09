"""What a belief says about the unknown functions of a model: its Gaussian processes at any points.

With the remembered points s, and alpha, B, T, c of the belief (see `symdual.spec.symbols.Process`),

    E g(a) = kappa(a, s) alpha,    cov(g(a), g(b)) = c kappa(a, b) - kappa(a, s) B kappa(s, b),
    cov(x, g(a)) = T kappa(s, a),

and the same with derivatives of kappa for the slopes of g.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError, did_you_mean
from symdual.runtime.belief import Belief
from symdual.runtime.loading import LoadedPackage

LOST = 1e-5  #: a negative variance of this share of the prior's is no longer rounding


class MemoryWarning(UserWarning):
    """Said when a Gaussian process cannot be kept exactly."""


class Posterior(NamedTuple):
    """A function at N points of q coordinates: mean (N,), covariance (N, N), covariance with the states (NX, N),
    and its slopes: mean (N, q) and variance (N, q)."""

    mean: Array
    covariance: Array
    with_states: Array
    slope_mean: Array
    slope_variance: Array

    @property
    def deviation(self) -> Array:
        """The standard deviation of the function at each point."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))


def posterior(
    package: LoadedPackage, belief: Belief, points: ArrayLike, process: str | None = None, output: int = 0
) -> Posterior:
    """The belief on a Gaussian process at points (N, q), or (N,) for one argument; before any data, its prior.

    `process` may be left out when there is only one. With an output covariance V the outputs are the independent
    processes that are mixed to the functions of the model.

    >>> x, u = sympy.symbols("x u")
    >>> wind = symdual.features.gaussian_process("wind", x, memory=4)
    >>> model = symdual.Model([x], [u], [x + wind + u], process_noise=0.1, name="windy")
    >>> windy = symdual.problem(symdual.Scenario(model, horizon=3))
    >>> found = symdual.posterior(windy.package, windy.prior, [-1.0, 0.0, 1.0])
    >>> found.mean.tolist(), found.deviation.round(3).tolist()
    ([0.0, 0.0, 0.0], [1.0, 1.0, 1.0])
    """
    name = _process(package, process)
    arrays = package.PROCESSES[name]
    if not 0 <= output < len(arrays):
        raise SymdualError(f"the Gaussian process {name} has {len(arrays)} outputs; there is no output {output}")
    places = _places(package, name)
    at = _points(points, len(places), name)
    data = package.numbers["data"] if belief.memory is None else belief.memory
    start, count = package.UNKNOWNS[arrays[output]]
    rows = np.zeros((len(at), len(places) + 1, count))
    for n, point in enumerate(at):
        getattr(package.process, f"slopes_{name}")(point, data, rows[n])
    own = slice(package.NX + start, package.NX + start + count)
    alpha, relative = belief.mean[own], belief.covariance[own, own]
    kernel = np.zeros((len(places) + 1, len(at), len(at)))
    getattr(package.process, f"kernel_{name}")(at, at, data, kernel)
    scale = data[package.DATA_ENTRIES[f"{name}_state"][0] + package.process.SCALE]
    values, slopes = rows[:, 0], rows[:, 1:]
    prior_slopes = scale * np.diagonal(kernel[1:], axis1=1, axis2=2).T
    covariance = scale * kernel[0] + values @ relative @ values.T
    _say_if_lost(name, np.diag(covariance), scale * np.diag(kernel[0]))
    return Posterior(
        mean=values @ alpha,
        covariance=covariance,
        with_states=belief.covariance[: package.NX, own] @ values.T,
        slope_mean=slopes @ alpha,
        slope_variance=prior_slopes + np.einsum("nqi,ij,nqj->nq", slopes, relative, slopes),
    )


def _say_if_lost(name: str, variances: Array, prior: Array) -> None:
    """Warn where the difference of prior and what was learned is negative by more than rounding may leave."""
    worst = float(np.min(variances / prior, initial=0.0))
    if worst < -LOST:
        message = f"the Gaussian process {name} has lost its digits: a variance is {worst:.2g} times the prior's"
        advice = "its measurements are too many or too exact; more process noise on the states that it drives helps"
        warnings.warn(f"{message}; {advice}", MemoryWarning, stacklevel=3)


def remembered(package: LoadedPackage, belief: Belief, process: str | None = None) -> Array:
    """The points (N, q) at which a Gaussian process is remembered."""
    name = _process(package, process)
    data = package.numbers["data"] if belief.memory is None else belief.memory
    count = int(data[package.DATA_ENTRIES[f"{name}_state"][0] + package.process.COUNT])
    return np.stack([data[start : start + count] for start in _places(package, name)], axis=1)


def by_values(package: LoadedPackage, belief: Belief) -> tuple[Array, Array]:
    """Mean and standard deviation of states and unknowns; functions by their values at remembered points, else NaN."""
    mean, variance = belief.moments
    deviation = np.sqrt(np.maximum(variance, 0.0))
    for name, arrays in package.PROCESSES.items():
        at = remembered(package, belief, name)
        for output, array in enumerate(arrays):
            start, count = package.UNKNOWNS[array]
            own = slice(package.NX + start, package.NX + start + count)
            mean[own], deviation[own] = np.nan, np.nan
            if len(at):
                found = posterior(package, belief, at, name, output)
                mean[own][: len(at)], deviation[own][: len(at)] = found.mean, found.deviation
    return mean, deviation


def losses(package: LoadedPackage, memories: Array) -> list[str]:
    """What was not kept exactly, in sentences, over several memories (N, DATA)."""
    return loss_sentences(capacities(package), lost(package, memories))


def capacities(package: LoadedPackage) -> dict[str, dict[str, float]]:
    """Of each Gaussian process, how many values are remembered and the smallest share that counts as noise."""
    return {
        name: {"memory": package.UNKNOWNS[arrays[0]][1], "noise_floor": package.process.NOISE_FLOOR}
        for name, arrays in package.PROCESSES.items()
    }


def lost(package: LoadedPackage, memories: Array) -> Array:
    """What was not kept exactly, by memory and Gaussian process, (N, processes, 3).

    The three are the number of values that were taken as combinations of remembered ones, the largest share of a
    value's prior variance that this left open, and the number of steps in which process noise was raised.
    """
    found = np.zeros((len(memories), len(package.PROCESSES), 3))
    for position, name in enumerate(package.PROCESSES):
        process, first = package.process, package.DATA_ENTRIES[f"{name}_state"][0]
        columns = [first + process.COMBINED, first + process.LEFT_OPEN, first + process.RAISED]
        found[:, position] = memories[:, columns]
    return found


def loss_sentences(limits: Mapping[str, Mapping[str, float]], lost: Array) -> list[str]:
    """The sentences for what `lost` has found, given what `capacities` has."""
    sentences = []
    for position, (name, limit) in enumerate(list(limits.items())[: lost.shape[1]]):
        combined, share, raised = lost[:, position].T
        if combined.any():
            worst = np.fmax.reduce(share)  # a failed episode may have left NaN
            sentences.append(
                f"the Gaussian process {name} was not kept exactly: {int(combined.sum())} of its values were taken as "
                f"combinations of at most {limit['memory']} remembered ones, which left open up to {100 * worst:.3g} % "
                "of a value's prior variance (taken as noise)"
            )
        if raised.any():
            sentences.append(
                f"the noise was raised for the Gaussian process {name}: in {int(raised.sum())} steps process_noise was "
                f"below the share {limit['noise_floor']:g} of the variance that the function gives a state"
            )
    return sentences


def _process(package: LoadedPackage, process: str | None) -> str:
    names: list[str] = list(package.PROCESSES)
    if not names:
        raise SymdualError(f"the model {package.name} contains no Gaussian process")
    if process is None:
        if len(names) > 1:
            raise SymdualError(f"{package.name} contains several Gaussian processes; name one of {', '.join(names)}")
        return names[0]
    if process not in names:
        raise SymdualError(f'{package.name} contains no Gaussian process "{process}"{did_you_mean(process, names)}')
    return process


def _places(package: LoadedPackage, name: str) -> list[int]:
    """Where the coordinates of the remembered points start in the memory."""
    single = package.DATA_ENTRIES.get(f"{name}_point")
    if single is not None:
        return [single[0]]
    found: list[int] = []
    while f"{name}_point{len(found)}" in package.DATA_ENTRIES:
        found.append(package.DATA_ENTRIES[f"{name}_point{len(found)}"][0])
    return found


def _points(points: ArrayLike, size: int, name: str) -> Array:
    at: Array = np.asarray(points, dtype=np.float64)
    if at.ndim == 1 and size == 1:
        at = at[:, None]
    if at.ndim != 2 or at.shape[1] != size:
        raise SymdualError(f"the points of {name} must have shape (N, {size}), but have {at.shape}")
    if not np.all(np.isfinite(at)):
        raise SymdualError(f"the points of {name} contain a value that is NaN or infinite")
    return np.ascontiguousarray(at)
