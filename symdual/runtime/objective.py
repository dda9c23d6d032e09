"""The numbers of a cost that is more than W, U and r: references of inputs, cross terms, weights of expressions.

l_k = (x - r)' W (x - r) + 2 (u - s)' N (x - r) + (u - s)' U (u - s) + sum_i w_i t_i^2    (or  + sum_i w_i t_i)
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.common.named import Given, held, schedule, singles, vector
from symdual.common.numbers import as_matrix, as_vector, as_weights, require_joint
from symdual.runtime.evaluate import argument
from symdual.runtime.loading import LoadedPackage


class Objective(NamedTuple):
    """s (T, NU), N (T, NU, NX), the weights of the terms of each step (T, NT) and of the end (NE,), and of constraints
    the probabilities with which they are kept and the weights of their squared excesses, (NC,) each."""

    input_reference: Array
    cross_cost: Array
    cost_weights: Array
    terminal_weights: Array
    probabilities: Array
    constraint_weights: Array

    @property
    def quantiles(self) -> Array:
        """The back-offs that are to be kept, in deviations."""
        return np.array([NormalDist().inv_cdf(p) for p in self.probabilities])


#: The keys under which the arrays are stored beside a package.
KEYS = Objective._fields


def has_objective(package: LoadedPackage) -> bool:
    """Whether the code of a package knows such a cost."""
    return hasattr(package, "TERMS")


def none(package: LoadedPackage, horizon: int) -> Objective:
    """Nothing beyond W, U and r."""
    nu, nx = package.NU, package.NX
    count = constraints_of(package)
    shapes = (horizon, nu), (horizon, nu, nx), (horizon, package.TERMS), (package.ENDS,), (count,), (count,)
    return Objective(*(np.zeros(shape) for shape in shapes))


def constraints_of(package: LoadedPackage) -> int:
    """The number of constraints that the code of a package knows."""
    return len(package.CONSTRAINTS) if hasattr(package, "CONSTRAINTS") else 0


def stored(package: LoadedPackage, horizon: int, arrays: dict[str, Array]) -> Objective | None:
    """The objective of a scenario as it is stored; terms that only other scenarios have weigh nothing."""
    if not has_objective(package):
        return None
    empty = none(package, horizon)._replace(probabilities=np.full(constraints_of(package), 0.5))
    found = {key: arrays[key] for key in KEYS if key in arrays and arrays[key].shape == getattr(empty, key).shape}
    return empty._replace(**found)


def checked(package: LoadedPackage, objective: Objective | None, W: Array, U: Array) -> Objective | None:
    """The objective with arrays of the right shapes, or a sentence that says what is wrong."""
    if not has_objective(package):
        if objective is not None:
            raise SymdualError(
                f"the code of {package.name} knows no cost beyond W, U and r; give a scenario of its model file one"
            )
        return None
    empty = none(package, len(U))._replace(probabilities=np.full(constraints_of(package), 0.5))
    if objective is None:
        return empty
    fine = Objective(*(argument(getattr(objective, key), getattr(empty, key).shape, key) for key in KEYS))
    for key, array in fine._asdict().items():
        if not np.all(np.isfinite(array)) and key != "constraint_weights":
            raise SymdualError(f"{key} contains a value that is NaN or infinite")
    for key in ("cost_weights", "terminal_weights"):
        if np.any(getattr(fine, key) < 0.0):
            raise SymdualError(f"{key} must not be negative")
    require_joint(W, U, fine.cross_cost)
    return fine


def changed(
    package: LoadedPackage,
    objective: Objective | None,
    steps: int,
    input_reference: Given | Callable[[int], Given] | None,
    cross_cost: ArrayLike | Callable[[int], ArrayLike] | None,
    cost_weights: ArrayLike | Callable[[int], ArrayLike] | None,
    terminal_weights: ArrayLike | None,
    probability: ArrayLike | None = None,
    constraint_weight: ArrayLike | None = None,
) -> Objective | None:
    """The objective for so many steps, with the numbers that are given."""
    given = (input_reference, cross_cost, cost_weights, terminal_weights, probability, constraint_weight)
    if objective is None:
        named = [key for key, value in zip(KEYS, given, strict=True) if value is not None]
        if named:
            raise SymdualError(f"{named[0]} needs code for it: give the scenario in the model file one, and generate")
        return None
    s, N, terms = (held(a, steps) for a in objective[:3])
    ends = objective.terminal_weights
    inputs = singles(package.INPUTS)
    if input_reference is not None:
        s = schedule(s, input_reference, lambda now, new, at: vector(now, new, inputs, f"input_reference{at}"))
    if cross_cost is not None:
        shape = package.NU, package.NX
        N = schedule(N, cross_cost, lambda now, new, at: as_matrix(new, *shape, f"cross_cost{at}"))  # type: ignore[arg-type]
    if cost_weights is not None:
        count = package.TERMS
        terms = schedule(terms, cost_weights, lambda now, new, at: as_weights(new, count, f"cost_weights{at}"))  # type: ignore[arg-type]
    if terminal_weights is not None:
        ends = as_weights(terminal_weights, package.ENDS, "terminal_weights")
    fine = Objective(s, N, terms, ends, *objective[4:])
    if probability is not None:
        values = as_vector(probability, constraints_of(package), "probability")
        if len(values) and not (values.min() >= 0.5 and values.max() < 1.0):
            raise SymdualError(f"probability must be at least 0.5 and below 1, but is {probability}")
        fine = fine._replace(probabilities=values)
    if constraint_weight is not None:
        fine = fine._replace(
            constraint_weights=as_weights(constraint_weight, constraints_of(package), "constraint_weight")
        )
    return fine
