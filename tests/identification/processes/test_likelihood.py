"""Fits as a whole: known hyperparameters are found again, what the data do not tell is named, and so is what is odd."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import sympy as sp

from symdual import Model, covariances, features, unknown
from symdual.common.arrays import Array
from symdual.identification.fitted import fitted
from symdual.identification.noise import REACH
from symdual.identification.processes.likelihood import ProcessLikelihood
from symdual.identification.processes.points import known_points
from symdual.identification.processes.search import FLAT, maximise
from symdual.identification.processes.setup import ProcessSetup
from symdual.identification.result import Estimate, Fit

position, velocity, force = sp.symbols("position velocity force")
a, b, u, v = sp.symbols("a b u v")
Setups = Callable[..., ProcessSetup]


def fit(setup: ProcessSetup) -> Fit:
    """Noise stays as it is."""
    return fitted(ProcessLikelihood(setup))


def hyperparameters(result: Fit) -> list[Estimate]:
    return [e for e in result.estimates if e.kind == "hyperparameter"]


def cart(lengthscale: float = 1.0, amplitude: float = 1.0, noise: float = 1e-3) -> Model:
    slope = features.gaussian_process("g", position, lengthscale=lengthscale, amplitude=amplitude)
    dynamics = [position + 0.4 * velocity, velocity + slope + force]
    return Model([position, velocity], [force], dynamics, process_noise=noise, measurement_noise=noise)


def driven(
    seed: int, rows: int, lengthscale: float = 2.0, amplitude: float = 0.5, noise: float = 1e-3
) -> tuple[Array, Array]:
    """Inputs and measurements of a cart on a rail that is drawn from a process with these hyperparameters."""
    random = np.random.default_rng(seed)
    grid = np.linspace(-25, 25, 400)
    gram = amplitude**2 * np.exp(-((grid[:, None] - grid) ** 2) / (2 * lengthscale**2))
    values, vectors = np.linalg.eigh(gram)
    rail = vectors @ (np.sqrt(np.maximum(values, 0.0)) * random.standard_normal(400))
    x, inputs, measurements = np.zeros(2), [], []
    for k in range(rows):
        measurements.append(x + np.sqrt(noise) * random.standard_normal(2))
        inputs.append(-0.5 * (x[0] - 6 * np.sin(k / 9)) - 0.9 * x[1] + 0.3 * random.standard_normal())
        x = np.array([x[0] + 0.4 * x[1], x[1] + np.interp(x[0], grid, rail) + inputs[-1]])
        x += np.sqrt(noise) * random.standard_normal(2)
    return np.array(inputs)[:, None], np.array(measurements)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_known_hyperparameters_are_found_within_the_stated_uncertainty(seed: int, recorded: Setups) -> None:
    result = fit(recorded(cart(), *driven(seed, 80)))
    assert result.converged
    assert result.log_likelihood > result.start_log_likelihood + 5
    assert result.warnings == ()
    for found, true in zip(hyperparameters(result), [0.5, 2.0], strict=True):
        assert found.verdict == "determined"
        assert found.deviation is not None and found.factor is not None
        assert found.deviation < 0.5 * found.value
        assert abs(np.log(found.value / true)) < 2.6 * np.log(found.factor)


def test_gaps_and_hidden_states_are_fitted_too(recorded: Setups) -> None:
    """Only the position is measured, every fifth time not even that; the friction is unknown as well."""
    friction = unknown("friction", 0.0, 0.01)
    slope = features.gaussian_process("g", position)
    model = Model(
        [position, velocity],
        [force],
        [position + 0.4 * velocity, velocity + slope + force - friction * velocity],
        observation=[position],
        process_noise=1e-4,
        measurement_noise=1e-4,
    )
    inputs, measurements = driven(4, 120, noise=1e-4)
    measurements[4::5] = np.nan
    result = fit(recorded(model, inputs, measurements[:, :1]))
    assert result.converged
    assert result.measured == 96
    for found, true in zip(hyperparameters(result), [0.5, 2.0], strict=True):
        assert abs(np.log(found.value / true)) < 2.6 * np.log(found.factor) < 1.5


def test_the_end_is_a_maximum_whatever_the_start(recorded: Setups) -> None:
    data = driven(5, 50)
    near, far = (maximise(recorded(cart(*start), *data)) for start in ((2.0, 0.5), (0.2, 3.0)))
    assert near.converged
    assert far.converged
    np.testing.assert_allclose(near.psi, far.psi, atol=1e-3)
    assert np.max(np.abs(near.value.gradient)) < FLAT
    assert np.all(np.linalg.eigvalsh(near.curvature) > 0)


def test_the_curvature_is_that_of_the_likelihood(recorded: Setups) -> None:
    likelihood = ProcessLikelihood(recorded(cart(), *driven(5, 30)))
    optimum = likelihood.maximise(5)
    step = 1e-3 * np.eye(2)

    def second(one: Array, other: Array) -> float:
        signs = [(s, t) for s in (1, -1) for t in (1, -1)]
        values = [s * t * optimum.evidence.at(optimum.psi + s * one + t * other).log_likelihood for s, t in signs]
        return -sum(values) / 4e-6

    expected = np.array([[second(one, other) for other in step] for one in step])
    np.testing.assert_allclose(optimum.curvature, expected, rtol=1e-3, atol=1e-3)
    deviations = likelihood.certainty(optimum).deviations
    np.testing.assert_allclose(np.square(deviations), np.diag(np.linalg.inv(expected)), rtol=1e-2)


# ---------------------------------------------------------------- what the data do not tell


def static(inputs: Array, values: Array, recorded: Setups, **noise: float) -> Fit:
    """Regression on the input: a' = g(u)."""
    model = Model([a], [u], [features.gaussian_process("g", u)], **(noise or {"process_noise": 0.01}))
    return fit(recorded(model, inputs[:, None], np.concatenate([[np.nan], values[:-1]])[:, None]))


