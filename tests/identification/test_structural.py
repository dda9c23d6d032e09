"""Combinations of unknowns that no experiment can tell apart."""

from __future__ import annotations

import pytest
import sympy as sp

from symdual import Model, features, unknown
from symdual.identification.structural import ambiguities

x, v, u = sp.symbols("x v u")
a, b, c = unknown("a", 1.0, 0.5), unknown("b", 0.5, 0.5), unknown("c", 0.3, 0.5)


@pytest.mark.parametrize(
    ("dynamics", "said"),
    [
        (x + a * b * u, ["a and b show only through a*b"]),
        (x + a / b * u, ["a and b show only through a/b"]),
        (x + a**2 * b * u, ["a and b show only through a**2*b"]),
        (x + (a + 2 * b) * u + c, ["a and b show only through a + 2*b"]),
        (x + (a - b) * sp.sin(x) + u, ["a and b show only through a - b"]),
        (x + a * b * u + a * c * x, ["a, b and c show only through a*b and a*c"]),
        (x + a * u + b * sp.sin(c * x), []),
        (x + u + a * features.rbf("g", x, [0.0, 1.0]), ["a, g[0] and g[1] show only through a*g[0] and a*g[1]"]),
    ],
)
def test_products_and_sums_have_names(dynamics: sp.Expr, said: list[str]) -> None:
    model = Model([x], [u], [dynamics], name="m")
    found = [one.sentence() for one in ambiguities(model, [None])]
    assert [sentence.partition(":")[0] for sentence in found] == said


def test_a_direction_without_a_name_is_given_at_the_prior() -> None:
    model = Model([x], [u], [x + (a + b * c) * u], name="m")
    found = ambiguities(model, [None])
    assert [one.kind for one in found] == ["direction", "direction"]
    assert "near the prior" in found[0].sentence() and found[0].combinations == ()


def test_a_state_may_be_scaled_too() -> None:
    model = Model([x, v], [u], [x + a * v, b * v + c * u], observation=[x], name="m")
    (free,) = ambiguities(model, [None, None])
    assert free.names == ("a", "c", "v") and free.combinations == ("a*c", "a*v")
    (at_rest,) = ambiguities(model, [0.0, 0.0])  # nothing of v is left when it begins with zero
    assert at_rest.names == ("a", "c") and at_rest.combinations == ("a*c",)
    assert ambiguities(model, [0.0, 1.0]) == ()  # a known speed tells a


def test_an_unknown_that_never_shows() -> None:
    model = Model([x, v], [u], [x + u, v + a * u], observation=[x], name="m")
    (found,) = ambiguities(model, [None, None])
    assert found.sentence() == "a shows in no measurement, whatever the experiment"


def test_weak_is_not_the_same_as_absent() -> None:
    # 1e-12 of an effect is an effect, given enough measurements; doubles could not tell
    model = Model([x], [u], [x + a * u + 1e-12 * b * u**2], name="m")
    assert ambiguities(model, [None]) == ()


def test_a_state_that_nobody_asks_for_is_left_out() -> None:
    model = Model([x, v], [u], [x + a * u, v + u], observation=[x], name="m")
    assert ambiguities(model, [None, None]) == ()
