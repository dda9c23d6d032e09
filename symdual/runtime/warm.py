"""Compiles what the controllers of a package need before they need it, on all cores.

The parts are independent: filter, costs, search and episodes meet only through function pointers. Each is compiled by
an interpreter of its own and goes to numba's cache, where later processes find it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from symdual.errors import SymdualError
from symdual.runtime.border import Desk, Records
from symdual.runtime.loading import LoadedPackage, load

STEPS = 2  # of the plan on which a part is tried


def is_compiled(folder: Path) -> bool:
    """Whether numba's cache beside a package holds its filter; a cache that lies elsewhere counts as one that does."""
    return "NUMBA_CACHE_DIR" in os.environ or any((folder / "__pycache__").glob("filter.*.nbc"))


def parts_of(package: LoadedPackage) -> tuple[str, ...]:
    """What the controllers ce, cautious and dual need, the part that takes longest first.

    Costs share most of what they call, so they are one part: "certain" and the forms of the dual cost that the
    scenarios of the package ask for.
    """
    forms = {"certain"}
    for name in package.plants:
        cost = package.numbers[f"scenario.{name}.state_cost"]
        forms.add(package.dual_cost.choose_form(len(cost) - 1, cost))
    if not package.plants:
        forms.add(package.dual_cost.choose_form(STEPS))
    return ("+".join(sorted(forms)), "decision", "filter")


def compile_part(package: LoadedPackage, part: str) -> None:
    """Compile one part: "filter", "decision", or names of costs with + between them."""
    if part == "filter":
        touch_filter(package, *_belief_and_desk(package))
    elif part == "decision":
        package.decision.decide_at.compile(_decision_types(package))
    else:
        for kind in part.split("+"):
            package.decision.cost_pointer(kind)


def _decision_types(package: LoadedPackage) -> tuple[Any, ...]:
    """What `decide_at` is called with; it cannot be tried without a cost, which is another part."""
    from numba import typeof, types

    numbers = (types.int64, types.boolean, types.float64, types.int64, types.int64)
    arrays = (*_belief_and_desk(package), package.candidates.table(), np.zeros(package.NU))
    return (*numbers, *(typeof(value) for value in arrays))  # type: ignore[no-untyped-call]


def touch_filter(package: LoadedPackage, belief: Records, desk: Desk) -> None:
    """Call the functions of the filter once, on copies."""
    tray, held = package.filter.tray(desk.task.copy()), belief.copy()
    if package.SQUARE_ROOT:
        package.square_root.factorise(held)
        package.square_root.complete(held)
    package.filter.predict(0, held, np.zeros(package.NU), tray)
    package.filter.update(1, held, np.zeros(package.NY), tray, np.zeros(3))


def _belief_and_desk(package: LoadedPackage) -> tuple[Records, Desk]:
    """A belief at zero and a desk without costs."""
    records, nx, nu = package.records, package.NX, package.NU
    bounds = np.array([package.numbers["lower"], package.numbers["upper"]])
    task = records.make_task(*package.noise, bounds, package.numbers["data"])
    costs = np.zeros((STEPS + 1, nx, nx)), np.zeros((STEPS, nu, nu)), np.zeros((STEPS + 1, nx))
    belief = records.make_belief(np.zeros(package.NZ), np.eye(package.NZ))
    return belief, records.desk(STEPS, records.make_weights(*costs), task)


def warm(
    folder: Path, parts: Iterable[str] | None = None, progress: Callable[[str, float], None] = lambda what, share: None
) -> dict[str, float]:
    """Compile the parts of a package in as many processes as there are cores; returns the seconds that each took."""
    waiting = list(parts_of(load(folder)) if parts is None else parts)
    total, seconds = len(waiting), dict[str, float]()
    running: dict[str, tuple[subprocess.Popen[str], float]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < (os.cpu_count() or 1):
                part = waiting.pop(0)
                running[part] = _started(folder, part), time.perf_counter()
            progress(", ".join(running), len(seconds) / total)
            for part, (process, started) in list(running.items()):
                if process.poll() is not None:
                    del running[part]
                    seconds[part] = time.perf_counter() - started
                    _require_success(folder, part, process)
            time.sleep(0.02)
    finally:
        for process, _ in running.values():
            process.kill()
            process.communicate()
    progress("", 1.0)
    return seconds


def _started(folder: Path, part: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _PROGRAM, str(folder), part]
    try:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    except OSError as problem:
        raise SymdualError(f"{sys.executable} cannot be started to compile {folder}: {problem.strerror}") from problem


_PROGRAM = "import sys; from symdual.runtime.warm import main; main(*sys.argv[1:])"


def main(folder: str, part: str) -> None:
    """Compile one part of the package in a folder; for processes of their own."""
    compile_part(load(Path(folder)), part)


def _require_success(folder: Path, part: str, process: subprocess.Popen[str]) -> None:
    _, errors = process.communicate()
    if process.returncode != 0:
        said = errors.strip().splitlines()
        reason = said[-1] if said else f"the compiler ended with status {process.returncode}"
        raise SymdualError(f"the part {part} of {folder} could not be compiled: {reason}")
