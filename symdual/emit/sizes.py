"""The sizes of a package by the names that its modules give them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from symdual.derive.derivation import Derivation
from symdual.derive.structure import Structure, hessian_diagonals
from symdual.entries.package import entry
from symdual.entries.types import declared, shape_of

Sizes = Mapping[str, Any]


def sizes_of(derivation: Derivation, structure: Structure, data: int, work: int) -> Sizes:
    """Those of `records`, and in `process` those of that module; `data` and `work` are those of the kernels."""
    s, objective = structure, derivation.model.objective
    seen = hessian_diagonals(derivation, derivation.observation_hessian)
    evaluations = [e for e in derivation.dynamics.evaluations if e.point.family.process is not None]
    points = [p for p in derivation.dynamics.program.points if p.family.process is not None]
    return {
        "NX": s.nx,
        "NU": s.nu,
        "NY": s.ny,
        "NTHETA": s.ntheta,
        "NZ": s.nz,
        "NR": len(s.theta_rows),
        "NHR": len(s.h_theta_rows),
        "NS": s.ns,
        "NPAIRS": s.npairs,
        "NDIAG": sum(count for _, _, count, _ in s.hessian_diagonals),
        "OBSERVATION_NDIAG": sum(count for _, _, count, _ in seen),
        "OBSERVATION_NPAIRS": len(derivation.observation_hessian.pairs),
        "NT": 0 if objective is None else len(objective.stage.expressions),
        "NE": 0 if objective is None else len(objective.final.expressions),
        "NC": 0 if objective is None else len(objective.constraints),
        "DATA": data,
        "WORK": work,
        "process": SimpleNamespace(
            POINTS=len(points),
            POINT_ARGUMENTS=max((len(point.arguments) for point in points), default=0),
            VALUES=len(evaluations),
        ),
    }


def arguments_of(kernel: str) -> tuple[str, ...]:
    """The names of the arguments of a kernel."""
    return tuple(_declared(kernel))


def shapes_text(kernel: str, arguments: Iterable[str], sizes: Sizes) -> str:
    """The shapes of those arguments that are arrays, as `kernel` has them."""
    shapes = {name: shape.lengths(sizes) for name, kind in _declared(kernel).items() if (shape := shape_of(kind))}
    return ", ".join(f"{name} ({', '.join(map(str, shapes[name]))})" for name in arguments if name in shapes)


def _declared(kernel: str) -> dict[str, Any]:
    found = entry("kernels", kernel)
    assert found is not None, f"symdual.entries.kernels does not declare {kernel}"
    return declared(found)
