"""The work that everybody does: the paper's cart on a Fourier rail, and its plain numpy answers.

z = (x, theta), x = (position, velocity), theta = the weights v of F features, F even:

    position' = position + 0.4 velocity
    velocity' = velocity + sqrt(2/F) sum_i v_i phi_i(position) + u,     v' = v

with phi_i = sin(w_i position) at the first, third, ... place and cos(w_i position) at the second, fourth, ...
Both states are measured, Q = R = 0.01 I, the horizon has 20 steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from symdual.common.arrays import Array

Answer = tuple[Array, ...]

KERNELS: Final = ("dynamics", "jacobian", "hessian", "ekf", "dual_cost")
TITLES: Final = {
    "dynamics": "f",
    "jacobian": "Jacobian",
    "hessian": "costate Hessian",
    "ekf": "EKF step",
    "dual_cost": "dual cost",
}
HORIZON: Final = 20
STEP: Final = 0.4
PROCESS_VARIANCE: Final = 1e-2
MEASUREMENT_VARIANCE: Final = 1e-2
CONTROL_COST: Final = 1e-3


@dataclass(frozen=True, eq=False)
class Workload:
    """One size of the problem, with all numbers fixed by the number of features."""

    features: int
    frequencies: Array
    scale: float
    mean: Array
    covariance: Array
    control: float
    controls: Array
    costate: Array
    measurement: Array
    weights: Array

    @property
    def size(self) -> int:
        """Number of augmented states, two states and the features' weights."""
        return self.features + 2


def make(features: int) -> Workload:
    """Return the problem with this even number of features; frequencies and scale have twelve digits."""
    if features < 2 or features % 2:
        raise ValueError(f"the number of features must be even and at least 2, not {features}")
    rng = np.random.default_rng(features)
    frequencies = np.array([float(f"{w:.12g}") for w in 0.7 * rng.normal(size=features)])
    mean = np.concatenate([[0.3, -0.1], 0.4 * rng.normal(size=features)])
    spread = rng.normal(size=(features + 2, features + 2))
    covariance = 0.5 * np.eye(features + 2) + 0.3 * (spread @ spread.T) / (features + 2)
    weights = np.zeros((HORIZON + 1, 2))
    weights[:5, 0] = 10.0
    weights[11:, 0] = 100.0
    return Workload(
        features=features,
        frequencies=frequencies,
        scale=float(f"{np.sqrt(2.0 / features):.12g}"),
        mean=mean,
        covariance=0.5 * (covariance + covariance.T),
        control=0.37,
        controls=0.5 * np.sin(0.7 * np.arange(HORIZON)),
        costate=rng.normal(size=features + 2),
        measurement=np.array([0.31, -0.05]),
        weights=weights,
    )


def basis(work: Workload, position: float) -> tuple[Array, Array]:
    """Return the scaled features and their derivatives in the position."""
    angle = work.frequencies * position
    sine = np.arange(work.features) % 2 == 0
    phi = work.scale * np.where(sine, np.sin(angle), np.cos(angle))
    slope = work.scale * work.frequencies * np.where(sine, np.cos(angle), -np.sin(angle))
    return phi, slope


def dynamics(work: Workload, z: Array, control: float) -> Array:
    """Return the next augmented state."""
    phi, _ = basis(work, z[0])
    following = z.copy()
    following[0] = z[0] + STEP * z[1]
    following[1] = z[1] + phi @ z[2:] + control
    return following


def jacobian(work: Workload, z: Array) -> Array:
    """Return the derivative of the next augmented state in the augmented state."""
    phi, slope = basis(work, z[0])
    matrix = np.eye(work.size)
    matrix[0, 1] = STEP
    matrix[1, 0] = slope @ z[2:]
    matrix[1, 2:] = phi
    return matrix


