"""What single precision would lose in a problem, in numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from symdual.common.arrays import Array
from symdual.runtime import evaluate
from symdual.runtime.noise import has_state_dependent_noise
from symdual.runtime.problem import Problem

EPSILON = float(np.finfo(np.float32).eps)
LARGEST, SMALLEST = float(np.finfo(np.float32).max), float(np.finfo(np.float32).tiny)
ROOM = 100.0  # a number needs so many steps of single precision between it and what it must be told from


def losses(problem: Problem) -> Iterator[str]:
    """Sentences on what would be lost: numbers out of range, and deviations that drown in the means."""
    package = problem.package
    yield from _out_of_range(problem)
    names = [*package.STATES, *(f"{name}" for name, (_, count) in package.UNKNOWNS.items() for _ in range(count))]
    deviations = np.sqrt(np.maximum(np.diag(problem.prior.covariance), 0.0))
    noise = np.sqrt(np.maximum(np.diag(package.noise.process), 0.0))
    for i, name in enumerate(names):
        size = abs(float(problem.prior.mean[i]))
        if i < package.NX:
            size = max(size, float(np.max(np.abs(problem.reference[:, i]))))
            spread = max(float(deviations[i]), float(noise[i]))
        else:
            spread = float(deviations[i])
        if spread > 0.0 and size * EPSILON * ROOM > spread:
            yield (
                f"{name} has the size {size:.3g} and a deviation of {spread:.3g}, but single precision tells numbers "
                f"of this size apart from {size * EPSILON:.2g} on: scale the model, or export with --real double"
            )
    yield from _fine_measurements(problem)
    own = np.linalg.eigvalsh(_correlations(problem.prior.covariance))
    if own.size and 0.0 < own[0] < EPSILON * ROOM * own[-1]:
        yield (
            f"the prior's correlations have eigenvalues from {own[0]:.2g} to {own[-1]:.2g}, further apart than the "
            "digits of single precision: its covariance will not stay positive"
        )


def _fine_measurements(problem: Problem) -> Iterator[str]:
    """Measurements whose noise is finer than single precision tells their own size apart."""
    package, x, theta = problem.package, problem.start, problem.prior.mean[problem.package.NX :]
    expected = evaluate.observation(package, x, theta)
    noise = evaluate.measurement_noise(package, x) if has_state_dependent_noise(package) else package.noise.measurement
    for name, size, variance in zip(package.MEASUREMENTS, np.abs(expected), np.diag(noise), strict=True):
        if 0.0 < variance < (size * EPSILON) ** 2:
            yield (
                f"{name} is measured with a deviation of {np.sqrt(variance):.3g}, but single precision tells numbers "
                f"of its size, {size:.3g}, apart from {size * EPSILON:.2g} on: measure it from nearer by, or export "
                "with --real double"
            )


def _out_of_range(problem: Problem) -> Iterator[str]:
    numbers: dict[str, Array] = {
        "the prior covariance": problem.prior.covariance,
        "the prior mean": problem.prior.mean,
        "the state cost": problem.state_cost,
        "the input cost": problem.input_cost,
        "the reference": problem.reference,
        "the process noise": problem.package.noise.process,
        "the measurement noise": problem.package.noise.measurement,
        "the known numbers": problem.package.numbers["data"],
    }
    for what, array in numbers.items():
        sizes = np.abs(array[np.isfinite(array) & (array != 0.0)])
        if sizes.size and (sizes.max() > LARGEST or sizes.min() < SMALLEST):
            yield (
                f"{what} goes from {sizes.min():.3g} to {sizes.max():.3g}, but single precision reaches from "
                f"{SMALLEST:.3g} to {LARGEST:.3g}"
            )


def _correlations(covariance: Array) -> Array:
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    known = deviations > 0.0
    own = covariance[np.ix_(known, known)]
    return np.asarray(own / np.outer(deviations[known], deviations[known]))
