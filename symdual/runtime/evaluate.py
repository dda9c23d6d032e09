"""Calls the compiled kernels of a package from Python, with checked arguments and dense results.

The unknowns theta are a vector in the order of the package, or a mapping from their names.

>>> symdual.evaluate.dynamics(problem.package, [1.0], [0.5], {"b": 2.0})
array([2.])
>>> symdual.evaluate.jacobian(problem.package, [1.0], [0.5], [2.0]).f_theta
array([[0.5]])
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.common.named import Given, complete
from symdual.common.transforms import numbers_of
from symdual.runtime.loading import LoadedPackage

__all__ = [
    "dynamics",
    "hessian",
    "hessians",
    "jacobian",
    "linearise",
    "observation",
    "observation_hessian",
    "observation_jacobian",
]


def __dir__() -> list[str]:
    """What is public, for completion."""
    return __all__


class Jacobian(NamedTuple):
    """f with df/dx (n, n), df/du (n, m) and df/dtheta (n, p)."""

    f: Array
    f_x: Array
    f_u: Array
    f_theta: Array


class ObservationJacobian(NamedTuple):
    """h with dh/dx (d, n) and dh/dtheta (d, p)."""

    h: Array
    h_x: Array
    h_theta: Array


class Hessian(NamedTuple):
    """Second derivatives of costate' f by (z, z), (u, z) and (u, u), dense."""

    zz: Array
    uz: Array
    uu: Array


def argument(value: ArrayLike, shape: tuple[int, ...], name: str) -> Array:
    """Return a C-contiguous float64 array of the given shape, or say which argument is wrong."""
    try:
        array = np.ascontiguousarray(value, dtype=np.float64)
    except (TypeError, ValueError) as failure:
        raise SymdualError(f"{name} must be an array of numbers") from failure
    if array.shape != shape:
        raise SymdualError(f"{name} must have shape {shape}, but has {array.shape}")
    return array


