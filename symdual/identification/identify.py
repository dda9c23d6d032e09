"""`identify`: which unknowns, and which combinations of them, an experiment can tell, before it is made.

With unknowns theta ~ N(m, S) and the information matrix F = sum_k E_k' V_k E_k of an experiment (E the sensitivities
of the innovations to theta, V their inverse covariance), the covariance after it is about (S^-1 + F)^-1. In units of
the prior,

    J = S^1/2 F S^1/2 = V diag(lambda) V',       deviation along v_i:   prior / sqrt(1 + lambda_i)

so lambda_i is how much more the experiment tells about the combination v_i than the prior did, and 0 is a combination
that it does not show at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symdual.common.arrays import Array
from symdual.common.display import first_few
from symdual.common.errors import SymdualError, did_you_mean
from symdual.common.transforms import Transforms, moments_of
from symdual.common.words import spelled
from symdual.identification.experiment import best_experiment
from symdual.identification.likelihood import Report, unreported
from symdual.identification.parameters.filtering import Filter
from symdual.identification.parameters.prior_model import PriorModel, first_states, prior_model, whole_filter
from symdual.identification.parameters.quantities import unknown_names
from symdual.identification.recordings import Source
from symdual.identification.structural import Ambiguity, ambiguities
from symdual.identification.surroundings import read_recordings
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.replay import Recording
from symdual.spec.loading import Source as ModelSource

PARTS = 60  #: points in time at which the deviations are kept
UNKNOWN = 0.1  #: a combination of which an experiment tells less than this share of the prior stays unknown
RANK = 1e-10


class Direction(NamedTuple):
    """A combination of unknowns: weights by name in units of prior deviations, and what the experiment tells of it."""

    weights: dict[str, float]
    information: float

    @property
    def shrinks(self) -> float:
        """The deviation after the experiment as a share of the one before."""
        return 1.0 / math.sqrt(1.0 + self.information)

    def words(self) -> str:
        """The combination in words."""
        terms = [f"{w:+.2g} {name}" for name, w in self.weights.items()]
        return " ".join(terms).removeprefix("+")


class Identification(NamedTuple):
    """What an experiment can tell.

    For N unknowns with a prior: deviations before and after (N,), in your units; `information` (N, N) in units of the
    prior, its eigenvalues (N,), largest first, and eigenvectors (N, N) in columns; `rank` and `condition` of it.
    `history` (parts, N) are the deviations after the parts of the experiment that end at `times` (parts,).
    `ambiguities` hold for every experiment. `inputs` (K, NU) are those of the experiment, `kind` is "recording", "plan"
    or "best".
    """

    model: str
    kind: str
    unknowns: tuple[str, ...]
    before: Array
    after: Array
    information: Array
    eigenvalues: Array
    eigenvectors: Array
    rank: int
    condition: float
    history: Array
    times: Array
    inputs: Array
    input_names: tuple[str, ...]
    step: float
    ambiguities: tuple[Ambiguity, ...]
    moving: tuple[str, ...]

    def __repr__(self) -> str:
        told = zip(self.unknowns, self.before, self.after, strict=True)
        parts = [f"{name} {before:.3g} -> {after:.3g}" for name, before, after in told]
        return f"<Identification of {self.model}, {self.gain:.1f} bits; deviations: {first_few(parts)}>"

    @property
    def gain(self) -> float:
        """The information in bits: by how much the entropy of the unknowns falls."""
        return float(0.5 * np.log2(1.0 + np.maximum(self.eigenvalues, 0.0)).sum())

    @property
    def directions(self) -> tuple[Direction, ...]:
        """All combinations, the best known first; weights below a tenth of the largest are left out."""
        found = []
        for value, vector in zip(self.eigenvalues, self.eigenvectors.T, strict=True):
            sign = math.copysign(1.0, vector[int(np.argmax(np.abs(vector)))])
            order = np.argsort(-np.abs(vector), kind="stable")
            largest = float(np.max(np.abs(vector)))
            kept = {self.unknowns[i]: float(sign * vector[i]) for i in order if abs(vector[i]) > 0.1 * largest}
            found.append(Direction(kept, float(max(value, 0.0))))
        return tuple(found)

    @property
    def open(self) -> tuple[Direction, ...]:
        """The combinations that stay unknown."""
        return tuple(d for d in self.directions if d.information < UNKNOWN)

    def columns(self) -> dict[str, Any]:
        """Unknowns with their deviations before and after, as pandas.DataFrame takes them."""
        return {"name": list(self.unknowns), "before": self.before, "after": self.after}

    def sentences(self) -> Iterator[str]:
        """What can be learned and what not, in words."""
        count = len(self.unknowns)
        yield from (one.sentence() for one in self.ambiguities)
        condition = f", condition {self.condition:.2g}" if math.isfinite(self.condition) else ""
        yield f"rank {self.rank} of {count}{condition}; the experiment tells {self.gain:.3g} bits"
        stays = self.open
        if not stays:
            yield "all unknowns, and all combinations of them, are learned"
        for direction in stays[:5]:
            share = 100 * direction.shrinks
            what = direction.words()
            if len(direction.weights) == 1:
                yield f"{next(iter(direction.weights))} stays unknown: its deviation stays at {share:.0f} %"
            else:
                yield f"{what} stays unknown (in units of prior deviations): {share:.0f} % of it are left"
        if len(stays) > 5:
            yield f"and {len(stays) - 5} more combinations"
        if self.moving:
            several = len(self.moving) > 1
            drifts, of, stood = ("drift", "them", "they") if several else ("drifts", "it", "it")
            yield f"{', '.join(self.moving)} {drifts}: what is said of {of} is as if {stood} stood still"

    def to_json(self) -> dict[str, Any]:
        """The result as plain data."""
        return {
            "model": self.model,
            "kind": self.kind,
            "unknowns": {
                name: {"before": float(b), "after": float(a)}
                for name, b, a in zip(self.unknowns, self.before, self.after, strict=True)
            },
            "rank": self.rank,
            "condition": self.condition if math.isfinite(self.condition) else None,
            "bits": self.gain,
            "eigenvalues": self.eigenvalues.tolist(),
            "open": [d.weights for d in self.open],
            "ambiguities": [one.sentence() for one in self.ambiguities],
            "inputs": {name: self.inputs[:, a].tolist() for a, name in enumerate(self.input_names)},
        }


@spelled
def identify(
    model: ModelSource,
    recording: Source | None = None,
    *,
    steps: int | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    scenario: str | None = None,
    name: str | None = None,
    resample: bool = False,
    folder: str | Path | None = None,
    report: Report = unreported,
) -> Identification:
    """What an experiment can tell about the unknowns of a model.

    Args:
        model, scenario, name, resample, folder: as for `fit`.
        recording: a recording, or a plan without measurements; None for the best experiment within the bounds.
        steps: the length of the best experiment; the horizon of the scenario by default, else 50.
        bounds: (lower, upper) of inputs by name, instead of the model's own.
        report: is told what is being done, and which share of it is done.

    >>> told = symdual.identify(toy, {"time": [0, 1, 2], "u": [1.0, -1.0, 0.0]}, folder=folder / "generated")
    >>> told.rank, bool(told.after[0] < told.before[0])
    (1, True)
    """
    about = prior_model(model, scenario, name, folder)
    package = about.package
    if not package.NTHETA:
        raise SymdualError(f"{about.name} has no unknowns: there is nothing to identify")
    if recording is None:
        length = about.horizon or 50 if steps is None else steps
        if length < 1:
            raise SymdualError(f"an experiment needs at least one step, not {length}")
        applied = _best(about, length, bounds or {}, report)
        kind = "best"
    else:
        (applied,) = read_recordings(recording, package, about.around, resample, measured=False)
        kind = "recording" if applied.measured else "plan"
    return _judged(about, applied, kind)


def _best(about: PriorModel, steps: int, bounds: Mapping[str, tuple[float, float]], report: Report) -> Recording:
    package = about.package
    lower, upper = package.numbers["lower"].copy(), package.numbers["upper"].copy()
    for key, (low, high) in bounds.items():
        if key not in package.INPUTS:
            raise SymdualError(f'there is no input "{key}"{did_you_mean(key, package.INPUTS)}')
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise SymdualError(
                f'the bounds of "{key}" must be two finite numbers, the lower first, not {low:g}:{high:g}'
            )
        lower[package.INPUTS[key]], upper[package.INPUTS[key]] = low, high
    for key, place in package.INPUTS.items():
        if not (math.isfinite(lower[place]) and math.isfinite(upper[place])):
            raise SymdualError(f'the input "{key}" has no bounds: without them the best experiment is an infinite one')
    signals = about.around.signals(steps + 1) if about.around.names else None
    own, _ = _unknown_filter(about, about.prior.mean, signals)
    experiment = best_experiment(own, lower, upper, steps, report=report)
    rows = np.concatenate([experiment.inputs, experiment.inputs[-1:]])
    nothing = np.full((len(rows), package.NY), np.nan)
    times = np.asarray(step_length(package) * np.arange(len(rows)), dtype=np.float64)
    return Recording(times, rows, nothing, np.zeros(len(rows), np.int64), (), signals, name="best")


def step_length(package: LoadedPackage) -> float:
    """The time between two rows of a plan."""
    if "step_length" in package.DATA_ENTRIES:
        return float(package.numbers["data"][package.DATA_ENTRIES["step_length"][0]])
    return 1.0


def _unknown_filter(about: PriorModel, mean: Array, signals: Array | None) -> tuple[Filter, NDArray[np.int64]]:
    """The filter with the unknowns that have room in it, and their numbers."""
    whole, nx = whole_filter(about, mean, signals), about.package.NX
    room = np.flatnonzero(np.diag(about.prior.covariance)[nx:] > 0)
    moving = np.diag(whole.process_noise)[nx:] > 0
    kept = np.flatnonzero((np.diag(about.prior.covariance)[nx:] > 0) | moving)
    if not len(room):
        raise SymdualError(f"all unknowns of {about.name} have the prior variance zero: there is nothing to identify")
    active = np.concatenate([np.arange(nx), nx + kept]).astype(np.int64)
    own = whole._replace(
        covariance=np.ascontiguousarray(whole.covariance[np.ix_(active, active)]),
        active=active,
        process_noise=np.ascontiguousarray(whole.process_noise[np.ix_(active, active)]),
        transition=np.ascontiguousarray(whole.transition[np.ix_(kept, kept)]),
    )
    return own, kept


def _judged(about: PriorModel, applied: Recording, kind: str) -> Identification:
    assert about.written is not None
    package = about.package
    nx = package.NX
    mean = about.prior.mean.copy()
    if about.flat and kind == "recording":
        mean[:nx] = first_states(about, [applied])[0]
    own, kept = _unknown_filter(about, mean, applied.signals)
    expected = kind != "recording"
    measurements = np.zeros_like(applied.measurements) if expected else applied.measurements
    S = about.prior.covariance[nx:, nx:][np.ix_(kept, kept)]
    deviations = np.sqrt(np.diag(S))
    # sensitivities along the trajectory that the prior mean of the unknowns gives; the state follows what was measured
    states = own._replace(
        covariance=np.ascontiguousarray(own.covariance[:nx, :nx]),
        active=np.arange(nx, dtype=np.int64),
        process_noise=np.ascontiguousarray(own.process_noise[:nx, :nx]),
        transition=np.zeros((0, 0)),
    )
    filtered = states.run(applied.inputs, measurements, expected)
    if not math.isfinite(filtered.log_likelihood):
        raise SymdualError("the filter breaks down along this experiment with the prior means of the unknowns")
    directions = np.zeros((package.NZ, len(kept)))
    directions[nx + kept, np.arange(len(kept))] = 1.0
    parts = min(PARTS, len(applied.times))
    gathered = states.information(applied.inputs, measurements, filtered, directions, parts, expected)
    values, vectors = np.linalg.eigh(S)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    scaled = root @ gathered[-1] @ root
    eigenvalues, eigenvectors = np.linalg.eigh(0.5 * (scaled + scaled.T))
    eigenvalues, eigenvectors = eigenvalues[::-1], eigenvectors[:, ::-1].copy()
    known = eigenvalues > RANK * max(float(eigenvalues[0]), 1e-300)
    eigenvectors[:, ~known] = _plainest(eigenvectors[:, ~known])
    history = np.array([np.sqrt(np.diag(_after(root, part))) for part in gathered])
    own_units = [package.transforms[nx + i] for i in kept] if package.transforms else []
    before, history = (_in_own_units(own_units, mean[nx + kept], d) for d in (deviations, history))
    names = unknown_names(package)
    moving = np.diag(own.process_noise)[nx:] > 0
    open_ = (np.diag(about.prior.covariance)[:nx] > 0) | about.flat
    open_[about.remembering] = False
    begins = [None if unknown else float(mean[i]) for i, unknown in enumerate(open_)]
    return Identification(
        model=about.name,
        kind=kind,
        unknowns=tuple(names[i] for i in kept),
        before=before,
        after=history[-1],
        information=scaled,
        eigenvalues=np.maximum(eigenvalues, 0.0),
        eigenvectors=eigenvectors,
        rank=int(known.sum()),
        condition=float(eigenvalues[0] / eigenvalues[-1]) if known.all() else math.inf,
        history=history,
        times=applied.times[((np.arange(parts) + 1) * len(applied.times) - 1) // parts],
        inputs=applied.inputs,
        input_names=tuple(package.INPUTS),
        step=step_length(package),
        ambiguities=ambiguities(about.written, begins),
        moving=tuple(names[i] for i, m in zip(kept, moving, strict=True) if m),
    )


def _in_own_units(transforms: Transforms, mean: Array, deviations: Array) -> Array:
    """Deviations in the user's units of unknowns that are still where they were believed to be."""
    return np.asarray(np.sqrt(moments_of(transforms, np.broadcast_to(mean, deviations.shape), deviations**2).variance))


def _plainest(basis: Array) -> Array:
    """The same space by orthonormal columns with few large entries each.

    Of combinations that an experiment does not show at all, any mixture is an eigenvector too. Columns are turned in
    pairs until the sum of the fourth powers of all entries is largest (quartimax): with x and y, by a quarter of the
    angle of sum (x + iy)^4.
    """
    turned = basis.copy()
    for _ in range(100):
        widest = 0.0
        for i, j in combinations(range(turned.shape[1]), 2):
            fourth = complex(np.sum((turned[:, i] + 1j * turned[:, j]) ** 4))
            angle = 0.25 * math.atan2(fourth.imag, fourth.real)
            c, s = math.cos(angle), math.sin(angle)
            turned[:, [i, j]] = turned[:, [i, j]] @ np.array([[c, -s], [s, c]])
            widest = max(widest, abs(angle))
        if widest < 1e-12:
            break
    return turned


def _after(root: Array, information: Array) -> Array:
    """(S^-1 + F)^-1 = S^1/2 (1 + S^1/2 F S^1/2)^-1 S^1/2."""
    inner = np.eye(len(root)) + root @ information @ root
    return np.asarray(root @ np.linalg.solve(inner, root))
