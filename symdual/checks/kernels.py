"""Checks compiled kernels entry by entry against 50-digit values and against differences of the model as written.

A deviation is no fault as far as double precision cannot do better: each entry has a bound on the error of its
operations at each point. What goes beyond is judged by the largest size that the entry reaches at any point: so a
cancellation at one point does not count as a fault, and a wrong sign in any one derivative does. Points are drawn where
the model lives, and on and beside every boundary of its cases. Where the model has no finite value or derivative, or
double precision none on the way to it, nothing is judged: that is counted, and told apart from a fault.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import mpmath
import numpy as np

from symdual.checks.places import places
from symdual.checks.processes import awake
from symdual.checks.references import CheckPoint, Expected, References
from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.derive.derivation import derive
from symdual.many_digits.arithmetic import DIGITS
from symdual.runtime import evaluate
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.noise import has_state_dependent_noise
from symdual.runtime.objective import constraints_of, has_objective
from symdual.spec.scenario import Scenario
from symdual.spec.specification import Specification

TOLERANCE = 1e-10
EPSILON = float(np.finfo(np.float64).eps)
SMALLEST = float(np.finfo(np.float64).smallest_subnormal)
MARGIN = 16  #: how often the bound on its error an entry may miss
MANY = 300  #: features from which on fewer points are enough
PATIENCE = 40  #: draws around a place that may fail before the next is tried


@dataclass(frozen=True)
class BlockResult:
    """The worst error of one block against one oracle, and at how many points there was nothing finite to compare."""

    block: str
    oracle: str
    entries: int
    error: float
    passed: bool
    undefined: int = 0

    @property
    def ulps(self) -> float:
        """The error in units in the last place of the entry's size."""
        return self.error / EPSILON


Reference = tuple[CheckPoint, list[Expected]]


