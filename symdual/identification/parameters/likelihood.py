"""Unknowns, first states and noise as coordinates of a likelihood: that of the filter, over all recordings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.common.transforms import Transform, belief_of, matched_belief, moments_of
from symdual.identification.choice import START
from symdual.identification.fitted import fitted
from symdual.identification.held_out import Predictor, Rest
from symdual.identification.likelihood import Report, unreported
from symdual.identification.parameters.evidence import Evidence
from symdual.identification.parameters.filtering import Filtered
from symdual.identification.parameters.objective import Objective
from symdual.identification.parameters.prior_model import (
    PriorModel,
    first_states,
    inserted,
    theta_covariance,
    whole_filter,
)
from symdual.identification.parameters.quantities import Quantities, choose, unknown_names
from symdual.identification.parameters.search import ParameterOptimum, maximise
from symdual.identification.recordings import Source, far_off, first_far
from symdual.identification.result import Estimate, FirstState, Fit, Outcome, noise_estimates
from symdual.identification.standard_errors import Certainty, certainty, too_wide
from symdual.identification.surroundings import read_recordings
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.noise import fault_of_measurement, fault_of_step, has_state_dependent_noise
from symdual.runtime.replay import Recording

METHODS = ("map", "likelihood")


def parameter_likelihood(
    about: PriorModel,
    recordings: Sequence[Recording],
    only: Sequence[str] = (),
    hold: Sequence[str] = (),
    full: Sequence[str] = (),
    method: str = "map",
    anyway: bool = False,
) -> ParameterLikelihood:
    """The likelihood of what is named, or of all that can be fitted; see `quantities.choose`."""
    if method not in METHODS:
        raise SymdualError(f'method must be "map" or "likelihood", not {method!r}')
    if sum(one.measured for one in recordings) == 0:
        raise SymdualError("nothing was measured in the recordings")
    if not anyway:
        _require_sense(about, recordings)
    names, begins = [one.name for one in recordings], first_states(about, recordings)
    known = range(*about.remembering.indices(about.package.NX))
    quantities = choose(about.package, about.prior, about.flat, names, begins, only, hold, full, known)
    found = ParameterLikelihood(about, quantities, recordings, method)
    _require_room(found.evidence)
    return found


class ParameterLikelihood:
    """The likelihood of fitted entries of z_0 and of noise; with the method "map", with their prior."""

    def __init__(self, about: PriorModel, quantities: Quantities, recordings: Sequence[Recording], method: str) -> None:
        self.about, self.quantities, self.recordings, self.method = about, quantities, tuple(recordings), method
        self.evidence = Evidence(quantities, recordings)
        self.objective = Objective(self.evidence, method == "map")

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.about.name

    @property
    def columns(self) -> LoadedPackage:
        """The names of inputs, signals and measurements."""
        return self.about.package

    @property
    def names(self) -> list[str]:
        """A name for each coordinate."""
        return self.quantities.names

    @property
    def measured(self) -> int:
        """How many measured numbers count."""
        return self.evidence.measured

    @property
    def evaluations(self) -> int:
        """How often the likelihood was computed."""
        return self.evidence.evaluations

    def read(self, sources: Source | Sequence[Source], resample: bool = False) -> list[Recording]:
        """Other recordings of the same model."""
        return read_recordings(sources, self.about.package, self.about.around, resample)

    def maximise(self, starts: int, report: Report = unreported, begin: Array | None = None) -> ParameterOptimum:
        """The maximum, from the model's own numbers on or from `begin`."""
        return maximise(self.objective, starts, report, begin)

    def certainty(self, optimum: ParameterOptimum) -> Certainty:
        """How well the recordings determine the coordinates."""
        q, M, objective = self.quantities, optimum.curvature, self.objective
        # noise that is not told from none at all; the others are judged as if it were known
        curved = M.diagonal() > 0
        lost = ~curved if objective.with_prior else too_wide(1.0 / np.sqrt(np.where(curved, M.diagonal(), 1e-300)))
        averaged = objective.counts_volume and not optimum.kinked
        return certainty(
            M,
            optimum.at_bound,
            self._before(),
            np.array(q.logarithms, dtype=bool),
            lost & (np.arange(q.size) >= q.places),
            (lambda covariance: objective.excess(optimum.psi, covariance)) if averaged else None,
        )

    def _before(self) -> Array:
        """The deviation of each coordinate before the recordings, infinite without a prior."""
        q = self.quantities
        return q.prior_deviations() if self.objective.with_prior else np.full(q.size, math.inf)

    def outcome(self, optimum: ParameterOptimum, found: Certainty) -> Outcome:
        """What the maximum says of the model."""
        q, labels = self.quantities, unknown_names(self.about.package)
        unknowns = len(q.constants)
        mean, covariance = optimum.psi[:unknowns], self._usable(found)[:unknowns, :unknowns]
        told = belief_of(self._transforms, mean, covariance)
        return Outcome(
            estimates=tuple(self._estimates(optimum, found)),
            unknowns=tuple(labels[i] for i in q.constants),
            mean=told[0],
            covariance=told[1],
            setting=q.setting(optimum.psi),
            starts=tuple(self._starts(optimum, found)),
            open_states=tuple(int(i) for i in q.states),
            remembering=len(self.about.around.memory),
            drift_of=tuple(labels),
        )

    @property
    def _transforms(self) -> tuple[Transform, ...]:
        """What leads from the fitted entries of theta to the user's units."""
        own = self.about.package.transforms[self.about.package.NX :]
        return tuple(own[i] for i in self.quantities.constants) if own else ()

    def _estimates(self, optimum: ParameterOptimum, found: Certainty) -> Iterator[Estimate]:
        """Every number with its standard error; unknowns with bounds by the moments of what is log- or logistic-normal.

        Where nothing is known, they are those of the prior, as the file has them.
        """
        q, deviations, places = self.quantities, found.deviations, slice(0, self.quantities.places)
        usable, before, units = np.sqrt(np.diag(self._usable(found))[places]), self._before()[places], self._transforms
        values, spread = moments_of(units, optimum.psi[places], usable**2)
        first, prior = moments_of(units, q.first[places], np.where(np.isfinite(before), before, 0.0) ** 2)
        for i, name in enumerate(q.names[places]):
            known = float(np.sqrt(spread[i])) if math.isfinite(deviations[i]) else None
            kind = "unknown" if i < len(q.constants) else START
            had = float(np.sqrt(prior[i])) if math.isfinite(before[i]) else None
            yield Estimate(name, kind, float(values[i]), known, float(first[i]), had, found.verdicts[i])
        yield from noise_estimates(q.blocks, optimum.psi, q.first, found, q.places)

    def _usable(self, found: Certainty) -> Array:
        """The covariance as a prior needs it: where nothing is known, that of the prior."""
        covariance = found.covariance.copy()
        open_ = ~np.isfinite(np.diag(covariance))
        prior = np.linalg.pinv(self.quantities.prior_precision(), hermitian=True)
        covariance[open_, open_] = np.diag(prior)[open_]
        return covariance

    def _starts(self, optimum: ParameterOptimum, found: Certainty) -> Iterator[FirstState]:
        q = self.quantities
        if not len(q.states):
            return
        nx, setting, covariance = q.package.NX, q.setting(optimum.psi), self._usable(found)
        for number, recording in enumerate(q.recordings):
            own = q.recording_coordinates(number)[len(q.constants) :]
            whole = np.zeros((nx, nx)) if q.flat else q.prior.covariance[:nx, :nx].copy()
            yield FirstState(recording, setting.starts[number], inserted(whole, q.states, covariance[np.ix_(own, own)]))

    def warnings(self, optimum: ParameterOptimum) -> Iterator[str]:
        """What to be wary of in the search."""
        if not optimum.converged:
            yield (
                f"the search has not converged: {0.5 * optimum.decrement:.2g} of log p are left to gain, the values "
                "are the last ones"
            )
        if optimum.kinked:
            yield (
                "the likelihood jumps at its maximum, for the model has kinks (Min, Max, Abs, Piecewise): standard "
                "errors are rough"
            )
        if optimum.agreeing < optimum.searches:
            yield (
                f"only {optimum.agreeing} of {optimum.searches} starts ended at this maximum: there are others, and a "
                "better one may exist"
            )

    def _of_theta(self, result: Fit) -> Array:
        """The covariance of the fitted entries of theta, for one in the user's units."""
        return matched_belief(self._transforms, result.mean, result.covariance, result.unknowns, "the fit")[1]

    def predictor(self, result: Fit, unseen: Sequence[Recording], folder: str | Path | None = None) -> Predictor:
        """The fitted model; refitted, the search begins where the other ended."""

        def refit(blanked: Sequence[Recording]) -> Rest:
            likelihood = ParameterLikelihood(self.about, self.quantities, blanked, self.method)
            again, own = fitted(likelihood, starts=1, begin=result.psi), self.quantities.constants
            unknowns = np.zeros((self.about.package.NTHETA, self.about.package.NTHETA))
            unknowns[np.ix_(own, own)] = self._of_theta(again)
            filters = [likelihood.evidence.filter(again.setting, place) for place in range(len(blanked))]
            return Rest(self.about, again.setting, unknowns, filters)

        return Predictor(
            self.about,
            result.setting,
            theta_covariance(self.about, result.unknowns, self._of_theta(result)),
            result.starts,
            refit,
        )


