"""How long a generated package takes to be ready in a fresh process: generated, compiled, from cache."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from symdual.bench.peers.own_side import package_name
from symdual.bench.results import Start
from symdual.common.errors import SymdualError

WARM_TRIES: Final = 3

_GENERATE: Final = """
import sys, time
import symdual
from symdual.bench import workload
from symdual.bench.peers.own_side import cart
model = cart(workload.make(int(sys.argv[2])))
start = time.perf_counter(), time.process_time()
symdual.generate(model, folder=sys.argv[1], force=True)
print("ready", time.perf_counter() - start[0], time.process_time() - start[1])
"""
_LOAD: Final = """
import sys, time
start = time.perf_counter(), time.process_time()
import numpy as np
import symdual
package = symdual.load(sys.argv[1], backend="numba")
"""
_KERNELS: Final = """
from symdual.runtime import evaluate
x, u, theta = np.zeros(package.NX), np.zeros(package.NU), np.zeros(package.NTHETA)
evaluate.dynamics(package, x, u, theta)
evaluate.jacobian(package, x, u, theta)
evaluate.hessian(package, x, u, theta, x)
evaluate.observation_jacobian(package, x, theta)
"""
_RECURSIONS: Final = """
steps, records = 20, package.records
u, y = np.zeros(package.NU), np.zeros(package.NY)
settings = records.make_settings(*package.noise, np.array([[-1.0], [1.0]]), package.numbers["data"])
belief = records.make_belief(np.zeros(package.NZ), np.eye(package.NZ))
package.filter.step(0, belief, u, y, package.filter.make_filter_workspace(settings))
W, U, r = np.stack([np.eye(package.NX)] * (steps + 1)), np.ones((steps, 1, 1)), np.zeros((steps + 1, package.NX))
weights = records.make_stage_costs(W, U, r)
workspace = records.make_workspace(steps, weights, settings)
cost = package.decision.cost_pointer(package.dual_cost.choose_form(steps))
"""
_DECISION: Final = """
package.decision.decide_at(cost.address, True, np.ones(1), 0, steps, belief, workspace, package.search.table(), u)
"""
_EPISODE: Final = """
from symdual.runtime.closed_loop import _episode_log
episode, no = package.episode, np.zeros((1, 0, package.NTHETA))
noise = np.zeros((1, steps, package.NX)), np.zeros((1, steps, package.NY))
noise_draws = episode.NoiseDraws(np.zeros((1, package.NZ)), *noise, no, np.zeros(1))
plant = episode.Plant(package.plant.move, package.plant.measure, package.numbers["data"])
controls = episode.Controls(cost.address, True, np.ones((steps, package.NU)), 0, False)
thread_workspace = episode.make_thread_workspace(workspace, package.NZ, package.WORK)
counter, episode_log = np.zeros(1, np.int64), _episode_log(package, 1, steps)
episode.episodes(counter, steps, plant, controls, noise_draws, belief, settings, thread_workspace, episode_log)
"""
_C: Final = """
import sys, time
start = time.perf_counter(), time.process_time() + sum(__import__("os").times()[2:4])
import numpy as np
import symdual
package = symdual.load(sys.argv[1], backend="c")
"""
_PRINT: Final = """
print("ready", time.perf_counter() - start[0], time.process_time() - start[1])
"""
# each stage needs the ones before it
STAGES: Final = {
    "kernels": _KERNELS,
    "filter and dual cost": _RECURSIONS,
    "decision": _DECISION,
    "episode": _EPISODE,
}
# the stages after which the start from the cache is reported, and what has been called by then
WARM: Final = {"kernels": "the kernels", "decision": "a decision", "episode": "an episode"}


_PRINT_ALL: Final = """
import os
print("ready", time.perf_counter() - start[0], time.process_time() + sum(os.times()[2:4]) - start[1])
"""


class Seconds(NamedTuple):
    """Time on the wall and time of the processor; the latter hardly suffers from other work on the machine."""

    wall: float
    processor: float


def starts(size: int, build: Path) -> tuple[Start, ...]:
    """Return the seconds for generation, for the first use with nothing compiled, and from the cache.

    In processor time, the start from the cache also on the wall.
    """
    folder = build / "start"
    package = folder / package_name(size)
    found = [Start(size, "generate", _ready(_GENERATE, folder, str(size))[0].processor)]
    shutil.rmtree(package / "__pycache__", ignore_errors=True)
    program, cold = _LOAD, []
    for text in STAGES.values():
        program += text + _PRINT
        cold.append(_ready(program, package)[-1])  # what earlier stages compiled comes from the cache by now
    warm = dict(zip(STAGES, _best([_ready(program, package) for _ in range(WARM_TRIES)]), strict=True))
    for stage, first in zip(STAGES, cold, strict=True):
        found.append(Start(size, f"compile {stage}", first.processor - warm[stage].processor))
    for stage, called in WARM.items():
        what = f"warm: import, load, first call of {called}"
        found += [Start(size, what, warm[stage].processor), Start(size, f"{what}, on the wall", warm[stage].wall)]
    return tuple(found)


def c_starts(size: int, build: Path) -> tuple[Start, ...]:
    """Return the seconds until the first decision through C, the compiler included: cold, and with the library kept.

    The package is that of `starts`.
    """
    package = build / "start" / package_name(size)
    program = _C + _RECURSIONS + _DECISION + _PRINT_ALL
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "XDG_CACHE_HOME": cache}
        cold, *tries = (_ready(program, package, environment=environment) for _ in range(1 + WARM_TRIES))
    return (
        Start(size, "C: load, translate, compile, first decision", cold[0].processor),
        Start(size, "C: load, first decision, library from the cache", _best(tries)[0].processor),
    )


def _best(tries: Sequence[Sequence[Seconds]]) -> list[Seconds]:
    """The least of each time over several tries of one program."""
    return [Seconds(min(t.wall for t in same), min(t.processor for t in same)) for same in zip(*tries, strict=True)]


def _ready(program: str, folder: Path, *arguments: str, environment: dict[str, str] | None = None) -> list[Seconds]:
    """Run a program in a fresh process and return the seconds since its start, each time that it says it is ready."""
    command = [sys.executable, "-c", program, str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise SymdualError(f"a generated package could not be started: {complaint(done.stderr)}")
    said = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("ready ")]
    return [Seconds(float(wall), float(processor)) for wall, processor in said]


def complaint(errors: str) -> str:
    """Return the one line of a process's error output that says what went wrong."""
    lines = errors.strip().splitlines()
    named = [line for line in lines if re.match(r"[A-Za-z_][\w.]*(Error|Disagreement|Exception)\b", line)]
    return (named or lines or ["no message"])[-1]
