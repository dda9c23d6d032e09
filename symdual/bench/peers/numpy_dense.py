"""Plain numpy, called from Python: dense products as one writes them first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from symdual.bench import workload
from symdual.bench.contender import Implementation
from symdual.bench.workload import Answer, Workload


def missing() -> str | None:
    """Return None: numpy is always there."""
    return None


def implementations(work: Workload, build: Path) -> list[Implementation]:
    """Return the five kernels in numpy."""
    constant = workload.matrices(work)
    kernels: dict[str, Callable[[], Answer]] = {
        "dynamics": lambda: (workload.dynamics(work, work.mean, work.control),),
        "jacobian": lambda: (workload.jacobian(work, work.mean),),
        "hessian": lambda: (workload.hessian(work, work.mean, work.costate),),
        "ekf": lambda: workload.ekf(work, constant),
        "dual_cost": lambda: (np.array(workload.dual_cost(work, constant)),),
    }
    return [
        Implementation(kernel, "numpy", "dense", repeated(compute), compute, False)
        for kernel, compute in kernels.items()
    ]


def repeated(compute: Callable[[], object]) -> Callable[[int], None]:
    """Return a function that calls `compute` n times from Python."""

    def repeat(n: int) -> None:
        for _ in range(n):
            compute()

    return repeat
