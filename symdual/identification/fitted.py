"""From a likelihood to a fit: the maximum, how well it is known, and what it says of the model."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from threadpoolctl import threadpool_limits

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.identification.likelihood import Likelihood, Optimum, Report, unreported
from symdual.identification.recordings import oddities
from symdual.identification.result import Fit, Outcome
from symdual.identification.standard_errors import correlations


def fitted(likelihood: Likelihood, starts: int = 5, report: Report = unreported, begin: Array | None = None) -> Fit:
    """Maximise a likelihood and judge the outcome.

    On one thread: the matrices are small, and so the result does not depend on the number of processors.
    """
    if starts < 1:
        raise SymdualError(f"a search needs at least one start, not {starts}")
    with threadpool_limits(limits=1), np.errstate(over="ignore", invalid="ignore"):  # what is not finite is said
        optimum = likelihood.maximise(starts, report, begin)
        found = likelihood.certainty(optimum)
        outcome = likelihood.outcome(optimum, found)
    return Fit(
        model=likelihood.model,
        method=likelihood.method,
        log_likelihood=optimum.value.log_likelihood,
        start_log_likelihood=optimum.first.log_likelihood,
        correlations=correlations(likelihood.names, found),
        recordings=tuple(likelihood.recordings),
        measured=likelihood.measured,
        searches=optimum.searches,
        agreeing=optimum.agreeing,
        evaluations=likelihood.evaluations,
        converged=optimum.converged,
        warnings=tuple(_warnings(likelihood, optimum, outcome)),
        psi=optimum.psi,
        psi_covariance=found.covariance,
        likelihood=likelihood,
        optimum=optimum,
        **outcome._asdict(),
    )


def _warnings(likelihood: Likelihood, optimum: Optimum, outcome: Outcome) -> Iterator[str]:
    yield from oddities(likelihood.recordings, likelihood.columns)
    yield from likelihood.warnings(optimum)
    yield from (sentence for e in outcome.estimates if (sentence := e.sentence()) is not None)
