"""What the measurements say beside the noise: a Kalman filter of the linearised system in which the processes are zero.

The covariance of all measured numbers is G = G_0 + L K L', where G_0 comes from noise, start and unknowns, and L says
how the values of the processes show in the measurements. Only K depends on hyperparameters. The innovations of the
filter are a triangular map of the measurements that makes G_0 the unit matrix:

    w = W (y - E y),       W G_0 W' = 1,       log|G| = log|1 + (W L) K (W L)'| + log|G_0|

W L is what the filter makes of a unit value of a process, and since a filter forgets, its entries do not grow with the
length of a recording as those of L do when the system is unstable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from symdual.common.arrays import Array
from symdual.identification.processes.linearised import Linearised
from symdual.identification.processes.setup import ProcessSetup

#: Where the noise leaves less than this share of the spread of the measurements, as much is added to their variance.
NOISE_FLOOR = 1e-10


class Update(NamedTuple):
    """A row of the recording in the filter: the entries in use with their part of C, S^-1/2, and the gain."""

    row: int
    used: list[int]
    observation: Array
    whitener: Array
    gain: Array


@dataclass(frozen=True, eq=False)
class Whitened:
    """w (N,), W L (N, values), log|G_0|, and the filter itself: covariances before and after each row, and updates.

    `raised` counts the rows whose noise was raised to the floor. `surprise` are the whitened residuals of the first
    row; `unexplained` the other residuals of it, which should be zero, in units of the spread of their columns.
    """

    residual: Array
    response: Array
    log_determinant: float
    predictions: Array
    corrections: Array
    updates: list[Update | None]
    raised: int
    surprise: Array
    unexplained: Array


def variances(measurements: Array) -> Array:
    """The standard deviation of each measured quantity, or one where it has none."""
    values = [column[np.isfinite(column)] for column in measurements.T]
    found = np.array([column.std() if len(column) else 0.0 for column in values])
    return np.where(found > 0, found, 1.0)


def whiten(setup: ProcessSetup, system: Linearised) -> Whitened:
    """Run the filter over the recording."""
    return _Filter(setup, system).run()


class _Filter:
    def __init__(self, setup: ProcessSetup, system: Linearised) -> None:
        self.setup, self.system = setup, system
        self.scale = variances(setup.measurements)
        self.mean, self.covariance = setup.start.copy(), setup.start_covariance.copy()
        steps, size, values = system.gains.shape
        self.response = np.zeros((size, steps * values))
        self.residuals: list[Array] = []
        self.responses: list[Array] = []
        self.log_determinant, self.raised = 0.0, 0
        self.unexplained = np.zeros(0)

    def run(self) -> Whitened:
        setup, system = self.setup, self.system
        rows = {int(t): row for row, t in enumerate(setup.times)}
        predictions, corrections, updates = [], [], []
        values = system.gains.shape[2]
        for t in range(setup.steps + 1):
            predictions.append(self.covariance)
            updates.append(self._update(rows[t]) if t in rows else None)
            corrections.append(self.covariance)
            if t < setup.steps:
                A = system.transition[t]
                self.mean = A @ self.mean + system.offset[t]
                self.covariance = A @ self.covariance @ A.T + setup.noise_at(t)
                self.response[:, : t * values] = A @ self.response[:, : t * values]
                self.response[:, t * values : (t + 1) * values] = system.gains[t]
        first = updates[0]
        return Whitened(
            residual=np.concatenate([np.zeros(0), *self.residuals]),
            response=np.concatenate([np.zeros((0, self.response.shape[1])), *self.responses]),
            log_determinant=self.log_determinant,
            predictions=np.array(predictions),
            corrections=np.array(corrections),
            updates=updates,
            raised=self.raised,
            surprise=np.zeros(0) if first is None or not self.residuals else self.residuals[0][: len(first.used)],
            unexplained=self.unexplained,
        )

    def _update(self, row: int) -> Update | None:
        y = self.setup.measurements[row]
        measured = [i for i in range(len(y)) if np.isfinite(y[i])]
        C = self.system.observation[row]
        residual = y - C @ self.mean - self.system.shift[row]
        S = C @ self.covariance @ C.T + self.setup.measurement_noise
        shown = C @ self.response
        # what is known already and shows nothing of a process tells nothing
        used = [i for i in measured if S[i, i] > 0 or shown[i].any()]
        if row == 0:
            silent = [i for i in measured if i not in used]
            self.unexplained = np.abs(residual[silent]) / self.scale[silent]
        if not used:
            return None
        C, residual, shown, S = C[used], residual[used], shown[used], S[np.ix_(used, used)]
        noise = self.setup.measurement_noise[np.ix_(used, used)]
        scale = self.scale[used]
        if np.linalg.eigvalsh(S / np.outer(scale, scale))[0] < NOISE_FLOOR:
            extra = np.diag(NOISE_FLOOR * scale**2)
            S, noise, self.raised = S + extra, noise + extra, self.raised + 1
        root = np.linalg.cholesky(S)
        whitener = np.linalg.inv(root)
        self.log_determinant += 2.0 * float(np.log(np.diag(root)).sum())
        self.residuals.append(whitener @ residual)
        self.responses.append(whitener @ shown)
        gain = (whitener @ C @ self.covariance).T @ whitener
        kept = np.eye(len(self.mean)) - gain @ C
        self.covariance = kept @ self.covariance @ kept.T + gain @ noise @ gain.T
        self.mean = self.mean + gain @ residual
        self.response -= gain @ shown
        return Update(row, used, C, whitener, gain)


def forwards(
    setup: ProcessSetup, system: Linearised, whitened: Whitened, values: Array
) -> tuple[list[Array], list[Array]]:
    """What the filter predicts at each step given the values of the processes, and what it finds beside that."""
    mean, predicted, residuals = setup.start.copy(), [], []
    for t, update in enumerate(whitened.updates):
        predicted.append(mean)
        residual = np.zeros(0)
        if update is not None:
            y = setup.measurements[update.row, update.used]
            residual = y - update.observation @ mean - system.shift[update.row, update.used]
            mean = mean + update.gain @ residual
        residuals.append(residual)
        if t < setup.steps:
            mean = system.transition[t] @ mean + system.gains[t] @ values[t] + system.offset[t]
    return predicted, residuals


def smooth(setup: ProcessSetup, system: Linearised, whitened: Whitened, values: Array) -> Array:
    """E[z_t | y, g] for all t, (T + 1, Z), given the values of the processes (T, values of a step).

    Forwards the filter, backwards the adjoint (Bryson and Frazier), which needs no inverse of a covariance:

        lam_t = C' S^-1 e + (1 - gain C)' A' lam_{t+1},       z_t = z_t|t-1 + P_t|t-1 lam_t
    """
    predicted, residuals = forwards(setup, system, whitened, values)
    smoothed = np.array(predicted)
    adjoint = np.zeros(smoothed.shape[1])
    for t in range(setup.steps, -1, -1):
        update = whitened.updates[t]
        if t < setup.steps:
            adjoint = system.transition[t].T @ adjoint
        if update is not None:
            source = update.observation.T @ (update.whitener.T @ (update.whitener @ residuals[t]))
            adjoint = source + adjoint - update.observation.T @ (update.gain.T @ adjoint)
        smoothed[t] += whitened.predictions[t] @ adjoint
    return smoothed
