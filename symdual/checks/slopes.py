"""The slope of the dual cost by the inputs of a plan, with full matrices: how every recursion moves with one input.

    dA = f_zz dz + f_zu du (and dB, dC alike),     dP = dA S A' + A dS A' + A S dA' + dQ
    dS+ = (I - G C) dP (I - G C)' - S+ dC' G' - G dC S+ + G dR G',        G the gain of the filter
    dK = E' dH E + F' dK+ F + F' K+ (dA + dB L) + (.)',      E = [I; L], F = A + B L, H = [W N'; N U]
    dJd = tr { sum_j W_j dS_j + dW_j S_j + dK_{j+1} (P - S) + K_{j+1} (dP - dS) }

L is optimal, so its own change does not count. dH, dQ, dR and dC are differences of eighth order. With a filter of
second order Q stands for Q + E, E_ab = 1/2 tr(F_a S F_b S) with the second derivatives F_a of row a of f, and R for the
same with h and P; to differences with S held come 1/2 tr(F_a dS F_b S) + 1/2 tr(F_a S F_b dS).

The generated code goes the other way, back from Jd to all inputs at once (`adjoint`): the two share no formula.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from symdual.checks import dense
from symdual.common.arrays import Array
from symdual.entries.recursions import Workspace

SLOPE = "slope of the dual cost"
EIGHTH_ORDER = (4 / 5, -1 / 5, 4 / 105, -1 / 280)  # weights of central differences, of the nearest points first
_WIDTH = 1e-3  # of a difference, as a share of the point


class _Step(NamedTuple):
    """What is known at one step of a plan: matrices, their slopes by (z, u), and the recursions."""

    z: Array
    u: Array
    H: Array
    A: Array
    B: Array
    hessians: Array
    C: Array
    observation_hessians: Array
    S: Array
    P: Array
    after: Array
    G: Array
    K: Array
    L: Array


def slope_by_inputs(workspace: Workspace, steps: int) -> Array:
    """dJd / du from the slopes by points and inputs in the stage data of a workspace, which are taken out.

    mu_j = gradient_x + f_x' mu_{j+1},     2 (gradient_u + f_u' mu_{j+1})
    """
    stages, plan = workspace.stages, workspace.plan[0]
    found, mu = np.zeros((steps, plan["u"].shape[1])), stages["gradient_x"][steps].copy()
    for j in range(steps - 1, -1, -1):
        found[j] = 2.0 * (stages["gradient_u"][j] + plan["f_u"][j].T @ mu)
        mu = stages["gradient_x"][j] + plan["f_x"][j].T @ mu
    stages["gradient_x"], stages["gradient_u"] = 0.0, 0.0
    return found


def slopes(model: dense.DenseModel, noise: dense.Noise, cost: dense.Cost, belief: dense.Belief, inputs: Array) -> Array:
    """dJd / du for every input (steps, nu) of a plan from time 0, at order 1 with learning."""
    states = dense.forward_pass(model, noise, 0, belief.mean, inputs)
    steps = _steps(model, noise, cost, belief, states, inputs)
    found = np.zeros(inputs.shape)
    for place in np.ndindex(*inputs.shape):
        found[place] = _slope(model, noise, cost, states, steps, place)
    return found


def _steps(
    model: dense.DenseModel, noise: dense.Noise, cost: dense.Cost, belief: dense.Belief, states: Array, inputs: Array
) -> list[_Step]:
    spread = dense.plan_covariances(model, noise, 0, belief.covariance, states, inputs)
    to_go = dense.cost_to_go_within_bounds(model, noise, cost, 0, belief.covariance, states, inputs, 1)
    local = dense.local_costs(model, cost, 0, states, inputs)
    found = []
    for j, u in enumerate(inputs):
        A, B = dense.augmented(model, noise, j, states[j], u)
        K, P = to_go.matrices[j], spread.predicted[j]
        C = model.observation_jacobian(j + 1, states[j + 1])
        R, H = noise.of_measurement(j + 1, states[j + 1]), local[j].curvature
        if model.second_order:
            R = R + dense.measurement_moments(model, j + 1, states[j + 1], P).covariance
        G = np.asarray(np.linalg.solve(dense.innovation_covariance(C, P, R), C @ P).T, np.float64)
        hessians = np.stack([model.hessian(j, states[j], u, row) for row in np.eye(model.nx)])
        seen = dense.observation_hessians(model, j + 1, states[j + 1])
        L = np.zeros((model.nu, model.nz))
        free = np.isfinite(to_go.weights[j])
        if j > 0 and free.any():
            own, M = B[:, free], B[:, free].T @ K @ A
            M[:, : model.nx] += H[model.nx :, : model.nx][free]
            L[free] = -np.linalg.solve(
                H[model.nx :, model.nx :][np.ix_(free, free)] + np.diag(to_go.weights[j, free]) + own.T @ K @ own, M
            )
        S, after = spread.filtered[j : j + 2]
        found.append(_Step(states[j], u, H, A, B, hessians, C, seen, S, P, after, G, K, L))
    return found


def _slope(
    model: dense.DenseModel,
    noise: dense.Noise,
    cost: dense.Cost,
    states: Array,
    steps: list[_Step],
    place: tuple[int, ...],
) -> float:
    """dJd when one input moves."""
    nx, nz = model.nx, model.nz

    def hessian_at(time: int, v: Array) -> Array:
        return cost.at(time, v[:nz], v[nz:] if len(v) > nz else None).curvature

    def process_noise_at(time: int, v: Array) -> Array:
        return noise.of_step(time, v[:nz], v[nz:])

    def curved_noise_at(time: int, v: Array, S: Array) -> Array:
        return dense.motion_moments(model, time, v[:nz], v[nz:], S).covariance

    def curved_error_at(time: int, z: Array, P: Array) -> Array:
        return dense.measurement_moments(model, time, z, P).covariance

    dz, dS = np.zeros(nz), np.zeros((nz, nz))
    moved, total = [], 0.0
    for j, step in enumerate(steps):
        way = np.concatenate([dz, np.eye(model.nu)[place[1]] if j == place[0] else np.zeros(model.nu)])
        here = np.concatenate([step.z, step.u])
        scale, following = _sizes(step.z, step.S), _sizes(states[j + 1], step.after)
        scale = np.concatenate([scale, np.maximum(np.abs(step.u), 1.0 / np.sqrt(np.diagonal(step.H)[nx:]))])
        dA, dB = np.zeros_like(step.A), np.zeros_like(step.B)
        dA[:nx], dB[:nx] = step.hessians[:, :nz] @ way, step.hessians[:, nz:] @ way
        dH = _moved(hessian_at, j, here, way, scale)
        dP = dA @ step.S @ step.A.T + step.A @ step.S @ dA.T + step.A @ dS @ step.A.T
        dP[:nx, :nx] += _moved(process_noise_at, j, here, way, scale)
        if model.second_order:
            dP[:nx, :nx] += _moved(partial(curved_noise_at, S=step.S), j, here, way, scale)
            dP[:nx, :nx] += _change_of_moments(step.hessians[:, :nz, :nz], step.S, dS)
        total += float(np.sum(step.H[:nx, :nx] * dS[:nx, :nx]) + np.sum(dH[:nx, :nx] * step.S[:nx, :nx]))
        dz = step.A @ dz + step.B @ way[nz:]
        dC = _moved(model.observation_jacobian, j + 1, states[j + 1], dz, following)
        dR = _moved(noise.of_measurement, j + 1, states[j + 1], dz, following)
        if model.second_order:
            dR = dR + _moved(partial(curved_error_at, P=step.P), j + 1, states[j + 1], dz, following)
            dR += _change_of_moments(step.observation_hessians, step.P, dP)
        left = np.eye(nz) - step.G @ step.C
        change = step.after @ dC.T @ step.G.T
        dS = left @ dP @ left.T - change - change.T + step.G @ dR @ step.G.T
        total += float(np.sum(step.K * (dP - dS)))
        moved.append((dA, dB, dH))
    last = len(steps)
    end = cost.at(last, states[last], None).curvature[:nx, :nx]
    dK = np.zeros((nz, nz))
    dK[:nx, :nx] = _moved(hessian_at, last, states[last], dz, following)[:nx, :nx]
    total += float(np.sum(end * dS[:nx, :nx]) + np.sum(dK * steps[-1].after))
    for step, (dA, dB, dH) in zip(reversed(steps), reversed(moved), strict=True):
        total += float(np.sum(dK * (step.P - step.after)))
        closed, E = step.A + step.B @ step.L, np.vstack([np.eye(nz)[:nx], step.L])
        change = closed.T @ step.K @ (dA + dB @ step.L)
        dK = E.T @ dH @ E + closed.T @ dK @ closed + change + change.T
    return total


def _change_of_moments(hessians: Array, S: Array, dS: Array) -> Array:
    """1/2 tr(F_a dS F_b S) + 1/2 tr(F_a S F_b dS)."""
    half = 0.5 * np.einsum("iab,jba->ij", hessians @ dS, hessians @ S)
    return np.asarray(half + half.T)


def _sizes(z: Array, S: Array) -> Array:
    """How large each entry of z is, or how uncertain: what a difference is small beside."""
    sizes = np.maximum(np.abs(z), np.sqrt(np.abs(np.diagonal(S))))
    return np.asarray(np.where(sizes > 0.0, sizes, 1.0))


def _moved(matrix: Callable[[int, Array], Array], time: int, at: Array, way: Array, sizes: Array) -> Array:
    """The change of a matrix along a direction, by differences of eighth order."""
    total, length = np.zeros_like(matrix(time, at)), float(np.max(np.abs(way) / sizes))
    if length == 0.0:
        return total
    width = _WIDTH / length
    for count, factor in enumerate(EIGHTH_ORDER, start=1):
        total += factor * (matrix(time, at + count * width * way) - matrix(time, at - count * width * way))
    return np.asarray(total / width)
