"""Runs the arms of experiments as sweeps (`symdual.runtime.sweep`), which keep what is done and can go on with it.

Arms that share their constants form one sweep. Run i of any sweep has child i of one `SeedSequence`: all arms meet the
same random draws, and the first 50 of 400 runs are the 50 runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.paper.experiments.plan import TRUTHS, Arm
from symdual.runtime.checkpoints import kept
from symdual.runtime.closed_loop import Settings
from symdual.runtime.posterior import loss_sentences
from symdual.runtime.problem import Problem
from symdual.runtime.results import Results
from symdual.runtime.sweep import CHECKPOINTS, Doing, run_sweep, sweep
from symdual.runtime.threads import on_this_machine


class Recorded(NamedTuple):
    """What a results file keeps of one controller's runs, first axis run; see `symdual.runtime.results.FIELDS`."""

    states: Array
    inputs: Array
    means: Array
    variances: Array
    step_costs: Array
    nis: Array
    measured: Array
    costs: Array
    nees_parameters: Array
    outcomes: NDArray[np.int64]
    truths: Array

    def first(self, count: int) -> Recorded:
        """The first runs."""
        return Recorded._make(part[:count] for part in self)


class Job(NamedTuple):
    """All runs of one arm: `group` names the experiment (or a variation of it), `truth` is a key of `TRUTHS`."""

    group: str
    truth: str
    arm: Arm
    problem: Problem

    @property
    def sweep(self) -> str:
        """The name of the sweep that it belongs to; an arm with constants of its own has its own."""
        own = "" if self.arm.is_plain else f"-{self.arm.key}"
        return f"{self.group}-{self.truth}{own}"


def require_writable(folder: Path) -> None:
    """Make a folder, or say that it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".probe"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as failure:
        raise SymdualError(f"cannot write to the folder {folder}: {failure.strerror}") from failure


@dataclass
class Runner:
    """Runs jobs below a folder; what it has run once it does not run again.

    Args:
        resume: use what an earlier, interrupted command has left there.
        progress: hears what is running and how much of all is done.
        tell: hears, in whole sentences, what was found damaged.
    """

    folder: Path
    seed: int
    resume: bool = False
    progress: Callable[[str, float], None] = lambda what, fraction: None
    tell: Callable[[str], None] = lambda sentence: None
    _done: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def run(self, jobs: Sequence[Job], runs: int) -> list[Recorded]:
        """The runs of every job, in their order."""
        sweeps: dict[str, list[Job]] = {}
        for job in jobs:
            sweeps.setdefault(job.sweep, []).append(job)
        for position, (name, members) in enumerate(sweeps.items()):

            def report(doing: Doing, position: int = position, job: Job = members[0]) -> None:
                fraction = (position + doing.done / max(doing.total, 1)) / len(sweeps)
                self.progress(f"{job.sweep}: {doing.what}", fraction)

            self._sweep(name, members, runs, report)
        return [self._read(job) for job in jobs]

    def know(self, jobs: Sequence[Job]) -> None:
        """Take jobs for done that another runner of the same command has run."""
        for job in jobs:
            self._done[job.sweep] = tuple(dict.fromkeys((*self._done.get(job.sweep, ()), job.arm.controller)))

    def _sweep(self, name: str, members: Sequence[Job], runs: int, report: Callable[[Doing], None]) -> None:
        before = self._done.get(name, ())
        controllers = tuple(dict.fromkeys((*before, *(job.arm.controller for job in members))))
        if controllers == before:
            return
        first = members[0]
        problem = replace(first.arm.problem(first.problem), name=name)
        settings = Settings(truth=TRUTHS[first.truth], order=first.arm.order)
        plan = sweep(problem, controllers, runs, self.seed, settings)
        resume = self.resume or bool(before)
        anew = not resume and not kept(self.folder / name / CHECKPOINTS)  # results of an earlier command are its own
        file = run_sweep(plan, self.folder, on_this_machine(), resume, report, self.tell, force=anew)
        self._done[name] = controllers
        with Results(file) as results:
            for own in controllers:
                for sentence in loss_sentences(results.about["processes"], results.array(own, "losses")):
                    self.tell(f"{name}, {own}: {sentence}")

    def _read(self, job: Job) -> Recorded:
        with Results(self.folder / job.sweep / "results.npz") as results:
            return Recorded(*(results.array(job.arm.controller, name) for name in Recorded._fields))
