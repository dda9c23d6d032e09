"""What is said of a fit: the hyperparameters with their uncertainty, how the search ended, and what to be wary of."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from symdual.estimation.certainty import Certainty as Told
from symdual.estimation.certainty import Correlation, correlations
from symdual.estimation.quantities import START
from symdual.estimation.series import oddities
from symdual.fitting.certainty import WIDEST, Certainty, blurs, certainty, covariance
from symdual.fitting.noise import Noises, parts
from symdual.fitting.optimum import REACH, STARTS, Optimum, maximise
from symdual.fitting.score import Known
from symdual.fitting.task import Task, parameters, z_names
from symdual.fitting.whitening import NOISE_FLOOR, Whitened
from symdual.numbers import Array
from symdual.runtime.replay import consistency

#: `Blur.change` from which on the linearisation is called rough: for a squared exponential, half a length-scale.
BLURRED = 0.12


class Hyperparameter(NamedTuple):
    """A fitted number: where it started, its value, the standard deviation of its logarithm, and a verdict.

    An entry of a full matrix of noise has a standard deviation `error` of its own, and a covariance no logarithm.
    """

    name: str
    start: float
    value: float
    certainty: Certainty
    error: float | None = None

    @property
    def determined(self) -> bool:
        """Whether the data tell this number."""
        return self.certainty.verdict == "determined"

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the value itself."""
        if not self.determined:
            return None
        return _rounded(self.value * self.certainty.deviation if self.error is None else self.error, 4)

    @property
    def factor(self) -> float | None:
        """The standard deviation as a factor: the value lies between value / factor and value * factor."""
        known = self.determined and (self.error is None or self.value > 0)
        deviation = self.certainty.deviation if self.error is None else self.error / self.value if known else 0.0
        return _rounded(math.exp(deviation), 4) if known else None

    def sentence(self) -> str | None:
        """What to know before using an undetermined value."""
        if self.certainty.verdict == "flat":
            return (
                f'"{self.name}" is not determined by the data: values {WIDEST:g} times off explain them nearly as '
                "well, if the other hyperparameters follow"
            )
        if self.certainty.verdict not in ("determined", "held"):
            return (
                f'"{self.name}" is {self.certainty.verdict}, {math.exp(REACH):g} times off its start: either the data '
                "do not determine it, or it starts far from its value"
            )
        return None


class Unknown(NamedTuple):
    """An entry of z_0 that the processes do not contain: its value with its deviation, and those of its prior."""

    name: str
    value: float
    deviation: float
    prior_value: float
    prior_deviation: float


