"""A derivation is a value: finished when it is returned, and the same whatever was asked of it before."""

from __future__ import annotations

import pytest
import sympy as sp

from symdual import Model, features, unknown
from symdual.derive.derivation import Derivation, derive
from symdual.derive.display import equations
from symdual.derive.structure import structure
from symdual.emit.kernels import kernel_functions

x, v, u, k = sp.symbols("x v u k")


def pendulum() -> Model:
    net = features.logistic("net", v, locations=[-1.0, 0.5])
    motion = [v, -sp.sin(x) * unknown("a", 1.0) + net + u * sp.cos(k)]
    return Model([x, v], [u], derivatives=motion, step=0.2, method="rk4", time=k, name="pendulum")


def content(derivation: Derivation) -> list[object]:
    return [
        part
        for calculus in (derivation.dynamics, derivation.observation)
        for part in (
            list(calculus.definitions.items()),
            list(calculus.sums),
            [dict(row) for row in calculus.rows],
            dict(calculus.hessian.core),
            calculus.hessian.pairs,
        )
    ]


def test_asking_changes_nothing() -> None:
    derivation = derive(pendulum())
    before = content(derivation)
    kernels = kernel_functions(derivation, structure(derivation))
    equations(derivation)
    assert content(derivation) == before
    assert kernel_functions(derivation, structure(derivation)) == kernels


def test_two_derivations_of_a_model_are_equal() -> None:
    model = pendulum()
    one, other = derive(model), derive(model)
    structure(other)
    equations(other)
    assert [list(c.definitions.items()) for c in (one.dynamics, one.observation)] == [
        list(c.definitions.items()) for c in (other.dynamics, other.observation)
    ]
    assert dict(one.dynamics.hessian.core) == dict(other.dynamics.hessian.core)


def test_nothing_in_it_can_be_changed() -> None:
    derivation = derive(pendulum())
    for mapping in (derivation.dynamics.definitions, derivation.dynamics.sums, derivation.dynamics.hessian.core):
        with pytest.raises(TypeError):
            mapping[x] = x  # type: ignore[index]
    with pytest.raises(AttributeError):
        derivation.dynamics.definitions = {}  # type: ignore[misc]
