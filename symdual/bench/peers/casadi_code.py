"""CasADi: expressions and recursions generated to C and compiled; its virtual machine without a compiler.

Written as its users write it: symbolic Jacobian and Hessian with the sparsity CasADi finds, dense products in
the recursions. Scalar (SX) code is the faster one but grows with every entry: made while it stays small.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from symdual.bench import workload
from symdual.bench.contender import Implementation
from symdual.bench.peers.compiler import OPTIMISED, shared_library
from symdual.bench.workload import HORIZON, Answer, Workload

LARGEST_SCALAR_STEP: Final = 30
LARGEST_SCALAR_COST: Final = 2
COMPILE_SECONDS: Final = 120.0
ROW: Final = "CasADi C"

_DRIVER: Final = r"""
typedef int (*evaluation)(const double**, double**, long long*, double*, int);
void drive(int n, evaluation f, const double** arguments, double** results, long long* integers, double* work)
{
  for (int i = 0; i < n; i++) { f(arguments, results, integers, work, 0); __asm__ volatile("" ::: "memory"); }
}
"""


class _Task(NamedTuple):
    kernel: str
    variant: str
    function: Any
    arguments: tuple[ArrayLike, ...]


def missing() -> str | None:
    """Return why CasADi cannot run here, or None."""
    return None if importlib.util.find_spec("casadi") else "casadi is not installed"


def implementations(work: Workload, build: Path) -> list[Implementation]:
    """Return all kernels, compiled where that is possible in time, else on the virtual machine."""
    driver = _driver(build)
    offered = []
    for task in _tasks(work):
        library = _generated(task, work, build)
        if driver is not None and library is not None:
            offered.append(_compiled(task, driver, library))
        else:
            offered.append(_interpreted(task))
    return offered


def _tasks(work: Workload) -> list[_Task]:
    """Return the five kernels as CasADi functions."""
    import casadi as ca

    z, u, costate = ca.SX.sym("z", work.size), ca.SX.sym("u"), ca.SX.sym("costate", work.size)
    following = _next_state(ca, work, z, u)
    slope = ca.jacobian(following, z)
    curvature, _ = ca.hessian(ca.dot(costate, following), z)
    move = ca.Function("move", [z, u], [following])
    linearise = ca.Function("linearise", [z, u], [slope])
    curve = ca.Function("curve", [z, u, costate], [curvature])
    tasks = [
        _Task("dynamics", "SX", move, (work.mean, work.control)),
        _Task("jacobian", "SX", linearise, (work.mean, work.control)),
        _Task("hessian", "SX", curve, (work.mean, work.control, work.costate)),
    ]
    for kind, name in ((ca.SX, "SX"), (ca.MX, "MX")):
        scalar = name == "SX"
        if not scalar or work.features <= LARGEST_SCALAR_STEP:
            start = (work.mean, work.covariance, work.control, work.measurement)
            tasks.append(_Task("ekf", name, _ekf(ca, kind, work, move, linearise), start))
        if not scalar or work.features <= LARGEST_SCALAR_COST:
            future = (work.mean, work.covariance, work.controls)
            tasks.append(_Task("dual_cost", name, _dual_cost(ca, kind, work, move, linearise), future))
    return tasks


def _next_state(ca: Any, work: Workload, z: Any, u: Any) -> Any:
    angle = [float(w) * z[0] for w in work.frequencies]
    phi = [work.scale * (ca.cos(a) if i % 2 else ca.sin(a)) for i, a in enumerate(angle)]
    return ca.vertcat(z[0] + workload.STEP * z[1], z[1] + ca.dot(z[2:], ca.vertcat(*phi)) + u, z[2:])


def _update(ca: Any, slope: Any, covariance: Any, work: Workload) -> tuple[Any, Any, Any]:
    """Return predicted covariance, gain and updated covariance; both states are measured."""
    noise = ca.DM(work.size, work.size)
    noise[0, 0] = noise[1, 1] = workload.PROCESS_VARIANCE
    predicted = ca.mtimes(slope, ca.mtimes(covariance, slope.T)) + noise
    innovation = predicted[:2, :2] + workload.MEASUREMENT_VARIANCE * np.eye(2)
    determinant = innovation[0, 0] * innovation[1, 1] - innovation[0, 1] * innovation[1, 0]
    top = ca.horzcat(innovation[1, 1], -innovation[0, 1])
    bottom = ca.horzcat(-innovation[1, 0], innovation[0, 0])
    gain = ca.mtimes(predicted[:, :2], ca.vertcat(top, bottom) / determinant)
    return predicted, gain, predicted - ca.mtimes(gain, predicted[:2, :])


def _ekf(ca: Any, kind: Any, work: Workload, move: Any, linearise: Any) -> Any:
    z, u, y = kind.sym("z", work.size), kind.sym("u"), kind.sym("y", 2)
    covariance = kind.sym("P", work.size, work.size)
    following = move(z, u)
    _, gain, updated = _update(ca, linearise(z, u), covariance, work)
    mean = following + ca.mtimes(gain, y - following[:2])
    return ca.Function(f"ekf_{kind.__name__}", [z, covariance, u, y], [mean, updated])


def _dual_cost(ca: Any, kind: Any, work: Workload, move: Any, linearise: Any) -> Any:
    start, controls = kind.sym("z", work.size), kind.sym("u", HORIZON)
    first = kind.sym("P", work.size, work.size)
    z, covariance = start, first
    slopes, predictions, updates = [], [], [first]
    for k in range(HORIZON):
        slopes.append(linearise(z, controls[k]))
        z = move(z, controls[k])
        predicted, _, covariance = _update(ca, slopes[k], covariance, work)
        predictions.append(predicted)
        updates.append(covariance)
    weights = [ca.DM(work.size, work.size) for _ in range(HORIZON + 1)]
    for k, (position, velocity) in enumerate(work.weights):
        weights[k][0, 0], weights[k][1, 1] = position, velocity

    def weighed(k: int) -> Any:
        return work.weights[k, 0] * updates[k][0, 0] + work.weights[k, 1] * updates[k][1, 1]

    riccati, cost = weights[HORIZON], weighed(HORIZON)
    for k in range(HORIZON - 1, -1, -1):
        cost += weighed(k) + ca.dot(predictions[k] - updates[k + 1], riccati)
        effort = riccati[1, 1] + workload.CONTROL_COST
        reduced = riccati - ca.mtimes(riccati[:, 1], riccati[1, :]) / effort
        riccati = ca.mtimes(slopes[k].T, ca.mtimes(reduced, slopes[k])) + weights[k]
    return ca.Function(f"dual_cost_{kind.__name__}", [start, first, controls], [0.5 * cost])


def _driver(build: Path) -> Any:
    source = build / "casadi_driver.c"
    source.write_text(_DRIVER)
    library = shared_library(source, ("-O2",), build, COMPILE_SECONDS)
    return None if library is None else ctypes.CDLL(str(library)).drive


def _generated(task: _Task, work: Workload, build: Path) -> Path | None:
    name = f"casadi_{task.kernel}_{task.variant}_{work.features}.c"
    import casadi as ca

    generator = ca.CodeGenerator(name)
    generator.add(task.function)
    (build / name).write_text(generator.dump())
    return shared_library(build / name, OPTIMISED, build, COMPILE_SECONDS)


def _columns(arguments: Sequence[ArrayLike]) -> list[np.ndarray]:
    """Return the arguments as CasADi stores them, column by column."""
    return [np.ascontiguousarray(np.asarray(a, dtype=np.float64).ravel(order="F")) for a in arguments]


def _results(function: Any) -> list[np.ndarray]:
    return [np.zeros(max(1, function.nnz_out(i))) for i in range(function.n_out())]


def _answer(task: _Task, results: list[np.ndarray]) -> Callable[[], Answer]:
    """Return a function that unpacks CasADi's non-zeros."""
    import casadi as ca

    function = task.function

    def answer() -> Answer:
        found = []
        for i, values in enumerate(results):
            full = ca.DM(function.sparsity_out(i), values[: function.nnz_out(i)]).full()
            found.append(full.reshape(-1) if full.shape[1] == 1 else full)
        return (found[0].reshape(()),) if task.kernel == "dual_cost" else tuple(found)

    return answer


