"""Fits of Gaussian processes together with noise and unknowns, in the form of all other fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from symdual.errors import SymdualError
from symdual.estimation.certainty import NOTHING
from symdual.estimation.quantities import START, Noises, Setting
from symdual.estimation.result import Estimate, FirstState, Fit
from symdual.estimation.search import Report
from symdual.fitting import result as processes
from symdual.fitting.task import Task, fitting, z_names

#: verdicts on hyperparameters in the words of other fits
VERDICTS = {"flat": "open"}


def fit_task(
    task: Task,
    only: Sequence[str] = (),
    hold: Sequence[str] = (),
    full: Sequence[str] = (),
    method: str = "map",
    starts: int = 5,
    report: Report = lambda text, share: None,
) -> Fit:
    """Hyperparameters and noise by their marginal likelihood, unknowns and first states given them."""
    if method == "likelihood":
        raise SymdualError(
            "a model with Gaussian processes has its unknowns integrated out with their prior, so there is no "
            "likelihood without it"
        )
    if starts < 1:
        raise SymdualError(f"a search needs at least one start, not {starts}")
    return as_fit(processes.fit(fitting(task, only, hold, full), lambda text: report(text, None), starts))


def as_fit(found: processes.Fit) -> Fit:
    """The outcome of a fit of processes as that of any other; its own form is `Fit.processes`."""
    task, n = found.task, len(found.task.model.states)
    names, drift = z_names(task.derivation), found.drift
    kept = [names.index(u.name) for u in found.unknowns]
    noises = Noises(found.noise.process_noise[:n, :n], found.noise.measurement_noise, np.diag(drift))
    firsts = tuple(
        FirstState(one.name, known.mean[:n], known.covariance[:n, :n])
        for one, known in zip(task.series, found.known, strict=True)
    )
    optimum = found.optimum
    return Fit(
        model=task.model.name,
        method="marginal likelihood",
        estimates=tuple(_estimates(found)),
        unknowns=tuple(u.name for u in found.unknowns),
        mean=found.known[0].mean[kept],
        covariance=found.known[0].covariance[np.ix_(kept, kept)],
        setting=Setting(found.known[0].mean[n:], np.array([first.mean for first in firsts]), noises),
        starts=firsts if found.begins else (),
        log_likelihood=found.log_likelihood,
        start_log_likelihood=found.start_log_likelihood,
        correlations=found.correlations,
        recordings=task.series,
        measured=found.measured,
        searches=optimum.searches,
        agreeing=optimum.agreeing,
        evaluations=optimum.evidence.evaluations,
        converged=found.converged,
        warnings=found.warnings,
        psi=optimum.psi,
        psi_covariance=found.spread,
        open_states=tuple(i for i in range(n) if task.start_covariance[i, i] > 0),
        remembering=task.model.memory,
        processes=found,
    )


def _estimates(found: processes.Fit) -> Iterator[Estimate]:
    """Everything that was fitted: hyperparameters, unknowns, first states, noise."""
    for h in found.hyperparameters:
        yield from _estimate(h, "hyperparameter")
    several = len(found.begins) > 1
    for u in found.unknowns:
        yield _learned(u, u.name, "unknown")
    for one, begin in zip(found.task.series, found.begins, strict=False):
        for u in begin:
            yield _learned(u, f"{one.name}: {START}[{u.name}]" if several else f"{START}[{u.name}]", START)
    for h in found.noises:
        yield from _estimate(h, h.name.partition("[")[0])


def _estimate(h: processes.Hyperparameter, kind: str) -> Iterator[Estimate]:
    verdict = h.certainty.verdict
    if verdict != "held":
        yield Estimate(h.name, kind, h.value, h.deviation, h.start, None, VERDICTS.get(verdict, verdict))


def _learned(u: processes.Unknown, name: str, kind: str) -> Estimate:
    verdict = "prior" if u.deviation > (1 - NOTHING) * u.prior_deviation else "determined"
    return Estimate(name, kind, u.value, u.deviation, u.prior_value, u.prior_deviation, verdict)
