"""`Scenario`: what is to be done with a model; every number in it is data.

L = sum_{k=0..T} (x_k - r_k)' W_k (x_k - r_k)  +  sum_{k=0..T-1} u_k' U_k u_k

and, where the scenario says so, 2 (u_k - s_k)' N_k (x_k - r_k), u_k - s_k in place of u_k, and any cost by expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from symdual.common.arrays import Array
from symdual.common.choices import choice_table, combinations
from symdual.common.display import shown
from symdual.common.errors import ModelError
from symdual.common.named import Given, Spans, complete, matrix, singles, vector
from symdual.common.numbers import (
    as_matrix,
    as_numbers,
    as_semidefinite,
    as_vector,
    as_weights,
    natural_order,
    require_joint,
)
from symdual.common.schedules import SignalSchedule, table
from symdual.common.transforms import between, numbers_of
from symdual.common.words import spelled
from symdual.spec.fitted import Source, read_fit
from symdual.spec.model import Model
from symdual.spec.names import check_name
from symdual.spec.objective import CostGiven, Objective, final_terms, stage_terms
from symdual.spec.objective import constraints as constraint_terms
from symdual.spec.past import Previous, depths, past_inputs
from symdual.spec.system import System, remembering

LONGEST = 1_000_000  # steps: costs and references of all of them are held in memory
Truth = Given
Schedule = Given | Callable[[int], Given]


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Scenario:
    """A task for a model: horizon, cost, start, prior, and the plant.

    Args:
        model: the controller's model.
        horizon: T, the number of inputs.
        state_cost, input_cost: W and U as a number, a diagonal, a matrix, or a mapping such as {"position": 1.0},
            with 0 for all others; or a function of the step that returns one of these. 1 by default, and 0 if there
            is a `cost`.
        reference: r as a number, a vector or a mapping by names, or a function of the step that returns one.
        input_reference: s, likewise: the inputs cost (u - s)' U (u - s).
        cross_cost: N, a matrix of inputs by states or a function of the step that returns one.
        cost: an additional cost of each step: a list of residuals in states and inputs, whose squares are summed, or
            any expression with two derivatives. cost_weights: a number for each residual (or one for all, or a
            function of the step), 1 by default.
        terminal_cost, terminal_weights: the same for the last state.
        constraints: inequalities in states, inputs, signals and unknowns, such as [position <= 1.0]. They are soft:
            the squared excess costs constraint_weight (a number, or one for each; None for a thousand times the
            curvature of the cost), so that a plan always exists. Each holds with the given probability, by a back-off
            from the uncertainty that remains after learning; `ce` has no back-off.
        choices: a mapping from an input to a finite set of values, such as {valve: [0.0, 1.0]}. A decision tries all
            combinations for the present input; the rest of its plan may lie anywhere between the smallest and the
            largest value.
        signals: a mapping from a signal of the model, its cost or its plant to its values: one number, one for each
            of the T + 1 times (a shorter list keeps its last value), or a function of the step. All others must be
            given to `act` at run time.
        forecasts: the values the controller expects, if they differ from the true ones.
        past: a mapping from an input to its values before the start (`previous`), as a number or a list with the most
            recent one first; zero by default.
        start: the mean of x_0, zero by default; start_covariance: its covariance, zero by default (it is known). Both
            may be mappings by names, too.
        prior_mean, prior_covariance: those of theta in the order of `Model.unknown_names`, instead of the model's
            own, or mappings by the names of unknowns, with the model's own for all others. Like truth they are in
            your units; correlations of unknowns with bounds are those of their logarithms or logits.
        plant: the true system, the model itself by default; its noise is the noise of the simulation, and its
            transition and drift move its parameters. Without a plant of its own, a model drifts in simulations only
            on request.
        truth: the plant's true parameters at the start, as a mapping from name to number (or list, for the weights of
            a family) or as a vector; a function of the step that returns one, for parameters that jump or drift as
            prescribed; None to draw them from the prior.
        bonus: tau, the weight of the exploration bonus.
        dual_weight: the weight of the dual part of the cost.
        fitted: the file of `symdual fit`, or its content as a mapping: it gives start, start_covariance, prior_mean
            and prior_covariance where they are not given here.
        name: the scenario's name; the variable's or file's name by default.

    >>> x, u = sympy.symbols("x u")
    >>> model = symdual.Model([x], [u], [x + symdual.unknown("b", 1.0, 2.0) * u], process_noise=0.1)
    >>> symdual.Scenario(model, horizon=10, state_cost=1.0, input_cost=0.1, start=1.0, reference=0.0).horizon
    10
    """

    name: str
    model: Model
    horizon: int
    state_cost: Array
    input_cost: Array
    reference: Array
    input_reference: Array
    cross_cost: Array
    objective: Objective | None
    cost_weights: Array
    terminal_weights: Array
    probabilities: Array
    constraint_weights: Array
    choices: Array
    signal_names: tuple[str, ...]
    signals: Array
    forecasts: Array
    past: Array
    start: Array
    start_covariance: Array
    prior_mean: Array
    prior_covariance: Array
    plant: Model
    truth: Array | None
    truth_path: Array | None
    bonus: float
    dual_weight: float

    @spelled
    def __init__(
        self,
        model: Model,
        horizon: int,
        *,
        state_cost: Schedule | None = None,
        input_cost: Schedule | None = None,
        reference: Schedule = 0.0,
        input_reference: Schedule | None = None,
        cross_cost: Schedule | None = None,
        cost: CostGiven | None = None,
        cost_weights: Schedule = 1.0,
        terminal_cost: CostGiven | None = None,
        terminal_weights: ArrayLike = 1.0,
        constraints: Sequence[Any] | Any = (),
        probability: ArrayLike = 0.95,
        constraint_weight: ArrayLike | None = None,
        choices: Mapping[Any, ArrayLike] | None = None,
        signals: Mapping[Any, SignalSchedule] | None = None,
        forecasts: Mapping[Any, SignalSchedule] | None = None,
        past: Mapping[Any, ArrayLike] | None = None,
        start: Given | None = None,
        start_covariance: Given | None = None,
        prior_mean: Given | None = None,
        prior_covariance: Given | None = None,
        plant: Model | None = None,
        truth: Truth | Callable[[int], Truth] | None = None,
        bonus: float = 1.0,
        dual_weight: float = 1.0,
        fitted: Source | None = None,
        name: str = "",
    ) -> None:
        horizon, plant = _whole(horizon), model if plant is None else plant
        _check_plant(model, plant)
        n, m, p = len(model.own_states), len(model.inputs), len(model.prior_mean)
        unknowns = {name: place for name, place in model.unknown_places.items() if name not in model.process_names}
        weights = as_numbers([bonus, dual_weight], "bonus and dual_weight")
        if weights.min() < 0:
            raise ModelError("bonus and dual_weight must not be negative")
        mean, prior = model.stated_prior
        if fitted is not None:
            known = read_fit(fitted)
            mean, prior = known.prior(model.unknown_names, mean, prior)
            if known.start is not None:
                start = known.start[0] if start is None else start
                start_covariance = known.start[1] if start_covariance is None else start_covariance

        def put(**values: object) -> None:
            for key, value in values.items():
                object.__setattr__(self, key, value)

        put(name=check_name(name, "the scenario") if name else "", model=model, plant=plant, horizon=horizon)
        stage, final = stage_terms(cost, model, "cost"), final_terms(terminal_cost, model, "terminal_cost")
        usual = 0.0 if stage or final else 1.0
        W, U = (usual if given is None else given for given in (state_cost, input_cost))
        states, inputs = (_places(own) for own in (model.own_states, model.inputs))
        put(state_cost=_schedule(W, horizon + 1, lambda v, w: matrix(np.zeros((n, n)), v, states, w), "state_cost"))
        put(input_cost=_schedule(U, horizon, lambda v, w: matrix(np.zeros((m, m)), v, inputs, w), "input_cost"))
        put(reference=_schedule(reference, horizon + 1, lambda v, w: vector(np.zeros(n), v, states, w), "reference"))
        s, N = (0.0 if given is None else given for given in (input_reference, cross_cost))
        put(input_reference=_schedule(s, horizon, lambda v, w: vector(np.zeros(m), v, inputs, w), "input_reference"))
        put(cross_cost=_schedule(N, horizon, lambda v, w: as_matrix(v, m, n, w), "cross_cost"))
        require_joint(self.state_cost, self.input_cost, self.cross_cost)
        constrained_terms = constraint_terms(constraints, model)
        put(
            probabilities=_probabilities(probability, len(constrained_terms)),
            constraint_weights=_constraint_weights(constraint_weight, len(constrained_terms)),
        )
        bounds = np.stack([model.lower, model.upper])
        put(choices=choice_table(choices or {}, [u.name for u in model.inputs], bounds))
        more = bool(stage or final or constrained_terms) or input_reference is not None or cross_cost is not None
        asked = Objective(stage, final, constrained_terms)
        put(objective=asked if more else None)
        sizes = len(stage.expressions), len(final.expressions)
        put(cost_weights=_schedule(cost_weights, horizon, lambda v, w: as_weights(v, sizes[0], w), "cost_weights"))
        put(terminal_weights=as_weights(terminal_weights, sizes[1], "terminal_weights"))
        heard = {s.name: s for s in (*model.signals, *plant.signals, *asked.signals)}
        names = tuple(natural_order(heard))
        true = table(signals, names, horizon + 1, "signals", None)
        put(signal_names=names, signals=true)
        put(forecasts=table(forecasts, names, horizon + 1, "forecasts", true))
        put(start=vector(np.zeros(n), 0.0 if start is None else start, states, "start"))
        _require_within(self.start, model, plant)
        spread = 0.0 if start_covariance is None else start_covariance
        put(start_covariance=matrix(np.zeros((n, n)), spread, states, "start_covariance"))
        mean = mean if prior_mean is None else vector(mean, prior_mean, unknowns, "prior_mean")
        whole = as_semidefinite(prior, p, "prior_covariance")
        if prior_covariance is not None:
            whole = matrix(whole, prior_covariance, unknowns, "prior_covariance")
        mean, whole = model.prior_of_theta(mean, whole, "the prior of the scenario")
        put(prior_mean=mean, prior_covariance=whole)
        first, path = _truths(plant, truth, horizon)
        put(truth=first, truth_path=path, bonus=float(weights[0]), dual_weight=float(weights[1]))
        expressions = asked.expressions
        for symbol in sorted({p for e in (*expressions, *model.states) for p in e.atoms(Previous)}, key=str):
            if symbol.steps > horizon:
                raise ModelError(f"{symbol.written} looks back more steps than the horizon of {horizon} has")
        put(past=past_inputs(past, model.inputs, horizon))
        put(**self._with_memory(remembering(model, depths(expressions, model.inputs))))

    def __repr__(self) -> str:
        return f"<Scenario {self.name or 'without a name'}: {self.horizon} steps with {self.model!r}>"

    def _repr_html_(self) -> str:
        """What is to be done, and the equations, for notebooks."""
        return str(shown("a scenario in a notebook", self))

    def completed(self, name: str, renamed: Mapping[int, Model]) -> Scenario:
        """Return the scenario under `name`, with its models under the names that their file gives them."""
        models = {role: renamed.get(id(own), own) for role, own in (("model", self.model), ("plant", self.plant))}
        for role, own in models.items():
            if not own.name:
                raise ModelError(
                    f'the {role} of the scenario "{name}" has no name: give it one or make it a variable of the file'
                )
        return self._changed(name=check_name(name, "the scenario"), **models)

    def remembering(self, system: System) -> Scenario:
        """Return the scenario with an entry for each state of a system, which may remember more inputs than its own."""
        return self._changed(**self._with_memory(system))

    def _changed(self, **parts: object) -> Scenario:
        twin = object.__new__(Scenario)
        for key, value in (self.__dict__ | parts).items():
            object.__setattr__(twin, key, value)
        return twin

    def _with_memory(self, model: System) -> dict[str, Array]:
        """The arrays that have an entry for each state; what remembers inputs costs nothing and starts as they were."""
        own, known = len(model.own_states), model.states[len(model.own_states) :]
        more = (0, len(known))
        square, rows = ((0, 0), more, more), ((0, 0), more)
        inputs = [model.inputs.index(state.of) for state in known]
        before = np.array([self.past[a, state.steps - 1] for a, state in zip(inputs, known, strict=True)])
        return {
            "state_cost": np.pad(self.state_cost[:, :own, :own], square),
            "reference": np.pad(self.reference[:, :own], rows),
            "cross_cost": np.pad(self.cross_cost[:, :, :own], ((0, 0), (0, 0), more)),
            "start": np.concatenate([self.start[:own], before]),
            "start_covariance": np.pad(self.start_covariance[:own, :own], (more, more)),
        }

    def objective_of(self, model: Model) -> Objective | None:
        """What the scenario asks of the code of its model or, in the symbols of the plant, of the plant's."""
        own, there = self.model, self.plant
        if self.objective is None or model.own_states == own.own_states:
            return self.objective
        pairs = zip((*own.own_states, *own.inputs), (*there.own_states, *there.inputs), strict=True)
        return self.objective.moved(dict(pairs))

    @property
    def remembered(self) -> dict[int, int]:
        """How many steps back the cost looks at inputs, by their position."""
        return {} if self.objective is None else depths(self.objective.expressions, self.model.inputs)

    @property
    def combinations(self) -> int:
        """How many combinations of inputs with a finite set of values there are; zero without such inputs."""
        return len(combinations(self.choices))

    def of_plant(self) -> Scenario:
        """The same scenario for one who believes in the plant, with the plant's own prior."""
        prior = as_semidefinite(self.plant.prior_covariance, len(self.plant.prior_mean), "prior_covariance")
        return self._changed(model=self.plant, prior_mean=self.plant.prior_mean, prior_covariance=prior)

    def numbers(self) -> dict[str, Array]:
        """The scenario as arrays, as they are stored beside the generated code."""
        arrays = {
            "state_cost": self.state_cost,
            "input_cost": self.input_cost,
            "reference": self.reference,
            "start": self.start,
            "start_covariance": self.start_covariance,
            "prior_mean": self.prior_mean,
            "prior_covariance": self.prior_covariance,
            "weights": np.array([self.bonus, self.dual_weight]),
        }
        if self.objective is not None:
            arrays |= {"input_reference": self.input_reference, "cross_cost": self.cross_cost}
            arrays |= {"cost_weights": self.cost_weights, "terminal_weights": self.terminal_weights}
            if self.objective.constraints:
                arrays |= {"probabilities": self.probabilities, "constraint_weights": self.constraint_weights}
        if self.choices.size:
            arrays["choices"] = self.choices
        for column, name in enumerate(self.signal_names):
            arrays[f"signal.{name}"] = np.stack([self.signals[:, column], self.forecasts[:, column]])
        if self.truth_path is not None:
            arrays["truth_path"] = self.truth_path
        return arrays if self.truth is None else arrays | {"truth": self.truth}


