"""What is said of a fit: the hyperparameters with their uncertainty, how the search ended, and what to be wary of."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from symdual.fitting.certainty import WIDEST, Certainty, blurs, certainty
from symdual.fitting.optimum import REACH, Optimum, maximise
from symdual.fitting.task import Task
from symdual.fitting.whitening import NOISE_FLOOR, Whitened
from symdual.runtime.replay import consistency

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
        if self.certainty.verdict != "determined":
            return (
                f'"{self.name}" is {self.certainty.verdict}, {math.exp(REACH):g} times off its start: either the data '
                "do not determine it, or it starts far from its value"
            )
        return None


class Fit(NamedTuple):
    """The outcome of a fit; `misfit` is w' G^-1 w, the sum of the squared normalised residuals."""

    task: Task
    hyperparameters: tuple[Hyperparameter, ...]
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


def fit(task: Task, report: Callable[[str], None] = lambda text: None) -> Fit:
    """Fit the hyperparameters of a task, and judge the outcome.

    On one thread: the matrices are small, and so the result does not depend on the number of processors.
    """
    with threadpool_limits(limits=1), np.errstate(over="ignore", invalid="ignore"):  # what is not finite is said
        optimum = maximise(task, report)
        report("measuring the uncertainty")
        judged = certainty(optimum)
    found = tuple(
        Hyperparameter(str(c.name), c.value, _rounded(float(np.exp(p)), 10), verdict)
        for c, p, verdict in zip(task.hyperparameters, optimum.psi, judged, strict=True)
    )
    return Fit(
        task=task,
        hyperparameters=found,
        log_likelihood=optimum.value.log_likelihood,
        start_log_likelihood=optimum.start_log_likelihood,
        measured=len(optimum.evidence.whitened.residual),
        misfit=optimum.posterior.misfit,
        rounds=optimum.rounds,
        converged=optimum.converged,
        warnings=tuple(_warnings(task, optimum, found)),
    )


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
