"""Fits of models with Gaussian processes from Python, and recordings that they have not seen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

import symdual
from symdual import Model, Scenario, SymdualError, features, previous, signal, unknown
from symdual.common.arrays import Array
from symdual.identification.processes.features import learn, with_features
from symdual.identification.processes.linearised import Lineariser
from symdual.identification.processes.setup import setup_for
from symdual.identification.result import Fit

from ..conftest import as_csv

x, u = sp.symbols("x u")
SUN = signal("sun", usual=1.0)
GAIN = 1.3


def scenario() -> Scenario:
    """x' = 0.5 x + g(x) + gain u + 0.2 sun, with g = sin."""
    g = features.gaussian_process("g", x, lengthscale=1.5, amplitude=1.0)
    model = Model(
        [x],
        [u],
        [0.5 * x + g + unknown("gain", 1.0, 0.25) * u + 0.2 * SUN],
        observation=[x, 2 * x],
        process_noise=0.01,
        measurement_noise=[0.01, 0.04],
        name="bend",
    )
    return Scenario(model, 5, start_covariance=0.5, name="bend")


def table(rows: int, seed: int) -> dict[str, Array]:
    random = np.random.default_rng(seed)
    inputs, sun = random.normal(size=rows), random.uniform(0.0, 2.0, rows)
    state, seen = 0.3, []
    for push, light in zip(inputs, sun, strict=True):
        shared = 0.1 * random.normal()  # both sensors are off together
        seen.append([state + shared, 2 * state + shared + 0.1 * random.normal()])
        state = 0.5 * state + np.sin(state) + GAIN * push + 0.2 * light + 0.1 * random.normal()
    columns = np.array(seen).T
    times = np.arange(rows, dtype=float)
    return {"time": times, "u": inputs, "x": columns[0], "y1": columns[1], "sun": sun}


@pytest.fixture(scope="module")
def fitted() -> Fit:
    return symdual.fit(scenario(), [table(40, 1), table(20, 2)], full=["measurement_noise"], starts=2)


def test_everything_is_fitted_together(fitted: Fit) -> None:
    assert fitted.converged and fitted.method == "marginal likelihood" and fitted.searches == 2
    names = [e.name for e in fitted.estimates]
    assert names == [
        *("g_amplitude", "g_lengthscale", "gain", "recording0: start[x]", "recording1: start[x]"),
        *("process_noise[x]", "measurement_noise[x]", "measurement_noise[y1,x]", "measurement_noise[y1]"),
    ]
    assert fitted.columns()["name"] == names
    truths = {"gain": GAIN, "process_noise[x]": 0.01, "measurement_noise[x]": 0.01, "measurement_noise[y1,x]": 0.01}
    for name, truth in truths.items():
        found = fitted[name]
        assert found.deviation is not None and abs(found.value - truth) < 4 * found.deviation, name
    assert fitted["measurement_noise[y1,x]"].value > 2 * (fitted["measurement_noise[y1,x]"].deviation or 0.0)
    # what a model reads of it
    content = fitted.to_json()
    model = Model([x], [u], [unknown("gain") * u], observation=[x, 2 * x], fitted=content)
    np.testing.assert_allclose(model.measurement_noise, fitted.setting.noises.measurement_noise, rtol=1e-8)
    assert model.measurement_noise[0, 1] > 0 and model.prior_mean[0] == pytest.approx(fitted["gain"].value)


