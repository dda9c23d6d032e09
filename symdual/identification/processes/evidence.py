"""log p(y | hyperparameters) of the linearised system, with its gradient.

In the coordinates of `whitening`, with the values g ~ N(0, K(psi)) of the processes at the points of the linearisation,
K_ij = tau(t_i, t_j) kappa(s_i, s_j) for values of the same output and zero otherwise, and H = W L:

    G = 1 + H K H',    log p = -1/2 w' G^-1 w - 1/2 log|G| - 1/2 log|G_0| - N/2 log 2 pi
    d log p / d psi = 1/2 tr( H' (a a' - G^-1) H dK/dpsi ),       a = G^-1 w,       psi = log of the hyperparameters

dK/dpsi comes from the derivatives of the kernel by its constants, found symbolically. More measurements than values are
first turned so that H ends in zeros (H = Q R): what stands there is noise, whatever psi. Deviations of noise among psi
are new whitenings; the derivatives by them come from `score`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag, cho_solve, qr, solve_triangular

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.derive.branches import derivative
from symdual.identification.likelihood import Value
from symdual.identification.processes.linearised import Block, Linearised, MeanFunction
from symdual.identification.processes.score import Score, score
from symdual.identification.processes.setup import ProcessSetup
from symdual.identification.processes.whitening import Whitened, whiten
from symdual.spec.numeric import as_numpy
from symdual.spec.symbols import Family

SAME = 1e-13  #: logarithms of deviations that differ by no more are the same
#: Shares of the mean of its diagonal that are added to G, one after another, until it is positive definite.
JITTERS = (0.0, *(10.0**n for n in range(-15, -5)))


class CovarianceFunction:
    """The kernel of a process as a function of points and hyperparameters, with its derivatives by the latter."""

    def __init__(self, family: Family) -> None:
        assert family.process is not None
        self.names = tuple(str(c.name) for c in family.constants)
        symbols = [*family.arguments, *family.process.places, *family.constants]
        kappa = family.process.kernel
        self._value = as_numpy(symbols, [kappa])
        self._derivatives = as_numpy(symbols, [derivative(kappa, c) for c in family.constants])

    def gram(self, points: Array, others: Array, values: Sequence[float]) -> Array:
        """kappa for all pairs, (N, M)."""
        return self._evaluated(self._value, points, others, values)[0]

    def pairs(self, points: Array, others: Array, values: Sequence[float]) -> Array:
        """kappa for the points of one list and those of another, one by one, (N,)."""
        (found,) = self._value(*points.T, *others.T, *values)
        return np.broadcast_to(np.asarray(found, dtype=np.float64), (len(points),))

    def derivatives(self, points: Array, others: Array, values: Sequence[float]) -> list[Array]:
        """d kappa / d hyperparameter for all pairs, in the order of `names`."""
        return self._evaluated(self._derivatives, points, others, values)

    @staticmethod
    def _evaluated(
        function: Callable[..., list[Any]], points: Array, others: Array, values: Sequence[float]
    ) -> list[Array]:
        found = function(*points.T[:, :, None], *others.T[:, None, :], *values)
        return [np.broadcast_to(np.asarray(f, dtype=np.float64), (len(points), len(others))) for f in found]


class Posterior(NamedTuple):
    """What the data say of the processes: their values (T, values of a step) and mean functions, and w' G^-1 w."""

    values: Array
    mean: MeanFunction
    misfit: float


class Elsewhere(NamedTuple):
    """Values of all outputs of all processes at other points, one after the other: mean (N,) and covariance (N, N).

    `shared` (values, N) is their covariance with the values along the recording. All are given the data.
    """

    mean: Array
    covariance: Array
    shared: Array


