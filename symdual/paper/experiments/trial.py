"""One experiment from its model file to its runs: derived, generated, compiled and run in a process of a crew."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from symdual import api
from symdual.common.errors import SymdualError
from symdual.controllers import parts_for
from symdual.paper.experiments import crew
from symdual.paper.experiments.plan import Arm, Experiment
from symdual.paper.experiments.run import Job, Recorded, Runner
from symdual.runtime.problem import Problem, problem


class Trial(NamedTuple):
    """An experiment that was run: its problem, its runs by truth and arm, and how long that took."""

    problem: Problem
    runs: dict[str, dict[str, Recorded]]
    seconds: float


def ready(file: Path, arms: Iterable[Arm], folder: Path, backend: str | None) -> Problem:
    """The problem of a model file, with its package generated below `folder`."""
    try:
        api.generate(file, folder, parts=parts_for(arm.controller for arm in arms))
    except OSError as fault:
        raise SymdualError(f"cannot write to the folder {folder}: {fault.strerror}") from fault
    return problem(api.load(folder / file.stem, backend))


def jobs_of(experiment: Experiment, own: Problem, truths: Sequence[str]) -> list[Job]:
    """What is run for an experiment."""
    return [Job(f"exp{experiment.number}", truth, arm, own) for truth in truths for arm in experiment.arms]


def attempt(
    experiment: Experiment,
    truths: Sequence[str],
    runs: int,
    seed: int,
    folder: Path,
    resume: bool,
    backend: str | None,
) -> Trial:
    """Run an experiment; to be called in a process of a crew."""
    began, name = time.perf_counter(), f"Exp {experiment.number}"
    crew.report(name, "deriving the model and writing its code", 0.0)
    own = ready(experiment.file, experiment.arms, folder / "generated", backend)
    jobs = jobs_of(experiment, own, truths)
    runner = Runner(
        folder / "sweeps", seed, resume, lambda what, share: crew.report(name, what, 0.2 + 0.8 * share), crew.tell
    )
    found: dict[str, dict[str, Recorded]] = {}
    for job, recorded in zip(jobs, runner.run(jobs, runs), strict=True):
        found.setdefault(job.truth, {})[job.arm.key] = recorded
    crew.report(name, "done", 1.0)
    return Trial(own, found, time.perf_counter() - began)


def check_kernels(experiment: Experiment, folder: Path) -> None:
    """Compare the generated derivatives of an experiment's model with 50 digits; in a process of a crew."""
    name = f"check of Exp {experiment.number}"

    def report(_: str, share: float) -> None:
        crew.report(name, "derivatives against 50 digits", share)

    blocks = api.check(experiment.file, folder / "generated", progress=report, recursions=False)[experiment.model]
    missed = [block.block for block in blocks if not block.passed]
    if missed:
        raise SymdualError(f"{experiment.model}: {', '.join(missed)} differ from their values to 50 digits")
    worst = max(block.error for block in blocks)
    crew.tell(
        f"Exp {experiment.number}: {len(blocks)} kernels and derivatives agree with 50-digit values and with "
        f"differences of the model as written; largest error {worst:.1g}."
    )
    crew.report(name, "done", 1.0)
