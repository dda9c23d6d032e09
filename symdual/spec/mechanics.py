"""Models from equations of motion that `sympy.physics.mechanics` has made: M(q, theta) a = F(q, v, u, theta), solved.

M is symmetric and positive definite, so it is factored without pivots, M = L D L', symbol by symbol:

    D_j = M_jj - sum_k L_jk^2 D_k,      L_ij = (M_ij - sum_k L_ik L_jk D_k) / D_j,      L D L' a = F

Nothing is simplified or expanded, and what appears several times is one object. The generator finds it again as a
common subexpression, which gets a name in the code and derivatives of its own: M is never inverted as formulas.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sympy as sp
from sympy.core.function import AppliedUndef

from symdual.common.errors import ModelError

MOST = 4  #: speeds; formulas grow fast


class Motion(NamedTuple):
    """States, their derivatives, and the symbols that stand for functions of time."""

    states: tuple[sp.Symbol, ...]
    derivatives: tuple[sp.Expr, ...]
    symbols: Mapping[sp.Expr, sp.Symbol]

    def translated(self, value: Any) -> Any:
        """The same in symbols, within sequences and mappings as well."""
        if isinstance(value, sp.Basic):
            return value.xreplace(self.symbols)
        if isinstance(value, sp.MatrixBase):
            return [self.translated(entry) for entry in value.flat()]
        if isinstance(value, Mapping):
            return {self.translated(key): self.translated(entry) for key, entry in value.items()}
        return [self.translated(entry) for entry in value] if isinstance(value, (list, tuple)) else value


def motion_of(method: Any, inputs: Iterable[sp.Expr], values: Mapping[sp.Symbol, float]) -> Motion:
    """The motion that a KanesMethod or a LagrangesMethod describes."""
    from sympy.physics.mechanics import KanesMethod, LagrangesMethod

    if not isinstance(method, (KanesMethod, LagrangesMethod)):
        raise ModelError(f"from_mechanics takes a KanesMethod or a LagrangesMethod, not {type(method).__name__}")
    places = list(method.q)
    if isinstance(method, KanesMethod):
        speeds, rates = list(method.u), method.kindiffdict()
        dependent = bool(len(method._qdep) or len(method._udep))
    else:
        speeds, rates = list(method.q.diff(sp.physics.vector.dynamicsymbols._t)), {}
        dependent = bool(method.coneqs)
    if dependent:
        raise ModelError("coordinates or speeds that depend on each other are not possible: choose independent ones")
    if len(speeds) > MOST:
        raise ModelError(f"{len(speeds)} speeds are more than from_mechanics can solve for, which is {MOST}")
    try:
        mass, force = method.mass_matrix, method.forcing
    except (AttributeError, ValueError) as failure:
        raise ModelError(
            "form the equations of motion first (kanes_equations or form_lagranges_equations)"
        ) from failure
    names = {place: sp.Symbol(_name(place)) for place in (*places, *inputs)}
    names |= {
        speed: sp.Symbol(f"{_name(speed.args[0])}_rate" if isinstance(speed, sp.Derivative) else _name(speed))
        for speed in speeds
    }
    numbers = {symbol: sp.Float(value) if isinstance(value, float) else value for symbol, value in values.items()}

    def plain(expression: sp.Expr) -> sp.Expr:
        found = expression.xreplace(rates).xreplace(names).xreplace(numbers)
        left = found.atoms(AppliedUndef, sp.Derivative)
        if left:
            raise ModelError(f'"{min(map(str, left))}" is a function of time that is no coordinate, speed or input')
        return found

    accelerations = solved([[plain(e) for e in mass.row(i)] for i in range(mass.rows)], [plain(e) for e in force])
    velocities = [
        plain(rates.get(rate, rate)) for rate in (q.diff(sp.physics.vector.dynamicsymbols._t) for q in places)
    ]
    states = tuple(names[symbol] for symbol in (*places, *speeds))
    return Motion(states, (*velocities, *accelerations), names)


def _name(symbol: sp.Expr) -> str:
    """The name of a symbol or a function of time."""
    return str(symbol.func) if isinstance(symbol, AppliedUndef) else str(symbol)


def solved(matrix: Sequence[Sequence[sp.Expr]], right: Sequence[sp.Expr]) -> list[sp.Expr]:
    """x of M x = b for a symmetric positive definite M, of which the lower triangle is read."""
    n = len(right)
    L: list[list[sp.Expr]] = [[sp.S.Zero] * n for _ in range(n)]
    D = list[sp.Expr]()
    for j in range(n):
        D.append(matrix[j][j] - sp.Add(*(L[j][k] ** 2 * D[k] for k in range(j))))
        if D[j] == 0:
            raise ModelError("the mass matrix is singular: some coordinate has no inertia")
        for i in range(j + 1, n):
            L[i][j] = (matrix[i][j] - sp.Add(*(L[i][k] * L[j][k] * D[k] for k in range(j)))) / D[j]
    y = list[sp.Expr]()
    for i in range(n):
        y.append(right[i] - sp.Add(*(L[i][k] * y[k] for k in range(i))))
    x: list[sp.Expr] = [sp.S.Zero] * n
    for i in reversed(range(n)):
        x[i] = y[i] / D[i] - sp.Add(*(L[k][i] * x[k] for k in range(i + 1, n)))
    return x