def test_a_flat_direction_is_named(recorded: Setups) -> None:
    random = np.random.default_rng(0)
    # two groups of inputs, each at one place and far apart: any short length-scale will do
    inputs = np.repeat([-30.0, 30.0], 15)
    result = static(inputs, np.repeat([-1.0, 1.0], 15) + 0.1 * random.standard_normal(30), recorded)
    amplitude, lengthscale = hyperparameters(result)
    assert lengthscale.verdict == "open"
    assert lengthscale.deviation is None
    assert lengthscale.factor is None
    assert any('"g_lengthscale" is not determined by the recordings' in w for w in result.warnings)
    assert result.to_json()["hyperparameters"]["g_lengthscale"]["standard_deviation"] is None
    assert amplitude.verdict == "determined"


def test_a_bound_is_named(recorded: Setups) -> None:
    random = np.random.default_rng(1)
    result = static(random.uniform(-1, 1, 30), 2.0 + 0.1 * random.standard_normal(30), recorded)
    lengthscale = hyperparameters(result)[1]  # a constant: no length-scale is too long
    assert lengthscale.verdict == "at its upper bound"
    assert lengthscale.value == pytest.approx(np.exp(REACH))
    assert any('"g_lengthscale" ended at its upper bound, 10000 times off its start' in w for w in result.warnings)


# ---------------------------------------------------------------- what is odd


def test_wrong_noise_is_named(recorded: Setups) -> None:
    random = np.random.default_rng(2)
    inputs = random.uniform(-3, 3, 60)
    values = np.sin(inputs) + 0.3 * random.standard_normal(60)
    assert static(inputs, values, recorded, process_noise=0.09).warnings == ()
    for noise, wrong in ((1.0, "large"),):
        (warning,) = (w for w in static(inputs, values, recorded, process_noise=noise).warnings if "residuals" in w)
        assert f"is too {wrong} for this recording" in warning
    # too little noise has to be there to be found: in a state that no process reaches
    g = features.gaussian_process("g", u)
    model = Model([a, b], [u], [g, 0.5 * b], process_noise=[0.09, 1e-3])
    second = 0.3 * random.standard_normal(60)
    measured = np.column_stack([np.concatenate([[np.nan], values[:-1]]), second])
    result = fit(recorded(model, inputs[:, None], measured, start_covariance=[0.0, 0.1]))
    assert any("is too small for this recording" in w for w in result.warnings)


