"""Everything that `symdual paper run` finds out, as one value: tables, words, figures, studies, times."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import symdual
from symdual.paper.experiments import prepare, words
from symdual.paper.experiments.plan import COMMON_ASSUMPTIONS, Experiment
from symdual.paper.experiments.run import Job, Recorded, Runner, require_writable
from symdual.paper.experiments.table import Table, as_json, table
from symdual.paper.experiments.words import Expectation
from symdual.runtime.problem import Problem

if TYPE_CHECKING:
    from symdual.paper.experiments.figures.style import Picture
    from symdual.paper.experiments.study import Study

Report = Callable[[str, float], None]
Tables = dict[tuple[int, str], Table]
Tell = Callable[[str], None]
Runs = dict[tuple[int, str], dict[str, Recorded]]


@dataclass(frozen=True)
class Request:
    """What was asked for.

    Args:
        folder: packages, sweeps and figures go below it.
        quick: fewer samples in the figures.
    """

    experiments: tuple[Experiment, ...]
    truths: tuple[str, ...]
    runs: int
    seed: int
    folder: Path
    resume: bool = False
    extra: bool = False
    quick: bool = False

    @property
    def sweeps(self) -> Path:
        """Where the sweeps lie."""
        return self.folder / "sweeps"


@dataclass(frozen=True)
class Outcome:
    """What came out; `seconds` says how long preparing, the experiments and all else took."""

    request: Request
    tables: Tables
    expectations: Sequence[Expectation]
    pictures: Sequence[Picture]
    studies: Sequence[Study]
    seconds: Mapping[str, float] = field(default_factory=dict)


def carry_out(
    request: Request,
    report: Report = lambda what, fraction: None,
    tell: Tell = lambda sentence: None,
) -> Outcome:
    """Generate, compile, run, draw."""
    require_writable(request.sweeps)
    runner = Runner(request.sweeps, request.seed, request.resume, report, tell)
    watch = _Watch()
    needs = [prepare.Need(e.file, e.arms, request.truths) for e in request.experiments]
    problems = prepare.problems(needs, request.folder / "generated", report)
    watch.lap("deriving and compiling")
    runs = experiments(request, problems, runner)
    tables = {
        (e.number, truth): table(e, truth, problems[e.model].package, runs[e.number, truth])
        for e in request.experiments
        for truth in request.truths
    }
    expected = words.expectations(tables, runs)
    if "toy" in problems:
        expected = words.toy_expectations(problems["toy"]) + expected
    watch.lap("experiments")
    pictures = _pictures(request, problems, runs, report)
    watch.lap("figures")
    studies: list[Study] = []
    if request.extra:
        from symdual.paper.experiments.extra import all_studies

        studies = all_studies(request, runner, report)
        watch.lap("beyond the paper")
    return Outcome(request, tables, expected, pictures, studies, watch.laps)


def experiments(request: Request, problems: Mapping[str, Problem], runner: Runner) -> Runs:
    """The runs of every experiment and truth, by arm."""
    places = [(e, truth, arm) for e in request.experiments for truth in request.truths for arm in e.arms]
    jobs = [Job(f"exp{e.number}", truth, arm, problems[e.model]) for e, truth, arm in places]
    runs: Runs = {}
    for (experiment, truth, arm), recorded in zip(places, runner.run(jobs, request.runs), strict=True):
        runs.setdefault((experiment.number, truth), {})[arm.key] = recorded
    return runs


def _pictures(request: Request, problems: Mapping[str, Problem], runs: Runs, report: Report) -> list[Picture]:
    from symdual.paper.experiments.figures.gallery import gallery

    return gallery(problems, runs, request.seed, 1000 if request.quick else 6000, report)


class _Watch:
    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._started = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = now - self._started
        self._started = now


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