def _whole(horizon: int) -> int:
    if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or horizon < 1:
        raise ModelError(f"the horizon must be a whole number of at least 1, but is {horizon!r}")
    if horizon > LONGEST:
        raise ModelError(f"the horizon is {horizon}, and no more than {LONGEST} steps can be planned at once")
    return int(horizon)


def _check_plant(model: Model, plant: Model) -> None:
    for what, given in (("model", model), ("plant", plant)):
        if not isinstance(given, Model):
            raise ModelError(f"the {what} of a scenario must be a Model, but is {given!r}")
    for role in ("own_states", "inputs", "observation"):
        own, other = len(getattr(model, role)), len(getattr(plant, role))
        if own != other:
            raise ModelError(f"the plant has {other} {role.removeprefix('own_')}, but the model has {own}")


def _places(symbols: Sequence[Any]) -> Spans:
    """Where the numbers of states or inputs stand, by their names."""
    return singles({symbol.name: place for place, symbol in enumerate(symbols)})


def _schedule(value: Schedule, steps: int, convert: Callable[[Any, str], Array], what: str) -> Array:
    """One array per step, first axis time."""
    if callable(value):
        return np.stack([convert(value(k), f"{what} at step {k}") for k in range(steps)])
    return np.repeat(convert(value, what)[None], steps, axis=0)


