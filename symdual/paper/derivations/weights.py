"""A linear system with features whose weights are unknown, and the recursive filter on z = (x, w)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from symdual.common.arrays import Array
from symdual.paper.derivations import draws
from symdual.paper.derivations.filtering import Belief, predict, update
from symdual.paper.derivations.multistep import Steps
from symdual.paper.machine import counted
from symdual.paper.matrices import Matrix

FEATURES = 3


@dataclass(frozen=True)
class Learning:
    """A linear system of k steps with features whose weights are unknown."""

    n: int
    k: int

    @property
    def steps(self) -> Steps:
        """The part without weights."""
        return Steps(self.n, self.k, self.n)

    @cached_property
    def numbers(self) -> dict[str, Array]:
        """Priors, offsets, and the points at which the features are evaluated."""
        rng = draws.source(70, self.n, self.k)
        return {
            "Sww": draws.covariance(rng, FEATURES).array,
            "Sxw": 0.2 * draws.matrix(rng, self.n, FEATURES).array,
            "w0": draws.matrix(rng, FEATURES).array[:, 0],
            "c": draws.matrix(rng, self.k, self.n).array,
            "points": draws.matrix(rng, self.k, self.n).array,
            "waves": draws.matrix(rng, FEATURES, self.n).array,
            "mix": draws.matrix(rng, self.n, FEATURES).array,
        }

    def features(self, x: Array) -> Array:
        """Phi(x), an n x p matrix."""
        v = self.numbers
        return v["mix"] * np.sin(v["waves"] @ x + 0.3)[None, :]

    @property
    def phis(self) -> list[Array]:
        """Phi_0 .. Phi_{k-1}, at the estimates of x_0 .. x_{k-1}."""
        return [self.features(point) for point in self.numbers["points"]]

    def jacobian(self, step: int) -> Array:
        """The transition matrix of (x, w)."""
        whole = np.eye(self.n + FEATURES)
        whole[: self.n, : self.n] = self.steps.transitions[step]
        whole[: self.n, self.n :] = self.phis[step]
        return whole

    def prior(self, correlated: bool) -> Belief:
        """The belief on (x_0, w)."""
        v, s = self.numbers, self.steps.numbers
        cross = v["Sxw"] if correlated else np.zeros_like(v["Sxw"])
        return Belief(np.append(s["m0"], v["w0"]), np.block([[s["P0"], cross], [cross.T, v["Sww"]]]))

    @cached_property
    def belief(self) -> Belief:
        """The recursive filter's belief on (x_k, w), x_0 and w independent."""
        s, belief = self.steps.numbers, self.prior(False)
        select = np.eye(self.n, self.n + FEATURES)
        drift = np.zeros((self.n + FEATURES,) * 2)
        drift[: self.n, : self.n] = s["Q"]
        for j in range(self.k):
            offset = np.append(self.numbers["c"][j], np.zeros(FEATURES))
            belief = update(predict(belief, self.jacobian(j), drift, offset), select, s["R"], s["y"][j])
        return belief

    @cached_property
    def from_start(self) -> Array:
        """x_{1:k} as a map of (x_0, w), simulated."""
        state, rows = np.eye(self.n + FEATURES), []
        for j in range(self.k):
            state = self.jacobian(j) @ state
            rows.append(state[: self.n])
        return np.vstack(rows)

    def measurement_covariance(self, correlated: bool = False) -> Array:
        """The joint covariance of y_{1:k}."""
        parts = self.steps.parts
        states = self.from_start @ self.prior(correlated).cov @ self.from_start.T
        return states + self.steps.impulse @ parts["calQ"].array @ self.steps.impulse.T + parts["calR"].array

    def symbols(self) -> dict[str, object]:
        """Everything that the printed formulas refer to; the parts as they follow from the system."""
        v, parts = self.numbers, self.steps.parts
        increments = np.linalg.solve(self.steps.impulse, self.from_start[:, self.n :])
        inverse = np.linalg.inv(self.steps.impulse)
        phi_all = np.vstack(self.phis)
        offsets = Matrix(phi_all @ v["w0"] + v["c"].reshape(-1))
        return {
            **self.steps.symbols(),
            **{name: Matrix(v[name]) for name in ("Sww", "Sxw", "w0")},
            "p": FEATURES,
            "Lambda": Matrix(v["Sww"]),
            "Phi_all": Matrix(phi_all),
            "calK": Matrix(increments @ v["Sww"] @ increments.T),
            "calG": Matrix(inverse @ self.measurement_covariance() @ inverse.T),
            "mu": parts["mu"] + offsets,
            "Phi": self._phi,
            "x_hat": counted([Matrix(point) for point in v["points"]], 0),
        }

    def _phi(self, x: Matrix) -> Matrix:
        return Matrix(self.features(x.array[:, 0]))


def everything() -> Iterator[Learning]:
    """n = 1..3, k = 1..5."""
    for n in (1, 2, 3):
        for k in range(1, 6):
            yield Learning(n, k)


def state_covariance(learning: Learning) -> Array:
    """P_k."""
    return learning.belief.cov[: learning.n, : learning.n]


def cross_covariance(learning: Learning) -> Array:
    """Sigma^xw_k."""
    return learning.belief.cov[: learning.n, learning.n :]


def weight_covariance(learning: Learning) -> Array:
    """Sigma^ww_k."""
    return learning.belief.cov[learning.n :, learning.n :]
