"""Random small models: whatever can be written down is derived, emitted and right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sympy as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from symdual import Model, features, logistic, unknown
from symdual.checks.kernels import compare, references

x, v, u = sp.symbols("x v u")
a, b = unknown("a", 0.5), unknown("b", -0.5)

NUMBERS = st.sampled_from([sp.Integer(1), sp.Integer(-2), sp.Rational(1, 3), sp.Float(0.7), sp.pi])
#: Functions that are finite and of moderate size everywhere, so that random compositions stay in range.
BOUNDED: list[Callable[[sp.Expr], sp.Expr]] = [
    *(sp.sin, sp.cos, sp.tanh, sp.atan, sp.erf, logistic, sp.asinh),
    lambda e: 1 / (1 + e**2),
    lambda e: sp.exp(-(e**2)),
    lambda e: sp.sqrt(1 + e**2),
    lambda e: sp.log(1 + e**2),
    lambda e: sp.Abs(e - sp.Rational(1, 7)),
    lambda e: sp.Max(e, sp.Rational(1, 5)),
    lambda e: sp.Piecewise((e, e > sp.Rational(1, 9)), (e**2, True)),
]


def expressions(leaves: list[sp.Expr]) -> st.SearchStrategy[sp.Expr]:
    start = st.one_of(st.sampled_from(leaves), NUMBERS)
    return st.recursive(
        start,
        lambda inner: st.one_of(
            st.builds(lambda one, other: one + other, inner, inner),
            st.builds(lambda one, other: one - other, inner, inner),
            st.builds(lambda one, other: one * sp.tanh(other), inner, inner),
            st.builds(lambda function, e: function(e), st.sampled_from(BOUNDED), inner),
        ),
        max_leaves=5,
    )


@st.composite
def summands(draw: st.DrawFn) -> Callable[..., sp.Expr]:
    """A summand of two unknown arrays and one known array, as `features.custom` wants it."""
    s, c, d, p = sp.symbols("s c d p", real=True)
    body = draw(expressions([s, c, d, p, d * s, p * s])) + c * draw(expressions([s, d, p, p * s]))
    return lambda *arguments, **arrays: body.xreplace(
        dict(zip((s, c, d, p), (*arguments, *arrays.values()), strict=True))
    )


@st.composite
def models(draw: st.DrawFn) -> Model:
    leaves: list[sp.Expr] = [x, v, u, a, b]
    for name in draw(st.sampled_from([(), ("g",), ("g", "q")])):
        argument = draw(expressions([x, v, u, *leaves[5:]]))
        family = features.custom(
            name, argument, draw(summands()), {"c": (0.5, 1.0), "d": (-0.5, 0.5)}, {"p": [0.3, -1.2]}
        )
        leaves.append(family)
    expression = expressions(leaves)
    observation = [draw(expressions([leaf for leaf in leaves if not leaf.has(u)]))]
    if draw(st.booleans()):
        return Model([x, v], [u], [draw(expression), draw(expression)], observation=observation, name="random")
    method = draw(st.sampled_from(["euler", "rk4"]))
    derivatives = [draw(expression), v + u]
    return Model([x, v], [u], derivatives=derivatives, step=0.1, method=method, observation=observation, name="random")


SOME = settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@SOME
@given(model=models())
def test_random_models_pass_the_check(interpreted: Callable[[Model], Any], model: Model) -> None:
    pass_the_check(interpreted, model)


@pytest.mark.soak
@settings(SOME, max_examples=200)
@given(model=models())
def test_many_random_models_pass_the_check(interpreted: Callable[[Model], Any], model: Model) -> None:
    pass_the_check(interpreted, model)


@pytest.mark.parametrize(
    "dynamics",
    [
        sp.Piecewise((x + 1, x > sp.Rational(-8, 9)), ((x + 1) ** 2, True)),
        sp.Max(x, sp.Rational(1, 3)) + 2 * x,
        sp.Piecewise((x, x**2 + x > sp.Rational(1, 3)), (-2 * x, True)),
    ],
)
def test_a_boundary_that_no_double_lies_on_is_no_miss(interpreted: Callable[[Model], Any], dynamics: sp.Expr) -> None:
    pass_the_check(interpreted, Model([x, v], [u], [dynamics, v + u], observation=[x], name="random"))


def pass_the_check(interpreted: Callable[[Model], Any], model: Model) -> None:
    missed = [r for r in compare(interpreted(model), references(model, points=2)) if not r.passed]
    assert missed == [], (model.dynamics, model.observation)
