"""Turns episodes into the arrays that a results file keeps, with the consistency of the filter.

NEES = (z - m)' S^-1 (z - m) / rank S         (1 on average when the belief is as certain as it may be)

It is that of z, where the belief is normal: of unknowns with bounds, that of their logarithms or logits. All other
arrays are in the user's units.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from symdual.common.arrays import Array
from symdual.common.numbers import correlations
from symdual.controllers import knows_truth
from symdual.runtime import evaluate
from symdual.runtime.closed_loop import OUTCOMES, Episodes, NoiseDraws
from symdual.runtime.noise import believed, has_state_dependent_noise
from symdual.runtime.posterior import lost
from symdual.runtime.problem import Problem
from symdual.runtime.signals import with_signals

REASONS = (*OUTCOMES, "the covariance of the belief is not finite", "the cost is not finite")
_COVARIANCE_NOT_FINITE, _COST_NOT_FINITE = len(OUTCOMES), len(OUTCOMES) + 1

ROUNDING = 1e-10  # a smaller share of what is ordinary is the filter's floor, or rounding

# the columns of `Episodes.steps` under their names in a results file
_STEPS = ("step_costs", "plan_status", "fallbacks", "nis", "measured", "log_likelihood", "planned_costs")


def fields(problem: Problem, controller: str, noise_draws: NoiseDraws, episodes: Episodes) -> dict[str, NDArray[Any]]:
    """The arrays of `results.FIELDS` for the episodes of one controller."""
    costs = episodes.steps[:, :, 0].sum(axis=1)
    outcomes = episodes.outcomes.copy()
    outcomes[(outcomes == 0) & ~np.isfinite(episodes.covariances).all(axis=(1, 2))] = _COVARIANCE_NOT_FINITE
    outcomes[(outcomes == 0) & ~np.isfinite(costs)] = _COST_NOT_FINITE
    finished = outcomes == 0
    nx = problem.package.NX
    error = episodes.z_means[:, -1, :nx] - episodes.states[:, -1]
    # the plant's parameters are those of the belief only if both are the same model
    same = knows_truth(controller) or problem.plant_is_model
    theta_error = episodes.z_means[:, -1, nx:] - noise_draws.last_truths if same else None
    usual = usual_variances(problem)
    known = np.zeros(0) if knows_truth(controller) else usual[nx:]  # an oracle is sure of its parameters
    arrays: dict[str, NDArray[Any]] = {
        "states": episodes.states,
        "inputs": episodes.inputs,
        "means": episodes.means,
        "variances": episodes.variances,
        "costs": np.where(finished, costs, np.nan),
        "nees_state": _nees(finished, error, episodes.covariances[:, :nx, :nx], usual[:nx]),
        "nees_parameters": _nees(finished, theta_error, episodes.covariances[:, nx:, nx:], known),
        "outcomes": outcomes,
        "constraints": episodes.constraints,
        "truths": episodes.truths,
        "losses": lost(problem.plant if knows_truth(controller) else problem.package, episodes.memories),
    }
    return arrays | {name: episodes.steps[:, :, column] for column, name in enumerate(_STEPS)}


def usual_variances(problem: Problem) -> Array:
    """Of each entry of z, the first variance that is not zero: of the prior, or of what noise makes of it soon after.

    Noise may reach a state through others only, at the latest in as many steps as there are states.
    """
    nx, drift = problem.package.NX, problem.package.numbers["drift"]
    found = np.diagonal(problem.prior.covariance).copy()
    found[nx:] += (found[nx:] == 0.0) * (drift if drift.ndim == 1 else np.diagonal(drift))
    signals, u = believed(problem), np.clip(np.zeros(problem.package.NU), *problem.bounds)
    package = with_signals(problem.package, None if signals is None else signals[0])
    with np.errstate(all="ignore"):
        _, f_x, _ = evaluate.linearise(package, problem.start, u, problem.prior.mean[nx:])
        Q = (
            evaluate.process_noise(package, problem.start, u)
            if has_state_dependent_noise(package)
            else package.noise.process
        )
        S = problem.prior.covariance[:nx, :nx]
        for _ in range(nx):
            S = f_x @ S @ f_x.T + Q
            found[:nx] = np.where(found[:nx] == 0.0, np.diagonal(S), found[:nx])
    return np.asarray(np.where(np.isfinite(found), found, 0.0))


def _nees(finished: NDArray[np.bool_], errors: Array | None, covariances: Array, usual: Array) -> Array:
    values = np.full(len(finished), np.nan)
    if errors is not None and errors.shape[1]:
        values[finished] = normalised_errors(errors[finished], covariances[finished], usual)
    return values


def normalised_errors(errors: Array, covariances: Array, usual: Array | None = None) -> Array:
    """e' S^-1 e / rank S for each e (N, d) and S (N, d, d), over the directions in which S is more than rounding.

    NaN where there are none. `usual` (d,) are variances that are ordinary in the problem: with exact measurements S is
    zero but for the filter's floor. All is judged in units of the deviations, so that the result has no units.
    """
    deviations, correlated = correlations(covariances)
    if usual is not None and usual.size:
        certain = deviations**2 <= ROUNDING * usual
        correlated[certain[:, :, None] | certain[:, None, :]] = 0.0
    scaled = errors / np.where(deviations > 0.0, deviations, 1.0)
    values, vectors = np.linalg.eigh(correlated)
    kept = values > ROUNDING
    along = np.einsum("nij,ni->nj", vectors, scaled)
    squares = np.where(kept, along**2, 0.0) / np.where(kept, values, 1.0)
    rank = kept.sum(axis=1)
    return np.where(rank > 0, squares.sum(axis=1) / np.maximum(rank, 1), np.nan)
