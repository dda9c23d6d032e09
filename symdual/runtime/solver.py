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
from symdual.runtime import faults
from symdual.runtime.constraints import warn_of_start
from symdual.runtime.costs import (
    SEARCHED,
    cost_kind,
    cost_pointer,
    kind_that_decides,
    require_search_width,
    searches,
    settings_of,
    stage_costs_of,
)
from symdual.runtime.culprits import fault_of_model, fault_of_step
from symdual.runtime.doubts import Doubt, Priors, doubt_of_measurement, doubt_of_plan, doubt_of_search
from symdual.runtime.evaluate import dynamics, observation
from symdual.runtime.info import STATUS, Info, Parts, State, Statistics
from symdual.runtime.noise import believed, fault_along, fault_of_filter, has_state_dependent_noise, require_noise
from symdual.runtime.objective import constraints_of
from symdual.runtime.package_interface import BackendFailure, Records
from symdual.runtime.planned_options import PlannedOptions, first_plans, lay_out, taken_up, told
from symdual.runtime.posterior import MemoryWarning, losses
from symdual.runtime.problem import Belief, Problem
from symdual.runtime.signals import Forecast, place_of, require_set, signals_of, with_forecast, with_signals
from symdual.runtime.stiffness import too_fast
from symdual.runtime.warm import touch_filter


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
    def planned_options(self) -> PlannedOptions: ...  # noqa: D102


