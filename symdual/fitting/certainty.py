"""How well the data determine each hyperparameter: the curvature of log p at its maximum.

With the Hessian M of -log p by psi, from differences of the exact gradient, psi is about N(psi^, M^-1): a standard
deviation of psi = log h is a factor of exp(deviation) on h.

All of this is for the linearised system, in which a process is evaluated at known points. Where the state is known no
better than over distances in which the process changes, that is rough; `blurs` measures it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from symdual.fitting.evidence import Evidence
from symdual.fitting.optimum import Optimum
from symdual.numbers import Array

#: With 95 % probability a hyperparameter that the data determine lies within this factor of its value.
WIDEST = 10.0
_STEP = 1e-4
_FLATTEST = 1e-6  # curvature below this is none


class Certainty(NamedTuple):
    """The standard deviation of log h, and what is to be said of it.

    The verdict is "determined", "flat", "at its lower bound", "at its upper bound" or "held".
    """

    deviation: float
    verdict: str


def covariance(optimum: Optimum) -> Array:
    """Of psi; entries at a bound, or held, count as known for the others and are infinite on the diagonal."""
    free = [i for i, bound in enumerate(optimum.at_bound) if not bound]
    found = np.diag(np.full(len(optimum.psi), np.inf))
    if free:
        curvatures, directions = np.linalg.eigh(curvature(optimum.evidence, optimum.psi)[np.ix_(free, free)])
        found[np.ix_(free, free)] = (directions / np.maximum(curvatures, _FLATTEST)) @ directions.T
    return found


def certainty(optimum: Optimum, spread: Array | None = None) -> list[Certainty]:
    """For each entry of psi; `spread` is its covariance, where that is known already."""
    deviations = np.sqrt(np.diag(covariance(optimum) if spread is None else spread))
    held = [name in optimum.evidence.task.held for name in optimum.evidence.task.names]
    each = zip(deviations, optimum.at_bound, held, strict=True)
    return [Certainty(float(d), "held" if fixed else _verdict(float(d), b)) for d, b, fixed in each]


def _verdict(deviation: float, bound: int) -> str:
    if bound:
        return f"at its {'upper' if bound > 0 else 'lower'} bound"
    return "determined" if 1.96 * deviation < math.log(WIDEST) else "flat"


def curvature(evidence: Evidence, psi: Array) -> Array:
    """The Hessian of -log p by psi."""
    rows = [
        (evidence.at(psi - step).gradient - evidence.at(psi + step).gradient) / (2.0 * _STEP)
        for step in _STEP * np.eye(len(psi))
    ]
    hessian = np.array(rows)
    return 0.5 * (hessian + hessian.T)


class Blur(NamedTuple):
    """How well the points are known at which a process is evaluated.

    `deviations` (arguments,) are typical standard deviations of the points under the noise of the model, and `change`
    is the variance of g(s + deviation) - g(s) as a share of twice that of g: 0 for a constant, 1 for unrelated values.
    """

    process: str
    deviations: Array
    change: float


def blurs(optimum: Optimum) -> list[Blur]:
    """For each process, in the middle of its points."""
    evidence, found = optimum.evidence, []
    n = len(evidence.task.model.states)
    for block, function in zip(evidence.system.blocks, evidence.functions, strict=True):
        covariances = evidence.whitened.corrections[block.times][:, :n, :n]
        variances = np.einsum("sqi,sij,sqj->sq", block.slopes, covariances, block.slopes)
        moved, values = block.points + np.sqrt(variances), evidence.values_of(function, optimum.psi)
        here, there, both = (
            function.pairs(p, q, values)
            for p, q in ((block.points, block.points), (moved, moved), (block.points, moved))
        )
        share = 1.0 - 2.0 * both / np.maximum(here + there, np.finfo(np.float64).tiny)
        found.append(Blur(block.family.name, np.sqrt(np.median(variances, axis=0)), float(np.median(share))))
    return found