class Evidence:
    """The marginal likelihood of one linearisation as a function of psi; the setup has the noise of one psi."""

    def __init__(
        self, setup: ProcessSetup, functions: Sequence[CovarianceFunction], system: Linearised, whitened: Whitened
    ) -> None:
        self.setup, self.system, self.whitened = setup, system, whitened
        self.functions = functions
        _require_finite(whitened.residual @ whitened.residual, np.sum(whitened.response**2))
        self._names = [str(c.name) for c in setup.hyperparameters]
        self._own, self._beside, self.evaluations = setup.noise_psi, self, 0
        self._constant = whitened.log_determinant + len(whitened.residual) * math.log(2.0 * math.pi)
        self._residual, self._response = whitened.residual, whitened.response
        if self._response.shape[0] > self._response.shape[1]:
            Q, self._response = qr(whitened.response, mode="economic")
            self._residual = Q.T @ whitened.residual
        self._noise_misfit = float(whitened.residual @ whitened.residual - self._residual @ self._residual)
        self._tau = [setup.drifts[b.family.name].between(b.times, b.times) for b in system.blocks]
        #: H for each output of each process
        self._responses = [[np.ascontiguousarray(self._response[:, c]) for c in b.columns] for b in system.blocks]

    def under(self, psi: Array) -> Evidence:
        """The same linearisation under the noise of psi."""
        noise = psi[len(self._names) :]
        for known in (self, self._beside):
            if np.all(np.abs(noise - known._own) < SAME):
                return known
        setup = self.setup.under(psi)
        self._beside = Evidence(setup, self.functions, self.system, whiten(setup, self.system))
        return self._beside

    def at(self, psi: Array) -> Value:
        """log p and its gradient."""
        own, count = self.under(psi), len(self._names)
        self.evaluations += 1
        value = own._by_hyperparameters(psi[:count])
        if not self.setup.blocks:
            return value
        by_noise = own.score(psi).slopes.pulled(own.setup.blocks, own.setup.noise_psi)
        _require_finite(by_noise)
        return value._replace(gradient=np.concatenate([value.gradient, by_noise]))

    def score(self, psi: Array) -> Score:
        """The derivatives by the noise, and what is known of z_0 given the data."""
        own = self.under(psi)
        covariances = own._covariances(psi)
        factor, _ = own._factor(covariances)
        V = np.zeros((own._response.shape[1],) * 2)
        reached = np.zeros((len(factor), len(V)))  # H K
        for K, (block, _, _, responses) in zip(covariances, own._each(), strict=True):
            for columns, H in zip(block.columns, responses, strict=True):
                V[np.ix_(columns, columns)] = K
                reached[:, columns] = H @ K
        half = solve_triangular(factor, reached, lower=True)
        return score(own.setup, self.system, own.whitened, own.posterior(psi).values, V - half.T @ half)

    def _by_hyperparameters(self, psi: Array) -> Value:
        factor, _ = self._factor(self._covariances(psi))
        half = solve_triangular(factor, self._residual, lower=True)
        gradient = np.zeros(len(psi))
        for block, function, tau, responses in self._each():
            inner = np.zeros_like(tau)
            for H in responses:
                U = solve_triangular(factor, H, lower=True)
                v = U.T @ half
                inner += np.outer(v, v) - U.T @ U
            inner *= tau
            values = self.values_of(function, psi)
            slopes = function.derivatives(block.points, block.points, values)
            for name, value, slope in zip(function.names, values, slopes, strict=True):
                gradient[self._names.index(name)] += 0.5 * value * float(np.sum(inner * slope))
        misfit = self._noise_misfit + float(half @ half)
        determinant = 2.0 * float(np.log(np.diag(factor)).sum())
        _require_finite(misfit, determinant, gradient)
        return Value(-0.5 * (misfit + determinant + self._constant), gradient)

    def jitter(self, psi: Array) -> float:
        """The share of its mean variance that was added to G."""
        own = self.under(psi)
        return own._factor(own._covariances(psi))[1]

    def posterior(self, psi: Array) -> Posterior:
        """The processes given the data: E g = K v with the weights v = H' G^-1 w."""
        if (own := self.under(psi)) is not self:
            return own.posterior(psi)
        covariances = self._covariances(psi)
        factor, _ = self._factor(covariances)
        a = cho_solve((factor, True), self._residual)
        steps, _, count = self.system.gains.shape
        values = np.zeros(steps * count)
        weights = []
        for K, (block, _, _, responses) in zip(covariances, self._each(), strict=True):
            weights.append(np.stack([H.T @ a for H in responses]))
            for columns, own in zip(block.columns, weights[-1], strict=True):
                values[columns] = K @ own
        mean = MeanFunction(self.system.blocks, tuple(weights))
        return Posterior(values.reshape(steps, count), mean, self._noise_misfit + float(self._residual @ a))

    def elsewhere(self, psi: Array, points: Sequence[Array]) -> Elsewhere:
        """The processes at other points (one array for each process), which do not drift."""
        if (own := self.under(psi)) is not self:
            return own.elsewhere(psi, points)
        covariances = self._covariances(psi)
        factor, _ = self._factor(covariances)
        means, priors, shared, reached, along = [], [], [], [], np.zeros((len(factor), self._response.shape[1]))
        a = cho_solve((factor, True), self._residual)
        for K, other, (block, function, _, responses) in zip(covariances, points, self._each(), strict=True):
            values = self.values_of(function, psi)
            between, among = function.gram(block.points, other, values), function.gram(other, other, values)
            for columns, H in zip(block.columns, responses, strict=True):
                along[:, columns] = H @ K
                reached.append(H @ between)
                means.append(reached[-1].T @ a)
                priors.append(among)
                shared.append(np.zeros((along.shape[1], len(other))))
                shared[-1][columns] = between
        half = solve_triangular(factor, np.concatenate(reached, axis=1), lower=True)
        beside = solve_triangular(factor, along, lower=True)
        return Elsewhere(
            np.concatenate(means),
            block_diag(*priors) - half.T @ half,
            np.concatenate(shared, axis=1) - beside.T @ half,
        )

    def _each(self) -> Iterator[tuple[Block, CovarianceFunction, Array, list[Array]]]:
        """Each process: where it is evaluated, its kernel, tau and the response to each of its outputs."""
        return zip(self.system.blocks, self.functions, self._tau, self._responses, strict=True)

    def _covariances(self, psi: Array) -> list[Array]:
        """K of each process."""
        found = []
        for block, function, tau, _ in self._each():
            found.append(tau * function.gram(block.points, block.points, self.values_of(function, psi)))
            if not np.all(np.isfinite(found[-1])):
                raise SymdualError(f'the kernel of "{block.family.name}" is NaN or infinite at points of the recording')
        return found

    def values_of(self, function: CovarianceFunction, psi: Array) -> list[float]:
        """The hyperparameters of one kernel."""
        return [math.exp(psi[self._names.index(name)]) for name in function.names]

    def _factor(self, covariances: list[Array]) -> tuple[Array, float]:
        """The Cholesky factor of G, and the jitter that it took."""
        G = np.eye(len(self._residual))
        for K, responses in zip(covariances, self._responses, strict=True):
            for H in responses:
                G += H @ K @ H.T
        size = float(np.trace(G)) / len(G)
        for jitter in JITTERS:
            try:
                return np.asarray(np.linalg.cholesky(G + jitter * size * np.eye(len(G))), dtype=np.float64), jitter
            except np.linalg.LinAlgError:
                continue
        raise SymdualError(
            "the covariance of the measurements is not positive definite; the model has too little noise"
        )


def _require_finite(*numbers: Array | float) -> None:
    """Raise when squares of what was recorded are beyond the numbers."""
    if not all(np.all(np.isfinite(number)) for number in numbers):
        raise SymdualError(
            "the likelihood of the recording is not a number: its inputs or measurements are too large, or the model "
            "goes to infinity along it"
        )
