"""Checks the generated recursions of a package against the dense ones, on random problems.

The dense recursions get f, h and their derivatives from the package's own kernels, which `symdual.checks.kernels`
compares with the model as written; what is compared here is everything that is built on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from symdual.checks.exact_plan import active_entries
from symdual.checks.kernels import TOLERANCE, BlockResult
from symdual.checks.packaged import dense_model
from symdual.checks.places import Place, input_bounds, places
from symdual.checks.processes import COMBINED, ProcessSample
from symdual.checks.sample import HORIZON, Sample
from symdual.checks.slopes import SLOPE
from symdual.common.arrays import Array
from symdual.runtime import evaluate
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.signals import place_of
from symdual.spec.scenario import Scenario
from symdual.spec.specification import Specification

PROBLEMS = 3
#: A plan counts as optimal when a general optimiser cannot take more than this share off its cost.
OPTIMALITY = 1e-6
#: of a slope with third derivatives that are differences, relative to the largest slope
DIFFERENCES = 1e-8
#: Draws of a problem whose plan runs away, before one is taken as it is.
PATIENCE = 20
#: Problems with other last bits that show what rounding makes of a quantity.
TWINS = 4
#: How often a deviation may be that which the last bits of the belief make in the dense recursions themselves.
CONDITION = 1000


@np.errstate(over="ignore", invalid="ignore")  # of a plan that runs away, in the reference too: it is counted
def check_recursions(
    model: Specification,
    package: LoadedPackage,
    seed: int = 0,
    progress: Callable[[float], None] = lambda fraction: None,
    scenarios: Sequence[Scenario] = (),
) -> list[BlockResult]:
    """Compare filter, dual cost and plans with dense numpy, where the model lives; one result per quantity."""
    homes = finite_places(package, places(model, scenarios, np.random.default_rng(seed)))

    def home(random: np.random.Generator) -> Place:
        return homes[int(random.integers(len(homes)))]

    if package.PROCESSES:
        return _judged(
            lambda random: ProcessSample(model, package, home(random), random), "Gram matrix", seed, progress
        )
    sample = sampler(model, package, homes, seed, input_bounds(model, scenarios))
    results = _judged(sample, "dense", seed, progress)
    random = np.random.default_rng(seed + 1)
    gains = [sample(random).left_to_gain() for _ in range(PROBLEMS)]
    defined = [gain for gain in gains if not np.isnan(gain)]
    worst = max(defined, default=0.0)
    plan = BlockResult("nominal plan", "optimiser", PROBLEMS, worst, worst <= OPTIMALITY, len(gains) - len(defined))
    return [*results, plan, *_exact_slope(model, package, sample(random))]


def sampler(
    model: Specification, package: LoadedPackage, homes: list[Place], seed: int, bounds: Array | None = None
) -> Callable[[np.random.Generator], Sample]:
    """How random problems are made in these places, within the bounds of the model or others."""
    signals = _signals(package, np.random.default_rng(seed + 2))
    reference = dense_model(package, signals, model.filter.endswith("second_order"))

    def sample(random: np.random.Generator) -> Sample:
        for attempt in range(PATIENCE):  # nearer to the middle of the place where a plan runs away
            home = homes[int(random.integers(len(homes)))].narrowed(0.5 ** (attempt // 4))
            found = Sample(package, reference, home, random, model.filter, model.objective, signals, bounds)
            if found.stays():
                break
        return found

    return sample


def _exact_slope(model: Specification, package: LoadedPackage, sample: Sample) -> list[BlockResult]:
    """The slope of the dual cost along a direction of inputs, against 50-digit differences of the model as written."""
    if not sample.slopes_are_exact():
        return []
    sample = sample.narrowed(active_entries(package.NX, sample.noise.transition))
    found = []
    for form, (got, wanted, beside, size) in sample.slopes_along(model).items():
        if not np.isfinite(wanted):
            found.append(BlockResult(form, "50 digits", 1, 0.0, True, undefined=1))
            continue
        error, inherent = (abs(a - b) / size for a, b in ((got, wanted), (got, beside)))
        passed = bool(error <= max(_tolerance(sample, form), CONDITION * inherent))
        found.append(BlockResult(form, "50 digits", 1, error, passed))
    return found


def _signals(package: LoadedPackage, random: np.random.Generator) -> Array | None:
    """Signals that change from time to time, around their usual values."""
    usual = package.numbers["data"][place_of(package)]
    return usual * random.uniform(0.7, 1.3, size=(HORIZON + 1, len(usual))) if len(usual) else None


def finite_places(package: LoadedPackage, groups: list[list[Place]]) -> list[Place]:
    """The first group with places at which the kernels are finite."""
    for group in groups:
        fine = [p for p in group if np.all(np.isfinite(evaluate.jacobian(package, p.x, p.u, p.theta).f_x))]
        if fine:
            return fine
    return groups[0]


def _judged(
    make: Callable[[np.random.Generator], Sample | ProcessSample],
    oracle: str,
    seed: int,
    progress: Callable[[float], None],
) -> list[BlockResult]:
    """The worst relative deviation of each quantity over a few random problems.

    What the last bits of the belief make in the reference is no fault; where the reference is not finite, or these bits
    decide all of it, nothing is. They are asked only where a deviation is larger than usual.
    """
    found: dict[str, list[tuple[int, float, bool, bool]]] = {}
    random = np.random.default_rng(seed)
    for number in range(PROBLEMS):
        sample = make(random)
        rows = []
        for name, got, exact in sample.comparisons():
            rows.append((name, got, exact, _apart(got, exact)))
            progress((number + len(rows) / 20) / PROBLEMS)
        allowed = [_tolerance(sample, name) for name, *_ in rows]  # which is known once all was compared
        inherent = np.zeros(len(rows))
        if any(error > tolerance for (*_, error), tolerance in zip(rows, allowed, strict=True)):
            for _ in range(TWINS):
                twin = sample.with_other_last_bits().comparisons()
                inherent = np.maximum(inherent, [_apart(b, r[2]) for (_, _, b), r in zip(twin, rows, strict=True)])
        for (name, got, exact, error), own, tolerance in zip(rows, inherent, allowed, strict=True):
            defined = bool(np.all(np.isfinite(exact)) and CONDITION * own < 1.0)
            passed = not defined or error <= max(tolerance, CONDITION * own)
            found.setdefault(name, []).append((got.size, error if defined else 0.0, passed, defined))
    progress(1.0)
    return [
        BlockResult(
            name,
            oracle,
            sum(count for count, _, _, _ in rows),
            max(error for _, error, _, _ in rows),
            all(passed for _, _, passed, _ in rows),
            sum(not defined for _, _, _, defined in rows),
        )
        for name, rows in found.items()
    ]


def _tolerance(sample: Sample | ProcessSample, name: str) -> float:
    """What a deviation may be; third derivatives, in slopes of terms of second order, are taken by differences."""
    if isinstance(sample, ProcessSample):
        return COMBINED if sample.combined else TOLERANCE
    return DIFFERENCES if sample.second_order and name.startswith(SLOPE) else TOLERANCE


def _apart(got: Array, exact: Array) -> float:
    """The largest deviation relative to the largest entry; infinite where something is not finite."""
    if not (np.all(np.isfinite(got)) and np.all(np.isfinite(exact))):
        return np.inf
    size = max(float(np.max(np.abs(exact), initial=0.0)), 1e-300)
    return float(np.max(np.abs(got - exact), initial=0.0)) / size
