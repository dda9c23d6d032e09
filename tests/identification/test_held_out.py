"""Bands as wide as held-out parts of the fitted recordings ask for."""

from __future__ import annotations

import numpy as np
import pytest

from symdual.common.arrays import Array
from symdual.identification.held_out import PARTS, Refit, factor, factors, judged
from symdual.identification.parameters.prior_model import PriorModel
from symdual.identification.result import Fit
from symdual.identification.surroundings import read_recordings
from symdual.identification.validate import validated

from .conftest import fit_parameters, ride


def swaying(rows: int, seed: int) -> dict[str, Array]:
    """A ride on ground that sways, now more and now less, about which the model knows nothing."""
    table, k = ride(rows, seed), np.arange(rows)
    return table | {"position": table["position"] + 0.8 * np.sin(k / 23 + seed) * np.sin(k / 57 + 2 * seed)}


def known(parts: list[Array]) -> tuple[float, float]:
    found = factor(parts)
    assert found is not None
    return found


def without_a_part(result: Fit) -> Refit:
    """Fits the same quantities again."""
    return result.likelihood.predictor(result, [], None).refit


@pytest.fixture(scope="module")
def fitted(cart: PriorModel) -> Fit:
    return fit_parameters(cart, read_recordings(ride(300, 11), cart.package), starts=1)


def test_a_good_model_keeps_its_bands(cart: PriorModel, fitted: Fit) -> None:
    found = factors(fitted.recordings, without_a_part(fitted), 5)
    assert len(found.ahead) == 5 and all(1.0 <= wider.factor[0] < 1.25 for wider in found.ahead)
    assert 1.0 <= found.simulation.factor[0] < 2.0  # four parts of an integrator are few independent errors


def test_a_part_that_is_held_out_is_not_seen(cart: PriorModel, fitted: Fit) -> None:
    (one,) = fitted.recordings
    rows = slice(len(one.times) * 2 // (PARTS + 1), len(one.times) * 3 // (PARTS + 1))

    def alone(shift: float) -> Array:
        moved = one.measurements.copy()
        moved[rows] += shift
        (part,) = judged([one._replace(measurements=moved)], without_a_part(fitted), 2, 1)
        return part.simulation

    here, there, beyond = alone(0.0), alone(1.0), alone(3.0)
    assert np.nanmin(np.abs(there - here)) > 0.01
    np.testing.assert_allclose(beyond - here, 3.0 * (there - here), rtol=1e-6)


def test_what_a_model_leaves_out_widens_its_bands(cart: PriorModel) -> None:
    wrong = fit_parameters(cart, read_recordings(swaying(500, 3), cart.package), starts=1)
    (seen,) = validated(wrong, read_recordings(swaying(400, 4), cart.package), length=12)
    near, far = seen.ahead[0], seen.ahead[-1]
    assert near.factor[0] < 1.15 and far.factor[0] > 1.3
    assert far._replace(factor=np.ones(1)).inside[0] < 0.92 < far.inside[0]
    np.testing.assert_array_equal(far.band, 1.96 * far.factor * far.deviations)
    assert any("times as wide as the model says" in sentence for sentence in seen.sentences())
    assert seen.to_json()["ahead"]["factor"][-1]["position"] == far.factor[0]


@pytest.mark.parametrize(("apart", "own"), [(0.0, 0.95), (0.3, 0.93)])
def test_another_part_lies_in_the_band(apart: float, own: float) -> None:
    # the logarithm of the deviation of each part differs by `apart`; the fifth is the one to come
    random, narrow, wide = np.random.default_rng(6), [], []
    for _ in range(150):
        parts = np.exp(apart * random.standard_normal((5, 1))) * random.standard_normal((5, 120))
        wider, _ = known(list(parts[:4]))
        narrow.append(np.mean(np.abs(parts[4]) < 1.96))
        wide.append(np.mean(np.abs(parts[4]) < 1.96 * wider))
    assert np.mean(narrow) == pytest.approx(own, abs=0.015)
    assert 0.945 < np.mean(wide) < 0.98


def test_errors_twice_as_large_make_bands_twice_as_wide() -> None:
    random = np.random.default_rng(7)
    assert known(list(2.0 * random.standard_normal((4, 3000))))[0] == pytest.approx(2.0, rel=0.05)
    assert known(list(0.5 * random.standard_normal((4, 3000))))[0] == 1.0
    # a level that each part knows well, but every part another, is not known for the next one
    wider, unsure = known([s * random.standard_normal(3000) for s in (0.5, 1.0, 1.0, 2.0)])
    assert wider > 1.5 and unsure == pytest.approx(np.sqrt(1.25) * np.std(np.log([0.25, 1, 1, 4]), ddof=1), rel=0.1)


def test_short_recordings_say_nothing(cart: PriorModel, fitted: Fit) -> None:
    found = factors(read_recordings(ride(30, 5), cart.package), without_a_part(fitted), 3)
    assert [wider.factor[0] for wider in (*found.ahead, found.simulation)] == [1.0] * 4


def test_farther_than_half_a_part_the_factor_stays(cart: PriorModel) -> None:
    wrong = fit_parameters(
        cart, read_recordings(swaying(100, 3), cart.package), starts=1, only=["drive", "friction", "start"]
    )
    found = factors(wrong.recordings, without_a_part(wrong), 13)  # parts of 20 rows: 10 steps ahead at most
    assert factor([np.full(12, np.nan)] * PARTS) is None
    assert found.ahead[9].factor[0] > 1.05
    assert found.ahead[9] == found.ahead[10] == found.ahead[12] != found.ahead[8]
