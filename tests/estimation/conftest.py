"""Packages whose likelihood runs in the interpreter, the same likelihood with 50 digits, and recordings of them."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from symdual import Model
from symdual.checks.arithmetic import DIGITS, Number
from symdual.checks.exact import ExactModel, first_difference
from symdual.derive.derivation import derive
from symdual.emit.package import package
from symdual.estimation.fit import Subject, subject
from symdual.numbers import Array
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Belief
from symdual.whole_file import write_whole

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small matrices on many threads only wait for each other."""
    with threadpool_limits(limits=1):
        yield


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """The exponentials of kernels fill whole lanes, of which some are never read; the interpreter warns about those."""
    with np.errstate(over="ignore"):
        yield


@pytest.fixture(scope="session")
def interpreted_likelihood(interpreted: Callable[[Model], Any]) -> Callable[[Model], Any]:
    """Return a function that runs the likelihood of a model without compiling it."""

    def run(model: Model) -> Any:
        named = model if model.name else model.named("anonymous")
        found = interpreted(named)
        source = package(derive(named)).files["likelihood.py"].decode()
        source = source.replace(
            "from numba import njit", "def njit(**options):\n    return lambda function: function\n"
        )
        source = source.replace("from . import one_name\n\n__name__ = one_name(__spec__)\n", "")
        module = types.ModuleType("likelihood")
        module.__dict__.update(found.kernels.__dict__)
        exec(compile(re.sub(r"from \.kernels import .*", "", source), "likelihood", "exec"), module.__dict__)
        found.likelihood = module
        found.name = named.name
        return found

    return run


class ExactFilter:
    """log p(y) of the extended Kalman filter with 50 digits, from the model as written; derivatives by differences."""

    def __init__(self, model: Model, active: list[int]) -> None:
        self.model, self.active = ExactModel(model), active
        self.nx, self.nu = len(model.states), len(model.inputs)

    def __call__(
        self, mean: Any, P: Any, inputs: Array, measurements: Array, Q: Any, R: Any, D: Any, expected: bool = False
    ) -> tuple[Number, Any, Any]:
        """The log-likelihood, and the mean and covariance after the last row."""
        with mpmath.workdps(DIGITS):
            return self._run([mpmath.mpf(v) for v in mean], _m(P), inputs, measurements, _m(Q), _m(R), _m(D), expected)

    def _run(
        self, z: list[Number], P: Any, inputs: Array, measurements: Array, Q: Any, R: Any, D: Any, expected: bool
    ) -> tuple[Number, Any, Any]:
        total = mpmath.mpf(0)
        rows = len(measurements)
        for k in range(rows):
            used = [a for a in range(measurements.shape[1]) if not np.isnan(measurements[k, a])]
            if used:
                h, C = self._linear(lambda p, k=k: self.model.observation(k, p[: self.nx], p[self.nx :]), z)
                h, C = [h[a] for a in used], mpmath.matrix([[C[a, j] for j in range(C.cols)] for a in used])
                S = C * P * C.T + mpmath.matrix([[R[a, b] for b in used] for a in used])
                e = mpmath.matrix(
                    [0 if expected else mpmath.mpf(float(measurements[k, a])) - v for a, v in zip(used, h, strict=True)]
                )
                V = S**-1
                total -= ((e.T * V * e)[0] + mpmath.log(mpmath.det(S)) + len(used) * mpmath.log(2 * mpmath.pi)) / 2
                step = P * C.T * V * e
                for i, place in enumerate(self.active):
                    z[place] += step[i]
                P = P - P * C.T * V * C * P
            if k + 1 < rows:
                u = [mpmath.mpf(v) for v in inputs[k]]
                f, F = self._linear(lambda p, k=k, u=u: self.model.dynamics(k, p[: self.nx], u, p[self.nx :]), z)
                A = mpmath.zeros(len(self.active))
                for i in range(self.nx):
                    for j in range(len(self.active)):
                        A[i, j] = F[i, j]
                moving = self.active[self.nx :]
                for i in range(len(moving)):
                    for j in range(len(moving)):
                        A[self.nx + i, self.nx + j] = D[i, j]
                old = [z[place] for place in moving]
                for i, place in enumerate(moving):
                    z[place] = mpmath.fsum(D[i, j] * old[j] for j in range(len(moving)))
                z[: self.nx] = f
                P = A * P * A.T + Q
        return total, z, P

    def _linear(self, function: Callable[[list[Number]], list[Number]], z: list[Number]) -> tuple[list[Number], Any]:
        """The value, and the derivatives by the active entries."""
        columns = [first_difference(function, z, place) for place in self.active]
        return function(z), mpmath.matrix([list(row) for row in zip(*columns, strict=True)])


def _m(value: Any) -> Any:
    rows = value.tolist() if isinstance(value, np.ndarray) else value
    return mpmath.matrix(rows) if len(rows) else mpmath.matrix(0, 0)


# ------------------------------------------------------------------------------------------------ a compiled cart

#: model, program that records it: the example of docs/fit.md
CART, RIDES, *_ = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "fit.md").read_text(), re.DOTALL)
DRIVE, FRICTION, SIDE = 1.4, 0.5, 0.8
PROCESS, MEASUREMENT = 4e-4, 2.5e-3


def ride(rows: int, seed: int, windy: bool = True, start: tuple[float, float] = (0.5, -0.2)) -> dict[str, Array]:
    """A ride of the cart as a table of columns; every tenth measurement is lost."""
    random = np.random.default_rng(seed)
    force = 2.0 * np.repeat(random.standard_normal(rows // 15 + 1), 15)[:rows]
    wind = np.repeat(random.uniform(-1.0, 1.0, rows // 8 + 1), 8)[:rows] if windy else np.zeros(rows)
    p, v = start
    seen = np.full(rows, np.nan)
    for k in range(rows):
        if k % 10 != 5:
            seen[k] = p + np.sqrt(MEASUREMENT) * random.standard_normal()
        pull = DRIVE * force[k] - FRICTION * v + SIDE * wind[k]
        p, v = p + 0.1 * v, v + 0.1 * pull + np.sqrt(PROCESS) * random.standard_normal()
    return {"time": np.arange(rows, dtype=float), "force": force, "wind": wind, "position": seen}


def as_csv(table: dict[str, Array]) -> str:
    """A table as a file; NaN becomes an empty cell."""
    rows = zip(*table.values(), strict=True)
    lines = [",".join("" if np.isnan(v) else repr(float(v)) for v in row) for row in rows]
    return "\n".join([",".join(table), *lines]) + "\n"


@pytest.fixture(scope="session")
def cart_file(packages: Path, shared_package: Callable[[Path], LoadedPackage]) -> Path:
    """The model file of the cart, whose package lies in `packages`."""
    folder = packages.with_name("models")
    folder.mkdir(exist_ok=True)
    file = folder / "cart.py"
    if not file.is_file():
        write_whole(file, CART.encode())
    shared_package(file)
    return file


@pytest.fixture(scope="session")
def cart(cart_file: Path, packages: Path) -> Subject:
    """The cart with an unknown first state."""
    return subject(cart_file, folder=packages)


@pytest.fixture(scope="session")
def cart_at_rest(cart: Subject) -> Subject:
    """The cart that starts at rest at zero."""
    covariance = cart.prior.covariance.copy()
    covariance[:2, :2] = 0.0
    return cart._replace(prior=Belief(cart.prior.mean, covariance))
