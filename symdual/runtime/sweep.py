"""Sweeps: many episodes with several controllers, in chunks that are kept as they finish.

An episode depends on the sweep's seed and on its own number alone: its random draws come from child `run` of
`SeedSequence(seed)`, the same for all controllers. So neither the number of threads, nor machines, nor interruptions
show in the results.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from importlib import metadata
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

import symdual
from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.common.lazy import cached_property
from symdual.common.package_folders import locked
from symdual.controllers import NAMES, knows_truth
from symdual.runtime import result_fields
from symdual.runtime.checkpoints import CONTINUE, ELSEWHERE, Checkpoints, kept, owner
from symdual.runtime.closed_loop import NoiseDraws, Settings, checked_settings, draw, plant_problem, run_part
from symdual.runtime.constraints import warn_of_start
from symdual.runtime.controller import controller
from symdual.runtime.costs import require_fit
from symdual.runtime.evaluate import whole_number
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.objective import constraints_of, has_objective
from symdual.runtime.posterior import capacities
from symdual.runtime.problem import Problem
from symdual.runtime.readiness import make_ready
from symdual.runtime.results import (
    FORMAT,
    SHARED,
    Chunk,
    Description,
    Remains,
    remains,
    write_results,
    written_format,
)
from symdual.runtime.stiffness import step_length

CHUNK = 16  # runs; fixed, so that a sweep with more runs can use those of a smaller one
MOST_RUNS = 10_000_000  # all chunks are listed in memory and in the results
RESULTS = "results.npz"
CHECKPOINTS = "chunks"
_VAGUE = "another version of the model or its numbers"


class Doing(NamedTuple):
    """How far a sweep is: episodes done and in all, and what is going on."""

    done: int
    total: int
    what: str


Execute = Callable[["Sweep", list[Chunk]], Generator[tuple[Chunk, bytes], None, None]]


@dataclass(frozen=True, eq=False)
class Sweep:
    """What is to be simulated: `runs` episodes with each of the controllers; made by `sweep`."""

    problem: Problem
    controllers: tuple[str, ...]
    runs: int
    seed: int
    settings: Settings

    @property
    def chunks(self) -> list[Chunk]:
        """All chunks: run after run, so that every controller is equally far at any time."""
        starts = range(0, self.runs, CHUNK)
        return [Chunk(name, at, min(at + CHUNK, self.runs)) for at in starts for name in self.controllers]

    @cached_property
    def description(self) -> Description:
        """What the results say about themselves."""
        problem, package = self.problem, self.problem.package
        names = {key: list(getattr(package, key.upper())) for key in ("states", "inputs", "measurements", "unknowns")}
        names["belief"] = list(package.belief_names)
        names["parameters"] = list(problem.plant.belief_names[problem.plant.NX :])
        identity = {
            "format": FORMAT,
            "model": package.name,
            "plant": problem.plant.name,
            "scenario": problem.name,
            "settings": asdict(self.settings),
            "seed": self.seed,
            "seeds": "run i draws from numpy.random.default_rng(numpy.random.SeedSequence(seed, spawn_key=(i,)))",
            "digests": {
                "model": package.model_digest,
                "plant": problem.plant.model_digest,
                "problem": _problem_digest(problem),
            },
            "horizon": self.steps,
            "names": names,
            "processes": capacities(package),
            "outcomes": list(result_fields.REASONS),
            "versions": versions() | ({"backend": "c"} if package.backend == "c" else {}),
        }
        if "step_length" in package.DATA_ENTRIES:
            identity["step"] = step_length(package)
        if has_objective(package):
            identity["cost"] = package.COST
        bounded = {role: _bounds_of(one) for role, one in (("model", package), ("plant", problem.plant))}
        if any(bounded.values()):
            identity["bounds"] = bounded
        if constraints_of(package):
            identity["constraints"] = list(package.CONSTRAINTS)
        if problem.choices is not None:
            values = zip(package.INPUTS, problem.choices, strict=True)
            identity["choices"] = {
                name: row[~np.isnan(row)].tolist() for name, row in values if not np.isnan(row).all()
            }
        if problem.signals is not None:
            heard, true, believed = problem.signals
            identity["signals"] = {
                name: {"true": _said(true[:, i]), "believed": _said(believed[:, i])} for i, name in enumerate(heard)
            }
        sizes = {name: self._sizes(name) for name in self.controllers}
        return Description(identity, self.controllers, self.runs, sizes)

    @property
    def steps(self) -> int:
        """The number of inputs in an episode."""
        return self.problem.horizon if self.settings.length is None else self.settings.length

    def _sizes(self, name: str) -> dict[str, int]:
        package, plant = self.problem.package, self.problem.plant
        believed = plant if knows_truth(name) else package
        return {
            "time": self.steps + 1,
            "step": self.steps,
            "state": package.NX,
            "input": package.NU,
            "belief": believed.NZ,
            "parameter": plant.NTHETA,
            "process": len(believed.PROCESSES),
            "loss": 3,
            "constraint": constraints_of(believed),
        }

    def noise_draws(self, chunks: Sequence[Chunk]) -> NoiseDraws:
        """Draw what is drawn at random for the runs of some chunks."""
        numbers = [number for chunk in chunks for number in range(chunk.start, chunk.stop)]
        seeds = [np.random.SeedSequence(self.seed, spawn_key=(i,)) for i in numbers]
        with one_blas_thread():
            return draw(self.problem, self.settings, seeds)

    def payloads(self, chunks: Sequence[Chunk], noise_draws: NoiseDraws) -> list[tuple[Chunk, bytes]]:
        """Run chunks of one controller together; returns the payload of each."""
        name = chunks[0].controller
        episodes = run_part(self.problem, name, noise_draws, self.settings)
        with one_blas_thread():
            arrays = result_fields.fields(self.problem, name, noise_draws, episodes)
        payloads, first = [], 0
        for chunk in chunks:
            last = first + chunk.stop - chunk.start
            own = {key: array[first:last] for key, array in arrays.items()}
            payloads.append((chunk, self.description.payload(chunk, own)))
            first = last
        return payloads


def sweep(
    problem: Problem,
    controllers: Sequence[str],
    runs: int,
    seed: int = 0,
    settings: Settings = Settings(),  # noqa: B008
) -> Sweep:
    """Plan a sweep, or say in one sentence what is wrong with it."""
    runs = whole_number(runs, "the number of runs", most=MOST_RUNS)
    seed = whole_number(seed, "the seed", least=0)
    settings = checked_settings(settings)
    if not controllers:
        raise SymdualError("a sweep needs at least one controller")
    own = plant_problem(problem, settings)
    names = tuple(dict.fromkeys([controllers] if isinstance(controllers, str) else controllers))
    for name in names:
        if name not in NAMES:
            controller(own, name)  # says what is wrong
    for name in names:
        require_fit(own, name, settings.order, settings.window or own.horizon)
    return Sweep(own, names, runs, seed, settings)


def versions() -> dict[str, str]:
    """The versions of everything that computes."""
    return {
        "symdual": symdual.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": metadata.version("numba"),
    }


def one_blas_thread() -> AbstractContextManager[object]:
    """Matrix routines that round in the same way whatever the number of cores."""
    limit: AbstractContextManager[object] = _blas().limit(limits=1, user_api="blas")
    return limit


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def _said(values: Array) -> list[float | None]:
    """What a signal is over time; nothing where nobody said so, for NaN is not equal to itself."""
    return [None if np.isnan(value) else float(value) for value in values]


_OPTIONAL = ("objective", "signals", "truth_path", "choices")  # parts of a problem that most have none of


def _problem_digest(problem: Problem) -> str:
    """The SHA-256 of all numbers that a sweep depends on: the model's, the plant's and the problem's."""
    total = hashlib.sha256()
    for role, package in (("model", problem.package), ("plant", problem.plant)):
        for key in sorted(package.numbers):
            if not key.startswith("scenario."):  # other scenarios do not matter, this one is in the problem
                _add(total, f"{role}.{key}", package.numbers[key])
    for part in fields(Problem):
        value = getattr(problem, part.name)
        if part.name not in ("name", "package", "plant") and not (part.name in _OPTIONAL and value is None):
            parts = {"signals": slice(1, None), "prior": slice(0, 3)}.get(
                part.name, slice(None)
            )  # names are no numbers
            for position, array in enumerate(value[parts] if isinstance(value, tuple) else [value]):
                _add(total, f"{part.name}.{position}", np.zeros(0) if array is None else np.asarray(array))
    return total.hexdigest()


