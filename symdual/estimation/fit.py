"""`fit`: from a model and recordings of it to a prior, noise levels and first states."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from symdual.errors import SymdualError, did_you_mean
from symdual.estimation.certainty import Certainty, certainty, correlations, prior_deviations
from symdual.estimation.likelihood import Filter, Filtered, Likelihood
from symdual.estimation.objective import Objective
from symdual.estimation.quantities import START, Quantities, Setting, choose, unknown_names
from symdual.estimation.result import Estimate, FirstState, Fit
from symdual.estimation.search import Optimum, Report, maximise
from symdual.estimation.series import Series, Source, far_off, first_far, oddities
from symdual.estimation.surroundings import Surroundings, read_series, surroundings
from symdual.runtime.loading import LoadedPackage, load
from symdual.runtime.noise import fault_of_measurement, fault_of_step, is_noisy
from symdual.runtime.problem import Array, Belief, problem
from symdual.spec.loading import ModelFile, contents_of
from symdual.spec.loading import Source as ModelSource
from symdual.spec.model import Model

METHODS = ("map", "likelihood")


class Subject(NamedTuple):
    """A model with what is known before: its package, the belief on z_0, and whether nothing is known of x_0.

    `horizon` is that of its scenario, None without one; `around` is what a recording may leave to the scenario.
    """

    name: str
    package: LoadedPackage
    prior: Belief
    flat: bool
    horizon: int | None = None
    around: Surroundings = Surroundings()

    @property
    def remembering(self) -> slice:
        """The states that remember inputs: they are known."""
        return slice(self.package.NX - len(self.around.memory), self.package.NX)


def fit(
    model: ModelSource,
    recordings: Source | Sequence[Source],
    *,
    only: Sequence[str] = (),
    hold: Sequence[str] = (),
    full: Sequence[str] = (),
    method: str = "map",
    starts: int = 5,
    scenario: str | None = None,
    name: str | None = None,
    resample: bool = False,
    anyway: bool = False,
    folder: str | Path | None = None,
    report: Report = lambda text, share: None,
) -> Fit:
    """Estimate unknowns, noise, drift, first states and hyperparameters of Gaussian processes from recordings.

    Args:
        model: a model file, a `Model` or a `Scenario`. Priors and what is known of the first state are those of
            the scenario (`scenario=` if there are several); without one, nothing is known of the first state.
        recordings: files in the format of `symdual replay`, or tables of columns (a dictionary, a pandas DataFrame).
        only, hold, full: names of what to fit, what to leave as it is, and matrices of noise to fit with covariances;
            see `symdual.estimation.quantities.choose`.
        method: "map" for the most probable value with the model's own prior, "likelihood" without it.
        starts: from how many starting points to search.
        name: which model of the file.
        resample: put recordings with uneven times on the model's grid.
        anyway: go on with measurements that cannot be meant.
        folder: the parent folder of the generated packages.
        report: is told what is being done, and which share of it is done.

    >>> table = {"time": [0, 1, 2, 3], "u": [1.0, -1.0, 1.0, 0.0], "x": [1.0, 3.1, 0.9, 3.0]}
    >>> found = symdual.fit(toy, table, only=["b"], starts=1, folder=folder / "generated")
    >>> bool(1.8 < found.mean[0] < 2.2)
    True
    """
    from symdual.fitting.joint import fit_task
    from symdual.fitting.task import concerns_processes, task_of

    contents = contents_of(model)
    if concerns_processes(contents, name, scenario):
        task = task_of(contents, recordings, name, scenario, resample, anyway)
        return fit_task(task, only, hold, full, method, starts, report)
    about = subject(model, scenario, name, folder)
    series = read_series(recordings, about.package, about.around, resample)
    return fit_series(about, series, only, hold, full, method, starts, anyway, report)


def fit_series(
    about: Subject,
    series: Sequence[Series],
    only: Sequence[str] = (),
    hold: Sequence[str] = (),
    full: Sequence[str] = (),
    method: str = "map",
    starts: int = 5,
    anyway: bool = False,
    report: Report = lambda text, share: None,
) -> Fit:
    """The same from recordings that are read already."""
    if method not in METHODS:
        raise SymdualError(f'method must be "map" or "likelihood", not {method!r}')
    if starts < 1:
        raise SymdualError(f"a search needs at least one start, not {starts}")
    if sum(one.measured for one in series) == 0:
        raise SymdualError("nothing was measured in the recordings")
    if not anyway:
        _require_sense(about, series)
    names = [one.name for one in series]
    begins = first_states(about, series)
    known = range(*about.remembering.indices(about.package.NX))
    quantities = choose(about.package, about.prior, about.flat, names, begins, only, hold, full, known)
    _require_room(Likelihood(quantities, series))
    return _fitted(about, quantities, series, method, starts, report)


def fit_again(about: Subject, result: Fit, series: Sequence[Series]) -> Fit:
    """The same quantities from other measurements of the same recordings; the search begins where the other ended."""
    assert result.quantities is not None
    return _fitted(about, result.quantities, series, result.method, 1, lambda text, share: None, result.psi)


def _fitted(
    about: Subject,
    quantities: Quantities,
    series: Sequence[Series],
    method: str,
    starts: int,
    report: Report,
    begin: Array | None = None,
) -> Fit:
    likelihood = Likelihood(quantities, series)
    with threadpool_limits(limits=1):  # the matrices are small: threads would only wait for each other
        objective = Objective(likelihood, method == "map")
        optimum = maximise(objective, starts, report, begin)
        found = certainty(objective, optimum)
    estimates = tuple(_estimates(quantities, optimum, found, method == "map"))
    unknowns = len(quantities.constants)
    labels = unknown_names(about.package)
    return Fit(
        model=about.name,
        method=method,
        estimates=estimates,
        unknowns=tuple(labels[i] for i in quantities.constants),
        mean=optimum.psi[:unknowns],
        covariance=_usable(quantities, found)[:unknowns, :unknowns],
        setting=quantities.setting(optimum.psi),
        starts=tuple(_starts(quantities, optimum, found)),
        log_likelihood=optimum.value.log_likelihood,
        start_log_likelihood=optimum.first.log_likelihood,
        correlations=correlations(quantities.names, found),
        recordings=tuple(series),
        measured=likelihood.measured,
        searches=len(optimum.starts),
        agreeing=optimum.agreeing,
        evaluations=likelihood.evaluations,
        converged=optimum.converged,
        warnings=tuple(_warnings(about, series, optimum, estimates)),
        psi=optimum.psi,
        psi_covariance=found.covariance,
        open_states=tuple(int(i) for i in quantities.states),
        remembering=len(about.around.memory),
        quantities=quantities,
    )


# ------------------------------------------------------------------------------------------------ the model


def subject(
    model: ModelSource, scenario: str | None = None, name: str | None = None, folder: str | Path | None = None
) -> Subject:
    """The model, its package generated where it is missing, and what is known before a recording."""
    from symdual import api

    contents = contents_of(model)
    chosen = chosen_model(contents, name, scenario)
    _refuse_processes(contents.models[chosen])
    own = sorted(n for n, s in contents.scenarios.items() if s.model.name == chosen)
    if scenario is None and len(own) > 1:
        raise SymdualError(f"{contents.place} has several scenarios; name one of {', '.join(own)}")
    folders = {item.model.name: item.folder for item in api.generate(model, folder)}
    package = load(folders[chosen])
    if not own:
        around = surroundings(contents.models[chosen], package, None)
        return _without_scenario(chosen, package)._replace(around=around)
    task = problem(package, scenario or own[0])
    around = surroundings(contents.models[chosen], package, task)
    return Subject(chosen, package, task.prior, False, task.horizon, around)


def _refuse_processes(model: Model) -> None:
    for family in model.families:
        if family.process is not None:
            raise SymdualError(
                f'{model.name} has the Gaussian process "{family.name}", which has no unknowns that an experiment '
                "could tell apart: identify a model with a family of features in its place"
            )


def model_of(model: ModelSource, name: str) -> Model:
    """The model itself, as its file has it."""
    return contents_of(model).models[name]


def chosen_model(contents: ModelFile, name: str | None, scenario: str | None) -> str:
    """The model that is named, or whose scenario is, or the only one that scenarios are about, or the only one."""
    if scenario is not None and scenario not in contents.scenarios:
        raise SymdualError(f'{contents.place} has no scenario "{scenario}"{did_you_mean(scenario, contents.scenarios)}')
    if name is not None:
        if name not in contents.models:
            raise SymdualError(f'{contents.place} has no model "{name}"{did_you_mean(name, contents.models)}')
        return name
    if scenario is not None:
        return contents.scenarios[scenario].model.name
    candidates = sorted({s.model.name for s in contents.scenarios.values()} or contents.models)
    if len(candidates) > 1:
        raise SymdualError(f"{contents.place} has several models; name one of {', '.join(candidates)}")
    return candidates[0]


def _without_scenario(name: str, package: LoadedPackage) -> Subject:
    nx, numbers = package.NX, package.numbers
    covariance = np.zeros((package.NZ, package.NZ))
    prior = numbers["prior_covariance"]
    covariance[nx:, nx:] = np.diag(prior) if prior.ndim == 1 else prior
    mean = np.concatenate([np.zeros(nx), numbers["prior_mean"]])
    return Subject(name, package, Belief(mean, covariance), True)


# ------------------------------------------------------------------------------------------------ before the search


def whole_filter(about: Subject, mean: Array, signals: Array | None = None) -> Filter:
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


def first_states(about: Subject, series: Sequence[Series]) -> Array:
    """Where the search for first states begins, (N, NX): what is expected after the first row."""
    return np.array([_first_state(about, one) for one in series])


def _first_state(about: Subject, one: Series) -> Array:
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


def _require_sense(about: Subject, series: Sequence[Series]) -> None:
    """Refuse a measurement that is so far from what the model, with all that it does not know, expects."""
    nx = about.package.NX
    noise = np.diag(about.package.numbers["measurement_noise"])  # ones where it depends
    for one in series:
        mean = np.concatenate([_first_state(about, one), about.prior.mean[nx:]]) if about.flat else about.prior.mean
        filtered = whole_filter(about, mean, one.signals).run(one.inputs, one.measurements)
        _require_noise(about, one, filtered)
        deviations = np.sqrt(np.maximum(filtered.spreads, 0.0))
        far = first_far(one.measurements - filtered.outputs, deviations, noise)
        if far is not None:
            label = next(name for name, place in about.package.MEASUREMENTS.items() if place == far[1])
            raise far_off(one, far[0], label, far[1], float(filtered.outputs[far]), float(deviations[far]))


def _require_noise(about: Subject, one: Series, filtered: Filtered) -> None:
    """Refuse noise that depends where it is no covariance along a recording, with what it is there."""
    lost = np.flatnonzero(~np.isfinite(filtered.stats[:, 0]))
    if not is_noisy(about.package) or not len(lost):
        return
    k, nx = int(lost[0]), about.package.NX
    heard = [None, None] if one.signals is None else one.signals[max(k - 1, 0) : k + 1]
    found = fault_of_measurement(about.package, k, filtered.means[k, :nx], heard[-1])
    if k:
        before = filtered.means[k - 1, :nx]
        found = fault_of_step(about.package, k - 1, before, one.inputs[k - 1], heard[0]) or found
    if found:
        raise SymdualError(f"{one.name}: {found}")


def _require_room(likelihood: Likelihood) -> None:
    """Refuse a model that leaves no room for what is measured to differ from what it expects."""
    if sum(float(found.stats[:, 2].sum()) for found in likelihood.filtered(likelihood.quantities.first)) == 0:
        raise SymdualError(
            "the model has no noise that shows in the measurements, so that nothing has a likelihood: give it "
            "process_noise or measurement_noise to start from"
        )


# ------------------------------------------------------------------------------------------------ after the search


def _estimates(quantities: Quantities, optimum: Optimum, found: Certainty, with_prior: bool) -> Iterator[Estimate]:
    before = prior_deviations(quantities, with_prior)
    first, names, deviations = quantities.first, quantities.names, found.deviations
    for i in range(quantities.places):
        known = float(deviations[i]) if math.isfinite(deviations[i]) else None
        kind = "unknown" if i < len(quantities.constants) else START
        prior = float(before[i]) if math.isfinite(before[i]) else None
        yield Estimate(names[i], kind, float(optimum.psi[i]), known, float(first[i]), prior, found.verdicts[i])
    for block, part in quantities.block_slices():
        matrix, begun = block.matrix(optimum.psi[part]), block.matrix(first[part])
        spread = np.where(np.isfinite(found.covariance[part, part]), found.covariance[part, part], 0.0)
        tangents = block.tangents(optimum.psi[part])
        for coordinate, (i, j) in enumerate(block.entries):
            slope = tangents[:, i, j]
            verdict = found.verdicts[part.start + coordinate]
            known = verdict in ("determined", "prior")
            error = math.sqrt(max(float(slope @ spread @ slope), 0.0)) if known else None
            yield Estimate(
                block.names[coordinate], block.kind, float(matrix[i, j]), error, float(begun[i, j]), None, verdict
            )


def _usable(quantities: Quantities, found: Certainty) -> Array:
    """The covariance as a prior needs it: where nothing is known, that of the prior."""
    covariance = found.covariance.copy()
    open_ = ~np.isfinite(np.diag(covariance))
    prior = np.linalg.pinv(quantities.prior_precision(), hermitian=True)
    covariance[open_, open_] = np.diag(prior)[open_]
    return covariance


def _starts(quantities: Quantities, optimum: Optimum, found: Certainty) -> Iterator[FirstState]:
    if not len(quantities.states):
        return
    nx, setting, covariance = quantities.package.NX, quantities.setting(optimum.psi), _usable(quantities, found)
    for number, recording in enumerate(quantities.recordings):
        own = quantities.recording_coordinates(number)[len(quantities.constants) :]
        whole = np.zeros((nx, nx)) if quantities.flat else quantities.prior.covariance[:nx, :nx].copy()
        whole[quantities.states] = 0.0
        whole[:, quantities.states] = 0.0
        whole[np.ix_(quantities.states, quantities.states)] = covariance[np.ix_(own, own)]
        yield FirstState(recording, setting.starts[number], whole)


def _warnings(
    about: Subject, series: Sequence[Series], optimum: Optimum, estimates: Sequence[Estimate]
) -> Iterator[str]:
    yield from oddities(series, about.package)
    if not optimum.converged:
        yield (
            f"the search has not come to rest: {0.5 * optimum.decrement:.2g} of log p are left to gain, the values are "
            "the last ones"
        )
    if optimum.kinked:
        yield (
            "the likelihood jumps at its maximum, for the model has kinks (Min, Max, Abs, Piecewise): standard errors "
            "are rough"
        )
    yield from (sentence for e in estimates if (sentence := e.sentence()) is not None)
    if optimum.agreeing < len(optimum.starts):
        yield (
            f"only {optimum.agreeing} of {len(optimum.starts)} starts ended at this maximum: there are others, and a "
            "better one may exist"
        )


def fitted_filter(
    about: Subject,
    setting: Setting,
    start: FirstState | None,
    one: Series,
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


def theta_covariance(about: Subject, result: Fit) -> Array:
    """The covariance of all unknowns after a fit: the fitted ones, and the others as they were."""
    names, nx = unknown_names(about.package), about.package.NX
    covariance = about.prior.covariance[nx:, nx:].copy()
    own = [names.index(name) for name in result.unknowns]
    covariance[own] = 0.0
    covariance[:, own] = 0.0
    covariance[np.ix_(own, own)] = result.covariance
    return covariance
