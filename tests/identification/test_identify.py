"""What an experiment can tell: against posteriors, by differences, and where the best one is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

import symdual
from symdual import Model, unknown
from symdual.common.errors import SymdualError
from symdual.identification.experiment import after, best_experiment
from symdual.identification.identify import _plainest
from symdual.identification.parameters.filtering import Filter
from symdual.identification.parameters.prior_model import PriorModel
from symdual.identification.surroundings import read_recordings
from symdual.report.identifications import identification_figure, write_plan

from .conftest import fit_parameters, ride

x, u = sp.symbols("x u")


def test_the_gradient_of_an_experiment(interpreted_likelihood: Callable[[Model], Any]) -> None:
    a, b = unknown("a", 0.9, 0.2), unknown("b", 1.0, 0.5)
    package = interpreted_likelihood(Model([x], [u], [sp.sin(a * x) + b * u**2], name="bent"))
    own = Filter(
        *(package, np.array([0.3, 0.9, 1.0]), np.diag([0.1, 0.2, 0.5]), np.arange(3)),
        *(np.diag([0.05, 0.0, 0.0]), np.array([[0.1]]), np.eye(2)),
    )
    random = np.random.default_rng(0)
    inputs = random.normal(size=(6, 1))
    value, slope = after(own, inputs)
    # log det after the experiment, from the filter itself
    rows = np.concatenate([inputs, np.zeros((1, 1))])
    covariance = own.run(rows, np.zeros((7, 1)), expected=True).covariances[-1]
    assert value == pytest.approx(np.log(np.linalg.det(covariance[1:, 1:])))
    for k in range(6):
        step = np.zeros((6, 1))
        step[k] = 1e-5
        assert slope[k, 0] == pytest.approx(
            (after(own, inputs + step)[0] - after(own, inputs - step)[0]) / 2e-5, rel=1e-6
        )


def test_the_best_experiment_for_a_gain_is_as_large_as_allowed(interpreted_likelihood: Callable[[Model], Any]) -> None:
    # x' = b u + noise: each step tells u^2 / (Q + R), so every input is at a bound, the farther one
    package = interpreted_likelihood(Model([x], [u], [unknown("b", 1.0, 4.0) * u], name="gain_only"))
    own = Filter(
        *(package, np.array([0.0, 1.0]), np.diag([0.0, 4.0]), np.arange(2)),
        *(np.diag([0.1, 0.0]), np.array([[0.2]]), np.eye(1)),
    )
    best = best_experiment(own, np.array([-1.0]), np.array([2.0]), 5, starts=2)
    np.testing.assert_allclose(best.inputs, 2.0)
    assert best.log_determinant == pytest.approx(math.log(1 / (1 / 4.0 + 5 * 4.0 / 0.3)))


def test_what_is_expected_is_what_comes_out(cart: PriorModel, cart_file: Path, packages: Path) -> None:
    # the noise of the model is that of the rides here, so that only the unknowns are open
    table = ride(300, 21)
    found = symdual.identify(cart_file, table, folder=packages)
    assert found.kind == "recording" and found.unknowns == ("drive", "friction", "side")
    fitted = fit_parameters(
        cart, read_recordings(table, cart.package), hold=["process_noise", "measurement_noise"], starts=1
    )
    for name, deviation in zip(found.unknowns, found.after, strict=True):
        assert fitted[name].deviation == pytest.approx(deviation, rel=0.35)  # the prior means are not the truth
    assert found.rank == 3 and math.isfinite(found.condition) and found.open == ()
    np.testing.assert_allclose(found.history[-1], found.after)
    assert (np.diff(found.history, axis=0) <= 1e-12).all()
    assert list(found.columns()) == ["name", "before", "after"]
    assert f" bits; deviations: drive {found.before[0]:.3g} -> {found.after[0]:.3g}, friction" in repr(found)


def test_what_an_experiment_does_not_show_stays_unknown(cart_file: Path, packages: Path) -> None:
    plan = {name: column for name, column in ride(100, 22, windy=False).items() if name != "position"}
    found = symdual.identify(cart_file, plan, folder=packages)
    assert found.kind == "plan" and found.rank == 2 and found.condition == math.inf
    assert found.after[2] == pytest.approx(found.before[2]) == pytest.approx(0.5)
    (direction,) = found.open
    assert direction.weights == pytest.approx({"side": 1.0}) and direction.information == pytest.approx(0.0)
    assert "side stays unknown: its deviation stays at 100 %" in list(found.sentences())
    both = dict(plan, wind=plan["force"])  # wind and force always blow together
    found = symdual.identify(cart_file, both, folder=packages)
    (direction,) = found.open
    assert set(direction.weights) == {"drive", "side"}
    # 0.1 (drive force + side wind) does not change along drive up, side down by the same: 1 and -1/0.5 in deviations
    assert direction.weights["side"] / direction.weights["drive"] == pytest.approx(-2.0, rel=1e-3)


def test_the_best_experiment_is_better_than_others(cart_file: Path, packages: Path, tmp_path: Path) -> None:
    found = symdual.identify(cart_file, folder=packages, steps=40)
    assert found.kind == "best" and found.inputs.shape == (41, 2)
    assert np.abs(found.inputs[:, 0]).max() <= 2.0 and np.abs(found.inputs[:, 1]).max() <= 1.0
    for seed in range(3):
        table = ride(41, 30 + seed)
        plan = {"force": np.clip(table["force"], -2, 2), "wind": np.sign(table["wind"])}
        other = symdual.identify(cart_file, plan, folder=packages)
        assert found.gain > other.gain
    # written and read again it is the same experiment
    again = symdual.identify(cart_file, write_plan(found, tmp_path / "plan.csv"), folder=packages)
    assert again.kind == "plan" and again.gain == pytest.approx(found.gain, rel=1e-6)
    assert identification_figure(found, tmp_path / "figure.png").stat().st_size > 20_000
    assert found.to_json()["bits"] == pytest.approx(found.gain)


def test_experiments_that_cannot_be(cart_file: Path, packages: Path, toy_package: Any) -> None:
    where: dict[str, Any] = {"folder": packages}
    with pytest.raises(SymdualError, match='no input "forc"; did you mean "force"'):
        symdual.identify(cart_file, bounds={"forc": (0.0, 1.0)}, **where)
    with pytest.raises(SymdualError, match='bounds of "force" must be two finite numbers'):
        symdual.identify(cart_file, bounds={"force": (1.0, 0.0)}, **where)
    with pytest.raises(SymdualError, match="at least one step, not 0"):
        symdual.identify(cart_file, steps=0, **where)
    toy = Path(__file__).parents[2] / "symdual/paper/models/toy.py"
    with pytest.raises(SymdualError, match='the input "u" has no bounds'):
        symdual.identify(toy, folder=packages)


def test_what_is_not_shown_at_all_is_named_as_plainly_as_can_be() -> None:
    # b alone, and a against c: any mixture spans the same space
    plain = np.array([[0.0, np.sqrt(0.5)], [1.0, 0.0], [0.0, -np.sqrt(0.5)]])
    c, s = np.cos(0.7), np.sin(0.7)
    found = _plainest(plain @ np.array([[c, -s], [s, c]]))
    order = np.argsort(-np.abs(found[1]))
    np.testing.assert_allclose(np.abs(found[:, order]), np.abs(plain), atol=1e-12)
    assert found[0, order[1]] * found[2, order[1]] < 0
