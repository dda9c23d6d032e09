"""A fitted model with its Gaussian processes as families of features, to predict recordings that it has not seen.

A process is known by its values at some points s, chosen among those that recordings visit so that the others follow
from them (pivoted Cholesky):

    g(a) = sum_j w_j kappa(a, s_j),      w = K^-1 g(s),      g(s) ~ N(m, V) given the fitted recordings

together with what is known of the other unknowns. With H, G and w the response, covariance and residuals of `evidence`,
K_s the covariance between the values along the recordings and those at s, and M_0 the response of the first adjoint,

    m = K_s' H' G^-1 w,     V = K_ss - K_s' H' G^-1 H K_s,     cov(z_0, g(s)) = -P_0 M_0 (K_s - K H' G^-1 H K_s)

What is predicted is then a matter of the filter of any other model, which goes on learning along a recording.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import sympy as sp
from scipy.linalg import block_diag, cho_factor, cho_solve

from symdual.errors import SymdualError
from symdual.estimation.fit import Subject, fitted_filter
from symdual.estimation.held_out import Refit, Rest
from symdual.estimation.quantities import Noises, Setting
from symdual.estimation.result import FirstState, Fit
from symdual.estimation.series import Series
from symdual.estimation.surroundings import Surroundings
from symdual.fitting.result import Fit as ProcessFit
from symdual.fitting.task import Task, joined, parameters
from symdual.fitting.trajectory import Trajectories
from symdual.numbers import Array
from symdual.runtime.loading import load
from symdual.runtime.problem import Belief
from symdual.spec.model import Model
from symdual.spec.symbols import Constant, DataArray, Family, FamilyToken, WeightArray

#: The share of the prior variance of a process that the values at the chosen points may leave open at the others.
OPEN = 1e-5
MOST_POINTS = 150  #: of each process
_JITTER = 1e-10


class Learned(NamedTuple):
    """What is known after a fit: points of each process, mean and covariance of z_0 followed by all values there."""

    points: tuple[Array, ...]
    mean: Array
    covariance: Array


class Replaced(NamedTuple):
    """A fitted model with features at `points` in place of its processes, and the fit of it."""

    about: Subject
    fit: Fit
    points: tuple[Array, ...]


def with_features(result: Fit, unseen: Sequence[Series], folder: str | Path | None = None) -> Replaced:
    """The fitted model as one without processes, for these recordings."""
    from symdual import api

    found = result.processes
    assert found is not None
    task = found.task
    if any(drift.persistence != 1.0 or np.any(drift.scales != 1.0) for drift in task.drifts.values()):
        raise SymdualError(f"the Gaussian process of {task.model.name} drifts: it is not predicted on other recordings")
    points = _points(found, unseen)
    learned = learn(found, points)
    model, mean, covariance = _model(found, learned)
    (made,) = api.generate(model, folder)
    package = load(made.folder)
    n = len(task.model.states)
    memory = tuple((model.inputs.index(s.of), s.steps) for s in model.states[len(model.own_states) :])
    prior = Belief(np.concatenate([task.start[:n], mean]), block_diag(task.start_covariance[:n, :n], covariance))
    around = Surroundings(memory=memory)
    noises = Noises(model.process_noise, model.measurement_noise, np.diag(_drift(model)))
    fitted = result._replace(
        model=model.name,
        unknowns=(),
        covariance=np.zeros((0, 0)),
        setting=Setting(mean, np.zeros((0, n)), noises),
        starts=(),
        recordings=(),
    )
    return Replaced(Subject(model.name, package, prior, False, None, around), fitted, points)


def refit(found: ProcessFit, replaced: Replaced) -> Refit:
    """Learns the processes from other measurements of the same recordings; hyperparameters and noise stay."""

    def rest(blanked: Sequence[Series]) -> Rest:
        psi, together = found.optimum.psi, joined(blanked)._asdict()
        task = replace(found.task, series=tuple(blanked), anyway=True, **together)
        trajectories = Trajectories(task)
        _, evidence, posterior, _ = trajectories.rest(trajectories.first(psi), psi)
        again = found._replace(task=task, optimum=found.optimum._replace(evidence=evidence, posterior=posterior))
        _, mean, covariance = _model(again, learn(again, replaced.points))
        setting, nx = replaced.fit.setting._replace(theta=mean), replaced.about.package.NX
        known = np.zeros_like(covariance)
        filters = []
        for one, begin in zip(blanked, evidence.score(psi).begins, strict=True):
            first = FirstState(one.name, begin.mean[:nx], begin.covariance[:nx, :nx])
            filters.append(fitted_filter(replaced.about, setting, first, one, known))
        return Rest(replaced.about, setting, covariance, filters)

    return rest


def _points(found: ProcessFit, unseen: Sequence[Series]) -> tuple[Array, ...]:
    """Points of each process that determine it where the recordings go."""
    optimum, candidates = found.optimum, [block.points for block in found.optimum.evidence.system.blocks]
    for one in unseen:
        task = _alone(found.task, one)
        trajectories = Trajectories(task)
        constants = trajectories.constants(optimum.psi)
        along = trajectories.first(optimum.psi).trajectory[:-1]
        blocks = trajectories.lineariser.steps(along, np.arange(task.steps), optimum.posterior.mean, constants)[3]
        candidates = [np.concatenate([p, block.points]) for p, block in zip(candidates, blocks, strict=True)]
    evidence, chosen = optimum.evidence, []
    for points, function in zip(candidates, evidence.functions, strict=True):
        values = evidence.values_of(function, optimum.psi)
        chosen.append(points[_pivots(function.gram(points, points, values))])
    return tuple(chosen)


def _alone(task: Task, one: Series) -> Task:
    """The same task for one other recording."""
    together = joined([one])
    drifts = {name: replace(drift, scales=np.ones(together.steps + 1)) for name, drift in task.drifts.items()}
    return replace(task, drifts=drifts, series=(one,), anyway=True, **together._asdict())


def _pivots(gram: Array) -> list[int]:
    """Rows of a covariance from which the others follow, by Cholesky's method with the largest pivot."""
    left, rows, found = np.diag(gram).copy(), np.zeros((0, len(gram))), list[int]()
    enough = OPEN * float(left.max())
    while len(found) < min(MOST_POINTS, len(gram)) and left.max() > enough:
        i = int(np.argmax(left))
        row = (gram[i] - rows[:, i] @ rows) / np.sqrt(left[i])
        rows, left = np.vstack([rows, row]), left - row**2
        left[i] = 0.0
        found.append(i)
    return found


