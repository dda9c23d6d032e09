"""Checks the likelihood of a recording and its gradient: a Kalman filter with 50 digits, and its differences.

The filter here knows the model as written only, extended or with terms of second order. Its derivatives are
differences, and so is the gradient: along one random direction for each kind of number that the likelihood depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, cast

import mpmath
import numpy as np

from symdual.checks.kernels import BlockResult
from symdual.checks.places import Place, places
from symdual.checks.tuned import Tuned
from symdual.checks.tuned import at as tuned_at
from symdual.common.arrays import Array
from symdual.common.package_folders import modules_of
from symdual.identification.parameters.filtering import Filter
from symdual.many_digits.arithmetic import DIGITS, Number
from symdual.many_digits.model import ExactModel, first_difference, second_differences
from symdual.runtime import evaluate
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.signals import place_of, signals_of
from symdual.spec.noise import places as lower_places
from symdual.spec.scenario import Scenario
from symdual.spec.system import System

TOLERANCE = 1e-9
THIRD = 1e-7  #: where third derivatives are differences
CONDITION = 1e3  #: how often what the last bits of the numbers make in the result is no fault
ROWS = 4
MOST_ACTIVE = 3  #: unknowns that are uncertain in the filter
_STEP = mpmath.mpf(10) ** -15  # of a difference, in units of the direction
KINDS = ("start", "start covariance", "process noise", "measurement noise", "inputs")


class Numbers(NamedTuple):
    """What the likelihood depends on: first mean and covariance, Q, R, inputs."""

    mean: Any
    covariance: Any
    process_noise: Any
    measurement_noise: Any
    inputs: Any


class ExactFilter:
    """log p(y) of the extended filter or of that of second order with 50 digits, from the model as written."""

    def __init__(self, model: System, active: Iterable[int], transition: Array, signals: Array | None = None) -> None:
        self.noise = model.noise
        entries = () if model.noise is None else model.noise.expressions
        self.model, self.active, self.transition = ExactModel(model, entries), list(active), transition
        self.nx, self.signals, self.second_order = len(model.states), signals, model.filter.endswith("second_order")

    def __call__(self, numbers: Numbers, measurements: Array, expected: bool = False) -> tuple[Number, Any, Any]:
        """The log-likelihood, and the mean and covariance after the last row."""
        with mpmath.workdps(DIGITS):
            z, P, Q, R = [mpmath.mpf(v) for v in numbers.mean], *(_matrix(m) for m in numbers[1:4])
            total = mpmath.mpf(0)
            for k, y in enumerate(measurements):
                if self.signals is not None:
                    self.model.set_signals(self.signals[k])
                gained, P = self._updated(k, z, P, R, y, expected)
                total += gained
                if k + 1 < len(measurements):
                    P = self._predicted(k, z, P, Q, [mpmath.mpf(v) for v in numbers.inputs[k]])
            return total, z, P

    def _updated(self, k: int, z: list[Number], P: Any, R: Any, y: Array, expected: bool) -> tuple[Number, Any]:
        """What a row adds to the log-likelihood, and the covariance after it; z is moved."""
        used = [a for a, value in enumerate(y) if not np.isnan(value)]
        if not used:
            return mpmath.mpf(0), P
        R = self._noise_at(k, z, [], R)[1]
        h, C, more = self._expanded(lambda p: self.model.observation(k, p[: self.nx], p[self.nx :]), z, P)
        C = mpmath.matrix([[C[a, j] for j in range(C.cols)] for a in used])
        S = C * P * C.T + mpmath.matrix([[R[a, b] + more[a, b] for b in used] for a in used])
        e = mpmath.matrix([0 if expected else mpmath.mpf(float(y[a])) - h[a] for a in used])
        V = S**-1
        step = P * C.T * V * e
        for i, place in enumerate(self.active):
            z[place] += step[i]
        z[: self.nx] = self.model.stopped(z[: self.nx])
        level = (e.T * V * e)[0] + mpmath.log(mpmath.det(S)) + len(used) * mpmath.log(2 * mpmath.pi)
        return -level / 2, P - P * C.T * V * C * P

    def _predicted(self, k: int, z: list[Number], P: Any, Q: Any, u: list[Number]) -> Any:
        """The covariance after a step; z is moved."""
        Q = self._noise_at(k, z, u, Q)[0]
        f, F, more = self._expanded(lambda p: self.model.dynamics(k, p[: self.nx], u, p[self.nx :]), z, P)
        D, moving = self.transition, self.active[self.nx :]
        A = mpmath.zeros(len(self.active))
        for i in range(self.nx):
            for j in range(len(self.active)):
                A[i, j] = F[i, j]
        for i in range(len(moving)):
            for j in range(len(moving)):
                A[self.nx + i, self.nx + j] = D[i, j]
        old = [z[place] for place in moving]
        for i, place in enumerate(moving):
            z[place] = mpmath.fsum(D[i, j] * old[j] for j in range(len(moving)))
        z[: self.nx] = self.model.stopped(f)
        moved = A * P * A.T + Q
        for i in range(self.nx):
            for j in range(self.nx):
                moved[i, j] += more[i, j]
        return moved

    def _noise_at(self, k: int, z: list[Number], u: list[Number], given: Any) -> tuple[Any, Any]:
        """Q with the drift of the unknowns, and R, at z; what is given where noise depends on nothing."""
        if self.noise is None:
            return given, given
        applied = u or [mpmath.mpf(0)] * len(self.model.model.inputs)
        entries = self.model.others(k, z[: self.nx], applied, z[self.nx :])
        count = self.nx * (self.nx + 1) // 2
        Q = given.copy() if u else mpmath.zeros(self.nx)
        R = mpmath.zeros(len(self.noise.measurement))
        for matrix, size, values in ((Q, self.nx, entries[:count]), (R, R.rows, entries[count:])):
            for (i, j), value in zip(lower_places(size), values, strict=True):
                matrix[i, j] = matrix[j, i] = value
        return Q, R

    def _expanded(
        self, function: Callable[[list[Number]], list[Number]], z: list[Number], P: Any
    ) -> tuple[list[Number], Any, Any]:
        """What a function of z is expected to be, its derivatives by the active entries, and what its curvature adds.

        To second order these are f_i + 1/2 tr(H_i P) and 1/2 tr(H_i P H_j P).
        """
        value, slope = function(z), mpmath.matrix([first_difference(function, z, place) for place in self.active]).T
        if not self.second_order:
            return value, slope, mpmath.zeros(len(value))
        products = [H * P for H in self._hessians(function, z, len(value))]
        traces = [[sum((A * B)[i, i] for i in range(P.rows)) / 2 for B in products] for A in products]
        expected = [v + sum(A[i, i] for i in range(P.rows)) / 2 for v, A in zip(value, products, strict=True)]
        return expected, slope, mpmath.matrix(traces)

    def _hessians(self, function: Callable[[list[Number]], list[Number]], z: list[Number], rows: int) -> list[Any]:
        """The second derivatives of each row by the active entries."""
        found = [mpmath.zeros(len(self.active)) for _ in range(rows)]
        for i, one in enumerate(self.active):
            for j, other in enumerate(self.active[: i + 1]):
                for H, value in zip(found, second_differences(function, z, one, other), strict=True):
                    H[i, j] = H[j, i] = value
        return found


def _matrix(values: Any) -> Any:
    return values if isinstance(values, mpmath.matrix) else mpmath.matrix(np.asarray(values).tolist())


class LikelihoodSample:
    """A random recording of a few rows where the model lives, with some unknowns in the filter and some constant."""

    def __init__(self, package: LoadedPackage, home: Place, random: np.random.Generator) -> None:
        self.package = package
        nx, nz = package.NX, package.NZ
        self.active = np.array([*range(nx), *range(nx, nz, 2)][: nx + MOST_ACTIVE], dtype=np.int64)
        size, scale = len(self.active), np.concatenate([0.2 * home.x_spread, home.theta_spread])
        self.signals = _signals(package, random)
        tuned = package if self.signals is None else cast(LoadedPackage, Tuned(package, self.signals))
        transition = package.numbers["transition"]
        unknowns = self.active[nx:] - nx
        square = transition if transition.ndim == 2 else np.diag(transition)
        self.transition = np.ascontiguousarray(square[np.ix_(unknowns, unknowns)])
        x, u, theta = home.draw(random, share=0.3)
        inputs = np.clip(u + 0.3 * home.u_spread * random.normal(size=(ROWS, package.NU)), *self._bounds())
        self.measurements, seen = self._recorded(tuned, x, theta, inputs, random, scale)
        noise = _covariance(random, size, 0.1 * scale[self.active])
        self.numbers = Numbers(
            mean=np.concatenate([x, theta]),
            covariance=_covariance(random, size, scale[self.active]),
            process_noise=noise,
            measurement_noise=_covariance(random, package.NY, 0.3 * seen),
            inputs=inputs,
        )
        self.direction = Numbers(
            mean=scale * random.normal(size=nz),
            covariance=_covariance(random, size, scale[self.active]),
            process_noise=_covariance(random, size, 0.1 * scale[self.active]),
            measurement_noise=_covariance(random, package.NY, 0.3 * seen),
            inputs=home.u_spread * random.normal(size=inputs.shape),
        )

    def _bounds(self) -> tuple[Array, Array]:
        return self.package.numbers["lower"], self.package.numbers["upper"]

    def _recorded(
        self, tuned: LoadedPackage, x: Array, theta: Array, inputs: Array, random: np.random.Generator, scale: Array
    ) -> tuple[Array, Array]:
        """Measurements of a path, some of them missing, and how far a deviation of z moves each."""
        at = evaluate.observation_jacobian(tuned, x, theta)
        slope = np.hstack([np.abs(at.h_x), np.abs(at.h_theta)]) @ scale
        seen, rows = np.where(np.isfinite(slope) & (slope > 0), slope, 1.0), []
        for k, u in enumerate(inputs):
            here = tuned_at(tuned, k)
            rows.append(evaluate.observation(here, x, theta, k) + 0.5 * seen * random.normal(size=len(seen)))
            x = evaluate.dynamics(here, x, u, theta, k)
        rows[1][0] = np.nan
        return np.array(rows), seen

    def emitted(self, numbers: Numbers) -> tuple[float, Numbers]:
        """The emitted likelihood and its derivatives."""
        own = Filter(
            self.package, *numbers[:2], self.active, *numbers[2:4], transition=self.transition, signals=self.signals
        )
        filtered = own.run(numbers.inputs, self.measurements)
        if not np.isfinite(filtered.log_likelihood):
            return np.nan, Numbers(*(np.full(np.shape(n), np.nan) for n in numbers))
        return filtered.log_likelihood, Numbers(*own.back(numbers.inputs, self.measurements, filtered))

    def along(self, slopes: Numbers, kind: int) -> float:
        """The derivative along the direction of one kind of number."""
        return float(np.sum(slopes[kind] * self.direction[kind]))

    def moved(self, kind: int, step: Any) -> Numbers:
        """The numbers with one kind moved along its direction, exactly."""
        at, by = self.numbers[kind], self.direction[kind]
        flat = [mpmath.mpf(a) + step * mpmath.mpf(b) for a, b in zip(at.ravel(), by.ravel(), strict=True)]
        rows = flat if at.ndim == 1 else [flat[i * at.shape[1] : (i + 1) * at.shape[1]] for i in range(len(at))]
        return self.numbers._replace(**{Numbers._fields[kind]: rows if kind in (0, 4) else mpmath.matrix(rows)})

    def with_other_last_bits(self, random: np.random.Generator) -> Numbers:
        """The same numbers with a mean that differs by rounding."""
        factors = 1.0 + np.finfo(np.float64).eps * random.normal(size=len(self.numbers.mean))
        return self.numbers._replace(mean=self.numbers.mean * factors)


def _covariance(random: np.random.Generator, size: int, deviations: Array) -> Array:
    root = random.normal(size=(size, size))
    return np.asarray((0.3 * root @ root.T / max(size, 1) + 0.7 * np.eye(size)) * np.outer(deviations, deviations))


def _signals(package: LoadedPackage, random: np.random.Generator) -> Array | None:
    """Signals of the rows around their usual values, None for a model without any."""
    if not signals_of(package):
        return None
    usual = package.numbers["data"][place_of(package)]
    return np.asarray(usual + np.where(usual == 0, 1.0, usual) * random.uniform(-0.3, 0.3, (ROWS, len(usual))))


def check_likelihood(
    model: System,
    package: LoadedPackage,
    seed: int = 0,
    progress: Callable[[float], None] = lambda fraction: None,
    scenarios: Sequence[Scenario] = (),
) -> list[BlockResult]:
    """Compare value and gradient of the likelihood of a short recording; nothing where the package has none."""
    if "likelihood" not in modules_of(package.files):
        return []
    random = np.random.default_rng(seed)
    for group in places(model, scenarios, random):
        sample = LikelihoodSample(package, group[int(random.integers(len(group)))], random)
        if np.isfinite(sample.emitted(sample.numbers)[0]):
            return _compared(model, sample, random, progress)
    return [BlockResult("likelihood", "50 digits", 1, 0.0, True, undefined=1)]


def _compared(
    model: System, sample: LikelihoodSample, random: np.random.Generator, progress: Callable[[float], None]
) -> list[BlockResult]:
    exact = ExactFilter(model, sample.active, sample.transition, sample.signals)
    value, slopes = sample.emitted(sample.numbers)
    beside, other = sample.emitted(sample.with_other_last_bits(random))
    with mpmath.workdps(DIGITS):
        wanted = float(exact(sample.numbers, sample.measurements)[0])
        found = [_judged("likelihood", "50 digits", 1, (value, wanted, beside), abs(wanted) + sample.measurements.size)]
        for kind, name in enumerate(KINDS):
            if model.noise is not None and name.endswith(" noise"):
                continue  # there are no numbers to move
            up, down = (exact(sample.moved(kind, s), sample.measurements)[0] for s in (_STEP, -_STEP))
            numbers = sample.along(slopes, kind), float((up - down) / (2 * _STEP)), sample.along(other, kind)
            size = float(np.sum(np.abs(slopes[kind] * sample.direction[kind])))
            allowed = THIRD if exact.second_order else TOLERANCE
            found.append(
                _judged(f"likelihood by {name}", "differences", sample.numbers[kind].size, numbers, size, allowed)
            )
            progress((kind + 1) / len(KINDS))
    return found


def _judged(
    block: str,
    oracle: str,
    entries: int,
    numbers: tuple[float, float, float],
    size: float,
    allowed: float = TOLERANCE,
) -> BlockResult:
    """What was computed beside what it ought to be, relative to a size; the third number is what the last bits make."""
    got, wanted, beside = numbers
    if not np.isfinite(wanted):
        return BlockResult(block, oracle, entries, 0.0, True, undefined=1)
    error, inherent = (abs(a - b) / max(size, 1e-300) for a, b in ((got, wanted), (got, beside)))
    return BlockResult(block, oracle, entries, error, bool(error <= max(allowed, CONDITION * inherent)))
