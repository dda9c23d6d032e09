"""The table of integrators: each has the order and the limit that it states, in generated code as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual import Model, unknown
from symdual.derive import derivation
from symdual.integrators import INTEGRATORS, Explicit, Implicit
from symdual.runtime import evaluate

x, v, u, k = sp.symbols("x v u k")


@pytest.mark.parametrize("name", list(INTEGRATORS))
@pytest.mark.parametrize("limit", [0, 10**6])
def test_errors_fall_with_the_order(
    name: str, limit: int, monkeypatch: pytest.MonkeyPatch, interpreted: Callable[[Model], Any]
) -> None:
    """x' = 1 + x^2 t and v' = -v x; substeps halve the step, in loops over stages and written out."""
    monkeypatch.setattr(derivation, "LONG", limit)
    motion: dict[str, Any] = {"derivatives": [1 + x**2 * k * unknown("a", 1.0, 0.1), -v * x + u], "time": k}
    ends, few = [], 4 if isinstance(INTEGRATORS[name], Implicit) else 8
    for substeps in (few, 2 * few, 32 * few):
        model = Model([x, v], [u], step=1.0, method=name, substeps=substeps, name="bent", **motion)
        ends.append(evaluate.dynamics(interpreted(model), [0.2, 1.0], [0.3], [0.5]))
    errors = np.abs(np.array(ends[:2]) - ends[2]).max(axis=1)
    assert np.log2(errors[0] / errors[1]) == pytest.approx(INTEGRATORS[name].order, abs=0.25)


@pytest.mark.parametrize("name", [name for name, one in INTEGRATORS.items() if isinstance(one, Explicit)])
def test_a_decay_grows_beyond_the_limit(name: str, interpreted: Callable[[Model], Any]) -> None:
    one = INTEGRATORS[name]
    for share, grows in ((0.999, False), (1.001, True)):
        model = Model([x], [u], derivatives=[-x + u], step=share * one.limit, method=name, name="decay")
        assert (abs(evaluate.dynamics(interpreted(model), [1.0], [0.0], [])[0]) > 1.0) == grows
