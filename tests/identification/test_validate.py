"""How well a fitted cart predicts rides that it has not seen, and how whiteness is judged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from symdual.identification.parameters.prior_model import PriorModel
from symdual.identification.result import Fit
from symdual.identification.surroundings import read_recordings
from symdual.identification.validate import Prediction, validated, whiteness
from symdual.report.validations import validation_figures

from .conftest import fit_parameters, ride


@pytest.fixture(scope="module")
def fitted(cart: PriorModel) -> Fit:
    return fit_parameters(cart, read_recordings(ride(250, 11), cart.package), starts=1)


def test_a_good_model_predicts_as_well_as_it_says(cart: PriorModel, fitted: Fit) -> None:
    (seen,) = validated(fitted, read_recordings(ride(400, 12, start=(-1.0, 0.4)), cart.package), length=15)
    assert len(seen.ahead) == 15
    for made in (seen.ahead[0], seen.ahead[4], seen.ahead[14]):
        assert made.rms[0] == pytest.approx(made.expected[0], rel=0.25)
        assert 0.85 <= made.inside[0] <= 1.0
    assert seen.ahead[14].expected[0] > seen.ahead[0].expected[0]
    assert seen.consistency.ratio == pytest.approx(1.0, abs=0.2) and seen.whiteness.probability[0] > 0.001
    assert seen.start is not None
    np.testing.assert_allclose(seen.start.mean, [-1.0, 0.4], atol=4 * np.sqrt(np.diag(seen.start.covariance)).max())
    assert not any("not white" in sentence for sentence in seen.sentences())
    assert seen.to_json()["simulation"]["rms"]["position"] == pytest.approx(seen.simulation.rms[0])


def test_a_wrong_model_is_found_out(cart: PriorModel, fitted: Fit) -> None:
    table = ride(400, 13)
    table["position"] = table["position"] + 0.3 * np.sin(np.arange(400) / 9)  # nothing in the model does this
    (seen,) = validated(fitted, read_recordings(table, cart.package))
    assert seen.whiteness.probability[0] < 1e-6
    assert any("the innovations are not white" in sentence for sentence in seen.sentences())


def test_predictions_are_compared_with_the_row_that_they_are_for(cart: PriorModel, fitted: Fit) -> None:
    (series,) = read_recordings(ride(60, 14), cart.package)
    (seen,) = validated(fitted, [series], length=3)
    np.testing.assert_array_equal(seen.ahead[2].measured[:-3], series.measurements[3:])
    assert np.isnan(seen.ahead[2].measured[-3:]).all()
    # the simulation begins with the estimated start and never looks at a measurement
    assert seen.start is not None
    assert seen.simulation.outputs[0, 0] == pytest.approx(seen.start.mean[0])
    blind = series._replace(measurements=series.measurements + 0.0)
    blind.measurements[30:] += 5.0
    (other,) = validated(fitted._replace(open_states=()), [blind], length=3)
    (same,) = validated(fitted._replace(open_states=()), [series], length=3)
    np.testing.assert_allclose(other.simulation.outputs, same.simulation.outputs)


def test_errors_bands_and_shares() -> None:
    made = Prediction(
        np.zeros((4, 1)), np.ones((4, 1)), np.array([[1.0], [-3.0], [np.nan], [0.0]]), np.ones(1), np.zeros(1)
    )
    assert made.rms[0] == pytest.approx(np.sqrt(10 / 3))
    assert made.expected[0] == 1.0 and made.inside[0] == pytest.approx(2 / 3)
    assert made._replace(factor=np.full(1, 2.0)).inside[0] == 1.0


def test_a_share_is_said_with_what_is_expected_of_it(cart: PriorModel, fitted: Fit) -> None:
    (seen,) = validated(fitted, read_recordings(ride(300, 16), cart.package), length=3)
    said = 100 * 1.96 * seen.ahead[0].inside_deviation[0]
    assert 1.96 * np.sqrt(0.95 * 0.05 / 270) * 90 < said < 8  # 270 measurements: no fewer if they are independent
    share = f"{100 * seen.ahead[0].inside[0]:.0f} % ({95 - said:.0f} to {min(95 + said, 100):.0f} expected)"
    assert share in next(seen.sentences())
    assert share in repr(seen)


def test_whiteness_of_noise_and_of_a_walk() -> None:
    random = np.random.default_rng(0)
    values = random.standard_normal((3000, 1))
    values[::7] = np.nan
    white = whiteness(values)
    assert white.probability[0] > 0.01
    assert np.mean(np.abs(white.correlations[:, 0]) < white.band[0]) > 0.8
    # y_t = 0.5 y_{t-1} + e: autocorrelations 0.5^lag, whatever is missing
    y = np.zeros(20000)
    for t in range(1, len(y)):
        y[t] = 0.5 * y[t - 1] + random.standard_normal()
    y[random.uniform(size=len(y)) < 0.2] = np.nan
    found = whiteness(y[:, None])
    np.testing.assert_allclose(found.correlations[:3, 0], [0.5, 0.25, 0.125], atol=0.03)
    assert found.probability[0] < 1e-9
    assert np.isnan(whiteness(np.full((50, 1), np.nan)).probability[0])


def test_the_statistic_is_that_of_ljung_and_box() -> None:
    # over many draws of noise the probability is uniform
    random = np.random.default_rng(1)
    found = np.array([whiteness(random.standard_normal((200, 1))).probability[0] for _ in range(400)])
    for level in (0.1, 0.5, 0.9):
        assert np.mean(found < level) == pytest.approx(level, abs=0.075)


def test_one_figure_for_each_question(cart: PriorModel, fitted: Fit, tmp_path: Path) -> None:
    judged = validated(fitted, read_recordings(ride(50, 15), cart.package), length=4)
    drawn = validation_figures(judged, tmp_path / "figures")
    questions = ["prediction", "horizon", "whiteness", "consistency", "simulation", "left_alone"]
    assert [path.name for path in drawn] == [f"recording0_{name}.png" for name in questions]
    assert all(path.stat().st_size > 8000 for path in drawn)
