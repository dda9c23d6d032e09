"""Episodes in memory: what `symdual.simulate` returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError, did_you_mean
from symdual.runtime import result_fields
from symdual.runtime.closed_loop import Episodes, NoiseDraws, run
from symdual.runtime.constraints import warn_of_start
from symdual.runtime.labelled import Labelled
from symdual.runtime.readiness import make_ready
from symdual.runtime.results import SHARED, axis_of
from symdual.runtime.sweep import Sweep


class Simulation(Labelled, Mapping[str, Episodes]):
    """Episodes by controller, all with the same random draws, to be read like a results file.

    `simulation["dual"]` are the `Episodes` of a controller as plain arrays; `to_pandas`, `summary` and `plot` are those
    of a results file.

    >>> simulation = symdual.simulate(problem, ["ce", "dual"], runs=3)
    >>> list(simulation), simulation["dual"].inputs.shape
    (['ce', 'dual'], (3, 2, 1))
    """

    def __init__(self, plan: Sweep, noise_draws: NoiseDraws, episodes: Mapping[str, Episodes]) -> None:
        self.plan, self.noise_draws = plan, noise_draws
        self.description, self.about = plan.description, plan.description.to_json()
        self._episodes = dict(episodes)
        self._fields: dict[str, dict[str, NDArray[Any]]] = {}

    def __getitem__(self, controller: str) -> Episodes:
        if controller not in self._episodes:
            raise KeyError(controller)
        return self._episodes[controller]

    def __iter__(self) -> Iterator[str]:
        return iter(self._episodes)

    def __len__(self) -> int:
        return len(self._episodes)

    def __repr__(self) -> str:
        plan = self.plan
        return f"<Simulation {plan.problem.name}: {plan.runs} runs of {', '.join(plan.controllers)}, seed {plan.seed}>"

    def __str__(self) -> str:
        """The summary, as a table."""
        return f"{self!r}\n{self.summary()}"

    def array(self, controller: str, field: str) -> NDArray[Any]:
        """A field of a controller, by its name in `symdual.runtime.results.FIELDS`; the first axis is the run."""
        if controller not in self._episodes:
            raise SymdualError(f'there is no controller "{controller}" here{did_you_mean(controller, self._episodes)}')
        if controller not in self._fields:
            episodes = self._episodes[controller]
            self._fields[controller] = result_fields.fields(self.plan.problem, controller, self.noise_draws, episodes)
        return self._with_names(controller, axis_of(field), self._fields[controller][field])

    def problem(self, name: str) -> Array:
        """`reference`, `state_cost` or `input_cost`; the first axis is the time."""
        assert name in SHARED
        return np.asarray(getattr(self.plan.problem, name))


def simulated(plan: Sweep) -> Simulation:
    """Run all episodes of a sweep at once, in memory."""
    from symdual.runtime.results import Chunk

    warn_of_start(plan.problem, stacklevel=3)
    make_ready(plan.problem, plan.controllers, plan.settings.order, plan.settings.window)
    noise_draws = plan.noise_draws([Chunk("", 0, plan.runs)])
    return Simulation(
        plan, noise_draws, {name: run(plan.problem, name, noise_draws, plan.settings) for name in plan.controllers}
    )
