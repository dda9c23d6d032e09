"""Generates and compiles the packages of the experiments, several at a time: compiling is most of a first run."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import NamedTuple

import numba

from symdual import api
from symdual.common.errors import SymdualError
from symdual.controllers import parts_for
from symdual.paper.experiments.plan import TRUTHS, Arm
from symdual.runtime.closed_loop import Settings, simulate
from symdual.runtime.costs import cost_kind
from symdual.runtime.loading import load
from symdual.runtime.problem import Problem, problem


class Need(NamedTuple):
    """A model file and the arms and truths that will run on it."""

    file: Path
    arms: tuple[Arm, ...]
    truths: tuple[str, ...]


class _Part(NamedTuple):
    """What one process compiles: one episode of each arm."""

    folder: Path
    truth: str
    arms: tuple[Arm, ...]


def problems(
    needs: Sequence[Need],
    folder: Path,
    progress: Callable[[str, float], None] = lambda what, fraction: None,
) -> dict[str, Problem]:
    """The problem of each model file by its name, its packages generated below `folder` and compiled."""
    for need in needs:
        progress(f"deriving {need.file.stem}", 0.0)
        try:
            api.generate(need.file, folder, parts=parts_for(arm.controller for arm in need.arms))
        except OSError as fault:
            raise SymdualError(f"cannot write to the folder {folder}: {fault.strerror}") from fault
    found = {need.file.stem: problem(load(folder / need.file.stem)) for need in needs}
    parts = [part for need in needs for part in _parts(need, found[need.file.stem], folder)]
    _compile([part for part in parts if not _mark(part).exists()], progress)
    return found


def _parts(need: Need, problem: Problem, folder: Path) -> list[_Part]:
    """The model's package and that of its plant are compiled apart: the oracle plans with the plant's own package."""
    place = folder / need.file.stem
    model = [arm for arm in need.arms if arm.controller != "oracle"]
    separate = problem.plant.name != problem.package.name
    parts = []
    for truth in need.truths:
        if truth == "paper" and separate:
            parts.append(_Part(place, truth, tuple(arm for arm in need.arms if arm.controller == "oracle")))
        first_of_kind = {cost_kind(problem, arm.controller, arm.order, problem.horizon): arm for arm in reversed(model)}
        if truth == need.truths[0]:
            parts.append(_Part(place, truth, tuple(first_of_kind.values())))
    return [part for part in parts if part.arms]


def _compile(parts: Sequence[_Part], progress: Callable[[str, float], None]) -> None:
    if not parts:
        return
    workers = min(len(parts), os.cpu_count() or 1)
    waiting = list(parts)
    progress(f"compiling {_names(waiting)}", 0.0)
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(_one_episode, part): part for part in parts}
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                future.result()
                part = futures[future]
                _mark(part).write_bytes(b"")
                waiting.remove(part)
                progress(f"compiling {_names(waiting)}", done / len(parts))
        except BrokenProcessPool:
            return  # a worker died, say for want of memory: what is missing is compiled when it is first called
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _names(parts: Sequence[_Part]) -> str:
    return ", ".join(dict.fromkeys(part.folder.name for part in parts))


def _one_episode(part: _Part) -> None:
    own = problem(load(part.folder))
    for arm in part.arms:
        simulate(arm.problem(own), [arm.controller], 1, 0, Settings(truth=TRUTHS[part.truth], order=arm.order))


def _mark(part: _Part) -> Path:
    """A file that says that this was compiled by this numba; if it lies, compiling merely happens later."""
    own = problem(load(part.folder))
    text = f"{numba.__version__} {own.package.DIGEST} {own.plant.DIGEST} {part.truth} {part.arms}"
    return part.folder / "__pycache__" / f"compiled-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
