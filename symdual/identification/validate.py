"""How well a fitted model predicts recordings that it has not seen.

Four questions, each with what the model itself expects beside what happens:

    prediction    errors of the measurements 1 to L steps ahead, and how many lie in the 95 % bands
    whiteness     correlations of the whitened innovations with themselves, some steps apart; none under the model
    consistency   the normalised innovations squared, chi-square distributed under the model
    simulation    the model left alone from an estimated start to the end

The bands contain the noise and what is still unknown of the unknowns and of the first state, and are as much wider as
held-out parts of the fitted recordings ask for (`held_out`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from symdual.common.arrays import Array
from symdual.common.words import spelled
from symdual.identification.autocorrelation import LIMIT, share_deviation
from symdual.identification.held_out import Factors, Predictor, factors
from symdual.identification.parameters.evidence import Evidence
from symdual.identification.parameters.objective import Objective
from symdual.identification.parameters.prior_model import first_states, fitted_filter, inserted
from symdual.identification.parameters.quantities import Quantities, as_matrix
from symdual.identification.parameters.search import maximise
from symdual.identification.recordings import Source
from symdual.identification.result import FirstState, Fit
from symdual.runtime.belief import Belief
from symdual.runtime.replay import Consistency, Recording, consistency

LENGTH = 20  #: how many steps ahead predictions are judged
LAGS = 25
_JUDGED = ("rms", "expected", "inside", "inside_deviation", "factor")


class Prediction(NamedTuple):
    """Expected measurements with standard deviations, both (K, NY), and what was measured.

    `rms` (NY,) is the root mean square of the errors, `expected` what the model says it should be, and `inside` the
    share of errors within the 95 % band, which is `factor` (NY,) times as wide as the model says. `unsure` (NY,) is
    the deviation of the logarithm of the errors' variance from one part of a recording to another.
    """

    outputs: Array
    deviations: Array
    measured: Array
    factor: Array
    unsure: Array

    @property
    def errors(self) -> Array:
        """Measured minus expected, NaN where nothing was measured."""
        return self.measured - self.outputs

    @property
    def rms(self) -> Array:
        """The root mean square error of each measurement."""
        return _mean(self.errors**2) ** 0.5

    @property
    def expected(self) -> Array:
        """The root mean square error that the model expects."""
        return _mean(np.where(np.isfinite(self.errors), self.deviations**2, np.nan)) ** 0.5

    @property
    def band(self) -> Array:
        """The half-width of the 95 % band, (K, NY)."""
        return LIMIT * self.factor * self.deviations

    @property
    def inside(self) -> Array:
        """The share of errors within the 95 % band."""
        within = np.abs(self.errors) <= self.band
        return _mean(np.where(np.isfinite(self.errors), within.astype(float), np.nan))

    @property
    def inside_deviation(self) -> Array:
        """How far `inside` may lie from 0.95 if the band is right, as a standard deviation.

        Errors last for a while (`autocorrelation`), and they may be larger or smaller for all of a recording.
        """
        known = np.full_like(self.errors, np.nan)
        np.divide(self.errors, self.band, out=known, where=self.band > 0)
        lasting = np.array([share_deviation(column) for column in known.T])
        return np.asarray(np.hypot(lasting, LIMIT * math.exp(-0.5 * LIMIT**2) / math.sqrt(2 * math.pi) * self.unsure))


class Whiteness(NamedTuple):
    """Autocorrelations (lags, NY) of the whitened innovations at lags 1, 2, ..., and how they are judged.

    `band` is where one of them lies with probability 0.95 if the model is right; `probability` (NY,) is that of the
    statistic of Ljung and Box being as large as it is.
    """

    correlations: Array
    band: Array
    probability: Array


class Validation(NamedTuple):
    """A fitted model on one recording.

    `ahead` are the predictions 1, 2, ..., L steps ahead; `nis` (K,) the normalised innovations squared of the rows
    with `counts` (K,) measured entries.
    """

    recording: str
    labels: tuple[str, ...]
    times: Array
    inputs: Array
    start: FirstState | None
    ahead: tuple[Prediction, ...]
    whiteness: Whiteness
    consistency: Consistency
    nis: Array
    counts: Array
    simulation: Prediction
    log_likelihood: float

    def __repr__(self) -> str:
        return f"<Validation on {self.recording}: {'; '.join(self.sentences())}>"

    def sentences(self) -> Iterator[str]:
        """The answers in words."""
        first, last = self.ahead[0], self.ahead[-1]
        for a, label in enumerate(self.labels):
            if not np.isfinite(first.rms[a]):
                continue
            yield (
                f"{label}: error {first.rms[a]:.3g} one step ahead (expected {first.expected[a]:.3g}), "
                f"{last.rms[a]:.3g} {len(self.ahead)} steps ahead (expected {last.expected[a]:.3g}), "
                f"{self.simulation.rms[a]:.3g} simulated (expected {self.simulation.expected[a]:.3g}); "
                f"{_share(first, a)}, {_share(last, a)} and {_share(self.simulation, a)} lie in the 95 % bands"
            )
            wider = [made.factor[a] for made in (first, last, self.simulation)]
            if max(wider) > 1.005:
                yield (
                    f"{label}: these bands are {wider[0]:.2f}, {wider[1]:.2f} and {wider[2]:.2f} times as wide as the "
                    "model says, as errors in held-out parts of the fitted recordings ask for"
                )
            if self.whiteness.probability[a] < 0.01:
                yield (
                    f"{label}: the innovations are not white (probability {self.whiteness.probability[a]:.2g}): there "
                    "is something in them that the model could predict"
                )
        yield self.consistency.sentence()

    def to_json(self) -> dict[str, Any]:
        """The numbers as plain data."""

        def rows(values: Any) -> list[dict[str, float | None]]:
            return [{k: _plain(v[a]) for a, k in enumerate(self.labels)} for v in values]

        return {
            "recording": self.recording,
            "ahead": {key: rows([getattr(made, key) for made in self.ahead]) for key in _JUDGED},
            "simulation": {key: rows([getattr(self.simulation, key)])[0] for key in _JUDGED},
            "whiteness": {k: _plain(self.whiteness.probability[a]) for a, k in enumerate(self.labels)},
            "consistency": {**self.consistency._asdict(), "sentence": self.consistency.sentence()},
            "log_likelihood": _plain(self.log_likelihood),
        }


@spelled
def validate(
    result: Fit,
    recordings: Source | Sequence[Source],
    *,
    length: int = LENGTH,
    resample: bool = False,
    folder: str | Path | None = None,
) -> list[Validation]:
    """Judge a fitted model on recordings.

    Args:
        result: a fit.
        recordings, resample, folder: as for `fit`.
        length: how many steps ahead to predict.

    >>> table = {"time": [0, 1, 2, 3], "u": [1.0, -1.0, 1.0, 0.0], "x": [1.0, 3.1, 0.9, 3.0]}
    >>> found = symdual.fit(toy, table, only=["b"], starts=1, folder=folder / "generated")
    >>> judged, = symdual.validate(found, table, length=1)
    >>> judged.labels
    ('x',)
    """
    return validated(result, result.likelihood.read(recordings, resample), length, folder)


def validated(
    result: Fit, recordings: Sequence[Recording], length: int = LENGTH, folder: str | Path | None = None
) -> list[Validation]:
    """The same from recordings that are read already."""
    predictor = result.likelihood.predictor(result, recordings, folder)
    wider = factors(result.recordings, predictor.refit, length)
    return [_validated(predictor, result, one, length, wider) for one in recordings]


def _validated(predictor: Predictor, result: Fit, one: Recording, length: int, wider: Factors) -> Validation:
    start = _start(predictor, result, one)
    own = fitted_filter(predictor.about, predictor.setting, start, one, predictor.unknowns)
    filtered = own.run(one.inputs, one.measurements)
    length = max(1, min(length, len(one.times) - 2))
    outputs, variances = own.forecast(one.inputs, one.measurements, filtered, length)
    ahead = []
    for steps in range(1, length + 1):
        later = np.full_like(one.measurements, np.nan)
        later[: len(later) - steps] = one.measurements[steps:]
        ahead.append(
            Prediction(outputs[:, steps - 1], np.sqrt(variances[:, steps - 1]), later, *wider.ahead[steps - 1])
        )
    alone = own.run(one.inputs, np.full_like(one.measurements, np.nan))
    used = int(filtered.stats[:, 2].sum())
    return Validation(
        recording=one.name,
        labels=tuple(predictor.about.package.MEASUREMENTS),
        times=one.times,
        inputs=one.inputs,
        start=start,
        ahead=tuple(ahead),
        whiteness=whiteness(np.where(np.isfinite(one.measurements), filtered.whites, np.nan)),
        consistency=consistency(float(filtered.stats[:, 1].sum()), used),
        nis=filtered.stats[:, 1],
        counts=filtered.stats[:, 2],
        simulation=Prediction(alone.outputs, np.sqrt(alone.variances), one.measurements, *wider.simulation),
        log_likelihood=filtered.log_likelihood,
    )


def _start(predictor: Predictor, result: Fit, one: Recording) -> FirstState | None:
    """The first state of a recording under the fitted model, where it was not known."""
    if not result.open_states:
        return None
    known = {s.recording: s for s in predictor.starts}
    if one.name in known and any(one is seen for seen in result.recordings):
        return known[one.name]
    about = predictor.about
    nx = about.package.NX
    mean, covariance = about.prior.mean.copy(), about.prior.covariance.copy()
    mean[nx:], covariance[nx:, nx:] = predictor.setting.theta, predictor.unknowns
    known_now = about._replace(prior=Belief(mean, covariance))
    quantities = Quantities(
        package=about.package,
        prior=known_now.prior,
        flat=about.flat,
        constants=np.zeros(0, np.int64),
        states=np.array(result.open_states, dtype=np.int64),
        blocks=(),
        noises=predictor.setting.noises,
        transition=as_matrix(about.package.numbers["transition"]),
        recordings=(one.name,),
        first_states=first_states(known_now, [one]),
    )
    optimum = maximise(Objective(Evidence(quantities, [one]), with_prior=True), starts=1)
    values, vectors = np.linalg.eigh(np.linalg.pinv(optimum.curvature, hermitian=True))
    found = (vectors * np.maximum(values, 0.0)) @ vectors.T
    whole = inserted(covariance[:nx, :nx], result.open_states, found)
    return FirstState(one.name, quantities.setting(optimum.psi).starts[0], whole)


def whiteness(whites: Array) -> Whiteness:
    """Judge innovations (K, NY) that are independent with unit variance under the model; NaN where there are none.

    With r_l the autocorrelation at lag l from n_l pairs and n values, n (n + 2) sum_l r_l^2 / (n - l) is chi-square
    distributed with as many degrees of freedom as there are lags (Ljung and Box).
    """
    from scipy.stats import chi2

    rows, count = whites.shape
    lags = max(1, min(LAGS, rows // 4))
    found, band, probability = np.full((lags, count), np.nan), np.full(count, np.nan), np.full(count, np.nan)
    for a in range(count):
        values = whites[:, a]
        n = int(np.isfinite(values).sum())
        if n < 8:
            continue
        centred = np.where(np.isfinite(values), values - np.nanmean(values), 0.0)
        variance = float(centred @ centred) / n
        if variance == 0:
            continue
        total = 0.0
        for lag in range(1, min(lags, rows - 1) + 1):
            pairs = int((np.isfinite(values[lag:]) & np.isfinite(values[:-lag])).sum())
            if pairs:
                found[lag - 1, a] = float(centred[lag:] @ centred[:-lag]) / n / variance * (n - lag) / pairs
                total += found[lag - 1, a] ** 2 / max(n - lag, 1)
        band[a] = 1.96 / math.sqrt(n)
        probability[a] = float(chi2.sf(n * (n + 2) * total, lags))
    return Whiteness(found, band, probability)


def _mean(values: Array) -> Array:
    """The mean over rows of what is known, NaN where nothing is."""
    known = np.isfinite(values)
    count = known.sum(axis=0)
    total = np.where(known, values, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _plain(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _share(made: Prediction, a: int) -> str:
    """The share within the band, and where it lies, with a probability of 95 %, if the band is right."""
    low, high = (0.95 + sign * LIMIT * made.inside_deviation[a] for sign in (-1, 1))
    return f"{100 * made.inside[a]:.0f} % ({100 * max(low, 0.0):.0f} to {100 * min(high, 1.0):.0f} expected)"