def whole_number(value: object, what: str, least: int = 1, most: int | None = None) -> int:
    """A number that counts something as a plain int, or a sentence that says what is wrong with it."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError as failure:
        raise SymdualError(f"{what} must be a whole number, not {value!r}") from failure
    if number < least:
        raise SymdualError(f"{what} must be at least {least}, not {number}")
    if most is not None and number > most:
        raise SymdualError(f"{what} must be at most {most}, not {number}")
    return number


def dynamics(package: LoadedPackage, x: ArrayLike, u: ArrayLike, theta: Given, k: int = 0) -> Array:
    """f(x, u, theta), the expected next state.

    >>> symdual.evaluate.dynamics(problem.package, [1.0], [0.5], [2.0])
    array([2.])
    """
    z, inputs = _point(package, x, theta), argument(u, (package.NU,), "u")
    out = np.zeros(package.NX)
    package.kernels.dynamics(int(k), z, inputs, package.numbers["data"], np.zeros(package.WORK), out)
    return out


def linearise(
    package: LoadedPackage, x: ArrayLike, u: ArrayLike, theta: Given, k: int = 0
) -> tuple[Array, Array, Array]:
    """f with its Jacobians by state and input, f_x and f_u.

    >>> f, f_x, f_u = symdual.evaluate.linearise(problem.package, [1.0], [0.5], [2.0])
    >>> f_u
    array([[2.]])
    """
    z, inputs = _point(package, x, theta), argument(u, (package.NU,), "u")
    f, f_x, f_u = np.zeros(package.NX), np.zeros((package.NX, package.NX)), np.zeros((package.NX, package.NU))
    package.kernels.linearise(int(k), z, inputs, package.numbers["data"], np.zeros(package.WORK), f, f_x, f_u)
    return f, f_x, f_u


def jacobian(package: LoadedPackage, x: ArrayLike, u: ArrayLike, theta: Given, k: int = 0) -> Jacobian:
    """f with its Jacobians by state, input and unknowns.

    >>> symdual.evaluate.jacobian(problem.package, [1.0], [0.5], [2.0]).f_theta
    array([[0.5]])
    """
    z, inputs = _point(package, x, theta), argument(u, (package.NU,), "u")
    f, f_x, f_u = np.zeros(package.NX), np.zeros((package.NX, package.NX)), np.zeros((package.NX, package.NU))
    rows = np.zeros((package.NR, package.NTHETA))
    data, work = package.numbers["data"], np.zeros(package.WORK)
    package.kernels.dynamics_jacobian(int(k), z, inputs, data, work, f, f_x, f_u, rows)
    f_theta = np.zeros((package.NX, package.NTHETA))
    f_theta[list(package.THETA_ROWS)] = rows
    return Jacobian(f, f_x, f_u, f_theta)


def hessian(
    package: LoadedPackage, x: ArrayLike, u: ArrayLike, theta: Given, costate: ArrayLike, k: int = 0
) -> Hessian:
    """The second derivatives of costate' f.

    >>> symdual.evaluate.hessian(problem.package, [1.0], [0.5], [2.0], costate=[3.0]).uz
    array([[0., 3.]])
    """
    z, inputs = _point(package, x, theta), argument(u, (package.NU,), "u")
    weight = argument(costate, (package.NX,), "costate")
    blocks = _HessianBlocks(package, package.HESSIAN_DIAGONALS, package.NPAIRS)
    uz, uu = np.zeros((package.NU, package.NZ)), np.zeros((package.NU, package.NU))
    data, work = package.numbers["data"], np.zeros(package.WORK)
    package.kernels.dynamics_hessian(
        int(k), z, inputs, weight, data, work, blocks.core, uz, uu, blocks.diagonal, blocks.left, blocks.right
    )
    return Hessian(blocks.dense(), uz, uu)


def hessians(package: LoadedPackage, x: ArrayLike, u: ArrayLike, theta: Given, k: int = 0) -> Array:
    """The second derivatives of each component of f by (z, u), dense: shape (n, nz + m, nz + m).

    >>> symdual.evaluate.hessians(problem.package, [1.0], [0.5], [2.0])[0, 1, 2]
    np.float64(1.0)
    """
    z, inputs = _point(package, x, theta), argument(u, (package.NU,), "u")
    blocks = _HessianBlocks(package, package.HESSIAN_DIAGONALS, package.NPAIRS)
    uz, uu = np.zeros((package.NU, package.NZ)), np.zeros((package.NU, package.NU))
    size = package.NZ + package.NU
    out = np.zeros((package.NX, size, size))
    data, work, costate = package.numbers["data"], np.zeros(package.WORK), np.zeros(package.NX)
    structured = (blocks.core, uz, uu, blocks.diagonal, blocks.left, blocks.right)
    package.kernels.dynamics_hessians(int(k), z, inputs, data, work, costate, *structured, out)
    return out


def observation(package: LoadedPackage, x: ArrayLike, theta: Given, k: int = 0) -> Array:
    """h(x, theta), the expected measurement.

    >>> symdual.evaluate.observation(problem.package, [1.0], [2.0])
    array([1.])
    """
    out = np.zeros(package.NY)
    package.kernels.observation(int(k), _point(package, x, theta), package.numbers["data"], np.zeros(package.WORK), out)
    return out


def observation_jacobian(package: LoadedPackage, x: ArrayLike, theta: Given, k: int = 0) -> ObservationJacobian:
    """h with its Jacobians by state and unknowns.

    >>> symdual.evaluate.observation_jacobian(problem.package, [1.0], [2.0]).h_x
    array([[1.]])
    """
    h, h_x, rows = (
        np.zeros(package.NY),
        np.zeros((package.NY, package.NX)),
        np.zeros((package.NHR, package.NTHETA)),
    )
    data, work = package.numbers["data"], np.zeros(package.WORK)
    package.kernels.observation_jacobian(int(k), _point(package, x, theta), data, work, h, h_x, rows)
    h_theta = np.zeros((package.NY, package.NTHETA))
    h_theta[list(package.H_THETA_ROWS)] = rows
    return ObservationJacobian(h, h_x, h_theta)


def observation_hessian(package: LoadedPackage, x: ArrayLike, theta: Given, costate: ArrayLike, k: int = 0) -> Array:
    """The second derivatives of costate' h by (z, z), dense.

    >>> symdual.evaluate.observation_hessian(problem.package, [1.0], [2.0], costate=[3.0]).shape
    (2, 2)
    """
    weight = argument(costate, (package.NY,), "costate")
    blocks = _HessianBlocks(package, package.OBSERVATION_DIAGONALS, package.OBSERVATION_PAIRS)
    data, work = package.numbers["data"], np.zeros(package.WORK)
    package.kernels.observation_hessian(
        int(k),
        _point(package, x, theta),
        weight,
        data,
        work,
        blocks.core,
        blocks.diagonal,
        blocks.left,
        blocks.right,
    )
    return blocks.dense()


class Terms(NamedTuple):
    """The terms of a cost with their slopes by state and by input; at the end there is no input."""

    t: Array
    t_x: Array
    t_u: Array


def cost_values(package: LoadedPackage, x: ArrayLike, u: ArrayLike | None, k: int = 0) -> Array:
    """The terms of the cost of a step, or for u = None of the end."""
    z, out = _point(package, x, np.zeros(package.NTHETA)), np.zeros(package.ENDS if u is None else package.TERMS)
    data, work = package.numbers["data"], np.zeros(package.WORK)
    if u is None:
        package.kernels.final_terms(int(k), z, data, work, out)
    else:
        package.kernels.stage_terms(int(k), z, argument(u, (package.NU,), "u"), data, work, out)
    return out


def cost_terms(package: LoadedPackage, x: ArrayLike, u: ArrayLike | None, k: int = 0) -> Terms:
    """The terms of the cost of a step, or for u = None of the end, with their slopes."""
    z = _point(package, x, np.zeros(package.NTHETA))
    count = package.ENDS if u is None else package.TERMS
    found = Terms(np.zeros(count), np.zeros((count, package.NX)), np.zeros((count, package.NU)))
    data, work = package.numbers["data"], np.zeros(package.WORK)
    if u is None:
        if count:
            package.kernels.final_jacobian(int(k), z, data, work, found.t, found.t_x)
    elif count:
        package.kernels.stage_jacobian(int(k), z, argument(u, (package.NU,), "u"), data, work, *found)
    return found


def cost_hessian(package: LoadedPackage, x: ArrayLike, u: ArrayLike | None, shares: ArrayLike, k: int = 0) -> Array:
    """The second derivatives of shares' t by (x, u), dense."""
    z, nx, nu = _point(package, x, np.zeros(package.NTHETA)), package.NX, package.NU
    count = package.ENDS if u is None else package.TERMS
    weights = argument(shares, (count,), "shares")
    xx, ux, uu = np.zeros((nx, nx)), np.zeros((nu, nx)), np.zeros((nu, nu))
    data, work = package.numbers["data"], np.zeros(package.WORK)
    if u is None:
        if count:
            package.kernels.final_hessian(int(k), z, weights, data, work, xx)
    elif count:
        package.kernels.stage_hessian(int(k), z, argument(u, (nu,), "u"), weights, data, work, xx, ux, uu)
    return np.block([[xx, ux.T], [ux, uu]])


