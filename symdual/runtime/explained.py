"""Episodes to be looked at: every decision with its belief, its plan with bands, and the cost over the input.

The cost of a first input, as `dual` counts it, is a sum of three parts:

    J(u) = Jbar(u) + w Jd(u),   Jbar: certainty-equivalent,   w Jd = caution + probing,

caution being w Jd if nothing more were learned about theta, and probing what the planned learning takes off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from symdual.common.arrays import Array
from symdual.common.display import shown
from symdual.common.errors import SymdualError
from symdual.common.transforms import values_of
from symdual.controllers import CONTROLLERS, knows_truth
from symdual.runtime import evaluate
from symdual.runtime.belief import Belief
from symdual.runtime.closed_loop import NoiseDraws
from symdual.runtime.controller import Controller, controller
from symdual.runtime.costs import cost_kind
from symdual.runtime.info import Info, Parts, State
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.noise import noise_of_measurement, noise_of_step
from symdual.runtime.objective import constraints_of
from symdual.runtime.problem import Problem
from symdual.runtime.prospects import outlook, prices
from symdual.runtime.results import Chunk
from symdual.runtime.signals import place_of
from symdual.runtime.sweep import Sweep

POINTS = 61  # of a curve
Tell = Callable[[str, float], None]


class Curve(NamedTuple):
    """The cost over one input, the others as they were chosen: values (N,) with the three parts of their cost (N,)."""

    input: str
    values: Array
    certainty_equivalent: Array
    caution: Array
    probing: Array

    @property
    def cost(self) -> Array:
        """The sum of the parts."""
        return self.certainty_equivalent + self.caution + self.probing


@dataclass(frozen=True, eq=False)
class Decision:
    """A decision and what it was made from.

    Args:
        k: the step; inputs: the names of the inputs; u: what was chosen, (NU,).
        y: the measurement of this step, NaN where there was none.
        belief: what was believed when it was made; parts: the cost of the chosen input.
        plan_states, plan_inputs: the plan, (S+1, NX) and (S, NU).
        unmeasured: the standard deviations of z along the plan if nothing were measured, (S+1, NZ).
        measured: the same with the measurements that the plan expects: what it will have learned.
        curves: the cost over each input. Where a problem has constraints, all three parts are those of one plan, at the
            back-offs that the controller keeps: what learning gains by shorter ones is certainty-equivalent. They count
            excesses as `dual` does; `planned` itself counts what is expected of them, which is less.
    """

    k: int
    inputs: tuple[str, ...]
    u: Array
    y: Array
    belief: Belief
    parts: Parts
    plan_states: Array
    plan_inputs: Array
    unmeasured: Array
    measured: Array
    curves: tuple[Curve, ...]


@dataclass(frozen=True, eq=False)
class ExplainedEpisode:
    """An episode of one controller: true states (K+1, NX), parameters (K+1, p), beliefs, inputs, decisions.

    `failure` says why it ended before its time, if it did.
    """

    controller: str
    problem: Problem
    states: Array
    truths: Array
    beliefs: tuple[Belief, ...]
    decisions: tuple[Decision, ...]
    failure: str | None = None


class Explained(Mapping[str, ExplainedEpisode]):
    """One episode with each controller, all with the same random draws; `explained["dual"]` is a `ExplainedEpisode`.

    >>> explained = symdual.explain(problem, ["ce", "dual"])
    >>> explained["dual"].decisions[0].parts.probing < 0
    True
    >>> explained.html(folder / "decisions.html").name
    'decisions.html'
    """

    def __init__(self, plan: Sweep, run: int, episodes: Mapping[str, ExplainedEpisode], model: Any = None) -> None:
        self.plan, self.run, self.model = plan, run, model
        self._episodes = dict(episodes)

    def html(self, path: str | Path) -> Path:
        """Write a page that shows every decision: one file with a slider over time, no network needed.

        Unknown functions are drawn as such where a scenario or a model file is given.
        """
        shown("decisions as a page", self, Path(path))
        return Path(path)

    def __getitem__(self, name: str) -> ExplainedEpisode:
        return self._episodes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._episodes)

    def __len__(self) -> int:
        return len(self._episodes)

    def __repr__(self) -> str:
        return f"<Explained {self.plan.problem.name}: run {self.run} of {', '.join(self)}, seed {self.plan.seed}>"


def explained(
    plan: Sweep, run: int, model: Any = None, points: int = POINTS, tell: Tell = lambda what, share: None
) -> Explained:
    """Look at one run of a sweep: first the episodes, then, over a range of inputs that fits all, the decisions.

    `model` is the `Model` of the package, where it is at hand: unknown functions are then drawn as such.
    """
    noise_draws, count = plan.noise_draws([Chunk("", run, run + 1)]), len(plan.controllers)
    loops = []
    for number, name in enumerate(plan.controllers):
        tell(f"compiling or loading {name}", number / count / 2)
        loops.append(_Loop(plan, name, noise_draws))
        loops[-1].run()
    grids = _grids(plan.problem, loops, points)
    episodes = {}
    for number, loop in enumerate(loops):
        decisions = []
        for moment in loop.moments:
            tell(f"decisions of {loop.name}", (1 + (number + moment.info.k / plan.steps) / count) / 2)
            decisions.append(loop.decision(moment, grids))
        episodes[loop.name] = loop.episode(decisions)
    return Explained(plan, run, episodes, model)


class _Moment(NamedTuple):
    """A decision as it was met: the state that it was made in, the input, and what the controller told."""

    state: State
    u: Array
    y: Array
    info: Info


class _Loop:
    """The closed loop of one controller, in Python."""

    def __init__(self, plan: Sweep, name: str, noise_draws: NoiseDraws) -> None:
        problem, settings = plan.problem, plan.settings
        self.name, self._problem, self._steps = name, problem, plan.steps
        self._noise_draws, self._truth = noise_draws, noise_draws.truths[0]
        known = self._truth if knows_truth(name) else None
        options = replace(settings.options, seed=int(noise_draws.seeds[0]))
        self._controller: Controller = controller(problem, name, settings.order, settings.window, known, options)
        steps = problem.horizon if settings.window is None else settings.window
        self._form = cost_kind(self._controller.problem, "dual", 1, steps)
        self.moments: list[_Moment] = []
        self._states, self._truths, self._beliefs = [noise_draws.starts[0]], [self._truth], list[Belief]()
        self._failure: str | None = None

    def run(self) -> None:
        """Measure, decide, apply, to the end or until something is not finite."""
        state, y = self._controller.init(), np.full(self._problem.package.NY, np.nan)
        try:
            for k in range(self._steps):
                informed = self._informed(state, y)
                self._beliefs.append(informed.belief)
                state, u, info = self._controller.step(informed)
                self.moments.append(_Moment(informed, u, y, info))
                y = self._moved(k, u)
            self._beliefs.append(self._informed(state, y).belief)
        except SymdualError as failure:
            self._failure = str(failure)

    def _informed(self, state: State, y: Array) -> State:
        """The state with the measurement taken in; an oracle is told the true parameters of every step before that."""
        if knows_truth(self.name) and self._noise_draws.wander.shape[1]:
            state, _ = self._controller.update(state)
            mean = state.belief.mean.copy()
            mean[self._problem.package.NX :] = self._truths[-1]
            state = state._replace(belief=state.belief._replace(mean=mean))
        return self._controller.update(state, y)[0]

    def _moved(self, k: int, u: Array) -> Array:
        """Move the plant and measure it."""
        plant, before = self._plant(k), self._states[-1]
        x = evaluate.dynamics(plant, before, u, self._truths[-1], k)
        x = plant.within_bounds(x + noise_of_step(plant, k, before, u, self._noise_draws.process[0, k]))
        if not np.isfinite(x).all():
            raise SymdualError(f"the plant's state is not finite at step {k + 1}")
        wander = self._noise_draws.wander
        self._states.append(x)
        self._truths.append(wander[0, k] if wander.shape[1] else self._truth)
        plant = self._plant(k + 1)
        seen = evaluate.observation(plant, x, self._truths[-1], k + 1)
        return np.asarray(seen + noise_of_measurement(plant, k + 1, x, self._noise_draws.measurement[0, k]))

    def _plant(self, k: int) -> LoadedPackage:
        """The plant with its signals of a step."""
        plant, signals = self._problem.plant, self._problem.signals
        if signals is None:
            return plant
        data = plant.numbers["data"].copy()
        true = signals.of(plant)[1]
        data[place_of(plant)] = true[min(k, len(true) - 1)]
        return replace(plant, numbers={**plant.numbers, "data": data})

    def decision(self, moment: _Moment, grids: Sequence[Array]) -> Decision:
        """What a decision was made from."""
        solver, k, belief, info = self._controller.solver, moment.info.k, moment.state.belief, moment.info
        names, kind = list(self._problem.package.INPUTS), CONTROLLERS[self.name]
        order = info.order if 2 in kind.orders else 1
        form = self._form if order == 1 else "structured"
        curves = []
        for a, grid in enumerate(grids):
            candidates = np.repeat(moment.u[None], len(grid), axis=0)
            candidates[:, a] = grid
            curves.append(Curve(names[a], grid, *prices(solver, k, belief, candidates, form, order).T))
        parts = info.parts
        if (
            kind.cost == "dual" and kind.learning and constraints_of(self._problem.package)
        ):  # decisions themselves do not tell them apart
            still = float(prices(solver, k, belief, moment.u[None], form, order)[0, 1])
            parts = parts._replace(caution=still, probing=parts.caution - still)
        return Decision(
            k,
            tuple(names),
            moment.u,
            moment.y,
            belief,
            parts,
            info.planned_states,
            info.planned_inputs,
            outlook(solver, k, belief, info.planned_inputs, measuring=False),
            outlook(solver, k, belief, info.planned_inputs, measuring=True),
            tuple(curves),
        )

    def episode(self, decisions: Sequence[Decision]) -> ExplainedEpisode:
        """The episode with its decisions."""
        plant = self._problem.plant
        states, truths = np.array(self._states), values_of(plant.transforms[plant.NX :], np.array(self._truths))
        return ExplainedEpisode(
            self.name, self._problem, states, truths, tuple(self._beliefs), tuple(decisions), self._failure
        )


def _grids(problem: Problem, loops: Sequence[_Loop], points: int) -> list[Array]:
    """For each input, values around all that were applied, within its bounds."""
    grids = []
    for a, (lower, upper) in enumerate(problem.bounds.T):
        applied = np.array([0.0, *(moment.u[a] for loop in loops for moment in loop.moments)])
        margin = 0.5 * (np.ptp(applied) or 1.0)
        low, high = max(lower, applied.min() - margin), min(upper, applied.max() + margin)
        grids.append(np.linspace(low, high, points))
    return grids
