"""`Task`: a model, what is known of its start, and a recording of it, as arrays."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symdual.derive.derivation import Derivation, derive
from symdual.emit.facts import measurement_names
from symdual.errors import SymdualError, did_you_mean
from symdual.fitting.noise import NoiseEntry, Noises, chosen, open_entries
from symdual.numbers import Array
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.replay import read_recording, steps_between
from symdual.spec.loading import ModelFile, load_model_file
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
    was before. psi are the logarithms of the hyperparameters and of the deviations of `noises`; `held` are not fitted.
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
    ignored: tuple[str, ...] = ()
    recordings: tuple[str, ...] = ()
    breaks: frozenset[int] = frozenset()
    noises: tuple[NoiseEntry, ...] = ()
    held: frozenset[str] = frozenset()

    @property
    def model(self) -> Model:
        """The model whose processes are fitted."""
        return self.derivation.model

    @property
    def steps(self) -> int:
        """T, the number of steps from the first row to the last."""
        return len(self.inputs)

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
        return (*(str(c.name) for c in self.hyperparameters), *(entry.name for entry in self.noises))

    @property
    def psi(self) -> Array:
        """psi of the model's own numbers."""
        variances = [Noises(self.process_noise, self.measurement_noise).variance(entry) for entry in self.noises]
        return np.concatenate([np.log([c.value for c in self.hyperparameters]), 0.5 * np.log(variances)])

    def under(self, psi: Array) -> Task:
        """The task with the noise of psi."""
        noises = Noises(self.process_noise, self.measurement_noise)
        process_noise, measurement_noise = noises.scaled(self.noises, psi[len(self.hyperparameters) :])
        return replace(self, process_noise=process_noise, measurement_noise=measurement_noise)

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


def read_task(
    model_file: Path,
    data_files: Path | Sequence[Path],
    name: str | None = None,
    scenario: str | None = None,
    only: Sequence[str] = (),
    hold: Sequence[str] = (),
) -> Task:
    """The task that a model file and recordings as for `symdual replay` describe; by default all is fitted."""
    contents = load_model_file(model_file)
    model = _chosen_model(contents, name)
    task = task_for(model, _chosen_scenario(contents, model, scenario), data_files)
    return fitting(task, only, hold)


def fitting(task: Task, only: Sequence[str] = (), hold: Sequence[str] = ()) -> Task:
    """The task with the noise among what is fitted: what is named, or all but what is held."""
    names = z_names(task.derivation)
    outputs = measurement_names(task.derivation)
    noises = Noises(task.process_noise, task.measurement_noise)
    entries = open_entries(names, len(task.model.states), outputs, noises)
    groups = {family.name: [str(c.name) for c in family.constants] for family in task.families}
    for entry in entries:
        groups.setdefault(entry.name.partition("[")[0], []).append(entry.name)
    wanted = chosen(groups, only, hold)
    held = {name for own in groups.values() for name in own} - wanted
    return replace(task, noises=tuple(e for e in entries if e.name in wanted), held=frozenset(held))


def z_names(derivation: Derivation) -> list[str]:
    """The names of z = (x, theta) without processes; weights of a family are numbered."""
    own = {block.symbol for block in derivation.processes}
    names = [s.name for s in derivation.core]
    return names + [f"{b.symbol.name}[{i}]" for b in derivation.weights if b.symbol not in own for i in range(b.count)]


def task_for(model: Model, scenario: Scenario, data_files: Path | Sequence[Path]) -> Task:
    """The task for a model with the start and the prior of a scenario; of the noise, nothing is fitted."""
    if model.memory:
        raise SymdualError(f"{model.name} remembers inputs (`previous`), with which no hyperparameters are fitted")
    if model.signals:
        raise SymdualError(
            f'{model.name} has the signal "{model.signals[0].name}", with which no hyperparameters are fitted'
        )
    derivation = derive(model)
    _require_positive(model)
    files = [data_files] if isinstance(data_files, Path) else list(data_files)
    together = _joined(files, _columns(derivation))
    drifts = _drifts(derivation, together.steps)
    if len(files) > 1 and any(d.persistence != 1.0 or np.any(d.scales != 1.0) for d in drifts.values()):
        raise SymdualError(f"the Gaussian process of {model.name} drifts: fit its recordings one by one")
    _require_fit(files[0], together.measurements, together.steps, derivation)
    kept = _parameters(derivation)
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
        times=together.times,
        inputs=together.inputs,
        measurements=together.measurements,
        ignored=together.ignored,
        recordings=tuple(file.name for file in files),
        breaks=together.breaks,
    )


class _Joined(NamedTuple):
    """Recordings one after the other, with a step between them."""

    times: Indices
    inputs: Array
    measurements: Array
    breaks: frozenset[int]
    ignored: tuple[str, ...]

    @property
    def steps(self) -> int:
        return len(self.inputs)


def _joined(files: Sequence[Path], package: LoadedPackage) -> _Joined:
    times, inputs, measurements, breaks, ignored, begin = [], [], [], [], [], 0
    for number, file in enumerate(files):
        recording = read_recording(file, package)
        counts = steps_between(recording, package)
        if number:
            breaks.append(begin - 1)
            inputs.append(np.zeros((1, recording.inputs.shape[1])))
        times.append(begin + np.cumsum(counts))
        inputs.append(np.repeat(recording.inputs[:-1], counts[1:], axis=0))
        measurements.append(recording.measurements)
        ignored += [name for name in recording.ignored if name not in ignored]
        begin = int(times[-1][-1]) + 1
    return _Joined(
        np.concatenate(times),
        np.concatenate(inputs),
        np.concatenate(measurements),
        frozenset(breaks),
        tuple(ignored),
    )


def _chosen_model(contents: ModelFile, name: str | None) -> Model:
    if name is not None and name not in contents.models:
        raise SymdualError(f'{contents.place} has no model "{name}"{did_you_mean(name, contents.models)}')
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
    described.DATA_ENTRIES = {} if model.step is None else {"step_length": (0, 1)}
    return LoadedPackage(model.name, Path(), described, {"data": np.array([model.step or 0.0])})


def _parameters(derivation: Derivation) -> list[int]:
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


def _require_fit(file: Path, measurements: Array, steps: int, derivation: Derivation) -> None:
    """Enough to learn from, and not more than can be done exactly."""
    measured = int(np.isfinite(measurements).sum())
    values = steps * sum(point.family.process is not None for point in derivation.dynamics.program.points)
    if measured == 0:
        raise SymdualError(f"nothing was measured in {file}")
    if steps < 2:
        raise SymdualError(f"{file} covers {steps} steps, too few to learn anything from")
    if values > MOST_VALUES or measured > MOST_MEASURED:
        raise SymdualError(
            f"{file} covers {steps} steps with {values} values of Gaussian processes and {measured} measured numbers; "
            f"an exact likelihood is for at most {MOST_VALUES} and {MOST_MEASURED}: fit a part of the recording"
        )
