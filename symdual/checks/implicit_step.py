"""An implicit step and its derivatives with full matrices: the equations of its stages, differentiated twice.

With all stages X (s, n) as one vector, v = (x, theta, u), J = 1 - h A x G_x, and V_j = d(X_j, theta, u)/dv,

    J X_v = x_v + h sum_j A_ij [0 G_theta G_u]_j,         J X_vv = x_vv + h sum_j A_ij V_j' g_vv V_j

is solved for the first and for all second derivatives of all stages, part by part. The generated code goes back from
the costate instead, and never has X_vv.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from symdual.common.arrays import Array
from symdual.integrators import INTEGRATORS, Implicit
from symdual.many_digits.collocation import divided, system
from symdual.spec.system import System


class Derived(NamedTuple):
    """f (n,), f_v (n, q) and f_vv (n, q, q), with v = (z, u)."""

    f: Array
    first: Array
    second: Array


class ImplicitStep:
    """The step of a model as functions of time index, augmented state and input."""

    def __init__(self, model: System, motion: list[sp.Expr], theta: list[sp.Symbol], clock: sp.Symbol) -> None:
        method = INTEGRATORS[model.method]
        assert isinstance(method, Implicit) and model.step is not None
        self._method, self._step, self._substeps = method, float(model.step), model.substeps
        self._n, self._own = len(model.states), len(model.own_states)
        both = [*model.states, *theta, *model.inputs]
        waiting = [sp.Integer(0)] * model.memory
        slope = sp.Matrix([*motion[: self._own], *waiting])
        place = {symbol: n for n, symbol in enumerate(both)}
        self._remembered = [place[e] for e in motion[self._own :]]

        def compiled(expression: Any) -> Callable[..., Array]:
            function = sp.lambdify([clock, both], expression, modules="numpy", cse=True, dummify=True)
            return lambda time, v: np.array(function(time, v), dtype=float)

        self._g, self._g_v = compiled(list(slope)), compiled(slope.jacobian(both))
        self._g_vv = cache(lambda: [compiled(sp.hessian(row, both)) for row in slope])

    def value(self, time: int, z: Array, u: Array) -> Array:
        """The next state."""
        return self._derived(time, z, u, 0).f

    def jacobian(self, time: int, z: Array, u: Array) -> Array:
        """Its derivatives by (z, u)."""
        return self._derived(time, z, u, 1).first

    def hessian(self, time: int, z: Array, u: Array, costate: Array) -> Array:
        """The second derivatives of costate' f by (z, u)."""
        return np.asarray(np.einsum("i,iab->ab", costate, self._derived(time, z, u, 2).second))

    def _derived(self, k: int, z: Array, u: Array, order: int) -> Derived:
        n, v = self._n, np.concatenate([z, u])
        q, rest = len(v), v[n:]

        def at(x: Array) -> Array:
            return np.concatenate([x, rest])

        parts = divided(
            self._method,
            lambda share, x: self._g(k + share, at(x)),
            lambda share, x: self._g_v(k + share, at(x))[:, :n],
            z[:n],
            self._step,
            self._substeps,
        )
        if parts is None:
            return Derived(np.full(n, np.nan), np.full((n, q), np.nan), np.full((n, q, q), np.nan))
        first, second = np.eye(n, q), np.zeros((n, q, q))
        s, A, below = self._method.stages, np.array(self._method.matrix), np.eye(q)[n:]
        for part in parts if order else []:
            h = self._step * part.share
            places = [
                (k + part.time + part.share * c, at(x)) for c, x in zip(self._method.nodes, part.stages, strict=True)
            ]
            G = np.stack([self._g_v(*place) for place in places])
            inverse = np.linalg.inv(system(self._method, G[:, :, :n], h))
            free = np.concatenate([np.zeros((s, n, n)), G[:, :, n:]], axis=2)
            X_v = (inverse @ (first + h * np.einsum("ij,jab->iab", A, free)).reshape(s * n, q)).reshape(s, n, q)
            if order > 1:
                V = np.stack([np.vstack([own, below]) for own in X_v])
                bent = np.stack([[row(*place) for row in self._g_vv()] for place in places])
                moved = np.einsum("jca,jicd,jdb->jiab", V, bent, V)
                right = second + h * np.einsum("ij,jnab->inab", A, moved)
                second = np.einsum("xy,yab->xab", inverse, right.reshape(s * n, q, q)).reshape(s, n, q, q)[-1]
            first = X_v[-1]
        f = parts[-1].stages[-1].copy()
        for row, column in enumerate(self._remembered, self._own):
            f[row], first[row], second[row] = v[column], np.eye(q)[column], 0.0
        return Derived(f, first, second)
