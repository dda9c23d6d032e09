"""SymForce: its generated Python with numba, for the kernels (no recursions); small sizes only.

The emitted function writes out every entry of the result, so it compiles for minutes beyond some 30 features.
"""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from symdual.bench import workload
from symdual.bench.contender import Implementation
from symdual.bench.workload import Answer, Workload

LARGEST: Final = 30


def missing() -> str | None:
    """Return why SymForce cannot run here, or None."""
    return None if importlib.util.find_spec("symforce") else "symforce is not installed"


def implementations(work: Workload, build: Path) -> list[Implementation]:
    """Return dynamics, Jacobian and Hessian, repeated inside a compiled loop."""
    if work.features > LARGEST:
        return []
    sf = _symbolic()
    vector = type(sf.Matrix(work.size, 1))
    z, costate, u = vector.symbolic("z"), vector.symbolic("costate"), sf.Symbol("u")
    angles = [float(w) * z[0] for w in work.frequencies]
    terms = [work.scale * z[2 + i] * (sf.cos(a) if i % 2 else sf.sin(a)) for i, a in enumerate(angles)]
    moved = [z[0] + workload.STEP * z[1], z[1] + sum(terms) + u]
    following = vector([*moved, *(z[i] for i in range(2, work.size))])
    weighted = sf.V1([sum(costate[i] * following[i] for i in range(work.size))])
    expressions = {
        "dynamics": ({"z": z, "u": u}, following),
        "jacobian": ({"z": z, "u": u}, following.jacobian(z)),
        "hessian": ({"z": z, "u": u, "costate": costate}, weighted.jacobian(z).T.jacobian(z)),
    }
    given = {"z": work.mean, "u": work.control, "costate": work.costate}
    offered = []
    for kernel, (inputs, expression) in expressions.items():
        function = _generated(f"{kernel}_{work.features}", inputs, expression, build)
        offered.append(_repeated(kernel, function, [given[name] for name in inputs]))
    return offered


@cache
def _symbolic() -> Any:
    """Import SymForce's symbols; it wants its epsilon chosen before, and once."""
    importlib.import_module("symforce").set_epsilon_to_number(2.2e-15)
    return importlib.import_module("symforce.symbolic")


def _generated(name: str, inputs: dict[str, Any], expression: Any, build: Path) -> Any:
    """Write the numba function for an expression and import it."""
    codegen = importlib.import_module("symforce.codegen")
    values = importlib.import_module("symforce.values").Values
    generator = codegen.Codegen(
        inputs=values(**inputs),
        outputs=values(result=expression),
        return_key="result",
        config=codegen.PythonConfig(use_numba=True, reshape_vectors=False),
        name=name,
    )
    written = generator.generate_function(output_dir=build / f"symforce_{name}", skip_directory_nesting=True)
    path = next(Path(file) for file in written.generated_files if Path(file).stem == name)
    spec = importlib.util.spec_from_file_location(f"symforce_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def _repeated(kernel: str, function: Any, given: list[Any]) -> Implementation:
    from numba import njit

    z, rest = np.ascontiguousarray(given[0].reshape(-1, 1)), tuple(given[1:])
    rest = tuple(np.ascontiguousarray(a.reshape(-1, 1)) if isinstance(a, np.ndarray) else a for a in rest)

    @njit
    def loop(n: int, z: Any, rest: Any) -> Any:
        found = function(z, *rest)
        for _ in range(n - 1):
            z[0, 0] = z[0, 0] + 1e-300 * found.flat[1]
            found = function(z, *rest)
        return found

    last: list[Any] = [None]

    def repeat(n: int) -> None:
        last[0] = loop(n, z, rest)

    def answer() -> Answer:
        return (np.asarray(last[0]).squeeze(),)

    return Implementation(kernel, "SymForce numba", "Codegen", repeat, answer, True)
