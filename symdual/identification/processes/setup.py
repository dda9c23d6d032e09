"""A model with Gaussian processes, what is known of its start, and recordings of it, as arrays."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.derive.derivation import Derivation, derive
from symdual.emit.facts import measurement_names
from symdual.identification.choice import START, Menu
from symdual.identification.chosen_model import processes_of
from symdual.identification.noise import NoiseBlock, Noises, blocks_of
from symdual.identification.recordings import Source
from symdual.identification.surroundings import Surroundings, read_recordings, surroundings
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.replay import Recording
from symdual.spec.scenario import Scenario
from symdual.spec.specification import Specification
from symdual.spec.symbols import Constant, Family
from symdual.spec.system import System

Indices = NDArray[np.intp]

#: The likelihood is exact and dense: so many values of processes and measured numbers are still a matter of minutes.
MOST_VALUES = 2500
MOST_MEASURED = 10000


@dataclass(frozen=True, eq=False)
class Drift:
    """How a process moves from step to step: cov(g_t(a), g_s(b)) = tau(t, s) kappa(a, b).

    With g_{t+1} = lambda g_t + noise of the covariance rho kappa:  tau(t, s) = lambda^|t-s| c_min(t,s), where c_0 = 1
    and c_{t+1} = lambda^2 c_t + rho.
    """

    persistence: float
    scales: Array

    @classmethod
    def over(cls, steps: int, persistence: float, growth: float) -> Drift:
        """The drift over a number of steps."""
        scales = [1.0]
        for _ in range(steps):
            scales.append(persistence**2 * scales[-1] + growth)
        return cls(persistence, np.array(scales))

    def between(self, times: Indices, others: Indices) -> Array:
        """tau for all pairs."""
        first, second = times[:, None], others[None]
        return np.asarray(self.persistence ** np.abs(first - second) * self.scales[np.minimum(first, second)])


@dataclass(frozen=True, eq=False)
class ProcessSetup:
    """Everything that stays as it is while hyperparameters are fitted.

    z = (x, theta), theta being the unknowns that belong to no process. Row k of the recording lies before step
    `times[k]`; `inputs` (T, U) are those of each step; `measurements` (K, Y) have NaN where nothing was measured.
    Several recordings lie one after the other, with a step of `breaks` between them: it leads to the start, whatever
    was before; `clock` (T + 1,) has the steps since the begin of each. `signals` (T + 1, S) are those of each step. psi
    are the logarithms of the hyperparameters and the coordinates `noise_psi` of `blocks` of noise; `held` are not
    fitted.
    `anyway` says that measurements which cannot be meant are fitted all the same.
    """

    derivation: Derivation
    scenario: str
    start: Array
    start_covariance: Array
    persistence: Array
    noises: Noises
    drifts: Mapping[str, Drift]
    times: Indices
    inputs: Array
    measurements: Array
    clock: Indices
    signals: Array
    recordings: tuple[Recording, ...]
    breaks: frozenset[int] = frozenset()
    blocks: tuple[NoiseBlock, ...] = ()
    noise_psi: Array = field(default_factory=lambda: np.zeros(0))
    held: frozenset[str] = frozenset()
    anyway: bool = False
    around: Surroundings = field(default_factory=Surroundings)

    @property
    def model(self) -> Specification:
        """The model whose processes are fitted."""
        return self.derivation.model

    @property
    def steps(self) -> int:
        """T, the number of steps from the first row to the last."""
        return len(self.inputs)

    @property
    def columns(self) -> LoadedPackage:
        """The names of inputs, signals and measurements."""
        return _columns(self.derivation)

    def read(self, recordings: Source | Sequence[Source], resample: bool = False) -> list[Recording]:
        """Other recordings of the same model."""
        return read_recordings(recordings, self.columns, self.around, resample)

    @property
    def families(self) -> tuple[Family, ...]:
        """The Gaussian processes."""
        return processes_of(self.model)

    @property
    def hyperparameters(self) -> tuple[Constant, ...]:
        """The constants of the kernels, in the order in which the model lists them."""
        own = {c.name for family in self.families for c in family.constants}
        return tuple(c for c in self.model.constants if c.name in own)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the entries of psi."""
        return (*(str(c.name) for c in self.hyperparameters), *(name for block in self.blocks for name in block.names))

    @property
    def psi(self) -> Array:
        """psi of the model's own hyperparameters and of the noise as it is."""
        return np.concatenate([np.log([c.value for c in self.hyperparameters]), self.noise_psi])

    @cached_property
    def process_noise(self) -> Array:
        """The covariance of the noise on z, (Z, Z)."""
        return np.asarray(block_diag(self.noises.process_noise, self.noises.drift))

    @property
    def measurement_noise(self) -> Array:
        """The covariance of the noise on the measurements."""
        return self.noises.measurement_noise

    def under(self, psi: Array) -> ProcessSetup:
        """The setup with the noise of psi."""
        noise_psi = psi[len(self.hyperparameters) :]
        return replace(self, noises=self.noises.under(self.blocks, noise_psi), noise_psi=noise_psi)

    def noise_at(self, t: int) -> Array:
        """The covariance of the noise on z in step t."""
        if t not in self.breaks:
            return self.process_noise
        n, noise = len(self.model.states), np.zeros_like(self.process_noise)
        noise[:n, :n] = self.start_covariance[:n, :n]
        return noise

    @property
    def constants(self) -> dict[str, float]:
        """All known numbers of the model by name."""
        numbers = {c.name: c.value for c in self.model.constants}
        return numbers if self.model.step is None else numbers | {"step_length": self.model.step}


