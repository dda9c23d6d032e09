"""What the dense recursions are about: model, noise, cost and belief with full matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from symdual.common.arrays import Array


@dataclass(frozen=True)
class DenseModel:
    """A model as plain functions of time index, augmented state z and input u.

    `jacobian` returns df/d(z, u), shape (nx, nz + nu); `hessian` returns the second derivatives of lam' f with respect
    to (z, u), shape (nz + nu, nz + nu); `observation_jacobian` returns dh/dz, shape (ny, nz), `observation_hessian`
    the second derivatives of mu' h, shape (nz, nz), which only the second-order filter asks for. With `second_order`
    covariances along plans have the terms of that filter.
    """

    nx: int
    nu: int
    ny: int
    ntheta: int
    dynamics: Callable[[int, Array, Array], Array]
    jacobian: Callable[[int, Array, Array], Array]
    hessian: Callable[[int, Array, Array, Array], Array]
    observation: Callable[[int, Array], Array]
    observation_jacobian: Callable[[int, Array], Array]
    observation_hessian: Callable[[int, Array, Array], Array] | None = None
    second_order: bool = False
    keep: Callable[[Array], Array] = np.array  # states within their bounds, of a mean (nz,)

    @property
    def nz(self) -> int:
        """Length of the augmented state."""
        return self.nx + self.ntheta


class Noise(NamedTuple):
    """Covariances and the parameters' motion as full matrices; Q and R may be functions of time, z and input."""

    process: Array
    measurement: Array
    transition: Array
    diffusion: Array
    process_at: Callable[[int, Array, Array], Array] | None = None
    measurement_at: Callable[[int, Array], Array] | None = None

    def of_step(self, time: int, z: Array, u: Array) -> Array:
        """Q at a point."""
        return self.process if self.process_at is None else semidefinite(self.process_at(time, z, u))

    def of_measurement(self, time: int, z: Array) -> Array:
        """R at a point."""
        return self.measurement if self.measurement_at is None else semidefinite(self.measurement_at(time, z))


def semidefinite(matrix: Array) -> Array:
    """The matrix if it is a covariance, else NaN: nothing is to be compared where there is none."""
    fine = np.all(np.isfinite(matrix)) and np.linalg.eigvalsh(matrix).min() >= -1e-12 * np.abs(matrix).max()
    return matrix if fine else np.full_like(matrix, np.nan)


class LocalCost(NamedTuple):
    """A cost at one point: its value, and halves of its slope by (x, u), its curvature at order 1, the exact one."""

    value: float
    slope: Array
    curvature: Array
    exact: Array


class Cost(NamedTuple):
    """Weights (T+1, nx, nx), (T, nu, nu), reference (T+1, nx) and bounds (2, nu) of L = sum (x-r)'W(x-r) + sum u'Uu.

    Any other cost is a function of time, z and input (None at the end of the plan), which replaces all but bounds.
    If it saturates, inputs answer as far as their bounds allow, otherwise not at all at one.
    """

    state: Array
    input: Array
    reference: Array
    bounds: Array
    other: Callable[[int, Array, Array | None], LocalCost] | None = None
    saturates: bool = False

    def at(self, time: int, z: Array, u: Array | None) -> LocalCost:
        """The cost at one point."""
        if self.other is not None:
            return self.other(time, z, u)
        n, m = self.state.shape[-1], self.input.shape[-1]
        x = z[:n]
        weight = np.zeros((n + m, n + m))
        weight[:n, :n] = self.state[time]
        weight[n:, n:] = 0.0 if u is None else self.input[time]
        error = np.concatenate([x - self.reference[time], np.zeros(m) if u is None else u])
        return LocalCost(float(error @ weight @ error), weight @ error, weight, weight)


class Belief(NamedTuple):
    """Mean and covariance of z."""

    mean: Array
    covariance: Array


def augmented(model: DenseModel, noise: Noise, time: int, z: Array, u: Array) -> tuple[Array, Array]:
    """A~ = [f_x f_theta; 0 D] and B~ = [f_u; 0]."""
    jacobian = model.jacobian(time, z, u)
    A = np.zeros((model.nz, model.nz))
    A[: model.nx] = jacobian[:, : model.nz]
    A[model.nx :, model.nx :] = noise.transition
    B = np.zeros((model.nz, model.nu))
    B[: model.nx] = jacobian[:, model.nz :]
    return A, B
