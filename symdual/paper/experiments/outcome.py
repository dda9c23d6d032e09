"""Everything that `symdual paper run` finds out, as one value: tables, words, figures, studies, times."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import symdual
from symdual.paper.experiments import words
from symdual.paper.experiments.crew import Crew, Report, Tell
from symdual.paper.experiments.plan import COMMON_ASSUMPTIONS, Experiment
from symdual.paper.experiments.run import Recorded, Runner, require_writable
from symdual.paper.experiments.table import Table, as_json, table
from symdual.paper.experiments.trial import Trial, attempt, jobs_of
from symdual.paper.experiments.words import Expectation

if TYPE_CHECKING:
    from symdual.paper.experiments.figures.style import Picture
    from symdual.paper.experiments.study import Study

Tables = dict[tuple[int, str], Table]
Runs = dict[tuple[int, str], dict[str, Recorded]]


@dataclass(frozen=True)
class Request:
    """What was asked for.

    Args:
        folder: packages, sweeps and figures go below it.
        quick: fewer samples in the figures, and the sweeps are deleted when all is done.
        backend: what compiles, "c" or "numba"; by default C where a compiler works.
    """

    experiments: tuple[Experiment, ...]
    truths: tuple[str, ...]
    runs: int
    seed: int
    folder: Path
    resume: bool = False
    extra: bool = False
    quick: bool = False
    backend: str | None = None

    @property
    def sweeps(self) -> Path:
        """Where the sweeps lie."""
        return self.folder / "sweeps"


@dataclass(frozen=True)
class Outcome:
    """What came out; `seconds` says how long each experiment took from model to runs, and everything together."""

    request: Request
    tables: Tables
    expectations: Sequence[Expectation]
    pictures: Sequence[Picture]
    studies: Sequence[Study]
    seconds: Mapping[str, float] = field(default_factory=dict)

    def of(self, number: int) -> list[Table]:
        """The tables of an experiment, the fair test first."""
        return [self.tables[number, truth] for truth in ("prior", "paper") if (number, truth) in self.tables]


def carry_out(
    request: Request,
    report: Report = lambda where, what, share: None,
    tell: Tell = lambda sentence: None,
    meanwhile: Sequence[Callable[[], object]] = (),
) -> Outcome:
    """Generate, compile, run, draw, on all cores; an experiment's figures are drawn while others still run.

    `meanwhile`: something else to be done in one of the processes, say a check; it can be pickled.
    """
    from symdual.paper.experiments.figures.gains import gains_figure
    from symdual.paper.experiments.figures.gallery import drawn, sketches

    require_writable(request.sweeps)
    began = time.perf_counter()
    trials: dict[int, Trial] = {}
    drawing: dict[int, list[Future[Picture]]] = {}
    toy: Future[list[Expectation]] | None = None
    with Crew(report, tell) as crew:
        settings = request.truths, request.runs, request.seed, request.folder, request.resume, request.backend
        running = {crew.call(attempt, e, *settings): e.number for e in request.experiments}
        besides = [crew.call(one) for one in meanwhile]
        for call in crew.finished(running):
            number, trial = running[call], call.result()
            trials[number] = trial
            if number == 1:
                toy = crew.call(words.toy_expectations, trial.problem)
            drawing[number] = [crew.call(drawn, s) for s in sketches(number, trial.problem, trial.runs, request)]
        for _ in crew.finished(besides):
            pass
        figures = [call for _, calls in sorted(drawing.items()) for call in calls]
        for done, _ in enumerate(crew.finished(figures), start=1):
            report("figures", f"drawing, {done} of {len(figures)}", done / len(figures))
        pictures = [call.result() for call in figures]
        expected = [] if toy is None else toy.result()
    runs = {(number, truth): found for number, trial in trials.items() for truth, found in trial.runs.items()}
    tables = {
        (e.number, truth): table(e, truth, trials[e.number].problem.package, runs[e.number, truth])
        for e in request.experiments
        for truth in request.truths
    }
    expected += words.expectations(tables, runs)
    fair = words.fair_truth(tables)
    pictures.insert(0, gains_figure([own for (_, truth), own in tables.items() if truth == fair]))
    seconds = {f"Exp {number}": trial.seconds for number, trial in sorted(trials.items())}
    studies = _studies(request, trials, report, tell) if request.extra else []
    if request.quick:
        shutil.rmtree(request.sweeps)
    seconds[f"everything, on {os.cpu_count()} cores"] = time.perf_counter() - began
    return Outcome(request, tables, expected, pictures, studies, seconds)


def _studies(request: Request, trials: Mapping[int, Trial], report: Report, tell: Tell) -> list[Study]:
    from symdual.paper.experiments.extra import all_studies

    def further(what: str, share: float) -> None:
        report("beyond the paper", what, share)

    runner = Runner(request.sweeps, request.seed, request.resume, further, tell)
    for experiment in request.experiments:
        runner.know(jobs_of(experiment, trials[experiment.number].problem, request.truths))
    return all_studies(request, runner, further)


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """The outcome as plain data: no times and no paths, so that the same seed gives the same bytes."""
    request = outcome.request
    return {
        "symdual": symdual.__version__,
        "runs": request.runs,
        "seed": request.seed,
        "truths": list(request.truths),
        "assumptions": list(COMMON_ASSUMPTIONS),
        "tables": [{**as_json(one), "in_words": sentences(one)} for one in outcome.tables.values()],
        "expectations": [{"claim": e.claim, "measured": e.measured, "holds": e.holds} for e in outcome.expectations],
        "extra": {study.key: study.data for study in outcome.studies},
    }


def sentences(one: Table) -> list[str]:
    """What a table says, in plain words."""
    return [*words.against_paper(one), *words.against_ce(one), *words.about_beliefs(one)]
