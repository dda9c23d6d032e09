"""log p(y | quantities) over all recordings, with its exact gradient by the emitted filter and its backward pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from symdual.estimation.quantities import Indices, Noises, Quantities, Setting, Slope
from symdual.estimation.series import Series
from symdual.runtime.border import Records
from symdual.runtime.border_of_fits import FilterRecording, FilterSetting, FilterTrace
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.noise import is_noisy
from symdual.runtime.problem import Array


class Value(NamedTuple):
    """log p and its gradient by psi; the value is minus infinity where the filter breaks down."""

    log_likelihood: float
    gradient: Array


class Filtered(NamedTuple):
    """What the filter makes of a recording.

    Means (K + 1, NZ) and covariances (K + 1, NA, NA) before each row and after the last; the expected measurements
    (K, NY) with their variances (K, NY); the innovations (K, NY) whitened, so that they are independent of unit
    variance under the model; log-likelihood, normalised innovation squared and number of measured entries (K, 3).
    """

    means: Array
    covariances: Array
    outputs: Array
    spreads: Array
    whites: Array
    stats: Array
    log_likelihood: float


class Filter(NamedTuple):
    """The filter of one recording: its first belief and the noise, for the entries of z that are active.

    Noise that depends is code; of `process_noise` only the drift counts then. `signals` (K, S) are those of the rows.
    """

    package: LoadedPackage
    mean: Array
    covariance: Array
    active: Indices
    process_noise: Array
    measurement_noise: Array
    transition: Array
    signals: Array | None = None

    def run(self, inputs: Array, measurements: Array, expected: bool = False) -> Filtered:
        """Run over K rows; with `expected`, measurements are as expected where they are not NaN."""
        K, na, NZ, NY = len(measurements), len(self.active), self.package.NZ, self.package.NY
        means, covariances = np.zeros((K + 1, NZ)), np.zeros((K + 1, na, na))
        outputs, spreads, whites, stats = (np.full((K, c), np.nan) for c in (NY, NY, NY, 3))
        emitted = self.package.likelihood
        trace = emitted.Trace(means, covariances, outputs, spreads, whites, stats)
        likelihood = emitted.forward(
            self._setting(expected), self._recording(inputs, measurements), trace, emitted.rows()
        )
        return Filtered(means, covariances, outputs, spreads, whites, stats, float(likelihood))

    def back(
        self,
        inputs: Array,
        measurements: Array,
        filtered: Filtered,
        last: tuple[Array, Array] | None = None,
        expected: bool = False,
    ) -> tuple[Array, Array, Array, Array, Array]:
        """Derivatives by the first mean and covariance, Q, R and the inputs; `last` are those by the last belief."""
        na, NZ, NY = len(self.active), self.package.NZ, self.package.NY
        mean, covariance = (np.zeros(NZ), np.zeros((na, na))) if last is None else (last[0].copy(), last[1].copy())
        noise, measured, applied = np.zeros((na, na)), np.zeros((NY, NY)), np.zeros_like(inputs)
        emitted = self.package.likelihood_gradient
        slopes = emitted.Slopes(mean, covariance, noise, measured, applied)
        emitted.reverse(*self._given(inputs, measurements, filtered, expected), slopes, self._rows(), emitted.sheet())
        return mean, covariance, noise, measured, applied

    def information(
        self,
        inputs: Array,
        measurements: Array,
        filtered: Filtered,
        directions: Array,
        parts: int = 1,
        expected: bool = False,
    ) -> Array:
        """The information on quantities that move the first mean along `directions` (NZ, N), (parts, N, N).

        After each of so many equal parts of the recording; the last is that of all of it.
        """
        gathered = np.zeros((parts, directions.shape[1], directions.shape[1]))
        given = self._given(inputs, measurements, filtered, expected)
        self.package.information.information(*given, np.ascontiguousarray(directions), gathered, self._rows())
        return gathered

    def forecast(self, inputs: Array, measurements: Array, filtered: Filtered, length: int) -> tuple[Array, Array]:
        """Expected measurements 1 to `length` steps after each row and their variances, (K, length, NY) both.

        They are NaN beyond the last row.
        """
        shape = (len(measurements), length, self.package.NY)
        outputs, spreads = np.full(shape, np.nan), np.full(shape, np.nan)
        given = self._given(inputs, measurements, filtered, expected=False)
        self.package.likelihood.forecast(*given, outputs, spreads, self._rows())
        return outputs, spreads

    def _setting(self, expected: bool) -> FilterSetting:
        numbers, Q, R = self.package.numbers["data"], self.process_noise, self.measurement_noise
        if self.signals is not None:
            numbers = numbers.copy()  # the filter writes the signals of each row there
        if is_noisy(self.package):
            nx, Q, R = self.package.NX, Q.copy(), np.zeros_like(R)  # and the noise of each row here
            Q[:nx, :nx] = 0.0
        first = self.mean, self.covariance, self.active
        still = bool(np.array_equal(self.transition, np.eye(len(self.transition))))
        return self.package.likelihood.Setting(*first, Q, R, self.transition, numbers, expected, still)

    def _recording(self, inputs: Array, measurements: Array) -> FilterRecording:
        given = (inputs, measurements) if self.signals is None else (inputs, measurements, self.signals)
        return self.package.likelihood.Recording(*given)

    def _given(
        self, inputs: Array, measurements: Array, filtered: Filtered, expected: bool
    ) -> tuple[FilterSetting, FilterRecording, FilterTrace]:
        """Setting, recording and trace."""
        trace = self.package.likelihood.Trace(*filtered[:-1])
        return self._setting(expected), self._recording(inputs, measurements), trace

    def _rows(self) -> Records:
        return self.package.likelihood.rows()


class Likelihood:
    """The likelihood of recordings as a function of psi."""

    def __init__(self, quantities: Quantities, series: Sequence[Series]) -> None:
        self.quantities, self.series = quantities, list(series)
        self._active = quantities.active
        self._gain, self._covariance = quantities.conditional()
        unknowns = self._active[quantities.package.NX :] - quantities.package.NX
        self._unknowns = unknowns
        self._transition = np.ascontiguousarray(quantities.transition[np.ix_(unknowns, unknowns)])
        self.evaluations = 0

    @property
    def measured(self) -> int:
        """The number of measured entries."""
        return sum(one.measured for one in self.series)

    def filter(self, setting: Setting, recording: int) -> Filter:
        """The filter of one recording under a setting."""
        q = self.quantities
        mean = np.concatenate([setting.starts[recording], setting.theta])
        shift = mean[q.fitted_entries] - self._expected_entries(recording)
        return Filter(
            package=q.package,
            mean=mean + self._gain @ shift,
            covariance=self._covariance,
            active=self._active,
            process_noise=self._noise(setting.noises),
            measurement_noise=setting.noises.measurement_noise,
            transition=self._transition,
            signals=self.series[recording].signals,
        )

    def _expected_entries(self, recording: int) -> Array:
        q = self.quantities
        expected = q.prior.mean[q.fitted_entries].copy()
        if q.flat and len(q.states):
            expected[len(q.constants) :] = q.first_states[recording, q.states]
        return expected

    def _noise(self, noises: Noises) -> Array:
        nx, size = self.quantities.package.NX, len(self._active)
        both = np.zeros((size, size))
        both[:nx, :nx] = noises.process_noise
        both[nx:, nx:] = noises.drift[np.ix_(self._unknowns, self._unknowns)]
        return both

    def at(self, psi: Array) -> Value:
        """log p(y | psi) with its gradient."""
        q = self.quantities
        self.evaluations += 1
        nx, setting = q.package.NX, q.setting(psi)
        slope = Slope(
            np.zeros(q.package.NTHETA),
            np.zeros_like(setting.starts),
            Noises(*(np.zeros_like(m) for m in setting.noises)),
        )
        total = 0.0
        for number, one in enumerate(self.series):
            own = self.filter(setting, number)
            filtered = own.run(one.inputs, one.measurements)
            if not math.isfinite(filtered.log_likelihood):
                return Value(-math.inf, np.zeros(q.size))
            total += filtered.log_likelihood
            mean, _, noise, measured, _ = own.back(one.inputs, one.measurements, filtered)
            mean[q.fitted_entries] += self._gain.T @ mean
            slope.theta[:] += mean[nx:]
            slope.starts[number] += mean[:nx]
            slope.noises.process_noise[:] += noise[:nx, :nx]
            slope.noises.drift[np.ix_(self._unknowns, self._unknowns)] += noise[nx:, nx:]
            slope.noises.measurement_noise[:] += measured
        gradient = q.pull(psi, slope)
        if not (math.isfinite(total) and np.isfinite(gradient).all()):
            return Value(-math.inf, np.zeros(q.size))
        return Value(total, gradient)

    def filtered(self, psi: Array) -> list[Filtered]:
        """What the filter makes of each recording under psi."""
        setting = self.quantities.setting(psi)
        return [self.filter(setting, i).run(one.inputs, one.measurements) for i, one in enumerate(self.series)]

    def information(self, psi: Array) -> Array:
        """The expected curvature of -log p by the entries of z_0 among psi, (places, places), for given noise."""
        q, setting = self.quantities, self.quantities.setting(psi)
        total = np.zeros((q.places, q.places))
        directions = self._gain.copy()
        directions[q.fitted_entries, np.arange(len(q.fitted_entries))] = 1.0
        for number, one in enumerate(self.series):
            own = self.filter(setting, number)
            filtered = own.run(one.inputs, one.measurements)
            if not math.isfinite(filtered.log_likelihood) or not directions.shape[1]:
                continue
            where = q.recording_coordinates(number)
            told = own.information(one.inputs, one.measurements, filtered, directions)[-1]
            total[np.ix_(where, where)] += told
        return total