def _add(total: Any, key: str, array: Any) -> None:
    total.update(f"{key} {array.shape}\n".encode())
    total.update(np.ascontiguousarray(array, dtype="<f8").tobytes())


# ------------------------------------------------------------ running


def place_beside(plan: Sweep, parent: str | Path, resume: bool) -> str:
    """The first of `cart`, `cart-2`, `cart-3` ... in which this sweep loses nothing of another one.

    To resume is to go on with what is there: where nothing is, the usual place, which says what is wrong with it.
    """
    usual = plan.problem.name
    for number in count(1):
        place = usual if number == 1 else f"{usual}-{number}"
        folder = Path(parent) / place
        if not (folder / RESULTS).exists() and not kept(folder / CHECKPOINTS):
            return usual if resume else place
        with suppress(SymdualError):
            _refuse_to_overwrite(plan, folder / RESULTS)
            _refuse_other_chunks(plan, folder / CHECKPOINTS, resume=True)
            return place
    raise AssertionError


def results_folder(plan: Sweep, parent: str | Path, overwrite: bool, place: str | None = None) -> Path:
    """The folder of a sweep, made if need be; results that it would lose are refused unless they may be overwritten."""
    folder = Path(parent) / (place or plan.problem.name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise SymdualError(f"cannot make the folder {folder}: {failure.strerror}") from failure
    if not overwrite:
        _refuse_to_overwrite(plan, folder / RESULTS)
    return folder


def as_begun(problem: Problem, parent: str | Path) -> Problem:
    """The problem for a sweep that is to be continued: compiled by numba where that was so, as it is otherwise."""
    folder = Path(parent) / problem.name
    old = remains(folder / RESULTS)
    earlier = owner(folder / CHECKPOINTS) or (None if old is None else old.description)
    by_numba = earlier is not None and "backend" not in earlier.identity.get("versions", ())
    return problem.by_numba() if by_numba else problem


def run_sweep(
    plan: Sweep,
    parent: str | Path,
    execute: Execute,
    resume: bool = False,
    progress: Callable[[Doing], None] = lambda doing: None,
    tell: Callable[[str], None] = lambda sentence: None,
    force: bool = False,
    place: str | None = None,
) -> Path:
    """Run what is not done yet and write the results; returns the file, `parent/<scenario>/results.npz`.

    Args:
        execute: runs chunks and gives their payloads as they finish, in any order.
        resume: use the chunks and results that are there; without it, chunks that were kept are an error.
        progress: is told how far the sweep is.
        tell: is told, in whole sentences, what was found damaged.
        force: overwrite results, and forget chunks that were kept, of whatever sweep.
        place: the name of the folder below `parent`, if it is not that of the scenario.

    Results that this sweep would not contain again are overwritten only by force. Finished chunks are kept in the
    folder `chunks` beside the results until those are written. Whatever ends the process, `resume` continues from
    there.
    """
    warn_of_start(plan.problem, stacklevel=2)
    folder = results_folder(plan, parent, overwrite=True, place=place)
    with locked(folder, wait=False) as held:
        if not held:
            raise SymdualError(f"another symdual is running a sweep in {folder} at this moment")
        if force:
            Checkpoints(folder / CHECKPOINTS, plan.description).remove()
        elif not resume:
            _refuse_to_overwrite(plan, folder / RESULTS)
        if not resume:
            progress(Doing(0, plan.runs * len(plan.controllers), "compiling"))
        make_ready(plan.problem, plan.controllers, plan.settings.order, plan.settings.window)
        # a new one, for the description tells who computes
        return _run_locked(replace(plan), folder, execute, resume, progress, tell)


def _run_locked(
    plan: Sweep,
    folder: Path,
    execute: Execute,
    resume: bool,
    progress: Callable[[Doing], None],
    tell: Callable[[str], None],
) -> Path:
    target = folder / RESULTS
    checkpoints = Checkpoints(folder / CHECKPOINTS, plan.description)
    old = _earlier_results(plan, target, tell) if resume else None
    _refuse_other_chunks(plan, checkpoints.folder, resume)
    if old is not None and old.description == plan.description and old.is_whole():
        return target
    checkpoints.begin()
    if old is not None:
        _restore(plan, old, checkpoints, tell)
    pending = [chunk for chunk in plan.chunks if not _is_done(checkpoints, chunk, tell)]
    total = plan.runs * len(plan.controllers)
    done = total - sum(chunk.stop - chunk.start for chunk in pending)
    progress(Doing(done, total, "loading"))
    if pending:
        with closing(execute(plan, pending)) as finished:  # so that a cluster is told even of an end that comes here
            for chunk, payload in finished:
                checkpoints.write(chunk, payload)
                done += chunk.stop - chunk.start
                progress(Doing(done, total, f"simulating {chunk.controller}"))
    progress(Doing(done, total, "writing"))
    problem = {name: getattr(plan.problem, name) for name in SHARED}
    try:
        write_results(
            target, plan.description, problem, {c: checkpoints.digests[c] for c in plan.chunks}, checkpoints.read
        )
    except OSError as failure:
        raise SymdualError(
            f"cannot write {target}: {failure.strerror}; all {len(plan.chunks)} chunks are kept, {CONTINUE}"
        ) from failure
    checkpoints.remove()
    return target


def _earlier_results(plan: Sweep, target: Path, tell: Callable[[str], None]) -> Remains | None:
    if not target.exists():
        return None
    other = written_format(target)
    if other not in (None, FORMAT):
        raise SymdualError(f'{target} is in the format "{other}", and this symdual writes "{FORMAT}"; {ELSEWHERE}')
    old = remains(target)
    if old is None:
        tell(f"{target} is damaged from its first bytes on, nothing in it can be used")
        return None
    _require_same(plan, old.description, target)
    return old


def _refuse_to_overwrite(plan: Sweep, target: Path) -> None:
    """Never replace the results of another sweep without being asked to."""
    if target.exists():
        advice = f"overwrite it with --force (in Python force=True), or {ELSEWHERE}"
        old = remains(target)
        if old is None:
            raise SymdualError(f"{target} holds something else than results of this symdual; {advice}")
        _require_same(plan, old.description, target, advice)


def _refuse_other_chunks(plan: Sweep, folder: Path, resume: bool) -> None:
    """Never throw away or mix in the chunks of an unfinished sweep."""
    number = kept(folder)
    if number and not resume:
        raise SymdualError(
            f"{folder} holds {number} finished chunks of a sweep that was interrupted; {CONTINUE}, or delete that "
            "folder to start again"
        )
    earlier = owner(folder) if number else None
    if earlier is not None:
        _require_same(plan, earlier, folder)


def _require_same(plan: Sweep, earlier: Description, place: Path, advice: str = ELSEWHERE) -> None:
    """Say in what an earlier sweep differs; more runs and more controllers than before are welcome."""
    for key, value in plan.description.identity.items():
        other = earlier.identity.get(key)
        if other != value:
            difference = _VAGUE if key == "digests" else _difference(key, other, value)
            raise SymdualError(f"{place} holds a sweep with {difference}; {advice}")
    lost = [name for name in earlier.controllers if name not in plan.controllers]
    if lost or earlier.runs > plan.runs:
        raise SymdualError(
            f"{place} holds {earlier.runs} runs of {', '.join(earlier.controllers)}, and this sweep would drop some; "
            f"ask for at least these, or {advice}"
        )


def _difference(key: str, other: Any, value: Any) -> str:
    if isinstance(other, dict) and isinstance(value, dict):
        missing = "nothing"  # which no sweep has as a value
        pairs = ((k, other.get(k, missing), value.get(k, missing)) for k in [*value, *other])
        key, other, value = next((k, one, two) for k, one, two in pairs if one != two)
    return f"{key} {other}, not {value}"


def _restore(plan: Sweep, old: Remains, checkpoints: Checkpoints, tell: Callable[[str], None]) -> None:
    """Take the chunks that are whole out of an earlier results file."""
    wanted = set(plan.chunks)
    for chunk, payload in old.payloads():
        if payload is None:
            tell(f"{old.path} is damaged: {chunk} are lost and are done again")
        elif chunk in wanted and not _is_done(checkpoints, chunk, tell):
            checkpoints.write(chunk, payload)


def _is_done(checkpoints: Checkpoints, chunk: Chunk, tell: Callable[[str], None]) -> bool:
    try:
        return checkpoints.find(chunk)
    except ValueError as damage:
        tell(f"the checkpoint of {chunk} is lost ({damage}) and is done again")
        return False


def _bounds_of(package: LoadedPackage) -> dict[str, Any]:
    """The bounds of the unknowns that have some."""
    return {name: list(one.sides) for name, one in zip(package.belief_names, package.transforms, strict=False) if one}
