"""What is fitted, and in which coordinates.

Fitted are entries of z_0 = (x_0, theta), as constants that the filter knows, and entries of Q, R and Xi. Other
uncertain entries of z_0 stay in the filter with their prior, given the fitted ones:

    m_k = m0_k + G (z_f - m0_f),   P_k = P_kk - G P_fk,   G = P_kf P_ff^-1

Unknowns are shared by all recordings; each has a first state of its own. The coordinates psi are the entries of z_0
themselves, the logarithms of standard deviations for a diagonal of noise, and for a full matrix M = L L' the logarithms
of the diagonal of L and its other entries in units of the deviations at the start: noise is always positive definite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from symdual.errors import SymdualError, did_you_mean
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.noise import is_noisy
from symdual.runtime.problem import Array, Belief

Indices = NDArray[np.int64]

VAGUE = 1.5  #: the logarithm of a standard deviation of noise has this deviation around what the model says
REACH = math.log(1e4)  #: a standard deviation stays within this factor of where it starts (as a logarithm)
NOISES = ("process_noise", "measurement_noise", "drift")
START = "start"


class Noises(NamedTuple):
    """Q (NX, NX), R (NY, NY) and Xi (NTHETA, NTHETA)."""

    process_noise: Array
    measurement_noise: Array
    drift: Array


class Setting(NamedTuple):
    """A value for everything that may be fitted: theta (NTHETA,), the first state of each recording (N, NX), noise."""

    theta: Array
    starts: Array
    noises: Noises


class Slope(NamedTuple):
    """The derivatives of a scalar by a `Setting`; those by matrices are symmetric, dl = tr(slope dM)."""

    theta: Array
    starts: Array
    noises: Noises


@dataclass(frozen=True, eq=False)
class NoiseBlock:
    """Entries of one of the matrices of noise: a diagonal, or the full matrix between some of its rows."""

    kind: str
    labels: tuple[str, ...]
    indices: Indices
    full: bool
    start: Array

    @property
    def names(self) -> list[str]:
        """A name for each coordinate, in their order: row by row of the lower triangle."""
        return [
            f"{self.kind}[{self.labels[i]}]" if i == j else f"{self.kind}[{self.labels[i]},{self.labels[j]}]"
            for i, j in self.entries
        ]

    @property
    def entries(self) -> list[tuple[int, int]]:
        """Row and column of each coordinate within the block."""
        size = len(self.indices)
        return [(i, j) for i in range(size) for j in range(i + 1) if self.full or i == j]

    @property
    def first(self) -> Array:
        """The coordinates of the matrix at the start."""
        root = self._root_at_start()
        return np.array([math.log(root[i, i]) if i == j else root[i, j] / self._unit(i) for i, j in self.entries])

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Where each coordinate may go."""
        return [
            (p - REACH, p + REACH) if i == j else (-math.inf, math.inf)
            for p, (i, j) in zip(self.first, self.entries, strict=True)
        ]

    def matrix(self, psi: Array) -> Array:
        """L L'."""
        root = self._root(psi)
        return root @ root.T

    def pull(self, psi: Array, slope: Array) -> Array:
        """Derivatives by the coordinates from those by the matrix: dl/dL = 2 slope L."""
        root = self._root(psi)
        by_root = 2.0 * slope @ root
        return np.array(
            [by_root[i, i] * root[i, i] if i == j else by_root[i, j] * self._unit(i) for i, j in self.entries]
        )

    def tangents(self, psi: Array) -> Array:
        """dM / dpsi for each coordinate, (coordinates, rows, rows)."""
        root, found = self._root(psi), []
        for i, j in self.entries:
            by = np.zeros_like(root)
            by[i, j] = root[i, i] if i == j else self._unit(i)
            found.append(by @ root.T + root @ by.T)
        return np.array(found)

    def _root(self, psi: Array) -> Array:
        root = np.zeros((len(self.indices), len(self.indices)))
        for value, (i, j) in zip(psi, self.entries, strict=True):
            root[i, j] = math.exp(value) if i == j else value * self._unit(i)
        return root

    def _root_at_start(self) -> Array:
        return np.asarray(np.linalg.cholesky(self.start if self.full else np.diag(np.diag(self.start))), np.float64)

    def _unit(self, i: int) -> float:
        return math.sqrt(float(self.start[i, i]))


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

    def block_slices(self) -> list[tuple[NoiseBlock, slice]]:
        """Each block of noise with its part of psi."""
        found, begin = [], self.places
        for block in self.blocks:
            found.append((block, slice(begin, begin + len(block.entries))))
            begin += len(block.entries)
        return found

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
        matrices = {key: value.copy() for key, value in self.noises._asdict().items()}
        for block, part in self.block_slices():
            matrices[block.kind][np.ix_(block.indices, block.indices)] = block.matrix(psi[part])
        return Setting(theta, starts, Noises(**matrices))

    def pull(self, psi: Array, slope: Slope) -> Array:
        """Derivatives by psi from those by the numbers that it stands for."""
        parts = [slope.theta[self.constants], slope.starts[:, self.states].ravel()]
        for block, part in self.block_slices():
            own = getattr(slope.noises, block.kind)[np.ix_(block.indices, block.indices)]
            parts.append(block.pull(psi[part], own))
        return np.concatenate(parts)

    # ------------------------------------------------------------------------------------ the prior

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
    menu = _Menu(package, prior, flat, remembering)
    for name in full:
        if name not in NOISES:
            raise SymdualError(f'"{name}" is no matrix of noise: only {", ".join(NOISES)} can be full')
    wanted = set().union(*(menu.named(name) for name in only)) if only else menu.default
    wanted |= set().union(*(menu.named(name) for name in full))
    wanted -= set().union(*(menu.named(name) for name in hold))
    if not wanted:
        raise SymdualError("there is nothing to fit: every quantity is known, held, or zero in the model")
    for kind, index in sorted(wanted):
        menu.require_possible(kind, index)
    chosen = {kind: np.array(sorted(i for k, i in wanted if k == kind), dtype=np.int64) for kind in _KINDS}
    blocks = []
    for kind in NOISES:
        indices = chosen[kind]
        if len(indices):
            start = getattr(menu.noises, kind)[np.ix_(indices, indices)]
            correlated = bool(np.any(start - np.diag(np.diag(start))))
            labels = tuple(menu.labels[kind][i] for i in indices)
            blocks.append(NoiseBlock(kind, labels, indices, kind in full or correlated, start))
    return Quantities(
        package=package,
        prior=prior,
        flat=flat,
        constants=chosen["unknown"],
        states=chosen[START],
        blocks=tuple(blocks),
        noises=menu.noises,
        transition=as_matrix(package.numbers["transition"]),
        recordings=tuple(recordings),
        first_states=first_states,
    )