class Fit(NamedTuple):
    """The outcome of a fit; `misfit` is w' G^-1 w, the sum of the squared normalised residuals.

    `noises` are variances and covariances; `unknowns` are parameters, `begins` the first states of the recordings,
    (states each). `known` are means and covariances at the begin of each recording. `optimum` is the end of the search,
    `spread` the covariance of its coordinates, `correlations` those of them that are hardly told apart.
    """

    task: Task
    hyperparameters: tuple[Hyperparameter, ...]
    noises: tuple[Hyperparameter, ...]
    unknowns: tuple[Unknown, ...]
    begins: tuple[tuple[Unknown, ...], ...]
    known: tuple[Known, ...]
    log_likelihood: float
    start_log_likelihood: float
    measured: int
    misfit: float
    rounds: int
    converged: bool
    warnings: tuple[str, ...]
    optimum: Optimum
    spread: Array
    correlations: tuple[Correlation, ...]

    @property
    def noise(self) -> Noises:
        """The fitted covariances of the noise."""
        return self.task.under(self.optimum.psi).matrices

    def to_json(self) -> dict[str, Any]:
        """The fit as plain data; the file that models read is made of its first entries."""
        return {
            "model": self.task.model.name,
            "hyperparameters": {
                h.name: {
                    "value": h.value,
                    "start": h.start,
                    "standard_deviation": h.deviation,
                    "factor": h.factor,
                    "determined": h.determined,
                }
                for h in self.hyperparameters
            },
            **self._learned(),
            "log_likelihood": _rounded(self.log_likelihood, 10),
            "start_log_likelihood": _rounded(self.start_log_likelihood, 10),
            "rows": self.task.rows,
            "steps": self.task.steps,
            "measured": self.measured,
            "misfit_per_measurement": _rounded(self.misfit / self.measured, 6),
            "rounds": self.rounds,
            "converged": self.converged,
            "correlations": [[c.one, c.other, _rounded(c.value, 4)] for c in self.correlations],
            "warnings": list(self.warnings),
        }

    def _learned(self) -> dict[str, Any]:
        """What `Model(fitted=)` and `Scenario(fitted=)` read."""
        n, own = len(self.task.model.states), len(self.task.model.own_states)
        fitted = {block.kind for block in self.task.noises}
        content: dict[str, Any] = {}
        if self.unknowns:
            kept = [n + z_names(self.task.derivation)[n:].index(u.name) for u in self.unknowns]
            content["unknowns"] = {
                u.name: {
                    "value": u.value,
                    "standard_deviation": u.deviation,
                    "start": u.prior_value,
                    "prior_standard_deviation": u.prior_deviation,
                }
                for u in self.unknowns
            }
            content["covariance"] = _rows(self.known[0].covariance[np.ix_(kept, kept)])
        if "process_noise" in fitted:
            content["process_noise"] = _rows(self.noise.process_noise[:own, :own])
        if "measurement_noise" in fitted:
            content["measurement_noise"] = _rows(self.noise.measurement_noise)
        if "drift" in fitted:
            content["drift"] = [_rounded(v, 10) for v in self.drift]
        if self.begins:
            mean, covariance = self._begin()
            content["start"] = {
                "mean": [_rounded(v, 10) for v in mean[:own]],
                "covariance": _rows(covariance[:own, :own]),
                "recordings": {
                    one.name: [_rounded(v, 10) for v in known.mean[:own]]
                    for one, known in zip(self.task.series, self.known, strict=True)
                },
            }
        if self.noises:
            content["standard_errors"] = {h.name: h.deviation for h in self.noises}
        return content

    @property
    def drift(self) -> Array:
        """The drift of all unknowns: that of a process stays as it is."""
        model, n = self.task.model, len(self.task.model.states)
        drift = np.zeros(len(model.prior_mean)) if model.drift is None else model.drift.copy()
        drift[parameters(self.task.derivation)] = np.diag(self.noise.process_noise)[n:]
        return drift

    def _begin(self) -> tuple[Array, Array]:
        """The first state of the recording; of several, their mean with how much they differ."""
        n = len(self.task.model.states)
        means = np.array([known.mean[:n] for known in self.known])
        within = np.mean([known.covariance[:n, :n] for known in self.known], axis=0)
        return means.mean(axis=0), within + (np.cov(means.T).reshape(n, n) if len(means) > 1 else 0.0)


def _rows(matrix: Array) -> list[list[float]]:
    return [[_rounded(float(v), 10) for v in row] for row in matrix]


def fit(task: Task, report: Callable[[str], None] = lambda text: None, starts: int = STARTS) -> Fit:
    """Fit the hyperparameters of a task, and judge the outcome.

    On one thread: the matrices are small, and so the result does not depend on the number of processors.
    """
    with threadpool_limits(limits=1), np.errstate(over="ignore", invalid="ignore"):  # what is not finite is said
        optimum = maximise(task, report, starts)
        report("measuring the uncertainty")
        spread = covariance(optimum)
    judged, count, n = certainty(optimum, spread), len(task.hyperparameters), len(task.model.states)
    found = tuple(
        Hyperparameter(str(c.name), c.value, _rounded(float(np.exp(p)), 10), verdict)
        for c, p, verdict in zip(task.hyperparameters, optimum.psi[:count], judged[:count], strict=True)
    )
    noises = tuple(_noises(task, optimum, spread, judged))
    begins = optimum.evidence.score(optimum.psi).begins
    unknowns = [i for i in range(n, len(task.start)) if z_names(task.derivation)[i] not in task.held]
    open_states = [i for i in range(n) if task.start_covariance[i, i] > 0 and _start_name(task, i) not in task.held]
    return Fit(
        task=task,
        hyperparameters=found,
        noises=noises,
        unknowns=tuple(_unknown(task, begins[0], i) for i in unknowns),
        begins=tuple(tuple(_unknown(task, begin, i) for i in open_states) for begin in begins) if open_states else (),
        known=begins,
        log_likelihood=optimum.value.log_likelihood,
        start_log_likelihood=optimum.start_log_likelihood,
        measured=len(optimum.evidence.whitened.residual),
        misfit=optimum.posterior.misfit,
        rounds=optimum.rounds,
        converged=optimum.converged,
        warnings=tuple(_warnings(task, optimum, found + noises)),
        optimum=optimum,
        spread=spread,
        correlations=correlations(list(task.names), Told(spread, tuple(c.verdict for c in judged))),
    )


