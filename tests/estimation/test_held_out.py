"""Bands as wide as held-out parts of the fitted recordings ask for."""

from __future__ import annotations

import numpy as np
import pytest

from symdual.estimation.fit import Subject, fit_series
from symdual.estimation.held_out import PARTS, factors, judged, refit
from symdual.estimation.result import Fit
from symdual.estimation.series import read_all
from symdual.estimation.validation import validate_series
from symdual.numbers import Array

from .conftest import ride


def swaying(rows: int, seed: int) -> dict[str, Array]:
    """A ride in a wind that comes and goes slowly, about which the model knows nothing."""
    table = ride(rows, seed)
    sway = 0.4 * np.sin(np.arange(rows) / 23 + seed) + 0.2 * np.sin(np.arange(rows) / 61 + 2 * seed)
    return table | {"position": table["position"] + sway}


@pytest.fixture(scope="module")
def fitted(cart: Subject) -> Fit:
    return fit_series(cart, read_all(ride(300, 11), cart.package), starts=1)


def test_a_good_model_keeps_its_bands(cart: Subject, fitted: Fit) -> None:
    found = factors(fitted.recordings, refit(cart, fitted), 5)
    assert found.ahead.shape == (5, 1) and found.simulation.shape == (1,)
    assert np.all(found.ahead >= 1.0) and np.all(found.ahead < 1.25)
    assert 1.0 <= found.simulation[0] < 2.0  # four parts of an integrator are few independent errors


def test_a_part_that_is_held_out_is_not_seen(cart: Subject, fitted: Fit) -> None:
    (one,) = fitted.recordings
    rows = slice(len(one.times) * 2 // (PARTS + 1), len(one.times) * 3 // (PARTS + 1))

    def alone(shift: float) -> Array:
        moved = one.measurements.copy()
        moved[rows] += shift
        (part,) = judged([one._replace(measurements=moved)], refit(cart, fitted), 2, 1)
        return part.simulation

    here, there, beyond = alone(0.0), alone(1.0), alone(3.0)
    assert np.nanmin(np.abs(there - here)) > 0.01
    np.testing.assert_allclose(beyond - here, 3.0 * (there - here), rtol=1e-6)


def test_what_a_model_leaves_out_widens_its_bands(cart: Subject) -> None:
    wrong = fit_series(cart, read_all(swaying(500, 3), cart.package), starts=1)
    (seen,) = validate_series(cart, wrong, read_all(swaying(400, 4), cart.package), length=12)
    later = seen.ahead[-1]
    assert later.factor[0] > 1.2
    narrow = later._replace(factor=np.ones(1))
    assert narrow.inside[0] < 0.9 < later.inside[0]
    assert any("times as wide as the model says" in sentence for sentence in seen.sentences())
    assert seen.to_json()["ahead"]["factor"][-1]["position"] == later.factor[0]


def test_short_recordings_say_nothing(cart: Subject, fitted: Fit) -> None:
    found = factors(read_all(ride(30, 5), cart.package), refit(cart, fitted), 3)
    np.testing.assert_array_equal(found.ahead, 1.0)
    np.testing.assert_array_equal(found.simulation, 1.0)
