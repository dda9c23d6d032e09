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

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.identification.held_out import Predictor, Rest
from symdual.identification.noise import Noises
from symdual.identification.parameters.prior_model import PriorModel, fitted_filter
from symdual.identification.processes.search import ProcessOptimum
from symdual.identification.processes.setup import ProcessSetup, joined, parameters
from symdual.identification.processes.trajectory import Trajectories
from symdual.identification.result import FirstState, Setting
from symdual.identification.surroundings import surroundings
from symdual.runtime.belief import Belief
from symdual.runtime.loading import load
from symdual.runtime.replay import Recording
from symdual.spec.specification import Specification
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
    """A fitted model with features at `points` in place of its processes."""

    predictor: Predictor
    points: tuple[Array, ...]


def with_features(optimum: ProcessOptimum, unseen: Sequence[Recording], folder: str | Path | None = None) -> Replaced:
    """The fitted model as one without processes, for these recordings."""
    from symdual.generation import generated_alone

    setup = optimum.evidence.setup
    if any(drift.persistence != 1.0 or np.any(drift.scales != 1.0) for drift in setup.drifts.values()):
        raise SymdualError(
            f"the Gaussian process of {setup.model.name} drifts: it is not predicted on other recordings"
        )
    points = _points(optimum, unseen)
    model, mean, covariance = _model(optimum, learn(optimum, points))
    package = load(generated_alone(model, folder, parts="likelihood"))
    n = len(setup.model.states)
    prior = Belief(np.concatenate([setup.start[:n], mean]), block_diag(setup.start_covariance[:n, :n], covariance))
    around = surroundings(model, (), None)._replace(begun=True)  # recordings are complete
    about = PriorModel(model.name, package, prior, False, None, around)
    setting = Setting(
        mean, np.zeros((0, n)), Noises(model.process_noise, model.measurement_noise, np.diag(_drift(model)))
    )

    def refit(blanked: Sequence[Recording]) -> Rest:
        """Learns the processes from other measurements of the same recordings; hyperparameters and noise stay."""
        again = _again(optimum, blanked)
        _, mean, covariance = _model(again, learn(again, points))
        own, known, filters = setting._replace(theta=mean), np.zeros_like(covariance), []
        for one, begin in zip(blanked, again.evidence.score(again.psi).begins, strict=True):
            first = FirstState(one.name, begin.mean[:n], begin.covariance[:n, :n])
            filters.append(fitted_filter(about, own, first, one, known))
        return Rest(about, own, covariance, filters)

    return Replaced(Predictor(about, setting, covariance, (), refit), points)


def _again(optimum: ProcessOptimum, blanked: Sequence[Recording]) -> ProcessOptimum:
    """The most probable trajectory for other measurements of the same recordings."""
    psi, together = optimum.psi, joined(blanked)._asdict()
    trajectories = Trajectories(replace(optimum.evidence.setup, recordings=tuple(blanked), anyway=True, **together))
    _, evidence, posterior, _ = trajectories.rest(trajectories.first(psi), psi)
    return replace(optimum, evidence=evidence, posterior=posterior)


def _points(optimum: ProcessOptimum, unseen: Sequence[Recording]) -> tuple[Array, ...]:
    """Points of each process that determine it where the recordings go."""
    candidates = [block.points for block in optimum.evidence.system.blocks]
    for one in unseen:
        setup = _alone(optimum.evidence.setup, one)
        trajectories = Trajectories(setup)
        constants = trajectories.constants(optimum.psi)
        along = trajectories.first(optimum.psi).trajectory[:-1]
        blocks = trajectories.lineariser.steps(along, np.arange(setup.steps), optimum.posterior.mean, constants)[3]
        candidates = [np.concatenate([p, block.points]) for p, block in zip(candidates, blocks, strict=True)]
    evidence, chosen = optimum.evidence, []
    for points, function in zip(candidates, evidence.functions, strict=True):
        values = evidence.values_of(function, optimum.psi)
        chosen.append(points[_pivots(function.gram(points, points, values))])
    return tuple(chosen)


