"""Checks a package's translation to C: kernels against 50 digits, recursions against dense numpy, all against numba.

Every exported function is called with the same arguments in numba, in C, and in C with single precision. Double must
agree to 1e-12 of the largest number, single to the tolerances below, or to a multiple of what a change in the last bits
of the belief makes in numba itself: a search between two almost equal minima, or a plan that stops at a tolerance,
turns rounding into more. The exported controller is built from its own files, with every warning an error, and driven
along an episode.
"""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from symdual.backends.c.backend import library_text
from symdual.backends.c.compilation import WARNINGS, shared_library
from symdual.backends.c.compilers import compile_files
from symdual.backends.c.declared import MODULES
from symdual.backends.c.library import Library
from symdual.backends.c.program import Program
from symdual.backends.c.source import translated
from symdual.backends.loading import in_c
from symdual.checks.kernels import BlockResult, check_kernels
from symdual.checks.places import Place, places
from symdual.checks.recursions import check_recursions
from symdual.common.arrays import Array
from symdual.common.numbers import root
from symdual.controllers import CONTROLLERS, COSTS
from symdual.export.controller import Exported, Settings, export
from symdual.runtime import evaluate
from symdual.runtime.belief import Belief, processes_of
from symdual.runtime.controller import controller
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.noise import has_state_dependent_noise
from symdual.runtime.problem import Problem, problem
from symdual.runtime.signals import with_signals
from symdual.spec.scenario import Scenario
from symdual.spec.specification import Specification

DOUBLE = 1e-12
#: what single precision may miss, relative to the largest number: kernels, filter, costs and decisions
SINGLE = {"kernels": 1e-4, "filter": 1e-3, "calls": 2e-2, "decision": 2e-2}
#: what no controller does in single precision
_NEED_DOUBLE = {f"decision.decide_at, {kind.cost}" for kind in CONTROLLERS.values() if "single" in dict(kind.refuses)}
BY_DIFFERENCES = 1e-8  # slopes that are: the rounding of two costs over their distance
CONDITION = 1000
HORIZON = 5
EPISODE = 8  # steps of the exported controller
TURNS = 5  # changes of last bits along it

Quantities = list[tuple[str, Array]]


def check_exported(
    model: Specification,
    package: LoadedPackage,
    points: int = 20,
    progress: Callable[[float], None] = lambda fraction: None,
    scenarios: Sequence[Scenario] = (),
    recursions: bool = True,
) -> list[BlockResult]:
    """Compare everything that is exported with its oracles; `package` is that of numba."""
    translation = in_c(package)
    found = [_in_c(r) for r in check_kernels(model, translation, points, scenarios=scenarios)]
    progress(0.2)
    if not recursions:
        return found
    found += [_in_c(r) for r in check_recursions(model, translation, scenarios=scenarios)]
    progress(0.4)
    found += _functions(model, package, scenarios)
    progress(0.8)
    for name, plant in package.plants.items():
        if plant:
            found += _controllers(problem(package, name))
    progress(1.0)
    return found


def _in_c(result: BlockResult) -> BlockResult:
    return BlockResult(
        f"C: {result.block}", result.oracle, result.entries, result.error, result.passed, result.undefined
    )


# ------------------------------------------------------------ agreement


@dataclass
class _Agreement:
    """Collects how far numbers are from what they should be."""

    oracle: str
    rows: dict[str, tuple[int, float, bool, int]] = field(default_factory=dict)

    def add(self, block: str, got: Array, exact: Array, beside: Array, tolerance: float) -> None:
        """Compare one quantity; `beside` is what it would be after a change in the last bits."""
        entries, error, passed, undefined = self.rows.get(block, (0, 0.0, True, 0))
        if np.array_equal(np.isfinite(got), np.isfinite(exact)) and np.array_equal(np.isnan(got), np.isnan(exact)):
            known = np.isfinite(exact)
            size = max(float(np.max(np.abs(exact[known]), initial=0.0)), 1e-300)
            off = float(np.max(np.abs(got[known] - exact[known]), initial=0.0)) / size
            moved = np.where(np.isfinite(beside), beside, np.inf)[known]
            inherent = float(np.max(np.abs(moved - exact[known]), initial=0.0)) / size
            fine = off <= max(tolerance, CONDITION * inherent)
            self.rows[block] = (entries + got.size, max(error, off), passed and fine, undefined)
        else:
            unsure = not np.array_equal(np.isfinite(beside), np.isfinite(exact))
            self.rows[block] = (entries + got.size, error, passed and unsure, undefined + 1)

    def results(self) -> list[BlockResult]:
        """One result for each quantity."""
        return [BlockResult(block, self.oracle, *row[:3], undefined=row[3]) for block, row in self.rows.items()]


