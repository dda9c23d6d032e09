"""Models, numbers and dense references that the tests of the recursions share.

Most packages run in the interpreter, where every index out of range is an error and nothing has to be compiled; those
in COMPILED run as users run them.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual import Model, features, unknown
from symdual.checks import dense
from symdual.checks.expanded import expand
from symdual.derive.derivation import derive
from symdual.emit.package import package
from symdual.runtime.loading import LoadedPackage

x, v, u = sp.symbols("x v u")


def _toy() -> Model:
    return Model([x], [u], [x + unknown("b", 1.0, 10.0) * u], process_noise=0.1, name="toy")


def _cart(count: int = 6, **options: Any) -> Model:
    slope = features.fourier("g", x, count=count, lengthscale=2.0)
    return Model([x, v], [u], [x + 0.4 * v, v + slope + u], process_noise=0.01, measurement_noise=0.01, **options)


def _network(**options: Any) -> Model:
    net = features.logistic("net", x, locations=[-2.0, 0.5, 1.0], slope_mean=[-1.0, 0.7, 1.2])
    return Model([x, v], [u], [x + 0.4 * v, v + net + u], process_noise=0.01, measurement_noise=0.01, **options)


def _mixed(**options: Any) -> Model:
    """Three states, two inputs, three scalar unknowns, time-varying, with a nonlinear observation of both."""
    a, b, c = sp.symbols("a b c")
    p, q, k = sp.symbols("p q k")
    first, second, third = unknown("first", 0.4, 1.0), unknown("second", 0.7, 1.0), unknown("third", -0.3, 1.0)
    motion = [
        a + 0.2 * b + 0.1 * first * sp.sin(c) + 0.3 * p,
        0.9 * b + 0.3 * second * p + 0.1 * a * q + 0.05 * third * b**2 + 0.05 * q**2,
        0.8 * c + 0.2 * sp.tanh(a + third) + 0.5 * q + 0.01 * k * a,
    ]
    measured = [a, sp.sin(b) + 0.3 * c**2 + 0.2 * first * a]
    return Model([a, b, c], [p, q], motion, observation=measured, time=k, **options)


def _angle(**options: Any) -> Model:
    """Both measurements saturate in the state, one of them in the parameter too."""
    gain = unknown("gain", 1.0, 0.2)
    return Model([x], [u], [x + u], observation=[sp.atan(3 * x), sp.atan(x * gain)], **options)


def _double() -> Model:
    """Affine in states and inputs, two inputs, unknown gains."""
    p, q = sp.symbols("p q")
    gain, pull = unknown("gain", 0.8, 0.5), unknown("pull", 0.1, 0.2)
    motion = [x + 0.5 * v + 0.2 * q + 0.3, 0.9 * v + pull * x + gain * p - 0.1]
    return Model([x, v], [p, q], motion, process_noise=0.02, measurement_noise=0.05, name="double")


def _swing() -> Model:
    """A pendulum of unknown length with a motor too weak to lift it at once."""
    pull = unknown("pull", 1.0, 0.1)
    motion = [x + 0.1 * v, v + 0.1 * (u - 9.81 * pull * sp.sin(x) - 0.2 * v)]
    return Model([x, v], [u], motion, process_noise=0.01, measurement_noise=0.01, name="swing")


def _spread(size: int, low: float, high: float) -> np.ndarray:
    return np.linspace(low, high, size)


def _dense_matrix(size: int, seed: int, scale: float) -> np.ndarray:
    random = np.random.default_rng(seed).normal(size=(size, size))
    return scale * (random @ random.T) / size


MODELS: dict[str, Callable[[], Model]] = {
    "toy": _toy,
    "cart": lambda: _cart(name="cart"),
    "long_cart": lambda: _cart(10, name="long_cart"),
    "network": lambda: _network(name="network"),
    "drifting": lambda: _network(transition=_spread(6, 0.8, 1.0), drift=_spread(6, 0.01, 0.1), name="drifting"),
    "mixed": lambda: _mixed(
        transition=np.eye(3) + 0.1 * np.arange(9.0).reshape(3, 3) / 9, drift=_dense_matrix(3, 1, 0.1), name="mixed"
    ),
    "values": lambda: _mixed(name="values"),
    "angle": lambda: _angle(name="angle"),
    "robust_angle": lambda: _angle(filter="square_root", name="robust_angle"),
    "kink": lambda: Model([x], [u], [x + unknown("b", 1.0, 1.0) * sp.Max(u, -u)], name="kink"),
    "double": _double,
    "swing": _swing,
    "known": lambda: Model([x], [u], [x + 2 * u], process_noise=0.1, name="known"),
    "offset": lambda: Model([x, v], [u], [x + 0.1 * v, 0.9 * v + u + unknown("c", 0.2, 1.0)], name="offset"),
    "robust": lambda: _mixed(drift=_spread(3, 0.01, 0.1), filter="square_root", name="robust"),
    "robust_cart": lambda: _cart(filter="square_root", name="robust_cart"),
}


@dataclass
class Case:
    """A compiled package with random numbers for a problem of `horizon` steps, and its dense reference."""

    model: Model
    package: Any
    reference: dense.DenseModel
    horizon: int
    seed: int

    @cached_property
    def random(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    @cached_property
    def belief(self) -> dense.Belief:
        mean = 0.5 * self.random.normal(size=self.reference.nz)
        P = self.semidefinite(self.reference.nz, 0.3) + 1e-3 * np.eye(self.reference.nz)
        return dense.Belief(mean, P)

    def semidefinite(self, size: int, scale: float) -> np.ndarray:
        root = self.random.normal(size=(size, size))
        product = scale * root @ root.T / size
        return (product + product.T) / 2

    @cached_property
    def noise(self) -> dense.Noise:
        m, p = self.model, self.reference.ntheta
        transition = np.eye(p) if m.transition is None else m.transition
        drift = np.zeros((p, p)) if m.drift is None else m.drift
        return dense.Noise(
            0.02 * np.eye(self.reference.nx) + self.semidefinite(self.reference.nx, 0.05),
            0.01 * np.eye(self.reference.ny) + self.semidefinite(self.reference.ny, 0.05),
            np.diag(transition) if transition.ndim == 1 else transition,
            np.diag(drift) if drift.ndim == 1 else drift,
        )

    @cached_property
    def cost(self) -> dense.Cost:
        n, m, T = self.reference.nx, self.reference.nu, self.horizon
        return dense.Cost(
            np.array([self.semidefinite(n, 1.0) for _ in range(T + 1)]),
            np.array([self.semidefinite(m, 0.5) + 0.1 * np.eye(m) for _ in range(T)]),
            self.random.normal(size=(T + 1, n)),
            np.array([[-np.inf] * m, [np.inf] * m]),
        )

    @cached_property
    def motion(self) -> tuple[np.ndarray, np.ndarray]:
        """D and Xi as the generated code wants them."""
        return self.package.numbers["transition"], self.package.numbers["drift"]

    @cached_property
    def spaces(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.package.nominal.workspace(self.horizon)  # type: ignore[no-any-return]

    def arguments(self, k: int, settings: np.ndarray, inputs: np.ndarray, out: np.ndarray) -> tuple[Any, ...]:
        """The arguments that all cost functions share."""
        Q, R, _, _ = self.noise
        W, U, r, bounds = self.cost
        belief = self.belief
        head = (k, self.horizon, belief.mean, belief.covariance, Q, R, *self.motion, W, U, r, bounds)
        return (*head, self.package.numbers["data"], settings, inputs, *self.spaces, out)

    def cost_of(self, form: str, k: int, inputs: np.ndarray, learning: bool = True) -> np.ndarray:
        """The row of results for a given sequence of inputs."""
        out = np.zeros(self.package.dual_cost.OUT)
        settings = self.package.nominal.default_settings()
        settings[self.package.nominal.SET_LEARNING] = learning
        status = getattr(self.package.dual_cost, f"cost_of_inputs_{form}")(*self.arguments(k, settings, inputs, out))
        assert status == self.package.nominal.CONVERGED
        return out

    def plan(self, k: int, first: np.ndarray, tolerance: float = 1e-12) -> tuple[float, int, np.ndarray]:
        """(cost, status, inputs) of the plan with a given first input."""
        N, data = self.package.nominal, self.package.numbers["data"]
        settings = N.default_settings()
        settings[N.SET_TOLERANCE] = tolerance
        assert N.begin(k, self.horizon, self.belief.mean, self.motion[0], *self.cost, data, *self.spaces) == N.CONVERGED
        cost, status, slot, _ = N.nominal(k, self.horizon, first, *self.cost, data, settings, *self.spaces)
        states = np.zeros((self.horizon - k + 1, self.reference.nx))
        inputs = np.zeros((self.horizon - k, self.reference.nu))
        N.trajectory(k, self.horizon, slot, *self.spaces[1:], states, inputs)
        return cost, status, inputs


COMPILED = ("cart", "toy", "double")


@dataclass
class Interpreted:
    """A generated package without numba: its modules are attributes."""

    module: types.ModuleType
    numbers: dict[str, np.ndarray]

    def __getattr__(self, name: str) -> Any:
        if name.isupper():
            return getattr(self.module, name)
        return importlib.import_module(f"{self.module.__name__}.{name}")


@pytest.fixture(scope="session")
def interpret(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Model], Interpreted]]:
    """Return a function that renders a package with numba's decorator replaced and imports it."""
    parent = tmp_path_factory.mktemp("interpreted")
    sys.path.insert(0, str(parent))

    def run(model: Model) -> Interpreted:
        folder = parent / f"interpreted_{model.name}"
        folder.mkdir()
        for name, content in package(derive(model)).files.items():
            _write_plain(folder / name, content)
        module = importlib.import_module(folder.name)
        return Interpreted(module, module.numbers())

    yield run
    sys.path.remove(str(parent))


def _write_plain(file: Path, content: bytes) -> None:
    if file.suffix == ".py":
        text = content.decode().replace("from . import one_name\n\n__name__ = one_name(__spec__)\n", "")
        stub = "def njit(**options):\n    return lambda function: function\n"
        content = text.replace("from numba import njit\n", stub).encode()
    file.write_bytes(content)


@pytest.fixture(scope="session")
def case(compiled: Callable[[Model], LoadedPackage], interpret: Callable[[Model], Interpreted]) -> Callable[..., Case]:
    """Return a function that makes a problem for one of the models by name."""
    packages: dict[str, tuple[Model, Any, dense.DenseModel]] = {}

    def make(name: str, horizon: int = 5, seed: int = 0) -> Case:
        if name not in packages:
            model = MODELS[name]()
            packages[name] = (model, (compiled if name in COMPILED else interpret)(model), expand(model))
        return Case(*packages[name], horizon, seed)

    return make