def with_noise(
    setup: ProcessSetup, only: Sequence[str] = (), hold: Sequence[str] = (), full: Sequence[str] = ()
) -> ProcessSetup:
    """The setup with the noise among what is fitted: what is named, or all but what is held.

    Unknowns and first states follow from the rest; a name of theirs among `hold` leaves them as they were.
    """
    names, n = z_names(setup.derivation), len(setup.model.states)
    states, unknowns = names[:n], names[n:]
    labels = {"process_noise": states, "measurement_noise": measurement_names(setup.derivation), "drift": unknowns}
    menu = Menu({}, set(), {})
    for family in setup.families:
        menu.add(family.name, [str(c.name) for c in family.constants])
    menu.add_noise(labels, setup.noises)
    for name in unknowns:
        menu.add(name, [name])
    menu.add(START, [f"{START}[{name}]" for name in states])
    wanted = menu.chosen(only, hold, full)
    blocks = blocks_of(wanted, full, labels, setup.noises)
    psi = np.concatenate([np.zeros(0), *(block.first for block in blocks)])
    return replace(setup, blocks=blocks, noise_psi=psi, held=frozenset(menu.default - wanted))


def z_names(derivation: Derivation) -> list[str]:
    """The names of z = (x, theta) without processes; weights of a family are numbered."""
    own = {block.symbol for block in derivation.processes}
    names = [s.name for s in derivation.core]
    return names + [f"{b.symbol.name}[{i}]" for b in derivation.weights if b.symbol not in own for i in range(b.count)]


def setup_for(
    model: System,
    scenario: Scenario,
    sources: Source | Sequence[Source],
    resample: bool = False,
    anyway: bool = False,
) -> ProcessSetup:
    """The setup of a model with the start and the prior of a scenario; of the noise, nothing is fitted."""
    derivation = derive(model)
    _require_positive(model)
    columns = _columns(derivation)
    around = surroundings(model, columns.SIGNALS, scenario)
    recordings = read_recordings(sources, columns, around, resample)
    together = joined(recordings)
    drifts = _drifts(derivation, together.steps)
    if len(recordings) > 1 and any(d.persistence != 1.0 or np.any(d.scales != 1.0) for d in drifts.values()):
        raise SymdualError(f"the Gaussian process of {model.name} drifts: fit its recordings one by one")
    _require_fit(recordings, together, derivation)
    kept = parameters(derivation)
    n, z = len(model.states), len(model.states) + len(kept)
    covariance = np.zeros((z, z))
    covariance[:n, :n] = scenario.start_covariance
    prior = scenario.prior_covariance
    covariance[n:, n:] = (np.diag(prior) if prior.ndim == 1 else prior)[np.ix_(kept, kept)]
    drift = np.diag(np.zeros(len(kept)) if model.drift is None else model.drift[kept])
    return ProcessSetup(
        derivation=derivation,
        scenario=scenario.name,
        start=np.concatenate([scenario.start, scenario.prior_mean[kept]]),
        start_covariance=covariance,
        persistence=np.ones(len(kept)) if model.transition is None else model.transition[kept],
        noises=Noises(model.process_noise, model.measurement_noise, drift),
        drifts=drifts,
        recordings=tuple(recordings),
        anyway=anyway,
        around=around,
        **together._asdict(),
    )


