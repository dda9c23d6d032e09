"""Checks compiled kernels entry by entry against 50-digit values and against differences of the model as written.

The error of an entry is its largest deviation over all points, relative to the largest size that the entry reaches
there: so a cancellation at one point does not count as a fault, and a wrong sign in any one derivative does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import mpmath
import numpy as np

from symdual.checks.exact import DIGITS, Number
from symdual.checks.processes import awake
from symdual.checks.references import NOTHING, CheckPoint, Expected, References
from symdual.derive.derivation import derive
from symdual.errors import SymdualError
from symdual.runtime import evaluate
from symdual.runtime.loading import LoadedPackage
from symdual.spec.model import Model
from symdual.spec.numbers import Array

TOLERANCE = 1e-10
EPSILON = float(np.finfo(np.float64).eps)
ZERO = 1e-12  #: deviation of an entry that is zero everywhere, relative to the largest entry of its kind


@dataclass(frozen=True)
class BlockResult:
    """The worst error of one block against one oracle."""

    block: str
    oracle: str
    entries: int
    error: float
    passed: bool

    @property
    def ulps(self) -> float:
        """The error in units in the last place of the entry's size."""
        return self.error / EPSILON


Reference = tuple[CheckPoint, list[Expected]]


def check_kernels(
    model: Model,
    package: LoadedPackage,
    points: int = 20,
    seed: int = 0,
    progress: Callable[[float], None] = lambda fraction: None,
) -> list[BlockResult]:
    """Compare every kernel of `package` with both oracles; one result per block and oracle."""
    model, package = awake(model, package, np.random.default_rng(seed))
    return compare(package, references(model, points, seed, progress))


def references(
    model: Model, points: int, seed: int = 0, progress: Callable[[float], None] = lambda fraction: None
) -> list[Reference]:
    """Random points at which the model is finite, with all that the kernels ought to return there."""
    random = np.random.default_rng(seed)
    found: list[Reference] = []
    with mpmath.workdps(DIGITS):
        oracles = References(derive(model), random)
        for point in _points(model, random, 10 * points):
            expected = oracles.at(point, differences=len(found) < max(3, points // 4))
            if expected is not None:
                found.append((point, expected))
                progress(len(found) / points)
            if len(found) == points:
                break
    if not found:
        raise SymdualError(
            f'no random point was found at which the model "{model.name}" is finite; nothing could be checked'
        )
    return found


def compare(package: LoadedPackage, expected: Iterable[Reference]) -> list[BlockResult]:
    """Evaluate the kernels at every point and judge them."""
    worst = _Worst()
    with mpmath.workdps(DIGITS):
        for point, entries in expected:
            with np.errstate(all="ignore"):
                computed = list(_computed(package, point))
            for entry in entries:
                for kernel, function, order, array in computed:
                    if (function, order) == (entry.function, entry.order):
                        worst.add(entry, kernel, float(array[entry.place]))
    return worst.results()


def _points(model: Model, random: np.random.Generator, count: int) -> Iterator[CheckPoint]:
    covariance = model.prior_covariance
    deviation = np.sqrt(covariance if covariance.ndim == 1 else np.diag(covariance))
    for _ in range(count):
        theta = model.prior_mean + np.clip(deviation, 0.1, 2.0) * random.normal(size=len(model.prior_mean))
        x, u = 1.5 * random.normal(size=len(model.states)), 1.5 * random.normal(size=len(model.inputs))
        costate = random.normal(size=len(model.states))
        multiplier = random.normal(size=len(model.observation))
        yield CheckPoint(int(random.integers(0, 20)), x, u, theta, costate, multiplier)


def _computed(package: LoadedPackage, point: CheckPoint) -> Iterator[tuple[str, str, int, Array]]:
    """What every kernel returns: its name, the function, the order of the derivative, an array over (x, theta, u)."""
    k, x, u, theta = point.k, point.x, point.u, point.theta
    yield "dynamics", "f", 0, evaluate.dynamics(package, x, u, theta, k)
    full = evaluate.jacobian(package, x, u, theta, k)
    yield "dynamics_jacobian", "f", 0, full.f
    yield "dynamics_jacobian", "f", 1, np.hstack([full.f_x, full.f_theta, full.f_u])
    f, f_x, f_u = evaluate.linearise(package, x, u, theta, k)
    yield "linearise", "f", 0, f
    yield "linearise", "f", 1, np.hstack([f_x, full.f_theta, f_u])
    second = evaluate.hessian(package, x, u, theta, point.costate, k)
    yield "dynamics_hessian", "f", 2, np.block([[second.zz, second.uz.T], [second.uz, second.uu]])
    each = evaluate.hessians(package, x, u, theta, k)
    yield "dynamics_hessians", "f", 2, np.tensordot(point.costate, each, axes=1)
    yield "observation", "h", 0, evaluate.observation(package, x, theta, k)
    measured = evaluate.observation_jacobian(package, x, theta, k)
    yield "observation_jacobian", "h", 0, measured.h
    yield "observation_jacobian", "h", 1, np.hstack([measured.h_x, measured.h_theta])
    curvature = evaluate.observation_hessian(package, x, theta, point.multiplier, k)
    yield "observation_hessian", "h", 2, curvature


@dataclass
class _Entry:
    """One entry of one kernel over all points."""

    deviation: float = 0.0
    size: float = 0.0

    def add(self, got: float, exact: Number) -> None:
        number = mpmath.mpf(got if abs(got) >= NOTHING else 0.0)
        deviation = float(abs(number - exact)) if np.isfinite(got) else np.inf
        self.deviation, self.size = max(self.deviation, deviation), max(self.size, float(abs(exact)))


@dataclass
class _Worst:
    """Collects deviations and sizes by block and entry."""

    blocks: dict[tuple[str, str], dict[tuple[str, int, tuple[int, ...]], _Entry]] = field(default_factory=dict)
    scales: dict[tuple[str, int], float] = field(default_factory=dict)

    def add(self, expected: Expected, kernel: str, got: float) -> None:
        entries = self.blocks.setdefault((expected.block, expected.oracle), {})
        entry = entries.setdefault((kernel, expected.order, expected.place), _Entry())
        entry.add(got, expected.exact)
        kind = (expected.function, expected.order)
        self.scales[kind] = max(self.scales.get(kind, 0.0), entry.size)

    def results(self) -> list[BlockResult]:
        found = []
        for (block, oracle), entries in self.blocks.items():
            scale = self.scales[block[0], next(iter(entries))[1]]
            worst = max(self._error(entry, scale) for entry in entries.values())
            found.append(BlockResult(block, oracle, len(entries), worst, worst <= TOLERANCE))
        return found

    @staticmethod
    def _error(entry: _Entry, scale: float) -> float:
        if entry.size > 0:
            return entry.deviation / entry.size
        # zero everywhere: only what rounding leaves of terms that cancel may be there
        return 0.0 if entry.deviation <= ZERO * scale else np.inf