def check_kernels(
    model: Specification,
    package: LoadedPackage,
    points: int = 20,
    seed: int = 0,
    progress: Callable[[float], None] = lambda fraction: None,
    scenarios: Sequence[Scenario] = (),
) -> list[BlockResult]:
    """Compare every kernel of `package` with both oracles; one result per block and oracle.

    Of a model with more than MANY features a quarter of the points is taken: each meets the same summand as often.
    """
    random = np.random.default_rng(seed)
    homes = places(model, scenarios, random)[0]
    model, package = awake(model, package, homes, random)
    if sum(family.count for family in model.families) > MANY:
        points = max(3, points // 4)
    return compare(package, references(model, points, seed, progress, scenarios))


def references(
    model: Specification,
    points: int,
    seed: int = 0,
    progress: Callable[[float], None] = lambda fraction: None,
    scenarios: Sequence[Scenario] = (),
) -> list[Reference]:
    """Points at which the model is finite, with all that the kernels ought to return there."""
    random = np.random.default_rng(seed)
    found: list[Reference] = []
    with mpmath.workdps(DIGITS):
        oracles = References(derive(model), random)
        for group in places(model, scenarios, random):
            failures = 0
            while len(found) < points and failures < PATIENCE:
                # nearer to the middle of the place after a few failures
                point = oracles.draw(group[int(random.integers(len(group)))], 0.5 ** (failures // 4))
                expected = oracles.at(point, differences=len(found) < max(3, points // 4))
                failures = failures + 1 if expected is None else 0
                if expected is not None:
                    found.append((point, expected))
                    progress(len(found) / points)
        for point in oracles.beside_boundaries([point for point, _ in found]):
            expected = oracles.at(point, differences=True)
            if expected is not None:
                found.append((point, expected))
    if not found:
        raise SymdualError(
            f'no point was found at which the model "{model.name}" is finite; a scenario with a start would show one'
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
    if has_objective(package):
        yield from _computed_cost(package, point)
    if constraints_of(package):
        yield from _computed_constraints(package, point)
    if has_state_dependent_noise(package):
        yield from _computed_noise(package, point)


def _computed_noise(package: LoadedPackage, point: CheckPoint) -> Iterator[tuple[str, str, int, Array]]:
    """What the kernels of noise return, the slopes for one entry after the other."""
    for name, function, matrix, u in (
        ("process_noise", "Q", evaluate.process_noise(package, point.x, point.u, point.k), point.u),
        ("measurement_noise", "R", evaluate.measurement_noise(package, point.x, point.k), None),
    ):
        entries = matrix[np.tril_indices(len(matrix))]
        yield name, function, 0, entries
        each = [evaluate.noise_slopes(package, point.x, u, one, point.k) for one in np.eye(len(entries))]
        unknown = np.zeros(package.NTHETA)
        yield f"{name}_gradient", function, 1, np.stack([np.concatenate([by.x, unknown, by.u]) for by in each])


def _computed_constraints(package: LoadedPackage, point: CheckPoint) -> Iterator[tuple[str, str, int, Array]]:
    """What the kernels of constraints return; nobody asks for their second derivatives."""
    g, g_x, g_u, g_theta = evaluate.constraint_jacobian(package, point.x, point.u, point.theta, point.k)
    rest = np.zeros((len(g), package.NTHETA - package.NS))
    yield "constraint_values", "g", 0, evaluate.constraint_values(package, point.x, point.u, point.theta, point.k)
    yield "constraint_jacobian", "g", 0, g
    yield "constraint_jacobian", "g", 1, np.hstack([g_x, g_theta, rest, g_u])


def _computed_cost(package: LoadedPackage, point: CheckPoint) -> Iterator[tuple[str, str, int, Array]]:
    """What the kernels of a cost return, with zeros for the parameters, of which it does not depend."""
    count = package.TERMS
    for name, function, u, shares in (
        ("stage", "l", point.u, point.shares[:count]),
        ("final", "e", None, point.shares[count : count + package.ENDS]),
    ):
        if not len(shares):
            continue
        yield f"{name}_terms", function, 0, evaluate.cost_values(package, point.x, u, point.k)
        t, t_x, t_u = evaluate.cost_terms(package, point.x, u, point.k)
        nx, nz = package.NX, package.NZ
        slopes = np.hstack([t_x, np.zeros((len(t), nz - nx)), t_u])
        yield f"{name}_jacobian", function, 0, t
        yield f"{name}_jacobian", function, 1, slopes
        hessians = np.zeros((nz + package.NU, nz + package.NU))
        own = np.r_[0:nx, nz : nz + package.NU]
        hessians[np.ix_(own, own)] = evaluate.cost_hessian(package, point.x, u, shares, point.k)
        yield f"{name}_hessian", function, 2, hessians


@dataclass
class _Entry:
    """One entry of one kernel over all points: its size, its deviations with what rounding explains of each."""

    size: float = 0.0
    undefined: int = 0
    deviations: list[tuple[float, float]] = field(default_factory=list)

    def add(self, got: float, expected: Expected) -> None:
        if not mpmath.isfinite(expected.exact) or expected.allowed == math.inf:
            self.undefined += 1
            return
        deviation = float(abs(mpmath.mpf(got) - expected.exact)) if math.isfinite(got) else math.inf
        self.size = max(self.size, float(abs(expected.exact)))
        if deviation:
            self.deviations.append((deviation, expected.allowed))

    @property
    def error(self) -> float:
        """The largest deviation relative to the entry's size, or to a size whose last place is the allowed error."""
        return max((d / max(self.size, allowed / EPSILON, SMALLEST) for d, allowed in self.deviations), default=0.0)

    @property
    def passed(self) -> bool:
        return all(d <= max(MARGIN * allowed, TOLERANCE * self.size) for d, allowed in self.deviations)


@dataclass
class _Worst:
    """Collects what is known of each entry, by block and oracle."""

    blocks: dict[tuple[str, str], dict[tuple[str, int, tuple[int, ...]], _Entry]] = field(default_factory=dict)

    def add(self, expected: Expected, kernel: str, got: float) -> None:
        entries = self.blocks.setdefault((expected.block, expected.oracle), {})
        entries.setdefault((kernel, expected.order, expected.place), _Entry()).add(got, expected)

    def results(self) -> list[BlockResult]:
        found = []
        for (block, oracle), entries in self.blocks.items():
            faults = [entry for entry in entries.values() if not entry.passed]
            worst = max(entry.error for entry in faults or entries.values())
            undefined = max(entry.undefined for entry in entries.values())
            found.append(BlockResult(block, oracle, len(entries), worst, not faults, undefined))
        return found
