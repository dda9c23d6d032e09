"""The controllers behind one small interface: `init`, `step`, and `act` for people who want three lines.

| name       | what it minimises over u_k                                                             |
|------------|----------------------------------------------------------------------------------------|
| `oracle`   | Jbar with the true model and parameters                                                |
| `ce`       | Jbar under the mean of the belief                                                      |
| `cautious` | Jbar + Jd with learning of theta switched off                                          |
| `beb`      | Jbar + tau tr S_theta at the first step at which u_k can show in it                    |
| `dual`     | Jbar + w Jd                                                                            |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from symdual.errors import SymdualError, did_you_mean
from symdual.runtime.problem import Array, Belief, Problem, checked_belief

NAMES = ("oracle", "ce", "cautious", "beb", "dual")


class State(NamedTuple):
    """What a controller carries from step to step: the time, the belief, and the input that was applied last."""

    k: int
    belief: Belief
    u: Array | None


class Parts(NamedTuple):
    """The cost of the chosen input: L = certainty_equivalent + caution + probing (+ bonus).

    `caution` is what uncertainty would cost if nothing more were learned about theta; `probing`, at most zero at order 1
    up to rounding, is what the planned learning takes off; `bonus` is tau tr S_theta.
    """

    certainty_equivalent: float
    caution: float
    probing: float
    bonus: float


class Info(NamedTuple):
    """What is only looked at: how a decision came about."""

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


@dataclass(frozen=True, eq=False)
class Controller:
    """A controller for a problem.

    Args:
        problem: the task. For `oracle` it must come from `Problem.for_oracle`; `controller` does that.
        name: one of `NAMES`.
        order: 1 (the paper's) or 2 (with the curvature of the dynamics) for `dual`.
        window: None to plan to the fixed end of the problem, or the length of a moving horizon for endless operation.
    """

    problem: Problem
    name: str
    order: int = 1
    window: int | None = None
    _tools: _Tools = field(init=False, repr=False)
    _live: list[State] = field(init=False, repr=False, default_factory=list)

    def __post_init__(self) -> None:
        """Check the choice and load the compiled decision."""
        if self.name not in NAMES:
            raise SymdualError(f'there is no controller "{self.name}"{did_you_mean(self.name, NAMES)}; known: {", ".join(NAMES)}')
        if self.order not in (1, 2):
            raise SymdualError(f"order must be 1 or 2, not {self.order!r}")
        if self.window is not None and self.window < 1:
            raise SymdualError(f"window must be at least 1, not {self.window}")
        object.__setattr__(self, "_tools", _Tools(self.problem, self.name, self.order, self.window))

    def init(self, belief: Belief | None = None) -> State:
        """The state before the first step, from a belief or from the problem's prior."""
        start = self.problem.prior if belief is None else checked_belief(self.problem.package, belief)
        return State(0, start, None)

    def step(self, state: State, y: ArrayLike | None = None) -> tuple[State, Array, Info]:
        """Take the measurement of this step and choose its input; returns the next state, the input and the story.

        The first measurement, if there is one, updates the belief without predicting. NaN entries of y, or None, mean
        that nothing was measured.
        """
        tools = self._tools
        belief, statistics = tools.observe(state, self._measurement(y))
        u, status = tools.decide(state.k, belief)
        following = State(state.k + 1, belief, u)
        return following, u.copy(), tools.story(state, belief, statistics, u, status)

    def act(self, y: ArrayLike | None = None) -> Array:
        """Take a measurement and return the input to apply; the controller remembers its own state (see `reset`)."""
        state = self._live[0] if self._live else self.init()
        belief, _ = self._tools.observe(state, self._measurement(y))
        u, _ = self._tools.decide(state.k, belief)
        self._live[:] = [State(state.k + 1, belief, u)]
        return u.copy()

    def reset(self, belief: Belief | None = None) -> None:
        """Forget what `act` has learned."""
        self._live[:] = [self.init(belief)]

    @property
    def belief(self) -> Belief:
        """The belief that `act` holds at this moment."""
        return self._live[0].belief if self._live else self.problem.prior

    def _measurement(self, y: ArrayLike | None) -> Array:
        ny = self.problem.package.NY
        if y is None:
            return np.full(ny, np.nan)
        values = np.ascontiguousarray(y, dtype=np.float64)
        if values.shape != (ny,):
            raise SymdualError(f"a measurement has {ny} entries, but y has shape {values.shape}")
        return values


def controller(
    problem: Problem, name: str, order: int = 1, window: int | None = None, truth: Array | None = None
) -> Controller:
    """Make a controller; the oracle is given the problem's truth, or `truth` when that is drawn anew."""
    if name == "oracle":
        known = problem.truth if truth is None else truth
        if known is None:
            raise SymdualError("the oracle needs the true parameters, and the scenario has none; give truth=")
        problem = problem.for_oracle(known)
    return Controller(problem, name, order, window)


def cost_kind(problem: Problem, name: str, order: int, steps: int) -> str:
    """The name of the compiled cost that a controller minimises."""
    if name in ("oracle", "ce"):
        return "certain"
    if name == "beb":
        return "bonus"
    if name == "dual" and order == 2:
        return "second_order"
    return str(problem.package.dual_cost.choose_form(steps))


def cost_settings(problem: Problem, name: str) -> Array:
    """The settings vector of a controller's cost."""
    nominal = problem.package.nominal
    settings: Array = nominal.default_settings()
    settings[nominal.SET_WEIGHT] = 1.0 if name == "cautious" else problem.dual_weight
    settings[nominal.SET_LEARNING] = 0.0 if name == "cautious" else 1.0
    settings[nominal.SET_BONUS] = problem.bonus
    return settings


class _Tools:
    """The compiled functions of a package with the arrays and workspaces that they need, for one controller."""

    def __init__(self, problem: Problem, name: str, order: int, window: int | None) -> None:
        self._problem = problem
        self._window = window
        self._package = package = problem.package
        steps = problem.horizon if window is None else window
        self._kind = cost_kind(problem, name, order, steps)
        self._searching = self._kind != "certain"
        self._settings = cost_settings(problem, name)
        self._cost = package.decision.cost_pointer(self._kind)
        numbers = package.numbers
        self._noise = (
            numbers["process_noise"],
            numbers["measurement_noise"],
            numbers["transition"],
            numbers["drift"],
        )
        self._plan_tools = package.decision.workspace(steps)
        self._filter_tools = package.filter.workspace()
        self._stats = np.zeros(3)
        self._extend(problem if window is None else problem.extended(window))

    def _extend(self, longer: Problem) -> None:
        self._task = longer
        self._floors = longer.floors

    # ------------------------------------------------------------ filter

    def observe(self, state: State, y: Array) -> tuple[Belief, tuple[float, float, int]]:
        """Predict with the last input, if there is one, and update with y; the belief given is left as it is."""
        module, numbers = self._package.filter, self._package.numbers
        Q, R, D, Xi = self._noise
        work, ws = self._filter_tools
        mean, covariance = state.belief.mean.copy(), state.belief.covariance.copy()
        held = covariance
        if self._package.SQUARE_ROOT:
            held = np.zeros_like(covariance)
            module.factorise(covariance, held)
        if state.u is not None:
            module.predict(state.k - 1, mean, held, state.u, Q, D, Xi, numbers["data"], work, ws)
        status = module.update(state.k, mean, held, y, R, numbers["data"], work, ws, self._stats)
        if status == module.NOT_FINITE:
            what = "the measurement is infinite" if np.any(np.isinf(y)) else "the belief is not finite any more"
            raise SymdualError(f"{what} at step {state.k}")
        if self._package.SQUARE_ROOT:
            module.covariance(held, covariance)
        return Belief(mean, covariance), (float(self._stats[0]), float(self._stats[1]), int(self._stats[2]))

    # ------------------------------------------------------------ decision

    def _end(self, k: int) -> int:
        if self._window is not None:
            if k + self._window > self._task.horizon:
                self._extend(self._task.extended(self._task.horizon + self._window))
            return k + self._window
        if k >= self._problem.horizon:
            raise SymdualError(f"the episode ended at step {self._problem.horizon}; use window= for endless operation")
        return self._problem.horizon

    def decide(self, k: int, belief: Belief) -> tuple[Array, int]:
        """Choose the input of step k; returns it with the status of the certainty-equivalent plan."""
        u = np.zeros(self._package.NU)
        status = self._call(self._cost, self._searching, k, belief, self._settings, u)
        return u, status

    def _call(self, cost: Any, searching: bool, k: int, belief: Belief, settings: Array, u: Array) -> int:
        task, end = self._task, self._end(k)
        task = self._task  # `_end` may have made it longer
        Q, R, D, Xi = self._noise
        status = self._package.decision.decide(
            cost, searching, self._floors[k], k, end, belief.mean, belief.covariance, Q, R, D, Xi,
            task.state_cost, task.input_cost, task.reference, task.bounds, self._package.numbers["data"],
            settings, *self._plan_tools, u,
        )  # fmt: skip
        return int(status)

    # ------------------------------------------------------------ story

    def story(self, state: State, belief: Belief, statistics: tuple[float, float, int], u: Array, status: int) -> Info:
        """Collect what a decision has left behind in the workspaces."""
        module = self._package.decision
        *_, candidates, out, report = self._plan_tools
        used = np.isfinite(out[:, 0])
        order = np.lexsort(candidates[used].T[::-1])
        report = report.copy()
        candidates, out = candidates[used][order].copy(), out[used][order].copy()
        parts = self._parts(state.k, belief, u, report)
        states, inputs = self._plan(state.k, belief, u)
        return Info(
            k=state.k,
            before=state.belief,
            after=belief,
            log_likelihood=statistics[0],
            nis=statistics[1],
            measured=statistics[2],
            candidates=candidates,
            costs=out[:, :3],
            parts=parts,
            planned_states=states,
            planned_inputs=inputs,
            status=("converged", "iteration limit", "stalled", "not finite", "bad argument")[status],
            evaluations=int(report[module.REPORT_EVALUATIONS]),
            fallbacks=int(report[module.REPORT_FALLBACKS]),
            iterations=int(report[module.REPORT_ITERATIONS]),
        )

    def _parts(self, k: int, belief: Belief, u: Array, report: Array) -> Parts:
        module = self._package.decision
        nominal, uncertain = float(report[module.REPORT_NOMINAL]), float(report[module.REPORT_UNCERTAIN])
        if self._kind == "certain":
            return Parts(nominal, 0.0, 0.0, 0.0)
        constants = self._package.nominal
        if self._kind == "bonus":
            return Parts(nominal, 0.0, 0.0, float(self._settings[constants.SET_BONUS]) * uncertain)
        weight = float(self._settings[constants.SET_WEIGHT])
        unlearned = self._settings.copy()
        unlearned[constants.SET_LEARNING] = 0.0
        still = weight * self._uncertain(k, belief, u, unlearned)
        return Parts(nominal, still, weight * uncertain - still, 0.0)

    def _uncertain(self, k: int, belief: Belief, u: Array, settings: Array) -> float:
        """Jd of the plan through u, after the certainty-equivalent one was planned again."""
        module = self._package.dual_cost
        nominal = self._package.nominal
        evaluate = {
            "structured": module.dual_costs_structured,
            "lowrank": getattr(module, "dual_costs_lowrank", None),
            "second_order": module.dual_costs_second_order,
        }[self._kind]
        task, end = self._task, self._end(k)
        Q, R, D, Xi = self._noise
        work, small, wide, *_ = self._plan_tools
        data = self._package.numbers["data"]
        cost = (task.state_cost, task.input_cost, task.reference, task.bounds, data)
        nominal.begin(k, end, belief.mean, D, *cost, work, small, wide)
        out = np.zeros((1, module.OUT))
        assert evaluate is not None
        evaluate(k, end, *belief, Q, R, D, Xi, *cost, settings, u[None].copy(), work, small, wide, out)
        return float(out[0, module.OUT_UNCERTAIN])

    def _plan(self, k: int, belief: Belief, u: Array) -> tuple[Array, Array]:
        nominal, task, end = self._package.nominal, self._task, self._end(k)
        work, small, wide, *_ = self._plan_tools
        cost = (task.state_cost, task.input_cost, task.reference, task.bounds, self._package.numbers["data"])
        nominal.begin(k, end, belief.mean, self._noise[2], *cost, work, small, wide)
        _, _, slot, _ = nominal.nominal(k, end, u, *cost, self._settings, work, small, wide)
        states, inputs = np.zeros((end - k + 1, self._package.NX)), np.zeros((end - k, self._package.NU))
        nominal.trajectory(k, end, slot, small, wide, states, inputs)
        return states, inputs
