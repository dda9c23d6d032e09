"""Checks the generated recursions of a package against the dense ones, on random problems.

The dense recursions get f, h and their derivatives from the package's own kernels, which `symdual.checks.kernels`
compares with the model as written; what is compared here is everything that is built on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import cast

import numpy as np
from numpy.typing import NDArray

from symdual.checks import dense
from symdual.checks.exact_cost import ExactSurroundings
from symdual.checks.exact_plan import ExactPlan, active_entries
from symdual.checks.kernels import EPSILON, TOLERANCE, BlockResult
from symdual.checks.objective import local_cost
from symdual.checks.packaged import dense_model
from symdual.checks.places import Place, input_bounds, places
from symdual.checks.processes import COMBINED, ProcessTask
from symdual.checks.slopes import SLOPE, slope_by_inputs, slopes
from symdual.checks.tuned import Tuned, at
from symdual.numbers import Array
from symdual.runtime import evaluate
from symdual.runtime.border import Desk, Records
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.noise import is_noisy
from symdual.runtime.objective import Objective, limits_of
from symdual.runtime.signals import place_of
from symdual.spec.model import Model
from symdual.spec.objective import Objective as Asked
from symdual.spec.scenario import Scenario

HORIZON = 5
PROBLEMS = 3
#: A plan counts as optimal when a general optimiser cannot take more than this share off its cost.
OPTIMALITY = 1e-6
#: How often a deviation may be that which the last bits of the belief make in the dense recursions themselves.
CONDITION = 1000

Tilt = Callable[[int, int, int, Records, Desk], None]

Comparison = tuple[str, Array, Array]


@np.errstate(over="ignore", invalid="ignore")  # of a plan that runs away, in the reference too: it is counted
def check_recursions(
    model: Model,
    package: LoadedPackage,
    seed: int = 0,
    progress: Callable[[float], None] = lambda fraction: None,
    scenarios: Sequence[Scenario] = (),
) -> list[BlockResult]:
    """Compare filter, dual cost and plans with dense numpy, where the model lives; one result per quantity."""
    homes = finite_places(package, places(model, scenarios, np.random.default_rng(seed)))

    def home(random: np.random.Generator) -> Place:
        return homes[int(random.integers(len(homes)))]

    if package.PROCESSES:
        return _judged(lambda random: ProcessTask(model, package, home(random), random), "Gram matrix", seed, progress)
    task = tasks(model, package, homes, seed, input_bounds(model, scenarios))
    results = _judged(task, "dense", seed, progress)
    random = np.random.default_rng(seed + 1)
    gains = [task(random).left_to_gain() for _ in range(PROBLEMS)]
    defined = [gain for gain in gains if not np.isnan(gain)]
    worst = max(defined, default=0.0)
    plan = BlockResult("nominal plan", "optimiser", PROBLEMS, worst, worst <= OPTIMALITY, len(gains) - len(defined))
    return [*results, plan, *_exact_slope(model, package, task(random))]


def tasks(
    model: Model, package: LoadedPackage, homes: list[Place], seed: int, bounds: Array | None = None
) -> Callable[[np.random.Generator], Task]:
    """How random problems are made in these places, within the bounds of the model or others."""
    signals = _signals(package, np.random.default_rng(seed + 2))
    reference, iterated = dense_model(package, signals), model.filter == "iterated"

    def task(random: np.random.Generator) -> Task:
        home = homes[int(random.integers(len(homes)))]
        return Task(package, reference, home, random, iterated, model.objective, signals, bounds)

    return task


def _exact_slope(model: Model, package: LoadedPackage, task: Task) -> list[BlockResult]:
    """The slope of the dual cost along a direction of inputs, against 50-digit differences of the model as written."""
    if not task.slopes_are_exact():
        return []
    task = task.narrowed(active_entries(package.NX, task.noise.transition))
    found = []
    for form, (got, wanted, beside, size) in task.slopes_along(model).items():
        if not np.isfinite(wanted):
            found.append(BlockResult(form, "50 digits", 1, 0.0, True, undefined=1))
            continue
        error, inherent = (abs(a - b) / size for a, b in ((got, wanted), (got, beside)))
        passed = bool(error <= max(TOLERANCE, CONDITION * inherent))
        found.append(BlockResult(form, "50 digits", 1, error, passed))
    return found


def _signals(package: LoadedPackage, random: np.random.Generator) -> Array | None:
    """Signals that change from time to time, around their usual values."""
    usual = package.numbers["data"][place_of(package)]
    return usual * random.uniform(0.7, 1.3, size=(HORIZON + 1, len(usual))) if len(usual) else None


def finite_places(package: LoadedPackage, groups: list[list[Place]]) -> list[Place]:
    """The first group with places at which the kernels are finite."""
    for group in groups:
        fine = [p for p in group if np.all(np.isfinite(evaluate.jacobian(package, p.x, p.u, p.theta).f_x))]
        if fine:
            return fine
    return groups[0]


def _judged(
    make: Callable[[np.random.Generator], Task | ProcessTask],
    oracle: str,
    seed: int,
    progress: Callable[[float], None],
) -> list[BlockResult]:
    """The worst relative deviation of each quantity over a few random problems.

    What the last bits of the belief make in the reference is no fault; where the reference is not finite, nothing is.
    """
    found: dict[str, list[tuple[int, float, bool, bool]]] = {}
    random = np.random.default_rng(seed)
    for number in range(PROBLEMS):
        task = make(random)
        moved = task.with_other_last_bits()
        for (name, got, exact), (_, _, beside) in zip(task.comparisons(), moved.comparisons(), strict=True):
            defined = bool(np.all(np.isfinite(exact)))
            size = max(float(np.max(np.abs(exact), initial=0.0)), 1e-300)
            error = float(np.max(np.abs(got - exact), initial=0.0)) / size if np.all(np.isfinite(got)) else np.inf
            inherent = float(np.max(np.abs(beside - exact), initial=0.0)) / size if defined else 0.0
            tolerance = COMBINED if task.combined else TOLERANCE
            passed = not defined or error <= max(tolerance, CONDITION * inherent)
            found.setdefault(name, []).append((got.size, error if defined else 0.0, passed, defined))
            progress((number + len(found) / 12) / PROBLEMS)
    progress(1.0)
    return [
        BlockResult(
            name,
            oracle,
            sum(count for count, _, _, _ in rows),
            max(error for _, error, _, _ in rows),
            all(passed for _, _, passed, _ in rows),
            sum(not defined for _, _, _, defined in rows),
        )
        for name, rows in found.items()
    ]


class Task:
    """One random problem: a belief, a cost, inputs, and both ways to compute with them."""

    combined = False

    def __init__(
        self,
        package: LoadedPackage,
        reference: dense.DenseModel,
        home: Place,
        random: np.random.Generator,
        iterated: bool = False,
        asked: Asked | None = None,
        signals: Array | None = None,
        bounds: Array | None = None,
    ) -> None:
        self._package, self._reference, self._random = package, reference, random
        self._iterated = iterated
        n, m = reference.nx, reference.nu
        self._scale = np.concatenate([0.2 * home.x_spread, home.theta_spread])
        x, _, theta = home.draw(random, share=0.3)
        mean = np.concatenate([x, theta])
        self._belief = dense.Belief(mean, self._covariance(reference.nz) * np.outer(self._scale, self._scale))
        drift = package.numbers["drift"]
        transition = package.numbers["transition"]
        seen = np.abs(reference.observation_jacobian(0, mean)) @ self._scale
        self._seen = np.where(np.isfinite(seen) & (seen > 0), seen, 1.0)
        self._noise = dense.Noise(
            package.numbers["process_noise"] + 1e-3 * np.diag(home.x_spread**2),
            package.numbers["measurement_noise"] + 1e-3 * np.diag(self._seen**2),
            transition if transition.ndim == 2 else np.diag(transition),
            drift if drift.ndim == 2 else np.diag(drift),
        )
        if is_noisy(package):
            heard = package if signals is None else cast(LoadedPackage, Tuned(package, signals))
            self._noise = self._noise._replace(
                process_at=lambda time, z, u: evaluate.process_noise(at(heard, time), z[:n], u, time),
                measurement_at=lambda time, z: evaluate.measurement_noise(at(heard, time), z[:n], time),
            )
        per_state, per_input = np.outer(home.x_spread, home.x_spread), np.outer(home.u_spread, home.u_spread)
        self._cost = dense.Cost(
            np.stack([self._covariance(n) / per_state for _ in range(HORIZON + 1)]),
            np.stack([(self._covariance(m) + np.eye(m)) / per_input for _ in range(HORIZON)]),
            home.x + home.x_spread * random.normal(size=(HORIZON + 1, n)) / 3,
            np.array([package.numbers["lower"], package.numbers["upper"]]) if bounds is None else bounds,
        )
        self._numbers = numbers = None if asked is None else self._objective(home)
        if asked is not None and numbers is not None:
            heard = package if signals is None else cast(LoadedPackage, Tuned(package, signals))
            self._cost = self._cost._replace(other=local_cost(heard, asked, self._cost, numbers))
        inputs = home.u + home.u_spread * random.normal(size=(HORIZON, m)) / 3
        self._inputs = np.clip(inputs, *self._cost.bounds)
        self._surprise = 0.1 * self._seen * random.normal(size=reference.ny)
        records, motion = package.records, (package.numbers["transition"], package.numbers["drift"])
        self._task = records.make_task(*self._noise[:2], *motion, self._cost.bounds, package.numbers["data"])
        more: tuple[Array, ...] = (
            () if numbers is None else (numbers.cross_cost, numbers.input_reference, numbers.cost_weights)
        )
        if numbers is not None:
            self._task["ends"] = numbers.terminal_weights
            if limits_of(package):
                self._task["limit_weights"] = numbers.limit_weights
        more += () if signals is None else (signals, signals)
        self._signals = signals
        self._desk = records.desk(HORIZON, records.make_weights(*self._cost[:3], *more), self._task, 2, True)
        self._held = records.make_belief(*self._belief)

    def _objective(self, home: Place) -> Objective:
        """Random references of inputs, cross terms and weights of the terms of the cost."""
        random, (n, m) = self._random, (self._reference.nx, self._reference.nu)
        s = home.u + home.u_spread * random.normal(size=(HORIZON, m)) / 3
        # W and U have eigenvalues of 0.7 at least, in these units: a cross term of half that keeps the whole convex
        N = 0.35 * random.uniform(-1, 1, size=(HORIZON, m, n)) / np.sqrt(m * n)
        terms: list[Array] = [
            random.uniform(0.5, 1.5, size=shape) for shape in ((HORIZON, self._package.TERMS), self._package.ENDS)
        ]
        limits = limits_of(self._package)
        numbers = (*terms, np.ones(limits), random.uniform(0.5, 1.5, size=limits))
        return Objective._make([s, N / np.outer(home.u_spread, home.x_spread), *numbers])

    def with_other_last_bits(self) -> Task:
        """The same problem with a belief that differs by rounding."""
        twin = copy(self)
        mean, covariance = self._belief
        factors = 1.0 + EPSILON * self._random.normal(size=len(mean))
        twin._belief = dense.Belief(mean * factors, covariance * np.outer(factors, factors))
        twin._held = self._package.records.make_belief(*twin._belief)
        return twin

    def _covariance(self, size: int) -> Array:
        root = self._random.normal(size=(size, size))
        product = 0.3 * root @ root.T / size + 0.7 * np.eye(size)
        return np.asarray((product + product.T) / 2)

    def comparisons(self) -> Iterator[Comparison]:
        """Pairs of computed and expected numbers, each with the name of what they are."""
        yield from self._filter()
        yield from self._costs()
        if self.slopes_are_exact():
            yield from self._slopes()
        if limits_of(self._package):
            yield from self._limits()

    def slopes_are_exact(self) -> bool:
        """Whether the package has slopes of the dual cost that are no differences."""
        return not limits_of(self._package)

    def _limits(self) -> Iterator[Comparison]:
        """The spread of every constraint along the plan, with and without learning."""
        package, desk = self._package, self._desk
        for learning in (True, False):
            self._task["learning"] = float(learning)
            desk.plan["distance"] = 0.0
            package.calls.follow(0, HORIZON, self._held, self._inputs, desk)
            package.calls.spread(0, HORIZON, 0, self._held, desk)
            got = desk.notes["sigma"][: HORIZON + 1].copy()
            desk.plan["distance"] = 0.0
            model, noise, inputs = self._reference, self._noise, self._inputs
            loop = dense.closed_loop(model, noise, self._cost, 0, self._belief, inputs, learning=learning)
            states = dense.rollout(model, noise, 0, self._belief.mean, inputs)
            exact = np.zeros_like(got)
            for j in range(HORIZON + 1):
                exact[j] = self._deviation(j, states[j], inputs[j] if j < HORIZON else None, loop)
            yield f"spread of constraints{'' if learning else ', learning off'}", got, exact
        self._task["learning"] = 1.0

    def _deviation(self, j: int, z: Array, u: Array | None, loop: dense.ClosedLoop) -> Array:
        """sigma^2 = g_z S g_z' + (g_z + g_u L) M (g_z + g_u L)'."""
        package, nx = self._package, self._reference.nx
        tuned = package if self._signals is None else cast(LoadedPackage, Tuned(package, self._signals))
        action = np.zeros(package.NU) if u is None else u
        _, g_x, g_u, g_theta = evaluate.limit_slopes(at(tuned, j), z[:nx], action, z[nx:], j)
        slopes = np.zeros((len(g_x), len(z)))
        slopes[:, :nx], slopes[:, nx : nx + package.NS] = g_x, g_theta
        answered = slopes + (g_u @ loop.gains[j] if u is not None else 0.0)
        variances = np.einsum("ci,ij,cj->c", slopes, loop.filtered[j], slopes)
        return np.asarray(np.sqrt(variances + np.einsum("ci,ij,cj->c", answered, loop.spread[j], answered)))

    @property
    def on_desk(self) -> tuple[Records, Desk, float]:
        """The belief and the desk as decisions want them, and the least eigenvalue of the first U."""
        return self._held, self._desk, float(np.linalg.eigvalsh(self._cost.input[0]).min())

    def switch(self, tried: Array, switched: NDArray[np.bool_], learning: bool) -> None:
        """Let the first inputs be one of these combinations (N, NU) of those that are switched."""
        self._task["choices"][0, : len(tried)], self._task["combinations"] = tried, len(tried)
        self._task["switched"], self._task["learning"] = switched, float(learning)

    def dense_cost(self, inputs: Array, learning: bool) -> dense.DualCost:
        """Jbar and Jd of given inputs, order 1, with full matrices."""
        given = self._reference, self._noise, self._cost, 0, self._belief, inputs
        return dense.dual_cost(*given, learning=learning)

    # ------------------------------------------------------------ filter

    def _filter(self) -> Iterator[Comparison]:
        u = self._inputs[0]
        expected = dense.predict(self._reference, self._noise, 0, self._belief, u)
        predicted = self._filtered(self._belief, u, None, "update")
        yield from self._both("predicted", "", predicted, expected)
        y = self._reference.observation(1, expected.mean) + self._surprise
        for name, learning in (("update", True), ("update_consider", False)):
            exact = self._updated(expected, y) if learning else self._considered(expected, y)
            got = self._filtered(self._belief, u, y, name)
            label = "updated" if learning else "considered"
            yield from self._both(label, "", got, exact)
        y[0] = np.nan
        if len(y) > 1:
            exact = self._updated(expected, y)
            got = self._filtered(self._belief, u, y, "update")
            yield from self._both("updated", ", one entry missing", got, exact)

    def _updated(self, belief: dense.Belief, y: Array) -> dense.Belief:
        """What the filter should make of a measurement."""
        update = dense.update_iterated if self._iterated else dense.update
        return update(self._reference, self._noise, 1, belief, y)

    def _considered(self, belief: dense.Belief, y: Array) -> dense.Belief:
        """The same where nothing is learned about the parameters."""
        return dense.update(self._reference, self._noise, 1, belief, y, learning=False)

    def _both(self, label: str, condition: str, got: dense.Belief, exact: dense.Belief) -> Iterator[Comparison]:
        """Means and covariances in units of the belief's deviations."""
        square = np.outer(self._scale, self._scale)
        yield f"{label} mean{condition}", got.mean / self._scale, exact.mean / self._scale
        yield f"{label} covariance{condition}", got.covariance / square, exact.covariance / square

    def _filtered(self, belief: dense.Belief, u: Array, y: Array | None, name: str) -> dense.Belief:
        """Predict with u and update with y by the generated filter."""
        package, held = self._package, self._package.records.make_belief(*belief)
        tray = package.filter.tray(self._task)
        if package.SQUARE_ROOT:
            package.square_root.factorise(held)
        self._tune(0)
        package.filter.predict(0, held, u, tray)
        self._tune(1)
        if y is not None:
            getattr(package.filter, name)(1, held, y, tray, np.zeros(3))
        if package.SQUARE_ROOT:
            package.square_root.complete(held)
        return dense.Belief(held["z"][0].copy(), package.records.read_covariance(held))

    def _tune(self, time: int) -> None:
        """Let the numbers of the filter be those of a time."""
        if self._signals is not None:
            self._task["numbers"][0, place_of(self._package)] = self._signals[time]

    # ------------------------------------------------------------ costs

    def _costs(self) -> Iterator[Comparison]:
        package = self._package
        forms = [("structured", 1), ("second_order", 2)]
        if package.dual_cost.LOWRANK and HORIZON * (package.NR + package.NHR) <= package.NTHETA:
            forms.append(("lowrank", 1))
        for form, order in forms:
            for learning in (True, False) if order == 1 else (True,):
                nominal, uncertain = self._cost_of(form, learning)
                exact = dense.dual_cost(
                    self._reference,
                    self._noise,
                    self._cost,
                    0,
                    self._belief,
                    self._inputs,
                    order=order,
                    learning=learning,
                )
                label = f"{form.replace('_', ' ')}{'' if learning else ', learning off'}"
                yield f"nominal cost, {label}", np.array([nominal]), np.array([exact.nominal])
                yield f"dual cost, {label}", np.array([uncertain]), np.array([exact.uncertain])

    def _slopes(self) -> Iterator[Comparison]:
        """The slope of the dual cost by the inputs, relative to the largest."""
        exact = slopes(self._reference, self._noise, self._cost, self._belief, self._inputs)
        scale = max(float(np.abs(exact).max()), 1e-300)
        for form, tilt in self._forms_of_slopes().items():
            yield form, self._slope_by_inputs(tilt) / scale, exact / scale

    def _forms_of_slopes(self) -> dict[str, Tilt]:
        """The functions that compute slopes; in low-rank form where there is room for the values of a plan."""
        package = self._package
        found: dict[str, Tilt] = {SLOPE: package.calls.tilt}
        if hasattr(package.calls, "tilt_lowrank") and HORIZON * (package.NR + package.NHR) <= package.NTHETA:
            found[f"{SLOPE}, lowrank"] = package.calls.tilt_lowrank
        return found

    def _slope_by_inputs(self, tilt: Tilt) -> Array:
        """dJd / du of the given inputs."""
        self._task["learning"] = 1.0
        self._package.calls.follow(0, HORIZON, self._held, self._inputs, self._desk)
        tilt(0, HORIZON, 0, self._held, self._desk)
        return slope_by_inputs(self._desk, HORIZON)

    @property
    def noise(self) -> dense.Noise:
        """Covariances and the motion of the parameters."""
        return self._noise

    def narrowed(self, active: Sequence[int]) -> Task:
        """The same problem in which only some entries of z are uncertain, or will be."""
        twin, nx = copy(self), self._reference.nx
        unsure = np.isin(np.arange(self._reference.nz), active).astype(float)
        drift, kept = self._package.numbers["drift"], unsure[nx:]
        twin._belief = self._belief._replace(covariance=self._belief.covariance * np.outer(unsure, unsure))
        twin._noise = self._noise._replace(diffusion=self._noise.diffusion * np.outer(kept, kept))
        twin._held = self._package.records.make_belief(*twin._belief)
        twin._task = self._task.copy()
        twin._task["Xi"] = drift * (np.outer(kept, kept) if drift.ndim == 2 else kept)
        twin._desk = self._package.records.desk(HORIZON, self._desk.weights, twin._task, 2, True)
        return twin

    def slopes_along(self, model: Model) -> dict[str, tuple[float, float, float, float]]:
        """dJd along a direction, by form: as emitted, with 50 digits, as emitted for other last bits; and a size.

        The size of a slope is the sum of all its parts without their signs.
        """
        # an input at its bound stays there: beyond it there is no plan
        inside = (self._inputs > self._cost.bounds[0]) & (self._inputs < self._cost.bounds[1])
        direction = self._random.normal(size=self._inputs.shape) * inside
        active = np.flatnonzero(np.diag(self._belief.covariance))
        around = ExactSurroundings(model, self._noise, self._cost, self._numbers, self._signals)
        plan = ExactPlan(around, self._noise, self._belief, self._cost.bounds, list(active))
        wanted, other, found = plan.slope(self._inputs, direction), self.with_other_last_bits(), {}
        for form, tilt in self._forms_of_slopes().items():
            own, beside = (task._slope_by_inputs(tilt) for task in (self, other))
            size = max(float(np.abs(own).sum()), 1e-300)
            found[form] = float(np.sum(own * direction)), wanted, float(np.sum(beside * direction)), size
        return found

    def _cost_of(self, form: str, learning: bool) -> tuple[float, float]:
        """Jbar and Jd of the given inputs."""
        calls, place = self._package.calls, (self._held, self._desk)
        self._task["learning"] = float(learning)
        nominal = calls.follow(0, HORIZON, self._held, self._inputs, self._desk)
        if form == "lowrank":
            return nominal, calls.jd_lowrank(0, HORIZON, 0, *place)
        return nominal, calls.jd_structured(0, HORIZON, 0, 2 if form == "second_order" else 1, *place)[0]

    def left_to_gain(self) -> float:
        """The share of its cost that a general optimiser can still take off a plan with a given first input."""
        states = dense.rollout(self._reference, self._noise, 0, self._belief.mean, self._inputs)
        if not np.isfinite(dense.nominal_cost(self._reference, self._cost, 0, states, self._inputs)):
            return np.nan  # the model is not finite here
        calls, nominal = self._package.calls, self._package.nominal
        calls.begin(0, HORIZON, self._held, self._desk)
        cost, status, slot, _ = calls.plan_through(0, HORIZON, self._inputs[0], self._desk)
        if status not in (nominal.CONVERGED, nominal.STALLED):
            return np.inf
        inputs = self._desk.plan["u"][slot, :HORIZON].copy()
        start = self._belief.mean
        best, _ = dense.best_plan(self._reference, self._noise, self._cost, 0, start, self._inputs[0], inputs)
        return float(max(cost - best, 0.0) / max(abs(cost), 1e-300))