def _compiled(task: _Task, driver: Any, library: Path) -> Implementation:
    """Return the repetition inside C of the generated and compiled function."""
    function = task.function
    arguments, results = _columns(task.arguments), _results(function)
    given = (ctypes.c_void_p * max(1, function.sz_arg()))(*[a.ctypes.data for a in arguments])
    asked = (ctypes.c_void_p * max(1, function.sz_res()))(*[r.ctypes.data for r in results])
    integers, numbers = np.zeros(function.sz_iw() + 1, np.int64), np.zeros(function.sz_w() + 1)
    opened = ctypes.CDLL(str(library))
    entry = ctypes.cast(getattr(opened, function.name()), ctypes.c_void_p)
    kept = (arguments, integers, numbers, opened)

    def repeat(n: int, _kept: tuple[object, ...] = kept) -> None:
        spaces = (ctypes.c_void_p(integers.ctypes.data), ctypes.c_void_p(numbers.ctypes.data))
        driver(ctypes.c_int(n), entry, given, asked, *spaces)

    return Implementation(task.kernel, ROW, task.variant, repeat, _answer(task, results), True)


def _interpreted(task: _Task) -> Implementation:
    """Return the repetition on CasADi's virtual machine, through its buffers."""
    function = task.function
    arguments, results = _columns(task.arguments), _results(function)
    buffer, trigger = function.buffer()
    for i, argument in enumerate(arguments):
        buffer.set_arg(i, memoryview(argument.data))
    for i, result in enumerate(results):
        buffer.set_res(i, memoryview(result.data))
    kept = (arguments, results, buffer)

    def repeat(n: int, _kept: tuple[object, ...] = kept) -> None:
        for _ in range(n):
            trigger()

    return Implementation(task.kernel, "CasADi VM", task.variant, repeat, _answer(task, results), False)
