"""`Task`: a model, what is known of its start, and a recording of it, as arrays."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symdual.derive.derivation import Derivation, derive
from symdual.emit.facts import measurement_names
from symdual.errors import SymdualError, did_you_mean
from symdual.estimation.quantities import NOISES, START, NoiseBlock
from symdual.estimation.series import Series, Source
from symdual.estimation.surroundings import Surroundings, read_series
from symdual.fitting.noise import Noises, blocks_of, chosen, open_entries
from symdual.numbers import Array
from symdual.runtime.loading import LoadedPackage
from symdual.spec.loading import ModelFile
from symdual.spec.model import Model
from symdual.spec.scenario import Scenario
from symdual.spec.symbols import Constant, Family

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
class Task:
    """Everything that stays as it is while hyperparameters are fitted.

    z = (x, theta), theta being the unknowns that belong to no process. Row k of the recording lies before step
    `times[k]`; `inputs` (T, U) are those of each step; `measurements` (K, Y) have NaN where nothing was measured.
    Several recordings lie one after the other, with a step of `breaks` between them: it leads to the start, whatever
    was before; `clock` (T + 1,) has the steps since the begin of each. `signals` (T + 1, S) are those of each step. psi
    are the logarithms of the hyperparameters and the coordinates `noise_psi` of `noises`; `held` are not fitted.
    `anyway` says that measurements which cannot be meant are fitted all the same.
    """

    derivation: Derivation
    scenario: str
    start: Array
    start_covariance: Array
    persistence: Array
    process_noise: Array
    measurement_noise: Array
    drifts: Mapping[str, Drift]
    times: Indices
    inputs: Array
    measurements: Array
    clock: Indices
    signals: Array
    series: tuple[Series, ...]
    breaks: frozenset[int] = frozenset()
    noises: tuple[NoiseBlock, ...] = ()
    noise_psi: Array = field(default_factory=lambda: np.zeros(0))
    held: frozenset[str] = frozenset()
    anyway: bool = False
    around: Surroundings = field(default_factory=Surroundings)

    @property
    def model(self) -> Model:
        """The model whose processes are fitted."""
        return self.derivation.model

    @property
    def steps(self) -> int:
        """T, the number of steps from the first row to the last."""
        return len(self.inputs)

    @property
    def rows(self) -> int:
        """How many rows the recordings have."""
        return int(sum(np.count_nonzero(one.lines) for one in self.series))

    @property
    def columns(self) -> LoadedPackage:
        """The names of inputs, signals and measurements."""
        return _columns(self.derivation)

    def read(self, recordings: Source | Sequence[Source], resample: bool = False) -> list[Series]:
        """Other recordings of the same model."""
        return read_series(recordings, self.columns, self.around, resample)

    @property
    def families(self) -> tuple[Family, ...]:
        """The Gaussian processes."""
        return processes(self.model)

    @property
    def hyperparameters(self) -> tuple[Constant, ...]:
        """The constants of the kernels, in the order in which the model lists them."""
        own = {c.name for family in self.families for c in family.constants}
        return tuple(c for c in self.model.constants if c.name in own)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the entries of psi."""
        return (*(str(c.name) for c in self.hyperparameters), *(name for block in self.noises for name in block.names))

    @property
    def psi(self) -> Array:
        """psi of the model's own hyperparameters and of the noise as it is."""
        return np.concatenate([np.log([c.value for c in self.hyperparameters]), self.noise_psi])

    @property
    def noise_bounds(self) -> list[tuple[float, float]]:
        """Where the coordinates of the noise may go."""
        return [pair for block in self.noises for pair in block.bounds]

    @property
    def matrices(self) -> Noises:
        """The covariances of the noise."""
        return Noises(self.process_noise, self.measurement_noise)

    def under(self, psi: Array) -> Task:
        """The task with the noise of psi."""
        noise_psi = psi[len(self.hyperparameters) :]
        found = self.matrices.under(self.noises, noise_psi, len(self.model.states))
        return replace(self, **found._asdict(), noise_psi=noise_psi)

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


