"""The compiled functions of a package with all that they work on, for one controller: filter, decision, info."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from symdual.common.arrays import Array
from symdual.common.errors import DoubtWarning, SymdualError, SymdualWarning
from symdual.common.named import held
from symdual.common.named_arrays import named
from symdual.controllers import COSTS
from symdual.entries.decisions import Table
from symdual.entries.recursions import Workspace
from symdual.entries.types import Records
from symdual.runtime import faults
from symdual.runtime.backend import BackendFailure
from symdual.runtime.belief import Belief
from symdual.runtime.budgets import Budget
from symdual.runtime.costs import (
    cost_kind,
    cost_pointer,
    given_of,
    require_search_width,
)
from symdual.runtime.culprits import fault_of_model, fault_of_step
from symdual.runtime.doubts import Doubt, Priors, doubt_of_end, doubt_of_measurement, doubt_of_plan, doubt_of_search
from symdual.runtime.evaluate import dynamics
from symdual.runtime.info import STATUS, Info, Parts, State, Statistics
from symdual.runtime.noise import believed, fault_along, fault_of_filter, has_state_dependent_noise, require_noise
from symdual.runtime.objective import constraints_of
from symdual.runtime.options import Guard, Options, first_plans, guard_told, lay_out, taken_up, told
from symdual.runtime.outliers import counts_outliers, outliers_in
from symdual.runtime.posterior import MemoryWarning, losses
from symdual.runtime.problem import Problem
from symdual.runtime.signals import Forecast, place_of, require_set, signals_of, with_forecast, with_signals
from symdual.runtime.stiffness import too_fast


class Chosen(Protocol):
    """What a controller is asked to be."""

    @property
    def problem(self) -> Problem: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def order(self) -> int: ...  # noqa: D102
    @property
    def window(self) -> int | None: ...  # noqa: D102
    @property
    def options(self) -> Options: ...  # noqa: D102
    @property
    def time_budget(self) -> Budget | None: ...  # noqa: D102


class Solver:
    """The controller of a package (`controller.Controller`) for one problem, and what is asked of it besides inputs.

    It is told where it is before every step, and read afterwards. Everything that a step needs is looked up once, here:
    a decision from Python then costs little more than in a compiled loop.
    """

    def __init__(self, controller: Chosen) -> None:
        problem, order, window = controller.problem, controller.order, controller.window
        self._problem = problem
        self._window = window
        self.package = package = problem.package
        steps = problem.horizon if window is None else window
        self._order = order
        self._kind = cost_kind(problem, controller.name, order, steps, controller.options)
        if COSTS[self._kind].searched:
            require_search_width(problem)
        faults.require_finite(problem)
        require_noise(problem)
        pointer = cost_pointer(problem, self._kind, steps)
        self._with_forecasts = problem
        self._own = package.controller.Controller(
            controller.name, None, order, window, controller.options.numbers, given_of(problem), pointer
        )
        self._module = package.controller
        self.settings: Records = self._own.settings  # which the next decision is made by
        self._data: Array = self.settings["numbers"][0]
        self._forgetful = ""
        self._records = package.records
        self._square_root, self._nu = package.SQUARE_ROOT, package.NU
        self._outliers = counts_outliers(package)
        self._price = package.decision.price_at
        self._signals = signals_of(package)
        self._place, self._said = place_of(package), set[str]()
        self._priors, self._doubted = Priors(problem), set[str]()
        self._get_ready()
        self._budget = controller.time_budget
        if self._budget is not None and not self._budget.known:
            self._budget.measure(self._decide_at_prior, steps)

    def __repr__(self) -> str:
        return f"<Solver of {self._problem.name}: cost {self._kind}, compiled by {self.package.backend}>"

    def _get_ready(self) -> None:
        """Compile or load, now, all that is asked besides inputs: nobody waits for it later."""
        prior, u = self._problem.prior, np.zeros(self._nu)
        self._plan(0, prior, u, self._row(0, prior, u, self._order))

    @property
    def workspace(self) -> Workspace:
        """What decisions work on, with what the last one has left behind."""
        return self._own.workspace

    def use(self, problem: Problem) -> None:
        """Believe in the forecasts of a problem from now on."""
        self._with_forecasts = problem
        self._own.lay_out(problem.horizon)
        self.workspace.stage_costs["signals"] = problem.signals.of(self.package)[0]  # type: ignore[union-attr]

    def continue_from(self, other: Solver, changed: set[str]) -> None:
        """Keep what another one was told of signals, but those named, and what it has warned of."""
        self._said, self._doubted, self._forgetful = other._said, other._doubted, other._forgetful
        said = other.forecast_problem
        if said is None:
            return
        problem = self._problem.extended(max(0, said.horizon - self._problem.horizon))
        assert problem.signals is not None and said.signals is not None
        believed = problem.signals.believed.copy()
        for column, name in enumerate(problem.signals.names):
            if name not in changed:
                believed[:, column] = held(said.signals.believed, len(believed))[:, column]
        self.use(replace(problem, signals=problem.signals._replace(believed=believed)))

    @property
    def table(self) -> Table:
        """What the last search has tried."""
        return self._own.table

    @property
    def forecast_problem(self) -> Problem | None:
        """The problem with the forecasts that were given so far, if the model has signals."""
        return self._with_forecasts if self._signals else None

    def set_forecast(self, k: int, forecast: Forecast | None) -> None:
        """Take over what signals are said to be from step k on."""
        if forecast is not None:
            start, end = self.times(k)
            self._extend()
            self._with_forecasts = with_forecast(self._with_forecasts, start, end, forecast, self._said)
            self.workspace.stage_costs["signals"] = self._with_forecasts.signals.of(self.package)[0]  # type: ignore[union-attr]

    def _extend(self) -> None:
        """Let the problem be as long as the workspace, which grows with a moving horizon."""
        missing = len(self.workspace.stage_costs) - 1 - self._with_forecasts.horizon
        if missing > 0:
            self._with_forecasts = self._with_forecasts.extended(missing)

    def set_signals(self, k: int, settings: Records) -> None:
        """Let the numbers of a filter be those of step k."""
        if self._signals:
            values = self.workspace.stage_costs["signals"][k]
            if np.isnan(values).any():
                self._extend()
                require_set(self._with_forecasts, k, k)
            settings["numbers"][0, self._place] = values

    def hold(self, belief: Belief) -> Records:
        """The belief as a record, with what it remembers of Gaussian processes."""
        self._recall(belief)
        held = self._own.belief
        self._records.write_belief(held, belief.mean, belief.covariance)
        if self._outliers:
            held["rejected"] = 0.0 if belief.rejected is None else belief.rejected
        return held

    # ------------------------------------------------------------ filter

    def observe(self, state: State, y: Array) -> tuple[Belief, Statistics]:
        """Predict with the last input, if there is one, and update with y; the belief given is left as it is."""
        own, held = self._own, self.hold(state.belief)
        if self._square_root:
            self.package.filter.factorise(held)
        own.k, own.pending = state.k, state.u is not None
        if state.u is not None:
            own.u[:] = state.u
        status = own.take(y)
        if status != self._module.FINE:
            raise self._lost(state, status)
        mean, covariance = held["z"][0].copy(), self._records.read_covariance(held)
        likelihood, nis, measured = own.stats.tolist()
        rejected = held["rejected"][0].copy() if self._outliers else None
        return Belief(
            mean, covariance, self._remembered(), self.package.belief_names, self.package.transforms, rejected
        ), Statistics(likelihood, nis, int(measured), outliers_in(self.package, rejected, y))

    def _lost(self, state: State, status: int) -> SymdualError:
        """What is wrong with a measurement that could not be taken."""
        if self._signals and status == self._module.NO_SIGNAL:
            self._extend()
            require_set(self._with_forecasts, state.k - (state.u is not None), state.k)
        if status == self._module.INFINITE_MEASUREMENT:
            return SymdualError(f"the measurement is infinite at step {state.k}")
        self._extend()
        way = self._with_forecasts, state.k, state.belief.mean, state.u
        what = "the belief" if fault_of_filter(*way) or not fault_of_step(*way) else "the filter's prediction"
        fault = fault_of_filter(*way) or fault_of_model(*way)
        fast = "" if state.u is None else self._too_fast(state.k - 1, state.belief.mean, state.u)
        return SymdualError(f"{what} is not finite any more at step {state.k}{f': {fault}' if fault else ''}{fast}")

    def _recall(self, belief: Belief) -> None:
        """Take over what a belief remembers of Gaussian processes."""
        if belief.memory is not None:
            self._data[:] = belief.memory

    def _remembered(self) -> Array | None:
        """What is remembered of Gaussian processes now; a new kind of loss is announced once."""
        if not self.package.PROCESSES:
            return None
        for sentence in losses(self.package, self._data[None]):
            if sentence.partition(":")[0] not in self._forgetful:
                self._forgetful += sentence
                warnings.warn(sentence, MemoryWarning, stacklevel=4)
        return self._data.copy()

    # ------------------------------------------------------------ decision

    def times(self, k: int) -> tuple[int, int]:
        """Begin and end of the plan, as indices into the cost arrays and times of the model."""
        self._own.k = k
        try:
            return self._own.times()
        except ValueError as ended:
            raise SymdualError(str(ended)) from None

    def guessed(self, guess: ArrayLike) -> Records:
        """Plans that follow given inputs, for the first step."""
        return first_plans(
            self._problem, self._kind, self._problem.horizon if self._window is None else self._window, guess
        )

    def decide(self, state: State) -> tuple[Array, int, Records | None]:
        """Choose the input of a step; returns it, the status of the certainty-equivalent plan, and plans to keep."""
        k, belief, own = state.k, state.belief, self._own
        start, end = self.times(k)
        lay_out(self.workspace, state.plans)
        own.shift = 0
        if self._kind == "exact" and belief.covariance[0, 0] > 1e-9 * self.package.noise.process[0, 0]:
            raise SymdualError(f'the controller "exact" needs a measurement at step {k}')
        if self._signals:
            self._extend()
            require_set(self._with_forecasts, start, end)
        held = self.hold(belief)
        status = self._choose()
        if status < self._module.FINE:
            self._extend()
            self._blame(start, end, held, belief.mean)
            still = np.clip(np.zeros(self._nu), *self._with_forecasts.bounds)
            hint = self._fault_at_rest(start, belief) + self._too_fast(start, belief.mean, still, end - start)
            if np.isfinite(own.table.out[0, self.package.dual_cost.OUT_NOMINAL]):
                raise SymdualError(f"what uncertainty costs is not a finite number along any plan at step {k}{hint}")
            raise SymdualError(f"the certainty-equivalent plan at step {k} is not finite, from whatever start{hint}")
        if status == self.package.nominal.STALLED and (fault := self._fault_at_rest(start, belief)):
            warnings.warn(f"the plan at step {k} could not be improved{fault}", SymdualWarning, stacklevel=4)
        return own.u.copy(), status, taken_up(self.workspace, self._kind, start - k)

    def _choose(self) -> int:
        """Let the compiled controller decide, within the budget if there is one."""
        if self._budget is None:
            return self._own.choose(*self._deciding())
        self.settings["work"] = self._budget.work
        began = perf_counter()
        status = self._own.choose(*self._deciding())
        self._budget.learn(perf_counter() - began, float(self.workspace.decision_log[0]["work"]))
        return status

    def _decide_at_prior(self, work: int) -> float:
        """Decide once at the prior within a limit of work, to see how long that takes; returns the work done."""
        self.settings["work"] = work
        self.times(0)
        lay_out(self.workspace, None)
        self.hold(self._problem.prior)
        self._own.choose(*self._deciding())
        return float(self.workspace.decision_log[0]["work"])

    def _deciding(self) -> tuple[int, bool]:
        """The address of the cost that decides for the belief, and whether it is searched."""
        try:
            return self._own.deciding()
        except BackendFailure:  # of C: the usual one, which is there, does the same up to rounding
            return self._own.address, self._own.searching

    def _fault_at_rest(self, k: int, belief: Belief) -> str:
        """What is not finite in the model at a mean without input, as the end of a sentence; empty if all is well."""
        still = np.clip(np.zeros(self._nu), *self._with_forecasts.bounds)
        fault = fault_of_model(self._with_forecasts, k + 1, belief.mean, still)
        return f": {fault}" if fault else ""

    def _too_fast(self, k: int, mean: Array, u: Array, steps: int = 1) -> str:
        """Where the model is too fast for its step, from a mean on while an input is held, as `too_fast` says it."""
        package, signals, nx = self.package, believed(self._with_forecasts), self.package.NX

        def points() -> Iterator[tuple[int, Array, Array, Array]]:
            x, theta = mean[:nx], mean[nx:]
            for j in range(k, k + steps):
                if not np.isfinite(x).all():
                    return
                yield j, x, u, theta
                x = dynamics(package if signals is None else with_signals(package, signals[j]), x, u, theta, j)

        return "" if package.PROCESSES else too_fast(package, points())

    def _blame(self, start: int, end: int, held: Records, mean: Array) -> None:
        """Raise when noise, a cost or a constraint is the reason why there is no plan: here or on the way."""
        package, nx = self.package, self.package.NX
        if not has_state_dependent_noise(package) and self._with_forecasts.objective is None:
            return
        states, inputs = np.zeros((end - start + 1, nx)), np.zeros((end - start, self._nu))
        u = np.nan_to_num(self._own.table.candidates[0])
        package.decision.plan_of(start, end, held, self.workspace, u, states, inputs)
        fault = fault_along(package, start, states, inputs, believed(self._with_forecasts))
        if fault is None:
            fault = faults.fault_along(self._with_forecasts, start, states, inputs, mean[nx:])
        if fault is not None:
            raise SymdualError(f"the plan at step {start} has no cost: {fault}")

    # ------------------------------------------------------------ what a decision leaves behind

    def info(self, k: int, before: Belief, after: Belief, statistics: Statistics, u: Array, status: int) -> Info:
        """Collect what a decision has left behind."""
        module, table = self.package.search, self._own.table
        doubts = self.doubts(k, after, statistics, u, status)
        used = np.isfinite(table.out[:, 0])
        order = np.lexsort(table.candidates[used].T[::-1])
        candidates, out, report = table.candidates[used][order], table.out[used][order], table.report.copy()
        row = self._row(k, after, u, int(report[module.REPORT_ORDER]))
        states, inputs = self._plan(k, after, u, row)
        inputs_of = tuple(self.package.INPUTS)
        return Info(
            k=k,
            before=before,
            after=after,
            log_likelihood=statistics.log_likelihood,
            nis=statistics.nis,
            measured=statistics.measured,
            candidates=named(candidates, inputs_of),
            costs=out[:, :3].copy(),
            parts=self._parts(report, row),
            planned_states=named(states, tuple(self.package.STATES)),
            planned_inputs=named(inputs, inputs_of),
            status=STATUS[status],
            evaluations=int(report[module.REPORT_EVALUATIONS]),
            fallbacks=int(report[module.REPORT_FALLBACKS]),
            iterations=int(report[module.REPORT_ITERATIONS]),
            order=int(report[module.REPORT_ORDER]),
            planned=told(self.workspace) if self._kind == "planned" else None,
            doubts=tuple(doubt.sentence for doubt in doubts),
            rejected=statistics.rejected,
            guard=self._guard(),
        )

    def _guard(self) -> Guard | None:
        """What rollouts said of the last decision, where they guard it."""
        return guard_told(self.workspace) if self._kind == "guarded" else None

    def doubts(self, k: int, belief: Belief, statistics: Statistics, u: Array, status: int) -> list[Doubt]:
        """What speaks against the last decision, before anything else is asked of the workspace."""
        table, discrete = self.table, self._problem.choices is not None
        costs, limit = table.out[:, self.package.dual_cost.OUT_COST], self.package.nominal.ITERATION_LIMIT
        own = table.out[int(costs.argmin()), self.package.dual_cost.OUT_STATUS]  # of the plan through the input
        tried = k, table.candidates, costs, self._with_forecasts.bounds if discrete else table.limits, u
        guard = self._guard()
        searched = guard is None or not guard.rejected  # else the input is not what the search has found
        found = [
            doubt_of_measurement(k, statistics),
            self._priors.doubt(k, belief),
            doubt_of_plan(k, limit in (status, own)) or (doubt_of_end(*tried) if searched and not discrete else None),
            doubt_of_search(*tried) if searched else None,
        ]
        return [doubt for doubt in found if doubt is not None]

    def warn_of_doubts(self, k: int, belief: Belief, statistics: Statistics, u: Array, status: int) -> None:
        """Warn of what speaks against the last decision, of each kind once."""
        for doubt in self.doubts(k, belief, statistics, u, status):
            if doubt.kind not in self._doubted:
                self._doubted.add(doubt.kind)
                warnings.warn(doubt.sentence, DoubtWarning, stacklevel=3)

    @property
    def _splits(self) -> bool:
        """Whether what uncertainty costs has two parts, caution and probing; back-offs hold with learning only."""
        return self.settings["learning"][0] != 0.0 and not constraints_of(self.package)

    @property
    def _plans_through(self) -> bool:
        """Whether the plan of a decision is the one through its input.

        Others are among the stored plans, `exact` has none.
        """
        discrete = self._problem.choices is not None and not self._learns
        return self._kind != "exact" and (self._own.searching or discrete)

    def _row(self, k: int, belief: Belief, u: Array, order: int) -> Array:
        """The cost of u in the workspace of the last decision, without learning where that tells parts apart."""
        out = np.zeros((1, self.package.dual_cost.OUT))
        if self._plans_through:
            start, end = self.times(k)
            with self.changed(order=order, learning=0.0 if self._splits else None):
                self._price(self._own.address, start, end, self.hold(belief), self.workspace, u[None].copy(), out)
        return np.asarray(out[0])

    @contextmanager
    def changed(self, **numbers: float | None) -> Iterator[None]:
        """Other numbers in the record of settings, as long as something is asked for; None leaves one as it is."""
        before = {name: float(self.settings[name][0]) for name in numbers}
        for name, number in numbers.items():
            self.settings[name] = before[name] if number is None else number
        try:
            yield
        finally:
            for name, number in before.items():
                self.settings[name] = number

    def _parts(self, report: Array, row: Array) -> Parts:
        module, settings = self.package.search, self.settings
        nominal, uncertain = float(report[module.REPORT_NOMINAL]), float(report[module.REPORT_UNCERTAIN])
        if self._kind in ("ce", "exact"):
            return Parts(nominal, uncertain, 0.0, 0.0)
        if self._kind == "bonus":
            return Parts(nominal, 0.0, 0.0, float(settings["bonus"][0]) * uncertain)
        weight = float(settings["weight"][0])
        if self._kind != "planned":  # which looks ahead, and has weighed what it found
            uncertain *= weight
        if self._kind == "planned":
            still = weight * float(self.workspace.decision_log["unlearned"][0]) if self._learns else 0.0
        elif not self._splits:
            return Parts(nominal, uncertain, 0.0, 0.0)
        else:
            still = weight * float(row[self.package.dual_cost.OUT_UNCERTAIN])
        return Parts(nominal, still, uncertain - still, 0.0)

    @property
    def _learns(self) -> bool:
        """Whether the last decision was one of `planned` in which there was something to learn."""
        return self._kind == "planned" and bool(self.workspace.decision_log["starts"][0] > 0.0)

    def _plan(self, k: int, belief: Belief, u: Array, row: Array) -> tuple[Array, Array]:
        """The plan whose cost was compared: one among the stored plans, or after a search the one through u."""
        start, end = self.times(k)
        states, inputs = np.zeros((end - start + 1, self.package.NX)), np.zeros((end - start, self._nu))
        if self._plans_through:
            plan = self.workspace.plan[int(row[self.package.dual_cost.OUT_BUFFER])]
            states[:], inputs[:] = plan["z"][: len(states), : self.package.NX], plan["u"][: len(inputs)]
        else:
            held, learns = self.hold(belief), COSTS[self._kind].plans_to_learn
            self._module.write_plan(start, end, learns, held, self.workspace, u, states, inputs)
        return states, inputs
