"""Turns episodes into the arrays that a results file keeps, with the consistency of the filter.

NEES = (z - m)' S^-1 (z - m) / rank S         (1 on average when the belief is as certain as it may be)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from symdual.runtime.closed_loop import OUTCOMES, Episodes, Luck
from symdual.runtime.noise import is_noisy
from symdual.runtime.posterior import lost
from symdual.runtime.problem import Array, Problem

REASONS = (*OUTCOMES, "the covariance of the belief is not finite", "the cost is not finite")
_COVARIANCE_NOT_FINITE, _COST_NOT_FINITE = len(OUTCOMES), len(OUTCOMES) + 1

# the columns of `Episodes.steps` under their names in a results file
_STEPS = ("step_costs", "plan_status", "fallbacks", "nis", "measured", "log_likelihood", "planned_costs")


def fields(problem: Problem, controller: str, luck: Luck, episodes: Episodes) -> dict[str, NDArray[Any]]:
    """The arrays of `results.FIELDS` for the episodes of one controller."""
    costs = episodes.steps[:, :, 0].sum(axis=1)
    outcomes = episodes.outcomes.copy()
    outcomes[(outcomes == 0) & ~np.isfinite(episodes.covariances).all(axis=(1, 2))] = _COVARIANCE_NOT_FINITE
    outcomes[(outcomes == 0) & ~np.isfinite(costs)] = _COST_NOT_FINITE
    finished = outcomes == 0
    nx, prior = problem.package.NX, problem.prior.covariance
    error = episodes.means[:, -1, :nx] - episodes.states[:, -1]
    # the plant's parameters are those of the belief only if both are the same model
    same = controller == "oracle" or problem.plant_is_model
    theta_error = episodes.means[:, -1, nx:] - luck.last_truths if same else None
    noise = 0.0 if is_noisy(problem.package) else _largest(problem.package.numbers["process_noise"])
    state_scale = noise + _largest(prior[:nx, :nx])
    theta_scale = _largest(prior[nx:, nx:])
    arrays: dict[str, NDArray[Any]] = {
        "states": episodes.states,
        "inputs": episodes.inputs,
        "means": episodes.means,
        "variances": episodes.variances,
        "costs": np.where(finished, costs, np.nan),
        "nees_state": _nees(finished, error, episodes.covariances[:, :nx, :nx], state_scale),
        "nees_parameters": _nees(finished, theta_error, episodes.covariances[:, nx:, nx:], theta_scale),
        "outcomes": outcomes,
        "limits": episodes.limits,
        "truths": luck.truths,
        "losses": lost(problem.plant if controller == "oracle" else problem.package, episodes.memories),
    }
    return arrays | {name: episodes.steps[:, :, column] for column, name in enumerate(_STEPS)}


def _largest(matrix: Array) -> float:
    return float(np.max(np.abs(matrix), initial=0.0))


def _nees(finished: NDArray[np.bool_], errors: Array | None, covariances: Array, scale: float) -> Array:
    values = np.full(len(finished), np.nan)
    if errors is not None and errors.shape[1]:
        values[finished] = normalised_errors(errors[finished], covariances[finished], scale)
    return values


def normalised_errors(errors: Array, covariances: Array, scale: float = 0.0) -> Array:
    """e' S^-1 e / rank S for each e (N, d) and S (N, d, d), over the directions in which S is more than rounding.

    NaN where there are none. `scale` is a variance that is ordinary in the problem: with exact measurements S is zero
    but for the filter's floor.
    """
    values, vectors = np.linalg.eigh(covariances)
    kept = values > 1e-10 * np.maximum(values[:, -1:], scale)
    along = np.einsum("nij,ni->nj", vectors, errors)
    squares = np.where(kept, along**2, 0.0) / np.where(kept, values, 1.0)
    rank = kept.sum(axis=1)
    return np.where(rank > 0, squares.sum(axis=1) / np.maximum(rank, 1), np.nan)
