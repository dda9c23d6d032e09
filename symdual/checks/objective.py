"""A cost by expressions, put together densely: numpy's eigenvalues, full matrices, the terms from the kernels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from symdual.checks.dense import Cost, LocalCost
from symdual.checks.tuned import at
from symdual.common.arrays import Array
from symdual.runtime import evaluate
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.objective import Objective
from symdual.spec.objective import Objective as Asked


def local_cost(
    given: LoadedPackage, asked: Asked, plain: Cost, numbers: Objective
) -> Callable[[int, Array, Array | None], LocalCost]:
    """l_k(x, u) and l_T(x) with slope and curvature, as functions of time, state and input."""

    def cost(time: int, z: Array, u: Array | None) -> LocalCost:
        n, m = given.NX, given.NU
        x, theta = z[:n], z[n:]
        weight = np.zeros((n + m, n + m))
        weight[:n, :n] = plain.state[time]
        error = np.concatenate([x - plain.reference[time], np.zeros(m)])
        if u is not None:
            weight[n:, n:] = plain.input[time]
            weight[n:, :n] = numbers.cross_cost[time]
            weight[:n, n:] = numbers.cross_cost[time].T
            error[n:] = u - numbers.input_reference[time]
        shares = numbers.terminal_weights if u is None else numbers.cost_weights[time]
        squares = asked.final.squares if u is None else asked.stage.squares
        package = at(given, time)
        t, t_x, t_u = evaluate.cost_terms(package, x, u, time)
        slopes = np.hstack([t_x, t_u])
        value, slope, near = float(error @ weight @ error), weight @ error, np.zeros_like(weight)
        if len(asked.constraints):
            excess, near, pull = near_constraints(package, asked, numbers, time, x, u, theta)
            value, slope = value + excess, slope + pull
        if squares:
            curvature = weight + near + slopes.T @ (shares[:, None] * slopes)
            exact = curvature + evaluate.cost_hessian(package, x, u, shares * t, time)
            return LocalCost(value + float(shares @ t**2), slope + slopes.T @ (shares * t), curvature, exact)
        exact = weight + evaluate.cost_hessian(package, x, u, 0.5 * shares, time)
        value, slope = value + float(shares @ t), slope + 0.5 * slopes.T @ shares
        return LocalCost(value, slope, _convex(exact) + near, exact + near)

    return cost


def near_constraints(
    package: LoadedPackage, asked: Asked, numbers: Objective, time: int, x: Array, u: Array | None, theta: Array
) -> tuple[float, Array, Array]:
    """sum_c w_c max(0, g_c)^2 with half its curvature and half its slope; at the end without constraints on inputs."""
    g, g_x, g_u, _ = evaluate.constraint_jacobian(package, x, np.zeros(package.NU) if u is None else u, theta, time)
    acting = np.array([u is not None or package.WITH_INPUTS[c] == 0 for c in range(len(g))])
    excess = np.where(acting, np.maximum(g, 0.0), 0.0)
    slopes = np.hstack([g_x, g_u])
    near = slopes.T @ ((numbers.constraint_weights * (excess > 0.0))[:, None] * slopes)
    return float(numbers.constraint_weights @ excess**2), near, slopes.T @ (numbers.constraint_weights * excess)


def _convex(matrix: Array) -> Array:
    """The matrix without its negative eigenvalues."""
    if not np.all(np.isfinite(matrix)):
        return matrix
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
