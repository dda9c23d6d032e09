"""Recordings of models with signals, remembered inputs and noise that depends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp

import symdual
from symdual import Model, Scenario, SymdualError, previous, signal, unknown
from symdual.common.arrays import Array
from symdual.identification.parameters.evidence import Evidence
from symdual.identification.parameters.prior_model import PriorModel, first_states
from symdual.identification.parameters.quantities import choose
from symdual.identification.recordings import oddities, resampled
from symdual.identification.structural import ambiguities
from symdual.identification.surroundings import Surroundings, read_recordings, surroundings
from symdual.runtime.belief import Belief
from symdual.runtime.replay import Recording
from symdual.spec.fitted import read_fit

from .conftest import fit_parameters

air, wall, heat = sp.symbols("air wall heat")
OUTSIDE, SUN = signal("outside", usual=5.0), signal("sun", usual=200.0)
LOSS, STORE, GAIN, GLASS = 0.05, 0.1, 1.0, 0.003
Q, R = np.diag([1e-3, 1e-5]), 1e-2

ROOM = Model(
    [air, wall],
    [heat],
    [
        air
        - unknown("loss", LOSS, 0.01) * (air - OUTSIDE)
        - STORE * (air - wall)
        + unknown("gain", GAIN, 1.0) * previous(heat, 2)
        + GLASS * SUN,
        wall + 0.3 * STORE * (air - wall),
    ],
    observation=[air],
    process_noise=[1e-3, 1e-5],
    measurement_noise=R,
    name="room",
)


def table(rows: int, seed: int = 0, gain: float = 0.8) -> dict[str, Array]:
    """A day in the room, whose radiator answers two steps late."""
    random = np.random.default_rng(seed)
    heats = random.uniform(0.0, 1.5, rows)
    outside, sun = 5 + random.normal(size=rows), 200 * random.uniform(size=rows)
    x, seen = np.array([19.0, 18.0]), []
    for k in range(rows):
        seen.append(x[0] + 0.1 * random.normal())
        applied = heats[k - 2] if k >= 2 else 0.5
        push = gain * applied + GLASS * sun[k] + 0.03 * random.normal()
        x = np.array([x[0] - LOSS * (x[0] - outside[k]) - STORE * (x[0] - x[1]) + push, x[1] + 0.03 * (x[0] - x[1])])
    return {"heat": heats, "air": np.array(seen), "outside": outside, "sun": sun}


@pytest.fixture(scope="module")
def room(interpreted_likelihood: Callable[[Model], Any]) -> PriorModel:
    """The room of which nothing is known but its prior."""
    package = interpreted_likelihood(ROOM)
    mean, covariance = np.array([0.0, 0.0, 0.0, 0.0, LOSS, GAIN]), np.diag([0.0, 0.0, 0.0, 0.0, 0.01, 1.0])
    return PriorModel("room", package, Belief(mean, covariance), True, None, surroundings(ROOM, package.SIGNALS, None))


@pytest.fixture(scope="module")
def begun(room: PriorModel) -> PriorModel:
    """The room with a scenario: its start, and 0.5 before it."""
    mean = room.prior.mean.copy()
    mean[:4] = 19.0, 18.0, 0.5, 0.5
    covariance = room.prior.covariance.copy()
    covariance[0, 0] = 0.04
    return room._replace(prior=Belief(mean, covariance), flat=False, around=room.around._replace(begun=True))


def kalman(start: Array, P: Array, applied: Array, measured: Array, outside: Array, sun: Array) -> float:
    """log p of the room with its own numbers; `applied` are the inputs two steps before each row."""
    A = np.array([[1 - LOSS - STORE, STORE], [0.3 * STORE, 1 - 0.3 * STORE]])
    C, total = np.array([1.0, 0.0]), 0.0
    for k, y in enumerate(measured):
        if np.isfinite(y):
            S, e = C @ P @ C + R, y - C @ start
            total -= 0.5 * (e**2 / S + np.log(2 * np.pi * S))
            start, P = start + P @ C * e / S, P - np.outer(P @ C, C @ P) / S
        start = A @ start + np.array([LOSS * outside[k] + GAIN * applied[k] + GLASS * sun[k], 0.0])
        P = A @ P @ A.T + Q
    return float(total)


def test_without_a_scenario_the_first_rows_are_the_past(room: PriorModel) -> None:
    day = table(30)
    day["air"][7] = np.nan
    (one,) = read_recordings(day, room.package, room.around)
    assert len(one.times) == 28 and one.past is not None
    assert one.past[:, 0].tolist() == [day["heat"][1], day["heat"][0]]
    begins = first_states(room, [one])
    assert begins[0].tolist() == [day["air"][2], 0.0, day["heat"][1], day["heat"][0]]
    quantities = choose(room.package, room.prior, True, ["day"], begins, remembering=[2, 3])
    assert quantities.states.tolist() == [0, 1]
    found = Evidence(quantities, [one]).at(quantities.first).log_likelihood
    wanted = kalman(
        begins[0][:2], np.zeros((2, 2)), day["heat"][:28], day["air"][2:], day["outside"][2:], day["sun"][2:]
    )
    assert found == pytest.approx(wanted, rel=1e-9)


def test_a_scenario_says_what_was_applied_before(begun: PriorModel) -> None:
    day = table(20)
    (one,) = read_recordings(day, begun.package, begun.around)
    assert len(one.times) == 20 and one.past is None
    begins = first_states(begun, [one])
    quantities = choose(
        begun.package, begun.prior, False, ["day"], begins, only=["measurement_noise"], remembering=[2, 3]
    )
    assert not len(quantities.states)
    # what is not fitted is in the filter: here without any doubt about the unknowns
    known = quantities.prior._replace(covariance=np.diag([0.04, 0, 0, 0, 0, 0]))
    likelihood = Evidence(choose(begun.package, known, False, ["day"], begins, ["measurement_noise"]), [one])
    wanted = kalman(
        np.array([19.0, 18.0]),
        np.diag([0.04, 0.0]),
        np.concatenate([[0.5, 0.5], day["heat"][:-2]]),
        *(day[key] for key in ("air", "outside", "sun")),
    )
    assert likelihood.at(likelihood.quantities.first).log_likelihood == pytest.approx(wanted, rel=1e-9)


def test_a_fit_finds_the_gain_and_a_model_reads_it(begun: PriorModel) -> None:
    found = fit_parameters(
        begun, read_recordings(table(60), begun.package, begun.around), only=["gain", "start"], starts=1
    )
    gain = found["gain"]
    assert gain.deviation is not None and abs(gain.value - 0.8) < 4 * gain.deviation < 0.2
    with pytest.raises(SymdualError, match='"previous_heat" is an input of the past'):
        fit_parameters(begun, list(found.recordings), only=["start[previous_heat]"])
    stored = read_fit(found.to_json())
    assert stored.start is not None and stored.start[0].shape == (2,)
    scenario = Scenario(ROOM, 5, fitted=found.to_json(), past={heat: 0.5})
    assert scenario.start.tolist() == [*stored.start[0], 0.5, 0.5]


def test_signals_come_from_columns_and_else_from_the_scenario(room: PriorModel) -> None:
    around = Surroundings(("outside", "sun"), np.array([[1.0, np.nan], [2.0, 7.0]]), (True, True))
    np.testing.assert_array_equal(
        around.signals(3, np.array([[np.nan, 4.0]] * 3)), [[1.0, 4.0], [2.0, 4.0], [2.0, 4.0]]
    )
    with pytest.raises(SymdualError, match=r'monday: the signal "sun" has neither a column .* did you mean "Sun"'):
        around.signals(3, None, "monday: ", ["Sun"])
    silent = around._replace(acting=(True, False))  # a price changes nothing that happens
    assert np.isfinite(silent.signals(3)).all()
    day = table(10)
    del day["sun"]
    with pytest.raises(SymdualError, match='recording0: the signal "sun" has neither a column'):
        read_recordings(day, room.package, room.around)
    with pytest.raises(SymdualError, match='row 3: the signal "sun" is missing or infinite'):
        read_recordings(table(10) | {"sun": [1, 2, np.nan, *range(7)]}, room.package, room.around)


def test_a_signal_that_never_changes_is_said(begun: PriorModel) -> None:
    series = read_recordings(table(10) | {"sun": np.full(10, 3.0)}, begun.package, begun.around)
    assert list(oddities(series, begun.package)) == [
        'the signal "sun" never changes (it is 3): the recording does not show what it does'
    ]


def test_a_recording_that_is_shorter_than_the_memory(room: PriorModel) -> None:
    with pytest.raises(SymdualError, match="has 3 rows, but the model looks back 2 steps"):
        read_recordings(table(3), room.package, room.around)


def test_resampled_signals_are_means(room: PriorModel) -> None:
    given = Recording(
        times=np.array([0.0, 0.5, 1.0, 2.0, 3.0, 4.0]),
        inputs=np.zeros((6, 1)),
        measurements=np.zeros((6, 1)),
        lines=[2, 3, 4, 5, 6, 7],
        ignored=[],
        signals=np.array([[1.0, 0.0], [3.0, 0.0], [5.0, 0.0], [6.0, 0.0], [7.0, 0.0], [8.0, 0.0]]),
    )
    found = resampled(given, room.package)
    assert found.signals is not None
    np.testing.assert_allclose(found.signals[:, 0], [2.0, 5.0, 6.0, 7.0, 8.0])


def test_what_an_experiment_in_the_weather_tells(begun: PriorModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("symdual.identification.identify.prior_model", lambda *_: begun._replace(written=ROOM))
    day = table(30)
    told = symdual.identify(ROOM, day)
    assert (told.kind, told.rank, told.ambiguities) == ("recording", 2, ())
    del day["air"]
    planned = symdual.identify(ROOM, day)
    assert planned.kind == "plan"
    np.testing.assert_allclose(planned.after, told.after, rtol=0.1)  # nearly linear in the unknowns
    still = symdual.identify(ROOM, day | {"outside": np.full(30, 19.0)})
    assert still.after[0] > 1.3 * planned.after[0]  # nothing flows where it is as warm outside
    with pytest.raises(SymdualError, match='the signal "outside" has neither a column'):
        symdual.identify(ROOM, steps=5, bounds={"heat": (0.0, 1.0)})


def test_signals_that_change_tell_unknowns_apart() -> None:
    a, b, c = unknown("a", 1.0, 0.5), unknown("b", 0.5, 0.5), unknown("c", 0.3, 0.5)
    apart = Model([air], [heat], [0.5 * air + a * SUN + b + heat], name="m")
    assert ambiguities(apart, [None]) == ()
    product = Model([air], [heat], [0.5 * air + a * b * SUN + c * heat], name="m")
    assert [one.sentence().partition(":")[0] for one in ambiguities(product, [None])] == [
        "a and b show only through a*b"
    ]


def test_noise_that_depends_has_no_numbers_to_fit(interpreted_likelihood: Callable[[Model], Any]) -> None:
    model = Model(
        [air],
        [heat],
        [0.5 * air + unknown("gain", 1.0, 1.0) * heat],
        process_noise=0.1 + heat,
        measurement_noise=0.1,
        name="noisy",
    )
    package = interpreted_likelihood(model)
    about = PriorModel("noisy", package, Belief(np.array([0.0, 1.0]), np.diag([1.0, 1.0])), False)
    random = np.random.default_rng(0)
    inputs, seen = random.uniform(size=40), [0.0]
    for push in inputs[:-1]:
        seen.append(0.5 * seen[-1] + 0.7 * push + np.sqrt(0.1 + push) * random.normal())
    series = read_recordings({"heat": inputs, "air": seen}, package)
    found = fit_parameters(about, series, starts=1)
    assert [e.name for e in found.estimates] == ["gain", "start[air]"]
    assert "process_noise" not in found.to_json() and abs(found["gain"].value - 0.7) < 4 * found.covariance[0, 0] ** 0.5
    with pytest.raises(SymdualError, match="noise of noisy depends on where it is: process_noise is an expression"):
        fit_parameters(about, series, only=["process_noise"])
    with pytest.raises(
        SymdualError, match=r"process_noise\[0, 0\] = heat \+ 0.1 becomes negative: it is -0.4 at step 3"
    ):
        fit_parameters(about, read_recordings({"heat": [1, 1, 1, -0.5, 1, 1], "air": [0.0] * 6}, package))