def processes(model: Model) -> tuple[Family, ...]:
    """The Gaussian processes of a model."""
    return tuple(family for family in model.families if family.process is not None)


def concerns_processes(contents: ModelFile, name: str | None, scenario: str | None) -> bool:
    """Whether what is asked for, by the names of a model and a scenario, has Gaussian processes."""
    asked = [contents.models[name]] if name in contents.models else list(contents.models.values())
    if scenario in contents.scenarios:
        asked = [contents.scenarios[scenario].model]
    return any(processes(model) for model in asked)


def task_of(
    contents: ModelFile,
    recordings: Source | Sequence[Source],
    name: str | None = None,
    scenario: str | None = None,
    resample: bool = False,
    anyway: bool = False,
) -> Task:
    """The task that a model, its scenario and recordings describe; of the noise, nothing is fitted yet."""
    model = _chosen_model(contents, name, scenario)
    return task_for(model, _chosen_scenario(contents, model, scenario), recordings, resample, anyway)


def fitting(task: Task, only: Sequence[str] = (), hold: Sequence[str] = (), full: Sequence[str] = ()) -> Task:
    """The task with the noise among what is fitted: what is named, or all but what is held.

    Unknowns and first states follow from the rest; a name of theirs among `hold` leaves them as they were.
    """
    names, n = z_names(task.derivation), len(task.model.states)
    labels = names[:n], names[n:], measurement_names(task.derivation)
    groups = {family.name: [str(c.name) for c in family.constants] for family in task.families}
    for entry in open_entries(*labels, task.matrices):
        groups.setdefault(entry.partition("[")[0], []).append(entry)
    for kind in full:
        if kind not in NOISES:
            raise SymdualError(f'"{kind}" is no matrix of noise: only {", ".join(NOISES)} can be full')
        if kind not in groups:
            raise SymdualError(f"{kind} is zero in the model and stays so; give it a value to start from")
    groups |= {name: [name] for name in names[n:]}
    groups[START] = [f"{START}[{name}]" for name in names[:n]]
    wanted = chosen(groups, [*only, *(full if only else ())], hold)
    held = {name for own in groups.values() for name in own} - wanted
    blocks = blocks_of(wanted, full, *labels, task.matrices)
    psi = np.concatenate([np.zeros(0), *(block.first for block in blocks)])
    return replace(task, noises=blocks, noise_psi=psi, held=frozenset(held))


def z_names(derivation: Derivation) -> list[str]:
    """The names of z = (x, theta) without processes; weights of a family are numbered."""
    own = {block.symbol for block in derivation.processes}
    names = [s.name for s in derivation.core]
    return names + [f"{b.symbol.name}[{i}]" for b in derivation.weights if b.symbol not in own for i in range(b.count)]


def task_for(
    model: Model,
    scenario: Scenario,
    recordings: Source | Sequence[Source],
    resample: bool = False,
    anyway: bool = False,
) -> Task:
    """The task for a model with the start and the prior of a scenario; of the noise, nothing is fitted."""
    derivation = derive(model)
    _require_positive(model)
    columns = _columns(derivation)
    around = _surroundings(model, scenario)
    series = read_series(recordings, columns, around, resample)
    together = joined(series)
    drifts = _drifts(derivation, together.steps)
    if len(series) > 1 and any(d.persistence != 1.0 or np.any(d.scales != 1.0) for d in drifts.values()):
        raise SymdualError(f"the Gaussian process of {model.name} drifts: fit its recordings one by one")
    _require_fit(series, together, derivation)
    kept = parameters(derivation)
    n, z = len(model.states), len(model.states) + len(kept)
    covariance, noise = np.zeros((z, z)), np.zeros((z, z))
    covariance[:n, :n] = scenario.start_covariance
    prior = scenario.prior_covariance
    covariance[n:, n:] = (np.diag(prior) if prior.ndim == 1 else prior)[np.ix_(kept, kept)]
    noise[:n, :n] = model.process_noise
    noise[n:, n:] = np.diag(np.zeros(len(kept)) if model.drift is None else model.drift[kept])
    return Task(
        derivation=derivation,
        scenario=scenario.name,
        start=np.concatenate([scenario.start, scenario.prior_mean[kept]]),
        start_covariance=covariance,
        persistence=np.ones(len(kept)) if model.transition is None else model.transition[kept],
        process_noise=noise,
        measurement_noise=model.measurement_noise,
        drifts=drifts,
        series=tuple(series),
        anyway=anyway,
        around=around,
        **together._asdict(),
    )


