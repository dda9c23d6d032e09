"""Fits of unknowns with bounds: told in the user's units, and read again as the same prior."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import symdual
from symdual import Model, Scenario, unknown
from symdual.common.transforms import moments_of

x, u = sp.symbols("x u")


def leaking(**more: object) -> Model:
    """A tank that leaks, with a pump of unknown strength: k within (0, 1), b above 0."""
    k = unknown("k", 0.5, 0.04, lower=0.0, upper=1.0)
    b = unknown("b", 2.0, 1.0, positive=True)
    dynamics = [(1 - k) * x + b * u]
    return Model([x], [u], dynamics, process_noise=1e-4, measurement_noise=1e-2, name="leaking", **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def recording() -> dict[str, list[float]]:
    """60 rows with k = 0.2, b = 3."""
    random = np.random.default_rng(5)
    level, levels, pumped = 1.0, [], random.uniform(-1.0, 1.0, 60)
    for applied in pumped:
        levels.append(level + 0.1 * random.standard_normal())
        level = 0.8 * level + 3.0 * applied + 0.01 * random.standard_normal()
    return {"time": list(range(60)), "u": pumped.tolist(), "x": levels}


def test_a_fit_is_told_in_the_users_units_and_read_again(
    recording: dict[str, list[float]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    scenario = Scenario(leaking(), 5, start=1.0, start_covariance=0.01)
    fit = symdual.fit(scenario, recording, only=["k", "b"])
    assert fit["k"].value == pytest.approx(0.2, abs=4 * fit["k"].deviation)
    assert fit["b"].value == pytest.approx(3.0, abs=4 * fit["b"].deviation)
    assert 0.0 < fit["k"].deviation < 0.03 and 0.0 < fit["b"].deviation < 0.1
    assert (fit["k"].first, fit["b"].before) == pytest.approx((0.5, 1.0), rel=1e-12)
    transforms = leaking().transforms
    own = moments_of(transforms, fit.psi[:2], np.diag(fit.psi_covariance)[:2])
    np.testing.assert_allclose(fit.mean, own.mean, rtol=1e-12)
    content = json.loads(json.dumps(fit.to_json()))
    again = leaking(fitted=content)
    covariance = again.prior_covariance if again.prior_covariance.ndim == 2 else np.diag(again.prior_covariance)
    np.testing.assert_allclose(again.prior_mean, fit.psi[:2], rtol=1e-8)
    np.testing.assert_allclose(covariance, fit.psi_covariance[:2, :2], rtol=1e-5)


def test_an_identification_tells_deviations_in_the_users_units(
    recording: dict[str, list[float]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = symdual.identify(Scenario(leaking(), 5, start=1.0, start_covariance=0.01), recording)
    np.testing.assert_allclose(found.before, [0.2, 1.0], rtol=1e-10)
    assert found.unknowns == ("k", "b") and np.all(found.after < [0.05, 0.2]) and found.history.shape[1] == 2
    model = leaking()
    left = np.diag(np.linalg.inv(np.eye(2) + found.information)) * model.prior_covariance  # of logit and logarithm
    np.testing.assert_allclose(found.after**2, moments_of(model.transforms, model.prior_mean, left).variance, rtol=1e-9)
