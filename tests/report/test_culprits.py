"""What left the numbers is named: the part, where it stands, and at which values."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual import Model, constant, features, unknown
from symdual.report.culprits import culprit, culprits

x, v, u, k = sp.symbols("x v u k")
a = unknown("a", 1.0)

CASES = {
    "the slope of a root": (
        Model([x], [u], [x - sp.sqrt(x) + u]),
        [0.0],
        'the derivative of sqrt(x) in the dynamics of "x" is infinite at x = 0',
    ),
    "a root": (
        Model([x], [u], [x - a * sp.sqrt(x - 1) + u]),
        [0.5, 1.0],
        'sqrt(x - 1) in the dynamics of "x" is not a number at x = 0.5',
    ),
    "a logarithm in the observation": (
        Model([x], [u], [x + u], observation=[x, sp.log(x)]),
        [0.0],
        "log(x) in the observation number 1 is infinite at x = 0",
    ),
    "a quotient": (
        Model([x, v], [u], [x / v + u, v]),
        [1.0, 0.0],
        '1/v in the dynamics of "x" is infinite at v = 0',
    ),
    "a known number": (
        Model([x], [u], [x + sp.acos(constant("c", 2.0) * x) + u]),
        [1.0],
        'acos(c*x) in the dynamics of "x" is not a number at c = 2, x = 1',
    ),
    "later": (
        Model(
            [x],
            [u],
            [
                x - 1 + 0 * u,
            ],
            observation=[sp.sqrt(x)],
        ),
        [2.0],
        "the derivative of sqrt(x) in the observation number 0 is infinite at x = 0, 2 steps later",
    ),
    "time": (
        Model([x], [u], [x + u / (3 - k)], time=k),
        [1.0],
        '1/(3 - k) in the dynamics of "x" is infinite at k = 3, 1 step later',
    ),
    "beside features": (
        Model([x], [u], [x + sp.log(x) + features.rbf("g", x, [0.0, 1.0]) + u]),
        [0.0, 0.3, 0.4],
        'log(x) in the dynamics of "x" is infinite at x = 0',
    ),
    "nothing": (Model([x], [u], [0.5 * x + sp.sqrt(x**2 + 1) + u]), [1.0], None),
}


@pytest.mark.parametrize("case", CASES)
def test_the_innermost_part_is_named(case: str) -> None:
    model, z, said = CASES[case]
    assert culprit(model, np.array(z), np.zeros(1), step=2) == said


class Failed:
    """Results of two controllers; the second has failed in its run 1, after step 2."""

    def __init__(self, level: float) -> None:
        self.description = types.SimpleNamespace(controllers=("ce", "dual"))
        states, means, inputs = np.full((2, 5, 1), 0.5), np.full((2, 5, 2), 0.5), np.zeros((2, 4, 1))
        means[1, 2] = level, 1.0
        means[1, 3:], states[1, 3:], inputs[1, 3:] = np.nan, np.nan, np.nan
        self._arrays = {"states": states, "means": means, "inputs": inputs, "truths": np.ones((2, 1))}

    def array(self, controller: str, field: str) -> Any:
        if field == "outcomes":
            return np.array([0, 2]) if controller == "dual" else np.zeros(2, dtype=int)
        return self._arrays[field]


def test_the_first_failed_run_of_each_controller_is_looked_at() -> None:
    tank = Model([x], [u], [x - a * sp.sqrt(x) + u])
    steady = Model([x], [u], [x + a * u])
    said = 'dual, run 1, step 2: the derivative of sqrt(x) in the dynamics of "x" is infinite at x = 0'
    assert list(culprits(Failed(0.0), tank, steady)) == [said]  # type: ignore[arg-type]
    assert list(culprits(Failed(0.0), steady, steady)) == []  # type: ignore[arg-type]
    # the belief is well, but the plant is not: its state was 0.5 when it was last seen
    blown = Model([x], [u], [sp.log(x - a / 2) + u])
    (sentence,) = culprits(Failed(1.0), steady, blown)  # type: ignore[arg-type]
    assert sentence == 'dual, run 1, step 2: log(x - a/2) in the dynamics of "x" is infinite at a = 1, x = 0.5'
