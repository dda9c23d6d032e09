"""What a recording may leave to the scenario: signals without a column, and inputs before the first row.

A signal is the column of its name or, where there is none, what the scenario says of each step. A model with `previous`
remembers inputs in states that are known: from the first rows on they are those of the recording, and before it what
the scenario says (`past`). Without a scenario nothing is known of that time, nor of the first state, and so the
filter begins as many rows later as the model looks back: the rows before are the past.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError, did_you_mean
from symdual.identification.recordings import Source, on_the_grid
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.replay import Recording
from symdual.spec.scenario import Scenario
from symdual.spec.system import System


class Surroundings(NamedTuple):
    """What is known of signals and past inputs.

    `believed` (T, S) are the signals of a scenario by step, NaN where it says nothing; `acting` says which of them
    change what happens (a price only says what is wanted). `memory` has place of the input and number of steps for each
    state that remembers one, the last states of the model. `begun` says that the past is known.
    """

    names: tuple[str, ...] = ()
    believed: Array = np.zeros((1, 0))
    acting: tuple[bool, ...] = ()
    memory: tuple[tuple[int, int], ...] = ()
    begun: bool = True

    @property
    def depth(self) -> int:
        """How many steps back the model looks."""
        return max((steps for _, steps in self.memory), default=0)

    def signals(self, rows: int, given: Array | None = None, where: str = "", columns: Sequence[str] = ()) -> Array:
        """The signals of so many rows: those that are given, else those of the scenario, whose last value is held."""
        values = self.believed[np.minimum(np.arange(rows), len(self.believed) - 1)].copy()
        if given is not None:
            values = np.where(np.isnan(given), values, given)
        for i, name in enumerate(self.names):
            unset = np.isnan(values[:, i])
            if unset.any() and self.acting[i]:
                raise SymdualError(
                    f'{where}the signal "{name}" has neither a column in the recording nor a value in the scenario'
                    f"{did_you_mean(name, columns)}"
                )
            values[unset, i] = 0.0  # what it is has no effect
        return np.ascontiguousarray(values)

    def past_of(self, one: Recording) -> Array | None:
        """What the states that remember inputs are at the begin of a recording, (M,), where its own rows tell."""
        if one.past is None:
            return None
        return np.array([one.past[steps - 1, place] for place, steps in self.memory])

    def completed(self, one: Recording, package: LoadedPackage) -> Recording:
        """A recording with all signals, which begins where the past is known."""
        if self.names:
            one = one._replace(signals=self.signals(len(one.times), one.signals, f"{one.name}: ", one.ignored))
        if self.begun or not self.memory or not one.measured:
            return one
        if package.TIME_VARYING:
            raise SymdualError(
                f"{package.name} looks back at inputs and depends on time: a scenario has to say what was applied "
                "before the first row (past=)"
            )
        return _begun_later(one, self.depth)


def _begun_later(one: Recording, depth: int) -> Recording:
    if len(one.times) < depth + 2:
        raise SymdualError(
            f"{one.name} has {len(one.times)} rows, but the model looks back {depth} steps: too few to learn "
            "anything from"
        )
    rest = slice(depth, None)
    return one._replace(
        times=one.times[rest],
        inputs=np.ascontiguousarray(one.inputs[rest]),
        measurements=np.ascontiguousarray(one.measurements[rest]),
        lines=one.lines[rest],
        signals=None if one.signals is None else np.ascontiguousarray(one.signals[rest]),
        past=one.inputs[:depth][::-1].copy(),
    )


def surroundings(model: System, names: Sequence[str], scenario: Scenario | None) -> Surroundings:
    """What a scenario, if there is one, says of the named signals of a model, and which inputs the model remembers."""
    believed = np.full((1 if scenario is None else len(scenario.forecasts), len(names)), np.nan)
    for column, name in enumerate(names):
        if scenario is not None and name in scenario.signal_names:
            believed[:, column] = scenario.forecasts[:, scenario.signal_names.index(name)]
    noise = () if model.noise is None else model.noise.expressions
    used = {s.name for e in (*model.dynamics, *model.observation, *noise) for s in e.free_symbols}
    remembering = model.states[len(model.own_states) :]
    memory = tuple((model.inputs.index(state.of), state.steps) for state in remembering)
    return Surroundings(tuple(names), believed, tuple(name in used for name in names), memory, scenario is not None)


def read_recordings(
    sources: Source | Sequence[Source],
    package: LoadedPackage,
    around: Surroundings | None = None,
    resample: bool = False,
    measured: bool = True,
) -> list[Recording]:
    """All recordings on the grid of the model, with what they leave to the scenario."""
    around = Surroundings() if around is None else around
    return [around.completed(one, package) for one in on_the_grid(sources, package, resample, measured)]
