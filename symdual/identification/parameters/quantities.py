"""What is fitted, and in which coordinates.

Fitted are entries of z_0 = (x_0, theta), as constants that the filter knows, and entries of Q, R and Xi. Other
uncertain entries of z_0 stay in the filter with their prior, given the fitted ones:

    m_k = m0_k + G (z_f - m0_f),   P_k = P_kk - G P_fk,   G = P_kf P_ff^-1

Unknowns are shared by all recordings; each has a first state of its own. The coordinates psi are the entries of z_0
themselves, and those of blocks of noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symdual.common.arrays import Array
from symdual.identification.choice import START, Menu
from symdual.identification.noise import Indices, NoiseBlock, Noises, blocks_of
from symdual.identification.result import Setting
from symdual.runtime.belief import Belief
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.noise import has_state_dependent_noise

VAGUE = 1.5  #: the logarithm of a standard deviation of noise has this deviation around what the model says


@dataclass(frozen=True, eq=False)
class Quantities:
    """Coordinates psi: fitted unknowns, then the fitted first states of each recording, then blocks of noise.

    `constants` index theta, `states` index x; `active` are the entries of z that stay in the filter. `prior` is the
    belief on z_0; `flat` says that nothing is known of the first states. `recordings` are names.
    """

    package: LoadedPackage
    prior: Belief
    flat: bool
    constants: Indices
    states: Indices
    blocks: tuple[NoiseBlock, ...]
    noises: Noises
    transition: Array
    recordings: tuple[str, ...]
    first_states: Array

    # ------------------------------------------------------------------------------------ sizes and names

    @property
    def names(self) -> list[str]:
        """A name for each coordinate."""
        unknowns = unknown_names(self.package)
        names = [unknowns[i] for i in self.constants]
        several = len(self.recordings) > 1
        for recording in self.recordings:
            prefix = f"{recording}: " if several else ""
            names += [f"{prefix}{START}[{list(self.package.STATES)[i]}]" for i in self.states]
        return names + [name for block in self.blocks for name in block.names]

    @property
    def places(self) -> int:
        """How many coordinates are entries of z_0; the others are noise."""
        return len(self.constants) + len(self.recordings) * len(self.states)

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return self.places + sum(len(block.entries) for block in self.blocks)

    @property
    def first(self) -> Array:
        """Where the search begins: the model's own numbers."""
        nx = self.package.NX
        parts = [self.prior.mean[nx + self.constants], self.first_states[:, self.states].ravel()]
        return np.concatenate([*parts, *(block.first for block in self.blocks)])

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Where each coordinate may go."""
        return [(-math.inf, math.inf)] * self.places + [pair for block in self.blocks for pair in block.bounds]

    @property
    def logarithms(self) -> list[bool]:
        """Which coordinates are logarithms."""
        return [False] * self.places + [one for block in self.blocks for one in block.logarithms]

    def recording_coordinates(self, recording: int) -> Indices:
        """The coordinates of the entries of z_0 that one recording depends on: unknowns, then its own first state."""
        begin = len(self.constants) + recording * len(self.states)
        return np.concatenate([np.arange(len(self.constants)), np.arange(begin, begin + len(self.states))])

    # ------------------------------------------------------------------------------------ the filter

    @property
    def fitted_entries(self) -> Indices:
        """The entries of z that are fitted, in the order of `recording_coordinates`."""
        return np.concatenate([self.package.NX + self.constants, self.states]).astype(np.int64)

    @property
    def active(self) -> Indices:
        """The entries of z that the filter carries: all states, and unknowns that are uncertain or move."""
        nx, p = self.package.NX, self.package
        theta = np.arange(p.NTHETA)
        moves = (np.diag(self.transition) != 1.0) | (np.count_nonzero(self.transition, axis=1) > 1)
        moves |= (np.diag(self.noises.drift) > 0) | np.isin(theta, self._drifting)
        uncertain = (np.diag(self.prior.covariance)[nx:] > 0) & ~np.isin(theta, self.constants)
        return np.concatenate([np.arange(nx), nx + theta[moves | uncertain]]).astype(np.int64)

    @property
    def _drifting(self) -> Indices:
        return np.concatenate([np.zeros(0, np.int64), *(b.indices for b in self.blocks if b.kind == "drift")])

    def conditional(self) -> tuple[Array, Array]:
        """G (NZ, fitted), zero in the rows of fitted entries, and the covariance of the active entries given them."""
        fitted, active = self.fitted_entries, self.active
        P = self.prior.covariance.copy()
        if self.flat:
            P[self.states] = 0.0
            P[:, self.states] = 0.0
        G = P[:, fitted] @ np.linalg.pinv(P[np.ix_(fitted, fitted)], hermitian=True)
        rest = P - G @ P[fitted]
        rest[fitted] = 0.0
        rest[:, fitted] = 0.0
        G[fitted] = 0.0
        left = rest[np.ix_(active, active)]
        return G, 0.5 * (left + left.T)

    # ------------------------------------------------------------------------------------ psi and settings

    def setting(self, psi: Array) -> Setting:
        """The numbers that psi stands for."""
        theta = self.prior.mean[self.package.NX :].copy()
        theta[self.constants] = psi[: len(self.constants)]
        nx = self.package.NX
        starts = self.first_states.copy() if self.flat else np.tile(self.prior.mean[:nx], (len(self.recordings), 1))
        starts[:, self.states] = psi[len(self.constants) : self.places].reshape(len(starts), len(self.states))
        return Setting(theta, starts, self.noises.under(self.blocks, psi[self.places :]))

    def pull(self, psi: Array, slope: Setting) -> Array:
        """Derivatives by psi from those by the numbers that it stands for."""
        by_places = [slope.theta[self.constants], slope.starts[:, self.states].ravel()]
        return np.concatenate([*by_places, slope.noises.pulled(self.blocks, psi[self.places :])])

    # ------------------------------------------------------------------------------------ the prior

    def prior_deviations(self) -> Array:
        """The standard deviation of each coordinate before the recordings, infinite without a prior."""
        precision = self.prior_precision()
        variance = np.diag(np.linalg.pinv(precision, hermitian=True))
        return np.where(np.diag(precision) > 0, np.sqrt(np.maximum(variance, 0.0)), math.inf)

    def prior_precision(self) -> Array:
        """The inverse of the prior covariance of psi, (size, size): zero where there is no prior.

        That of noise is vague: the model's own value is a guess within a factor of 20 or so. It matters only where the
        recordings say nothing, for without it a variance that they cannot tell from zero would become zero.
        """
        nx, count = self.package.NX, len(self.constants)
        precision = np.zeros((self.size, self.size))
        theta = self.prior.covariance[nx:, nx:]
        precision[:count, :count] = np.linalg.pinv(theta[np.ix_(self.constants, self.constants)], hermitian=True)
        noise = np.arange(self.places, self.size)
        precision[noise, noise] = 1.0 / VAGUE**2
        if not self.flat:
            own = np.linalg.pinv(self.prior.covariance[np.ix_(self.states, self.states)], hermitian=True)
            for recording in range(len(self.recordings)):
                begin = count + recording * len(self.states)
                precision[begin : begin + len(self.states), begin : begin + len(self.states)] = own
        return precision

    def prior_mean(self) -> Array:
        """The mean of psi under the prior; where there is none, where the search begins."""
        nx = self.package.NX
        starts = self.first_states if self.flat else np.broadcast_to(self.prior.mean[:nx], self.first_states.shape)
        mean = self.first
        mean[: self.places] = np.concatenate([self.prior.mean[nx + self.constants], starts[:, self.states].ravel()])
        return mean


# ------------------------------------------------------------------------------------------------ choosing


def unknown_names(package: LoadedPackage) -> list[str]:
    """The names of the entries of theta; weights of a family are numbered."""
    names: list[str] = []
    for name, (_, count) in package.UNKNOWNS.items():
        scalar = count == 1 and len(names) < package.NS
        names += [name] if scalar else [f"{name}[{i}]" for i in range(count)]
    return names


def choose(
    package: LoadedPackage,
    prior: Belief,
    flat: bool,
    recordings: Sequence[str],
    first_states: Array,
    only: Sequence[str] = (),
    hold: Sequence[str] = (),
    full: Sequence[str] = (),
    remembering: Sequence[int] = (),
) -> Quantities:
    """The quantities that are named, or all that can be fitted, without those to be held.

    A name is that of an unknown or a family, `process_noise`, `measurement_noise`, `drift` or `start`, or of an entry
    of these, as in `process_noise[velocity]`. By default everything is fitted that has room: unknowns with a prior
    variance that do not drift, noise that is not zero, first states that the scenario leaves open. `full` names
    matrices of noise to be fitted with all covariances; `remembering` lists the states that are inputs of the past.
    """
    numbers, code = package.numbers, has_state_dependent_noise(package)
    Q, R = numbers["process_noise"], numbers["measurement_noise"]
    if code:  # it is code, and has no numbers of its own
        Q, R = np.zeros_like(Q), np.zeros_like(R)
    noises, transition = Noises(Q, R, as_matrix(numbers["drift"])), as_matrix(numbers["transition"])
    states, unknowns = list(package.STATES), unknown_names(package)
    labels = {"process_noise": states, "measurement_noise": list(package.MEASUREMENTS), "drift": unknowns}

    def why(kind: str, zero: str) -> str:
        if kind == "drift" or not code:
            return zero
        return (
            f"the noise of {package.name} depends on where it is: {kind} is an expression in the model, without "
            "numbers of its own that could be fitted"
        )

    menu = Menu({}, set(), {})
    menu.add_noise(labels, noises, why)
    moving = (np.abs(transition - np.eye(len(transition))) > 0).any(axis=1) | (np.diag(noises.drift) > 0)
    _add_unknowns(menu, package, np.diag(prior.covariance)[package.NX :] > 0, moving)
    _add_starts(menu, states, [flat or bool(prior.covariance[i, i] > 0) for i in range(len(states))], remembering)
    wanted = menu.chosen(only, hold, full)
    return Quantities(
        package=package,
        prior=prior,
        flat=flat,
        constants=np.array([i for i, name in enumerate(unknowns) if name in wanted], dtype=np.int64),
        states=np.array([i for i, name in enumerate(states) if f"{START}[{name}]" in wanted], dtype=np.int64),
        blocks=blocks_of(wanted, full, labels, noises),
        noises=noises,
        transition=transition,
        recordings=tuple(recordings),
        first_states=first_states,
    )


def _add_unknowns(menu: Menu, package: LoadedPackage, room: NDArray[np.bool_], moving: NDArray[np.bool_]) -> None:
    """Unknowns by themselves and by the names of their arrays."""
    names = unknown_names(package)
    for i, name in enumerate(names):
        if moving[i]:
            menu.refused[name] = (
                f'"{name}" drifts or decays, so it has no single value; the filter keeps it, and drift[{name}] '
                "can be fitted"
            )
        elif not room[i]:
            menu.refused[name] = f'the prior variance of "{name}" is zero: it is known, and stays as it is'
    for array, (begin, count) in package.UNKNOWNS.items():
        own = names[begin : begin + count]
        menu.add(array, [name for name in own if name not in menu.refused])
        if not menu.groups[array]:
            menu.refused[array] = menu.refused[own[0]]


def _add_starts(menu: Menu, states: Sequence[str], open_: Sequence[bool], remembering: Sequence[int]) -> None:
    """First states; those that the scenario knows are fitted only when they are named."""
    names = [f"{START}[{state}]" for state in states]
    for i in remembering:
        menu.refused[names[i]] = (
            f'"{states[i]}" is an input of the past: the recording or the scenario says what it was'
        )
    possible = [i for i in range(len(states)) if i not in remembering]
    menu.add(START, [names[i] for i in possible], default=False)
    menu.default.update(names[i] for i in possible if open_[i])


def as_matrix(value: Array) -> Array:
    """A matrix that a package keeps as its diagonal or whole."""
    return np.diag(value) if value.ndim == 1 else value.copy()