def test_a_start_elsewhere_is_named(recorded: Setups) -> None:
    inputs, measurements = driven(0, 40)
    assert fit(recorded(cart(), inputs, measurements)).warnings == ()
    moved = fit(recorded(cart(), inputs, measurements + np.array([3.0, 0.0])))
    assert any("does not begin where the scenario s starts" in w for w in moved.warnings)
    told = fit(recorded(cart(), inputs, measurements + np.array([3.0, 0.0]), start=[3.0, 0.0], start_covariance=0.01))
    assert not any("does not begin" in w for w in told.warnings)


def test_no_noise_at_all_is_no_failure(recorded: Setups) -> None:
    """Exact measurements of a deterministic system, the same input many times: floors, said aloud."""
    inputs = np.concatenate([np.linspace(-2, 2, 12), np.zeros(10)])
    result = static(inputs, np.sin(inputs), recorded, process_noise=0.0, measurement_noise=0.0)
    assert np.isfinite(result.log_likelihood)
    assert any("with no noise" in w for w in result.warnings)
    assert 0.5 < hyperparameters(result)[1].value < 10


def test_points_that_are_hardly_known_are_named(recorded: Setups) -> None:
    # the bounds keep the length-scale below what the noise leaves open of the position
    noisy = fit(recorded(cart(lengthscale=1e-5, noise=0.1), *driven(0, 30, noise=0.1)))
    assert hyperparameters(noisy)[1].value <= 0.1 * (1 + 1e-9)
    (named,) = (w for w in noisy.warnings if 'the points at which "g" was evaluated are known to about' in w)
    assert "a short length-scale may be an artefact" in named


def test_the_measure_of_that_is_right_for_a_squared_exponential(recorded: Setups) -> None:
    optimum = maximise(recorded(cart(noise=0.01), *driven(0, 30, noise=0.01)))
    whitened, (_, lengthscale) = optimum.evidence.whitened, np.exp(optimum.psi)
    variances = whitened.corrections[:-1, 0, 0]
    (points,) = known_points(optimum)
    assert points.process == "g"
    np.testing.assert_allclose(points.deviations, [np.sqrt(np.median(variances))])
    assert points.change == pytest.approx(np.median(1 - np.exp(-variances / (2 * lengthscale**2))))


def test_two_processes_and_a_composed_kernel(recorded: Setups) -> None:
    """Every constant of every kernel is fitted, and each finds its own data."""
    kernel = covariances.squared_exponential(1.0, 1.0) + covariances.periodic(1.0, 1.0, period=2.0)
    g, h = features.gaussian_process("g", u, kernel), features.gaussian_process("h", v, "matern52")
    model = Model([a, b], [u, v], [g, h], process_noise=0.01)
    random = np.random.default_rng(3)
    inputs = random.uniform(-3, 3, (60, 2))
    shown = np.column_stack([0.3 * inputs[:, 0] + np.sin(2 * np.pi * inputs[:, 0] / 1.8), np.sin(inputs[:, 1])])
    measured = np.concatenate([[[np.nan, np.nan]], shown[:-1] + 0.1 * random.standard_normal((59, 2))])
    result = fit(recorded(model, inputs, measured))
    names = [h.name for h in hyperparameters(result)]
    assert names == [
        *(
            "g_amplitude",
            "g_amplitude_2",
            "g_lengthscale",
            "g_lengthscale_2",
            "g_period",
            "h_amplitude",
            "h_lengthscale",
        )
    ]
    found = {h.name: h for h in hyperparameters(result)}
    assert found["g_period"].value == pytest.approx(1.8, rel=0.02)
    assert found["g_period"].verdict == "determined"
    assert found["h_lengthscale"].value == pytest.approx(2.0, rel=0.5)