def _alone(setup: ProcessSetup, one: Recording) -> ProcessSetup:
    """The same setup for one other recording."""
    together = joined([one])
    drifts = {name: replace(drift, scales=np.ones(together.steps + 1)) for name, drift in setup.drifts.items()}
    return replace(setup, drifts=drifts, recordings=(one,), anyway=True, **together._asdict())


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


def learn(optimum: ProcessOptimum, points: Sequence[Array]) -> Learned:
    """Mean and covariance of z_0 and of the values of all outputs of all processes at these points."""
    P = optimum.evidence.setup.start_covariance
    values = optimum.evidence.elsewhere(optimum.psi, points)
    score = optimum.evidence.score(optimum.psi)
    shared = -P @ score.response @ values.shared
    known = score.begins[0]
    return Learned(
        tuple(points),
        np.concatenate([known.mean, values.mean]),
        np.block([[known.covariance, shared], [shared.T, values.covariance]]),
    )


def _model(optimum: ProcessOptimum, learned: Learned) -> tuple[Specification, Array, Array]:
    """The model with features in place of processes, and mean and covariance of its unknowns."""
    evidence, setup = optimum.evidence, optimum.evidence.setup
    model, n = setup.model, len(setup.model.states)
    fitted = zip(setup.hyperparameters, np.exp(optimum.psi).tolist(), strict=False)
    numbers = {str(c.name): Constant(str(c.name), value) for c, value in fitted}
    kernel = {c: numbers[str(c.name)] for c in setup.hyperparameters}
    noises = setup.under(optimum.psi).noises
    families, tokens, roots = list[Family](), dict[sp.Basic, sp.Basic](), list[Array]()
    others = iter(zip(learned.points, evidence.functions, strict=True))
    for family in model.families:
        if family.process is None:
            families.append(family)
            continue
        points, function = next(others)
        families.append(_features(family, points, kernel))
        tokens[FamilyToken(family)] = FamilyToken(families[-1])
        gram = function.gram(points, points, evidence.values_of(function, optimum.psi))
        gram = gram + _JITTER * float(np.mean(np.diag(gram))) * np.eye(len(gram))
        roots += [np.asarray(cho_solve(cho_factor(gram), np.eye(len(gram))))] * len(family.weights)
    # z_0 and the values at the points become z_0 and the weights of the features there
    turn = block_diag(np.eye(len(setup.start)), *roots)
    mean, covariance = turn @ learned.mean, turn @ learned.covariance @ turn.T
    order = _order(setup, families, n)
    drift = None
    if model.drift is not None:
        own = np.concatenate([model.drift[parameters(setup.derivation)], np.zeros(len(mean) - len(setup.start))])
        drift = own[order - n]
    features = model.changed(
        name=f"{model.name}_features",
        families=tuple(families),
        constants=tuple(numbers.get(c.name, c) for c in model.constants),
        dynamics=tuple(e.xreplace(tokens) for e in model.dynamics),
        observation=tuple(e.xreplace(tokens) for e in model.observation),
        process_noise=noises.process_noise,
        measurement_noise=noises.measurement_noise,
        transition=None if model.transition is None else _transition(setup, len(mean))[order - n],
        drift=drift,
        filter="extended",
        square_root=False,
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


def _order(setup: ProcessSetup, families: Sequence[Family], n: int) -> Array:
    """Where the unknowns of the model with features stand among z_0 and all weights."""
    scalars = len(setup.model.unknowns)
    kept, learned = n + scalars, len(setup.start)
    order = [*range(n, n + scalars)]
    for before, family in zip(setup.model.families, families, strict=True):
        if before.process is None:
            order += range(kept, kept + family.size)
            kept += family.size
        else:
            order += range(learned, learned + family.size)
            learned += family.size
    return np.array(order)


def _transition(setup: ProcessSetup, size: int) -> Array:
    return np.concatenate([setup.persistence, np.ones(size - len(setup.start))])


def _drift(model: Specification) -> Array:
    return np.zeros(len(model.prior_mean)) if model.drift is None else model.drift
