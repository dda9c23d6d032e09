"""Quantities with bounds: their moments against many digits, and beliefs to and fro."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from symdual.common.errors import ModelError
from symdual.common.transforms import (
    IDENTITY,
    Transform,
    band_of,
    belief_of,
    matched_belief,
    moments_of,
    numbers_of,
    quantiles_of,
    values_of,
)

ARRHENIUS, FRICTION, MASS = Transform(lower=0.0), Transform(0.0, 1.0), Transform(upper=0.0)
EXAMPLES = [
    (ARRHENIUS, 7e10, 1.4e10**2),
    (Transform(lower=273.15), 400.0, 20.0**2),
    (Transform(upper=-2.0), -5.0, 9.0),
    (FRICTION, 0.3, 0.01),
    (FRICTION, 0.5, 1 / 12),
    (FRICTION, 0.001, 1e-6),
    (FRICTION, 0.3, 0.2),
    (FRICTION, 0.3, 1e-20),
    (Transform(273.0, 600.0), 400.0, 400.0),
    (Transform(0.0, 1e6), 1.0, 0.25),
    (Transform(-1.0, 1.0), 0.0, 0.9),
]


def exact_moments(one: Transform, mean: float, variance: float) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Mean and variance of k by adaptive integration with 20 digits."""
    with mpmath.workdps(20):
        s, lower, upper = mpmath.sqrt(variance), mpmath.mpf(one.lower), mpmath.mpf(one.upper)

        def k(n: mpmath.mpf) -> mpmath.mpf:
            kappa = mean + s * n
            if one.two_sided:
                return lower + (upper - lower) / (1 + mpmath.exp(-kappa))
            return lower + mpmath.exp(kappa) if mpmath.isfinite(lower) else upper - mpmath.exp(kappa)

        edges = list(range(-12, 13))
        first = mpmath.quad(lambda n: mpmath.npdf(n) * k(n), edges)
        return first, mpmath.quad(lambda n: mpmath.npdf(n) * (k(n) - first) ** 2, edges)


@pytest.mark.parametrize(("one", "mean", "variance"), EXAMPLES)
def test_the_quantity_has_the_given_moments(one: Transform, mean: float, variance: float) -> None:
    kappa = one.matched(mean, variance)
    first, second = exact_moments(one, kappa.mean, kappa.variance)
    assert abs(first - mean) <= 1e-12 * min(abs(mean - one.lower), abs(one.upper - mean))
    assert abs(second / mpmath.mpf(variance) - 1) < 1e-12
    shown = one.moments(kappa.mean, kappa.variance)
    assert float(shown.mean) == pytest.approx(mean, rel=1e-12, abs=1e-12)
    assert float(shown.variance) == pytest.approx(variance, rel=1e-12)


@pytest.mark.parametrize("one", [ARRHENIUS, FRICTION, MASS, Transform(-3.0, 8.0), IDENTITY])
def test_there_and_back(one: Transform) -> None:
    kappa = np.array([[-30.0, -1.0, 0.0], [1e-9, 2.0, 30.0]])
    k = one.to_user(kappa)
    np.testing.assert_allclose(one.from_user(k), kappa, rtol=1e-2 if one.two_sided else 1e-12, atol=1e-12)
    np.testing.assert_allclose(one.from_user(one.to_user(kappa / 10)), kappa / 10, rtol=1e-13, atol=1e-13)
    assert one.contains(k)


def test_far_out_a_quantity_stays_within_its_bounds() -> None:
    """On a bound at most: a double knows no number between."""
    k = Transform(2.0, 3.0).to_user([-1e4, 1e4])
    assert k.tolist() == [2.0, 3.0]
    assert ARRHENIUS.to_user([-1e4, 1e4]).tolist() == [0.0, np.inf]


@pytest.mark.parametrize("one", [ARRHENIUS, FRICTION, MASS])
def test_quantiles_are_those_of_samples(one: Transform) -> None:
    kappa = 0.4 + 0.8 * np.random.default_rng(0).standard_normal(400_000)
    probabilities = [0.025, 0.3, 0.5, 0.9]
    own = one.quantile(probabilities, 0.4, 0.64)
    np.testing.assert_allclose(own, np.quantile(one.to_user(kappa), probabilities), rtol=0.01)


