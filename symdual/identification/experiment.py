"""The inputs within bounds that tell most about the unknowns.

With the unknowns in the filter and measurements as expected, the covariance of the unknowns after the experiment does
not depend on what will be measured. The best experiment makes its determinant smallest,

    minimise  log det P^theta_T  over  u_0 .. u_{T-1}  in a box,

which is the most information in the sense of entropy. The gradient is that of the backward pass, started with
d log det P / dP = P^-1. There are many local minima, so the search starts from several experiments of different kinds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.identification.likelihood import Report, unreported
from symdual.identification.parameters.filtering import Filter

ROUNDS = 150


class Experiment(NamedTuple):
    """Inputs (T, NU), and the logarithm of the determinant of the covariance of the unknowns after them."""

    inputs: Array
    log_determinant: float


def after(own: Filter, inputs: Array) -> tuple[float, Array]:
    """log det of the covariance of the unknowns after an experiment, with its gradient by the inputs (T, NU)."""
    nx = own.package.NX
    rows = np.concatenate([inputs, np.zeros((1, inputs.shape[1]))])  # the last inputs act on nothing
    measured = np.zeros((len(rows), own.package.NY))
    filtered = own.run(rows, measured, expected=True)
    P = filtered.covariances[-1]
    if not np.isfinite(P).all() or not np.isfinite(filtered.means).all():
        return np.inf, np.zeros_like(inputs)
    sign, value = np.linalg.slogdet(P[nx:, nx:])
    if sign <= 0:
        return np.inf, np.zeros_like(inputs)
    by_covariance = np.zeros_like(P)
    inverse = np.linalg.inv(P[nx:, nx:])
    by_covariance[nx:, nx:] = 0.5 * (inverse + inverse.T)
    last = (np.zeros(own.package.NZ), by_covariance)
    slope = own.back(rows, measured, filtered, last, expected=True)[4]
    return float(value), slope[:-1]


def best_experiment(
    own: Filter,
    lower: Array,
    upper: Array,
    steps: int,
    starts: int = 6,
    report: Report = unreported,
) -> Experiment:
    """The best inputs found from several starts; always the same ones."""
    bounds = [(low, high) for _ in range(steps) for low, high in zip(lower, upper, strict=True)]
    shape = (steps, len(lower))
    best: Experiment | None = None
    for number, start in enumerate(_starts(lower, upper, steps, starts)):
        count = 0

        def cost(flat: Array, number: int = number) -> tuple[float, Array]:
            nonlocal count
            count += 1
            value, slope = after(own, flat.reshape(shape))
            report(f"experiment {number + 1} of {starts}", (number + min(count / ROUNDS, 1.0)) / starts)
            return (value, slope.ravel()) if np.isfinite(value) else (1e6, np.zeros(flat.size))

        if not np.isfinite(cost(start.ravel())[0]) or cost(start.ravel())[0] >= 1e6:
            continue
        found = minimize(
            cost, start.ravel(), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": ROUNDS, "ftol": 1e-9}
        )
        value = after(own, found.x.reshape(shape))[0]
        if np.isfinite(value) and (best is None or value < best.log_determinant):
            best = Experiment(found.x.reshape(shape), value)
    if best is None:
        raise SymdualError("the model breaks down under every experiment that was tried within the bounds")
    return best


def _starts(lower: Array, upper: Array, steps: int, count: int) -> list[Array]:
    """Switching between the bounds, slowly and fast, and sums of sines, with a little noise to break symmetries."""
    random = np.random.Generator(np.random.PCG64(0))
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    found = []
    for number in range(count):
        if number % 2 == 0:
            held = max(1, round(steps ** (0.2 + 0.15 * number)) if number else 1)
            levels = np.repeat(random.choice([-1.0, 1.0], size=(steps // held + 1, len(lower))), held, axis=0)[:steps]
        else:
            time = np.arange(steps)[:, None] / steps
            cycles = random.uniform(0.5, max(1.0, steps / 6), size=len(lower))
            levels = np.sin(2 * np.pi * (cycles * time + random.uniform(size=len(lower))))
        wave = 0.8 * levels + 0.1 * random.uniform(-1.0, 1.0, size=(steps, len(lower)))
        found.append(np.clip(middle + half * wave, lower, upper))
    return found
