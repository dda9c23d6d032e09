"""`Problem`: a scenario with its loaded package, everything that a controller needs to know as checked arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from symdual.common.arrays import Array
from symdual.common.choices import choice_table, combinations, narrowed
from symdual.common.display import shown
from symdual.common.errors import PackageError, SymdualError, did_you_mean
from symdual.common.lazy import cached_property
from symdual.common.named import Given, held, matrix, schedule, singles, vector
from symdual.common.numbers import require_semidefinite
from symdual.common.schedules import SignalSchedule
from symdual.common.transforms import belief_of, matched_belief, numbers_of, values_of
from symdual.common.words import spelled
from symdual.runtime import objective as objectives
from symdual.runtime.belief import Belief, checked_belief
from symdual.runtime.evaluate import argument, parameters, whole_number
from symdual.runtime.loading import LoadedPackage, load
from symdual.runtime.signals import Signals, changed_signals, checked_signals, signals_of, stored_signals


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """A scenario with its loaded package, ready for controllers and simulations.

        L = sum_{k=0..T} (x_k - r_k)' W_k (x_k - r_k)  +  sum_{k=0..T-1} u_k' U_k u_k

    Args:
        package: the generated package of the controller's model.
        state_cost, input_cost, reference: W (T+1, NX, NX), U (T, NU, NU), r (T+1, NX).
        prior: the belief before the first step.
        plant: the package of the true system.
        truth: the plant's true parameters at the start, or None to draw them from the prior. Like the means of
            beliefs they are those of z, with logarithms or logits of unknowns with bounds; `changed` takes your
            units.
        truth_path: the true parameters at the times 1 .. T, (T, p), if prescribed; otherwise they follow D.
        bonus, dual_weight: tau of the exploration bonus, and the weight of Jd.
        input_bounds: lower and upper bounds of the inputs (2, NU), instead of the model's own.
        objective: the numbers of any further cost in the code of the package; all zero by default.
        signals: the known quantities that change with time, if the package has some.
        choices: the values of inputs with a finite set of them (NU, most), ended by NaN; None without such inputs.

    >>> problem.changed(prior_mean={"b": 2.0}, horizon=4)
    <Problem toy: 4 steps, model toy, states x, inputs u, unknowns b, plant the model itself>
    """

    name: str
    package: LoadedPackage
    state_cost: Array
    input_cost: Array
    reference: Array
    prior: Belief
    plant: LoadedPackage
    truth: Array | None
    bonus: float = 1.0
    dual_weight: float = 1.0
    input_bounds: Array | None = None
    objective: objectives.Objective | None = None
    signals: Signals | None = None
    truth_path: Array | None = None
    choices: Array | None = None

    def __post_init__(self) -> None:
        """Check every array once, so that compiled code never has to."""
        p, horizon = self.package, len(self.input_cost)
        if horizon < 1:
            raise SymdualError("the horizon is zero: input_cost must have at least one step")
        checked = {
            "state_cost": argument(self.state_cost, (horizon + 1, p.NX, p.NX), "state_cost"),
            "input_cost": argument(self.input_cost, (horizon, p.NU, p.NU), "input_cost"),
            "reference": argument(self.reference, (horizon + 1, p.NX), "reference"),
        }
        require_semidefinite(checked["state_cost"], "state_cost")
        require_semidefinite(checked["input_cost"], "input_cost")
        if (self.plant.NX, self.plant.NU, self.plant.NY) != (p.NX, p.NU, p.NY):
            raise SymdualError(
                f"the plant {self.plant.name} has other numbers of states, inputs or measurements than {p.name}"
            )
        if self.truth is not None:
            checked["truth"] = argument(self.truth, (self.plant.NTHETA,), "truth")
        if self.truth_path is not None:
            checked["truth_path"] = argument(self.truth_path, (horizon, self.plant.NTHETA), "truth_path")
        for key in ("reference", "truth", "truth_path"):
            if key in checked and not np.all(np.isfinite(checked[key])):
                raise SymdualError(f"{key} contains a value that is NaN or infinite")
        if self.input_bounds is not None:
            checked["input_bounds"] = argument(self.input_bounds, (2, p.NU), "input_bounds")
            for name, low, high in zip(p.INPUTS, *checked["input_bounds"], strict=True):
                if not low < high:
                    raise SymdualError(f'the bounds of "{name}" leave no room: {low:g} to {high:g}')
        if self.choices is not None:
            checked["choices"] = self._checked_choices(self.choices)
        if not (0.0 <= self.bonus < np.inf and 0.0 <= self.dual_weight < np.inf):
            raise SymdualError("bonus and dual_weight must be finite and not negative")
        for key, value in checked.items():
            object.__setattr__(self, key, value)
        object.__setattr__(self, "prior", checked_belief(p, self.prior))
        more = objectives.checked(p, self.objective, checked["state_cost"], checked["input_cost"])
        object.__setattr__(self, "objective", more)
        object.__setattr__(self, "signals", checked_signals(p, self.plant, self.signals, horizon))

    def __repr__(self) -> str:
        p = self.package
        named = {"states": p.STATES, "inputs": p.INPUTS, "unknowns": p.UNKNOWNS}
        lists = [f"{what} {', '.join(names)}" for what, names in named.items() if names]
        plant = "the model itself" if self.plant_is_model else self.plant.name
        return f"<Problem {self.name}: {self.horizon} steps, model {p.name}, {', '.join(lists)}, plant {plant}>"

    def __str__(self) -> str:
        """What is to be done and what is known before, as a table."""
        return str(shown("a problem in a terminal", self))

    def _repr_html_(self) -> str:
        """What is to be done and what is known before, for notebooks."""
        return str(shown("a problem in a notebook", self))

    @property
    def horizon(self) -> int:
        """T, the number of inputs."""
        return len(self.input_cost)

    @cached_property
    def floors(self) -> Array:
        """How much of its square each input costs at least, (T, NU): it bounds how far it can be worth its cost."""
        given = {**self.package.numbers, "state_cost": self.state_cost, "input_cost": self.input_cost}
        if self.objective is not None:
            given |= self.objective._asdict()
        return self.package.settings.floors_of(given, self.horizon)

    @cached_property
    def bounds(self) -> Array:
        """Lower and upper bounds of the inputs, (2, NU); an input with choices stays between its extreme ones."""
        return self._given_bounds if self.choices is None else narrowed(self._given_bounds, self.choices)

    @property
    def _given_bounds(self) -> Array:
        if self.input_bounds is not None:
            return self.input_bounds
        return np.ascontiguousarray([self.package.numbers["lower"], self.package.numbers["upper"]])

    def _checked_choices(self, table: Array) -> Array:
        """Choices within the bounds, and no more of them than the code has room for."""
        room = getattr(self.package, "COMBINATIONS", 0)
        own = {name: table[row][~np.isnan(table[row])] for name, row in self.package.INPUTS.items()}
        checked = choice_table(
            {name: values for name, values in own.items() if len(values)}, list(own), self._given_bounds
        )
        if len(combinations(checked)) > room:
            raise SymdualError(
                f"the code of {self.package.name} has room for {room} combinations of inputs with a finite set of "
                f"values, not for {len(combinations(checked))}: give the choices to its Scenario"
            )
        return checked

    @property
    def start(self) -> Array:
        """The expected first state."""
        return self.prior.mean[: self.package.NX]

    @property
    def plant_is_model(self) -> bool:
        """Whether the plant is the model that the controller believes in."""
        return bool(self.plant.module.DIGEST == self.package.module.DIGEST)

    def for_oracle(self, truth: Given) -> Problem:
        """The same problem, bounds included, for a controller that knows the plant: its model and its true parameters.

        It believes that they move by the plant's transition D and never drift from there: Xi is zero, so that its
        belief in them stays certain. Where they do drift, an episode tells it the true ones at every step.
        """
        nx, plant = self.package.NX, self.plant
        require_parameters(plant)
        knowing = replace(plant, numbers={**plant.numbers, "drift": np.zeros_like(plant.numbers["drift"])})
        covariance = np.zeros((plant.NZ, plant.NZ))
        covariance[:nx, :nx] = self.prior.covariance[:nx, :nx]
        true = parameters(plant, truth, "truth")
        belief = Belief(np.concatenate([self.start, true]), covariance)
        signals = None if self.signals is None else self.signals.known
        return replace(
            self, package=knowing, prior=belief, truth=true, input_bounds=self._given_bounds, signals=signals
        )

    def by_numba(self) -> Problem:
        """The same problem through numba: for what C does not do, the controller `exact` and workers of a cluster."""
        return replace(self, package=self.package.through(None), plant=self.plant.through(None))

    def extended(self, steps: int) -> Problem:
        """The same problem with its cost and references held at their last values for `steps` more steps."""
        return self.changed(horizon=self.horizon + steps)

    @spelled
    def changed(
        self,
        *,
        horizon: int | None = None,
        state_cost: Given | Callable[[int], Given] | None = None,
        input_cost: Given | Callable[[int], Given] | None = None,
        reference: Given | Callable[[int], Given] | None = None,
        input_reference: Given | Callable[[int], Given] | None = None,
        cross_cost: ArrayLike | Callable[[int], ArrayLike] | None = None,
        cost_weights: ArrayLike | Callable[[int], ArrayLike] | None = None,
        terminal_weights: ArrayLike | None = None,
        probability: ArrayLike | None = None,
        constraint_weight: ArrayLike | None = None,
        signals: Mapping[Any, SignalSchedule] | None = None,
        forecasts: Mapping[Any, SignalSchedule] | None = None,
        start: Given | None = None,
        start_covariance: Given | None = None,
        prior_mean: Given | None = None,
        prior_covariance: Given | None = None,
        truth: Given | None = None,
        bounds: ArrayLike | Mapping[Any, tuple[float | None, float | None]] | None = None,
        choices: Mapping[Any, ArrayLike] | None = None,
        constants: Mapping[Any, ArrayLike] | None = None,
        bonus: float | None = None,
        dual_weight: float | None = None,
    ) -> Problem:
        """The same problem with other numbers; nothing is compiled again.

            problem.changed(prior_mean={"b": 2.0}, prior_covariance={"b": 0.5}, horizon=30, bounds={"force": (-1, 1)})

        Args:
            horizon: T; cost and reference are cut to it, or continued with their last values.
            state_cost, input_cost, reference, start, start_covariance, prior_mean, prior_covariance, truth: as in a
                `Scenario`, or mappings by the names of states, inputs and unknowns, which change only these.
            input_reference, cross_cost, cost_weights, terminal_weights, probability, constraint_weight: as in a
                `Scenario`, if the package has them.
            signals, forecasts: mappings from a signal to its values, as in a `Scenario`. A signal without a forecast of
                its own is believed as it is.
            bounds: a mapping from an input to its (lower, upper) bound, None for an open side, or both as (2, NU).
            choices: a mapping from an input to its finite set of values, for all inputs that have one; an empty one
                lets every input take any value. No more combinations than those of the model file's scenarios are
                possible.
            constants: a mapping from the name of a constant of the model to its value. It also applies to the plant
                if this is the model.
        """
        package, plant, memory = self.package, self.plant, self.prior.memory
        steps = self.horizon if horizon is None else whole_number(horizon, "the horizon")
        states, inputs = singles(package.STATES), singles(package.INPUTS)
        W, U, r = held(self.state_cost, steps + 1), held(self.input_cost, steps), held(self.reference, steps + 1)
        if state_cost is not None:
            W = schedule(W, state_cost, lambda now, new, at: matrix(now, new, states, f"state_cost{at}"))
        if input_cost is not None:
            U = schedule(U, input_cost, lambda now, new, at: matrix(now, new, inputs, f"input_cost{at}"))
        if reference is not None:
            r = schedule(r, reference, lambda now, new, at: vector(now, new, states, f"reference{at}"))
        mean, covariance = self.prior.mean, self.prior.covariance
        x, theta, unknowns = slice(0, package.NX), slice(package.NX, package.NZ), _unknowns_in_z(package)
        if start is not None:
            mean = vector(mean, start, states, "start", x)
        if start_covariance is not None:
            covariance = matrix(covariance, start_covariance, states, "start_covariance", x)
        if prior_mean is not None or prior_covariance is not None:  # which are in the user's units
            mean, covariance = belief_of(package.transforms, mean, covariance)
            if prior_mean is not None:
                mean = vector(mean, prior_mean, unknowns, "prior_mean", theta)
            if prior_covariance is not None:
                covariance = matrix(covariance, prior_covariance, unknowns, "prior_covariance", theta)
            mean, covariance = matched_belief(package.transforms, mean, covariance, package.belief_names, "the prior")
        if constants is not None:
            data = vector(package.numbers["data"], constants, _constants(package), "constants")
            package = replace(package, numbers={**package.numbers, "data": data})
            plant = package if self.plant is self.package else plant
            memory = None if memory is None else vector(memory, constants, _constants(package), "constants")
        return replace(
            self,
            package=package,
            plant=plant,
            state_cost=W,
            input_cost=U,
            reference=r,
            prior=Belief(mean, covariance, memory),
            truth=self.truth if truth is None else self._changed_truth(truth),
            truth_path=held(self.truth_path, steps) if self.truth_path is not None and truth is None else None,
            input_bounds=self.input_bounds if bounds is None else self._changed_bounds(bounds),
            choices=self.choices if choices is None else self._changed_choices(choices),
            bonus=self.bonus if bonus is None else bonus,
            dual_weight=self.dual_weight if dual_weight is None else dual_weight,
            objective=objectives.changed(
                package,
                self.objective,
                steps,
                *(input_reference, cross_cost, cost_weights, terminal_weights, probability, constraint_weight),
            ),
            signals=changed_signals(self.signals, steps + 1, signals, forecasts),
        )

    def _changed_choices(self, given: Mapping[Any, ArrayLike]) -> Array | None:
        return choice_table(given, list(self.package.INPUTS), self._given_bounds) if given else None

    def _changed_truth(self, given: Given) -> Array:
        plant = self.plant
        transforms, names = plant.transforms[plant.NX :], plant.belief_names[plant.NX :]
        now = np.full(plant.NTHETA, np.nan) if self.truth is None else values_of(transforms, self.truth)
        new = vector(now, given, plant.UNKNOWNS, "truth")
        for name, (begin, count) in plant.UNKNOWNS.items():
            if np.isnan(new[begin : begin + count]).any():
                raise SymdualError(f'truth has no value for the unknown "{name}" of the plant')
        return numbers_of(transforms, new, names, "truth")

    def _changed_bounds(self, given: ArrayLike | Mapping[Any, tuple[float | None, float | None]]) -> Array:
        if not isinstance(given, Mapping):
            return argument(given, (2, self.package.NU), "bounds")
        new = self._given_bounds.copy()
        for key, pair in given.items():
            name = str(key)
            if name not in self.package.INPUTS:
                hint = did_you_mean(name, self.package.INPUTS)
                raise SymdualError(f'bounds names "{name}", which is not an input{hint}')
            try:
                lower, upper = pair
                new[:, self.package.INPUTS[name]] = [
                    -np.inf if lower is None else lower,
                    np.inf if upper is None else upper,
                ]
            except (TypeError, ValueError) as failure:
                raise SymdualError(
                    f'the bounds of "{name}" must be a pair (lower, upper), but are {pair!r}'
                ) from failure
        return new


def _unknowns_in_z(package: LoadedPackage) -> dict[str, tuple[int, int]]:
    """The unknowns that have a prior of their own, by their place in z; that of a Gaussian process is its kernel."""
    processes = {name for arrays in package.PROCESSES.values() for name in arrays}
    return {
        name: (package.NX + start, count) for name, (start, count) in package.UNKNOWNS.items() if name not in processes
    }


def _constants(package: LoadedPackage) -> dict[str, tuple[int, int]]:
    """The known numbers that may be changed, by their place in data: all but what Gaussian processes remember."""
    memories = tuple(f"{family}_" for family in package.PROCESSES)
    entries = package.DATA_ENTRIES.items()
    signals = signals_of(package)
    return {
        name: (start, count)
        for name, (start, count) in entries
        if name not in signals and (count == 1 or not name.startswith(memories))
    }


def problem(package: LoadedPackage, scenario: str | None = None) -> Problem:
    """The problem of a scenario of a generated package; the only scenario if no name is given."""
    if not package.plants:
        raise SymdualError(f"the model file of {package.name} has no Scenario; add one, or build a Problem from arrays")
    if scenario is None:
        if len(package.plants) > 1:
            raise SymdualError(f"{package.name} has several scenarios; name one of {', '.join(sorted(package.plants))}")
        (scenario,) = package.plants
    if scenario not in package.plants:
        hint = did_you_mean(scenario, package.plants)
        raise SymdualError(f'{package.name} has no scenario "{scenario}"{hint}')
    prefix = f"scenario.{scenario}."
    stored = {key.removeprefix(prefix): value for key, value in package.numbers.items() if key.startswith(prefix)}
    plant = package.plants[scenario]
    return from_numbers(scenario, package, package if plant == package.name else _other_plant(package, plant), stored)


def _other_plant(package: LoadedPackage, name: str) -> LoadedPackage:
    """The package of a plant that is another model, the very one that the scenario was written for."""
    plant = load(package.folder.parent / name).through(None if package.c is None else package.c.make)
    if plant.model_digest != package.plant_digests[name]:
        raise PackageError(
            f"{plant.folder} is not the plant that {package.folder} was generated with: one of them is older than the "
            "model file; run `symdual generate` on it and load them again"
        )
    return plant


def from_numbers(name: str, package: LoadedPackage, plant: LoadedPackage, stored: Mapping[str, Array]) -> Problem:
    """The problem that the arrays of `Scenario.numbers` describe."""
    nx = package.NX
    covariance = np.zeros((package.NZ, package.NZ))
    covariance[:nx, :nx] = stored["start_covariance"]
    covariance[nx:, nx:] = stored["prior_covariance"]
    return Problem(
        name=name,
        package=package,
        state_cost=stored["state_cost"],
        input_cost=stored["input_cost"],
        reference=stored["reference"],
        prior=Belief(np.concatenate([stored["start"], stored["prior_mean"]]), covariance),
        plant=plant,
        truth=stored.get("truth"),
        bonus=float(stored["weights"][0]),
        dual_weight=float(stored["weights"][1]),
        objective=objectives.stored(package, len(stored["input_cost"]), dict(stored)),
        signals=stored_signals(package, plant, stored),
        truth_path=stored.get("truth_path"),
        choices=stored.get("choices"),
    )


def require_parameters(plant: LoadedPackage) -> None:
    """Raise when a plant has an unknown function, of which no list of true parameters exists."""
    if plant.PROCESSES:
        raise SymdualError(
            f"the plant {plant.name} contains the Gaussian process {next(iter(plant.PROCESSES))}, which has no true "
            "parameters; give the scenario a plant without one"
        )
