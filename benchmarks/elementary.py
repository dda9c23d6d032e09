"""Emitted sine, cosine and exponential against the C library and against the C limit's own sine and cosine.

    python benchmarks/elementary.py

All variants of one size run in one process in turn; the best of the rounds counts. The C limit's `sc` is its vectorised
pair of sine and cosine for all arguments; `feat2` also scales and interleaves them into features and derivatives.
"""

from __future__ import annotations

import ctypes
import importlib.util
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from numba import njit
from rich.console import Console
from rich.table import Table

from symdual.bench.peers.c_limit import SOURCE, TUNED
from symdual.bench.peers.compiler import OPTIMISED, shared_library
from symdual.bench.timing import interleave

ROUNDS = 60
SIZES = (30, 100, 300)
DRIVER = """
#include "%s"
void r_sc(int n, int F, CD w, D x, D s, D c) { for (int i = 0; i < n; i++) { sc(F, w, x[0], s, c); BAR; } }
void r_feat2(int n, int F, CD w, D x, D s, D c)
{ FIX for (int i = 0; i < n; i++) { feat2(F/2, 0.3, w, w, x[0], s, c); BAR; } }
"""
compiled: Any = njit(fastmath={"contract", "reassoc"}, error_model="numpy")


def padded(count: int) -> int:
    return max(16, 8 * ((count + 7) // 8))


def emitted(folder: Path) -> Any:
    """Render the template for all sizes and import it."""
    loader = jinja2.FileSystemLoader(Path(__file__).parents[1] / "templates")
    environment = jinja2.Environment(
        loader=loader, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    counts = tuple(padded(size) for size in SIZES)
    text = environment.get_template("elementary.py.jinja").render(sincos_counts=counts, exp_counts=counts, helpers=())
    path = folder / "emitted_elementary.py"
    path.write_text("import math\nimport numpy as np\nfrom numba import njit\n\n\n" + text)
    spec = importlib.util.spec_from_file_location("emitted_elementary", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def numba_variants(size: int, module: Any) -> dict[str, Callable[[int], object]]:
    width = padded(size)
    pair, power = getattr(module, f"_sincos_{width}"), getattr(module, f"_exp_{width}")

    # the arguments are w_i x as in the C program, and x changes: else the compiler would compute them once
    @compiled
    def own_pair(n: int, w: np.ndarray, x: np.ndarray, work: np.ndarray) -> None:
        for _ in range(n):
            for i in range(size):
                work[i] = w[i] * x[0]
            pair(work, 0, width, 2 * width)
            x[0] = x[0] + 1e-300 * work[width]

    @compiled
    def library_pair(n: int, w: np.ndarray, x: np.ndarray, work: np.ndarray) -> None:
        for _ in range(n):
            for i in range(size):
                work[width + i] = np.sin(w[i] * x[0])
                work[2 * width + i] = np.cos(w[i] * x[0])
            x[0] = x[0] + 1e-300 * work[width]

    @compiled
    def own_power(n: int, w: np.ndarray, x: np.ndarray, work: np.ndarray) -> None:
        for _ in range(n):
            for i in range(size):
                work[i] = w[i] * x[0]
            power(work, 0, width)
            x[0] = x[0] + 1e-300 * work[width]

    @compiled
    def library_power(n: int, w: np.ndarray, x: np.ndarray, work: np.ndarray) -> None:
        for _ in range(n):
            for i in range(size):
                work[width + i] = np.exp(w[i] * x[0])
            x[0] = x[0] + 1e-300 * work[width]

    w, x, work = np.random.default_rng(size).normal(size=size), np.ones(1), np.zeros(3 * width)
    loops = {
        "sine and cosine, emitted": own_pair,
        "sine and cosine, C library": library_pair,
        "exponential, emitted": own_power,
        "exponential, C library": library_power,
    }
    return {name: lambda n, loop=loop: loop(n, w, x, work) for name, loop in loops.items()}


def c_variants(size: int, build: Path) -> dict[str, Callable[[int], object]]:
    source = build / "sincos_driver.c"
    source.write_text(DRIVER % SOURCE.resolve())
    w = np.random.default_rng(size).normal(size=size)
    x, s, c = np.ones(1), np.zeros(size), np.zeros(size)
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (w, x, s, c)]
    found: dict[str, Callable[[int], object]] = {}
    for width in (256, 512):
        flags = (*OPTIMISED, f"-mprefer-vector-width={width}", f"-DFIXF={size}", *TUNED)
        path = shared_library(source, flags, build, 60.0)
        if path is None:
            continue
        library = ctypes.CDLL(str(path))
        for name in ("sc", "feat2"):
            function = getattr(library, f"r_{name}")
            found[f"C limit {name}, {width} bit"] = lambda n, function=function, kept=(w, x, s, c): function(
                ctypes.c_int(n), ctypes.c_int(size), *pointers
            )
    return found


def main() -> None:
    sheet = Table(title="nanoseconds for all arguments, and ratio to the emitted function")
    sheet.add_column("")
    rows: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        module = emitted(Path(folder))
        for size in SIZES:
            sheet.add_column(f"{size} arguments", justify="right")
            variants = {**numba_variants(size, module), **c_variants(size, Path(folder))}
            for repeat in variants.values():
                repeat(1)
            seconds = dict(zip(variants, interleave(list(variants.values()), ROUNDS), strict=True))
            for name, time in seconds.items():
                own = "exponential, emitted" if "exponential" in name else "sine and cosine, emitted"
                rows.setdefault(name, []).append(f"{1e9 * time:.0f}  {time / seconds[own]:.2f}x")
    for name, cells in rows.items():
        sheet.add_row(name, *cells)
    Console(width=120).print(sheet)


if __name__ == "__main__":
    main()
