"""Compiled loops around the functions of a generated package, written to a file so that numba can cache them.

After each turn the compiler is told that all memory may have changed, as in the loops of the C program, so that no turn
is left out and none waits for the one before. A belief is restored number by number: what is read right after a record
was copied as a whole, with registers of 64 bytes, waits for the copy (88 ns against 75 for a filter step with 2
features). The arguments are spelled out: unpacking a tuple of arrays costs 40 ns a turn, not the kernel's time.
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

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

blocks, kernels, filter, trajectory, nominal, ce_solver, dual_cost = (
    importlib.import_module("{package}." + name)
    for name in (
        "blocks.blocks",
        "kernels.kernels",
        "filters.filter",
        "planning.trajectory",
        "planning.nominal",
        "planning.ce_solver",
        "planning.dual_cost",
    )
)
dynamics, dynamics_jacobian, dynamics_hessian = (
    kernels.dynamics, kernels.dynamics_jacobian, kernels.dynamics_hessian
)
filter_step, restore = filter.step, blocks.copy
certainty_equivalent, plan_through, follow = ce_solver.certainty_equivalent, nominal.plan_through, trajectory.follow
jd_structured = dual_cost.jd_structured
jd_lowrank = dual_cost.jd_lowrank if dual_cost.LOWRANK else None
JIT = {{"cache": True, "fastmath": {{"contract", "reassoc"}}, "error_model": "numpy"}}


@intrinsic
def barrier(typing_context, values):
    def build(context, builder, signature, arguments):
        builder.asm(ir.FunctionType(ir.VoidType(), []), "", "~{{memory}}", [], True)
        return context.get_dummy_value()

    return types.void(values), build


@njit(**JIT)
def repeat_dynamics(n, z, u, data, work, f):
    for _ in range(n):
        dynamics(0, z, u, data, work, f)
        barrier(f)


@njit(**JIT)
def repeat_jacobian(n, z, u, data, work, f, f_x, f_u, f_theta):
    for _ in range(n):
        dynamics_jacobian(0, z, u, data, work, f, f_x, f_u, f_theta)
        barrier(f)


@njit(**JIT)
def repeat_hessian(n, z, u, costate, data, work, core, mixed, effort, diagonals, left, right):
    for _ in range(n):
        dynamics_hessian(0, z, u, costate, data, work, core, mixed, effort, diagonals, left, right)
        barrier(z)


@njit(**JIT)
def repeat_ekf(n, starts, beliefs, u, y, filter_workspace):
    for _ in range(n):
        restore(starts[0], beliefs[0])
        filter_step(0, beliefs, u, y, filter_workspace)
        barrier(u)


@njit(**JIT)
def repeat_structured(n, belief, workspace, inputs, out):
    steps = inputs.shape[0]
    for _ in range(n):
        follow(0, steps, belief, inputs, workspace)
        out[0] = jd_structured(0, steps, 0, 1, belief, workspace)[0]
        barrier(out)


@njit(**JIT)
def repeat_lowrank(n, belief, workspace, inputs, out):
    steps = inputs.shape[0]
    for _ in range(n):
        follow(0, steps, belief, inputs, workspace)
        out[0] = jd_lowrank(0, steps, 0, belief, workspace)
        barrier(out)


@njit(**JIT)
def plan_all(steps, belief, workspace, u, candidates):
    certainty_equivalent(0, steps, belief, workspace, u)
    for i in range(candidates.shape[0]):
        plan_through(0, steps, candidates[i], workspace)
'''


def functions(lowrank: bool) -> dict[str, str]:
    """Return the text of each loop by its name; that around the low-rank form where there is one."""
    parts = _TEXT.replace("{{", "{").replace("}}", "}").split("\n\n\n@njit(**JIT)\n")[1:]
    kept = [part for part in parts if lowrank or "jd_lowrank" not in part]
    return {part.removeprefix("def ").partition("(")[0]: f"\n\n@njit(**JIT)\n{part}\n" for part in kept}


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