def _probabilities(given: ArrayLike, count: int) -> Array:
    values = as_vector(given, count, "probability")
    if count and not (values.min() >= 0.5 and values.max() < 1.0):
        raise ModelError(f"probability must be at least 0.5 and below 1, but is {given!r}")
    return values


def _constraint_weights(given: ArrayLike | None, count: int) -> Array:
    """NaN where a weight is to be chosen by the curvature of the cost."""
    return np.full(count, np.nan) if given is None else as_weights(given, count, "constraint_weight")


def _require_within(start: Array, *systems: Model) -> None:
    """Refuse a start where a state cannot be."""
    for system in systems:
        for i, sides in system.bounded_states.items():
            one = between(sides)
            if not one.lower <= start[i] <= one.upper:
                raise ModelError(
                    f'the start of "{system.states[i].name}" is {start[i]:g}, where it cannot be: its bounds are {one}'
                )


def _truths(
    plant: Model, given: Truth | Callable[[int], Truth] | None, horizon: int
) -> tuple[Array | None, Array | None]:
    """The true parameters at the start, and at the times 1 .. T where they are a schedule."""
    if not callable(given):
        return _truth(plant, given), None
    path = [_truth(plant, given(k)) for k in range(horizon + 1)]
    if any(theta is None for theta in path):
        raise ModelError("a truth that is a function of the step must return parameters at every step")
    values = np.array(path)
    return values[0], values[1:]


def _truth(plant: Model, truth: Truth | None) -> Array | None:
    if truth is None:
        return None if plant.unknown_places else np.zeros(0)
    given = complete(truth, plant.unknown_places, "truth")
    return numbers_of(plant.transforms, given, plant.unknown_names, "truth")
