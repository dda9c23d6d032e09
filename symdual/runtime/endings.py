"""Why an episode ended early: noise that is no covariance, or a decision that says what is wrong when made again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from symdual.errors import SymdualError
from symdual.runtime.controller import controller
from symdual.runtime.noise import faults_of_episodes
from symdual.runtime.problem import Belief, Problem
from symdual.runtime.story import State

if TYPE_CHECKING:
    from symdual.runtime.closed_loop import Episodes, Luck, Settings

NO_PLAN = 3  # see `closed_loop.OUTCOMES`


def reason(problem: Problem, name: str, luck: Luck, episodes: Episodes, settings: Settings) -> tuple[int, str] | None:
    """An episode that ended early, and why; None where none did or nothing can be said about it."""
    task = problem.for_oracle(luck.truths[0]) if name == "oracle" else problem
    return faults_of_episodes(task, luck, episodes) or _refused(problem, name, luck, episodes, settings)


def _refused(problem: Problem, name: str, luck: Luck, episodes: Episodes, settings: Settings) -> tuple[int, str] | None:
    """What the first decision that found no plan says of itself, with the same estimate and its deviations."""
    failed = np.flatnonzero(episodes.outcomes == NO_PLAN)
    if not failed.size or problem.package.PROCESSES:  # what is known of processes is not written down
        return None
    n = int(failed[0])
    k = int(np.flatnonzero(np.isfinite(episodes.means[n]).all(axis=1))[-1])
    belief = Belief(episodes.means[n, k], np.diag(episodes.variances[n, k]))
    truth = luck.truths[n] if name == "oracle" else None
    again = controller(problem, name, settings.order, settings.window, truth, settings.foresight)
    try:
        again.choose(State(k, belief, None))
    except SymdualError as refusal:
        return n, str(refusal)
    return None
