"""The controllers behind one small interface: `init`, `step`, and `act` for people who want three lines.

Which there are, and what each minimises, is listed in `symdual.controllers`. What they do is in the
package's own controller; here arguments are checked, a state goes in and out of it, and `Info` is collected.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from symdual.common.arrays import Array
from symdual.common.display import first_few, shown
from symdual.common.errors import SymdualError, did_you_mean
from symdual.common.named import Given
from symdual.common.named_arrays import NamedArray, named
from symdual.common.words import refuse_unknown
from symdual.controllers import CONTROLLERS, NAMES, knows_truth
from symdual.runtime.belief import Belief, checked_belief
from symdual.runtime.budgets import Budget
from symdual.runtime.constraints import warn_of_start
from symdual.runtime.evaluate import argument
from symdual.runtime.info import Info, State, Statistics
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.options import USUAL, Options
from symdual.runtime.problem import Problem
from symdual.runtime.saved import Find, read, save
from symdual.runtime.signals import Forecast
from symdual.runtime.solver import Solver
from symdual.runtime.standby import with_standby

#: what was measured: a vector, numbers by the names of measurements, or nothing
Measurement = ArrayLike | Mapping[Any, float | None] | None


@dataclass(frozen=True, eq=False, repr=False)
class Controller:
    """A controller for a problem.

    A controller has its own working memory: use one in each thread. A copy, or a pickled controller, has its own too
    and continues at the same step.

    Args:
        problem: what it is to solve. For `oracle` it must come from `Problem.for_oracle`; `controller` does that.
        name: one of `NAMES`.
        order: 1 (the paper's) or 2 (with the curvature of the dynamics) for `dual`. If a candidate that might have
            won, or one beside the winner, falls back to order 1, the whole decision is made at order 1.
        window: None to plan to the fixed end of the problem, or the length of a moving horizon for endless operation.
        options: the effort of `planned`, and the draws of `thompson`.
        budget: seconds after which a decision of `planned` takes its best plan so far. They become a number
            `Options.work`, by the measured speed of decisions on this machine; see `Info.planned`.

    >>> ce = symdual.controller(problem, "ce")
    >>> state = ce.init()
    >>> state, u, info = ce.step(state)               # the functional form of u = ce.act()
    >>> info.status, state.k
    ('converged', 1)
    """

    problem: Problem
    name: str
    order: int = 1
    window: int | None = None
    options: Options = USUAL
    budget: float | None = None
    _tools: Solver = field(init=False, repr=False)
    _live: list[State] = field(init=False, repr=False, default_factory=list)
    time_budget: Budget | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        """Check the choice and load the compiled decision."""
        self._check()
        if self.budget is not None:
            object.__setattr__(self, "time_budget", Budget(self.budget))
        self._equip()
        warn_of_start(self.problem, stacklevel=3)

    def _check(self) -> None:
        if self.name not in NAMES:
            raise SymdualError(
                f'there is no controller "{self.name}"{did_you_mean(self.name, NAMES)}; known: {", ".join(NAMES)}'
            )
        if self.order not in (1, 2):
            raise SymdualError(f"order must be 1 or 2, not {self.order!r}")
        if self.window is not None and self.window < 1:
            raise SymdualError(f"window must be at least 1, not {self.window}")
        if self.budget is not None and "work" not in CONTROLLERS[self.name].options:
            raise SymdualError(f'the controller "{self.name}" has no budget: it does the same work in every decision')
        if knows_truth(self.name) and np.any(self.problem.prior.covariance[:, self.problem.package.NX :]):
            raise SymdualError(
                'the oracle needs a problem without uncertain parameters; use controller(problem, "oracle")'
            )

    def _equip(self) -> None:
        packages = (self.problem.package, self.problem.plant)
        object.__setattr__(self, "_tools", with_standby(packages, lambda: Solver(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle what was asked for and what `act` remembers; the compiled functions are looked up again."""
        arguments = (self.problem, self.name, self.order, self.window, self.options, self.budget)
        return _restored, (arguments, tuple(self._live), self._tools.forecast_problem)

    def __repr__(self) -> str:
        window = "" if self.window is None else f", {self.window} steps ahead"
        place = f"step {self.k} of {self.problem.horizon}{window}"
        return f"<Controller {self.name} of {self.problem.name}: {place}, {self.belief!r}>"

    def __str__(self) -> str:
        """Where it is and what it believes, as a table."""
        return str(shown("a controller in a terminal", self))

    def _repr_html_(self) -> str:
        """Where it is and what it believes, for notebooks."""
        return str(shown("a controller in a notebook", self))

    @property
    def k(self) -> int:
        """The step of the next decision of `act`."""
        return self._live[0].k if self._live else 0

    def init(self, belief: Belief | None = None, guess: ArrayLike | None = None) -> State:
        """The state before the first step, from a belief or from the problem's prior.

        `guess` are inputs (steps, NU), an additional start for the first plan.
        """
        start = self.problem.prior if belief is None else checked_belief(self.problem.package, belief)
        return State(0, start, None, None if guess is None else self._tools.guessed(guess))

    def step(self, state: State, y: Measurement = None, signals: Forecast | None = None) -> tuple[State, Array, Info]:
        """Take the measurement of this step and choose its input; returns the next state, the input and its `Info`.

        The first measurement, if there is one, updates the belief without predicting. `y` is a vector, or a mapping
        from names of measurements to numbers; NaN, or a missing name, means not measured. `signals` is a forecast as
        in `act`.
        """
        self._tools.set_forecast(state.k, signals)
        informed, statistics = self.update(state, y)
        u, status, plans = self._tools.decide(informed)
        info = self._tools.info(state.k, state.belief, informed.belief, statistics, u, status)
        return State(state.k + 1, informed.belief, u, plans), self._named(u), info

    def update(self, state: State, y: Measurement = None) -> tuple[State, Statistics]:
        """Take the measurement of this step without choosing an input: predict with the input before, then update."""
        belief, statistics = self._tools.observe(state, self.measurement(y))
        return State(state.k, belief, None, state.plans), statistics

    def choose(self, state: State) -> tuple[State, Array]:
        """Choose the input of this step without measuring; `update` must have been called if an input was applied."""
        if state.u is not None:
            raise SymdualError(f"the input before step {state.k} is not in the belief yet: call update first")
        u, _, plans = self._tools.decide(state)
        return State(state.k + 1, state.belief, u, plans), self._named(u)

    def act(self, y: Measurement = None, signals: Forecast | None = None) -> Array:
        """Take a measurement and return the input to apply; the controller remembers its own state (see `reset`).

        `y` is a vector, or a mapping from names of measurements to numbers: NaN, or a missing name, means not
        measured.

        `signals` maps the names of signals to a forecast each: its value now and at the times that follow, or one
        number; a list that is shorter than the plan keeps its last value. It holds until another one is given.

        A `DoubtWarning` gives reasons to doubt an input, each kind once: see `Info.doubts`.
        """
        state = self._live[0] if self._live else self.init()
        self._tools.set_forecast(state.k, signals)
        belief, statistics = self._tools.observe(state, self.measurement(y))
        u, status, plans = self._tools.decide(State(state.k, belief, None, state.plans))
        self._tools.warn_of_doubts(state.k, belief, statistics, u, status)
        self._live[:] = [State(state.k + 1, belief, u, plans)]
        return self._named(u)

    def observe(self, y: Measurement = None) -> Belief:
        """Take a measurement into the belief that `act` holds, without choosing an input, and return it.

        For the last measurement of an episode, or for a further one of the same step; `act()` then chooses the input.
        """
        self._live[:] = [self.update(self._live[0] if self._live else self.init(), y)[0]]
        return self._live[0].belief

    def change(self, **numbers: Any) -> None:
        """Go on with other numbers from the next input on: references, weights, bounds, constraints, the horizon.

        They are the arguments of `Problem.changed`, and `window`. Belief, forecasts and plans are kept; a new start
        or prior holds from the next `reset`. Nothing is compiled, and a call that raises an error changes nothing.

        >>> dual = symdual.controller(problem, "dual")
        >>> dual.change(reference={"x": 2.0}, bounds={"u": (-0.5, 0.5)}, horizon=4)
        >>> dual.problem.horizon, abs(float(dual.act()["u"])) <= 0.5
        (4, True)
        """
        refuse_unknown("Controller.change", numbers, Problem.changed, "window")
        window = numbers.pop("window", self.window)
        problem = self.problem.changed(**numbers)
        if window is None and self.k > problem.horizon:
            raise SymdualError(f"the horizon cannot be {problem.horizon}: the controller is at step {self.k}")
        live = [self._with_constants(state, numbers.get("constants")) for state in self._live]
        before = self.problem, self.window, self._tools
        try:
            self._put(problem, window)
            self._check()
            self._equip()
        except BaseException:
            self._put(*before[:2])
            raise
        said = {str(name) for key in ("signals", "forecasts") for name in numbers.get(key) or ()}
        self._tools.continue_from(before[2], said)
        self._live[:] = live

    def _put(self, problem: Problem, window: int | None) -> None:
        object.__setattr__(self, "problem", problem)
        object.__setattr__(self, "window", window)

    def _with_constants(self, state: State, constants: Mapping[Any, ArrayLike] | None) -> State:
        """A state whose belief knows other constants, which are kept with what is remembered of Gaussian processes."""
        if constants is None or state.belief.memory is None:
            return state
        told = replace(self.problem, prior=state.belief).changed(constants=constants)
        return state._replace(belief=told.prior)

    def save(self, path: str | Path) -> None:
        """Write the controller to a file, in one go; `symdual.load_controller` goes on with it where it is now."""
        save(self, self._live[0] if self._live else None, self._tools.forecast_problem, Path(path))

    def reset(self, belief: Belief | None = None, guess: ArrayLike | None = None) -> None:
        """Forget what `act` has learned; the arguments are those of `init`."""
        self._live[:] = [self.init(belief, guess)]

    @property
    def solver(self) -> Solver:
        """The compiled functions behind the controller, for a closer look at its decisions."""
        return self._tools

    @property
    def belief(self) -> Belief:
        """The belief that `act` holds at this moment."""
        return self._live[0].belief if self._live else self.problem.prior

    def measurement(self, y: Measurement) -> Array:
        """A measurement as a vector (NY,), in which NaN stands for what was not measured."""
        return measured(self.problem.package, y)

    def _named(self, u: Array) -> NamedArray:
        return named(u.copy(), tuple(self.problem.package.INPUTS))


def _restored(arguments: tuple[Any, ...], live: tuple[State, ...], forecast_problem: Problem | None) -> Controller:
    copied = Controller(*arguments)
    copied._live[:] = live
    if forecast_problem is not None:
        copied._tools.use(forecast_problem)
    return copied


def load_controller(path: str | Path, find: Find, package: LoadedPackage | None = None) -> Controller:
    """The controller in a file, with a package that is given, or found under its name."""
    saved = read(Path(path))
    given = saved.arguments(find, package)
    problem = given[0]
    live = saved.state(problem.package)
    return _restored(given, () if live is None else (live,), saved.forecasts(problem))


def measured(package: LoadedPackage, y: Measurement) -> Array:
    """A measurement that is given as a vector or by names, as a vector in which NaN was not measured."""
    if y is not None and not hasattr(y, "keys"):
        return argument(unmasked(y), (package.NY,), "the measurement y")
    vector, known = np.full(package.NY, np.nan), package.MEASUREMENTS
    given: Any = {} if y is None else y
    for key, value in dict(given).items():
        name = str(key)
        if name not in known:
            hint = did_you_mean(name, known)
            raise SymdualError(f'nothing that is measured is called "{name}", only {first_few(list(known))}{hint}')
        if value is not None:
            vector[known[name]] = argument(value, (1,), f'the measurement "{name}"')[0]
    return vector


def unmasked(y: ArrayLike) -> ArrayLike:
    """A measurement in which NaN stands for what a masked array hides; anything else as it is."""
    if "numpy.ma" in sys.modules and isinstance(y, np.ma.MaskedArray):  # numpy takes 10 ms to import it
        return np.asarray(np.where(np.ma.getmaskarray(y), np.nan, np.ma.getdata(y)))
    return y


def controller(
    problem: Problem,
    name: str,
    order: int = 1,
    window: int | None = None,
    truth: Given | None = None,
    options: Options = USUAL,
    budget: float | None = None,
) -> Controller:
    """Make a controller; the oracle is given the problem's truth, or `truth` when that is drawn anew.

    `truth` is a mapping by names, in the user's units, or the vector theta.
    """
    if knows_truth(name):
        known = problem.truth if truth is None else truth
        if known is None:
            raise SymdualError("the oracle needs the true parameters, and the scenario has none; give truth=")
        problem = problem.for_oracle(known)
    elif name == "exact":
        problem = problem.by_numba()
    return Controller(problem, name, order, window, options, budget)
