"""What is said of a fit: the hyperparameters with their uncertainty, how the search ended, and what to be wary of."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from symdual.fitting.certainty import WIDEST, Certainty, blurs, certainty
from symdual.fitting.optimum import REACH, Optimum, maximise
from symdual.fitting.score import Known
from symdual.fitting.task import Task, z_names
from symdual.fitting.whitening import NOISE_FLOOR, Whitened
from symdual.runtime.replay import consistency
from symdual.spec.numbers import Array

#: `Blur.change` from which on the linearisation is called rough: for a squared exponential, half a length-scale.
BLURRED = 0.12


class Hyperparameter(NamedTuple):
    """A fitted number: where it started, its value, the standard deviation of its logarithm, and a verdict."""

    name: str
    start: float
    value: float
    certainty: Certainty

    @property
    def determined(self) -> bool:
        """Whether the data tell this number."""
        return self.certainty.verdict == "determined"

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the value itself."""
        return _rounded(self.value * self.certainty.deviation, 4) if self.determined else None

    @property
    def factor(self) -> float | None:
        """The standard deviation as a factor: the value lies between value / factor and value * factor."""
        return _rounded(math.exp(self.certainty.deviation), 4) if self.determined else None

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

    `noises` are variances; `unknowns` are parameters, `begins` the first states of the recordings, (states each).
    `known` are means and covariances at the begin of each recording.
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
            "rows": len(self.task.times),
            "steps": self.task.steps,
            "measured": self.measured,
            "misfit_per_measurement": _rounded(self.misfit / self.measured, 6),
            "rounds": self.rounds,
            "converged": self.converged,
            "warnings": list(self.warnings),
        }

    def _learned(self) -> dict[str, Any]:
        """What `Model(fitted=)` and `Scenario(fitted=)` read."""
        n, task = len(self.task.model.states), self.task
        process_noise = np.diag([self._variance(i, False) for i in range(n)])
        outputs = range(len(task.measurement_noise))
        content: dict[str, Any] = {}
        if self.unknowns:
            content["unknowns"] = {
                u.name: {
                    "value": u.value,
                    "standard_deviation": u.deviation,
                    "start": u.prior_value,
                    "prior_standard_deviation": u.prior_deviation,
                }
                for u in self.unknowns
            }
            content["covariance"] = _rows(self.known[0].covariance[n:, n:])
        if any(not e.measured and e.place < n for e in task.noises):
            content["process_noise"] = _rows(process_noise + _correlations(task.process_noise[:n, :n], process_noise))
        if any(e.measured for e in task.noises):
            measured = np.diag([self._variance(i, True) for i in outputs])
            content["measurement_noise"] = _rows(measured + _correlations(task.measurement_noise, measured))
        if self.begins:
            mean, covariance = self._begin()
            content["start"] = {"mean": [_rounded(v, 10) for v in mean], "covariance": _rows(covariance)}
        if self.noises:
            content["standard_errors"] = {h.name: h.deviation for h in self.noises}
        return content

    def _variance(self, place: int, measured: bool) -> float:
        for entry, h in zip(self.task.noises, self.noises, strict=True):
            if (entry.place, entry.measured) == (place, measured):
                return h.value
        return float((self.task.measurement_noise if measured else self.task.process_noise)[place, place])

    def _begin(self) -> tuple[Array, Array]:
        """The first state of the recording; of several, their mean with how much they differ."""
        n = len(self.task.model.states)
        means = np.array([known.mean[:n] for known in self.known])
        within = np.mean([known.covariance[:n, :n] for known in self.known], axis=0)
        return means.mean(axis=0), within + (np.cov(means.T).reshape(n, n) if len(means) > 1 else 0.0)


def _correlations(before: Array, variances: Array) -> Array:
    """The covariances that keep the correlations of a matrix with these variances on its diagonal."""
    old, new = np.sqrt(np.diag(before)), np.sqrt(np.diag(variances))
    factors = np.divide(new, old, out=np.zeros_like(old), where=old > 0)
    moved = before * np.outer(factors, factors)
    return np.asarray(moved - np.diag(np.diag(moved)))


def _rows(matrix: Array) -> list[list[float]]:
    return [[_rounded(float(v), 10) for v in row] for row in matrix]


def fit(task: Task, report: Callable[[str], None] = lambda text: None) -> Fit:
    """Fit the hyperparameters of a task, and judge the outcome.

    On one thread: the matrices are small, and so the result does not depend on the number of processors.
    """
    with threadpool_limits(limits=1), np.errstate(over="ignore", invalid="ignore"):  # what is not finite is said
        optimum = maximise(task, report)
        report("measuring the uncertainty")
        judged = certainty(optimum)
    count = len(task.hyperparameters)
    found = tuple(
        Hyperparameter(str(c.name), c.value, _rounded(float(np.exp(p)), 10), verdict)
        for c, p, verdict in zip(task.hyperparameters, optimum.psi[:count], judged[:count], strict=True)
    )
    noises = tuple(
        Hyperparameter(
            entry.name,
            _rounded(float(np.exp(2.0 * first)), 10),
            _rounded(float(np.exp(2.0 * p)), 10),
            verdict._replace(deviation=2.0 * verdict.deviation),
        )
        for entry, first, p, verdict in zip(
            task.noises, task.psi[count:], optimum.psi[count:], judged[count:], strict=True
        )
    )
    begins = optimum.evidence.score(optimum.psi).begins
    n = len(task.model.states)
    open_states = [i for i in range(n) if task.start_covariance[i, i] > 0]
    return Fit(
        task=task,
        hyperparameters=found,
        noises=noises,
        unknowns=tuple(_unknown(task, begins[0], i) for i in range(n, len(task.start))),
        begins=tuple(tuple(_unknown(task, begin, i) for i in open_states) for begin in begins) if open_states else (),
        known=begins,
        log_likelihood=optimum.value.log_likelihood,
        start_log_likelihood=optimum.start_log_likelihood,
        measured=len(optimum.evidence.whitened.residual),
        misfit=optimum.posterior.misfit,
        rounds=optimum.rounds,
        converged=optimum.converged,
        warnings=tuple(_warnings(task, optimum, found + noises)),
    )


def _unknown(task: Task, known: Known, i: int) -> Unknown:
    def deviation(covariance: Array) -> float:
        return _rounded(math.sqrt(max(float(covariance[i, i]), 0.0)), 6)

    prior = float(task.start[i]), deviation(task.start_covariance)
    return Unknown(z_names(task.derivation)[i], _rounded(float(known.mean[i]), 10), deviation(known.covariance), *prior)


def _warnings(task: Task, optimum: Optimum, found: tuple[Hyperparameter, ...]) -> Iterator[str]:
    """What to be wary of, in sentences."""
    whitened = optimum.evidence.whitened
    if task.ignored:
        yield f"columns that the model does not know: {', '.join(task.ignored)}"
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