class ConstraintJacobian(NamedTuple):
    """Constraints g with their slopes by state (NC, n), input (NC, m) and scalar unknowns (NC, s)."""

    g: Array
    g_x: Array
    g_u: Array
    g_theta: Array


def constraint_values(package: LoadedPackage, x: ArrayLike, u: ArrayLike, theta: Given, k: int = 0) -> Array:
    """The constraints of a package, at most zero where they are kept."""
    inputs, out = argument(u, (package.NU,), "u"), np.zeros(len(package.CONSTRAINTS))
    data, work = package.numbers["data"], np.zeros(package.WORK)
    package.kernels.constraint_values(int(k), _point(package, x, theta), inputs, data, work, out)
    return out


def constraint_jacobian(
    package: LoadedPackage, x: ArrayLike, u: ArrayLike, theta: Given, k: int = 0
) -> ConstraintJacobian:
    """The constraints of a package, at most zero where they are kept, with their slopes."""
    count, inputs = len(package.CONSTRAINTS), argument(u, (package.NU,), "u")
    shapes = (count,), (count, package.NX), (count, package.NU), (count, package.NS)
    found = ConstraintJacobian(*(np.zeros(shape) for shape in shapes))
    data, work = package.numbers["data"], np.zeros(package.WORK)
    package.kernels.constraint_jacobian(int(k), _point(package, x, theta), inputs, data, work, *found)
    return found