def test_what_is_held_stays(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(as_csv(table(20, 3)))
    held = symdual.fit(scenario(), tmp_path / "a.csv", hold=["gain", "start", "process_noise"], starts=1)
    assert [e.name for e in held.estimates] == [
        *("g_amplitude", "g_lengthscale", "measurement_noise[x]", "measurement_noise[y1]")
    ]
    assert "unknowns" not in held.to_json() and "process_noise" not in held.to_json()
    only = symdual.fit(scenario(), table(20, 3), only=["gain"], starts=1)
    assert [e.name for e in only.estimates] == ["gain"] and only.converged


def test_what_cannot_be() -> None:
    for said, asked in (
        ("so there is no likelihood without it", {"method": "likelihood"}),
        ("at least one start, not 0", {"starts": 0}),
        ('"x" is no matrix of noise', {"full": ["x"]}),
        ("drift is zero in the model", {"full": ["drift"]}),
        ('nothing called "gian" to fit; did you mean "gain"', {"only": ["gian"]}),
    ):
        with pytest.raises(SymdualError, match=said):
            symdual.fit(scenario(), table(10, 0), **asked)  # type: ignore[arg-type]
    far = table(10, 0)
    far["y1"][6] *= 1e5
    with pytest.raises(SymdualError, match=r'recording0, line 7: "y1" is .* deviations off'):
        symdual.fit(scenario(), far)
    nameless = table(10, 0)
    nameless["Sun"] = nameless.pop("sun")
    with pytest.raises(SymdualError, match=r'the signal "sun" has neither a column .* did you mean "Sun"'):
        symdual.fit(scenario(), nameless)


def test_uneven_times_are_put_on_the_grid_when_asked() -> None:
    even = table(20, 4)
    uneven = {key: np.delete(column, 7) for key, column in even.items()}
    uneven["time"][10] += 0.4
    with pytest.raises(SymdualError, match="only when asked"):
        symdual.fit(scenario(), uneven, starts=1)
    found = symdual.fit(scenario(), uneven, starts=1, resample=True)
    assert len(found.recordings[0].times) == 20 and found["g_lengthscale"].value > 0


def test_remembered_inputs_and_signals_in_the_linearised_model() -> None:
    clock = sp.Symbol("clock")
    g = features.gaussian_process("g", x)
    model = Model([x], [u], [sp.sin(x) + g * SUN + previous(u, 2) * clock], time=clock, process_noise=0.1, name="m")
    recorded = {"u": [1.0, 2.0, 3.0, 4.0], "x": [0.0, 0.1, 0.2, 0.3], "sun": [5.0, 6.0, 7.0, 8.0]}
    setup = setup_for(model, Scenario(model, 5, past={u: [0.5, 0.7]}, name="s"), [recorded, recorded])
    random = np.random.default_rng(0)
    trajectory = random.normal(size=(8, 3))
    system = Lineariser(setup).along(trajectory, Lineariser(setup).prior, setup.constants)
    there = np.einsum("tij,tj->ti", system.transition, trajectory[:-1]) + system.offset
    for t, (state, last, before) in enumerate(trajectory[:-1]):
        if t == 3:  # between the recordings: to the start, with what was applied before
            assert there[t].tolist() == [0.0, 0.5, 0.7]
            continue
        k = t % 4
        np.testing.assert_allclose(there[t], [np.sin(state) + before * k, recorded["u"][k], last], rtol=1e-12)
        assert system.gains[t, 0, 0] == pytest.approx(recorded["sun"][k])


@pytest.fixture
def without_compiling(monkeypatch: pytest.MonkeyPatch, interpreted_likelihood: Callable[[Model], Any]) -> None:
    monkeypatch.setattr("symdual.generation.generated_alone", lambda model, folder, parts: model)
    monkeypatch.setattr("symdual.identification.processes.features.load", interpreted_likelihood)


@pytest.mark.usefixtures("without_compiling")
def test_features_are_the_process_where_recordings_go(fitted: Fit) -> None:
    optimum: Any = fitted.optimum
    about = with_features(optimum, fitted.likelihood.read(table(20, 5))).predictor.about
    mean, covariance = about.prior.mean[1:], about.prior.covariance[1:, 1:]
    points = np.array([[-1.0], [0.2], [1.5]])
    told = learn(optimum, [points])  # z_0 = (x, gain), and the process
    begin, count = about.package.DATA_ENTRIES["g_point"]
    centres = about.package.numbers["data"][begin : begin + count]
    amplitude, lengthscale = (fitted[f"g_{name}"].value for name in ("amplitude", "lengthscale"))
    phi = amplitude**2 * np.exp(-((points - centres) ** 2) / (2 * lengthscale**2))
    turn = np.block([[np.eye(1), np.zeros((1, len(centres)))], [np.zeros((3, 1)), phi]])
    np.testing.assert_allclose(turn @ mean, told.mean[1:], atol=1e-3)
    np.testing.assert_allclose(turn @ covariance @ turn.T, told.covariance[1:, 1:], atol=1e-4)


@pytest.mark.usefixtures("without_compiling")
def test_recordings_that_were_not_fitted_are_predicted(fitted: Fit) -> None:
    (seen,) = symdual.validate(fitted, table(30, 6), length=3)
    assert seen.labels == ("x", "y1") and len(seen.ahead) == 3
    assert seen.consistency.verdict == "consistent"
    assert np.all(seen.ahead[0].inside > 0.8) and np.all(seen.simulation.inside > 0.8)
    assert np.all(seen.simulation.rms < 2.5 * seen.simulation.expected)
    # a process that is known no better than its prior expects far larger errors
    assert np.all(seen.simulation.expected < 1.0)


@pytest.mark.usefixtures("without_compiling")
def test_a_process_learns_again_without_a_part(fitted: Fit) -> None:
    predictor = fitted.likelihood.predictor(fitted, [], None)
    prior = predictor.about.prior
    whole = predictor.refit(fitted.recordings)  # with nothing blank, it is what was learned
    scale = np.sqrt(np.diag(prior.covariance)[1:])
    np.testing.assert_allclose(whole.setting.theta, prior.mean[1:], atol=1e-5 * scale.max())
    np.testing.assert_allclose(whole.unknowns, prior.covariance[1:, 1:], atol=1e-5 * scale.max() ** 2, rtol=1e-4)
    first, second = fitted.recordings
    measurements = first.measurements.copy()
    measurements[20:30] = np.nan
    less = predictor.refit([first._replace(measurements=measurements), second])
    assert less.unknowns[0, 0] > 1.02 * whole.unknowns[0, 0]  # of the gain
    assert [len(own.mean) for own in less.filters] == [predictor.about.package.NZ] * 2
    assert all(np.all(own.covariance[1:, 1:] == 0) for own in less.filters)
