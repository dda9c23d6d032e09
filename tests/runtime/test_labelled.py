"""Results under the user's names."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import symdual
from symdual import SymdualError
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.simulation import Simulation


@pytest.fixture(scope="module")
def simulation(toy_package: LoadedPackage) -> Simulation:
    return symdual.simulate(toy_package, ["oracle", "ce", "dual"], runs=4, seed=2)


def test_steps_by_name(simulation: Simulation) -> None:
    pytest.importorskip("pandas")
    frame = simulation.to_pandas()
    assert frame.index.names == ["controller", "run", "time"]
    own = frame.loc["dual", 3]
    np.testing.assert_array_equal(own["state", "x"], simulation["dual"].states[3, :, 0])
    np.testing.assert_array_equal(own["input", "u"][:-1], simulation["dual"].inputs[3, :, 0])
    assert np.isnan(own["input", "u"].iloc[-1])
    np.testing.assert_array_equal(own["mean", "b"], simulation["dual"].means[3, :, 1])
    np.testing.assert_allclose(own["deviation", "b"] ** 2, simulation["dual"].variances[3, :, 1])
    assert own["step", "cost"].sum() == pytest.approx(simulation["dual"].costs[3])


def test_runs_by_name(simulation: Simulation) -> None:
    pytest.importorskip("pandas")
    frame = simulation.to_pandas("runs")
    np.testing.assert_array_equal(frame.loc["ce"]["cost"], simulation["ce"].costs)
    np.testing.assert_array_equal(frame.loc["oracle"]["true b"], [2.0] * 4)
    assert set(frame["outcome"]) == {"finished"}
    with pytest.raises(SymdualError, match='there is no table "rans"; did you mean "runs"'):
        simulation.to_pandas("rans")


def test_episodes_show_what_their_axes_are(simulation: Simulation) -> None:
    assert repr(simulation["dual"]) == "<Episodes: 4 runs of 2 steps; belief on x, b; truths of b>"
    assert simulation["dual"].last_belief(1).names == ("x", "b")


def test_names_along_axes(simulation: Simulation) -> None:
    assert simulation.names("oracle", "belief") == ["x", "b"]
    assert simulation.names("dual", "input") == ["u"]


def test_without_pandas(simulation: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SymdualError, match=r"pip install 'symdual\[pandas\]'"):
        simulation.to_pandas()


def test_a_simulation_is_a_mapping(simulation: Simulation) -> None:
    assert dict(simulation).keys() == {"oracle", "ce", "dual"}
    assert repr(simulation) == "<Simulation toy: 4 runs of oracle, ce, dual, seed 2>"
    with pytest.raises(SymdualError, match='no controller "duel" here; did you mean "dual"'):
        simulation.array("duel", "costs")


def test_the_summary_shows_itself(simulation: Simulation) -> None:
    summary = simulation.summary()
    for text in (str(summary), summary._repr_html_(), simulation._repr_html_()):
        assert all(name in text for name in ("oracle", "ce", "dual", "L / T"))