def learn(found: ProcessFit, points: Sequence[Array]) -> Learned:
    """Mean and covariance of z_0 and of the values of all outputs of all processes at these points."""
    optimum, P = found.optimum, found.task.start_covariance
    values = optimum.evidence.elsewhere(optimum.psi, points)
    score = optimum.evidence.score(optimum.psi)
    shared = -P @ score.response @ values.shared
    known = score.begins[0]
    return Learned(
        tuple(points),
        np.concatenate([known.mean, values.mean]),
        np.block([[known.covariance, shared], [shared.T, values.covariance]]),
    )


def _model(found: ProcessFit, learned: Learned) -> tuple[Model, Array, Array]:
    """The model with features in place of processes, and mean and covariance of its unknowns."""
    task, model = found.task, found.task.model
    n, evidence = len(model.states), found.optimum.evidence
    numbers = {h.name: Constant(h.name, h.value) for h in found.hyperparameters}
    kernel = {c: numbers[str(c.name)] for c in task.hyperparameters}
    families, tokens, roots = list[Family](), dict[sp.Basic, sp.Basic](), list[Array]()
    others = iter(zip(learned.points, evidence.functions, strict=True))
    for family in model.families:
        if family.process is None:
            families.append(family)
            continue
        points, function = next(others)
        families.append(_features(family, points, kernel))
        tokens[FamilyToken(family)] = FamilyToken(families[-1])
        gram = function.gram(points, points, evidence.values_of(function, found.optimum.psi))
        gram = gram + _JITTER * float(np.mean(np.diag(gram))) * np.eye(len(gram))
        roots += [np.asarray(cho_solve(cho_factor(gram), np.eye(len(gram))))] * len(family.weights)
    # z_0 and the values at the points become z_0 and the weights of the features there
    turn = block_diag(np.eye(len(task.start)), *roots)
    mean, covariance = turn @ learned.mean, turn @ learned.covariance @ turn.T
    order = _order(task, families, n)
    drift = None
    if model.drift is not None:
        own = np.concatenate([model.drift[parameters(task.derivation)], np.zeros(len(mean) - len(task.start))])
        drift = own[order - n]
    features = model.changed(
        name=f"{model.name}_features",
        families=tuple(families),
        constants=tuple(numbers.get(c.name, c) for c in model.constants),
        dynamics=tuple(e.xreplace(tokens) for e in model.dynamics),
        observation=tuple(e.xreplace(tokens) for e in model.observation),
        process_noise=found.noise.process_noise[:n, :n],
        measurement_noise=found.noise.measurement_noise,
        transition=None if model.transition is None else _transition(task, len(mean))[order - n],
        drift=drift,
        filter="plain",
        fitted=None,
        objective=None,
        combinations=0,
    )
    return features, mean[order], covariance[np.ix_(order, order)]


def _features(family: Family, points: Array, kernel: dict[Constant, Constant]) -> Family:
    process = family.process
    assert process is not None
    count = len(points)
    return Family(
        name=family.name,
        kind="kernel features",
        count=count,
        arguments=family.arguments,
        summands=tuple(w.symbol * process.kernel.xreplace(kernel) for w in family.weights),
        weights=tuple(WeightArray(w.symbol, np.zeros(count), np.zeros(count)) for w in family.weights),
        data=tuple(DataArray(place, points[:, q].copy()) for q, place in enumerate(process.places)),
        constants=tuple(kernel[c] for c in family.constants),
    )


def _order(task: Task, families: Sequence[Family], n: int) -> Array:
    """Where the unknowns of the model with features stand among z_0 and all weights."""
    scalars = len(task.model.unknowns)
    kept, learned = n + scalars, len(task.start)
    order = [*range(n, n + scalars)]
    for before, family in zip(task.model.families, families, strict=True):
        if before.process is None:
            order += range(kept, kept + family.size)
            kept += family.size
        else:
            order += range(learned, learned + family.size)
            learned += family.size
    return np.array(order)


def _transition(task: Task, size: int) -> Array:
    return np.concatenate([task.persistence, np.ones(size - len(task.start))])


def _drift(model: Model) -> Array:
    return np.zeros(len(model.prior_mean)) if model.drift is None else model.drift