class Joined(NamedTuple):
    """Recordings one after the other, with a step between them."""

    times: Indices
    inputs: Array
    measurements: Array
    clock: Indices
    signals: Array
    breaks: frozenset[int]

    @property
    def steps(self) -> int:
        """T, with the steps between recordings."""
        return len(self.inputs)


def joined(recordings: Sequence[Recording]) -> Joined:
    """Recordings as one."""
    # the last inputs of a recording act on nothing; the step that they stand for is the one to the next recording
    lengths = [len(one.times) for one in recordings]
    heard = [np.zeros((k, 0)) if s.signals is None else s.signals for k, s in zip(lengths, recordings, strict=True)]
    return Joined(
        np.arange(sum(lengths)),
        np.concatenate([one.inputs for one in recordings])[:-1],
        np.concatenate([one.measurements for one in recordings]),
        np.concatenate([np.arange(k) for k in lengths]),
        np.concatenate(heard),
        frozenset(int(end) - 1 for end in np.cumsum(lengths)[:-1]),
    )


def _columns(derivation: Derivation) -> LoadedPackage:
    """What the reader of recordings asks a package for; nothing has to be generated for it."""
    model = derivation.model
    described: Any = types.ModuleType(model.name)
    described.INPUTS = tuple(s.name for s in model.inputs)
    described.MEASUREMENTS = measurement_names(derivation)
    described.SIGNALS = tuple(s.name for s in model.signals)
    described.TIME_VARYING = model.time is not None
    described.DATA_ENTRIES = {} if model.step is None else {"step_length": (0, 1)}
    return LoadedPackage(model.name, Path(), described, {"data": np.array([model.step or 0.0])})


def parameters(derivation: Derivation) -> list[int]:
    """The entries of theta that belong to no process."""
    own = {block.start + i for block in derivation.processes for i in range(block.count)}
    return [i for i in range(derivation.theta_size) if i not in own]


def _drifts(derivation: Derivation, steps: int) -> dict[str, Drift]:
    model = derivation.model
    return {
        block.family: Drift.over(
            steps,
            1.0 if model.transition is None else float(model.transition[block.start]),
            0.0 if model.drift is None else float(model.drift[block.start]),
        )
        for block in derivation.processes
    }


def _require_positive(model: System) -> None:
    """Hyperparameters are fitted in their logarithms, and the kernels are all that they change."""
    elsewhere = {s.name for e in (*model.dynamics, *model.observation) for s in e.free_symbols}
    for family in processes_of(model):
        for c in family.constants:
            if c.value <= 0:
                raise SymdualError(f'the hyperparameter "{c.name}" is {c.value:g}; only positive ones can be fitted')
            if c.name in elsewhere:
                raise SymdualError(
                    f'the constant "{c.name}" stands in the kernel of "{family.name}" and in the dynamics: give the '
                    "kernel one of its own"
                )
    if not any(family.constants for family in processes_of(model)):
        raise SymdualError(f"the kernels of {model.name} have no hyperparameters: make their numbers constants")


def _require_fit(recordings: Sequence[Recording], together: Joined, derivation: Derivation) -> None:
    """Enough to learn from, and not more than can be done exactly."""
    where = " and ".join(one.name for one in recordings)
    measured, steps = int(np.isfinite(together.measurements).sum()), together.steps - len(together.breaks)
    values = steps * sum(point.family.process is not None for point in derivation.dynamics.program.points)
    if measured == 0:
        raise SymdualError(f"nothing was measured in {where}")
    if steps < 2:
        raise SymdualError(f"{where} covers {steps} steps, too few to learn anything from")
    if values > MOST_VALUES or measured > MOST_MEASURED:
        raise SymdualError(
            f"{where} covers {steps} steps with {values} values of Gaussian processes and {measured} measured numbers; "
            f"an exact likelihood is for at most {MOST_VALUES} and {MOST_MEASURED}: fit a part of the recording"
        )
