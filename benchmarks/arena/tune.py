"""Settings of rivals, one choice for all systems, on seeds that are used for nothing else.

Each candidate plays every system beside `ce`. The one whose costs have the least mean rank among the candidates of its
controller is chosen. `ce`, `cautious`, `dual` and `planned` keep their defaults.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from symdual.common.errors import SymdualError
from symdual.runtime.results import Results
from symdual.runtime.sweep import Execute, run_sweep, sweep

from .roster import System
from .scores import costs_of
from .tournament import Round

GRID: dict[str, tuple[dict[str, float], ...]] = {
    "beb": ({"bonus": 0.01}, {"bonus": 0.1}, {"bonus": 1.0}, {"bonus": 10.0}),
    "information": ({"reward": 1}, {"reward": 3}, {"reward": 10}, {"reward": 30}),
    "thompson": ({"hold": 1}, {"hold": 3}, {"hold": 10}, {"hold": 30}),
    "dither": ({"dither": 3}, {"dither": 10}, {"dither": 10, "decay": 50}, {"dither": 30, "decay": 100}),
    "scenario": ({"branches": 3}, {"branches": 5}, {"branches": 8}, {"branches": 5, "depth": 3}),
    "rollout": ({"candidates": 5}, {"candidates": 9}, {"candidates": 17}),
}


def tune(everyone: list[System], round_: Round, execute: Execute, file: Path) -> None:
    """Choose settings, and write them with the ranks of all candidates."""
    names = [system.name for system in everyone]
    told: dict[str, Any] = {
        "seed": round_.seed,
        "runs": round_.runs,
        "systems": names,
        "options": {},
        "bonus": 1.0,
        "ranks": {},
    }
    for name, candidates in GRID.items():
        rows = [row for system in everyone if (row := costs(name, candidates, system, round_, execute)) is not None]
        mean = np.mean([stats.rankdata(row) for row in rows], axis=0)
        chosen = dict(candidates[int(np.argmin(mean))])
        told["ranks"][name] = {json.dumps(one): round(float(m), 3) for one, m in zip(candidates, mean, strict=True)}
        told["bonus"] = chosen.pop("bonus", told["bonus"])
        told["options"] |= chosen
        print(name, told["ranks"][name], flush=True)
    file.write_text(json.dumps(told, indent=1) + "\n")


def costs(
    name: str, candidates: tuple[dict[str, float], ...], system: System, round_: Round, execute: Execute
) -> list[float] | None:
    """The mean cost of each candidate on a system, a failure as the worst; None where the controller is refused."""
    found = []
    for number, candidate in enumerate(candidates):
        chosen = round_.chosen.changed(**candidate)
        problem, settings = system.problem(chosen), system.settings(chosen)
        try:
            plan = sweep(problem, [name], round_.runs, round_.seed, settings)
        except SymdualError:
            return None
        file = run_sweep(plan, round_.folder / f"{name}-{number}", execute, True, place=system.name)
        with Results(file) as results:
            found.append(costs_of(plan.problem, name, results, settings))
    worst = np.nanmax(found)
    return [float(np.where(np.isnan(one), worst, one).mean()) for one in found]
