"""A model with what is known before a recording, and its filter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.identification.chosen_model import chosen_model, processes_of
from symdual.identification.noise import Indices
from symdual.identification.parameters.filtering import Filter
from symdual.identification.parameters.quantities import unknown_names
from symdual.identification.result import FirstState, Setting
from symdual.identification.surroundings import Surroundings, surroundings
from symdual.runtime.belief import Belief
from symdual.runtime.loading import LoadedPackage, load
from symdual.runtime.problem import problem
from symdual.runtime.replay import Recording
from symdual.runtime.signals import signals_of
from symdual.spec.loading import Source as ModelSource
from symdual.spec.loading import contents_of
from symdual.spec.system import System


class PriorModel(NamedTuple):
    """A model with what is known before: its package, the belief on z_0, and whether nothing is known of x_0.

    `written` is the model as its file has it, None where features stand in place of processes; `horizon` is that of its
    scenario, None without one; `around` is what a recording may leave to the scenario.
    """

    name: str
    package: LoadedPackage
    prior: Belief
    flat: bool
    horizon: int | None = None
    around: Surroundings = Surroundings()
    written: System | None = None

    @property
    def remembering(self) -> slice:
        """The states that remember inputs: they are known."""
        return slice(self.package.NX - len(self.around.memory), self.package.NX)


def prior_model(
    model: ModelSource, scenario: str | None = None, name: str | None = None, folder: str | Path | None = None
) -> PriorModel:
    """The model, its package generated where it is missing, and what is known before a recording."""
    from symdual import api

    written, chosen = chosen_model(contents_of(model), name, scenario)
    for family in processes_of(written):
        raise SymdualError(
            f'{written.name} has the Gaussian process "{family.name}", which has no unknowns that an experiment '
            "could tell apart: identify a model with a family of features in its place"
        )
    folders = {item.model.name: item.folder for item in api.generate(model, folder, parts="likelihood")}
    package = load(folders[written.name])
    around = surroundings(written, signals_of(package), chosen)
    if chosen is None:
        return PriorModel(written.name, package, _prior_of(package), True, None, around, written)
    known = problem(package, chosen.name)
    return PriorModel(written.name, package, known.prior, False, known.horizon, around, written)


def _prior_of(package: LoadedPackage) -> Belief:
    """The belief without a scenario: what the model says of unknowns, and nothing of states."""
    nx, numbers = package.NX, package.numbers
    covariance = np.zeros((package.NZ, package.NZ))
    prior = numbers["prior_covariance"]
    covariance[nx:, nx:] = np.diag(prior) if prior.ndim == 1 else prior
    return Belief(np.concatenate([np.zeros(nx), numbers["prior_mean"]]), covariance)


def whole_filter(about: PriorModel, mean: Array, signals: Array | None = None) -> Filter:
    """The filter with everything that is unknown in it, for rows with these signals."""
    package, numbers = about.package, about.package.numbers
    nx, nz = package.NX, package.NZ
    P = about.prior.covariance.copy()
    if about.flat:
        P[:nx, :nx] = np.diag((10.0 * (1.0 + np.abs(mean[:nx]))) ** 2)
        P[about.remembering, about.remembering] = 0.0
    noise = np.zeros((nz, nz))
    noise[:nx, :nx] = numbers["process_noise"]
    drift, transition = numbers["drift"], numbers["transition"]
    noise[nx:, nx:] = np.diag(drift) if drift.ndim == 1 else drift
    return Filter(
        package=package,
        mean=mean,
        covariance=P,
        active=np.arange(nz, dtype=np.int64),
        process_noise=noise,
        measurement_noise=numbers["measurement_noise"],
        transition=np.diag(transition) if transition.ndim == 1 else transition,
        signals=signals,
    )


def first_states(about: PriorModel, recordings: Sequence[Recording]) -> Array:
    """Where the search for first states begins, (N, NX): what is expected after the first row."""
    return np.array([_first_state(about, one) for one in recordings])


def _first_state(about: PriorModel, one: Recording) -> Array:
    nx, mean = about.package.NX, about.prior.mean.copy()
    applied = about.around.past_of(one)
    if applied is not None:
        mean[about.remembering] = applied
    if about.flat:
        seen = np.isfinite(one.measurements)
        for label, column in about.package.MEASUREMENTS.items():
            if label in about.package.STATES and seen[:, column].any():
                row = int(np.argmax(seen[:, column]))
                mean[about.package.STATES[label]] = one.measurements[row, column]
        return mean[:nx]
    own = whole_filter(about, mean, one.signals)
    after = own.run(one.inputs[:1], one.measurements[:1]).means[1]
    return after[:nx] if np.isfinite(after).all() else mean[:nx]


def fitted_filter(
    about: PriorModel,
    setting: Setting,
    start: FirstState | None,
    one: Recording,
    unknowns: Array | None = None,
) -> Filter:
    """The filter of a fitted model for a recording; with the covariance of its unknowns these are in it too."""
    nx = about.package.NX
    mean = about.prior.mean.copy()
    mean[nx:] = setting.theta
    covariance = about.prior.covariance.copy()
    if unknowns is not None:
        covariance[nx:, nx:] = unknowns
    applied = about.around.past_of(one)
    if applied is not None:
        mean[about.remembering] = applied
    if start is not None:
        mean[:nx], covariance[:nx, :nx] = start.mean, start.covariance
    own = whole_filter(
        about._replace(prior=Belief(mean, covariance), flat=about.flat and start is None), mean, one.signals
    )
    noise = own.process_noise.copy()
    noise[:nx, :nx], noise[nx:, nx:] = setting.noises.process_noise, setting.noises.drift
    return own._replace(process_noise=noise, measurement_noise=setting.noises.measurement_noise)


def theta_covariance(about: PriorModel, unknowns: Sequence[str], fitted: Array) -> Array:
    """The covariance of all unknowns after a fit: that of the fitted ones, and the others as they were."""
    names, nx = unknown_names(about.package), about.package.NX
    return inserted(about.prior.covariance[nx:, nx:], [names.index(name) for name in unknowns], fitted)


def inserted(covariance: Array, rows: Sequence[int] | Indices, own: Array) -> Array:
    """A covariance in which some entries are independent of the others and have one of their own."""
    found, at = covariance.copy(), np.asarray(rows, dtype=np.int64)
    found[at] = 0.0
    found[:, at] = 0.0
    found[np.ix_(at, at)] = own
    return found