# ------------------------------------------------------------ functions


def _functions(model: Specification, package: LoadedPackage, scenarios: Sequence[Scenario]) -> list[BlockResult]:
    """Every exported function, in double and in single precision, beside numba."""
    random = np.random.default_rng(0)
    homes = places(model, scenarios, random)[0]
    single = translated(Program(package.files), package.name, "package", "float")
    library = Library(single, shared_library(library_text(single)))
    double, rough = _Agreement("numba"), _Agreement("numba, single")
    by_differences = single.program.has("adjoint") and hasattr(single.program.module("adjoint"), "nudge")
    for number in range(2):
        home = homes[number % len(homes)]
        samples = [
            _Sample(package, home, np.random.default_rng(number), change) for change in (0.0, 2.0**-52, 2.0**-23)
        ]
        calls = _calls(package)
        exact, beside, far = (list(sample.run(calls)) for sample in samples)
        in_double = list(_Sample(package, home, np.random.default_rng(number)).run(_calls(in_c(package))))
        in_single = list(
            _Sample(package, home, np.random.default_rng(number)).run(_single_calls(single, library, calls))
        )
        for (name, value), (_, near), (_, apart), (_, got), (_, short) in zip(
            exact, beside, far, in_double, in_single, strict=True
        ):
            differences = by_differences and name.startswith("calls.dual_gradient,")
            double.add(f"C: {name}", got, value, near, BY_DIFFERENCES if differences else DOUBLE)
            if name not in _NEED_DOUBLE:
                rough.add(f"C: {name}", short, value, apart, SINGLE[name.partition(".")[0]])
    return double.results() + rough.results()


Calls = dict[tuple[str, str], Callable[..., Any]]


def _calls(package: LoadedPackage) -> Calls:
    """The entries of a package, in the order in which they are defined, with the names of their arguments."""
    program = Program(package.files)
    found: Calls = {}
    for module in MODULES:
        if program.has(module):
            for function in program.functions(module):
                if function.options.entry and not function.name.startswith("_"):
                    found[module, function.name] = getattr(getattr(package, module), function.name)
    found["decision", "cost_pointer"] = package.decision.cost_pointer
    return found


def _single_calls(work: Any, library: Library, like: Calls) -> Calls:
    units = {(u.function.module, u.function.name): u for u in work.units if u.public}
    found = {key: library.function(units[key]) for key in like if key in units}

    def cost_pointer(kind: str) -> int:
        from symdual.backends.c.source import spelled_cost

        return library.address(spelled_cost(work, kind))

    found["decision", "cost_pointer"] = cost_pointer
    return found


