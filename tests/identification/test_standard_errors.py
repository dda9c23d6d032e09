"""The covariance of coordinates and the verdicts on them, for curvatures whose inverse is known."""

from __future__ import annotations

import numpy as np
import pytest

from symdual.common.arrays import Array
from symdual.identification.standard_errors import NOTHING, WIDEST, certainty, curvature

NONE = np.full(3, np.inf)
PLAIN = np.zeros(3, bool)
M = np.array([[4.0, 1.0, 0.0], [1.0, 9.0, 2.0], [0.0, 2.0, 16.0]])


def test_the_covariance_is_the_inverse_of_the_curvature() -> None:
    found = certainty(M, [0, 0, 0], NONE, PLAIN)
    np.testing.assert_allclose(found.covariance, np.linalg.inv(M), rtol=1e-12)
    assert found.verdicts == ("determined",) * 3


def test_the_curvature_comes_from_gradients_whatever_the_scale() -> None:
    def gradient(psi: Array) -> Array:
        return -M @ psi - 0.1 * psi**3

    at = np.array([0.3, -0.2, 0.5])
    expected = M + np.diag(0.3 * at**2)
    for scale in (None, np.diag([1.0, 10.0, 0.1]), np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 2.0]])):
        np.testing.assert_allclose(curvature(gradient, at, 1e-4, scale), expected, rtol=1e-6, atol=1e-6)


def test_what_is_at_a_bound_is_known_to_the_others() -> None:
    found = certainty(M, [0, 1, -1], NONE, PLAIN)
    assert found.covariance[0, 0] == pytest.approx(1 / 4)
    assert np.isinf(np.diag(found.covariance)[1:]).all()
    assert found.verdicts == ("determined", "at its upper bound", "at its lower bound")


def test_a_direction_without_curvature_is_open() -> None:
    flat = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 4.0]])  # only the sum of two is told
    found = certainty(flat, [0, 0, 0], NONE, PLAIN)
    assert found.verdicts == ("open", "open", "determined")
    assert found.covariance[2, 2] == pytest.approx(1 / 4)


def test_a_logarithm_is_judged_by_the_factor_that_it_leaves_open() -> None:
    limit = (np.log(WIDEST) / 1.96) ** -2  # the curvature at which a factor of ten is just within 95 %
    steep, flat = np.diag([1.01 * limit, 1.0, 1.0]), np.diag([0.99 * limit, 1.0, 1.0])
    logarithm = np.array([True, False, False])
    assert certainty(steep, [0, 0, 0], NONE, logarithm).verdicts[0] == "determined"
    assert certainty(flat, [0, 0, 0], NONE, logarithm).verdicts[0] == "open"
    assert certainty(flat, [0, 0, 0], np.full(3, 10.0), logarithm).verdicts[0] == "determined"  # its prior was wider


def test_a_prior_that_hardly_shrinks_is_kept() -> None:
    before = np.array([1.0, 1.0, np.inf])
    shrunk = np.diag([(1 - 1.1 * NOTHING) ** -2, (1 - 0.9 * NOTHING) ** -2, 1.0])
    assert certainty(shrunk, [0, 0, 0], before, PLAIN).verdicts == ("determined", "prior", "determined")
