"""What is said of a fit: every quantity with its uncertainty, how the search went, and what to be wary of."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from symdual.common.arrays import Array
from symdual.common.display import first_few, with_deviation
from symdual.identification.noise import NOISES, REACH, NoiseBlock, Noises, parts
from symdual.identification.standard_errors import WIDEST, Certainty, Correlation
from symdual.runtime.replay import Recording

if TYPE_CHECKING:
    from symdual.identification.likelihood import Likelihood, Optimum


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

    @property
    def factor(self) -> float | None:
        """The standard error of a positive number as a factor, which lies between value / factor and value * factor."""
        positive = self.kind in ("hyperparameter", *NOISES) and self.value > 0
        return math.exp(self.deviation / self.value) if positive and self.deviation is not None else None

    def sentence(self) -> str | None:
        """What to know before using a value that is not determined."""
        if self.verdict == "determined":
            return None
        if self.verdict == "prior":
            return f'the recordings say nothing about "{self.name}": it keeps its prior'
        if self.verdict == "open":
            near = f": values {WIDEST:g} times off explain them nearly as well, if the others follow"
            said = f'"{self.name}" is not determined by the recordings'
            return said + (near if self.kind == "hyperparameter" else "")
        if self.kind == "hyperparameter":
            far, meaning = math.exp(REACH), "either the recordings do not determine it, or it starts far from its value"
        else:
            far, side = math.exp(2 * REACH), "lower" in self.verdict
            meaning = f"in these recordings {'there is none to be seen' if side else 'the model does not explain them'}"
        return f'"{self.name}" ended {self.verdict}, {far:g} times off its start: {meaning}'


class FirstState(NamedTuple):
    """The first state of a recording: mean (NX,) and covariance (NX, NX)."""

    recording: str
    mean: Array
    covariance: Array


class Setting(NamedTuple):
    """A value for everything that may be fitted.

    theta (NTHETA,), the first state of each recording (N, NX), noise, and hyperparameters of processes by name.
    """

    theta: Array
    starts: Array
    noises: Noises
    hyperparameters: Mapping[str, float] = {}


class Outcome(NamedTuple):
    """What the maximum of a likelihood says of a model; the fields are those of `Fit`."""

    estimates: tuple[Estimate, ...]
    unknowns: tuple[str, ...]
    mean: Array
    covariance: Array
    setting: Setting
    starts: tuple[FirstState, ...]
    open_states: tuple[int, ...]
    remembering: int
    drift_of: tuple[str, ...]


class Fit(NamedTuple):
    """The outcome of a fit.

    `estimates` are all fitted numbers; `unknowns` the names of the fitted unknowns with `mean` (N,) and `covariance`
    (N, N) in your units, which make the new prior; `setting` all numbers of the fitted model; `starts` the first state
    of each recording, empty if it was not fitted; `open_states` the numbers of the states whose first value was open;
    the last `remembering` states are inputs of the past; `drift_of` are the unknowns of the drift in `setting`. The
    likelihoods are those of the recordings under the fitted model and under the model's own numbers. `psi` and
    `psi_covariance` are the end of the search in the coordinates of `likelihood`, and `optimum` is all that is known.
    """

    model: str
    method: str
    estimates: tuple[Estimate, ...]
    unknowns: tuple[str, ...]
    mean: Array
    covariance: Array
    setting: Setting
    starts: tuple[FirstState, ...]
    open_states: tuple[int, ...]
    remembering: int
    drift_of: tuple[str, ...]
    log_likelihood: float
    start_log_likelihood: float
    correlations: tuple[Correlation, ...]
    recordings: tuple[Recording, ...]
    measured: int
    searches: int
    agreeing: int
    evaluations: int
    converged: bool
    warnings: tuple[str, ...]
    psi: Array
    psi_covariance: Array
    likelihood: Likelihood
    optimum: Optimum

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
        own = len(self.setting.noises.process_noise) - self.remembering
        entries = {e.name: _entry(e) for e in self.estimates}
        content: dict[str, Any] = {"model": self.model, "method": self.method}
        if self.setting.hyperparameters:  # a process wants them all, those that were held too
            values = self.setting.hyperparameters.items()
            content["hyperparameters"] = {name: entries.get(name, {"value": rounded(v)}) for name, v in values}
        if self.unknowns:
            content["unknowns"] = {name: entries[name] for name in self.unknowns}
            content["covariance"] = _numbers(self.covariance)
        for kind in NOISES:
            if any(e.kind == kind for e in self.estimates):
                matrix = getattr(self.setting.noises, kind)
                matrix = matrix[:own, :own] if kind == "process_noise" else matrix
                joint = any(e.kind == kind and "," in e.name for e in self.estimates)
                content[kind] = _numbers(matrix if joint else np.diag(matrix))
        if "drift" in content:
            content["drift_of"] = list(self.drift_of)
        if self.starts:
            mean, covariance = first_state(self.starts)
            content["start"] = {
                "mean": _numbers(mean[:own]),
                "covariance": _numbers(covariance[:own, :own]),
                "recordings": {s.recording: _numbers(s.mean[:own]) for s in self.starts},
            }
        content["standard_errors"] = {e.name: rounded(e.deviation, 6) for e in self.estimates if e.kind in NOISES}
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


def _entry(e: Estimate) -> dict[str, Any]:
    """An estimate as plain data."""
    return {
        "value": rounded(e.value),
        "standard_deviation": rounded(e.deviation, 6),
        "start": rounded(e.first),
        "prior_standard_deviation": rounded(e.before, 6),
        "verdict": e.verdict,
    }


def noise_estimates(
    blocks: Sequence[NoiseBlock], psi: Array, first: Array, found: Certainty, begin: int
) -> Iterator[Estimate]:
    """Variances and covariances with their standard errors; `begin` entries of psi come before those of the noise."""
    for block, part in parts(blocks, begin):
        matrix, begun, tangents = block.matrix(psi[part]), block.matrix(first[part]), block.tangents(psi[part])
        spread = np.where(np.isfinite(found.covariance[part, part]), found.covariance[part, part], 0.0)
        for coordinate, (i, j) in enumerate(block.entries):
            verdict, slope = found.verdicts[part.start + coordinate], tangents[:, i, j]
            known = verdict in ("determined", "prior")
            error = math.sqrt(max(float(slope @ spread @ slope), 0.0)) if known else None
            name = block.names[coordinate]
            yield Estimate(name, block.kind, float(matrix[i, j]), error, float(begun[i, j]), None, verdict)


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
