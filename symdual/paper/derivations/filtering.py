"""The recursive Kalman filter, one predict and one update at a time: the yardstick of every multi-step formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from symdual.common.arrays import Array


@dataclass(frozen=True)
class Belief:
    """Mean and covariance."""

    mean: Array
    cov: Array


def predict(belief: Belief, transition: Array, drift: Array, offset: Array | None = None) -> Belief:
    """m <- A m + c,  P <- A P A' + Q."""
    mean = transition @ belief.mean
    return Belief(mean if offset is None else mean + offset, transition @ belief.cov @ transition.T + drift)


def update(belief: Belief, c: Array, noise: Array, measured: Array) -> Belief:
    """m <- m + G (y - C m),  P <- (I - G C) P (I - G C)' + G R G'  with  G = P C' (C P C' + R)^-1."""
    spread = c @ belief.cov @ c.T + noise
    gain = np.linalg.solve(spread, c @ belief.cov).T
    rest = np.eye(len(belief.mean)) - gain @ c
    return Belief(belief.mean + gain @ (measured - c @ belief.mean), rest @ belief.cov @ rest.T + gain @ noise @ gain.T)


def covariances(
    transitions: Sequence[Array], start: Array, drift: Array, c: Array, noise: Array
) -> dict[tuple[int, int], Array]:
    """S_{j|j} and S_{j+1|j} along a trajectory on which every measurement is the expected one; S_{0|0} is given."""
    size = start.shape[0]
    belief = Belief(np.zeros(size), start)
    found = {(0, 0): start}
    for j, transition in enumerate(transitions):
        belief = predict(belief, transition, drift)
        found[j + 1, j] = belief.cov
        belief = update(belief, c, noise, c @ belief.mean)
        found[j + 1, j + 1] = belief.cov
    return found


def run(
    start: Belief, transitions: Sequence[Array], drift: Array, c: Array, noise: Array, measured: Sequence[Array]
) -> Belief:
    """The belief after all measurements."""
    belief = start
    for transition, value in zip(transitions, measured, strict=True):
        belief = update(predict(belief, transition, drift), c, noise, value)
    return belief
