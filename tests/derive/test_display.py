"""Equations for people: in full, and with names for their parts."""

from __future__ import annotations

import math

import pytest
import sympy as sp

from symdual import Model, unknown
from symdual.derive.derivation import derive
from symdual.derive.display import Abbreviations, equations

x, v, u = sp.symbols("x v u")
VALUES = {
    "x": 0.7,
    "v": -0.4,
    "u": 0.3,
    "a": 1.2,
    "b": 0.6,
    "step_length": 0.2,
    "lam_x": 0.8,
    "lam_v": -1.1,
    "lam_0": 0.5,
}


def swinging(method: str) -> Model:
    pull = -sp.sin(x) * unknown("a", 1.0) + sp.exp(-(v**2)) * unknown("b", 1.0) * u
    return Model([x, v], [u], derivatives=[v, pull], step=0.2, method=method, observation=[sp.cos(x) * v])


@pytest.mark.parametrize("method", ["euler", "rk4"])
def test_names_put_back_give_the_equation_in_full(method: str) -> None:
    derivation = derive(swinging(method))
    compared = 0
    for letter in "fh":
        own = [e for e in equations(derivation) if e.block.startswith(letter)]
        names, briefs = Abbreviations(derivation, letter).of([e.brief for e in own])
        assert all(len(str(meaning)) < 300 for meaning in names.values())
        known = dict(VALUES)
        for name, meaning in names.items():  # each needs only those before it
            known[name.name] = value_of(meaning, known)
        for equation, brief in zip(own, briefs, strict=True):
            if equation.right is not None:
                assert math.isclose(
                    value_of(brief, known), value_of(equation.right, VALUES), rel_tol=1e-10, abs_tol=1e-12
                )
                compared += 1
    assert compared > 5


def value_of(expression: sp.Expr, known: dict[str, float]) -> float:
    return float(expression.xreplace({s: sp.Float(known[s.name]) for s in expression.free_symbols}))
