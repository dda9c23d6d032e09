"""Derivatives of log p by the noise, and what is known of z_0 in the end: the filter of `whitening` backwards.

With the values g of the processes known, the adjoint of the filter and its information are (Bryson and Frazier)

    lam_t = C' S^-1 e + (1 - gain C)' A' lam_{t+1},        Lam_t = C' S^-1 C + (1 - gain C)' A' Lam_{t+1} A (1 - gain C)
    b = S^-1 e - gain' A' lam_{t+1},                       D = S^-1 + gain' A' Lam_{t+1} A gain

lam and b are linear in g, with the coefficients -M_t and -N_t. Given the data, g has the mean g^ and the covariance V:

    d log p / dQ = 1/2 sum_t ( lam lam' - Lam + M V M' )_{t+1},       d log p / dR = 1/2 sum_t ( b b' - D + N V N' )_t
    E z_0 = start + P_0 lam_0,       cov z_0 = P_0 - P_0 (Lam_0 - M_0 V M_0') P_0

lam and b being taken at g^.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from symdual.common.arrays import Array
from symdual.identification.noise import Noises
from symdual.identification.processes.linearised import Linearised
from symdual.identification.processes.setup import ProcessSetup
from symdual.identification.processes.whitening import Whitened, forwards


class Known(NamedTuple):
    """Mean and covariance of z at the begin of a recording, given the data."""

    mean: Array
    covariance: Array


class Score(NamedTuple):
    """Derivatives of log p by the noise, and what is known of the begin of each recording.

    Of the recordings after the first, only the states are meant. `response` (Z, values) is M_0.
    """

    slopes: Noises
    begins: tuple[Known, ...]
    response: Array


def score(setup: ProcessSetup, system: Linearised, whitened: Whitened, values: Array, covariance: Array) -> Score:
    """For values g^ (T, values of a step) with the covariance V (all values, all values)."""
    return _Backwards(setup, system, whitened, covariance).run(forwards(setup, system, whitened, values)[1])


class _Backwards:
    def __init__(self, setup: ProcessSetup, system: Linearised, whitened: Whitened, covariance: Array) -> None:
        self.setup, self.system, self.whitened, self.V = setup, system, whitened, covariance
        size, outputs = len(setup.start), setup.measurements.shape[1]
        self.adjoint = np.zeros(size)
        self.information = np.zeros((size, size))
        self.response = np.zeros((size, len(covariance)))  # M
        self.process_noise, self.measurement_noise = np.zeros((size, size)), np.zeros((outputs, outputs))
        self.begins: list[Known] = []
        self.moved = np.flatnonzero(np.diag(setup.process_noise))
        #: rows of M where there is noise, and of N with zeros where nothing was measured, one step after another
        self.seen: list[Array] = []
        self.shown: list[Array] = []

    def run(self, found: list[Array]) -> Score:
        setup, rows = self.setup, len(self.whitened.response)
        for t in range(setup.steps, -1, -1):
            if t < setup.steps:
                self._predict(t)
            update = self.whitened.updates[t]
            if update is not None:
                rows -= len(update.used)
                self._update(t, self.whitened.response[rows : rows + len(update.used)], found[t])
        self.process_noise[np.ix_(self.moved, self.moved)] += _through(self.seen, self.V)
        self.measurement_noise += _through(self.shown, self.V)
        n, by_noise = len(setup.model.states), 0.5 * self.process_noise
        slopes = Noises(by_noise[:n, :n], 0.5 * self.measurement_noise, by_noise[n:, n:])
        return Score(slopes, (self._known(), *self.begins[::-1]), self.response)

    def _known(self) -> Known:
        """What is known of z before the row that was passed last, if its prior is that of the start."""
        P = self.setup.start_covariance
        told = self.information - self.response @ self.V @ self.response.T
        return Known(self.setup.start + P @ self.adjoint, P - P @ told @ P)

    def _predict(self, t: int) -> None:
        A = self.system.transition[t]
        if t in self.setup.breaks:
            self.begins.append(self._known())
        else:
            self.process_noise += np.outer(self.adjoint, self.adjoint) - self.information
            self.seen.append(self.response[self.moved])
        self.adjoint = A.T @ self.adjoint
        self.information = A.T @ self.information @ A
        self.response = A.T @ self.response

    def _update(self, t: int, whitened_response: Array, residual: Array) -> None:
        update = self.whitened.updates[t]
        assert update is not None
        C, gain = update.observation, update.gain
        inverse = update.whitener.T @ update.whitener
        b = inverse @ residual - gain.T @ self.adjoint
        N = update.whitener.T @ whitened_response - gain.T @ self.response
        D = inverse + gain.T @ self.information @ gain
        self.measurement_noise[np.ix_(update.used, update.used)] += np.outer(b, b) - D
        shown = np.zeros((self.setup.measurements.shape[1], len(self.V)))
        shown[update.used] = N
        self.shown.append(shown)
        kept = np.eye(len(self.adjoint)) - gain @ C
        self.adjoint = self.adjoint + C.T @ b
        self.response = self.response + C.T @ N
        self.information = C.T @ inverse @ C + kept.T @ self.information @ kept


def _through(rows: list[Array], V: Array) -> Array:
    """sum_t M_t V M_t'."""
    stacked = np.array(rows)
    return np.asarray(np.einsum("tin,tjn->ij", stacked @ V, stacked))
