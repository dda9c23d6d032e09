"""`System`: states, inputs, unknowns, dynamics, observation and noise as checked expressions and numbers.

A `Model` is the system that a user wrote. A `Specification` is the one that code is made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Self, TypeVar

import numpy as np
import sympy as sp

from symdual.common.arrays import Array
from symdual.common.errors import ModelError
from symdual.common.named import Spans
from symdual.common.transforms import Sides, Transform, has_bound, matched_belief
from symdual.integrators import INTEGRATORS, Implicit
from symdual.spec.fitted import Fitted
from symdual.spec.names import check_name
from symdual.spec.noise import Noise
from symdual.spec.past import deepest, depths, memory, next_memory
from symdual.spec.signals import Signal
from symdual.spec.symbols import Constant, Family, Unknown


@dataclass(frozen=True, eq=False)
class System:
    """x' = f(x, u, theta) + xi, theta' = D theta + eta, y = h(x, theta) + gamma.

    The last `memory` states remember inputs.
    """

    name: str
    states: tuple[sp.Symbol, ...]
    inputs: tuple[sp.Symbol, ...]
    unknowns: tuple[Unknown, ...]
    families: tuple[Family, ...]
    constants: tuple[Constant, ...]
    time: sp.Symbol | None
    dynamics: tuple[sp.Expr, ...]
    step: float | None
    method: str
    substeps: int
    observation: tuple[sp.Expr, ...]
    process_noise: Array
    measurement_noise: Array
    noise: Noise | None
    transition: Array | None
    drift: Array | None
    lower: Array
    upper: Array
    state_bounds: tuple[Sides, ...]
    filter: str
    square_root: bool
    outliers: float | None
    fitted: Fitted | None
    memory: int

    def named(self, name: str) -> Self:
        """Return the same under another name."""
        return self.changed(name=check_name(name, "the model"))

    def changed(self, **parts: object) -> Self:
        """Return the same with other, already checked parts."""
        twin = object.__new__(type(self))
        for key, value in (self.__dict__ | parts).items():
            object.__setattr__(twin, key, value)
        return twin

    @property
    def is_implicit(self) -> bool:
        """Whether a step is the solution of equations."""
        return self.step is not None and isinstance(INTEGRATORS[self.method], Implicit)

    @property
    def own_states(self) -> tuple[sp.Symbol, ...]:
        """The states that the user declared; those that remember inputs follow them."""
        return self.states[: len(self.states) - self.memory]

    @property
    def bounded_states(self) -> dict[int, Sides]:
        """The bounds that states cannot leave, by the positions of those that have some."""
        return {i: sides for i, sides in enumerate(self.state_bounds) if has_bound(sides)}

    @property
    def remembered(self) -> dict[int, int]:
        """How many steps back each input is remembered, by its position."""
        return depths(self.states[len(self.states) - self.memory :], self.inputs)

    @property
    def signals(self) -> tuple[Signal, ...]:
        """The known quantities that change with time."""
        return tuple(c for c in self.constants if isinstance(c, Signal))

    @property
    def unknown_places(self) -> Spans:
        """The first entry in theta and the number of entries of each scalar unknown and array of a family, in order."""
        sizes = [(s.name, 1) for s in self.unknowns]
        sizes += [(w.symbol.name, family.count) for family in self.families for w in family.weights]
        starts = accumulate((count for _, count in sizes), initial=0)
        return {name: (start, count) for (name, count), start in zip(sizes, starts, strict=False)}

    @property
    def unknown_names(self) -> tuple[str, ...]:
        """The names of all unknowns in the order of theta; those of a family as `array[index]`."""
        families = list(self.unknown_places.items())[len(self.unknowns) :]
        return tuple(s.name for s in self.unknowns) + tuple(
            f"{name}[{i}]" for name, (_, count) in families for i in range(count)
        )

    @property
    def transforms(self) -> tuple[Transform, ...]:
        """What leads from each entry of theta to the user's units; empty where no unknown has bounds."""
        own = tuple(s.transform for s in self.unknowns)
        return own if any(own) else ()

    @property
    def process_names(self) -> frozenset[str]:
        """The arrays of Gaussian processes among the unknowns, whose prior is their kernel."""
        processes = [family for family in self.families if family.process is not None]
        return frozenset(w.symbol.name for family in processes for w in family.weights)

    @property
    def prior_mean(self) -> Array:
        """The prior mean of theta, (p,); of an unknown with bounds that of its logarithm or logit."""
        return self._prior[0]

    @property
    def prior_covariance(self) -> Array:
        """The prior covariance of theta, (p, p), or its diagonal (p,) when nothing is correlated."""
        return self._prior[1]

    @property
    def stated_prior(self) -> tuple[Array, Array]:
        """Mean and covariance of all unknowns in the user's units, after a fit if there is one."""
        own = self._own_prior
        return own if self.fitted is None else self.fitted.prior(self.unknown_names, *own)

    @property
    def _prior(self) -> tuple[Array, Array]:
        return self.prior_of_theta(*self.stated_prior, "the prior")

    def prior_of_theta(self, mean: Array, covariance: Array, what: str) -> tuple[Array, Array]:
        """The prior of theta for one in the user's units: they differ where unknowns have bounds."""
        if not self.transforms:
            return mean, covariance
        whole = np.diag(covariance) if covariance.ndim == 1 else covariance
        matched = matched_belief(self.transforms, mean, whole, self.unknown_names, what)
        return matched[0], np.diagonal(matched[1]).copy() if covariance.ndim == 1 else matched[1]

    @property
    def _own_prior(self) -> tuple[Array, Array]:
        """Mean and covariance as the unknowns and families bring them."""
        means = [np.array([s.mean for s in self.unknowns])]
        means += [w.mean for family in self.families for w in family.weights]
        parts = [np.array([s.variance for s in self.unknowns])]
        parts += [w.covariance for family in self.families for w in family.weights]
        if all(part.ndim == 1 for part in parts):
            return np.concatenate(means), np.concatenate(parts)
        from scipy.linalg import block_diag

        dense = block_diag(*(np.diag(part) if part.ndim == 1 else part for part in parts if part.size))
        return np.concatenate(means), np.asarray(dense)


S = TypeVar("S", bound=System)


def remembering(system: S, needs: Mapping[int, int]) -> S:
    """The same system with states that remember its inputs for so many steps, by position, at least."""
    enough = deepest(system.remembered, needs)
    if enough == system.remembered:
        return system
    own, known = system.own_states, memory(system.inputs, enough)
    names = {s.name for s in (*own, *system.inputs, *system.unknowns, *system.constants)}
    for state in known:
        if state.name in names:
            raise ModelError(f'the name "{state.name}" is taken by {state.written}; rename the other one')
    noise = np.zeros((len(own) + len(known),) * 2)
    noise[: len(own), : len(own)] = system.process_noise[: len(own), : len(own)]
    return system.changed(
        states=(*own, *known),
        dynamics=(*system.dynamics[: len(own)], *next_memory(known)),
        process_noise=noise,
        noise=None if system.noise is None else system.noise.widened(len(own), len(own) + len(known)),
        memory=len(known),
    )