class _Sample:
    """Arguments for every function: a random belief, costs and inputs where the model lives."""

    def __init__(self, package: LoadedPackage, home: Place, random: np.random.Generator, change: float = 0.0) -> None:
        self._package, records, n, m = package, package.records, package.NX, package.NU
        x, _, theta = home.draw(random, share=0.3)
        scale = np.concatenate([0.2 * home.x_spread, home.theta_spread])
        spread = random.normal(size=(package.NZ, package.NZ))
        covariance = (0.3 * spread @ spread.T / package.NZ + 0.7 * np.eye(package.NZ)) * np.outer(scale, scale)
        mean = np.concatenate([x, theta])
        own = processes_of(package)
        covariance[own], covariance[:, own], mean[own] = 0.0, 0.0, 0.0
        factors = 1.0 + change * random.normal(size=package.NZ)
        self._belief = mean * factors, 0.5 * (covariance + covariance.T) * np.outer(factors, factors)
        per_state, per_input = np.outer(home.x_spread, home.x_spread), np.outer(home.u_spread, home.u_spread)
        weights = records.make_stage_costs(
            np.stack([np.eye(n) / per_state] * (HORIZON + 1)),
            np.stack([np.eye(m) / per_input] * HORIZON),
            np.tile(home.x, (HORIZON + 1, 1)),
        )
        self._floor = np.diagonal(np.eye(m) / per_input).copy()
        bounds = np.array([package.numbers["lower"], package.numbers["upper"]])
        noise = package.noise
        process = noise.process + 1e-3 * np.diag(home.x_spread**2)
        measured = np.abs(evaluate.observation(package, x, theta)) + 1.0
        measurement = noise.measurement + 1e-3 * np.diag(measured**2)
        self._settings = records.make_settings(
            process, measurement, noise.transition, noise.drift, bounds, package.numbers["data"]
        )
        self._workspace = records.make_workspace(HORIZON, weights, self._settings, 2, True)
        self._u = np.clip(home.u + home.u_spread * random.normal(size=(HORIZON, m)) / 3, *bounds)
        self._y = evaluate.observation(package, x, theta) + 0.03 * measured * random.normal(size=package.NY)
        self._costate = random.normal(size=max(n, package.NY))
        self._point = np.concatenate([x, theta])

    def run(self, calls: Calls) -> Iterator[tuple[str, Array]]:
        """Call everything; yields what each function returned and wrote."""
        yield from self._kernels(calls)
        yield from self._filter(calls)
        yield from self._planning(calls)
        yield from self._deciding(calls)

    def _kernels(self, calls: Calls) -> Iterator[tuple[str, Array]]:
        package = self._package
        view: Any = _View(package, {name: call for (module, name), call in calls.items() if module == "kernels"})
        n = package.NX
        x, theta, u = self._point[:n], self._point[n:], self._u[0]
        lam = self._costate
        yield "kernels.dynamics", evaluate.dynamics(view, x, u, theta)
        for name, array in evaluate.jacobian(view, x, u, theta)._asdict().items():
            yield f"kernels.dynamics_jacobian, {name}", array
        for name, array in zip(("f", "f_x", "f_u"), evaluate.linearise(view, x, u, theta), strict=True):
            yield f"kernels.linearise, {name}", array
        for name, array in evaluate.hessian(view, x, u, theta, lam[:n])._asdict().items():
            yield f"kernels.dynamics_hessian, {name}", array
        yield "kernels.dynamics_hessians", evaluate.hessians(view, x, u, theta)
        yield "kernels.observation", evaluate.observation(view, x, theta)
        for name, array in evaluate.observation_jacobian(view, x, theta)._asdict().items():
            yield f"kernels.observation_jacobian, {name}", array
        yield "kernels.observation_hessian", evaluate.observation_hessian(view, x, theta, lam[: package.NY])

    def _held(self) -> Any:
        return self._package.records.make_belief(*self._belief)

    def _filter(self, calls: Calls) -> Iterator[tuple[str, Array]]:
        gap = self._y.copy()
        gap[0] = np.nan
        rows = (("update", self._y), ("update", gap), ("update_consider", self._y), ("step", self._y))
        for name, y in rows:
            held, stats, settings = self._held(), np.zeros(3), self._settings.copy()
            filter_workspace = self._package.filter.make_filter_workspace(settings)
            if ("filter", "factorise") in calls:
                calls["filter", "factorise"](held)
            if name == "step":
                status = calls["filter", "step"](0, held, self._u[0], y, filter_workspace)
            else:
                calls["filter", "predict"](0, held, self._u[0], filter_workspace)
                yield f"filter.predict before {name}", _numbers(held)
                status = calls["filter", name](1, held, y, filter_workspace, stats)
            if ("filter", "complete") in calls:
                calls["filter", "complete"](held)
            yield f"filter.{name}", np.concatenate([_numbers(held), stats, [status]])

    def _planning(self, calls: Calls) -> Iterator[tuple[str, Array]]:
        held, workspace, u = self._held(), self._workspace, np.zeros(self._package.NU)
        span = (0, HORIZON)
        yield "calls.begin", np.array([calls["calls", "begin"](*span, held, workspace)], dtype=float)
        found = calls["calls", "certainty_equivalent"](*span, held, workspace, u)
        yield "calls.certainty_equivalent", np.array([found[0], *u])
        found = calls["calls", "plan_through"](*span, self._u[0], workspace)
        yield "calls.plan_through", np.array([found[0]])
        for name in ("structured", "second_order", "bonus", "lowrank"):
            if ("calls", name) in calls and self._fits(name):
                self._settings["order"] = 2.0 if name == "second_order" else 1.0
                out = np.zeros((2, self._package.dual_cost.OUT))
                calls["calls", name](*span, held, workspace, self._u[:2].copy(), out)
                yield f"calls.{name}", out[:, :3].copy()
        yield "calls.follow", np.array([calls["calls", "follow"](*span, held, self._u, workspace)])
        for order in (1, 2):
            yield (
                f"calls.jd_structured, order {order}",
                np.array([calls["calls", "jd_structured"](*span, 0, order, held, workspace)[0]]),
            )
        for dual_gradient in ("dual_gradient", "dual_gradient_lowrank"):
            if ("calls", dual_gradient) in calls:
                calls["calls", dual_gradient](*span, 0, held, workspace)
                for name in ("gradient_x", "gradient_u"):
                    yield f"calls.{dual_gradient}, {name}", np.ravel(workspace.stages[name][:HORIZON]).copy()
        if ("calls", "dual_gradient") in calls:
            whole = calls["calls", "descend_total"](*span, 0, np.inf, 1, 1e-6, held, workspace)
            yield "calls.descend_total", np.array([whole[0]])
        if ("calls", "jd_lowrank") in calls and self._fits("lowrank"):
            yield "calls.jd_lowrank", np.array([calls["calls", "jd_lowrank"](*span, 0, held, workspace)])

    def _fits(self, form: str) -> bool:
        package = self._package
        return form != "lowrank" or HORIZON * (package.NR + package.NHR) <= package.NTHETA

    def _deciding(self, calls: Calls) -> Iterator[tuple[str, Array]]:
        package, held, workspace = self._package, self._held(), self._workspace
        for kind in package.decision._COSTS:  # type: ignore[attr-defined]
            if not self._fits(kind):
                continue
            self._settings["order"] = 2.0 if kind == "second_order" else 1.0
            self._settings["guard"] = 1.0 if kind == "guarded" else 0.0
            table, u = package.search.table(), np.zeros(package.NU)
            pointer = calls["decision", "cost_pointer"](kind)
            address = getattr(pointer, "address", pointer)
            searching = kind == "ce" or COSTS[kind].searched  # as controllers do: others would make a thousand plans
            calls["decision", "decide_at"](address, searching, self._floor, 0, HORIZON, held, workspace, table, u)
            yield f"decision.decide_at, {kind}", table.report[[2, 3, 5]]
            states, inputs = np.zeros((HORIZON + 1, package.NX)), np.zeros((HORIZON, package.NU))
            cost = calls["decision", "plan_of"](0, HORIZON, held, workspace, self._u[0], states, inputs)
            yield "decision.plan_of", np.array([cost, *np.ravel(inputs)])


