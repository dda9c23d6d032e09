"""Fits of a compiled cart: against exact posteriors, over many seeds, and what is said when data say little."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

import symdual
from symdual import Model, Scenario, features, unknown
from symdual.common.errors import ModelError, SymdualError
from symdual.derive.derivation import derive
from symdual.emit.package import package as rendered
from symdual.identification.parameters.prior_model import PriorModel, prior_model
from symdual.identification.result import Fit
from symdual.identification.standard_errors import Certainty, correlations
from symdual.identification.surroundings import read_recordings
from symdual.spec.fitted import read_fit, write
from symdual.spec.loading import load_model_file

from .conftest import CART, DRIVE, FRICTION, MEASUREMENT, PROCESS, SIDE, fit_parameters, ride

x, u = sp.symbols("x u")


@pytest.fixture(scope="module")
def fitted(cart: PriorModel) -> Fit:
    """Two rides of different lengths, everything fitted."""
    return fit_parameters(cart, read_recordings([ride(200, 1), ride(150, 2)], cart.package))


def test_the_truth_is_found(fitted: Fit) -> None:
    truth = {"drive": DRIVE, "friction": FRICTION, "side": SIDE}
    truth |= {"process_noise[velocity]": PROCESS, "measurement_noise[position]": MEASUREMENT}
    truth |= {f"recording{i}: start[{s}]": v for i in (0, 1) for s, v in (("position", 0.5), ("velocity", -0.2))}
    assert {e.name for e in fitted.estimates} == set(truth)
    for e in fitted.estimates:
        assert e.verdict == "determined" and e.deviation is not None
        assert abs(e.value - truth[e.name]) < 4 * e.deviation, e
        assert e.deviation < 0.6 * abs(e.value)
    assert fitted.converged and fitted.agreeing == fitted.searches == 5
    assert fitted.log_likelihood > fitted.start_log_likelihood + 10
    assert fitted["drive"].value == fitted.mean[fitted.unknowns.index("drive")]
    np.testing.assert_allclose(np.sqrt(np.diag(fitted.covariance)), [fitted[n].deviation for n in fitted.unknowns])
    assert fitted.columns()["name"][:3] == list(fitted.unknowns)
    assert f"drive = {fitted['drive'].value:.4g} +- {fitted['drive'].deviation:.2g}, friction" in repr(fitted)
    assert "\n" not in repr(fitted) and repr(fitted).endswith("and 1 more>")
    open_end = fitted._replace(estimates=(fitted["drive"]._replace(deviation=None),))
    assert repr(open_end).endswith(f": drive = {fitted['drive'].value:.4g}>")


def test_intervals_contain_the_truth_as_often_as_they_say(cart: PriorModel) -> None:
    # benchmarks/standard_errors.py does this with 100 seeds; here 10 rides with 6 intervals each
    truth = {"drive": DRIVE, "friction": FRICTION, "side": SIDE, "start[position]": 0.5, "start[velocity]": -0.2}
    hits = total = 0
    for seed in range(10):
        found = fit_parameters(cart, read_recordings(ride(150, 100 + seed), cart.package), starts=1)
        for e in found.estimates:
            if e.name in truth:
                assert e.deviation is not None
                hits, total = hits + (abs(e.value - truth[e.name]) <= 1.96 * e.deviation), total + 1
        noise = found["measurement_noise[position]"]
        hits += abs(math.log(noise.value / MEASUREMENT)) <= 1.96 * noise.deviation / noise.value
        total += 1
    assert total == 60
    assert 51 <= hits <= 60  # 57 expected; fewer than 51 once in 200 such tests


def test_the_most_probable_value_is_that_of_a_linear_regression(cart_at_rest: PriorModel) -> None:
    # with friction known and noise given, the positions are linear in drive and side: the posterior is exact
    table = ride(60, 3, start=(0.0, 0.0))
    rows = 60
    Q, R = np.diag([0.0, 1e-3]), 1e-2
    A = np.array([[1.0, 0.1], [0.0, 1.0 - 0.1 * 0.3]])

    def positions(drive: float, side: float) -> np.ndarray:
        z, found = np.zeros(2), []
        for k in range(rows):
            found.append(z[0])
            z = A @ z + np.array([0.0, 0.1 * (drive * table["force"][k] + side * table["wind"][k])])
        return np.array(found)

    covariance = np.zeros((2 * rows, 2 * rows))
    for t in range(1, rows):
        now, before = slice(2 * t, 2 * t + 2), slice(2 * t - 2, 2 * t)
        covariance[now, : 2 * t] = A @ covariance[before, : 2 * t]
        covariance[: 2 * t, now] = covariance[now, : 2 * t].T
        covariance[now, now] = A @ covariance[before, before] @ A.T + Q
    seen = np.isfinite(table["position"])
    G = (covariance[::2, ::2] + R * np.eye(rows))[np.ix_(seen, seen)]
    Phi = np.stack([positions(1.0, 0.0), positions(0.0, 1.0)], axis=1)[seen]
    precision = Phi.T @ np.linalg.solve(G, Phi) + np.diag([1 / 1.0, 1 / 0.25])
    right = Phi.T @ np.linalg.solve(G, table["position"][seen]) + np.array([1.0 / 1.0, 0.5 / 0.25])
    posterior = np.linalg.solve(precision, right)
    at_once = cart_at_rest._replace(prior=_without(cart_at_rest, "friction"))
    found = fit_parameters(at_once, read_recordings(table, at_once.package), only=["drive", "side"], starts=2)
    assert found.unknowns == ("drive", "side")
    np.testing.assert_allclose(found.mean, posterior, rtol=1e-6)
    np.testing.assert_allclose(found.covariance, np.linalg.inv(precision), rtol=1e-5)
    likely = fit_parameters(
        at_once, read_recordings(table, at_once.package), only=["drive", "side"], method="likelihood", starts=1
    )
    flat = Phi.T @ np.linalg.solve(G, Phi)
    np.testing.assert_allclose(
        likely.mean, np.linalg.solve(flat, Phi.T @ np.linalg.solve(G, table["position"][seen])), rtol=1e-6
    )
    np.testing.assert_allclose(likely.covariance, np.linalg.inv(flat), rtol=1e-5)


def _without(about: PriorModel, name: str) -> symdual.Belief:
    covariance = about.prior.covariance.copy()
    place = about.package.NX + about.package.UNKNOWNS[name][0]
    covariance[place] = 0.0
    covariance[:, place] = 0.0
    return symdual.Belief(about.prior.mean, covariance)


def test_what_the_data_say_nothing_about_keeps_its_prior(cart: PriorModel) -> None:
    found = fit_parameters(cart, read_recordings(ride(150, 4, windy=False), cart.package), starts=2)
    side = found["side"]
    assert (side.verdict, side.value, side.deviation) == ("prior", pytest.approx(0.5), pytest.approx(0.5))
    assert 'the recordings say nothing about "side": it keeps its prior' in found.warnings
    assert any('the input "wind" never changes (it is 0)' in sentence for sentence in found.warnings)
    likely = fit_parameters(
        cart, read_recordings(ride(150, 4, windy=False), cart.package), method="likelihood", starts=1
    )
    assert likely["side"].verdict == "open" and likely["side"].deviation is None
    assert '"side" is not determined by the recordings' in likely.warnings


def test_noise_that_is_not_there_ends_at_its_bound(cart_at_rest: PriorModel) -> None:
    table = ride(120, 5, start=(0.0, 0.0))
    velocity, position = 0.0, 0.0
    for k in range(120):  # a ride without process noise; the sensor alone is noisy
        table["position"][k] = position + 0.3 * np.sin(7.0 * k**2)
        position += 0.1 * velocity
        velocity += 0.1 * (DRIVE * table["force"][k] - FRICTION * velocity + SIDE * table["wind"][k])
    found = fit_parameters(cart_at_rest, read_recordings(table, cart_at_rest.package), method="likelihood", starts=1)
    noise = found["process_noise[velocity]"]
    assert noise.deviation is None and noise.verdict in ("at its lower bound", "open")
    assert any("process_noise[velocity]" in sentence for sentence in found.warnings)
    assert found["measurement_noise[position]"].value == pytest.approx(0.045, rel=0.3)


def test_recordings_count_alike_together_and_apart(cart: PriorModel, fitted: Fit) -> None:
    alone = [fit_parameters(cart, [one], starts=1, only=["start"]).log_likelihood for one in fitted.recordings]
    both = fit_parameters(cart, list(fitted.recordings), starts=1, only=["start"])
    assert both.log_likelihood == pytest.approx(sum(alone), rel=1e-7)


def test_units_that_make_no_sense_are_said(cart_at_rest: PriorModel) -> None:
    table = ride(60, 6, start=(0.0, 0.0))
    table["position"][20] = 5e4
    series = read_recordings(table, cart_at_rest.package)
    with pytest.raises(SymdualError, match=r'line 21: "position" is 50000, but the model expects .* deviations off'):
        fit_parameters(cart_at_rest, series)
    assert fit_parameters(cart_at_rest, series, starts=1, anyway=True).measured == 54


def test_nothing_measured(cart: PriorModel) -> None:
    table = ride(10, 0)
    table["position"][:] = np.nan
    with pytest.raises(SymdualError, match="nothing was measured"):
        fit_parameters(cart, read_recordings(table, cart.package))


def test_a_model_without_noise_has_no_likelihood(interpreted_likelihood: Callable[[Model], Any]) -> None:
    package = interpreted_likelihood(Model([x], [u], [0.5 * x + u], name="silent"))
    about = PriorModel("silent", package, symdual.Belief(np.zeros(1), np.zeros((1, 1))), True)
    with pytest.raises(SymdualError, match="the model has no noise that shows in the measurements"):
        fit_parameters(about, read_recordings({"u": [1.0, 2.0, 3.0], "x": [0.1, 0.2, 0.3]}, package))


def test_a_filter_that_breaks_down_at_the_start_is_said(interpreted_likelihood: Callable[[Model], Any]) -> None:
    a = unknown("a", -1.0, 1.0)
    package = interpreted_likelihood(Model([x], [u], [a * x**4 + u], process_noise=0.1, name="undefined"))
    about = PriorModel("undefined", package, symdual.Belief(np.array([1e100, -1.0]), np.diag([0.0, 1.0])), False)
    with np.errstate(all="ignore"), pytest.raises(SymdualError, match="breaks down with the model's own numbers"):
        fit_parameters(about, read_recordings({"u": [1.0, 2.0, 3.0], "x": [0.1, 0.2, 0.3]}, package), anyway=True)


@pytest.mark.soak
def test_jumps_of_the_likelihood_are_said_and_bridged(interpreted_likelihood: Callable[[Model], Any]) -> None:
    # the filter's slope changes from 0.9 to 0.1 where the estimate passes the kink: its covariance jumps there
    a = unknown("a", 0.0, 1.0)
    bent = sp.Max(0.9 * (x - a), 0.1 * (x - a)) + a + u
    model = Model([x], [u], [bent], process_noise=0.2, measurement_noise=0.2, name="bent")
    package = interpreted_likelihood(model)
    about = PriorModel("bent", package, symdual.Belief(np.zeros(2), np.diag([1.0, 1.0])), False)
    random = np.random.default_rng(3)
    state, inputs, seen = 0.0, random.normal(size=40), []
    for push in inputs:
        seen.append(state + 0.4 * random.normal())
        gap = state - 0.3
        state = max(0.9 * gap, 0.1 * gap) + 0.3 + push + 0.4 * random.normal()
    found = fit_parameters(about, read_recordings({"u": inputs, "x": seen}, package), only=["a"], starts=1)
    estimate = found["a"]
    assert found.converged and estimate.deviation is not None
    assert 0.02 < estimate.deviation < 1.0 and abs(estimate.value - 0.3) < 4 * estimate.deviation


def test_the_python_interface_says_what_it_cannot_do(cart_file: Path, packages: Path) -> None:
    with pytest.raises(SymdualError, match='method must be "map" or "likelihood"'):
        symdual.fit(cart_file, ride(20, 0), method="best", folder=packages)
    with pytest.raises(SymdualError, match="at least one start, not 0"):
        symdual.fit(cart_file, ride(20, 0), starts=0, folder=packages)
    with pytest.raises(SymdualError, match='no scenario "card"; did you mean "cart"'):
        symdual.fit(cart_file, ride(20, 0), scenario="card", folder=packages)
    with pytest.raises(SymdualError, match='no model "kart"; did you mean "cart"'):
        symdual.fit(cart_file, ride(20, 0), name="kart", folder=packages)


def test_unknown_functions_are_refused_before_anything_is_generated(tmp_path: Path) -> None:
    model = Model([x], [u], [x + features.gaussian_process("g", x) + u], process_noise=0.1, name="functional")
    with pytest.raises(SymdualError, match='functional has the Gaussian process "g"'):
        symdual.identify(model, {"u": [1.0, 2.0], "x": [1.0, 2.0]}, folder=tmp_path)
    with pytest.raises(SymdualError, match="has no Scenario of functional"):
        symdual.fit(model, {"u": [1.0, 2.0], "x": [1.0, 2.0]}, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------------ the file


def test_a_model_takes_the_fit_and_nothing_is_compiled_anew(cart: PriorModel, fitted: Fit, tmp_path: Path) -> None:
    file = tmp_path / "cart.fit.json"
    write(file, fitted.to_json())
    text = CART.replace("    bounds=", f"    fitted={str(file)!r},\n    bounds=")
    text += f"again = Scenario(model, 30, fitted={str(file)!r})\n"
    (tmp_path / "cart.py").write_text(text)
    contents = load_model_file(tmp_path / "cart.py")
    model = contents.models["cart"]
    np.testing.assert_allclose(model.prior_mean, fitted.mean, rtol=1e-9)
    np.testing.assert_allclose(model.prior_covariance, fitted.covariance, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(model.process_noise, fitted.setting.noises.process_noise, rtol=1e-9)
    np.testing.assert_allclose(model.measurement_noise, fitted.setting.noises.measurement_noise, rtol=1e-9)
    scenario = contents.scenarios["again"]
    np.testing.assert_allclose(scenario.start, np.mean([s.mean for s in fitted.starts], axis=0), rtol=1e-9)
    assert scenario.start_covariance[0, 0] > 0
    np.testing.assert_allclose(scenario.prior_covariance, fitted.covariance, rtol=1e-6, atol=1e-12)
    # explicit arguments win, and the code is the same
    np.testing.assert_array_equal(contents.scenarios["cart"].start_covariance, np.diag([1.0, 0.5]))
    again = rendered(derive(model))
    assert again.package_digest == cart.package.module.DIGEST
    assert again.files["data.npz"] != (cart.package.folder / "data.npz").read_bytes()


def test_equal_inputs_give_equal_bytes(cart: PriorModel, tmp_path: Path) -> None:
    texts = []
    for number in range(2):
        write(
            tmp_path / f"{number}.json",
            fit_parameters(cart, read_recordings(ride(60, 7), cart.package), starts=2).to_json(),
        )
        texts.append((tmp_path / f"{number}.json").read_bytes())
    assert texts[0] == texts[1]


def test_parts_of_a_fit_may_be_missing() -> None:
    a, b = unknown("a", 1.0, 2.0), unknown("b", 3.0, 4.0)

    def model(content: dict[str, object], **options: object) -> Model:
        return Model([x], [u], [a * x + b * u], process_noise=0.5, fitted=content, name="m", **options)  # type: ignore[arg-type]

    one = model({"unknowns": {"b": {"value": 5.0}}, "covariance": [[0.25]]})
    assert one.prior_mean.tolist() == [1.0, 5.0] and one.prior_covariance.tolist() == [2.0, 0.25]
    assert one.process_noise.tolist() == [[0.5]]
    noise = model({"process_noise": [0.7], "drift": [0.0, 0.1]}, drift=[0.0, 0.2])
    assert noise.process_noise.tolist() == [[0.7]] and noise.prior_mean.tolist() == [1.0, 3.0]
    assert noise.drift is not None and noise.drift.tolist() == [0.0, 0.1]
    dense = model({"drift": [0.0, 0.1]}, drift=[[0.0, 0.0], [0.0, 0.2]])
    assert dense.drift is not None and dense.drift.shape == (2, 2)  # the form decides which code is generated
    named = model({"drift": [0.1, 0.3], "drift_of": ["b", "a"]})
    assert named.drift is not None and named.drift.tolist() == [0.3, 0.1]
    with pytest.raises(ModelError, match="holds a drift without the names of its unknowns"):
        model({"drift": [0.1, 0.3], "log_likelihood": -3.0})  # of a version that had another order
    with pytest.raises(ModelError, match="has the drift of b, c, but the unknowns are a, b"):
        model({"drift": [0.1, 0.3], "drift_of": ["b", "c"]})
    scenario = Scenario(one, 5, fitted={"start": {"mean": [2.0], "covariance": [[0.5]]}}, start_covariance=0.0)
    assert scenario.start.tolist() == [2.0] and scenario.start_covariance.tolist() == [[0.0]]
    # rounding in a file may leave a matrix that is not quite positive semidefinite
    near = read_fit(
        {"unknowns": {"a": {"value": 1}, "b": {"value": 1}}, "covariance": [[1, 1.0000000001], [1.0000000001, 1]]}
    )
    assert np.linalg.eigvalsh(near.covariance)[0] >= -1e-15


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({}, "the fit holds neither unknowns nor noise nor a first state"),
        (
            {"unknowns": {"aa": {"value": 1.0}}, "covariance": [[1.0]]},
            '"aa", which is not an unknown of the model; did you mean "a"',
        ),
        ({"unknowns": {"a": 1.0}}, "the fit does not hold a fit as `symdual fit` writes it"),
        ({"unknowns": {"a": {"value": 1.0}}, "covariance": [[1.0, 2.0]]}, "the covariance of the fit must be"),
        ({"process_noise": ["much"]}, "process_noise of the fit must be numbers"),
        ({"process_noise": [1.0, 2.0]}, "process_noise must be"),
    ],
)
def test_fits_of_something_else(content: dict[str, object], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        Model([x], [u], [unknown("a", 1.0) * x + u], fitted=content, name="m")


def test_files_that_are_no_fits(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"there is no file .*`symdual fit` writes it"):
        read_fit(tmp_path / "none.json")
    with pytest.raises(ModelError, match="cannot be read"):
        read_fit(tmp_path)
    for text in ("", "[1]", json.dumps({"unknowns": [1]})):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(ModelError, match=r"bad\.json does not hold a fit"):
            read_fit(tmp_path / "bad.json")


def test_correlations_are_named_in_words() -> None:
    covariance = np.array([[1.0, -0.95, 0.0], [-0.95, 1.0, 0.0], [0.0, 0.0, math.inf]])
    (pair,) = correlations(["a", "b", "c"], Certainty(covariance, ("determined",) * 3))
    assert pair.sentence().startswith(
        "a and b are hardly told apart (correlation -0.950): values that move against each other"
    )


def test_a_file_with_several_scenarios_or_models_wants_a_name(tmp_path: Path) -> None:
    file = tmp_path / "cart.py"
    file.write_text(CART + "other = Scenario(model, horizon=3)\n")
    with pytest.raises(SymdualError, match="several scenarios; name one of cart, other"):
        symdual.fit(file, ride(20, 0), folder=tmp_path)
    file.write_text(
        CART.replace("scenario = Scenario(model, horizon=30, ", "").replace("start_covariance=[1.0, 0.5])", "")
        + "second = model.named('second')\n"
    )
    with pytest.raises(SymdualError, match="several models; name one of cart, second"):
        symdual.fit(file, ride(20, 0), folder=tmp_path)
    assert list(tmp_path.iterdir()) == [file]  # nothing is generated before it is clear for what


@pytest.mark.soak
def test_a_fit_with_terms_of_second_order_is_honest_where_a_measurement_is_curved(tmp_path: Path) -> None:
    """A state with variance q around a known mean, of which c x^2 is seen: E y = c (mean^2 + q), not c mean^2."""
    c, found = unknown("c", 0.8, 0.1), {}
    for filter in ("extended", "second_order"):
        model = Model(
            [x], [u], [u], observation=[c * x**2], process_noise=4.0, measurement_noise=0.25, filter=filter, name=filter
        )
        about = prior_model(Scenario(model, 5, start=5.0, start_covariance=4.0), folder=tmp_path)
        errors = []
        for seed in range(30):
            random = np.random.default_rng(seed)
            applied = random.uniform(3.0, 8.0, 200)
            states = np.concatenate([[5.0], applied[:-1]]) + 2.0 * random.standard_normal(200)
            seen = 0.6 * states**2 + 0.5 * random.standard_normal(200)
            read = read_recordings({"u": applied, "y0": seen}, about.package, about.around)
            fit = fit_parameters(about, read, only=["c"], starts=1)
            errors.append((fit["c"].value - 0.6) / fit["c"].deviation)
        found[filter] = float(np.mean(np.square(errors)))
    assert found["second_order"] < 2.0 < found["extended"]  # 30 degrees of freedom: above 2 once in a thousand