def _require_sense(about: PriorModel, recordings: Sequence[Recording]) -> None:
    """Refuse a measurement that is so far from what the model, with all that it does not know, expects."""
    nx = about.package.NX
    noise = np.diag(about.package.numbers["measurement_noise"])  # ones where it depends
    for one in recordings:
        mean = (
            np.concatenate([first_states(about, [one])[0], about.prior.mean[nx:]]) if about.flat else about.prior.mean
        )
        filtered = whole_filter(about, mean, one.signals).run(one.inputs, one.measurements)
        _require_noise(about, one, filtered)
        deviations = np.sqrt(np.maximum(filtered.variances, 0.0))
        far = first_far(one.measurements - filtered.outputs, deviations, noise)
        if far is not None:
            label = next(name for name, place in about.package.MEASUREMENTS.items() if place == far[1])
            raise far_off(one, far[0], label, far[1], float(filtered.outputs[far]), float(deviations[far]))


def _require_noise(about: PriorModel, one: Recording, filtered: Filtered) -> None:
    """Refuse noise that depends where it is no covariance along a recording, with what it is there."""
    lost = np.flatnonzero(~np.isfinite(filtered.stats[:, 0]))
    if not has_state_dependent_noise(about.package) or not len(lost):
        return
    k, nx = int(lost[0]), about.package.NX
    heard = [None, None] if one.signals is None else one.signals[max(k - 1, 0) : k + 1]
    found = fault_of_measurement(about.package, k, filtered.means[k, :nx], heard[-1])
    if k:
        before = filtered.means[k - 1, :nx]
        found = fault_of_step(about.package, k - 1, before, one.inputs[k - 1], heard[0]) or found
    if found:
        raise SymdualError(f"{one.name}: {found}")


def _require_room(evidence: Evidence) -> None:
    """Refuse a model that leaves no room for what is measured to differ from what it expects."""
    if sum(float(found.stats[:, 2].sum()) for found in evidence.filtered(evidence.quantities.first)) == 0:
        raise SymdualError(
            "the model has no noise that shows in the measurements, so that nothing has a likelihood: give it "
            "process_noise or measurement_noise to start from"
        )
