"""How well the points are known at which processes are evaluated.

A fit is that of the linearised system, in which a process is evaluated at known points. Where the state is known no
better than over distances in which the process changes, that is rough.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from symdual.common.arrays import Array
from symdual.identification.processes.search import ProcessOptimum

#: `KnownPoints.change` from which on the linearisation is called rough: for a squared exponential, half a length-scale.
ROUGH = 0.12


class KnownPoints(NamedTuple):
    """How well the points are known at which a process is evaluated.

    `deviations` (arguments,) are typical standard deviations of the points under the noise of the model, and `change`
    is the variance of g(s + deviation) - g(s) as a share of twice that of g: 0 for a constant, 1 for unrelated values.
    """

    process: str
    deviations: Array
    change: float


def known_points(optimum: ProcessOptimum) -> list[KnownPoints]:
    """For each process, in the middle of its points."""
    evidence, found = optimum.evidence, []
    n = len(evidence.setup.model.states)
    for block, function in zip(evidence.system.blocks, evidence.functions, strict=True):
        covariances = evidence.whitened.corrections[block.times][:, :n, :n]
        variances = np.einsum("sqi,sij,sqj->sq", block.slopes, covariances, block.slopes)
        moved, values = block.points + np.sqrt(variances), evidence.values_of(function, optimum.psi)
        here, there, both = (
            function.pairs(p, q, values)
            for p, q in ((block.points, block.points), (moved, moved), (block.points, moved))
        )
        share = 1.0 - 2.0 * both / np.maximum(here + there, np.finfo(np.float64).tiny)
        found.append(KnownPoints(block.family.name, np.sqrt(np.median(variances, axis=0)), float(np.median(share))))
    return found
