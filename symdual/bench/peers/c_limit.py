"""The practical limit: hand-written C (limit.c); its best build counts, per kernel and size."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from symdual.bench import workload
from symdual.bench.contender import Implementation
from symdual.bench.peers.compiler import OPTIMISED, compiler, shared_library
from symdual.bench.workload import Answer, Workload
from symdual.common.arrays import Array

SOURCE: Final = Path(__file__).with_name("limit.c")
# own joint sine and cosine instead of the vector library, several accumulators per reduction (gcc only)
TUNED: Final = (
    "-DPOLY",
    "-funroll-loops",
    "-fvariable-expansion-in-unroller",
    "--param=max-variable-expansions-in-unroller=4",
)
#: what the exported C needs besides: NaN keeps its meaning, products may be fused in C99 too, a long file may grow
KEPT: Final = ("-fno-finite-math-only", "-ffp-contract=fast", "--param=inline-unit-growth=300")
ROW: Final = "C limit"
RUN_TIME: Final = "run-time size"
COMPILE_SECONDS: Final = 120.0


def missing() -> str | None:
    """Return why the C program cannot run here, or None."""
    return None if compiler() else "there is no C compiler"


def builds(work: Workload) -> dict[str, tuple[str, ...]]:
    """Return the flags of all builds: sizes at run time, sizes as constants, constants and tuned.

    Vectors outside of loops join numbers that were just written one by one, and wait for memory to have them together.
    """
    fixed = f"-DFIXF={work.features}"
    return {
        RUN_TIME: ("-mprefer-vector-width=256",),
        "constant size": ("-mprefer-vector-width=256", fixed),
        "constant size, vectors in loops only": ("-mprefer-vector-width=256", fixed, "-fno-tree-slp-vectorize"),
        "tuned": ("-mprefer-vector-width=256", fixed, *TUNED),
        "tuned, 512 bit": ("-mprefer-vector-width=512", fixed, *TUNED),
    }


def implementations(work: Workload, build: Path) -> list[Implementation]:
    """Return all kernels in all builds, without and with the flags that the exported C has besides."""
    tried = {
        label: (*OPTIMISED, *flags, *further)
        for name, flags in builds(work).items()
        for further, label in (((), name), (KEPT, f"{name}, flags of the exported C"))
    }
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = pool.map(lambda flags: shared_library(SOURCE, flags, build, COMPILE_SECONDS), tried.values())
        libraries = dict(zip(tried, made, strict=True))
    offered = []
    for label, library in libraries.items():
        if library is not None:
            offered += implementations_of(work, library, label)
    return offered


def implementations_of(work: Workload, build: Path, variant: str) -> list[Implementation]:
    """Return the kernels of one build; the repetitions run inside the C program."""
    library = ctypes.CDLL(str(build))
    sines, cosines = work.frequencies[0::2].copy(), work.frequencies[1::2].copy()
    z, covariance = work.mean.copy(), work.covariance.copy()
    following, matrix, curved = (
        np.zeros(work.size),
        workload.jacobian(work, work.mean),
        np.zeros((work.size, work.size)),
    )
    matrix[1, 0], matrix[1, 2:] = 0.0, 0.0
    space = np.zeros(8 * (work.size + 8) ** 2 + 12 * workload.HORIZON * (work.size + 8) + 1000)
    problem = (ctypes.c_int(work.features), ctypes.c_double(work.scale), _at(sines), _at(cosines))
    control = ctypes.c_double(work.control)
    kept = (sines, cosines, z, covariance, following, matrix, curved, space)
    future = (*problem, *map(_at, (work.mean, work.covariance, work.controls, work.weights)))
    future = (*future, ctypes.c_double(workload.CONTROL_COST), _at(space))
    bind = partial(_bound, library, kept)

    def offer(kernel: str, function: str, arguments: tuple[Any, ...], answer: Callable[[], Answer]) -> Implementation:
        return Implementation(kernel, ROW, f"{function}, {variant}", bind(function, arguments), answer, True)

    step = (*problem, *map(_at, (work.mean, work.covariance, z, covariance)), control, _at(work.measurement))
    curvature = (*problem, _at(work.frequencies), _at(work.mean), control, _at(work.costate), _at(curved))
    offered = [
        offer("dynamics", "r_f", (*problem, _at(work.mean), control, _at(following)), lambda: (following,)),
        offer("jacobian", "r_jac", (*problem, _at(work.mean), control, _at(matrix)), lambda: (matrix,)),
        offer("hessian", "r_hess", curvature, lambda: (curved,)),
        offer("ekf", "r_ekf", step, lambda: (z, covariance)),
    ]
    for function in ("r_dual", "r_ldual"):
        run = bind(function, future)
        offered.append(offer("dual_cost", function, future, lambda run=run: (np.array(run(1)),)))  # type: ignore[misc]
    return offered


def _bound(library: Any, kept: tuple[Array, ...], function: str, arguments: tuple[Any, ...]) -> Callable[[int], object]:
    """Return repeat(n) for one function of the library; holds the arrays that the pointers lead to."""
    native = getattr(library, function)
    native.restype = ctypes.c_double if "dual" in function else None

    def repeat(n: int, _kept: tuple[Array, ...] = kept) -> object:
        return native(ctypes.c_int(n), *arguments)

    return repeat


def _at(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