def _noises(task: Task, optimum: Optimum, spread: Array, judged: list[Certainty]) -> Iterator[Hyperparameter]:
    """The entries of the noise: variances by their logarithms, those of full matrices with errors of their own."""
    count = len(task.hyperparameters)
    for block, part in parts(task.noises):
        psi, first = optimum.psi[count:][part], task.noise_psi[part]
        matrix, begun, tangents = block.matrix(psi), block.matrix(first), block.tangents(psi)
        own = spread[count:, count:][part, part]
        for (i, j), name, told in zip(block.entries, block.names, judged[count:][part], strict=True):
            slope = tangents[:, i, j]
            error = math.sqrt(float(slope @ np.where(np.isfinite(own), own, 0.0) @ slope)) if block.full else None
            twice = told._replace(deviation=2.0 * told.deviation)
            if block.full and i != j and told.verdict == "flat":  # its coordinate is no logarithm
                twice = twice._replace(verdict="determined")
            yield Hyperparameter(
                name, _rounded(float(begun[i, j]), 10), _rounded(float(matrix[i, j]), 10), twice, error
            )


def _start_name(task: Task, i: int) -> str:
    return f"{START}[{z_names(task.derivation)[i]}]"


def _unknown(task: Task, known: Known, i: int) -> Unknown:
    def deviation(covariance: Array) -> float:
        return _rounded(math.sqrt(max(float(covariance[i, i]), 0.0)), 6)

    prior = float(task.start[i]), deviation(task.start_covariance)
    return Unknown(z_names(task.derivation)[i], _rounded(float(known.mean[i]), 10), deviation(known.covariance), *prior)


def _warnings(task: Task, optimum: Optimum, found: tuple[Hyperparameter, ...]) -> Iterator[str]:
    """What to be wary of, in sentences."""
    whitened = optimum.evidence.whitened
    yield from oddities(task.series, task.columns)
    if not optimum.converged:
        yield (
            f"the search has not come to rest in {optimum.rounds} rounds: the values are the last ones, not a maximum "
            "of the likelihood"
        )
    yield from (sentence for h in found if (sentence := h.sentence()) is not None)
    if _begins_elsewhere(whitened):
        yield (
            f"the recording does not begin where the scenario {task.scenario} starts: say in start= and "
            "start_covariance= what is known of its first state"
        )
    for blur in blurs(optimum):
        if blur.change > BLURRED:
            yield (
                f'the points at which "{blur.process}" was evaluated are known to about '
                f"{', '.join(f'{d:.2g}' for d in blur.deviations)} only, and within that it changes much: the "
                "linearised model is rough here, a short length-scale may be an artefact"
            )
    fitting = consistency(optimum.posterior.misfit, len(whitened.residual))
    if fitting.verdict != "consistent":
        low, high = fitting.band
        wrong = "small" if fitting.ratio > high else "large"
        yield (
            f"the mean square of the normalised residuals is {fitting.ratio:.3g}, expected {low:.3g} to {high:.3g}: "
            f"process_noise or measurement_noise is too {wrong} for this recording"
        )
    if whitened.raised:
        yield (
            f"the model leaves {whitened.raised} rows with no noise: {NOISE_FLOOR:g} of the variance of the "
            "measurements was added"
        )
    if optimum.value.jitter > 0:
        yield (
            f"the covariance of the measurements is singular to rounding: {optimum.value.jitter:g} of its mean "
            "variance was added"
        )


def _begins_elsewhere(whitened: Whitened) -> bool:
    """Whether the first measurements are what one start in a million would show."""
    from scipy.stats import chi2

    count = len(whitened.surprise)
    surprising = count > 0 and float(whitened.surprise @ whitened.surprise) > float(chi2.ppf(1 - 1e-6, count))
    return surprising or bool(np.any(whitened.unexplained > 1e-6))


def _rounded(value: float, digits: int) -> float:
    """The value with so many significant digits, which rounding in a search does not reach."""
    return float(f"{value:.{digits}g}")
