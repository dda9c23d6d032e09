"""Outliers: gross errors, a sensor that jumps for good, one that freezes; the filter is never locked out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import sympy as sp

import symdual
from symdual.common.errors import ModelError
from symdual.runtime.controller import controller
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Problem, problem
from symdual.runtime.replay import Recording, Replay, replay

TEXT = """
import sympy as sp
from symdual import Model, Scenario, unknown

place, speed, force = sp.symbols("place speed force")
model = Model(
    [place, speed],
    [force],
    [place + 0.1 * speed, 0.95 * speed + 0.1 * unknown("strength", 1.0, 0.1) * force],
    process_noise=[1e-5, 1e-4],
    measurement_noise=[1e-2, 4e-2],
    {options}
    name="{name}",
)
scenario = Scenario(model, horizon=8, start_covariance=[0.1, 0.1], state_cost=1.0, input_cost=0.1)
"""
DEVIATIONS = np.array([0.1, 0.2])
ROWS = 300

Make = Callable[[str, str], LoadedPackage]


class Drawn(NamedTuple):
    """States of a run, and what would be measured without any fault."""

    states: np.ndarray
    recording: Recording

    def measured(self, measurements: np.ndarray) -> Recording:
        """The same run with other measurements."""
        return self.recording._replace(measurements=measurements)

    def error(self, found: Replay, rows: slice) -> float:
        """The root mean square error of the place."""
        return float(np.sqrt(np.mean((found.means[rows, 0] - self.states[rows, 0]) ** 2)))


def _draw(seed: int) -> Drawn:
    random = np.random.default_rng(seed)
    states, inputs = np.zeros((ROWS, 2)), 4.0 * np.sin(0.1 * np.arange(ROWS))[:, None]
    states[0] = np.sqrt(0.1) * random.normal(size=2)
    for k in range(ROWS - 1):
        x, v = states[k]
        noise = np.sqrt([1e-5, 1e-4]) * random.normal(size=2)
        states[k + 1] = np.array([x + 0.1 * v, 0.95 * v + 0.1 * 1.2 * inputs[k, 0]]) + noise
    seen = states + DEVIATIONS * random.normal(size=states.shape)
    rows = np.arange(ROWS)
    return Drawn(states, Recording(rows.astype(float), inputs, seen, rows, ()))


@pytest.fixture(scope="module")
def filters(make_quickly: Make) -> dict[str, LoadedPackage]:
    """The same model with and without a look at outliers."""
    options = {"doubting": "outliers=3,", "rooted_doubting": "outliers=3, square_root=True,", "trusting": ""}
    return {name: make_quickly(name, TEXT.format(options=options[name], name=name)) for name in options}


@pytest.fixture(scope="module")
def doubting(filters: dict[str, LoadedPackage]) -> Problem:
    return problem(filters["doubting"])


@pytest.fixture(scope="module")
def trusting(filters: dict[str, LoadedPackage]) -> Problem:
    return problem(filters["trusting"])


def test_gross_errors_do_little(filters: dict[str, LoadedPackage], doubting: Problem, trusting: Problem) -> None:
    """One number in twenty is wrong by up to 100 deviations; rows, numbers, and both forms of a covariance."""
    drawn, random = _draw(0), np.random.default_rng(1)
    gross = random.random((ROWS, 2)) < 0.05
    wrong = drawn.recording.measurements + gross * random.uniform(10, 100, (ROWS, 2)) * DEVIATIONS
    recording, late = drawn.measured(wrong), slice(20, None)
    found, plain = replay(doubting, recording), replay(trusting, recording)
    clean = drawn.error(replay(trusting, drawn.recording), late)
    assert drawn.error(found, late) < 1.3 * clean
    assert drawn.error(plain, late) > 5.0 * clean
    names = tuple(doubting.package.MEASUREMENTS)
    said = np.array([[name in row for name in names] for row in found.rejected])
    assert (said & gross).sum() == gross.sum()
    assert (said & ~gross).sum() <= 0.01 * (~gross).sum()
    assert found.outliers == {name: int(count) for name, count in zip(names, said.sum(0), strict=True)}
    rooted = replay(problem(filters["rooted_doubting"]), recording)
    np.testing.assert_allclose(rooted.means, found.means, rtol=1e-8, atol=1e-9)
    assert rooted.rejected == found.rejected
    assert plain.rejected == ((),) * ROWS
    assert plain.outliers == {}


def test_without_outliers_little_is_lost(doubting: Problem, trusting: Problem) -> None:
    drawn = _draw(2)
    found, plain = replay(doubting, drawn.recording), replay(trusting, drawn.recording)
    assert drawn.error(found, slice(20, None)) == pytest.approx(drawn.error(plain, slice(20, None)), rel=0.05)
    assert sum(found.outliers.values()) <= 0.01 * 2 * ROWS


def test_a_sensor_that_jumps_for_good_is_followed(doubting: Problem) -> None:
    """Five rows are doubted; with the sixth the place is where it is measured."""
    drawn = _draw(3)
    moved = drawn.recording.measurements.copy()
    moved[150:, 0] += 20.0
    found = replay(doubting, drawn.measured(moved))
    assert ["place" in row for row in found.rejected[148:156]] == [False] * 2 + [True] * 5 + [False]
    off = found.means[:, 0] - drawn.states[:, 0]
    assert np.abs(off[:155]).max() < 1.0
    assert np.abs(off[156:] - 20.0).max() < 1.0
    assert np.abs(found.means[156:, 1] - drawn.states[156:, 1]).max() < 1.0
    assert found.means[-1, 2] == pytest.approx(1.2, abs=4.0 * found.deviations[-1, 2])


def test_a_sensor_that_freezes_and_recovers(doubting: Problem) -> None:
    drawn = _draw(4)
    frozen = drawn.recording.measurements.copy()
    frozen[100:200, 0] = frozen[100, 0]
    found = replay(doubting, drawn.measured(frozen))
    assert sum("place" in row for row in found.rejected[100:200]) > 20
    assert np.isfinite(found.means).all()
    assert drawn.error(found, slice(215, None)) < 0.3


def test_when_all_measurements_are_rejected_nothing_is_lost(doubting: Problem) -> None:
    """Numbers of which each contradicts those before it, gaps, and numbers whose squares are infinite."""
    drawn = _draw(5)
    wild = drawn.recording.measurements.copy()
    wild[50:54] = np.array([1.0, -1.0, 1.0, -1.0])[:, None] * 1e6
    wild[54:60] = np.nan
    wild[60] = 1e200
    found = replay(doubting, drawn.measured(wild))
    names = tuple(doubting.package.MEASUREMENTS)
    assert found.rejected[50:54] == (names,) * 4
    assert found.rejected[54:61] == ((),) * 6 + (names,)
    assert drawn.error(found, slice(40, None)) < 0.3


def test_a_controller_says_which_and_goes_on_where_it_was(doubting: Problem, tmp_path: Path) -> None:
    drawn, one = _draw(6), controller(doubting, "ce")
    ys = drawn.recording.measurements[:4].copy()
    ys[1:, 0] = 30.0
    state, infos = one.init(), []
    for y in ys:
        state, _, info = one.step(state, y)
        infos.append(info)
    assert ["place" in info.rejected for info in infos] == [False, True, True, True]
    assert state.belief.rejected is not None
    assert state.belief.rejected[0] == 3.0
    acting: Any = controller(doubting, "ce")
    for y in ys:
        acting.act(y)
    acting.save(tmp_path / "kept")
    again = symdual.load_controller(tmp_path / "kept", doubting.package)
    for y in ([30.0, 0.0], [30.0, 0.0], [30.0, 0.0]):
        state, u, _ = one.step(state, y)
        assert again.act(y) == pytest.approx(u, rel=1e-9)
    assert state.belief.mean[0] == pytest.approx(30.0, abs=1.0)  # the sixth in a row


@pytest.mark.parametrize("given", [0, 1.0, -3, float("nan"), float("inf"), "3", True])
def test_what_is_no_number_of_deviations_is_refused(given: Any) -> None:
    x, u = sp.symbols("x u")
    with pytest.raises(ModelError, match="outliers must be a number of deviations above 1, such as 3, or None"):
        symdual.Model([x], [u], [x + u], outliers=given)
