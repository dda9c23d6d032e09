"""Steps that are put together stage by stage: the same numbers as the step written out, at a fraction of its length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual import Model, features, unknown
from symdual.derive import derivation
from symdual.derive.derivation import derive
from symdual.derive.structure import structure
from symdual.emit.package import package
from symdual.emit.stages import AT_ONCE, grouped
from symdual.runtime import evaluate

x, v, w, u, q, k = sp.symbols("x v w u q k")


def network(argument: sp.Expr) -> Any:
    return features.logistic("net", argument, locations=[-1.0, 0.5], slope_mean=[-1.0, 0.7])


MODELS = {
    "scalars": lambda: {"derivatives": [v * unknown("a", 1.0), sp.sin(x) * unknown("b", 1.0) * u, w * x - v * q]},
    "weights": lambda: {"derivatives": [v + w**2, network(x + 0.3 * u) * v + u, -w * x * unknown("a", 1.0) + q * u]},
    "time": lambda: {"derivatives": [v + sp.cos(k) * x, u * sp.sin(x * k), q - w], "time": k},
    "affine": lambda: {"derivatives": [v, w - 2 * x + unknown("b", 1.0) * u, q - w]},
    "cases": lambda: {"derivatives": [v, sp.Piecewise((sp.sqrt(x) * u, x > 0), (x * u, True)), sp.Max(w, v) * q]},
    "a_state_that_rests": lambda: {"derivatives": [v * unknown("a", 1.0) * u, sp.Integer(0), w * v * q]},
}


@pytest.fixture(params=list(MODELS))
def motion(request: pytest.FixtureRequest) -> dict[str, Any]:
    return MODELS[request.param]()


def both(motion: dict[str, Any], monkeypatch: pytest.MonkeyPatch, interpreted: Callable[[Model], Any]) -> list[Any]:
    """The package by stages and the one that is written out."""
    found = []
    for limit in (0, 10**6):
        monkeypatch.setattr(derivation, "LONG", limit)
        found.append(interpreted(Model([x, v, w], [u, q], step=0.2, method="rk4", name="step", **motion)))
    assert "by stages" in found[0].source and "by stages" not in found[1].source
    return found


@np.errstate(all="ignore")  # what a case does not use may be anything
def test_both_forms_give_the_same_numbers(
    motion: dict[str, Any], monkeypatch: pytest.MonkeyPatch, interpreted: Callable[[Model], Any]
) -> None:
    staged, written = both(motion, monkeypatch, interpreted)
    random = np.random.default_rng(3)
    for time_index in (0, 3):
        state, action, costate = random.normal(size=3), random.normal(size=2), random.normal(size=3)
        theta = random.normal(size=staged.NTHETA)
        near: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-14}
        here = (state, action, theta)
        np.testing.assert_allclose(
            evaluate.dynamics(staged, *here, time_index), evaluate.dynamics(written, *here, time_index), **near
        )
        for function in (evaluate.linearise, evaluate.jacobian):
            one_by_one = zip(function(staged, *here, time_index), function(written, *here, time_index), strict=True)
            for one, other in one_by_one:
                np.testing.assert_allclose(one, other, **near)
        for costates in (costate, np.zeros(3)):  # the second call finds what the first has left in its arrays
            one = evaluate.hessian(staged, *here, costates, time_index)
            other = evaluate.hessian(written, *here, costates, time_index)
            for name in ("zz", "uz", "uu"):
                np.testing.assert_allclose(getattr(one, name), getattr(other, name), **near)
            np.testing.assert_array_equal(one.zz, one.zz.T)


def test_the_work_array_may_hold_anything(monkeypatch: pytest.MonkeyPatch, interpreted: Callable[[Model], Any]) -> None:
    """Kernels take turns with it: nothing that another has left there may count."""
    staged, _ = both(MODELS["weights"](), monkeypatch, interpreted)
    z, action, costate = np.linspace(-1, 1, staged.NZ), np.array([0.3, -0.2]), np.ones(3)

    def blocks() -> list[np.ndarray]:
        pairs = (staged.NPAIRS, staged.NTHETA)
        shapes = (3 + staged.NS, staged.NZ), (2, staged.NZ), (2, 2), (staged.NTHETA,), pairs, pairs
        return [np.zeros(shape) for shape in shapes]

    results = []
    for junk in (0.0, 7.0):
        out = blocks()
        work = np.full(staged.WORK, junk)
        staged.kernels.dynamics_hessian(0, z, action, costate, staged.numbers["data"], work, *out)
        results.append(out)
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def chain(masses: int) -> Model:
    """Masses on a line, with springs of unknown stiffness that are not linear."""
    places, speeds = sp.symbols(f"x0:{masses}"), sp.symbols(f"v0:{masses}")
    forces = []
    for i, (place, speed) in enumerate(zip(places, speeds, strict=True)):
        stretch = place - (places[i - 1] if i else 0)
        forces.append(-unknown(f"k{i}", 1.0) * (stretch + stretch**3) - speed * sp.Abs(speed) + (u if i == 0 else 0))
    return Model([*places, *speeds], [u], derivatives=[*speeds, *forces], step=0.1, method="rk4", name="chain")


def test_code_grows_gently_with_the_states() -> None:
    """Twice the states, at most a little more than twice the code; written out it would be far more."""
    lengths = [len(package(derive(chain(masses))).files["kernels.py"]) for masses in (8, 16)]
    assert lengths[1] < 2.2 * lengths[0]


def test_code_grows_gently_with_the_substeps() -> None:
    """A state that the next step meets twice has a name: put into its places it would double with every step."""
    growth = [unknown("a", 1.0) * x * (1 - x) + u]
    models = [Model([x], [u], derivatives=growth, step=0.1, substeps=n, name="growth") for n in (10, 20)]
    lengths = [len(package(derive(model)).files["kernels.py"]) for model in models]
    assert lengths[1] < 2.2 * lengths[0]


def test_patterns_are_those_of_the_whole_step() -> None:
    """In one step a push on the first mass reaches the next three at most: four stages, four links."""
    pattern = structure(derive(chain(8)))
    assert [columns != () for columns in pattern.f_u_columns] == [True] * 2 + [False] * 6 + [True] * 2 + [False] * 6


def test_entries_are_grouped_by_row() -> None:
    entries = grouped([(2, 0), (0, c := 1), (0, 3), (0, 4), (0, 5), (0, 7)])
    assert entries.rows == (0, 0, 2)
    assert entries.columns == (1, 3, 4, 5, 7, 0, 0, 0, 0, 0, 0, 0)
    assert len(entries.columns) == AT_ONCE * len(entries.rows)
    assert entries.places == ((0, 0, c), (1, 0, 3), (2, 0, 4), (3, 0, 5), (4, 0, 7), (8, 2, 0))
