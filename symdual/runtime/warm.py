"""Compiles what the controllers of a package need before they need it, on all cores.

Filter, costs, search and episodes meet only through function pointers. A part is one of them, or several with + between
them: an interpreter that compiles one after the other starts numba once and compiles once what they share. What it has
compiled goes to numba's cache, where later processes find it.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from symdual.common.atomic_files import write_atomically
from symdual.common.errors import SymdualError
from symdual.entries.recursions import Workspace
from symdual.entries.types import Records
from symdual.runtime.loading import LoadedPackage, load
from symdual.runtime.places import cache_folder, caching, is_private, private_folder

STEPS = 2  # of the plan on which a part is tried
DECIDE_AND_LEARN = "decision+filter"  # the part that every controller needs besides its cost


# seconds, each alone on a core, of a small model; what they are on another machine is learned
_USUAL = {"filter": 3.0, "decision": 3.0, DECIDE_AND_LEARN: 5.0, "episode": 4.0, "planned": 14.0}
_USUAL_COST = 4.5
_KEPT = 500  # times that are remembered

# the functions of numba's cache by which what is there is known
_MARKS = {
    "filter": ("filter.predict", "filter.update"),
    "decision": ("decision.decide_at", "decision.price_at"),
    "episode": ("episode.episodes",),
}


def missing(folder: Path, parts: Iterable[str]) -> list[Work]:
    """The parts of a package that numba's cache beside it does not hold; nothing where it lies elsewhere, or is none.

    What is damaged there is dropped on the way, and said.
    """
    from symdual.runtime.compiled import holds  # imports numba, which packages through C do without

    real = Path(os.path.realpath(folder))
    beside = os.access(real, os.W_OK) and is_private(real / "__pycache__") and caching()
    if "NUMBA_CACHE_DIR" in os.environ or not beside:
        return []

    def is_there(name: str) -> bool:
        return all(holds(real, function) for function in _MARKS.get(name, (f"decision._{name}",)))

    left = ("+".join(name for name in part.split("+") if not is_there(name)) for part in parts)
    return [Work(folder, part) for part in left if part]


def parts_of(package: LoadedPackage) -> tuple[str, ...]:
    """What the controllers ce, cautious and dual need, the part that takes longest first.

    Costs share most of what they call, so they are one part: "ce" and the forms of the dual cost that the
    scenarios of the package ask for. Search and filter are the other: both take less than half as long.
    """
    forms = {"ce"}
    for name in package.plants:
        cost = package.numbers[f"scenario.{name}.state_cost"]
        forms.add(package.dual_cost.choose_form(len(cost) - 1, cost))
    if not package.plants:
        forms.add(package.dual_cost.choose_form(STEPS))
    return ("+".join(sorted(forms)), DECIDE_AND_LEARN)


def compile_part(package: LoadedPackage, part: str) -> None:
    """Compile one part: "filter", "decision", "episode", names of costs, or several of these with + between them."""
    for name in part.split("+"):
        if name == "filter":
            touch_filter(package, *_belief_and_workspace(package))
        elif name == "decision":
            _compile_decision(package)
        elif name == "episode":
            from symdual.runtime.closed_loop import touch_episode  # which imports this module

            touch_episode(package)
        else:
            package.decision.cost_pointer(name)


def compile_through_c(package: LoadedPackage, progress: Callable[[str, float], None]) -> None:
    """Compile the same parts of a package through C, several at a time: the compiler runs in processes of its own."""
    costs = [name for part in parts_of(package) for name in part.split("+") if name not in _MARKS]
    begun = [package.decision.cost_pointer(name) for name in costs]
    touch_filter(package, *_belief_and_workspace(package))
    for done, (name, pointer) in enumerate(zip(costs, begun, strict=True), start=1):
        progress(name, done / (len(costs) + 1))
        _ = pointer.address  # which waits for it


def _compile_decision(package: LoadedPackage) -> None:
    """Compile what calls a cost for the types that it is given; it cannot be tried without a cost, another part."""
    from numba import typeof, types

    integer, (belief, workspace), table = types.int64, _belief_and_workspace(package), package.search.table()
    held, place = typeof(belief), typeof(workspace)  # type: ignore[no-untyped-call]
    rows, line = types.float64[:, ::1], types.float64[::1]
    head = (integer, types.boolean, line, integer, integer)
    package.decision.decide_at.compile((*head, held, place, typeof(table), line))  # type: ignore[no-untyped-call]
    package.decision.price_at.compile((integer, integer, integer, held, place, rows, rows))


def touch_filter(package: LoadedPackage, belief: Records, workspace: Workspace) -> None:
    """Call the functions of the filter once, on copies."""
    filter_workspace, held = package.filter.make_filter_workspace(workspace.settings.copy()), belief.copy()
    if package.SQUARE_ROOT:
        package.filter_covariance.factorise(held)
        package.filter_covariance.complete(held)
    package.filter.predict(0, held, np.zeros(package.NU), filter_workspace)
    package.filter.update(1, held, np.zeros(package.NY), filter_workspace, np.zeros(3))


def _belief_and_workspace(package: LoadedPackage) -> tuple[Records, Workspace]:
    """A belief at zero and a workspace without costs."""
    records, nx, nu = package.records, package.NX, package.NU
    bounds = np.array([package.numbers["lower"], package.numbers["upper"]])
    task = records.make_settings(*package.noise, bounds, package.numbers["data"])
    costs = np.zeros((STEPS + 1, nx, nx)), np.zeros((STEPS, nu, nu)), np.zeros((STEPS + 1, nx))
    belief = records.make_belief(np.zeros(package.NZ), np.eye(package.NZ))
    return belief, records.make_workspace(STEPS, records.make_stage_costs(*costs), task)


class Work(NamedTuple):
    """A part of a package that is to be compiled."""

    folder: Path
    part: str


class Doing(NamedTuple):
    """What is being compiled, which share of the time is over, and how many seconds are left, as far as is known."""

    what: str
    share: float
    left: float


def warm(works: Iterable[Work], progress: Callable[[Doing], None] = lambda doing: None) -> dict[str, float]:
    """Compile parts of packages in as many processes as there are cores; returns the seconds that each took."""
    expected = Expected()
    waiting = sorted(works, key=lambda work: -expected.seconds(work))
    seconds, began = dict[str, float](), time.perf_counter()
    running: dict[Work, tuple[subprocess.Popen[str], float]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < (os.cpu_count() or 1):
                work = waiting.pop(0)
                running[work] = _started(*work), time.perf_counter()
            progress(_doing(expected, waiting, {work: at for work, (_, at) in running.items()}, began))
            for work, (process, started) in list(running.items()):
                if process.poll() is not None:
                    del running[work]
                    seconds[work.part] = time.perf_counter() - started
                    _require_success(*work, process)
                    expected.learn(work, seconds[work.part])
            time.sleep(0.02)
    finally:
        for process, _ in running.values():
            process.kill()
            process.communicate()
    expected.keep()
    return seconds


def _doing(expected: Expected, waiting: list[Work], running: Mapping[Work, float], began: float) -> Doing:
    """How far the compilers are: those that run need the rest of their time, all others wait for a core."""
    now = time.perf_counter()
    rest = [max(0.5, expected.seconds(work) - (now - at)) for work, at in running.items()]
    later = [expected.seconds(work) for work in waiting]
    left = max([(sum(rest) + sum(later)) / (os.cpu_count() or 1), *rest, *later])
    words = ", ".join(work.part.replace("+", " and ") for work in running)
    return Doing(words, (now - began) / (now - began + left), left)


class Expected:
    """How long parts take to compile: as long as the last time on this machine, or as parts of other packages did."""

    def __init__(self) -> None:
        try:
            self._file: Path | None = cache_folder() / "compile_seconds.json" if caching() else None
            known = json.loads(self._file.read_text()) if self._file is not None and self._file.is_file() else {}
        except (OSError, ValueError, SymdualError):
            self._file, known = None, {}
        self._known: dict[str, float] = {
            key: float(value)
            for key, value in (known.items() if isinstance(known, dict) else ())
            if isinstance(value, int | float) and value > 0
        }

    def seconds(self, work: Work) -> float:
        """What a part will take."""
        own = self._known.get(f"{work.folder.name} {work.part}")
        usual = _USUAL.get(work.part) or sum(_USUAL.get(name, _USUAL_COST) for name in work.part.split("+"))
        return own if own is not None else usual * self._pace

    @property
    def _pace(self) -> float:
        """How much slower this machine was than the one on which the usual times were taken, in the median."""
        ratios = [
            seconds / _USUAL[part] for key, seconds in self._known.items() if (part := key.split(" ")[-1]) in _USUAL
        ]
        return median(ratios) if ratios else 1.0

    def learn(self, work: Work, seconds: float) -> None:
        """Remember how long a part took."""
        self._known[f"{work.folder.name} {work.part}"] = round(seconds, 2)

    def keep(self) -> None:
        """Write it down for the next time, if that is possible."""
        if self._file is not None:
            with suppress(OSError, SymdualError):
                private_folder(self._file.parent)
                latest = dict(list(self._known.items())[-_KEPT:])
                write_atomically(self._file, json.dumps(latest, indent=0).encode())


def _started(folder: Path, part: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _PROGRAM, str(folder), part]
    try:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    except OSError as failure:
        raise SymdualError(f"{sys.executable} cannot be started to compile {folder}: {failure.strerror}") from failure


_PROGRAM = "import sys; from symdual.runtime.warm import main; main(*sys.argv[1:])"


def main(folder: str, part: str) -> None:
    """Compile one part of the package in a folder; for processes of their own.

    Nothing is collected: compiling leaves little garbage, and looking for it takes an eighth of the time.
    """
    gc.disable()
    compile_part(load(Path(folder)), part)


def _require_success(folder: Path, part: str, process: subprocess.Popen[str]) -> None:
    _, errors = process.communicate()
    if process.returncode != 0:
        said = errors.strip().splitlines()
        reason = said[-1] if said else f"the compiler ended with status {process.returncode}"
        raise SymdualError(f"the part {part} of {folder} could not be compiled: {reason}")
