"""Steps that are put together stage by stage: the same numbers as the step written out, at a fraction of its length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual import Model, features, previous, unknown
from symdual.common.arrays import Array
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
    lengths = [len(package(derive(chain(masses))).files["kernels/kernels.py"]) for masses in (8, 16)]
    assert lengths[1] < 2.2 * lengths[0]


@pytest.mark.parametrize("long", [False, True])
def test_code_does_not_grow_with_the_substeps(long: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derivation, "LONG", 0 if long else 10**6)
    growth = [unknown("a", 1.0) * x * (1 - x) + u]
    models = [Model([x], [u], derivatives=growth, step=0.1, method="rk4", substeps=n, name="growth") for n in (2, 100)]
    lengths = [package(derive(model)).files["kernels/kernels.py"].count(b"\n") for model in models]
    assert lengths[0] == lengths[1]


class Chained:
    """A step of several substeps by the chain rule, in dense matrices, from the package of one of them."""

    def __init__(self, one: Any, substeps: int, x: Array, u: Array, theta: Array, costate: Array) -> None:
        n, rest = len(x), len(theta) + len(u)
        below = np.hstack([np.zeros((rest, n)), np.eye(rest)])
        places, tangents, slopes = [x], [np.hstack([np.eye(n), np.zeros((n, rest))])], []
        for _ in range(substeps):
            first = evaluate.jacobian(one, places[-1], u, theta)
            slopes.append(np.hstack([first.f_x, first.f_theta, first.f_u]))
            places.append(first.f)
            tangents.append(slopes[-1] @ np.vstack([tangents[-1], below]))
        self.f, self.first, self.second = places[-1], tangents[-1], np.zeros((n + rest, n + rest))
        for number in reversed(range(substeps)):
            own = evaluate.hessian(one, places[number], u, theta, costate)
            moved = np.vstack([tangents[number], below])
            self.second += moved.T @ np.block([[own.zz, own.uz.T], [own.uz, own.uu]]) @ moved
            costate = slopes[number][:, :n].T @ costate


SUBSTEPS = 3


@np.errstate(all="ignore")
@pytest.mark.parametrize(
    ("name", "method", "limit"),
    [
        *((name, "rk4", 10**6) for name in MODELS if name != "time"),  # a step of a third has another clock
        *((name, "rk4", 0) for name in ("scalars", "weights", "cases")),
        *((name, "euler", 10**6) for name in ("scalars", "weights")),
    ],
)
def test_substeps_in_loops_are_the_chain_rule(
    name: str, method: str, limit: int, monkeypatch: pytest.MonkeyPatch, interpreted: Callable[[Model], Any]
) -> None:
    motion = MODELS[name]()
    monkeypatch.setattr(derivation, "LONG", 10**6)
    one = interpreted(Model([x, v, w], [u, q], step=0.3 / SUBSTEPS, method=method, name="one", **motion))
    monkeypatch.setattr(derivation, "LONG", limit)
    whole = interpreted(Model([x, v, w], [u, q], step=0.3, method=method, substeps=SUBSTEPS, name="many", **motion))
    random = np.random.default_rng(5)
    for _ in range(2):
        state, action, costate = random.normal(size=3), random.normal(size=2), random.normal(size=3)
        at = (state, action, random.normal(size=whole.NTHETA))
        exact, near = Chained(one, SUBSTEPS, *at, costate), {"rtol": 1e-12, "atol": 1e-13}
        first, second = evaluate.jacobian(whole, *at), evaluate.hessian(whole, *at, costate)
        for found in (evaluate.dynamics(whole, *at), first.f):
            np.testing.assert_allclose(found, exact.f, **near)
        np.testing.assert_allclose(np.hstack([first.f_x, first.f_theta, first.f_u]), exact.first, **near)
        bends = np.block([[second.zz, second.uz.T], [second.uz, second.uu]])
        np.testing.assert_allclose(bends, exact.second, **near)


def test_zeros_of_a_whole_step_are_those_of_all_its_substeps() -> None:
    """Along a chain of integrators one Euler step passes on to the next state only."""
    motion = {"derivatives": [v, w, u * unknown("b", 1.0)], "step": 0.1}
    one, three = (derive(Model([x, v, w], [u], substeps=n, name="chain", **motion)) for n in (1, 3))
    assert structure(one).f_x_columns == ((0, 1), (1, 2), (2,)) and structure(one).theta_rows == (2,)
    assert structure(three).f_x_columns == ((0, 1, 2), (1, 2), (2,)) and structure(three).theta_rows == (0, 1, 2)
    assert structure(three).f_u_columns == ((0,), (0,), (0,)) and structure(three).linear


def test_inputs_that_are_remembered_move_by_whole_steps(interpreted: Callable[[Model], Any]) -> None:
    late = Model([x], [u], derivatives=[previous(u, 2) * x + previous(u)], step=0.5, substeps=2, name="late")
    whole = interpreted(late)
    at = ([0.3, 0.7, -0.4], [1.1], [])
    middle = 0.3 + 0.25 * (-0.4 * 0.3 + 0.7)
    expected = [middle + 0.25 * (-0.4 * middle + 0.7), 1.1, 0.7]
    np.testing.assert_allclose(evaluate.dynamics(whole, *at), expected, rtol=1e-14)
    first = evaluate.jacobian(whole, *at)
    np.testing.assert_allclose(first.f, expected, rtol=1e-14)
    np.testing.assert_allclose(first.f_x[1:], [[0, 0, 0], [0, 1, 0]])
    np.testing.assert_allclose(first.f_u, [[0], [1], [0]])
    np.testing.assert_allclose(first.f_x[0, :2], [0.9**2, 0.25 * (1 + 0.9)], rtol=1e-14)


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
