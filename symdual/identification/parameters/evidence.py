"""log p(y | quantities) over all recordings, with its exact gradient by the emitted filter and its backward pass."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from symdual.common.arrays import Array
from symdual.identification.likelihood import Value
from symdual.identification.noise import Noises
from symdual.identification.parameters.filtering import Filter, Filtered
from symdual.identification.parameters.quantities import Quantities
from symdual.identification.result import Setting
from symdual.runtime.replay import Recording


class Evidence:
    """The likelihood of recordings as a function of psi."""

    def __init__(self, quantities: Quantities, recordings: Sequence[Recording]) -> None:
        self.quantities, self.recordings = quantities, list(recordings)
        self._active = quantities.active
        self._gain, self._covariance = quantities.conditional()
        unknowns = self._active[quantities.package.NX :] - quantities.package.NX
        self._unknowns = unknowns
        self._transition = np.ascontiguousarray(quantities.transition[np.ix_(unknowns, unknowns)])
        self.evaluations = 0

    @property
    def measured(self) -> int:
        """The number of measured entries."""
        return sum(one.measured for one in self.recordings)

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
            signals=self.recordings[recording].signals,
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
        slope = Setting(  # the derivatives by everything
            np.zeros(q.package.NTHETA),
            np.zeros_like(setting.starts),
            Noises(*(np.zeros_like(m) for m in setting.noises)),
        )
        total = 0.0
        for number, one in enumerate(self.recordings):
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
        return [self.filter(setting, i).run(one.inputs, one.measurements) for i, one in enumerate(self.recordings)]

    def information(self, psi: Array) -> Array:
        """The expected curvature of -log p by the entries of z_0 among psi, (places, places), for given noise."""
        q, setting = self.quantities, self.quantities.setting(psi)
        total = np.zeros((q.places, q.places))
        directions = self._gain.copy()
        directions[q.fitted_entries, np.arange(len(q.fitted_entries))] = 1.0
        for number, one in enumerate(self.recordings):
            own = self.filter(setting, number)
            filtered = own.run(one.inputs, one.measurements)
            if not math.isfinite(filtered.log_likelihood) or not directions.shape[1]:
                continue
            where = q.recording_coordinates(number)
            told = own.information(one.inputs, one.measurements, filtered, directions)[-1]
            total[np.ix_(where, where)] += told
        return total
