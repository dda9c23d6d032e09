"""Runs arms of experiments chunk by chunk; every finished chunk is kept on disk, so that an interrupted run can go on.

Run i of an experiment has the i-th child of one `SeedSequence`: all arms meet the same luck, and the first 50 of 400
runs are the 50 runs.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

import symdual
from symdual.errors import SymdualError
from symdual.paper.experiments.plan import TRUTHS, Arm
from symdual.runtime.closed_loop import Episodes, Settings, draw, plant_problem, run_part, warn_of_losses
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Problem
from symdual.whole_file import write_whole

CHUNK = 50  # runs


class Job(NamedTuple):
    """All runs of one arm: `group` names the experiment (or a variation of it), `truth` is a key of `TRUTHS`."""

    group: str
    truth: str
    arm: Arm
    problem: Problem


@dataclass(frozen=True)
class Store:
    """A folder with finished chunks; `resume` says whether those that are already there count."""

    folder: Path
    resume: bool

    def prepare(self) -> None:
        """Make the folder, or say that it cannot be written."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            probe = self.folder / ".probe"
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as problem:
            raise SymdualError(f"cannot write to the folder {self.folder}: {problem.strerror}") from problem

    def read(self, name: str, identity: str) -> Episodes | None:
        """A finished chunk, or None when it is missing, damaged, or of another run."""
        if not self.resume:
            return None
        try:
            with np.load(io.BytesIO((self.folder / name).read_bytes())) as stored:
                if str(stored["identity"]) != identity:
                    return None
                return Episodes(*(stored[field] for field in Episodes._fields))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def write(self, name: str, identity: str, episodes: Episodes) -> None:
        """Keep a chunk; its file is whole or does not exist."""
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, identity=np.array(identity), **episodes._asdict())
        try:
            write_whole(self.folder / name, buffer.getvalue())
        except OSError as problem:
            raise SymdualError(
                f"cannot write {self.folder / name}: {problem.strerror}; what is done is kept, go on with --resume"
            ) from problem


def run_jobs(
    jobs: Sequence[Job],
    runs: int,
    seed: int,
    store: Store,
    progress: Callable[[str, float], None] = lambda what, fraction: None,
) -> list[Episodes]:
    """The episodes of every job, in their order; `progress` hears what is running and how much of all is done."""
    if runs < 1:
        raise SymdualError(f"the number of runs must be at least 1, not {runs}")
    store.prepare()
    results = []
    for position, job in enumerate(jobs):

        def report(fraction: float, position: int = position, job: Job = job) -> None:
            what = f"{job.group}, truth from the {job.truth}: {job.arm.label}"
            progress(what, (position + fraction) / len(jobs))

        results.append(run_job(job, runs, seed, store, report))
    return results


def run_job(
    job: Job, runs: int, seed: int, store: Store, progress: Callable[[float], None] = lambda fraction: None
) -> Episodes:
    """The episodes of one job."""
    settings = Settings(truth=TRUTHS[job.truth], order=job.arm.order)
    task = plant_problem(job.arm.problem(job.problem), settings)
    seeds = np.random.SeedSequence(seed).spawn(runs)
    fixed = fingerprint(task, job.arm)
    parts = []
    for start in range(0, runs, CHUNK):
        progress(start / runs)
        stop = min(start + CHUNK, runs)
        name = f"{job.group}-{job.truth}-{job.arm.key}-{start}.npz"
        identity = _digest(fixed, job.truth, seed, start, stop)
        part = store.read(name, identity)
        if part is None:
            part = run_part(task, job.arm.controller, draw(task, settings, seeds[start:stop]), settings)
            store.write(name, identity, part)
        parts.append(part)
    episodes = Episodes._make(np.concatenate(column) for column in zip(*parts, strict=True))
    warn_of_losses(task, job.arm.controller, episodes)
    return episodes


def first_runs(episodes: Episodes, count: int) -> Episodes:
    """The first episodes of a batch."""
    return Episodes._make(part[:count] for part in episodes)


def fingerprint(problem: Problem, arm: Arm) -> str:
    """A digest of everything but chance that decides the numbers of an episode."""
    arrays = [problem.state_cost, problem.input_cost, problem.reference, *problem.prior[:2]]
    arrays += [] if problem.truth is None else [problem.truth]
    return _digest(
        symdual.__version__,
        numba.__version__,
        np.__version__,
        arm.controller,
        arm.order,
        problem.bonus,
        problem.dual_weight,
        problem.truth is None,
        *(_of_package(package) for package in (problem.package, problem.plant)),
        *(_of_array(array) for array in arrays),
    )


def _of_package(package: LoadedPackage) -> str:
    numbers = {key: _of_array(value) for key, value in package.numbers.items() if not key.startswith("scenario.")}
    return _digest(package.DIGEST, numbers)


def _of_array(array: NDArray[np.float64]) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
