"""The emitted filter over a recording: forwards, backwards for derivatives, and its sensitivities."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from symdual.common.arrays import Array
from symdual.entries.likelihood import FilterRecording, FilterSetting, FilterTrace
from symdual.entries.types import Records
from symdual.identification.noise import Indices
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.noise import has_state_dependent_noise


class Filtered(NamedTuple):
    """What the filter makes of a recording.

    Means (K + 1, NZ) and covariances (K + 1, NA, NA) before each row and after the last; the expected measurements
    (K, NY) with their variances (K, NY); the innovations (K, NY) whitened, so that they are independent of unit
    variance under the model; log-likelihood, normalised innovation squared and number of measured entries (K, 3).
    """

    means: Array
    covariances: Array
    outputs: Array
    variances: Array
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
        outputs, variances, whites, stats = (np.full((K, c), np.nan) for c in (NY, NY, NY, 3))
        emitted = self.package.likelihood
        trace = emitted.Trace(means, covariances, outputs, variances, whites, stats)
        likelihood = emitted.forward(
            self._setting(expected), self._recording(inputs, measurements), trace, emitted.rows()
        )
        return Filtered(means, covariances, outputs, variances, whites, stats, float(likelihood))

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
        emitted.reverse(
            *self._given(inputs, measurements, filtered, expected),
            slopes,
            self._rows(),
            emitted.make_gradient_scratch(),
        )
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
        outputs, variances = np.full(shape, np.nan), np.full(shape, np.nan)
        given = self._given(inputs, measurements, filtered, expected=False)
        self.package.likelihood.forecast(*given, outputs, variances, self._rows())
        return outputs, variances

    def _setting(self, expected: bool) -> FilterSetting:
        numbers, Q, R = self.package.numbers["data"], self.process_noise, self.measurement_noise
        if self.signals is not None:
            numbers = numbers.copy()  # the filter writes the signals of each row there
        if has_state_dependent_noise(self.package):
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
