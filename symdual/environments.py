"""Model files as Gymnasium environments, which this module tells Gymnasium the name of.

    import gymnasium, symdual.environments
    environment = gymnasium.make("symdual/Scenario-v0", model="cart.py")

Gymnasium imports it by itself where the name is "symdual.environments:symdual/Scenario-v0".
"""

from __future__ import annotations

from pathlib import Path

import gymnasium

from symdual.api import problem
from symdual.runtime.environment import ScenarioEnvironment

NAME = "symdual/Scenario-v0"


def make(
    model: str | Path,
    scenario: str | None = None,
    truth: str | None = None,
    failure_cost: float = 0.0,
    folder: str | Path | None = None,
    backend: str | None = None,
) -> ScenarioEnvironment:
    """The environment of a scenario in a model file; the arguments are those of `ScenarioEnvironment` and `problem`."""
    return ScenarioEnvironment(problem(Path(model), scenario, folder, backend), truth, failure_cost)


gymnasium.register(NAME, entry_point="symdual.environments:make")
