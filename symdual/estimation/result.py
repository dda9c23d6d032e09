"""What is said of a fit: every quantity with its uncertainty, how the search went, and what to be wary of."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from symdual.estimation.certainty import Correlation
from symdual.estimation.quantities import REACH, START, Quantities, Setting
from symdual.estimation.series import Series
from symdual.runtime.problem import Array
from symdual.shown import first_few, with_deviation

if TYPE_CHECKING:
    from symdual.fitting.result import Fit as ProcessFit


class Estimate(NamedTuple):
    """A fitted number.

    `kind` is "unknown", "start", "process_noise", "measurement_noise", "drift" or "hyperparameter"; variances and
    covariances are values of noise. `deviation` is its standard error, None where there is none; `first` where the
    search began, `before` the prior deviation, None without a prior; `verdict` is one of `Certainty`.
    """

    name: str
    kind: str
    value: float
    deviation: float | None
    first: float
    before: float | None
    verdict: str

    def sentence(self) -> str | None:
        """What to know before using a value that is not determined."""
        if self.verdict == "prior":
            return f'the recordings say nothing about "{self.name}": it keeps its prior'
        if self.verdict == "open":
            return f'"{self.name}" is not determined by the recordings'
        if self.verdict != "determined":
            far = math.exp(2 * REACH)
            meaning = "there is none to be seen" if "lower" in self.verdict else "the model does not explain them"
            return f'"{self.name}" ended {self.verdict}, {far:g} times off its start: in these recordings {meaning}'
        return None


class FirstState(NamedTuple):
    """The first state of a recording: mean (NX,) and covariance (NX, NX)."""

    recording: str
    mean: Array
    covariance: Array


class Fit(NamedTuple):
    """The outcome of a fit.

    `estimates` are all fitted numbers; `unknowns` the names of the fitted unknowns with `mean` (N,) and `covariance`
    (N, N), which make the new prior; `setting` all numbers of the fitted model; `starts` the first state of each
    recording, empty if it was not fitted. The likelihoods are those of the recordings under the fitted model and under
    the model's own numbers. `psi` and `psi_covariance` are the end of the search, `open_states` the numbers of
    the states whose first value was fitted; the last `remembering` states are inputs of the past.
    `quantities` are the coordinates of the search, `processes` is a fit of Gaussian processes in its own form.
    """

    model: str
    method: str
    estimates: tuple[Estimate, ...]
    unknowns: tuple[str, ...]
    mean: Array
    covariance: Array
    setting: Setting
    starts: tuple[FirstState, ...]
    log_likelihood: float
    start_log_likelihood: float
    correlations: tuple[Correlation, ...]
    recordings: tuple[Series, ...]
    measured: int
    searches: int
    agreeing: int
    evaluations: int
    converged: bool
    warnings: tuple[str, ...]
    psi: Array
    psi_covariance: Array
    open_states: tuple[int, ...]
    remembering: int = 0
    quantities: Quantities | None = None
    processes: ProcessFit | None = None

    def __repr__(self) -> str:
        parts = [with_deviation(e.name, e.value, e.deviation) for e in self.estimates]
        return f"<Fit of {self.model} to {self.measured} measurements: {first_few(parts)}>"

    def columns(self) -> dict[str, list[Any]]:
        """The estimates as columns, as pandas.DataFrame takes them."""
        return {field: [getattr(e, field) for e in self.estimates] for field in Estimate._fields}

    def __getitem__(self, key: Any) -> Any:
        """An estimate by its name, or a field by its number."""
        if isinstance(key, str):
            return next(e for e in self.estimates if e.name == key)
        return tuple.__getitem__(self, key)

    def to_json(self) -> dict[str, Any]:
        """The fit as plain data: the file that models read."""
        if self.processes is not None:
            return self.processes.to_json()
        own = len(self.setting.noises.process_noise) - self.remembering
        noises = {kind for e in self.estimates if (kind := e.kind) not in ("unknown", START)}
        content: dict[str, Any] = {
            "model": self.model,
            "method": self.method,
            "unknowns": {
                e.name: {
                    "value": rounded(e.value),
                    "standard_deviation": rounded(e.deviation, 6),
                    "start": rounded(e.first),
                    "prior_standard_deviation": rounded(e.before, 6),
                    "verdict": e.verdict,
                }
                for e in self.estimates
                if e.kind == "unknown"
            },
            "covariance": _numbers(self.covariance),
        }
        for kind in ("process_noise", "measurement_noise", "drift"):
            if kind in noises:
                matrix = getattr(self.setting.noises, kind)
                matrix = matrix[:own, :own] if kind == "process_noise" else matrix
                full = np.any(matrix - np.diag(np.diag(matrix)))
                content[kind] = _numbers(matrix if full else np.diag(matrix))
        if self.starts:
            mean, covariance = first_state(self.starts)
            content["start"] = {
                "mean": _numbers(mean[:own]),
                "covariance": _numbers(covariance[:own, :own]),
                "recordings": {s.recording: _numbers(s.mean[:own]) for s in self.starts},
            }
        content["standard_errors"] = {
            e.name: rounded(e.deviation, 6) for e in self.estimates if e.kind not in ("unknown", START)
        }
        return content | {
            "log_likelihood": rounded(self.log_likelihood),
            "start_log_likelihood": rounded(self.start_log_likelihood),
            "recordings": {s.name: len(s.times) for s in self.recordings},
            "measured": self.measured,
            "searches": self.searches,
            "agreeing": self.agreeing,
            "converged": self.converged,
            "correlations": [[c.one, c.other, rounded(c.value, 4)] for c in self.correlations],
            "warnings": list(self.warnings),
        }


def first_state(starts: tuple[FirstState, ...]) -> tuple[Array, Array]:
    """Where a recording begins: the mean of the first states, their mean uncertainty and how much they differ."""
    means = np.array([s.mean for s in starts])
    covariance = np.mean([s.covariance for s in starts], axis=0)
    if len(starts) > 1:
        off = means - means.mean(axis=0)
        covariance = covariance + off.T @ off / (len(starts) - 1)
    return means.mean(axis=0), covariance


def sentences(result: Fit) -> Iterator[str]:
    """What to be wary of."""
    yield from result.warnings
    for pair in result.correlations:
        yield pair.sentence()


def rounded(value: float | None, digits: int = 10) -> float | None:
    """The value with so many significant digits, which rounding in a search does not reach; None if not finite."""
    return float(f"{value:.{digits}g}") if value is not None and math.isfinite(value) else None


def _numbers(array: Array) -> Any:
    return [_numbers(part) for part in array] if array.ndim else float(f"{float(array):.12g}")