class Solver:
    """The compiled functions of a package with the arrays and workspaces that they need, for one controller.

    Everything that a step needs is looked up once, here: a decision from Python then costs little more than in a
    compiled loop.
    """

    def __init__(self, controller: Chosen) -> None:
        problem, order, window = controller.problem, controller.order, controller.window
        self._problem = problem
        self._window = window
        self._package = package = problem.package
        self.measurement_shape = (package.NY,)
        self._steps = steps = problem.horizon if window is None else window
        self._order = order
        self._kind = cost_kind(problem, controller.name, order, steps)
        self._searching = searches(problem, self._kind)
        if self._kind in SEARCHED:
            require_search_width(problem)
        faults.require_finite(problem)
        require_noise(problem)
        warn_of_start(problem, stacklevel=7)
        self._cost = cost_pointer(problem, self._kind, steps)
        self._settings_record = settings_of(problem, controller.name, order, controller.planned_options)
        self._data: Array = self._settings_record["numbers"][0]
        self._forgetful = ""
        self._records = package.records
        self._belief = self._records.make_belief(*problem.prior[:2])
        self._predict, self._update = package.filter.predict, package.filter.update
        self._filter_workspace, self._stats = package.filter.make_filter_workspace(self._settings_record), np.zeros(3)
        self._square_root, self._nu = package.SQUARE_ROOT, package.NU
        self._decide, self._price = package.decision.decide_at, package.decision.price_at
        self._address: int = self._cost.address
        self._table = package.candidates.table()
        self._not_finite, self._bad = package.nominal.NOT_FINITE, package.filter_mean.NOT_FINITE
        self._signals = signals_of(package)
        self._fixed_time = window is not None and not package.TIME_VARYING and not self._signals
        self._place, self._said = place_of(package), set[str]()
        self._priors, self._doubted = Priors(problem), set[str]()
        self.use(problem if window is None else problem.extended(window))
        self._get_ready()

    def _get_ready(self) -> None:
        """Compile or load, now, all that a step will need: the second one then takes no longer than the thousandth."""
        touch_filter(self._package, self._belief, self._workspace)
        start, end = self._times(0)
        table, u = self._package.candidates.table(), np.zeros(self._nu)
        prior = self._problem.prior
        floor = np.zeros(self._nu)
        self._decide(self._deciding(prior)[0], False, floor, start, end, self._belief, self._workspace, table, u)
        self._plan(0, prior, u, self._row(0, prior, u, self._order))

    def use(self, task: Problem) -> None:
        """Plan with the numbers of a task from now on."""
        self._task = task
        self._floors = task.floors
        planning = self._kind == "planned"
        self._workspace = self._records.make_workspace(
            self._steps, stage_costs_of(task), self._settings_record, self._order, planning
        )

    @property
    def forecast_problem(self) -> Problem | None:
        """The task with the forecasts that were given so far, if the model has signals."""
        return self._task if self._signals else None

    def set_forecast(self, k: int, forecast: Forecast | None) -> None:
        """Take over what signals are said to be from step k on."""
        if forecast is not None:
            start, end = self._times(k)
            self._task = with_forecast(self._task, start, end, forecast, self._said)
            self._workspace.stage_costs["signals"] = self._task.signals.of(self._package)[0]  # type: ignore[union-attr]

    def _set_signals(self, k: int, task: Records) -> None:
        """Let the filter's numbers be those of step k."""
        if self._signals:
            values = self._workspace.stage_costs["signals"][k]
            if np.isnan(values).any():
                require_set(self._task, k, k)
            task["numbers"][0, self._place] = values

    def _hold(self, belief: Belief) -> Records:
        """The belief as a record, with what it remembers of Gaussian processes."""
        self._recall(belief)
        self._records.write_belief(self._belief, belief.mean, belief.covariance)
        return self._belief

    # ------------------------------------------------------------ filter

    def observe(self, state: State, y: Array) -> tuple[Belief, Statistics]:
        """Predict with the last input, if there is one, and update with y; the belief given is left as it is."""
        held = self._hold(state.belief)
        if self._square_root:
            self._package.filter_covariance.factorise(held)
        if state.u is not None:
            self._set_signals(state.k - 1, self._settings_record)
            self._predict(state.k - 1, held, state.u, self._filter_workspace)
        self._set_signals(state.k, self._settings_record)
        status = self._update(state.k, held, y, self._filter_workspace, self._stats)
        if self._square_root:
            self._package.filter_covariance.complete(held)
        mean, covariance = held["z"][0].copy(), self._records.read_covariance(held)
        if status == self._bad or not (np.isfinite(mean).all() and np.isfinite(covariance.diagonal()).all()):
            infinite = bool(np.any(np.isinf(y)))
            way = self._task, state.k, state.belief.mean, state.u
            if infinite:
                raise SymdualError(f"the measurement is infinite at step {state.k}")
            what = "the belief" if fault_of_filter(*way) or not fault_of_step(*way) else "the filter's prediction"
            fault = fault_of_filter(*way) or fault_of_model(*way)
            fast = "" if state.u is None else self._too_fast(state.k - 1, state.belief.mean, state.u)
            raise SymdualError(f"{what} is not finite any more at step {state.k}{f': {fault}' if fault else ''}{fast}")
        likelihood, nis, measured = self._stats.tolist()
        return Belief(mean, covariance, self._remembered(), self._package.belief_names), Statistics(
            likelihood, nis, int(measured)
        )

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
        if self._window is None:
            if k >= self._problem.horizon:
                raise SymdualError(
                    f"the episode ended at step {self._problem.horizon}; use window= for endless operation"
                )
            return k, self._problem.horizon
        if self._fixed_time:  # from the end of the given cost on, all times are alike
            k = min(k, self._problem.horizon)
        elif k + self._window > self._task.horizon:
            self.use(self._task.extended(self._task.horizon + self._window))
        return k, k + self._window

    def guessed(self, guess: ArrayLike) -> Records:
        """Plans that follow given inputs, for the first step."""
        return first_plans(self._problem, self._kind, self._steps, guess)

    def decide(self, state: State) -> tuple[Array, int, Records | None]:
        """Choose the input of a step; returns it, the status of the certainty-equivalent plan, and plans to keep."""
        k, belief = state.k, state.belief
        start, end = self._times(k)
        lay_out(self._workspace, state.plans, start - k)
        if self._kind == "exact" and belief.covariance[0, 0] > 1e-9 * self._package.noise.process[0, 0]:
            raise SymdualError(f'the controller "exact" needs a measurement at step {k}')
        if self._signals:
            require_set(self._task, start, end)
        u, held = np.zeros(self._nu), self._hold(belief)
        status = self._decide(
            *self._deciding(belief), self._floors[start], start, end, held, self._workspace, self._table, u
        )
        if status == self._not_finite:
            self._blame(start, end, held, belief.mean)
            still = np.clip(np.zeros(self._nu), *self._task.bounds)
            hint = self._fault_at_rest(start, belief) + self._too_fast(start, belief.mean, still, end - start)
            if np.isfinite(self._table.out[0, self._package.dual_cost.OUT_NOMINAL]):
                raise SymdualError(f"what uncertainty costs is not a finite number along any plan at step {k}{hint}")
            raise SymdualError(f"the certainty-equivalent plan at step {k} is not finite, from whatever start{hint}")
        if status == self._package.nominal.STALLED and (fault := self._fault_at_rest(start, belief)):
            warnings.warn(f"the plan at step {k} could not be improved{fault}", SymdualWarning, stacklevel=4)
        return u, int(status), taken_up(self._workspace, self._kind, start - k)

    def _deciding(self, belief: Belief) -> tuple[int, bool]:
        """The address of the cost that decides for a belief, and whether it is searched."""
        kind = kind_that_decides(self._problem, self._kind, belief.covariance)
        if kind == self._kind:
            return self._address, self._searching
        self._workspace.decision_log[:] = np.zeros_like(
            self._workspace.decision_log
        )  # that of an earlier decision with something to learn
        try:
            return int(cost_pointer(self._problem, kind, self._steps).address), searches(self._problem, kind)
        except BackendFailure:  # of C: the usual one, which is there, does the same up to rounding
            return self._address, self._searching

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
        u = np.nan_to_num(self._table.candidates[0])
        package.decision.plan_of(start, end, held, self._workspace, u, states, inputs)
        fault = fault_along(package, start, states, inputs, believed(self._task))
        if fault is None:
            fault = faults.fault_along(self._task, start, states, inputs, mean[nx:])
        if fault is not None:
            raise SymdualError(f"the plan at step {start} has no cost: {fault}")

    # ------------------------------------------------------------ story

    def info(self, k: int, before: Belief, after: Belief, statistics: Statistics, u: Array, status: int) -> Info:
        """Collect what a decision has left behind."""
        module, table = self._package.candidates, self._table
        doubts = self.doubts(k, after, statistics, u, status)
        used = np.isfinite(table.out[:, 0])
        order = np.lexsort(table.candidates[used].T[::-1])
        candidates, out, report = table.candidates[used][order], table.out[used][order], table.report.copy()
        row = self._row(k, after, u, int(report[module.REPORT_ORDER]))
        states, inputs = self._plan(k, after, u, row)
        return Info(
            k=k,
            before=before,
            after=after,
            log_likelihood=statistics.log_likelihood,
            nis=statistics.nis,
            measured=statistics.measured,
            candidates=candidates,
            costs=out[:, :3].copy(),
            parts=self._parts(report, row),
            planned_states=states,
            planned_inputs=inputs,
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
        found = [
            doubt_of_measurement(k, statistics),
            self._priors.doubt(k, belief),
            doubt_of_plan(k, status == self._package.nominal.ITERATION_LIMIT),
        ]
        if self._searching and self._problem.choices is None:
            table = self._table
            found.append(doubt_of_search(k, table.candidates, table.out[:, 0], table.limits, u))
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
        return self._kind != "exact" and (self._searching or discrete)

    def _row(self, k: int, belief: Belief, u: Array, order: int) -> Array:
        """The cost of u in the workspace of the last decision, without learning where that tells parts apart."""
        out = np.zeros((1, self._package.dual_cost.OUT))
        if self._plans_through:
            start, end = self._times(k)
            with self._changed(order=order, learning=0.0 if self._splits else None):
                self._price(self._address, start, end, self._hold(belief), self._workspace, u[None].copy(), out)
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
        module, task = self._package.candidates, self._settings_record
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
            self._package.filter_covariance.factorise(held)
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
                self._package.filter_covariance.complete(held)
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
        if self._kind == "exact":
            self._package.decision.plan_of(start, end, self._hold(belief), self._workspace, u, states, inputs)
            return states, inputs
        if self._plans_through:
            plan = self._workspace.plan[int(row[self._package.dual_cost.OUT_BUFFER])]
        else:
            plan = self._workspace.stored_plans[1 if self._learns else 0]
        states[:], inputs[:] = plan["z"][: len(states), : self._package.NX], plan["u"][: len(inputs)]
        return states, inputs
