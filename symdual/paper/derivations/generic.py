"""Appendix B for a generic index, through the derivation that serves users' models (`symdual.derive`).

A one-state model x' = g(x) + u with one feature family is derived; its sums and vectors are kept there as summands for
a generic index, which is what a printed sum or a printed row is compared with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import sympy as sp

from symdual.derive.calculus import Vector
from symdual.derive.derivation import Derivation, derive
from symdual.spec import features
from symdual.spec.model import Model
from symdual.spec.symbols import logistic

INDEX = sp.Symbol("i", integer=True, positive=True)
COUNT = sp.Symbol("F", positive=True)


class GenericArray:
    """v_i for the generic index: any other index is refused; the Fourier family has an odd and an even place."""

    def __init__(self, places: dict[Any, Any]) -> None:
        self._places = places

    def __getitem__(self, index: Any) -> Any:
        try:
            return self._places[sp.expand(index)]
        except KeyError:
            raise IndexError(f"the index {index} is not the generic one") from None


def generic_total(first: int, last: Any, term: Callable[[Any], Any]) -> Any:
    """A sum over the whole family stands for its summand at the generic index."""
    if first != 1:
        raise ValueError("the sum does not begin at the first feature")
    return term(INDEX)


@dataclass(frozen=True)
class Generic:
    """One derived family: where the symbols of its summand are, and its derivatives."""

    derivation: Derivation
    constants: tuple[tuple[str, Any], ...]

    @property
    def state(self) -> Any:
        """The state x."""
        return self.derivation.states[0]

    def weight(self, name: str) -> Any:
        """The symbol of a weight array."""
        return next(block.symbol for block in self.derivation.weights if block.symbol.name == name)

    def data(self, name: str) -> Any:
        """The symbol of a known array."""
        (family,) = self.derivation.model.families
        return next(array.symbol for array in family.data if array.symbol.name == name)

    def gradient_x(self) -> Any:
        """df/dx as the summand of its sum."""
        return self._summand(self.derivation.dynamics.jacobian(0, self.state))

    def gradient(self, weight: str) -> Any:
        """df/dw_i."""
        return self._vector(self.derivation.dynamics.weight_jacobian(0, self.weight(weight)), 1)

    def hessian_xx(self) -> Any:
        """d2f/dx2 as the summand of its sum."""
        hessian = self.derivation.dynamics_hessian
        return self._summand(hessian.entry(self.state, self.state) / self._costate())

    def hessian_x(self, weight: str) -> Any:
        """d2f/dx dw_i."""
        return self._vector(self.derivation.dynamics_hessian.mixed(self.state, self.weight(weight)), self._costate())

    def hessian(self, weight: str, other: str) -> Any:
        """d2f/dw_i dw'_i."""
        hessian = self.derivation.dynamics_hessian
        if hessian.pairs:
            raise ValueError("this family has pairs of vectors beside its diagonal")
        return self._vector(hessian.diagonal(self.weight(weight), self.weight(other)), self._costate())

    def _costate(self) -> Any:
        return self.derivation.dynamics.costate[0]

    def _summand(self, expression: Any) -> Any:
        """Put the summands in place of the symbols of the sums; the expression has to be linear in them."""
        sums = self.derivation.dynamics.sums
        bodies = {symbol: found.body for symbol, found in sums.items() if symbol in expression.free_symbols}
        if any(sp.diff(expression, symbol, 2) != 0 for symbol in bodies):
            raise ValueError(f"{expression} is not linear in its sums")
        return self._finished(expression.subs(bodies))

    def _vector(self, vector: Vector, unit: Any) -> Any:
        return self._finished(sum((term.coefficient / unit * term.body for term in vector), sp.Integer(0)))

    def _finished(self, expression: Any) -> Any:
        value = sp.sympify(expression)
        named = dict(self.constants)
        plain = value.subs({s: named[s.name] for s in value.free_symbols if s.name in named})
        return plain.replace(logistic, lambda a: 1 / (1 + sp.exp(-a)))


def _model(value: Any, position: Any, force: Any) -> Derivation:
    return derive(Model(states=[position], inputs=[force], dynamics=[value + force], name="appendix"))


@cache
def network() -> Generic:
    """sum_i v_i s(w_i (x - b_i)) with unknown v and w."""
    position, force = sp.symbols("x u", real=True)
    return Generic(_model(features.logistic("net", position, locations=[-1.0, 0.5, 2.0]), position, force), ())


@cache
def fourier() -> Generic:
    """c sum_i v_{2i-1} sin(omega_{2i-1} x) + v_{2i} cos(omega_{2i} x)."""
    position, force = sp.symbols("x u", real=True)
    family = features.fourier("v", position, count=4, frequencies=[0.3, 0.7, 1.1, 1.9])
    derivation = _model(family, position, force)
    (scale,) = derivation.model.constants
    return Generic(derivation, ((scale.name, sp.sqrt(2 / COUNT)),))


@cache
def radial() -> Generic:
    """sum_i v_i exp(-(x - c_i)^2 / (2 lambda^2))."""
    position, force = sp.symbols("x u", real=True)
    derivation = _model(features.rbf("v", position, centres=[-1.0, 0.5], lengthscale=0.8), position, force)
    (length,) = derivation.model.constants
    return Generic(derivation, ((length.name, sp.Symbol("lam", positive=True)),))
