"""The kernels of a package as a dense model: plain functions of time, z and u."""

from __future__ import annotations

from typing import cast

import numpy as np

from symdual.checks.dense import DenseModel
from symdual.checks.tuned import Tuned, at
from symdual.common.arrays import Array
from symdual.runtime import evaluate
from symdual.runtime.loading import LoadedPackage


def dense_model(package: LoadedPackage, signals: Array | None = None, second_order: bool = False) -> DenseModel:
    """A package's f and h with their derivatives as plain functions of z and u, with signals (T + 1, S) by time.

    With `second_order` covariances along plans have terms of second order.
    """
    nx, nz = package.NX, package.NZ
    if signals is not None:
        package = cast(LoadedPackage, Tuned(package, signals))

    def jacobian(time: int, z: Array, u: Array) -> Array:
        found = evaluate.jacobian(at(package, time), z[:nx], u, z[nx:], time)
        return np.hstack([found.f_x, found.f_theta, found.f_u])

    def hessian(time: int, z: Array, u: Array, lam: Array) -> Array:
        found = evaluate.hessian(at(package, time), z[:nx], u, z[nx:], lam, time)
        return np.block([[found.zz, found.uz.T], [found.uz, found.uu]])

    def observation_jacobian(time: int, z: Array) -> Array:
        found = evaluate.observation_jacobian(at(package, time), z[:nx], z[nx:], time)
        return np.hstack([found.h_x, found.h_theta])

    return DenseModel(
        nx=nx,
        nu=package.NU,
        ny=package.NY,
        ntheta=nz - nx,
        dynamics=lambda time, z, u: evaluate.dynamics(at(package, time), z[:nx], u, z[nx:], time),
        jacobian=jacobian,
        hessian=hessian,
        observation=lambda time, z: evaluate.observation(at(package, time), z[:nx], z[nx:], time),
        observation_jacobian=observation_jacobian,
        observation_hessian=lambda time, z, mu: evaluate.observation_hessian(
            at(package, time), z[:nx], z[nx:], mu, time
        ),
        second_order=second_order,
        keep=lambda z: np.concatenate([package.within_bounds(z[:nx]), z[nx:]]),
    )
