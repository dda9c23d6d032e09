"""The controllers behind one small interface: `init`, `step`, and `act` for people who want three lines.

| name       | what it minimises over u_k                                                             |
|------------|----------------------------------------------------------------------------------------|
| `oracle`   | Jbar with the true model and parameters                                                |
| `ce`       | Jbar under the mean of the belief                                                      |
| `cautious` | Jbar + Jd with learning of theta switched off                                          |
| `beb`      | Jbar + tau tr S_theta at the first step at which u_k can show in it                    |
| `dual`     | Jbar + w Jd                                                                            |
| `planned`  | Jbar + w Jd, over all inputs of the plan, then looked at one step ahead                |
| `exact`    | the expected cost itself, for the smallest problems only (see `symdual.runtime.exact`) |
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from symdual.errors import SymdualError, SymdualWarning, did_you_mean
from symdual.runtime.border import Records
from symdual.runtime.evaluate import argument
from symdual.runtime.foresight import USUAL, Foresight, Planned, first_plans, lay_out, taken_up, told
from symdual.runtime.limits import chosen_weights, violated_at_start
from symdual.runtime.objective import limits_of, require_finite
from symdual.runtime.posterior import MemoryWarning, losses
from symdual.runtime.problem import Array, Belief, Problem, checked_belief
from symdual.runtime.signals import Forecast, place_of, require_set, signals_of, with_forecast
from symdual.runtime.warm import touch_filter

NAMES = ("oracle", "ce", "cautious", "beb", "dual", "planned", "exact")
SEARCHED = ("structured", "lowrank", "second_order", "bonus", "exact")  # costs that are searched over the first input
STATUS = ("converged", "iteration limit", "stalled", "not finite", "bad argument")


class State(NamedTuple):
    """What a controller carries from step to step: the time, the belief, the input applied last, and its plans.

    `oracle`, `ce` and `planned` go on with the plans of the step before; the others make new ones (None).
    """

    k: int
    belief: Belief
    u: Array | None
    plans: Records | None = None


class Statistics(NamedTuple):
    """What a measurement says about the belief: its log-likelihood, normalised innovation squared, measured entries."""

    log_likelihood: float
    nis: float
    measured: int


class Parts(NamedTuple):
    """The cost of the chosen input: J = certainty_equivalent + caution + probing + bonus.

    `caution` is what uncertainty would cost if nothing more were learned about theta; `probing`, at most zero at order
    1 up to rounding, is what the planned learning takes off; `bonus` is tau tr S_theta. The exact cost is not a sum of
    these: for `exact`, all that is not certainty-equivalent stands under caution.
    """

    certainty_equivalent: float
    caution: float
    probing: float
    bonus: float


class Info(NamedTuple):
    """What is only looked at: how a decision came about.

    `candidates` (N, NU) are the inputs that the search looked at, in ascending order, and `costs` (N, 3) their costs:
    J, its certainty-equivalent part Jbar, and its uncertain part (Jd, or tr S_theta for `beb`). `planned_states` and
    `planned_inputs` are the nominal plan through the chosen input. `status` is that of the certainty-equivalent plan;
    `evaluations`, `fallbacks` (from order 2 to order 1) and `iterations` are sums over all candidates, and `order` is
    that of the cost that was minimised: 1 where a candidate that might have won fell back. `planned` tells what the
    controller of that name tried; None for the others, and where there was nothing to learn.
    """

    k: int
    before: Belief
    after: Belief
    log_likelihood: float
    nis: float
    measured: int
    candidates: Array
    costs: Array
    parts: Parts
    planned_states: Array
    planned_inputs: Array
    status: str
    evaluations: int
    fallbacks: int
    iterations: int
    order: int
    planned: Planned | None = None


@dataclass(frozen=True, eq=False)
class Controller:
    """A controller for a problem.

    A controller owns the workspaces of its decisions: use one in each thread. A copy, or one that was pickled, has its
    own and continues where `act` was.

    Args:
        problem: the task. For `oracle` it must come from `Problem.for_oracle`; `controller` does that.
        name: one of `NAMES`.
        order: 1 (the paper's) or 2 (with the curvature of the dynamics) for `dual`. Where a candidate that might have
            won falls back to order 1, the whole decision is made at order 1.
        window: None to plan to the fixed end of the problem, or the length of a moving horizon for endless operation.
        foresight: how much `planned` does for a decision.
    """

    problem: Problem
    name: str
    order: int = 1
    window: int | None = None
    foresight: Foresight = USUAL
    _tools: _Tools = field(init=False, repr=False)
    _live: list[State] = field(init=False, repr=False, default_factory=list)

    def __post_init__(self) -> None:
        """Check the choice and load the compiled decision."""
        if self.name not in NAMES:
            raise SymdualError(
                f'there is no controller "{self.name}"{did_you_mean(self.name, NAMES)}; known: {", ".join(NAMES)}'
            )
        if self.order not in (1, 2):
            raise SymdualError(f"order must be 1 or 2, not {self.order!r}")
        if self.window is not None and self.window < 1:
            raise SymdualError(f"window must be at least 1, not {self.window}")
        if self.name == "oracle" and np.any(self.problem.prior.covariance[:, self.problem.package.NX :]):
            raise SymdualError(
                'the oracle needs a problem without uncertain parameters; use controller(problem, "oracle")'
            )
        object.__setattr__(self, "_tools", _Tools(self))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle what was asked for and what `act` remembers; the compiled functions are looked up again."""
        arguments = (self.problem, self.name, self.order, self.window, self.foresight)
        return _restored, (arguments, tuple(self._live), self._tools.heard)

    def init(self, belief: Belief | None = None, guess: ArrayLike | None = None) -> State:
        """The state before the first step, from a belief or from the problem's prior.

        `guess` are inputs (steps, NU) from which the first plan may start, beside the starts that it has anyway.
        """
        start = self.problem.prior if belief is None else checked_belief(self.problem.package, belief)
        return State(0, start, None, None if guess is None else self._tools.guessed(guess))

    def step(
        self, state: State, y: ArrayLike | None = None, signals: Forecast | None = None
    ) -> tuple[State, Array, Info]:
        """Take the measurement of this step and choose its input; returns the next state, the input and the story.

        The first measurement, if there is one, updates the belief without predicting. NaN entries of y, or None, mean
        that nothing was measured. `signals` is a forecast as in `act`.
        """
        self._tools.hear(state.k, signals)
        informed, statistics = self.update(state, y)
        u, status, plans = self._tools.decide(informed)
        info = self._tools.story(state.k, state.belief, informed.belief, statistics, u, status)
        return State(state.k + 1, informed.belief, u, plans), u.copy(), info

    def update(self, state: State, y: ArrayLike | None = None) -> tuple[State, Statistics]:
        """Take the measurement of this step without choosing an input: predict with the input before, then update."""
        belief, statistics = self._tools.observe(state, self._measurement(y))
        return State(state.k, belief, None, state.plans), statistics

    def choose(self, state: State) -> tuple[State, Array]:
        """Choose the input of this step without measuring; `update` must have been called if an input was applied."""
        if state.u is not None:
            raise SymdualError(f"the input before step {state.k} is not in the belief yet: call update first")
        u, _, plans = self._tools.decide(state)
        return State(state.k + 1, state.belief, u, plans), u.copy()

    def act(self, y: ArrayLike | None = None, signals: Forecast | None = None) -> Array:
        """Take a measurement and return the input to apply; the controller remembers its own state (see `reset`).

        `signals` maps the names of signals to a forecast each: its value now and at the times that follow, or one
        number; a list that is shorter than the plan keeps its last value. It holds until another one is given.
        """
        state = self._live[0] if self._live else self.init()
        self._tools.hear(state.k, signals)
        belief, _ = self._tools.observe(state, self._measurement(y))
        u, _, plans = self._tools.decide(State(state.k, belief, None, state.plans))
        self._live[:] = [State(state.k + 1, belief, u, plans)]
        return u.copy()

    def observe(self, y: ArrayLike | None = None) -> Belief:
        """Take a measurement into the belief that `act` holds, without choosing an input, and return it.

        For the last measurement of an episode, or for a further one of the same step; `act()` then chooses the input.
        """
        self._live[:] = [self.update(self._live[0] if self._live else self.init(), y)[0]]
        return self._live[0].belief

    def change(self, **numbers: Any) -> None:
        """Go on with other numbers of the task, by the arguments of `Problem.changed`: references, weights, bounds."""
        object.__setattr__(self, "problem", self.problem.changed(**numbers))
        object.__setattr__(self, "_tools", _Tools(self))

    def reset(self, belief: Belief | None = None, guess: ArrayLike | None = None) -> None:
        """Forget what `act` has learned; the arguments are those of `init`."""
        self._live[:] = [self.init(belief, guess)]

    @property
    def belief(self) -> Belief:
        """The belief that `act` holds at this moment."""
        return self._live[0].belief if self._live else self.problem.prior

    def _measurement(self, y: ArrayLike | None) -> Array:
        shape = self._tools.measurement_shape
        if y is None:
            return np.full(shape, np.nan)
        return argument(unmasked(y), shape, "the measurement y")


def _restored(arguments: tuple[Any, ...], live: tuple[State, ...], heard: Problem | None) -> Controller:
    copied = Controller(*arguments)
    copied._live[:] = live
    if heard is not None:
        copied._tools.use(heard)
    return copied


def unmasked(y: ArrayLike) -> ArrayLike:
    """A measurement in which NaN stands for what a masked array hides; anything else as it is."""
    if isinstance(y, np.ma.MaskedArray):
        return np.asarray(np.where(np.ma.getmaskarray(y), np.nan, np.ma.getdata(y)))
    return y


def controller(
    problem: Problem,
    name: str,
    order: int = 1,
    window: int | None = None,
    truth: Array | None = None,
    foresight: Foresight = USUAL,
) -> Controller:
    """Make a controller; the oracle is given the problem's truth, or `truth` when that is drawn anew."""
    if name == "oracle":
        known = problem.truth if truth is None else truth
        if known is None:
            raise SymdualError("the oracle needs the true parameters, and the scenario has none; give truth=")
        problem = problem.for_oracle(known)
    return Controller(problem, name, order, window, foresight)


def cost_kind(problem: Problem, name: str, order: int, steps: int) -> str:
    """The name of the compiled cost that a controller minimises over plans of at most `steps` steps."""
    if name in ("oracle", "ce") or (name == "beb" and problem.package.INPUT_DELAY == 0):
        return "certain"
    if name == "beb":
        return "bonus"
    if name == "planned" and limits_of(problem.package):
        raise SymdualError(
            f'the controller "planned" does not know constraints yet, which {problem.package.name} has; use dual'
        )
    if name in ("exact", "planned"):
        return name
    if name == "dual" and order == 2:
        return "second_order"
    # a moving horizon meets other weights at each step
    weights = problem.state_cost if steps == problem.horizon else None
    return str(problem.package.dual_cost.choose_form(steps, weights))


def cost_pointer(problem: Problem, kind: str, steps: int) -> Any:
    """The compiled cost as a function pointer."""
    if kind != "exact":
        return problem.package.decision.cost_pointer(kind)
    if problem.package.backend == "c":
        raise SymdualError('the controller "exact" needs a package of numba: load it without backend="c"')
    from symdual.runtime import exact  # which needs numba

    return exact.cost_pointer(problem, steps)


def task_of(problem: Problem, name: str, order: int, foresight: Foresight = USUAL) -> Records:
    """The task record of a controller: noise, bounds and data of the model, weights of its cost."""
    package = problem.package
    noise, data = package.noise, package.numbers["data"]
    task = package.records.make_task(*noise, problem.bounds, data)
    task["weight"] = 1.0 if name == "cautious" else problem.dual_weight
    task["learning"] = 0.0 if name == "cautious" else 1.0
    task["bonus"] = problem.bonus
    task["order"] = order if name == "dual" else 1
    foresight.write(task)
    if problem.objective is not None:
        task["ends"] = problem.objective.terminal_weights
        if limits_of(package):
            task["limit_weights"] = chosen_weights(problem)
            task["quantiles"] = problem.objective.quantiles if name in ("dual", "cautious") else 0.0
    return task


def weights_of(problem: Problem) -> Records:
    """The cost of each time as records."""
    plain = problem.state_cost, problem.input_cost, problem.reference
    more = problem.objective
    own = () if more is None else (more.cross_cost, more.input_reference, more.cost_weights)
    heard = () if problem.signals is None else problem.signals.of(problem.package)
    return problem.package.records.make_weights(*plain, *own, *heard)


def require_search_width(problem: Problem) -> None:
    """Raise when the search has no limit: neither bounds nor |u|^2 <= J(u_ce) / lambda_min(U)."""
    free = np.flatnonzero(~np.all(np.isfinite(problem.bounds), axis=0))
    flat = np.flatnonzero(problem.floors == 0.0)
    if free.size and flat.size:
        name = {index: name for name, index in problem.package.INPUTS.items()}[int(free[0])]
        why = f"input_cost is singular at step {flat[0]}"
        if problem.objective is not None and "term_slopes" not in problem.package.numbers:
            why = "nothing is known of what its cost is at least"
        raise SymdualError(
            f'the search over the input "{name}" has no limit, because {why}; give the input bounds or a positive cost'
        )


def require_fit(problem: Problem, name: str, order: int, steps: int) -> None:
    """Raise when a controller cannot plan `steps` steps of a problem, before anything is compiled for it."""
    if name == "exact":
        from symdual.runtime import exact

        exact.coefficient(problem, steps)
    if cost_kind(problem, name, order, steps) in SEARCHED:
        require_search_width(problem)


class _Tools:
    """The compiled functions of a package with the arrays and workspaces that they need, for one controller.

    Everything that a step needs is looked up once, here: a decision from Python then costs little more than in a
    compiled loop.
    """

    def __init__(self, controller: Controller) -> None:
        problem, order, window = controller.problem, controller.order, controller.window
        self._problem = problem
        self._window = window
        self._package = package = problem.package
        self.measurement_shape = (package.NY,)
        self._steps = steps = problem.horizon if window is None else window
        self._order = order
        self._kind = cost_kind(problem, controller.name, order, steps)
        self._searching = self._kind in SEARCHED
        if self._searching:
            require_search_width(problem)
        require_finite(package, problem.objective, problem.start, problem.bounds)
        for sentence in violated_at_start(problem):
            warnings.warn(sentence, SymdualWarning, stacklevel=4)
        self._cost = cost_pointer(problem, self._kind, steps)
        self._task_record = task_of(problem, controller.name, order, controller.foresight)
        self._data: Array = self._task_record["numbers"][0]
        self._forgetful = ""
        self._records = package.records
        self._belief = self._records.make_belief(*problem.prior[:2])
        self._predict, self._update = package.filter.predict, package.filter.update
        self._tray, self._stats = package.filter.tray(self._task_record), np.zeros(3)
        self._square_root, self._nu = package.SQUARE_ROOT, package.NU
        self._decide, self._address = package.decision.decide_at, self._cost.address
        self._table = package.candidates.table()
        self._not_finite, self._bad = package.nominal.NOT_FINITE, package.filter.NOT_FINITE
        self._signals = signals_of(package)
        self._fixed_time = window is not None and not package.TIME_VARYING and not self._signals
        self._place, self._said = place_of(package), set[str]()
        self.use(problem if window is None else problem.extended(window))
        self._get_ready()

    def _get_ready(self) -> None:
        """Compile or load, now, all that a step will need: the second one then takes no longer than the thousandth."""
        touch_filter(self._package, self._belief, self._desk)
        start, end = self._times(0)
        table, u = self._package.candidates.table(), np.zeros(self._nu)
        self._decide(self._address, False, 0.0, start, end, self._belief, self._desk, table, u)

    def use(self, task: Problem) -> None:
        """Plan with the numbers of a task from now on."""
        self._task = task
        self._floors = task.floors.tolist()
        planning = self._kind == "planned"
        self._desk = self._records.desk(self._steps, weights_of(task), self._task_record, self._order, planning)

    @property
    def heard(self) -> Problem | None:
        """The task with the forecasts that were given so far, if the model has signals."""
        return self._task if self._signals else None

    def hear(self, k: int, forecast: Forecast | None) -> None:
        """Take over what signals are said to be from step k on."""
        if forecast is not None:
            start, end = self._times(k)
            self._task = with_forecast(self._task, start, end, forecast, self._said)
            self._desk.weights["signals"] = self._task.signals.of(self._package)[0]  # type: ignore[union-attr]

    def _tune(self, k: int) -> None:
        """Let the filter's numbers be those of step k."""
        if self._signals:
            values = self._desk.weights["signals"][k]
            if np.isnan(values).any():
                require_set(self._task, k, k)
            self._task_record["numbers"][0, self._place] = values

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
            self._package.square_root.factorise(held)
        if state.u is not None:
            self._tune(state.k - 1)
            self._predict(state.k - 1, held, state.u, self._tray)
        self._tune(state.k)
        status = self._update(state.k, held, y, self._tray, self._stats)
        if self._square_root:
            self._package.square_root.complete(held)
        mean, covariance = held["z"][0].copy(), self._records.read_covariance(held)
        if status == self._bad or not (np.isfinite(mean).all() and np.isfinite(covariance.diagonal()).all()):
            what = "the measurement is infinite" if np.any(np.isinf(y)) else "the belief is not finite any more"
            raise SymdualError(f"{what} at step {state.k}")
        likelihood, nis, measured = self._stats.tolist()
        return Belief(mean, covariance, self._remembered()), Statistics(likelihood, nis, int(measured))

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
        lay_out(self._desk, state.plans, start - k)
        if self._kind == "exact" and belief.covariance[0, 0] > 1e-9 * self._package.noise.process[0, 0]:
            raise SymdualError(f'the controller "exact" needs a measurement at step {k}')
        if self._signals:
            require_set(self._task, start, end)
        u, held = np.zeros(self._nu), self._hold(belief)
        status = self._decide(
            self._address, self._searching, self._floors[start], start, end, held, self._desk, self._table, u
        )
        if status == self._not_finite:
            raise SymdualError(f"the certainty-equivalent plan at step {k} is not finite, from whatever start")
        return u, int(status), taken_up(self._desk, self._kind, start - k)

    # ------------------------------------------------------------ story

    def story(self, k: int, before: Belief, after: Belief, statistics: Statistics, u: Array, status: int) -> Info:
        """Collect what a decision has left behind."""
        module, table = self._package.candidates, self._table
        used = np.isfinite(table.out[:, 0])
        order = np.lexsort(table.candidates[used].T[::-1])
        candidates, out, report = table.candidates[used][order], table.out[used][order], table.report.copy()
        states, inputs = self._plan(k, after, u)
        return Info(
            k=k,
            before=before,
            after=after,
            log_likelihood=statistics.log_likelihood,
            nis=statistics.nis,
            measured=statistics.measured,
            candidates=candidates,
            costs=out[:, :3].copy(),
            parts=self._parts(k, after, u, inputs, report),
            planned_states=states,
            planned_inputs=inputs,
            status=STATUS[status],
            evaluations=int(report[module.REPORT_EVALUATIONS]),
            fallbacks=int(report[module.REPORT_FALLBACKS]),
            iterations=int(report[module.REPORT_ITERATIONS]),
            order=int(report[module.REPORT_ORDER]),
            planned=told(self._desk) if self._kind == "planned" else None,
        )

    def _parts(self, k: int, belief: Belief, u: Array, inputs: Array, report: Array) -> Parts:
        module, task = self._package.candidates, self._task_record
        nominal, uncertain = float(report[module.REPORT_NOMINAL]), float(report[module.REPORT_UNCERTAIN])
        if self._kind in ("certain", "exact"):
            return Parts(nominal, uncertain, 0.0, 0.0)
        if self._kind == "bonus":
            return Parts(nominal, 0.0, 0.0, float(task["bonus"][0]) * uncertain)
        weight = float(task["weight"][0])
        if task["learning"][0] == 0.0 or limits_of(self._package):  # whose distances hold with learning only
            return Parts(nominal, weight * uncertain, 0.0, 0.0)
        if self._kind == "planned":
            still = weight * self._unlearned_along(k, belief, inputs)
            return Parts(nominal, still, uncertain - still, 0.0)
        still = weight * self._unlearned(k, belief, u, int(report[module.REPORT_ORDER]))
        return Parts(nominal, still, weight * uncertain - still, 0.0)

    def _unlearned(self, k: int, belief: Belief, u: Array, order: int) -> float:
        """Jd of the plan through u if nothing more were learned about the parameters."""
        start, end = self._times(k)
        calls, held = self._package.calls, self._hold(belief)
        calls.certainty_equivalent(start, end, held, self._desk, np.zeros(self._nu))
        _, _, slot, _ = calls.plan_through(start, end, u, self._desk)
        self._task_record["learning"] = 0.0
        try:
            if self._kind == "lowrank":
                return calls.jd_lowrank(start, end, slot, held, self._desk)
            return calls.jd_structured(start, end, slot, order, held, self._desk)[0]
        finally:
            self._task_record["learning"] = 1.0

    def _unlearned_along(self, k: int, belief: Belief, inputs: Array) -> float:
        """Jd of the plan with given inputs if nothing more were learned about the parameters."""
        start, end = self._times(k)
        calls, held = self._package.calls, self._hold(belief)
        self._task_record["learning"] = 0.0
        try:
            calls.follow(start, end, held, inputs, self._desk)
            return calls.jd_structured(start, end, 0, 1, held, self._desk)[0]
        finally:
            self._task_record["learning"] = 1.0

    def _plan(self, k: int, belief: Belief, u: Array) -> tuple[Array, Array]:
        """The plan whose cost was compared: one on the shelf, or after a search the one through u."""
        start, end = self._times(k)
        states, inputs = np.zeros((end - start + 1, self._package.NX)), np.zeros((end - start, self._nu))
        if not self._searching:
            learning = self._kind == "planned" and self._desk.story["starts"][0] > 0.0
            kept = self._desk.shelf[1 if learning else 0]
            states[:], inputs[:] = kept["z"][: len(states), : self._package.NX], kept["u"][: len(inputs)]
            return states, inputs
        held = self._hold(belief)
        self._package.decision.plan_of(start, end, held, self._desk, u, states, inputs)
        return states, inputs
