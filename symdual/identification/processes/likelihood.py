"""Hyperparameters of Gaussian processes and noise as coordinates of a likelihood, with everything else integrated out.

Unknowns and first states follow from them: they are what is known of z_0 given the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from symdual.common.arrays import Array
from symdual.identification.choice import START
from symdual.identification.held_out import Predictor
from symdual.identification.likelihood import Report, unreported
from symdual.identification.noise import Noises
from symdual.identification.processes.features import with_features
from symdual.identification.processes.points import ROUGH, known_points
from symdual.identification.processes.score import Known
from symdual.identification.processes.search import ProcessOptimum, maximise
from symdual.identification.processes.setup import ProcessSetup, parameters, setup_for, with_noise, z_names
from symdual.identification.processes.whitening import NOISE_FLOOR, Whitened
from symdual.identification.recordings import Source
from symdual.identification.result import Estimate, FirstState, Fit, Outcome, Setting, noise_estimates
from symdual.identification.standard_errors import NOTHING, Certainty, certainty
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.replay import Recording, consistency
from symdual.spec.scenario import Scenario
from symdual.spec.system import System


def process_likelihood(
    model: System,
    scenario: Scenario,
    recordings: Source | Sequence[Source],
    only: Sequence[str] = (),
    hold: Sequence[str] = (),
    full: Sequence[str] = (),
    resample: bool = False,
    anyway: bool = False,
) -> ProcessLikelihood:
    """The likelihood of what is named, or of all that can be fitted."""
    return ProcessLikelihood(with_noise(setup_for(model, scenario, recordings, resample, anyway), only, hold, full))


class ProcessLikelihood:
    """The marginal likelihood of a setup."""

    method = "marginal likelihood"

    def __init__(self, setup: ProcessSetup) -> None:
        self.setup = setup
        self.measured, self.evaluations = 0, 0

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.setup.model.name

    @property
    def recordings(self) -> tuple[Recording, ...]:
        """What the model is fitted to."""
        return self.setup.recordings

    @property
    def columns(self) -> LoadedPackage:
        """The names of inputs, signals and measurements."""
        return self.setup.columns

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each coordinate."""
        return self.setup.names

    def read(self, sources: Source | Sequence[Source], resample: bool = False) -> list[Recording]:
        """Other recordings of the same model."""
        return self.setup.read(sources, resample)

    def maximise(self, starts: int, report: Report = unreported, begin: Array | None = None) -> ProcessOptimum:
        """The maximum, from the model's own numbers on or from `begin`."""
        optimum = maximise(self.setup, starts, report, begin)
        self.measured, self.evaluations = len(optimum.evidence.whitened.residual), optimum.evidence.evaluations
        return optimum

    def certainty(self, optimum: ProcessOptimum) -> Certainty:
        """How well the recordings determine the coordinates."""
        setup, size = self.setup, len(optimum.psi)
        logarithms = [True] * len(setup.hyperparameters) + [one for block in setup.blocks for one in block.logarithms]
        return certainty(optimum.curvature, optimum.at_bound, np.full(size, math.inf), np.array(logarithms, dtype=bool))

    def outcome(self, optimum: ProcessOptimum, found: Certainty) -> Outcome:
        """What the maximum says of the model."""
        setup, n = self.setup, len(self.setup.model.states)
        names, begins = z_names(setup.derivation), optimum.evidence.score(optimum.psi).begins
        unknowns = [i for i in range(n, len(names)) if names[i] not in setup.held]
        open_ = [i for i in range(n) if setup.start_covariance[i, i] > 0]
        firsts = tuple(
            FirstState(one.name, known.mean[:n], known.covariance[:n, :n])
            for one, known in zip(setup.recordings, begins, strict=True)
        )
        shown = [i for i in open_ if f"{START}[{names[i]}]" not in setup.held]
        values = dict(zip(setup.names, np.exp(optimum.psi[: len(setup.hyperparameters)]).tolist(), strict=False))
        return Outcome(
            estimates=tuple(self._estimates(optimum, found, begins, unknowns, shown)),
            unknowns=tuple(names[i] for i in unknowns),
            mean=begins[0].mean[unknowns],
            covariance=begins[0].covariance[np.ix_(unknowns, unknowns)],
            setting=Setting(
                begins[0].mean[n:], np.array([first.mean for first in firsts]), self._noises(optimum.psi), values
            ),
            starts=firsts if shown else (),
            open_states=tuple(open_),
            remembering=setup.model.memory,
            drift_of=setup.model.unknown_names,
        )

    def _noises(self, psi: Array) -> Noises:
        """The fitted noise; the drift is that of all unknowns of the model, a process keeps its own."""
        setup, found = self.setup, self.setup.under(psi).noises
        drift = np.zeros(len(setup.model.prior_mean)) if setup.model.drift is None else setup.model.drift.copy()
        drift[parameters(setup.derivation)] = np.diag(found.drift)
        return found._replace(drift=np.diag(drift))

    def _estimates(
        self,
        optimum: ProcessOptimum,
        found: Certainty,
        begins: Sequence[Known],
        unknowns: Sequence[int],
        states: Sequence[int],
    ) -> Iterator[Estimate]:
        setup, count = self.setup, len(self.setup.hyperparameters)
        for i, c in enumerate(setup.hyperparameters):
            if str(c.name) not in setup.held:
                value, verdict = math.exp(optimum.psi[i]), found.verdicts[i]
                error = value * float(found.deviations[i]) if verdict == "determined" else None
                yield Estimate(str(c.name), "hyperparameter", value, error, c.value, None, verdict)
        names = z_names(setup.derivation)
        for i in unknowns:
            yield self._learned(begins[0], i, names[i], "unknown")
        for one, begin in zip(setup.recordings, begins, strict=True):
            recording = f"{one.name}: " if len(begins) > 1 else ""
            for i in states:
                yield self._learned(begin, i, f"{recording}{START}[{names[i]}]", START)
        yield from noise_estimates(setup.blocks, optimum.psi, setup.psi, found, count)

    def _learned(self, known: Known, i: int, name: str, kind: str) -> Estimate:
        """An entry of z_0 given the data."""
        deviation, before = (
            math.sqrt(max(float(P[i, i]), 0.0)) for P in (known.covariance, self.setup.start_covariance)
        )
        verdict = "prior" if deviation > (1 - NOTHING) * before else "determined"
        return Estimate(name, kind, float(known.mean[i]), deviation, float(self.setup.start[i]), before, verdict)

    def warnings(self, optimum: ProcessOptimum) -> Iterator[str]:
        """What to be wary of in the search and in the linearised model."""
        whitened = optimum.evidence.whitened
        if not optimum.converged:
            yield (
                f"the search has not converged in {optimum.rounds} rounds: the values are the last ones, not a "
                "maximum of the likelihood"
            )
        if _begins_elsewhere(whitened):
            yield (
                f"the recording does not begin where the scenario {self.setup.scenario} starts: say in start= and "
                "start_covariance= what is known of its first state"
            )
        for points in known_points(optimum):
            if points.change > ROUGH:
                yield (
                    f'the points at which "{points.process}" was evaluated are known to about '
                    f"{', '.join(f'{d:.2g}' for d in points.deviations)} only, and within that it changes much: the "
                    "linearised model is rough here, a short length-scale may be an artefact"
                )
        told = consistency(optimum.posterior.misfit, len(whitened.residual))
        if told.verdict != "consistent":
            low, high = told.band
            wrong = "small" if told.ratio > high else "large"
            yield (
                f"the mean square of the normalised residuals is {told.ratio:.3g}, expected {low:.3g} to {high:.3g}: "
                f"process_noise or measurement_noise is too {wrong} for this recording"
            )
        if whitened.raised:
            yield (
                f"the model leaves {whitened.raised} rows with no noise: {NOISE_FLOOR:g} of the variance of the "
                "measurements was added"
            )
        if (jitter := optimum.evidence.jitter(optimum.psi)) > 0:
            yield (
                f"the covariance of the measurements is singular to rounding: {jitter:g} of its mean variance was added"
            )

    def predictor(self, result: Fit, unseen: Sequence[Recording], folder: str | Path | None = None) -> Predictor:
        """The model with features in place of its processes."""
        assert isinstance(result.optimum, ProcessOptimum)
        return with_features(result.optimum, unseen, folder).predictor


def _begins_elsewhere(whitened: Whitened) -> bool:
    """Whether the first measurements are what one start in a million would show."""
    from scipy.stats import chi2

    count = len(whitened.surprise)
    surprising = count > 0 and float(whitened.surprise @ whitened.surprise) > float(chi2.ppf(1 - 1e-6, count))
    return surprising or bool(np.any(whitened.unexplained > 1e-6))
