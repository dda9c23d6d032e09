"""What a series of errors is worth: against normal probabilities, known autocorrelations and many draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import multivariate_normal, norm

from symdual.common.arrays import Array
from symdual.identification.autocorrelation import (
    LIMIT,
    _together,
    autocorrelations,
    effective_squares,
    share_deviation,
)


def lasting(random: np.random.Generator, rho: float, rows: int, series: int) -> Array:
    """Errors of unit variance, each rho times the one before plus noise, (series, rows)."""
    noise = np.sqrt(1 - rho**2) * random.standard_normal((series, rows + 400))
    return np.asarray(lfilter([1.0], [1.0, -rho], noise, axis=1))[:, 400:]


@pytest.mark.parametrize("rho", [-0.7, 0.2, 0.9])
def test_two_errors_in_the_band_together(rho: float) -> None:
    both = multivariate_normal(cov=[[1.0, rho], [rho, 1.0]]).cdf([LIMIT] * 2, lower_limit=[-LIMIT] * 2)
    inside = norm.cdf(LIMIT) - norm.cdf(-LIMIT)
    assert _together(np.array([rho]))[0] == pytest.approx(both - inside**2, abs=1e-7)
    assert _together(np.array([1.0]))[0] == pytest.approx(inside * (1 - inside), rel=1e-3)


def test_correlations_of_parts_with_gaps() -> None:
    parts = list(lasting(np.random.default_rng(0), 0.8, 5000, 4))
    parts[1][::3] = np.nan
    np.testing.assert_allclose(autocorrelations(parts)[:4], 0.8 ** np.arange(4), atol=0.03)
    # sums of products, without a transform
    small = [np.array([1.0, np.nan, 2.0, -1.0]), np.array([0.5, 3.0])]
    square = (1 + 4 + 1 + 0.25 + 9) / 5
    np.testing.assert_allclose(autocorrelations(small), [1.0, (-2 + 1.5) / 2 / square, 2 / square, -1 / square])


def test_how_many_squares_count() -> None:
    random = np.random.default_rng(1)
    assert effective_squares(list(lasting(random, 0.0, 4000, 2))) == pytest.approx(8000, rel=0.05)
    # 1 + 2 sum rho^2l = (1 + rho^2) / (1 - rho^2)
    expected = 40000 * (1 - 0.81) / (1 + 0.81)
    assert effective_squares(list(lasting(random, 0.9, 10000, 4))) == pytest.approx(expected, rel=0.15)
    # an error that never changes is a single one in each part
    assert effective_squares([np.ones(200), -np.ones(200)]) == pytest.approx(2.0, rel=0.02)


@pytest.mark.parametrize("rho", [0.0, 0.95])
def test_the_share_in_a_band_varies_as_said(rho: float) -> None:
    drawn = lasting(np.random.default_rng(2), rho, 600, 3000)
    seen = np.mean(np.abs(drawn) <= LIMIT, axis=1).std()
    said = np.sqrt(np.mean([share_deviation(errors) ** 2 for errors in drawn[:60]]))
    assert said == pytest.approx(seen, rel=0.15)


def test_nothing_measured() -> None:
    assert np.isnan(share_deviation(np.full(20, np.nan)))