def hessian(work: Workload, z: Array, costate: Array) -> Array:
    """Return sum_i costate_i d^2 f_i / dz dz."""
    phi, slope = basis(work, z[0])
    matrix = np.zeros((work.size, work.size))
    matrix[0, 0] = -costate[1] * np.dot(work.frequencies**2 * phi, z[2:])
    matrix[0, 2:] = matrix[2:, 0] = costate[1] * slope
    return matrix


@dataclass(frozen=True, eq=False)
class Matrices:
    """The constant matrices of the dense recursions: Q, C, R, B, W_k and U on the augmented state."""

    process: Array
    observation: Array
    measurement: Array
    control: Array
    weights: Array
    control_cost: Array


def matrices(work: Workload) -> Matrices:
    """Return the constant matrices of the dense recursions."""
    size = work.size
    process = np.zeros((size, size))
    process[0, 0] = process[1, 1] = PROCESS_VARIANCE
    observation = np.eye(2, size)
    control = np.zeros((size, 1))
    control[1, 0] = 1.0
    weights = np.zeros((HORIZON + 1, size, size))
    weights[:, 0, 0], weights[:, 1, 1] = work.weights.T
    measurement = MEASUREMENT_VARIANCE * np.eye(2)
    return Matrices(process, observation, measurement, control, weights, np.array([[CONTROL_COST]]))


def ekf(work: Workload, constant: Matrices) -> tuple[Array, Array]:
    """Return mean and covariance after one prediction and one update, with dense products."""
    moved = jacobian(work, work.mean)
    mean = dynamics(work, work.mean, work.control)
    predicted = moved @ work.covariance @ moved.T + constant.process
    seen = predicted @ constant.observation.T
    innovation = constant.observation @ seen + constant.measurement
    mean = mean + seen @ np.linalg.solve(innovation, work.measurement - constant.observation @ mean)
    return mean, predicted - seen @ np.linalg.solve(innovation, seen.T)


def dual_cost(work: Workload, constant: Matrices) -> float:
    """Return half the trace cost of the covariances along the nominal inputs, with dense products.

    sum_k tr(W_k P_k) + tr((P-_k+1 - P_k+1) K_k+1), K the augmented Riccati matrix along the same trajectory.
    """
    z, covariance = work.mean, work.covariance
    slopes, predictions, updates = [], [], [covariance]
    for control in work.controls:
        moved = jacobian(work, z)
        z = dynamics(work, z, control)
        predicted = moved @ covariance @ moved.T + constant.process
        innovation = constant.observation @ predicted @ constant.observation.T + constant.measurement
        # (P C') on the left and (C P) on the right: a transpose of one of them loses eight digits in 20 steps
        gain = np.linalg.solve(innovation, constant.observation @ predicted)
        covariance = predicted - (predicted @ constant.observation.T) @ gain
        slopes.append(moved)
        predictions.append(predicted)
        updates.append(covariance)
    riccati = constant.weights[HORIZON]
    cost = np.sum(riccati * covariance)
    for k in range(HORIZON - 1, -1, -1):
        cost += np.sum(constant.weights[k] * updates[k]) + np.sum((predictions[k] - updates[k + 1]) * riccati)
        pushed = riccati @ constant.control
        effort = constant.control.T @ pushed + constant.control_cost
        reduced = riccati - pushed @ np.linalg.solve(effort, constant.control.T @ riccati)
        riccati = slopes[k].T @ reduced @ slopes[k] + constant.weights[k]
    return 0.5 * float(cost)


def reference(work: Workload) -> dict[str, Answer]:
    """Return the answers that every contender must give: per kernel a tuple of arrays."""
    constant = matrices(work)
    return {
        "dynamics": (dynamics(work, work.mean, work.control),),
        "jacobian": (jacobian(work, work.mean),),
        "hessian": (hessian(work, work.mean, work.costate),),
        "ekf": ekf(work, constant),
        "dual_cost": (np.array(dual_cost(work, constant)),),
    }
