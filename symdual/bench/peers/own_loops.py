"""Compiled loops around the functions of a generated package, written to a file so that numba can cache them.

Each turn adds to z a nothing that the compiler cannot know to be nothing, so that none is left out. The arguments
are spelled out: unpacking a tuple of arrays costs 40 ns a turn, which is not the kernel's time.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from symdual.runtime.loading import LoadedPackage

_TEXT: Final = '''"""Loops around the generated package {package}."""

import importlib

from numba import njit

kernels, records, blocks, filter, trajectory, nominal, dual_cost = (
    importlib.import_module("{package}." + name)
    for name in ("kernels", "records", "blocks", "filter", "trajectory", "nominal", "dual_cost")
)
dynamics, dynamics_jacobian, dynamics_hessian = (
    kernels.dynamics, kernels.dynamics_jacobian, kernels.dynamics_hessian
)
copy, filter_step = blocks.copy, filter.step
certainty_equivalent, plan_through, follow = nominal.certainty_equivalent, nominal.plan_through, trajectory.follow
jd_structured = dual_cost.jd_structured
jd_lowrank = dual_cost.jd_lowrank if dual_cost.LOWRANK else None
NTHETA = records.NTHETA
JIT = {{"cache": True, "fastmath": {{"contract", "reassoc"}}, "error_model": "numpy"}}


@njit(**JIT)
def repeat_dynamics(n, z, u, data, work, f):
    for _ in range(n):
        dynamics(0, z, u, data, work, f)
        z[0] = z[0] + 1e-300 * f[1]


@njit(**JIT)
def repeat_jacobian(n, z, u, data, work, f, f_x, f_u, f_theta):
    for _ in range(n):
        dynamics_jacobian(0, z, u, data, work, f, f_x, f_u, f_theta)
        z[0] = z[0] + 1e-300 * f_x[1, 0]


@njit(**JIT)
def repeat_hessian(n, z, u, costate, data, work, core, mixed, effort, diagonals, left, right):
    for _ in range(n):
        dynamics_hessian(0, z, u, costate, data, work, core, mixed, effort, diagonals, left, right)
        z[0] = z[0] + 1e-300 * core[0, 0]


@njit(**JIT)
def repeat_ekf(n, starts, beliefs, u, y, tray, stats):
    start = starts[0]
    belief = beliefs[0]
    for _ in range(n):
        # as a whole it is a call of memcpy: slower for a few numbers, far faster for many
        if NTHETA >= 8:
            beliefs[0] = starts[0]
        else:
            copy(start, belief)
        filter_step(0, beliefs, u, y, tray, stats)


@njit(**JIT)
def repeat_structured(n, belief, desk, inputs, out):
    steps = inputs.shape[0]
    for _ in range(n):
        follow(0, steps, belief, inputs, desk)
        out[0] = jd_structured(0, steps, 0, 1, belief, desk)[0]
        belief[0].z[0] = belief[0].z[0] + 1e-300 * out[0]


@njit(**JIT)
def repeat_lowrank(n, belief, desk, inputs, out):
    steps = inputs.shape[0]
    for _ in range(n):
        follow(0, steps, belief, inputs, desk)
        out[0] = jd_lowrank(0, steps, 0, belief, desk)
        belief[0].z[0] = belief[0].z[0] + 1e-300 * out[0]


@njit(**JIT)
def plan_all(steps, belief, desk, u, candidates):
    certainty_equivalent(0, steps, belief, desk, u)
    for i in range(candidates.shape[0]):
        plan_through(0, steps, candidates[i], desk)
'''


def functions(lowrank: bool) -> str:
    """Return the text of the loops alone; that around the low-rank form where there is one."""
    parts = _TEXT.replace("{{", "{").replace("}}", "}").split("\n\n\n@njit(**JIT)\n")[1:]
    kept = [part for part in parts if lowrank or "jd_lowrank" not in part]
    return "".join(f"\n\n@njit(**JIT)\n{part}\n" for part in kept)


def loops(package: LoadedPackage, build: Path) -> ModuleType:
    """Return the module of loops around a package; they are compiled when they are first called."""
    path, text = build / f"loops_{package.name}.py", _TEXT.format(package=package.module.__name__)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    spec = importlib.util.spec_from_file_location(f"symdual_bench_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # compiled code from the cache asks for its module by name
    spec.loader.exec_module(module)
    return module