class _View:
    """A package whose kernels are others."""

    def __init__(self, package: LoadedPackage, kernels: dict[str, Callable[..., Any]]) -> None:
        self._package, self.kernels = package, type("Kernels", (), {k: staticmethod(v) for k, v in kernels.items()})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._package, name)


def _numbers(belief: Any) -> Array:
    return np.concatenate([np.ravel(belief[name]) for name in ("z", "xx", "xt", "tt")])


# ------------------------------------------------------------ the exported controller


def _controllers(problem: Problem) -> list[BlockResult]:
    """The controller as it is exported, from its own files, beside the one in Python, along an episode."""
    found = _Agreement("numba")
    exported = export(problem, Settings("exported"))
    with tempfile.TemporaryDirectory() as folder:
        native = build(exported, Path(folder))
        for one in exported.choices:
            ys, exact = _run(problem, one.name, 0.0)
            others = [_run(problem, one.name, 2.0**-52, ys, seed)[1] for seed in range(TURNS)]
            got = drive(native, exported, one.number, ys)
            found.add(f"C: {one.name} along an episode", got, exact, _farthest(others, exact), DOUBLE)
    return found.results()


def _farthest(others: Sequence[Array], exact: Array) -> Array:
    """The one that differs most: a plan that stops at a tolerance answers to some changes of last bits, not to all."""
    return max(others, key=lambda other: float(np.max(np.abs(np.where(np.isfinite(other), other, np.inf) - exact))))


