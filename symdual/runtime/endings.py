"""Why an episode ended early: noise that is no covariance, what plant or filter met, what a decision says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.controllers import knows_truth
from symdual.runtime.belief import Belief
from symdual.runtime.controller import controller
from symdual.runtime.culprits import fault_of_model, fault_of_plant, fault_of_step
from symdual.runtime.info import State
from symdual.runtime.noise import faults_of_episodes
from symdual.runtime.problem import Problem
from symdual.runtime.signals import with_signals
from symdual.runtime.stiffness import too_fast

if TYPE_CHECKING:
    from symdual.runtime.closed_loop import Episodes, NoiseDraws, Settings

PLANT, BELIEF, NO_PLAN = 1, 2, 3  # see `closed_loop.OUTCOMES`


def reason(
    problem: Problem, name: str, noise_draws: NoiseDraws, episodes: Episodes, settings: Settings
) -> tuple[int, str] | None:
    """An episode that ended early, and why; None where none did or nothing can be said about it."""
    believed = problem.for_oracle(noise_draws.truths[0]) if knows_truth(name) else problem
    found = faults_of_episodes(believed, noise_draws, episodes)
    found = found or _left(believed, noise_draws, episodes, PLANT) or _left(believed, noise_draws, episodes, BELIEF)
    return found or _refused(problem, name, noise_draws, episodes, settings)


def _left(problem: Problem, noise_draws: NoiseDraws, episodes: Episodes, outcome: int) -> tuple[int, str] | None:
    """What the plant, or the filter, was not finite in, in the first episode that ended so; None if that is not known.

    The step that ended it is made once more, and all before it are asked whether the model was too fast for its method.
    """
    failed = np.flatnonzero(episodes.outcomes == outcome)
    if not failed.size or problem.package.PROCESSES:
        return None
    n = int(failed[0])
    k, inputs = int(np.flatnonzero(np.isfinite(episodes.z_means[n]).all(axis=1))[-1]), episodes.inputs[n]
    if outcome == PLANT:
        what, package, points = "the plant", problem.plant, _true_points(n, k, noise_draws, episodes)
        heard = None if problem.signals is None else problem.signals.of(package)[1]
        fault = fault_of_plant(with_signals(package, None if heard is None else heard[k]), *points[-1])
    else:
        package, nx, means = problem.package, problem.package.NX, episodes.z_means[n]
        way = problem, k + 1, means[k], inputs[k]
        what = "the filter's prediction" if fault_of_step(*way) else "the belief"
        points = [(j, means[j, :nx], inputs[j], means[j, nx:]) for j in range(k + 1)]
        fault = fault_of_model(*way)
    fast = too_fast(package, points)
    said = f"{what} is not finite at step {k + 1}{f': {fault}' if fault else ''}{fast}"
    return (n, said) if fault or fast else None


def _true_points(n: int, k: int, noise_draws: NoiseDraws, episodes: Episodes) -> list[tuple[int, Array, Array, Array]]:
    """Step, true state, input and true parameters of an episode up to step k, where the input was applied."""
    thetas = np.vstack([noise_draws.truths[n : n + 1], noise_draws.wander[n]])
    path = zip(episodes.states[n, : k + 1], episodes.inputs[n, : k + 1], strict=False)
    return [(j, x, u, thetas[min(j, len(thetas) - 1)]) for j, (x, u) in enumerate(path) if np.isfinite(u).all()]


def _refused(
    problem: Problem, name: str, noise_draws: NoiseDraws, episodes: Episodes, settings: Settings
) -> tuple[int, str] | None:
    """What the first decision that found no plan says of itself, with the same estimate and its deviations."""
    failed = np.flatnonzero(episodes.outcomes == NO_PLAN)
    if not failed.size or problem.package.PROCESSES:  # what is known of processes is not written down
        return None
    n = int(failed[0])
    k = int(np.flatnonzero(np.isfinite(episodes.z_means[n]).all(axis=1))[-1])
    belief = Belief(episodes.z_means[n, k], np.diag(episodes.z_variances[n, k]))
    truth = noise_draws.truths[n] if knows_truth(name) else None
    again = controller(problem, name, settings.order, settings.window, truth, settings.options)
    try:
        again.choose(State(k, belief, None))
    except SymdualError as refusal:
        return n, f"{_lost_before(again.problem, n, k, noise_draws, episodes)}{refusal}"
    return None


def _lost_before(problem: Problem, n: int, k: int, noise_draws: NoiseDraws, episodes: Episodes) -> str:
    """Why a plan of step k had nothing to begin with: a step of the plant or filter that was too long before it.

    It may have ended at numbers that are finite, but no more than that. Ends with what joins it to the refusal.
    """
    means, nx = episodes.z_means[n], problem.package.NX
    believed = [(j, means[j, :nx], episodes.inputs[n, j], means[j, nx:]) for j in range(k)]
    fast = too_fast(problem.plant, _true_points(n, k - 1, noise_draws, episodes), "in the plant")
    fast = fast or too_fast(problem.package, believed, "in the filter's prediction")
    return f"{fast.removeprefix('; ')}; after that, " if fast else ""
