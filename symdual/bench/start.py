"""How long a generated package takes to be ready in a fresh process: generated, compiled, from cache."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from symdual.bench.peers.own_side import package_name
from symdual.bench.results import Start
from symdual.errors import SymdualError

WARM_TRIES: Final = 3

_GENERATE: Final = """
import sys, time
import symdual
from symdual.bench import workload
from symdual.bench.peers.own_side import cart
model = cart(workload.make(int(sys.argv[2])))
start = time.perf_counter()
symdual.generate(model, folder=sys.argv[1], force=True)
print(time.perf_counter() - start)
"""
_KERNELS: Final = """
import sys, time
start = time.perf_counter()
import numpy as np
import symdual
package = symdual.load(sys.argv[1])
from symdual.runtime import evaluate
x, u, theta = np.zeros(package.NX), np.zeros(package.NU), np.zeros(package.NTHETA)
evaluate.dynamics(package, x, u, theta)
evaluate.jacobian(package, x, u, theta)
evaluate.hessian(package, x, u, theta, x)
evaluate.observation_jacobian(package, x, theta)
print(time.perf_counter() - start)
"""


def starts(sizes: Sequence[int], build: Path) -> tuple[Start, ...]:
    """Return the seconds for generation, for the first use with nothing compiled, and from the cache."""
    found = []
    for size in sizes:
        folder = build / "start"
        found.append(Start(size, "generate", _seconds(_GENERATE, folder, str(size))))
        package = folder / package_name(size)
        shutil.rmtree(package / "__pycache__", ignore_errors=True)
        found.append(Start(size, "import, load, first call of the kernels: compiled", _seconds(_KERNELS, package)))
        warm = min(_seconds(_KERNELS, package) for _ in range(WARM_TRIES))
        found.append(Start(size, "import, load, first call of the kernels: from the cache", warm))
    return tuple(found)


def _seconds(program: str, folder: Path, *arguments: str) -> float:
    """Run a program in a fresh process and return the seconds that it prints last."""
    command = [sys.executable, "-c", program, str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise SymdualError(f"a generated package could not be started: {last}")
    return float(done.stdout.split()[-1])
