"""The compiled functions of a package with all that they work on, for one controller: filter, decision, info."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
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
from symdual.runtime.costs import (
    cost_kind,
    cost_pointer,
    given_of,
    require_search_width,
)
from symdual.runtime.culprits import fault_of_model, fault_of_step
from symdual.runtime.doubts import Doubt, Priors, doubt_of_end, doubt_of_measurement, doubt_of_plan, doubt_of_search
from symdual.runtime.evaluate import dynamics, observation
from symdual.runtime.info import STATUS, Info, Parts, State, Statistics
from symdual.runtime.noise import believed, fault_along, fault_of_filter, has_state_dependent_noise, require_noise
from symdual.runtime.objective import constraints_of
from symdual.runtime.options import Options, first_plans, lay_out, taken_up, told
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


class Solver:
    """The controller of a package (`controller.Controller`) for one task, and what is asked of it besides inputs.

    It is told where it is before every step, and read afterwards. Everything that a step needs is looked up once, here:
    a decision from Python then costs little more than in a compiled loop.
    """

    def __init__(self, controller: Chosen) -> None:
        problem, order, window = controller.problem, controller.order, controller.window
        self._problem = problem
        self._window = window
        self._package = package = problem.package
        self.measurement_shape = (package.NY,)
        steps = problem.horizon if window is None else window
        self._order = order
        self._kind = cost_kind(problem, controller.name, order, steps)
        if COSTS[self._kind].searched:
            require_search_width(problem)
        faults.require_finite(problem)
        require_noise(problem)
        pointer = cost_pointer(problem, self._kind, steps)
        self._task = problem
        self._own = package.controller.Controller(
            controller.name, None, order, window, controller.options.numbers, given_of(problem), pointer
        )
        self._status = package.controller
        self._settings_record = self._own.settings
        self._data: Array = self._settings_record["numbers"][0]
        self._forgetful = ""
        self._records = package.records
        self._square_root, self._nu = package.SQUARE_ROOT, package.NU
        self._price, self._not_finite = package.decision.price_at, package.nominal.NOT_FINITE
        self._signals = signals_of(package)
        self._place, self._said = place_of(package), set[str]()
        self._priors, self._doubted = Priors(problem), set[str]()
        self._get_ready()

    def __repr__(self) -> str:
        return f"<Solver of {self._problem.name}: cost {self._kind}, compiled by {self._package.backend}>"

    def _get_ready(self) -> None:
        """Compile or load, now, all that is asked besides inputs: nobody waits for it later."""
        prior, u = self._problem.prior, np.zeros(self._nu)
        self._plan(0, prior, u, self._row(0, prior, u, self._order))

    @property
    def _workspace(self) -> Workspace:
        return self._own.workspace

    def use(self, task: Problem) -> None:
        """Believe in the forecasts of a task from now on."""
        self._task = task
        self._own.lay_out(task.horizon)
        self._workspace.stage_costs["signals"] = task.signals.of(self._package)[0]  # type: ignore[union-attr]

    def continue_from(self, other: Solver, changed: set[str]) -> None:
        """Keep what another one was told of signals, but those named, and what it has warned of."""
        self._said, self._doubted, self._forgetful = other._said, other._doubted, other._forgetful
        said = other.forecast_problem
        if said is None:
            return
        task = self._problem.extended(max(0, said.horizon - self._problem.horizon))
        assert task.signals is not None and said.signals is not None
        believed = task.signals.believed.copy()
        for column, name in enumerate(task.signals.names):
            if name not in changed:
                believed[:, column] = held(said.signals.believed, len(believed))[:, column]
        self.use(replace(task, signals=task.signals._replace(believed=believed)))

    @property
    def table(self) -> Table:
        """What the last search has tried."""
        return self._own.table

    @property
    def told(self) -> Records:
        """The settings that the next decision is made by."""
        return self._own.settings

    @property
    def forecast_problem(self) -> Problem | None:
        """The task with the forecasts that were given so far, if the model has signals."""
        return self._task if self._signals else None

    def set_forecast(self, k: int, forecast: Forecast | None) -> None:
        """Take over what signals are said to be from step k on."""
        if forecast is not None:
            start, end = self._times(k)
            self._extend()
            self._task = with_forecast(self._task, start, end, forecast, self._said)
            self._workspace.stage_costs["signals"] = self._task.signals.of(self._package)[0]  # type: ignore[union-attr]

    def _extend(self) -> None:
        """Let the task be as long as the workspace, which grows with a moving horizon."""
        missing = len(self._workspace.stage_costs) - 1 - self._task.horizon
        if missing > 0:
            self._task = self._task.extended(missing)

    def _set_signals(self, k: int, task: Records) -> None:
        """Let the filter's numbers be those of step k."""
        if self._signals:
            values = self._workspace.stage_costs["signals"][k]
            if np.isnan(values).any():
                self._extend()
                require_set(self._task, k, k)
            task["numbers"][0, self._place] = values

    def _hold(self, belief: Belief) -> Records:
        """The belief as a record, with what it remembers of Gaussian processes."""
        self._recall(belief)
        self._records.write_belief(self._own.belief, belief.mean, belief.covariance)
        return self._own.belief

    # ------------------------------------------------------------ filter

    def observe(self, state: State, y: Array) -> tuple[Belief, Statistics]:
        """Predict with the last input, if there is one, and update with y; the belief given is left as it is."""
        own, held = self._own, self._hold(state.belief)
        if self._square_root:
            self._package.filter.factorise(held)
        own.k, own.pending = state.k, state.u is not None
        if state.u is not None:
            own.u[:] = state.u
        status = own.take(y)
        if status != self._status.FINE:
            raise self._lost(state, status)
        mean, covariance = held["z"][0].copy(), self._records.read_covariance(held)
        likelihood, nis, measured = own.stats.tolist()
        return Belief(
            mean, covariance, self._remembered(), self._package.belief_names, self._package.transforms
        ), Statistics(likelihood, nis, int(measured))

    def _lost(self, state: State, status: int) -> SymdualError:
        """What is wrong with a measurement that could not be taken."""
        if self._signals and status == self._status.NO_SIGNAL:
            self._extend()
            require_set(self._task, state.k - (state.u is not None), state.k)
        if status == self._status.INFINITE_MEASUREMENT:
            return SymdualError(f"the measurement is infinite at step {state.k}")
        self._extend()
        way = self._task, state.k, state.belief.mean, state.u
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
        if not self._package.PROCESSES:
            return None
        for sentence in losses(self._package, self._data[None]):
            if sentence.partition(":")[0] not in self._forgetful:
                self._forgetful += sentence
                warnings.warn(sentence, MemoryWarning, stacklevel=4)
        return self._data.copy()

    # ------------------------------------------------------------ decision

    def _times(self, k: int) -> tuple[int, int]:
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
        start, end = self._times(k)
        lay_out(self._workspace, state.plans)
        own.shift = 0
        if self._kind == "exact" and belief.covariance[0, 0] > 1e-9 * self._package.noise.process[0, 0]:
            raise SymdualError(f'the controller "exact" needs a measurement at step {k}')
        if self._signals:
            self._extend()
            require_set(self._task, start, end)
        held = self._hold(belief)
        status = own.choose(*self._deciding())
        if status < self._status.FINE:
            self._extend()
            self._blame(start, end, held, belief.mean)
            still = np.clip(np.zeros(self._nu), *self._task.bounds)
            hint = self._fault_at_rest(start, belief) + self._too_fast(start, belief.mean, still, end - start)
            if np.isfinite(own.table.out[0, self._package.dual_cost.OUT_NOMINAL]):
                raise SymdualError(f"what uncertainty costs is not a finite number along any plan at step {k}{hint}")
            raise SymdualError(f"the certainty-equivalent plan at step {k} is not finite, from whatever start{hint}")
        if status == self._package.nominal.STALLED and (fault := self._fault_at_rest(start, belief)):
            warnings.warn(f"the plan at step {k} could not be improved{fault}", SymdualWarning, stacklevel=4)
        return own.u.copy(), status, taken_up(self._workspace, self._kind, start - k)

    def _deciding(self) -> tuple[int, bool]:
        """The address of the cost that decides for the belief, and whether it is searched."""
        try:
            return self._own.deciding()
        except BackendFailure:  # of C: the usual one, which is there, does the same up to rounding
            return self._own.address, self._own.searching

    def _fault_at_rest(self, k: int, belief: Belief) -> str:
        """What is not finite in the model at a mean without input, as the end of a sentence; empty if all is well."""
        still = np.clip(np.zeros(self._nu), *self._task.bounds)
        fault = fault_of_model(self._task, k + 1, belief.mean, still)
        return f": {fault}" if fault else ""

    def _too_fast(self, k: int, mean: Array, u: Array, steps: int = 1) -> str:
        """Where the model is too fast for its step, from a mean on while an input is held, as `too_fast` says it."""
        package, signals, nx = self._package, believed(self._task), self._package.NX

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
        package, nx = self._package, self._package.NX
        if not has_state_dependent_noise(package) and self._task.objective is None:
            return
        states, inputs = np.zeros((end - start + 1, nx)), np.zeros((end - start, self._nu))
        u = np.nan_to_num(self._own.table.candidates[0])
        package.decision.plan_of(start, end, held, self._workspace, u, states, inputs)
        fault = fault_along(package, start, states, inputs, believed(self._task))
        if fault is None:
            fault = faults.fault_along(self._task, start, states, inputs, mean[nx:])
        if fault is not None:
            raise SymdualError(f"the plan at step {start} has no cost: {fault}")

    # ------------------------------------------------------------ story

    def info(self, k: int, before: Belief, after: Belief, statistics: Statistics, u: Array, status: int) -> Info:
        """Collect what a decision has left behind."""
        module, table = self._package.search, self._own.table
        doubts = self.doubts(k, after, statistics, u, status)
        used = np.isfinite(table.out[:, 0])
        order = np.lexsort(table.candidates[used].T[::-1])
        candidates, out, report = table.candidates[used][order], table.out[used][order], table.report.copy()
        row = self._row(k, after, u, int(report[module.REPORT_ORDER]))
        states, inputs = self._plan(k, after, u, row)
        inputs_of = tuple(self._package.INPUTS)
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
            planned_states=named(states, tuple(self._package.STATES)),
            planned_inputs=named(inputs, inputs_of),
            status=STATUS[status],
            evaluations=int(report[module.REPORT_EVALUATIONS]),
            fallbacks=int(report[module.REPORT_FALLBACKS]),
            iterations=int(report[module.REPORT_ITERATIONS]),
            order=int(report[module.REPORT_ORDER]),
            planned=told(self._workspace) if self._kind == "planned" else None,
            doubts=tuple(doubt.sentence for doubt in doubts),
        )

    def doubts(self, k: int, belief: Belief, statistics: Statistics, u: Array, status: int) -> list[Doubt]:
        """What speaks against the last decision, before anything else is asked of the workspace."""
        table, discrete = self.table, self._problem.choices is not None
        costs, limit = table.out[:, self._package.dual_cost.OUT_COST], self._package.nominal.ITERATION_LIMIT
        own = table.out[int(costs.argmin()), self._package.dual_cost.OUT_STATUS]  # of the plan through the input
        tried = k, table.candidates, costs, self._task.bounds if discrete else table.limits, u
        found = [
            doubt_of_measurement(k, statistics),
            self._priors.doubt(k, belief),
            doubt_of_plan(k, limit in (status, own)) or (None if discrete else doubt_of_end(*tried)),
            doubt_of_search(*tried),
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
        return self._settings_record["learning"][0] != 0.0 and not constraints_of(self._package)

    @property
    def _plans_through(self) -> bool:
        """Whether the plan of a decision is the one through its input.

        Others are among the stored plans, `exact` has none.
        """
        discrete = self._problem.choices is not None and not self._learns
        return self._kind != "exact" and (self._own.searching or discrete)

    def _row(self, k: int, belief: Belief, u: Array, order: int) -> Array:
        """The cost of u in the workspace of the last decision, without learning where that tells parts apart."""
        out = np.zeros((1, self._package.dual_cost.OUT))
        if self._plans_through:
            start, end = self._times(k)
            with self._changed(order=order, learning=0.0 if self._splits else None):
                self._price(self._own.address, start, end, self._hold(belief), self._workspace, u[None].copy(), out)
        return np.asarray(out[0])

    @contextmanager
    def _changed(self, **numbers: float | None) -> Iterator[None]:
        """Other numbers in the record of settings, as long as something is asked for; None leaves one as it is."""
        before = {name: float(self._settings_record[name][0]) for name in numbers}
        for name, number in numbers.items():
            self._settings_record[name] = before[name] if number is None else number
        try:
            yield
        finally:
            for name, number in before.items():
                self._settings_record[name] = number

    def _parts(self, report: Array, row: Array) -> Parts:
        module, task = self._package.search, self._settings_record
        nominal, uncertain = float(report[module.REPORT_NOMINAL]), float(report[module.REPORT_UNCERTAIN])
        if self._kind in ("ce", "exact"):
            return Parts(nominal, uncertain, 0.0, 0.0)
        if self._kind == "bonus":
            return Parts(nominal, 0.0, 0.0, float(task["bonus"][0]) * uncertain)
        weight = float(task["weight"][0])
        if self._kind != "planned":  # which looks ahead, and has weighed what it found
            uncertain *= weight
        if self._kind == "planned":
            still = weight * float(self._workspace.decision_log["unlearned"][0]) if self._learns else 0.0
        elif not self._splits:
            return Parts(nominal, uncertain, 0.0, 0.0)
        else:
            still = weight * float(row[self._package.dual_cost.OUT_UNCERTAIN])
        return Parts(nominal, still, uncertain - still, 0.0)

    @property
    def _learns(self) -> bool:
        """Whether the last decision was one of `planned` in which there was something to learn."""
        return self._kind == "planned" and bool(self._workspace.decision_log["starts"][0] > 0.0)

    def prices(
        self, k: int, belief: Belief, candidates: Array, form: str, order: int = 1, learning: bool = True
    ) -> Array:
        """Jbar, w Jd if nothing more were learned, and what learning takes off w Jd, of each first input, (N, 3).

        With constraints all three are those of one plan, with the back-offs that the controller keeps on it.
        """
        start, end = self._times(k)
        calls, held, weight = self._package.calls, self._hold(belief), float(self._settings_record["weight"][0])
        calls.certainty_equivalent(start, end, held, self._workspace, np.zeros(self._nu))
        found, constrained = np.full((len(candidates), 3), np.nan), bool(constraints_of(self._package))
        for row, u in zip(found, candidates, strict=True):
            if constrained:
                row[0], status, buffer, _ = calls.plan_with_backoff(start, end, u, held, self._workspace)
            else:
                row[0], status, buffer, _ = calls.plan_through(start, end, u, self._workspace)
            if status >= self._not_finite:
                continue
            row[1] = weight * self._uncertain(start, end, buffer, form, order, held, 0.0)
            if learning:
                row[2] = weight * self._uncertain(start, end, buffer, form, order, held, 1.0) - row[1]
        return found

    def _uncertain(
        self, start: int, end: int, buffer: int, form: str, order: int, held: Records, learning: float
    ) -> float:
        """Jd of the plan in a buffer, with learning about the parameters or without."""
        calls, usual = self._package.calls, float(self._settings_record["learning"][0])
        self._settings_record["learning"] = learning
        try:
            if form == "lowrank":
                return calls.jd_lowrank(start, end, buffer, held, self._workspace)
            return calls.jd_structured(start, end, buffer, order, held, self._workspace)[0]
        finally:
            self._settings_record["learning"] = usual

    def outlook(self, k: int, belief: Belief, inputs: Array, measuring: bool) -> Array:
        """Standard deviations of z along planned inputs, (S+1, NZ): with expected measurements or without any."""
        module, filter_workspace = (
            self._package.filter,
            self._package.filter.make_filter_workspace(self._settings_record.copy()),
        )
        held = self._records.make_belief(belief.mean, belief.covariance)
        if belief.memory is not None:
            filter_workspace.settings["numbers"][0] = belief.memory
        if self._square_root:
            self._package.filter.factorise(held)
        variances = [belief.covariance.diagonal()]
        for j, u in enumerate(inputs):
            self._set_signals(k + j, filter_workspace.settings)
            module.predict(k + j, held, u, filter_workspace)
            if measuring:
                self._set_signals(k + j + 1, filter_workspace.settings)
                module.update(
                    k + j + 1,
                    held,
                    self._expected(k + j + 1, held, filter_workspace.settings),
                    filter_workspace,
                    np.zeros(3),
                )
            if self._square_root:
                self._package.filter.complete(held)
            variances.append(self._records.read_covariance(held).diagonal())
        return np.sqrt(np.maximum(variances, 0.0))

    def _expected(self, k: int, held: Records, task: Records) -> Array:
        """The measurement that a belief expects."""
        numbers = {**self._package.numbers, "data": task["numbers"][0]}
        nx = self._package.NX
        return observation(replace(self._package, numbers=numbers), held["z"][0, :nx], held["z"][0, nx:], k)

    def _plan(self, k: int, belief: Belief, u: Array, row: Array) -> tuple[Array, Array]:
        """The plan whose cost was compared: one among the stored plans, or after a search the one through u."""
        start, end = self._times(k)
        states, inputs = np.zeros((end - start + 1, self._package.NX)), np.zeros((end - start, self._nu))
        if self._plans_through:
            plan = self._workspace.plan[int(row[self._package.dual_cost.OUT_BUFFER])]
            states[:], inputs[:] = plan["z"][: len(states), : self._package.NX], plan["u"][: len(inputs)]
        else:
            held, learns = self._hold(belief), COSTS[self._kind].plans_to_learn
            self._status.write_plan(start, end, learns, held, self._workspace, u, states, inputs)
        return states, inputs