def _surroundings(model: Model, scenario: Scenario) -> Surroundings:
    """What the scenario says of signals; what was applied before the start is a part of its start."""
    names = tuple(s.name for s in model.signals)
    used = {s.name for e in (*model.dynamics, *model.observation) for s in e.free_symbols}
    believed = scenario.forecasts[:, [scenario.signal_names.index(name) for name in names]]
    return Surroundings(names, believed, tuple(name in used for name in names))


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


def joined(series: Sequence[Series]) -> Joined:
    """Recordings as one."""
    # the last inputs of a recording act on nothing; the step that they stand for is the one to the next recording
    lengths = [len(one.times) for one in series]
    heard = [np.zeros((k, 0)) if s.signals is None else s.signals for k, s in zip(lengths, series, strict=True)]
    return Joined(
        np.arange(sum(lengths)),
        np.concatenate([one.inputs for one in series])[:-1],
        np.concatenate([one.measurements for one in series]),
        np.concatenate([np.arange(k) for k in lengths]),
        np.concatenate(heard),
        frozenset(int(end) - 1 for end in np.cumsum(lengths)[:-1]),
    )


def _chosen_model(contents: ModelFile, name: str | None, scenario: str | None) -> Model:
    if name is not None and name not in contents.models:
        raise SymdualError(f'{contents.place} has no model "{name}"{did_you_mean(name, contents.models)}')
    if name is None and scenario in contents.scenarios:
        name = contents.scenarios[scenario].model.name
    asked = contents.models if name is None else {name: contents.models[name]}
    fitting = sorted(n for n, model in asked.items() if processes(model))
    if not fitting:
        raise SymdualError(f"{contents.place}: {' and '.join(asked)} has no Gaussian process, there is nothing to fit")
    if len(fitting) > 1:
        raise SymdualError(
            f"{contents.place} has several models with Gaussian processes; name one of {', '.join(fitting)} (--model)"
        )
    return contents.models[fitting[0]]


def _chosen_scenario(contents: ModelFile, model: Model, name: str | None) -> Scenario:
    own = {n: s for n, s in contents.scenarios.items() if s.model.name == model.name}
    if name is not None:
        if name not in own:
            raise SymdualError(f'{contents.place} has no scenario "{name}" of {model.name}{did_you_mean(name, own)}')
        return own[name]
    if not own:
        raise SymdualError(
            f"{contents.place} has no Scenario of {model.name}: add one, its start and start_covariance say what is "
            "known of the first state of a recording"
        )
    if len(own) > 1:
        raise SymdualError(
            f"{contents.place} has several scenarios; name one of {', '.join(sorted(own))} with --scenario"
        )
    return next(iter(own.values()))


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


def _require_positive(model: Model) -> None:
    """Hyperparameters are fitted in their logarithms, and the kernels are all that they change."""
    elsewhere = {s.name for e in (*model.dynamics, *model.observation) for s in e.free_symbols}
    for family in processes(model):
        for c in family.constants:
            if c.value <= 0:
                raise SymdualError(f'the hyperparameter "{c.name}" is {c.value:g}; only positive ones can be fitted')
            if c.name in elsewhere:
                raise SymdualError(
                    f'the constant "{c.name}" stands in the kernel of "{family.name}" and in the dynamics: give the '
                    "kernel one of its own"
                )
    if not any(family.constants for family in processes(model)):
        raise SymdualError(f"the kernels of {model.name} have no hyperparameters: make their numbers constants")


def _require_fit(series: Sequence[Series], together: Joined, derivation: Derivation) -> None:
    """Enough to learn from, and not more than can be done exactly."""
    where = " and ".join(one.name for one in series)
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
