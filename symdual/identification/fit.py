"""`fit`: from a model and recordings of it to a prior, noise levels, first states and hyperparameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from symdual.common.errors import SymdualError
from symdual.common.words import spelled
from symdual.identification.chosen_model import chosen_model, processes_of
from symdual.identification.fitted import fitted
from symdual.identification.likelihood import Likelihood, Report, unreported
from symdual.identification.parameters.likelihood import parameter_likelihood
from symdual.identification.parameters.prior_model import prior_model
from symdual.identification.processes.likelihood import process_likelihood
from symdual.identification.recordings import Source
from symdual.identification.result import Fit
from symdual.identification.surroundings import read_recordings
from symdual.spec.loading import Source as ModelSource
from symdual.spec.loading import contents_of


@spelled
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
    report: Report = unreported,
) -> Fit:
    """Estimate unknowns, noise, drift, first states and hyperparameters of Gaussian processes from recordings.

    Args:
        model: a model file, a `Model` or a `Scenario`. Priors and what is known of the first state are those of
            the scenario (`scenario=` if there are several); without one, nothing is known of the first state.
        recordings: files in the format of `symdual replay`, or tables of columns (a dictionary, a pandas DataFrame).
        only, hold, full: names of what to fit, what to leave as it is, and matrices of noise to fit with covariances;
            see `symdual.identification.parameters.quantities.choose`.
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
    likelihood = likelihood_of(model, recordings, only, hold, full, method, scenario, name, resample, anyway, folder)
    return fitted(likelihood, starts, report)


def likelihood_of(
    model: ModelSource,
    recordings: Source | Sequence[Source],
    only: Sequence[str] = (),
    hold: Sequence[str] = (),
    full: Sequence[str] = (),
    method: str = "map",
    scenario: str | None = None,
    name: str | None = None,
    resample: bool = False,
    anyway: bool = False,
    folder: str | Path | None = None,
) -> Likelihood:
    """What `fit` maximises."""
    contents = contents_of(model)
    chosen, known = chosen_model(contents, name, scenario)
    if not processes_of(chosen):
        about = prior_model(model, scenario, name, folder)
        read = read_recordings(recordings, about.package, about.around, resample)
        return parameter_likelihood(about, read, only, hold, full, method, anyway)
    if method != "map":
        raise SymdualError(
            "a model with Gaussian processes has its unknowns integrated out with their prior, so there is no "
            "likelihood without it"
        )
    if known is None:
        raise SymdualError(
            f"{contents.place} has no Scenario of {chosen.name}: add one, its start and start_covariance say what is "
            "known of the first state of a recording"
        )
    return process_likelihood(chosen, known, recordings, only, hold, full, resample, anyway)