_KINDS = ("unknown", START, *NOISES)


class _Menu:
    """Everything that has a name, as pairs of kind and index."""

    def __init__(self, package: LoadedPackage, prior: Belief, flat: bool, remembering: Sequence[int]) -> None:
        numbers = package.numbers
        self.package, self.prior, self.flat, self.remembering = package, prior, flat, remembering
        Q, R = numbers["process_noise"], numbers["measurement_noise"]
        if is_noisy(package):  # it is code, and has no numbers of its own
            Q, R = np.zeros_like(Q), np.zeros_like(R)
        self.noises = Noises(Q, R, as_matrix(numbers["drift"]))
        unknowns, states = unknown_names(package), list(package.STATES)
        self.labels = {
            "unknown": unknowns,
            START: states,
            "process_noise": states,
            "measurement_noise": list(package.MEASUREMENTS),
            "drift": unknowns,
        }
        transition = as_matrix(numbers["transition"])
        moves = (np.abs(transition - np.eye(len(transition))) > 0).any(axis=1) | (np.diag(self.noises.drift) > 0)
        self._moves = moves
        self.default = {("unknown", i) for i in range(package.NTHETA) if self._room(i) and not moves[i]}
        self.open = [i for i in range(package.NX) if i not in remembering]
        self.default |= {(START, i) for i in self.open if flat or prior.covariance[i, i] > 0}
        for kind in NOISES:
            matrix = getattr(self.noises, kind)
            self.default |= {(kind, i) for i in range(len(matrix)) if matrix[i, i] > 0}

    def _room(self, i: int) -> bool:
        return bool(self.prior.covariance[self.package.NX + i, self.package.NX + i] > 0)

    def named(self, name: str) -> set[tuple[str, int]]:
        """What a name stands for; a whole group stands for those of its entries that can be fitted."""
        known: dict[str, set[tuple[str, int]]] = {}
        for kind in NOISES:
            matrix = getattr(self.noises, kind)
            known[kind] = {(kind, i) for i in range(len(matrix)) if matrix[i, i] > 0}
            known |= {f"{kind}[{label}]": {(kind, i)} for i, label in enumerate(self.labels[kind])}
            if name == kind and not known[kind]:
                self._refuse_code(kind)
                raise SymdualError(f"{kind} is zero in the model and stays so; give it a value to start from")
        known[START] = {(START, i) for i in self.open}
        known |= {f"{START}[{label}]": {(START, i)} for i, label in enumerate(self.labels[START])}
        for array, (begin, count) in self.package.UNKNOWNS.items():
            known[array] = {("unknown", begin + i) for i in range(count)}
        known |= {label: {("unknown", i)} for i, label in enumerate(self.labels["unknown"])}
        if name not in known:
            raise SymdualError(f'there is nothing called "{name}" to fit{did_you_mean(name, known)}')
        return known[name]

    def require_possible(self, kind: str, index: int) -> None:
        """Refuse what cannot move, in one sentence."""
        name = self.labels[kind][index]
        if kind == "unknown":
            if self._moves[index]:
                raise SymdualError(
                    f'"{name}" drifts or decays, so it has no single value; the filter keeps it, and drift[{name}] '
                    "can be fitted"
                )
            if not self._room(index):
                raise SymdualError(f'the prior variance of "{name}" is zero: it is known, and stays as it is')
        elif kind == START and index in self.remembering:
            raise SymdualError(f'"{name}" is an input of the past: the recording or the scenario says what it was')
        elif kind in NOISES and not getattr(self.noises, kind)[index, index] > 0:
            self._refuse_code(kind)
            raise SymdualError(f"{kind}[{name}] is zero in the model and stays so; give it a value to start from")

    def _refuse_code(self, kind: str) -> None:
        if kind != "drift" and is_noisy(self.package):
            raise SymdualError(
                f"the noise of {self.package.name} depends on where it is: {kind} is an expression in the model, "
                "without numbers of its own that could be fitted"
            )


def as_matrix(value: Array) -> Array:
    """A matrix that a package keeps as its diagonal or whole."""
    return np.diag(value) if value.ndim == 1 else value.copy()
