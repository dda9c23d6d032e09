"""symdual's own side through C: the translation of the generated package, repeated inside translated loops.

The loops are those of numba (`own_loops`), translated with the functions that they call: the whole package would take
four times as long to compile. Every build of the C limit is tried here too, with the flags `KEPT`, with which the limit
is built as well; the best counts. Sizes are constants in any of them.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Final

from symdual.bench import workload
from symdual.bench.contender import Implementation
from symdual.bench.peers import own_side
from symdual.bench.peers.c_limit import KEPT, RUN_TIME, builds
from symdual.bench.peers.compiler import OPTIMISED, compiler
from symdual.bench.peers.own_loops import functions
from symdual.bench.workload import Workload
from symdual.common.arrays import Array
from symdual.entries import kernels
from symdual.entries.recursions import FilterWorkspace
from symdual.entries.recursions import Workspace as DecisionWorkspace
from symdual.entries.types import (
    Augmented,
    Belief,
    Candidates,
    Data,
    Input,
    InputByInput,
    Measurement,
    State,
    StateByState,
    shaped,
)
from symdual.entries.types import Work as KernelWork

if TYPE_CHECKING:
    from symdual.backends.c.program import Function
    from symdual.backends.c.translator import Translator
    from symdual.runtime.loading import LoadedPackage

ROW: Final = "symdual, exported C"
# what stands for the barrier in the translation, and the barrier of the C limit
_NOTHING: Final = "values[0] = values[0]"
_BARRIER: Final = '__asm__ volatile("" ::: "memory")'
_REPEATED: Final = ("kernels.dynamics", "kernels.dynamics_jacobian", "kernels.dynamics_hessian", "filter.step")
_VALUE: Final = Annotated[Array, shaped("1")]
#: what the loops are given, by name
_ARGUMENTS: Final = {
    "n": int,
    "values": _VALUE,
    "z": Augmented,
    "u": Input,
    "y": Measurement,
    "data": Data,
    "work": KernelWork,
    "f": State,
    "f_x": StateByState,
    "f_u": kernels.FByInput,
    "f_theta": kernels.FTheta,
    "costate": State,
    "core": kernels.Core,
    "mixed": kernels.InputRows,
    "effort": InputByInput,
    "diagonals": kernels.Diagonals,
    "left": kernels.Vectors,
    "right": kernels.Vectors,
    "starts": Belief,
    "beliefs": Belief,
    "filter_workspace": FilterWorkspace,
    "belief": Belief,
    "workspace": DecisionWorkspace,
    "inputs": Candidates,
    "out": _VALUE,
}


def missing() -> str | None:
    """Return why the translation cannot run here, or None."""
    return None if compiler() else "there is no C compiler"


def implementations(work: Workload, build: Path) -> list[Implementation]:
    """Return the five kernels of the translated package, in every build."""
    from symdual.backends.c.backend import library_text
    from symdual.backends.c.compilation import shared_library
    from symdual.backends.c.library import Library
    from symdual.backends.loading import in_c

    package = own_side.generated(work, build)
    translation = translated_loops(package)
    text = with_barrier(library_text(translation))
    tried = {name: flags for name, flags in builds(work).items() if name != RUN_TIME}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = pool.map(lambda flags: shared_library(text, (*OPTIMISED, *flags, *KEPT)), tried.values())
        libraries = dict(zip(tried, made, strict=True))
    offered = []
    for name, library in libraries.items():
        offered += _offered(work, in_c(package), loops(translation, Library(translation, library)), name)
    return offered


def with_barrier(text: str) -> str:
    """The text with a barrier in place of what stands for it."""
    assert text.count(_NOTHING) == 1, "the barrier of the loops was not translated"
    return text.replace(_NOTHING, _BARRIER)


def translated_loops(package: LoadedPackage) -> Translator:
    """Return the translation of loops around the functions of a package, and of what these need."""
    from symdual.backends.c.program import Program
    from symdual.backends.c.source import translated

    program = Program({**package.files, "loops.py": _module(package).encode()})
    return translated(program, package.name, "package", further={"loops": _ARGUMENTS}, wanted=_is_repeated)


def _is_repeated(function: Function) -> bool:
    """Whether loops call this entry; it is then public, as in the library of a package."""
    return f"{function.module}.{function.name}" in _REPEATED


def _module(package: LoadedPackage) -> str:
    lowrank = ", jd_lowrank" if package.dual_cost.LOWRANK else ""
    return "\n".join(
        [
            "from numba import njit",
            "from .kernels.kernels import dynamics, dynamics_jacobian, dynamics_hessian",
            "from .blocks.blocks import copy as restore",
            "from .filters.filter import step as filter_step",
            "from .planning.trajectory import follow",
            f"from .planning.dual_cost import jd_structured{lowrank}",
            "from .records import NX, NZ, NTHETA, WIDTH",
            "JIT = {}",
            f"\n\n@njit(**JIT)\ndef barrier(values):\n    {_NOTHING}\n",
            *(text for name, text in functions(bool(lowrank)).items() if name != "plan_all"),
        ]
    )


def loops(translation: Translator, library: Any) -> SimpleNamespace:
    """Return the translated loops as functions of Python."""
    units = [unit for unit in translation.units if unit.function.module == "loops"]
    return SimpleNamespace(**{unit.function.name: library.function(unit) for unit in units})


def _offered(work: Workload, package: LoadedPackage, repeated: Any, variant: str) -> list[Implementation]:
    found = [
        *own_side.kernels(work, package, repeated),
        own_side.ekf(work, package, repeated),
        *own_side.dual_costs(work, package, repeated),
    ]
    chosen = package.dual_cost.choose_form(workload.HORIZON)
    return [
        one._replace(row=ROW, variant=f"{one.variant}, {variant}")
        for one in found
        if one.kernel != "dual_cost" or one.variant == chosen
    ]
