"""The exact expected cost of a linear Gaussian system under the best feedback, by brute force.

Inputs are affine in the purified measurements e_i (what is measured, minus what the inputs explain), so the expected
cost is a quadratic function of all gains at once and its minimum is one linear solve; no filter, no recursion.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symdual.common.arrays import Array
from symdual.paper.derivations.least_squares import Problem, best_inputs, responses


@dataclass(frozen=True)
class Noise:
    """Covariances of the first state, the disturbance and the measurement, and the measurement matrix."""

    s0: Array
    q: Array
    r: Array
    c: Array


def feedback_cost(problem: Problem, noise: Noise) -> float:
    """The part of min E[L] that is due to the noise: sum over all random parts, best causal gains."""
    _, forced = responses(problem)
    random_states, purified, cov = _random_parts(problem, noise)
    slots = _causal_slots(problem, noise)
    base = np.concatenate([_scaled(problem.w[j], part) for j, part in enumerate(random_states)])
    base = np.vstack([base, np.zeros((problem.horizon * problem.b[0].shape[1], base.shape[1]))])
    columns = [_direction(problem, forced, purified, slot) for slot in slots]
    root = _root(cov)
    target = (base @ root).ravel()
    if not columns:
        return float(target @ target)
    matrix = np.stack([(column @ root).ravel() for column in columns], axis=1)
    solution, *_ = np.linalg.lstsq(matrix, -target, rcond=None)
    return float(np.sum((target + matrix @ solution) ** 2))


def expected_cost(problem: Problem, noise: Noise, mean: Array) -> float:
    """min E[L] over all causal feedback for a first state ~ N(mean, s0) that is never measured itself."""
    return best_inputs(problem, mean)[1] + feedback_cost(problem, noise)


def _root(cov: Array) -> Array:
    values, vectors = np.linalg.eigh(cov)
    return np.asarray(vectors * np.sqrt(np.clip(values, 0, None)))


def _scaled(weight: Array, part: Array) -> Array:
    return _root(weight).T @ part


def _random_parts(problem: Problem, noise: Noise) -> tuple[list[Array], list[Array], Array]:
    """States and purified measurements as linear maps of (x_0 - mean, xi_0.., gamma_1..), and the covariance."""
    size, steps, measured = problem.b[0].shape[0], problem.horizon, noise.c.shape[0]
    width = size * (1 + steps) + measured * steps
    states = [np.hstack([np.eye(size), np.zeros((size, width - size))])]
    for j, a in enumerate(problem.a):
        kick = np.zeros((size, width))
        kick[:, size * (1 + j) : size * (2 + j)] = np.eye(size)
        states.append(a @ states[-1] + kick)
    purified = []
    for i in range(steps):
        error = np.zeros((measured, width))
        first = size * (1 + steps) + measured * i
        error[:, first : first + measured] = np.eye(measured)
        purified.append(noise.c @ states[i + 1] + error)
    blocks = [noise.s0, *[noise.q] * steps, *[noise.r] * steps]
    cov, at = np.zeros((width, width)), 0
    for block in blocks:
        cov[at : at + len(block), at : at + len(block)] = block
        at += len(block)
    return states, purified, cov


def _causal_slots(problem: Problem, noise: Noise) -> list[tuple[int, int, int, int]]:
    """(step of the input, its component, measurement, its component): measurement i is there from step i on."""
    inputs, measured = problem.b[0].shape[1], noise.c.shape[0]
    return [
        (j, part, i, entry)
        for j in range(problem.horizon)
        for part in range(inputs)
        for i in range(j)
        for entry in range(measured)
    ]


def _direction(
    problem: Problem, forced: list[list[Array]], purified: list[Array], slot: tuple[int, int, int, int]
) -> Array:
    j, part, i, entry = slot
    signal = purified[i][entry : entry + 1]
    unit = np.zeros((problem.b[0].shape[1], 1))
    unit[part, 0] = 1.0
    rows = [_scaled(problem.w[step], forced[step][j] @ unit @ signal) for step in range(problem.horizon + 1)]
    for step, price in enumerate(problem.u):
        effect = _scaled(price, unit @ signal)
        rows.append(effect if step == j else np.zeros_like(effect))
    return np.vstack(rows)