def test_beliefs_go_to_and_fro_with_their_correlations() -> None:
    transforms = [IDENTITY, ARRHENIUS, FRICTION, MASS]
    mean = np.array([3.0, 7e10, 0.3, -2.0])
    deviations = np.array([1.0, 1.4e10, 0.1, 0.5])
    random = np.random.default_rng(1).standard_normal((4, 9))
    correlations = np.corrcoef(random)
    covariance = correlations * np.outer(deviations, deviations)
    kappa_mean, kappa_covariance = matched_belief(transforms, mean, covariance, list("abcd"), "prior")
    spread = np.sqrt(np.diag(kappa_covariance))
    np.testing.assert_allclose(kappa_covariance / np.outer(spread, spread), correlations, atol=1e-14)
    assert kappa_covariance[0, 0] == covariance[0, 0]
    back = belief_of(transforms, kappa_mean, kappa_covariance)
    np.testing.assert_allclose(back[0], mean, rtol=1e-12)
    np.testing.assert_allclose(back[1], covariance, rtol=1e-11)


def test_arrays_are_mapped_along_their_last_axis() -> None:
    transforms = [IDENTITY, ARRHENIUS]
    kappa = np.array([[[1.0, 0.0], [2.0, 1.0]]])
    np.testing.assert_allclose(values_of(transforms, kappa), [[[1.0, 1.0], [2.0, np.e]]])
    np.testing.assert_allclose(numbers_of(transforms, values_of(transforms, kappa), ["a", "b"], "truth"), kappa)
    found = moments_of(transforms, kappa, np.full((1, 2, 2), 0.5))
    np.testing.assert_allclose(found.mean[0, :, 1], np.exp([0.25, 1.25]))
    np.testing.assert_allclose(found.variance[0, :, 0], 0.5)
    upper = quantiles_of(transforms[:1], 0.975, kappa, np.full((1, 2, 2), 0.25))
    np.testing.assert_allclose(upper, kappa + 0.5 * 1.959963984540054)
    upper = quantiles_of(transforms, 0.975, kappa, np.full((1, 2, 2), 0.25))
    np.testing.assert_allclose(upper[..., 1], np.exp(kappa[..., 1] + 0.5 * 1.959963984540054))


@pytest.mark.parametrize(
    ("one", "mean", "variance", "said"),
    [
        (ARRHENIUS, -1.0, 1.0, 'the mean -1 of "k" does not lie between its bounds, above 0'),
        (FRICTION, 1.0, 0.1, 'the mean 1 of "k" does not lie between its bounds, 0 to 1'),
        (FRICTION, 0.5, 0.25, 'the variance 0.25 of "k" is impossible: .* it is below 0.25'),
        (FRICTION, 1e-5, 9.99e-6, "so near to 9.9999e-06"),
    ],
)
def test_what_cannot_be_is_said(one: Transform, mean: float, variance: float, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        one.matched(mean, variance, '"k"')


def test_a_value_outside_is_named() -> None:
    with pytest.raises(ModelError, match='truth has -2 for "k", which has the bounds above 0'):
        numbers_of([ARRHENIUS], np.array([-2.0]), ["k"], "truth")


def test_bands_of_what_rounding_has_put_on_a_bound() -> None:
    mean, variance = np.array([[1.0, 2.0], [0.5, 0.0], [0.4, 2.0]]), np.array([[1e-40, 0.0], [0.25, 1.0], [0.01, 0.25]])
    lower, upper = band_of([FRICTION, ARRHENIUS], mean, variance, 2.0)
    assert (lower[0, 0], upper[0, 0]) == (1.0, 1.0), "all of it lies there"
    assert (lower[1, 0], upper[1, 0]) == (0.0, 1.0), "half of it on either bound"
    assert (lower[1, 1], upper[1, 1]) == (0.0, 0.0)
    assert 0.0 < lower[2, 0] < 0.4 < upper[2, 0] < 1.0 and 0.0 < lower[2, 1] < 2.0 < upper[2, 1]
