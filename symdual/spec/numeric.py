"""Expressions as functions of numpy arrays, those with functions of this package included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import sympy as sp

from symdual.common.arrays import Array
from symdual.spec.symbols import matern, matern_formula


def as_numpy(symbols: Sequence[sp.Symbol], expressions: Sequence[sp.Expr]) -> Callable[..., list[Any]]:
    """A function of one array for each symbol, broadcast against each other, that returns a value for each expression.

    A value that depends on nothing is a number. Divisions by zero and the like become NaN or infinity.
    """
    # the symbols are given new names, for a user's may be that of a function
    function = sp.lambdify(list(symbols), list(expressions), modules=[_SPECIAL, "numpy"], cse=True, dummify=True)

    def at(*values: Any) -> list[Any]:
        with np.errstate(all="ignore"):
            return function(*values)  # type: ignore[no-any-return]

    return at


def _matern(order: int, square: Array) -> Array:
    safe = np.where(square > 0, square, 1.0)
    return np.where(square > 0, matern_formula(order, safe, np.sqrt(safe), np.exp), float(matern(order, 0)))


def _logistic(a: Array) -> Array:
    return np.exp(-np.logaddexp(0.0, -a))


def _monomial(base: Array, power: Array) -> Array:
    return np.asarray(base) ** power


def _erf(a: Array) -> Array:
    from scipy.special import erf

    return np.asarray(erf(a))


def _erfc(a: Array) -> Array:
    from scipy.special import erfc

    return np.asarray(erfc(a))


def _largest(parts: Sequence[Any], axis: int) -> Any:
    """`numpy.amax` of numbers and arrays of any shapes, as older versions of SymPy write a maximum."""
    return reduce(np.maximum, parts)


def _smallest(parts: Sequence[Any], axis: int) -> Any:
    return reduce(np.minimum, parts)


_SPECIAL = {
    "matern": _matern,
    "logistic": _logistic,
    "tanh": np.tanh,
    "monomial": _monomial,
    "erf": _erf,
    "erfc": _erfc,
    "amax": _largest,
    "amin": _smallest,
}
