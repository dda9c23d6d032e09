"""symdual's own side: the generated package of the Fourier cart, repeated inside compiled loops.

The generated package orders the unknowns by kind, all sine weights and then all cosine weights; the common
workload alternates them. Answers are put back into the workload's order.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import symdual
from symdual.bench import workload
from symdual.bench.contender import OWN, Implementation
from symdual.bench.peers.own_loops import loops
from symdual.bench.workload import Answer, Workload

if TYPE_CHECKING:
    from symdual import Model
    from symdual.entries.recursions import Workspace
    from symdual.entries.types import Records
    from symdual.runtime.loading import LoadedPackage


def missing() -> str | None:
    """Return None: symdual is always there."""
    return None


def cart(work: Workload) -> Model:
    """Return the model of the workload, as a user writes it."""
    import sympy as sp

    from symdual import Model, features

    position, velocity, force = sp.symbols("position velocity force")
    slope = features.fourier("v", position, count=work.features, frequencies=work.frequencies)
    return Model(
        states=[position, velocity],
        inputs=[force],
        dynamics=[position + workload.STEP * velocity, velocity + slope + force],
        process_noise=workload.PROCESS_VARIANCE,
        measurement_noise=workload.MEASUREMENT_VARIANCE,
        name=package_name(work.features),
    )


def package_name(features: int) -> str:
    """Return the name of the generated package with this number of features."""
    return f"fourier_cart_{features}"


def generated(work: Workload, build: Path) -> LoadedPackage:
    """Return the loaded package of the workload; an unchanged one in the folder is used as it is."""
    symdual.generate(cart(work), folder=build)
    return symdual.load(build / package_name(work.features), backend="numba")


def order(work: Workload) -> np.ndarray:
    """Return where the entries of the package's z stand in the workload's z."""
    weights = np.arange(2, work.size)
    return np.concatenate([[0, 1], weights[0::2], weights[1::2]])


def implementations(work: Workload, build: Path) -> list[Implementation]:
    """Return the five kernels of the generated package."""
    package = generated(work, build)
    repeated = loops(package, build)
    return [
        *kernels(work, package, repeated),
        ekf(work, package, repeated),
        *dual_costs(work, package, repeated),
    ]


def _offer(kernel: str, repeat: Callable[[int], object], answer: Callable[[], Answer]) -> Implementation:
    return Implementation(kernel, OWN, "generated", repeat, answer, True)


def kernels(work: Workload, package: LoadedPackage, repeated: ModuleType) -> list[Implementation]:
    """Return dynamics, Jacobian and contracted Hessian."""
    data, space = package.numbers["data"], np.zeros(package.WORK)
    place = order(work)
    back = np.argsort(place)
    z, u, costate = work.mean[place], np.array([work.control]), work.costate[:2].copy()
    f, f_x, f_u, f_theta = np.zeros(2), np.zeros((2, 2)), np.zeros((2, 1)), np.zeros((1, work.features))
    core, mixed, effort = np.zeros((2, work.size)), np.zeros((1, work.size)), np.zeros((1, 1))
    diagonals = np.zeros(sum(count for _, _, count, _ in package.HESSIAN_DIAGONALS))
    left, right = np.zeros((package.NPAIRS, work.features)), np.zeros((package.NPAIRS, work.features))
    move, linearise, curve = repeated.repeat_dynamics, repeated.repeat_jacobian, repeated.repeat_hessian

    def slope() -> Answer:
        matrix = np.eye(work.size)
        matrix[:2, :2], matrix[1, 2:] = f_x, f_theta[0]
        return (matrix[np.ix_(back, back)],)

    def curvature() -> Answer:
        matrix = np.zeros((work.size, work.size))
        matrix[:2], matrix[:, :2] = core, core.T
        return (matrix[np.ix_(back, back)],)

    derivatives, blocks = (f, f_x, f_u, f_theta), (core, mixed, effort, diagonals, left, right)
    return [
        _offer("dynamics", lambda n: move(n, z, u, data, space, f), lambda: (np.concatenate([f, z[2:]])[back],)),
        _offer("jacobian", lambda n: linearise(n, z, u, data, space, *derivatives), slope),
        _offer("hessian", lambda n: curve(n, z, u, costate, data, space, *blocks), curvature),
    ]


def ekf(work: Workload, package: LoadedPackage, repeated: ModuleType) -> Implementation:
    """Return one prediction and update; as in the C program each turn first restores the start."""
    place = order(work)
    back = np.argsort(place)
    records, covariance = package.records, np.ascontiguousarray(work.covariance[np.ix_(place, place)])
    start, belief = (records.make_belief(work.mean[place], covariance) for _ in range(2))
    filter_workspace = package.filter.make_filter_workspace(planning(work, package).workspace.settings)
    given = (np.array([work.control]), work.measurement, filter_workspace)

    def repeat(n: int) -> None:
        repeated.repeat_ekf(n, start, belief, *given)

    def answer() -> Answer:
        return belief["z"][0][back], records.read_covariance(belief)[np.ix_(back, back)]

    return _offer("ekf", repeat, answer)


class Planning(NamedTuple):
    """The belief and the workspace of every planning function of a package, on the workload's numbers."""

    belief: Records
    workspace: Workspace


def planning(work: Workload, package: LoadedPackage) -> Planning:
    """Return belief and workspace for a plan over the whole horizon; the inputs are not bounded."""
    place, records = order(work), package.records
    weights = np.zeros((workload.HORIZON + 1, 2, 2))
    weights[:, 0, 0], weights[:, 1, 1] = work.weights.T
    inputs = np.full((workload.HORIZON, 1, 1), workload.CONTROL_COST)
    settings = records.make_settings(*package.noise, np.array([[-np.inf], [np.inf]]), package.numbers["data"])
    costs = records.make_stage_costs(weights, inputs, np.zeros((workload.HORIZON + 1, 2)))
    belief = records.make_belief(work.mean[place], np.ascontiguousarray(work.covariance[np.ix_(place, place)]))
    return Planning(belief, records.make_workspace(workload.HORIZON, costs, settings))


def dual_costs(work: Workload, package: LoadedPackage, repeated: ModuleType) -> list[Implementation]:
    """Return the dual cost of the given inputs: the form that the package chooses, and the other one beside it."""
    chosen = package.dual_cost.choose_form(workload.HORIZON)
    rows = {chosen: OWN} if chosen == "structured" else {chosen: OWN, "structured": f"{OWN}, structured form"}
    return [_dual_cost(work, package, repeated, form, row) for form, row in rows.items()]


def _dual_cost(work: Workload, package: LoadedPackage, repeated: ModuleType, form: str, row: str) -> Implementation:
    """Return the uncertain part of the cost; the generated package counts it without the factor 1/2."""
    given, inputs, out = planning(work, package), work.controls[:, None].copy(), np.zeros(1)
    loop = getattr(repeated, f"repeat_{form}")

    def repeat(n: int) -> None:
        loop(n, *given, inputs, out)

    return Implementation("dual_cost", row, form, repeat, lambda: (np.array(0.5 * out[0]),), True)