def build(exported: Exported, folder: Path, flags: Sequence[str] = ("-O1",)) -> ctypes.CDLL:
    """The exported files as a shared library; a warning is an error."""
    for name, text in exported.files.items():
        (folder / name).write_text(text)
    library = folder / "controller.so"
    sources = [folder / name for name in exported.files if name.endswith(".c")]
    compile_files(sources, ["-std=c99", *flags, *WARNINGS, "-Werror", "-fPIC", "-shared"], library)
    return ctypes.CDLL(str(library))


def drive(native: ctypes.CDLL, exported: Exported, number: int, ys: Array) -> Array:
    """Inputs and means of the belief of an exported controller that is given these measurements."""
    head, package = exported.settings.prefix, exported.work.program.module("records")
    real: Any = np.float32 if exported.settings.real == "float" else np.float64
    memory = np.zeros(exported.bytes // np.dtype(real).itemsize + 1, real)
    place = ctypes.c_void_p(memory.ctypes.data)
    getattr(native, f"{head}_init")(place)
    getattr(native, f"{head}_use")(place, number)
    rows = []
    for y in ys:
        u, given = np.zeros(package.NU, real), y.astype(real)
        status = getattr(native, f"{head}_act")(
            place, ctypes.c_void_p(given.ctypes.data), ctypes.c_void_p(u.ctypes.data)
        )
        rows.append(np.concatenate([u, memory[: package.NZ], [float(status < 0)]]).astype(float))
    return np.array(rows)


def _run(problem: Problem, name: str, change: float, ys: Array | None = None, seed: int = 0) -> tuple[Array, Array]:
    """Measurements of an episode with a controller of Python, and its inputs and means; with given ones, only these."""
    random = np.random.default_rng(seed)
    package, world = problem.package, _World(problem)
    factors = 1.0 + change * random.normal(size=package.NZ)
    prior = Belief(
        problem.prior.mean * factors, problem.prior.covariance * np.outer(factors, factors), problem.prior.memory
    )
    one = controller(problem, name)
    one.reset(prior)
    x = problem.start.copy()
    y, rows, measured = np.full(package.NY, np.nan), [], []
    for k in range(min(EPISODE, problem.horizon)):
        y = y if ys is None else ys[k] * (1.0 + change * random.normal(size=package.NY))
        measured.append(y)
        u = one.act(y)
        rows.append(np.concatenate([u, one.belief.mean, [0.0]]))
        x = world.move(k, x, u, random)
        y = world.measure(k + 1, x, random)
    return np.array(measured), np.array(rows)


class _World:
    """The true system of a problem, with the signals that it meets, and its noise where it is."""

    def __init__(self, problem: Problem) -> None:
        self._plant = plant = problem.plant
        self._signals = None if problem.signals is None else problem.signals.of(plant)[1]
        own = problem.prior.mean[plant.NX :] if problem.plant_is_model else np.zeros(plant.NTHETA)
        self._theta = own if problem.truth is None else problem.truth

    def move(self, k: int, x: Array, u: Array, random: np.random.Generator) -> Array:
        """The state after step k: f(x, u, theta) + N(0, Q(x, u))."""
        here = self._at(k)
        noise = evaluate.process_noise(here, x, u, k) if has_state_dependent_noise(here) else here.noise.process
        moved = evaluate.dynamics(here, x, u, self._theta, k) + root(noise) @ random.normal(size=len(x))
        return self._plant.within_bounds(moved)

    def measure(self, k: int, x: Array, random: np.random.Generator) -> Array:
        """What is measured at time k: h(x, theta) + N(0, R(x))."""
        here = self._at(k)
        noise = evaluate.measurement_noise(here, x, k) if has_state_dependent_noise(here) else here.noise.measurement
        return evaluate.observation(here, x, self._theta, k) + root(noise) @ random.normal(size=len(noise))

    def _at(self, k: int) -> LoadedPackage:
        return with_signals(self._plant, None if self._signals is None else self._signals[k])
