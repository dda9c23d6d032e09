"""Sweeps of the arena: all controllers on one system in one sweep, which goes on where it was interrupted."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from symdual.runtime.closed_loop import Settings, draw, run
from symdual.runtime.problem import Problem
from symdual.runtime.results import Results
from symdual.runtime.sweep import Execute, run_sweep, sweep

from .roster import Chosen, System
from .scores import Played, score


class Round(NamedTuple):
    """What is played: how many episodes from which seed, with which settings, and where results go."""

    runs: int
    seed: int
    chosen: Chosen
    folder: Path


def play(system: System, round_: Round, execute: Execute, backend: str | None = None) -> Played:
    """Run what is missing of a system, and score it."""
    problem = system.problem(round_.chosen, backend)
    settings = system.settings(round_.chosen)
    names, refused = system.contestants(problem, round_.chosen)
    plan = sweep(problem, names, round_.runs, round_.seed, settings)
    begun = time.process_time()
    file = run_sweep(plan, round_.folder, execute, True, place=system.name)
    seconds = time.process_time() - begun
    times = decision_times(problem, names, settings, file.with_name("times.json"))
    with Results(file) as results:
        found = score(system, plan.problem, results, settings, times, refused)
    return found._replace(seconds=seconds)


def decision_times(problem: Problem, names: tuple[str, ...], settings: Settings, store: Path) -> dict[str, float]:
    """Milliseconds of processor time that a step of an episode takes, kept in a file: the least of three episodes."""
    known: dict[str, float] = json.loads(store.read_text()) if store.exists() else {}
    for name in names:
        if name not in known:
            spent = []
            for seed in np.random.SeedSequence(99).spawn(3):
                noise = draw(problem, settings, [seed])
                begun = time.process_time()
                run(problem, name, noise, settings)
                spent.append(1e3 * (time.process_time() - begun) / problem.horizon)
            known[name] = min(spent)
            store.write_text(json.dumps(known))
    return known
