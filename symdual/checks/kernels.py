"""Checks compiled kernels entry by entry against 50-digit values and against differences of the model as written.

The error of an entry is its largest deviation over all points, relative to the largest size that the entry reaches
there: so a cancellation at one point does not count as a fault, and a wrong sign in any one derivative does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import mpmath
import numpy as np
import sympy as sp

from symdual.checks.exact import DIGITS, ExactModel, Number, first_difference, second_difference
from symdual.checks.symbolic import SymbolicValues
from symdual.derive.calculus import Calculus, Hessian
from symdual.derive.derivation import Derivation, derive
from symdual.errors import SymdualError
from symdual.runtime import evaluate
from symdual.runtime.loading import LoadedPackage
from symdual.spec.model import Model
from symdual.spec.numbers import Array

TOLERANCE = 1e-10
EPSILON = float(np.finfo(np.float64).eps)


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


@dataclass(frozen=True)
class _Point:
    k: int
    x: Array
    u: Array
    theta: Array
    costate: Array
    multiplier: Array


class _Worst:
    """Collects deviations and sizes by block and entry."""

    def __init__(self) -> None:
        self._deviation: dict[tuple[str, str], dict[tuple[int, ...], float]] = {}
        self._size: dict[tuple[str, str], dict[tuple[int, ...], float]] = {}

    def add(self, block: str, oracle: str, entry: tuple[int, ...], got: float, exact: Number) -> None:
        deviations = self._deviation.setdefault((block, oracle), {})
        sizes = self._size.setdefault((block, oracle), {})
        deviation = float(abs(mpmath.mpf(got) - exact)) if np.isfinite(got) else np.inf
        deviations[entry] = max(deviations.get(entry, 0.0), deviation)
        sizes[entry] = max(sizes.get(entry, 0.0), float(abs(exact)))

    def results(self) -> list[BlockResult]:
        found = []
        for (block, oracle), deviations in self._deviation.items():
            sizes = self._size[block, oracle]
            errors = [
                deviation / sizes[entry] if sizes[entry] > 0 else (np.inf if deviation > 0 else 0.0)
                for entry, deviation in deviations.items()
            ]
            worst = float(max(errors))
            found.append(BlockResult(block, oracle, len(errors), worst, worst <= TOLERANCE))
        return found


def check_kernels(
    model: Model,
    package: LoadedPackage,
    points: int = 20,
    seed: int = 0,
    progress: Callable[[float], None] = lambda fraction: None,
) -> list[BlockResult]:
    """Compare every kernel of `package` with both oracles; one result per block and oracle."""
    derivation = derive(model)
    worst = _Worst()
    random = np.random.default_rng(seed)
    with mpmath.workdps(DIGITS):
        comparison = _Comparison(derivation, package, worst, random)
        found = 0
        for point in _points(model, random, 10 * points):
            if comparison.at(point, differences=found < max(3, points // 4)):
                found += 1
                progress(found / points)
            if found == points:
                break
    if found == 0:
        raise SymdualError(
            f'no random point was found at which the model "{model.name}" is finite; nothing could be checked'
        )
    return worst.results()


def _points(model: Model, random: np.random.Generator, count: int) -> Iterator[_Point]:
    covariance = model.prior_covariance
    deviation = np.sqrt(covariance if covariance.ndim == 1 else np.diag(covariance))
    for _ in range(count):
        theta = model.prior_mean + np.clip(deviation, 0.1, 2.0) * random.normal(size=len(model.prior_mean))
        x, u = 1.5 * random.normal(size=len(model.states)), 1.5 * random.normal(size=len(model.inputs))
        costate, multiplier = (
            random.normal(size=len(model.states)),
            random.normal(size=len(model.observation)),
        )
        yield _Point(int(random.integers(0, 20)), x, u, theta, costate, multiplier)


class _Comparison:
    """Evaluates kernels and oracles at a point and hands each pair of numbers to `worst`."""

    def __init__(
        self, derivation: Derivation, package: LoadedPackage, worst: _Worst, random: np.random.Generator
    ) -> None:
        self._d, self._package, self._worst, self._random = derivation, package, worst, random
        self._exact = ExactModel(derivation.model)
        self._dynamics = SymbolicValues(derivation, derivation.dynamics)
        self._observation = SymbolicValues(derivation, derivation.observation)
        self._time = None if derivation.model.time is None else sp.Symbol(derivation.model.time.name, real=True)
        self._names = [s.name for s in derivation.core]
        self._names += [b.symbol.name for b in derivation.weights for _ in range(b.count)]

    def at(self, point: _Point, differences: bool) -> bool:
        """Compare at one point; False if the model has no finite real value there."""
        try:
            with np.errstate(all="ignore"):
                self._against_symbols(point)
                if differences:
                    self._against_differences(point)
        except (ZeroDivisionError, ValueError, OverflowError, TypeError):
            return False  # the exact value is not a finite real number
        return True

    # ------------------------------------------------------------ 50-digit values of the derived expressions

    def _against_symbols(self, point: _Point) -> None:
        d = self._d
        scalars = dict(zip(d.core, map(mpmath.mpf, [*point.x, *point.theta[: len(d.scalars)]]), strict=True))
        scalars |= dict(zip(d.inputs, map(mpmath.mpf, point.u), strict=True))
        if self._time is not None:
            scalars[self._time] = mpmath.mpf(point.k)
        weights = {b.symbol: [mpmath.mpf(v) for v in point.theta[b.start : b.start + b.count]] for b in d.weights}
        costate = dict(zip(d.dynamics.costate, map(mpmath.mpf, point.costate), strict=True))
        self._dynamics.at(scalars | costate, weights)
        for e in d.dynamics.program.outputs:
            if not mpmath.isfinite(self._dynamics.scalar(e)):
                raise ValueError("not finite")
        jacobian = evaluate.jacobian(self._package, point.x, point.u, point.theta, point.k)
        plain = evaluate.dynamics(self._package, point.x, point.u, point.theta, point.k)
        self._values("f", self._dynamics, d.dynamics, jacobian.f, plain)
        self._jacobian("f", self._dynamics, d.dynamics, d.states, jacobian.f_x, jacobian.f_theta)
        self._columns("f", self._dynamics, d.dynamics, d.inputs, jacobian.f_u)
        self._linearised(point, jacobian)
        hessian = evaluate.hessian(self._package, point.x, point.u, point.theta, point.costate, point.k)
        self._second("f", self._dynamics, d.dynamics_hessian, hessian.zz)
        self._input_second(hessian)
        multiplier = dict(zip(d.observation.costate, map(mpmath.mpf, point.multiplier), strict=True))
        self._observation.at(scalars | multiplier, weights)
        measured = evaluate.observation_jacobian(self._package, point.x, point.theta, point.k)
        plain = evaluate.observation(self._package, point.x, point.theta, point.k)
        self._values("h", self._observation, d.observation, measured.h, plain)
        self._jacobian("h", self._observation, d.observation, d.states, measured.h_x, measured.h_theta)
        curvature = evaluate.observation_hessian(self._package, point.x, point.theta, point.multiplier, point.k)
        self._second("h", self._observation, d.observation_hessian, curvature)

    def _values(self, letter: str, values: SymbolicValues, calculus: Calculus, *computed: Array) -> None:
        for i, expression in enumerate(calculus.program.outputs):
            for version, got in enumerate(computed):
                self._worst.add(letter, "50 digits", (version, i), got[i], values.scalar(expression))

    def _linearised(self, point: _Point, jacobian: evaluate.Jacobian) -> None:
        """`linearise` must return just what `dynamics_jacobian` returns, to rounding."""
        package, d = self._package, self._d
        z = np.concatenate([point.x, point.theta])
        f, f_x, f_u = (
            np.zeros(package.NX),
            np.zeros((package.NX, package.NX)),
            np.zeros((package.NX, package.NU)),
        )
        data, work = package.numbers["data"], np.zeros(package.WORK)
        package.kernels.linearise(point.k, z, point.u, data, work, f, f_x, f_u)
        self._values("f", self._dynamics, d.dynamics, f)
        self._columns("f", self._dynamics, d.dynamics, d.states, f_x, version=1)
        self._columns("f", self._dynamics, d.dynamics, d.inputs, f_u, version=1)

    def _columns(
        self,
        letter: str,
        values: SymbolicValues,
        calculus: Calculus,
        variables: tuple[sp.Symbol, ...],
        got: Array,
        version: int = 0,
    ) -> None:
        for i in range(len(calculus.program.outputs)):
            for j, variable in enumerate(variables):
                exact = values.scalar(calculus.jacobian(i, variable))
                self._worst.add(f"{letter} by {variable.name}", "50 digits", (version, i, j), got[i, j], exact)

    def _jacobian(
        self,
        letter: str,
        values: SymbolicValues,
        calculus: Calculus,
        states: tuple[sp.Symbol, ...],
        by_state: Array,
        by_theta: Array,
    ) -> None:
        self._columns(letter, values, calculus, states, by_state)
        self._columns(letter, values, calculus, self._d.scalars, by_theta)
        for i in range(len(calculus.program.outputs)):
            for block in self._d.weights:
                vector = calculus.weight_jacobian(i, block.symbol)
                for n in self._sample(block.count):
                    exact = values.vector(vector, n)
                    got = by_theta[i, block.start + n]
                    self._worst.add(f"{letter} by {block.symbol.name}", "50 digits", (i, n), got, exact)

    def _second(self, letter: str, values: SymbolicValues, hessian: Hessian, got: Array) -> None:
        d, nx = self._d, len(self._d.states)
        for i, one in enumerate(d.core):
            for j, other in enumerate(d.core):
                exact = values.scalar(hessian.entry(one, other))
                self._worst.add(self._pair(letter, i, j), "50 digits", (i, j), got[i, j], exact)
            for block in d.weights:
                vector = hessian.mixed(one, block.symbol)
                for n in self._sample(block.count):
                    column = nx + block.start + n
                    self._worst.add(
                        self._pair(letter, i, column),
                        "50 digits",
                        (i, n),
                        got[i, column],
                        values.vector(vector, n),
                    )
        self._theta_second(letter, values, hessian, got[nx:, nx:])

    def _theta_second(self, letter: str, values: SymbolicValues, hessian: Hessian, got: Array) -> None:
        nx, weights = len(self._d.states), self._d.weights
        pairs = hessian.pairs()
        for a in weights:
            for b in weights:
                diagonal = hessian.diagonal(a.symbol, b.symbol) if a.family == b.family else ()
                for i in self._sample(a.count, 4):
                    for j in {*self._sample(b.count, 4), min(i, b.count - 1)}:
                        exact = values.vector(diagonal, i) if i == j else mpmath.mpf(0)
                        for c, rho in pairs:
                            exact += values.vector(hessian.own_gradient(c, a.symbol), i) * values.vector(
                                rho.get(b.symbol, ()), j
                            )
                            exact += values.vector(hessian.own_gradient(c, b.symbol), j) * values.vector(
                                rho.get(a.symbol, ()), i
                            )
                        entry = (a.start + i, b.start + j)
                        block = self._pair(letter, nx + a.start, nx + b.start)
                        self._worst.add(block, "50 digits", entry, got[entry], exact)

    def _input_second(self, hessian: evaluate.Hessian) -> None:
        d, nx = self._d, len(self._d.states)
        symbolic = d.dynamics_hessian
        for a, one in enumerate(d.inputs):
            for j, other in enumerate(d.core):
                block = f"f by {one.name}, {other.name}"
                self._worst.add(
                    block,
                    "50 digits",
                    (a, j),
                    hessian.uz[a, j],
                    self._dynamics.scalar(symbolic.entry(one, other)),
                )
            for b, other in enumerate(d.inputs):
                block = f"f by {one.name}, {other.name}"
                self._worst.add(
                    block,
                    "50 digits",
                    (a, b),
                    hessian.uu[a, b],
                    self._dynamics.scalar(symbolic.entry(one, other)),
                )
            for weight in d.weights:
                vector = symbolic.mixed(one, weight.symbol)
                for n in self._sample(weight.count):
                    got = hessian.uz[a, nx + weight.start + n]
                    block = f"f by {one.name}, {weight.symbol.name}"
                    self._worst.add(block, "50 digits", (a, n), got, self._dynamics.vector(vector, n))

    # ------------------------------------------------------------ differences of the model as written

    def _against_differences(self, point: _Point) -> None:
        nx, nz = self._package.NX, self._package.NZ
        place = [mpmath.mpf(v) for v in (*point.x, *point.theta, *point.u)]
        costate = [mpmath.mpf(v) for v in point.costate]
        multiplier = [mpmath.mpf(v) for v in point.multiplier]

        def motion(at: list[Number]) -> list[Number]:
            return self._exact.dynamics(point.k, at[:nx], at[nz:], at[nx:nz])

        def measured(at: list[Number]) -> list[Number]:
            return self._exact.observation(point.k, at[:nx], at[nx:nz])

        jacobian = evaluate.jacobian(self._package, point.x, point.u, point.theta, point.k)
        observed = evaluate.observation_jacobian(self._package, point.x, point.theta, point.k)
        hessian = evaluate.hessian(self._package, point.x, point.u, point.theta, point.costate, point.k)
        curvature = evaluate.observation_hessian(self._package, point.x, point.theta, point.multiplier, point.k)
        columns = np.hstack([jacobian.f_x, jacobian.f_theta, jacobian.f_u])
        second = np.block([[hessian.zz, hessian.uz.T], [hessian.uz, hessian.uu]])
        self._differences("f", motion, costate, place, jacobian.f, columns, second)
        measured_columns = np.hstack([observed.h_x, observed.h_theta])
        self._differences("h", measured, multiplier, place, observed.h, measured_columns, curvature)

    def _differences(
        self,
        letter: str,
        function: Callable[[list[Number]], list[Number]],
        weights: list[Number],
        place: list[Number],
        value: Array,
        columns: Array,
        second: Array,
    ) -> None:
        names = [*self._names, *(s.name for s in self._d.inputs)]
        for i, exact in enumerate(function(place)):
            self._worst.add(letter, "as written", (i,), value[i], exact)
        chosen = self._variables(columns.shape[1])
        for j in chosen:
            for i, exact in enumerate(first_difference(function, place, j)):
                self._worst.add(f"{letter} by {names[j]}", "differences", (i, j), columns[i, j], exact)

        def contracted(at: list[Number]) -> Number:
            return mpmath.fsum(w * v for w, v in zip(weights, function(at), strict=True))

        for i in chosen:
            for j in chosen:
                if j >= i:
                    exact = second_difference(contracted, place, i, j)
                    block = f"{letter} by {names[i]}, {names[j]}"
                    exact = mpmath.mpf(0) if abs(exact) < mpmath.mpf(10) ** -40 else exact
                    self._worst.add(block, "differences", (i, j), second[i, j], exact)

    def _variables(self, size: int) -> list[int]:
        """All core variables and inputs, and a few weights of each array."""
        nx, nz = self._package.NX, self._package.NZ
        chosen = list(range(len(self._d.core)))
        for block in self._d.weights:
            chosen += [nx + block.start + n for n in self._sample(block.count, 3)]
        return chosen + list(range(nz, size))

    def _sample(self, count: int, most: int = 12) -> list[int]:
        if count <= most:
            return list(range(count))
        return sorted(int(i) for i in self._random.choice(count, size=most, replace=False))

    def _pair(self, letter: str, i: int, j: int) -> str:
        return f"{letter} by {self._names[i]}, {self._names[j]}"
