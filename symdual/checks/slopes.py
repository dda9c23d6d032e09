"""The slope of the dual cost by the inputs of a plan, with full matrices: how every recursion moves with one input.

    dA = f_zz dz + f_zu du (and dB, dC alike),     dP = dA S A' + A dS A' + A S dA'
    dS+ = (I - G C) dP (I - G C)' - S+ dC' G' - G dC S+,        G the gain of the filter
    dK = F' dK+ F + F' K+ (dA + dB L) + (.)',      F = A + B L: L is optimal, so its own change does not count
    dJd = tr { sum_j W_j dS_j + dK_{j+1} (P - S) + K_{j+1} (dP - dS) }

The generated code goes the other way, back from Jd to all inputs at once (`adjoint`): the two share no formula.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from symdual.checks import dense
from symdual.spec.numbers import Array

_WIDTH = 1e-3  # of a difference of the Jacobian of h, as a share of the point


class _Step(NamedTuple):
    """What is known at one step of a plan: matrices, their slopes by (z, u), and the recursions."""

    A: Array
    B: Array
    bends: Array
    C: Array
    S: Array
    P: Array
    after: Array
    G: Array
    K: Array
    L: Array


def slopes(model: dense.DenseModel, noise: dense.Noise, cost: dense.Cost, belief: dense.Belief, inputs: Array) -> Array:
    """dJd / du for every input (steps, nu) of a plan from time 0, at order 1 with learning."""
    states = dense.rollout(model, noise, 0, belief.mean, inputs)
    steps = _steps(model, noise, cost, belief, states, inputs)
    found = np.zeros(inputs.shape)
    for place in np.ndindex(*inputs.shape):
        found[place] = _slope(model, cost, states, steps, place)
    return found


def _steps(
    model: dense.DenseModel, noise: dense.Noise, cost: dense.Cost, belief: dense.Belief, states: Array, inputs: Array
) -> list[_Step]:
    spread = dense.plan_covariances(model, noise, 0, belief.covariance, states, inputs)
    to_go = dense.cost_to_go(model, noise, cost, 0, states, inputs, 1)
    found = []
    for j, u in enumerate(inputs):
        A, B = dense.augmented(model, noise, j, states[j], u)
        K, P = to_go.matrices[j], spread.predicted[j]
        C = model.observation_jacobian(j + 1, states[j + 1])
        G = np.asarray(np.linalg.solve(dense.innovation_covariance(C, P, noise.measurement), C @ P).T, np.float64)
        bends = np.stack([model.hessian(j, states[j], u, row) for row in np.eye(model.nx)])
        L = np.zeros((model.nu, model.nz))
        free = (u > cost.bounds[0]) & (u < cost.bounds[1])
        if j > 0 and free.any():
            own = B[:, free]
            L[free] = -np.linalg.solve(cost.input[j][np.ix_(free, free)] + own.T @ K @ own, own.T @ K @ A)
        found.append(_Step(A, B, bends, C, spread.filtered[j], P, spread.filtered[j + 1], G, K, L))
    return found


def _slope(
    model: dense.DenseModel, cost: dense.Cost, states: Array, steps: list[_Step], place: tuple[int, ...]
) -> float:
    """dJd when one input moves."""
    nx, nz = model.nx, model.nz
    dz, dS = np.zeros(nz), np.zeros((nz, nz))
    dK = np.zeros((nz, nz))
    moved, total = [], 0.0
    for j, step in enumerate(steps):
        way = np.concatenate([dz, np.eye(model.nu)[place[1]] if j == place[0] else np.zeros(model.nu)])
        dA, dB = np.zeros_like(step.A), np.zeros_like(step.B)
        dA[:nx], dB[:nx] = step.bends[:, :nz] @ way, step.bends[:, nz:] @ way
        dP = dA @ step.S @ step.A.T + step.A @ step.S @ dA.T + step.A @ dS @ step.A.T
        total += float(np.sum(cost.state[j] * dS[:nx, :nx]))
        dz = step.A @ dz + step.B @ way[nz:]
        dC = _moved_sight(model, j + 1, states[j + 1], dz)
        left = np.eye(nz) - step.G @ step.C
        change = step.after @ dC.T @ step.G.T
        dS = left @ dP @ left.T - change - change.T
        total += float(np.sum(step.K * (dP - dS)))
        moved.append((dA, dB))
    total += float(np.sum(cost.state[len(steps)] * dS[:nx, :nx]))
    for j in range(len(steps) - 1, -1, -1):
        step, (dA, dB) = steps[j], moved[j]
        total += float(np.sum(dK * (step.P - step.after)))
        closed = step.A + step.B @ step.L
        change = closed.T @ step.K @ (dA + dB @ step.L)
        dK = closed.T @ dK @ closed + change + change.T
    return total


def _moved_sight(model: dense.DenseModel, time: int, z: Array, dz: Array) -> Array:
    """The change of the Jacobian of h along dz, by differences of eighth order."""
    length = float(np.abs(dz).max())
    if length == 0.0:
        return np.zeros((model.ny, model.nz))
    width = _WIDTH * max(1.0, float(np.abs(z[: model.nx]).max())) / length
    total = np.zeros((model.ny, model.nz))
    for count, factor in ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280)):
        up = model.observation_jacobian(time, z + count * width * dz)
        down = model.observation_jacobian(time, z - count * width * dz)
        total += factor * (up - down)
    return np.asarray(total / width)
