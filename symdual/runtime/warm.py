"""Compiles the functions of a package once, so that later processes find them in numba's cache."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from symdual.runtime import evaluate
from symdual.runtime.loading import LoadedPackage


def is_compiled(folder: Path) -> bool:
    """Whether numba's cache beside a package holds its kernels; a cache that lies elsewhere counts as one that does."""
    return "NUMBA_CACHE_DIR" in os.environ or any((folder / "__pycache__").glob("kernels.*.nbc"))


def warm(package: LoadedPackage, progress: Callable[[float], None] = lambda fraction: None) -> dict[str, float]:
    """Call every kernel once and return the seconds that each took to compile or to load."""
    x, u, theta = np.zeros(package.NX), np.zeros(package.NU), package.numbers["prior_mean"]
    costate, multiplier = np.zeros(package.NX), np.zeros(package.NY)
    calls: dict[str, Callable[[], object]] = {
        "dynamics": lambda: evaluate.dynamics(package, x, u, theta),
        "linearise": lambda: evaluate.linearise(package, x, u, theta),
        "dynamics_jacobian": lambda: evaluate.jacobian(package, x, u, theta),
        "dynamics_hessian": lambda: evaluate.hessian(package, x, u, theta, costate),
        "observation": lambda: evaluate.observation(package, x, theta),
        "observation_jacobian": lambda: evaluate.observation_jacobian(package, x, theta),
        "observation_hessian": lambda: evaluate.observation_hessian(package, x, theta, multiplier),
    }
    seconds = {}
    for position, (name, call) in enumerate(calls.items()):
        started = time.perf_counter()
        call()
        seconds[name] = time.perf_counter() - started
        progress((position + 1) / len(calls))
    return seconds
