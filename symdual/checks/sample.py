"""A random problem of a package, with both ways to compute: the recursions as emitted, and the dense ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import cast

import numpy as np
from numpy.typing import NDArray

from symdual.checks import dense
from symdual.checks.exact_cost import ExactSurroundings
from symdual.checks.exact_plan import ExactPlan
from symdual.checks.kernels import EPSILON
from symdual.checks.objective import local_cost
from symdual.checks.places import Place
from symdual.checks.slopes import SLOPE, slope_by_inputs, slopes
from symdual.checks.tuned import Tuned, at
from symdual.common.arrays import Array
from symdual.entries.recursions import Workspace
from symdual.entries.types import Records
from symdual.runtime import evaluate
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.noise import has_state_dependent_noise
from symdual.runtime.objective import Objective, constraints_of
from symdual.runtime.outliers import counts_outliers
from symdual.runtime.signals import place_of
from symdual.spec.objective import Objective as Asked
from symdual.spec.specification import Specification

HORIZON = 5
#: A plan runs away if it leaves its place by more than this many deviations: its numbers then are of no use to anybody.
FAR = 1e3

DualGradient = Callable[[int, int, int, Records, Workspace], None]

Comparison = tuple[str, Array, Array]


class Sample:
    """One random problem: a belief, a cost, inputs, and both ways to compute with them."""

    def __init__(
        self,
        package: LoadedPackage,
        reference: dense.DenseModel,
        home: Place,
        random: np.random.Generator,
        filter: str = "extended",
        asked: Asked | None = None,
        signals: Array | None = None,
        bounds: Array | None = None,
    ) -> None:
        self._package, self._reference, self._random = package, reference, random
        self._filter_form, self._home = filter, home
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
        if has_state_dependent_noise(package):
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
            saturates="share" in (package.records.STAGE.names or ()),
        )
        self._numbers = numbers = None if asked is None else self._objective(home)
        if asked is not None and numbers is not None:
            heard = package if signals is None else cast(LoadedPackage, Tuned(package, signals))
            self._cost = self._cost._replace(other=local_cost(heard, asked, self._cost, numbers))
        inputs = home.u + home.u_spread * random.normal(size=(HORIZON, m)) / 3
        self._inputs = np.clip(inputs, *self._cost.bounds)
        self._surprise = 0.1 * self._seen * random.normal(size=reference.ny)
        records, motion = package.records, (package.numbers["transition"], package.numbers["drift"])
        self._settings = records.make_settings(*self._noise[:2], *motion, self._cost.bounds, package.numbers["data"])
        more: tuple[Array, ...] = (
            () if numbers is None else (numbers.cross_cost, numbers.input_reference, numbers.cost_weights)
        )
        if numbers is not None:
            self._settings["ends"] = numbers.terminal_weights
            if constraints_of(package):
                self._settings["constraint_weights"] = numbers.constraint_weights
        more += () if signals is None else (signals, signals)
        self._signals = signals
        self._workspace = records.make_workspace(
            HORIZON, records.make_stage_costs(*self._cost[:3], *more), self._settings, 2, True
        )
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
        constraints = constraints_of(self._package)
        numbers = (*terms, np.ones(constraints), random.uniform(0.5, 1.5, size=constraints))
        return Objective._make([s, N / np.outer(home.u_spread, home.x_spread), *numbers])

    def stays(self) -> bool:
        """Whether the plan stays in the surroundings of its place."""
        nx = self._reference.nx
        states = dense.forward_pass(self._reference, self._noise, 0, self._belief.mean, self._inputs)[:, :nx]
        return bool(np.all(np.abs(states - self._home.x) <= FAR * self._home.x_spread))

    def with_other_last_bits(self) -> Sample:
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
        if constraints_of(self._package):
            yield from self._limits()

    @property
    def second_order(self) -> bool:
        """Whether covariances have terms of second order."""
        return self._reference.second_order

    def slopes_are_exact(self) -> bool:
        """Whether the package has slopes of the dual cost that are no differences of it."""
        return not constraints_of(self._package)

    def _limits(self) -> Iterator[Comparison]:
        """The spread of every constraint along the plan, with and without learning."""
        package, workspace = self._package, self._workspace
        for learning in (True, False):
            self._settings["learning"] = float(learning)
            workspace.plan["backoff"] = 0.0
            package.calls.follow(0, HORIZON, self._held, self._inputs, workspace)
            package.calls.closed_loop_covariance(0, HORIZON, 0, self._held, workspace)
            got = workspace.stages["sigma"][: HORIZON + 1].copy()
            workspace.plan["backoff"] = 0.0
            model, noise, inputs = self._reference, self._noise, self._inputs
            loop = dense.closed_loop(model, noise, self._cost, 0, self._belief, inputs, learning=learning)
            states = dense.forward_pass(model, noise, 0, self._belief.mean, inputs)
            exact = np.zeros_like(got)
            for j in range(HORIZON + 1):
                exact[j] = self._deviation(j, states[j], inputs[j] if j < HORIZON else None, loop)
            unit = np.maximum(np.max(np.abs(exact), axis=0), 1e-300)  # each constraint has its own
            yield (
                f"closed-loop deviation of constraints{'' if learning else ', learning off'}",
                got / unit,
                exact / unit,
            )
        self._settings["learning"] = 1.0

    def _deviation(self, j: int, z: Array, u: Array | None, loop: dense.ClosedLoop) -> Array:
        """sigma^2 = g_z S g_z' + (g_z + g_u L) M (g_z + g_u L)'."""
        package, nx = self._package, self._reference.nx
        tuned = package if self._signals is None else cast(LoadedPackage, Tuned(package, self._signals))
        action = np.zeros(package.NU) if u is None else u
        _, g_x, g_u, g_theta = evaluate.constraint_jacobian(at(tuned, j), z[:nx], action, z[nx:], j)
        slopes = np.zeros((len(g_x), len(z)))
        slopes[:, :nx], slopes[:, nx : nx + package.NS] = g_x, g_theta
        answered = slopes + (g_u @ loop.gains[j] if u is not None else 0.0)
        variances = np.einsum("ci,ij,cj->c", slopes, loop.filtered[j], slopes)
        return np.asarray(np.sqrt(variances + np.einsum("ci,ij,cj->c", answered, loop.covariances[j], answered)))

    @property
    def on_workspace(self) -> tuple[Records, Workspace, Array]:
        """The belief and the workspace of a decision, and what each first input costs at least, 1 / (U^-1)_aa."""
        return self._held, self._workspace, 1.0 / np.diagonal(np.linalg.inv(self._cost.input[0]))

    def switch(self, tried: Array, discrete: NDArray[np.bool_], learning: bool) -> None:
        """Let the first inputs be one of these combinations (N, NU) of those that are switched."""
        self._settings["choices"][0, : len(tried)], self._settings["combinations"] = tried, len(tried)
        self._settings["discrete"], self._settings["learning"] = discrete, float(learning)

    def dense_cost(self, inputs: Array, learning: bool) -> dense.DualCost:
        """Jbar and Jd of given inputs, order 1, with full matrices."""
        given = self._reference, self._noise, self._cost, 0, self._belief, inputs
        return dense.dual_cost(*given, learning=learning)

    # ------------------------------------------------------------ filter

    def _filter(self) -> Iterator[Comparison]:
        u = self._inputs[0]
        predict = dense.predict_second_order if self.second_order else dense.predict
        expected = predict(self._reference, self._noise, 0, self._belief, u)
        predicted, _ = self._filtered(self._belief, u, None, "update")
        yield from self._both("predicted", "", predicted, expected)
        y = self._reference.observation(1, expected.mean) + self._surprise
        for name, learning in (("update", True), ("update_consider", False)):
            exact = self._updated(expected, u, y) if learning else self._considered(expected, y)
            got, settled = self._filtered(self._belief, u, y, name)
            label = "updated" if learning else "considered"
            yield from self._both(label, "", got, exact if settled else _nothing(exact))
        y[0] = np.nan
        if len(y) > 1:
            exact = self._updated(expected, u, y)
            got, settled = self._filtered(self._belief, u, y, "update")
            yield from self._both("updated", ", one entry missing", got, exact if settled else _nothing(exact))

    def _updated(self, belief: dense.Belief, u: Array, y: Array) -> dense.Belief:
        """What the filter should make of a measurement after a step with the input u."""
        belief, noise = self._judged(belief, y)
        given = self._reference, noise, 1, belief, y
        if self._filter_form.startswith("iterated"):
            second_order = self._filter_form == "iterated_second_order"
            return dense.update_iterated(*given, dense.Departure(self._belief, u), second_order=second_order)
        if self._filter_form.startswith("recalibrated"):
            return dense.update_recalibrated(*given, second_order=self._filter_form.endswith("second_order"))
        return dense.update_second_order(*given) if self._filter_form == "second_order" else dense.update(*given)

    def _considered(self, belief: dense.Belief, y: Array) -> dense.Belief:
        """The same where nothing is learned about the parameters."""
        update = dense.update_second_order if self.second_order else dense.update
        belief, noise = self._judged(belief, y)
        return update(self._reference, noise, 1, belief, y, learning=False)

    def _judged(self, belief: dense.Belief, y: Array) -> tuple[dense.Belief, dense.Noise]:
        """The belief and the noise that a first measurement is taken with, where outliers are looked for."""
        if not counts_outliers(self._package):
            return belief, self._noise
        counts, limit, second_order = np.zeros(len(y)), self._package.OUTLIERS, self.second_order
        given = self._reference, self._noise, 1, belief, y, counts
        return dense.judge_outliers(*given, limit=limit, second_order=second_order)[:2]

    def _both(self, label: str, condition: str, got: dense.Belief, exact: dense.Belief) -> Iterator[Comparison]:
        """Means and covariances in units of the belief's deviations."""
        square = np.outer(self._scale, self._scale)
        yield f"{label} mean{condition}", got.mean / self._scale, exact.mean / self._scale
        yield f"{label} covariance{condition}", got.covariance / square, exact.covariance / square

    def _filtered(self, belief: dense.Belief, u: Array, y: Array | None, name: str) -> tuple[dense.Belief, bool]:
        """Predict with u and update with y by the generated filter; and whether its iteration, if any, settled.

        On a kink of f it may not, and the point where it ends is nobody's.
        """
        package, held = self._package, self._package.records.make_belief(*belief)
        filter_workspace = package.filter.make_filter_workspace(self._settings)
        if package.SQUARE_ROOT:
            package.filter.factorise(held)
        self._set_signals(0)
        package.filter.predict(0, held, u, filter_workspace)
        self._set_signals(1)
        status = 0
        if y is not None:
            status = getattr(package.filter, name)(1, held, y, filter_workspace, np.zeros(3))
        if package.SQUARE_ROOT:
            package.filter.complete(held)
        found = dense.Belief(held["z"][0].copy(), package.records.read_covariance(held))
        return found, status != package.filter.NOT_CONVERGED

    def _set_signals(self, time: int) -> None:
        """Let the numbers of the filter be those of a time."""
        if self._signals is not None:
            self._settings["numbers"][0, place_of(self._package)] = self._signals[time]

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
        """The slope of the dual cost by the inputs, in units of these, relative to the largest."""
        exact = slopes(self._reference, self._noise, self._cost, self._belief, self._inputs) * self._home.u_spread
        scale = max(float(np.abs(exact).max()), 1e-300)
        for form, dual_gradient in self._forms_of_slopes().items():
            yield form, self._slope_by_inputs(dual_gradient) * self._home.u_spread / scale, exact / scale

    def _forms_of_slopes(self) -> dict[str, DualGradient]:
        """The functions that compute slopes; in low-rank form where there is room for the values of a plan."""
        package = self._package
        if not hasattr(package.calls, "dual_gradient"):  # a package that was edited by hand is checked as it is
            return {}
        found: dict[str, DualGradient] = {SLOPE: package.calls.dual_gradient}
        if hasattr(package.calls, "dual_gradient_lowrank") and HORIZON * (package.NR + package.NHR) <= package.NTHETA:
            found[f"{SLOPE}, lowrank"] = package.calls.dual_gradient_lowrank
        return found

    def _slope_by_inputs(self, dual_gradient: DualGradient) -> Array:
        """dJd / du of the given inputs."""
        self._settings["learning"] = 1.0
        self._package.calls.follow(0, HORIZON, self._held, self._inputs, self._workspace)
        dual_gradient(0, HORIZON, 0, self._held, self._workspace)
        return slope_by_inputs(self._workspace, HORIZON)

    @property
    def noise(self) -> dense.Noise:
        """Covariances and the motion of the parameters."""
        return self._noise

    def narrowed(self, active: Sequence[int]) -> Sample:
        """The same problem in which only some entries of z are uncertain, or will be."""
        twin, nx = copy(self), self._reference.nx
        unsure = np.isin(np.arange(self._reference.nz), active).astype(float)
        drift, kept = self._package.numbers["drift"], unsure[nx:]
        twin._belief = self._belief._replace(covariance=self._belief.covariance * np.outer(unsure, unsure))
        twin._noise = self._noise._replace(diffusion=self._noise.diffusion * np.outer(kept, kept))
        twin._held = self._package.records.make_belief(*twin._belief)
        twin._settings = self._settings.copy()
        twin._settings["Xi"] = drift * (np.outer(kept, kept) if drift.ndim == 2 else kept)
        twin._workspace = self._package.records.make_workspace(
            HORIZON, self._workspace.stage_costs, twin._settings, 2, True
        )
        return twin

    def _weights_of_answers(self) -> Array:
        """What bounds add to the weights of the inputs' answers along the plan."""
        model, noise = self._reference, self._noise
        states = dense.forward_pass(model, noise, 0, self._belief.mean, self._inputs)
        covariance = self._belief.covariance
        given = model, noise, self._cost, 0, covariance, states, self._inputs, 1
        return dense.cost_to_go_within_bounds(*given).weights

    def slopes_along(self, model: Specification) -> dict[str, tuple[float, float, float, float]]:
        """dJd along a direction, by form: as emitted, with 50 digits, as emitted for other last bits; and a size.

        The size of a slope is the sum of all its parts without their signs.
        """
        # an input at its bound stays there: beyond it there is no plan
        inside = (self._inputs > self._cost.bounds[0]) & (self._inputs < self._cost.bounds[1])
        direction = self._random.normal(size=self._inputs.shape) * self._home.u_spread * inside
        active = np.flatnonzero(np.diag(self._belief.covariance))
        around = ExactSurroundings(model, self._noise, self._cost, self._numbers, self._signals)
        plan = ExactPlan(around, self._noise, self._belief, self._cost.bounds, list(active), self.second_order)
        wanted = plan.slope(self._inputs, direction, self._weights_of_answers())
        other, found = self.with_other_last_bits(), {}
        # along a plan that bounds of states hold where it is, nothing changes
        rounding = max(np.finfo(float).eps * abs(self._cost_of("structured", True)[1]), 1e-300)
        for form, dual_gradient in self._forms_of_slopes().items():
            own, beside = (sample._slope_by_inputs(dual_gradient) for sample in (self, other))
            size = max(float(np.abs(own * self._home.u_spread).sum()), rounding)
            found[form] = float(np.sum(own * direction)), wanted, float(np.sum(beside * direction)), size
        return found

    def _cost_of(self, form: str, learning: bool) -> tuple[float, float]:
        """Jbar and Jd of the given inputs."""
        calls, place = self._package.calls, (self._held, self._workspace)
        self._settings["learning"] = float(learning)
        nominal = calls.follow(0, HORIZON, self._held, self._inputs, self._workspace)
        if form == "lowrank":
            return nominal, calls.jd_lowrank(0, HORIZON, 0, *place)
        return nominal, calls.jd_structured(0, HORIZON, 0, 2 if form == "second_order" else 1, *place)[0]

    def left_to_gain(self) -> float:
        """The share of its cost that a general optimiser can still take off a plan with a given first input."""
        states = dense.forward_pass(self._reference, self._noise, 0, self._belief.mean, self._inputs)
        if not np.isfinite(dense.nominal_cost(self._reference, self._cost, 0, states, self._inputs)):
            return np.nan  # the model is not finite here
        calls, nominal = self._package.calls, self._package.nominal
        calls.begin(0, HORIZON, self._held, self._workspace)
        cost, status, buffer, _ = calls.plan_through(0, HORIZON, self._inputs[0], self._workspace)
        if status not in (nominal.CONVERGED, nominal.STALLED):
            return np.inf
        inputs = self._workspace.plan["u"][buffer, :HORIZON].copy()
        start = self._belief.mean
        best, _ = dense.best_plan(self._reference, self._noise, self._cost, 0, start, self._inputs[0], inputs)
        return float(max(cost - best, 0.0) / max(abs(cost), 1e-300))


def _nothing(belief: dense.Belief) -> dense.Belief:
    """A reference that says nothing."""
    return dense.Belief(*(np.full_like(part, np.nan) for part in belief))