def process_noise(package: LoadedPackage, x: ArrayLike, u: ArrayLike, k: int = 0) -> Array:
    """Q(x, u), the covariance of the noise of a step; of a package whose noise depends on them."""
    inputs, out = argument(u, (package.NU,), "u"), np.zeros((package.NX, package.NX))
    data, work = package.numbers["data"], np.zeros(package.WORK)
    package.kernels.process_noise(int(k), _point(package, x, np.zeros(package.NTHETA)), inputs, data, work, out)
    return out


def measurement_noise(package: LoadedPackage, x: ArrayLike, k: int = 0) -> Array:
    """R(x), the covariance of the noise of a measurement; of a package whose noise depends on them."""
    out, data, work = np.zeros((package.NY, package.NY)), package.numbers["data"], np.zeros(package.WORK)
    package.kernels.measurement_noise(int(k), _point(package, x, np.zeros(package.NTHETA)), data, work, out)
    return out


class NoiseSlopes(NamedTuple):
    """The slopes of weighted entries of Q or R by state (NX,) and input (NU,)."""

    x: Array
    u: Array


def noise_slopes(
    package: LoadedPackage, x: ArrayLike, u: ArrayLike | None, weights: ArrayLike, k: int = 0
) -> NoiseSlopes:
    """The slopes of the entries of Q, or for u = None of R, on and below the diagonal, times weights, summed."""
    z, found = _point(package, x, np.zeros(package.NTHETA)), NoiseSlopes(np.zeros(package.NX), np.zeros(package.NU))
    size = package.NY if u is None else package.NX
    shares, data, work = (
        argument(weights, (size * (size + 1) // 2,), "weights"),
        package.numbers["data"],
        np.zeros(package.WORK),
    )
    if u is None:
        package.kernels.measurement_noise_gradient(int(k), z, shares, data, work, found.x)
    else:
        package.kernels.process_noise_gradient(int(k), z, argument(u, (package.NU,), "u"), shares, data, work, *found)
    return found


def parameters(package: LoadedPackage, given: Given, what: str = "theta") -> Array:
    """The unknowns of a package as the vector theta, given as such or by their names, then in the user's units."""
    if isinstance(given, Mapping):
        own = slice(package.NX, package.NZ)
        values = complete(given, package.UNKNOWNS, what)
        return numbers_of(package.transforms[own], values, package.belief_names[own], what)
    return argument(given, (package.NTHETA,), what)


def _point(package: LoadedPackage, x: ArrayLike, theta: Given) -> Array:
    return np.concatenate([argument(x, (package.NX,), "x"), parameters(package, theta)])


class _HessianBlocks:
    """The structured outputs of a Hessian kernel, and the matrix that they stand for."""

    def __init__(self, package: LoadedPackage, diagonals: tuple[tuple[int, int, int, int], ...], pairs: int) -> None:
        self._nx, self._nz, self._diagonals = package.NX, package.NZ, diagonals
        self.core = np.zeros((package.NX + package.NS, package.NZ))
        self.diagonal = np.zeros(sum(count for _, _, count, _ in diagonals))
        self.left, self.right = np.zeros((pairs, package.NTHETA)), np.zeros((pairs, package.NTHETA))

    def dense(self) -> Array:
        matrix = np.zeros((self._nz, self._nz))
        theta = matrix[self._nx :, self._nx :]
        half = self.left.T @ self.right
        theta += half + half.T  # exactly symmetric, whatever the order of the sums in it
        for row, column, count, start in self._diagonals:
            index = np.arange(count)
            matrix[row + index, column + index] += self.diagonal[start : start + count]
            if row != column:
                matrix[column + index, row + index] += self.diagonal[start : start + count]
        rows = len(self.core)
        matrix[:rows] = self.core
        matrix[:, :rows] = self.core.T
        return matrix
