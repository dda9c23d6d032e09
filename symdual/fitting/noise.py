"""Which numbers of a task are fitted: hyperparameters of its processes, and variances of its noise.

Variances are fitted by the logarithms of their deviations; correlations stay as the model has them:

    M_ij(psi) = M_ij exp(psi_i - psi_i^0) exp(psi_j - psi_j^0),      d l / d psi_i = 2 sum_j (dl/dM)_ij M_ij
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from symdual.errors import SymdualError, did_you_mean
from symdual.spec.numbers import Array


class NoiseEntry(NamedTuple):
    """A variance: its name, and its place on the diagonal of the noise of z, or of the measurements."""

    name: str
    measured: bool
    place: int


class Noises(NamedTuple):
    """The covariances of the noise on z (Z, Z) and on the measurements (Y, Y), or derivatives by them."""

    process_noise: Array
    measurement_noise: Array

    def of(self, entry: NoiseEntry) -> Array:
        """The row of the matrix to which an entry belongs."""
        return np.asarray((self.measurement_noise if entry.measured else self.process_noise)[entry.place])

    def variance(self, entry: NoiseEntry) -> float:
        """The variance of an entry."""
        return float(self.of(entry)[entry.place])

    def scaled(self, entries: Sequence[NoiseEntry], psi: Array) -> Noises:
        """With the deviations exp(psi) for these entries."""
        factors = np.ones(len(self.process_noise)), np.ones(len(self.measurement_noise))
        for entry, value in zip(entries, psi, strict=True):
            factors[entry.measured][entry.place] = np.exp(value) / np.sqrt(self.variance(entry))
        return Noises(*(M * np.outer(f, f) for M, f in zip(self, factors, strict=True)))

    def pulled(self, entries: Sequence[NoiseEntry], slopes: Noises) -> Array:
        """The derivatives by psi, from those by the covariances."""
        return np.array([2.0 * float(slopes.of(entry) @ self.of(entry)) for entry in entries])


def open_entries(z_names: Sequence[str], states: int, outputs: Sequence[str], noises: Noises) -> list[NoiseEntry]:
    """The variances that are not zero, in the order of their names in a fit."""
    found = []
    for i, name in enumerate(z_names):
        if noises.process_noise[i, i] > 0:
            found.append(NoiseEntry(f"{'process_noise' if i < states else 'drift'}[{name}]", False, i))
    for i, name in enumerate(outputs):
        if noises.measurement_noise[i, i] > 0:
            found.append(NoiseEntry(f"measurement_noise[{name}]", True, i))
    return found


def chosen(groups: dict[str, list[str]], only: Sequence[str], hold: Sequence[str]) -> set[str]:
    """The names of what is fitted, given all that can be by group (a family, a noise); all by default."""
    members = groups | {name: [name] for names in groups.values() for name in names}
    for name in (*only, *hold):
        if name not in members:
            raise SymdualError(f'there is nothing called "{name}" to fit{did_you_mean(name, list(members))}')
    asked = {n for name in (only or groups) for n in members[name]}
    found = asked - {n for name in hold for n in members[name]}
    if not found:
        raise SymdualError("nothing is left to fit")
    return found
