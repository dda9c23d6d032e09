"""Models, numbers and dense references that the tests of the recursions share.

Most packages run in the interpreter, where every index out of range is an error and nothing has to be compiled; those
in COMPILED run as users run them.
"""

from __future__ import annotations

import importlib
import itertools
import re
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
from symdual.common.package_folders import modules_of
from symdual.derive.derivation import derive
from symdual.emit.package import package
from symdual.runtime.loading import LoadedPackage

x, v, u, w = sp.symbols("x v u w")


def _toy() -> Model:
    return Model([x], [u], [x + unknown("b", 1.0, 10.0) * u], process_noise=0.1, name="toy")


def _cart(count: int = 6, **options: Any) -> Model:
    slope = features.fourier("g", x, count=count, lengthscale=2.0)
    return Model([x, v], [u], [x + 0.4 * v, v + slope + u], process_noise=0.01, measurement_noise=0.01, **options)


def _network(sees: bool = False, size: int = 3, **options: Any) -> Model:
    """A logistic network as a force, which the second measurement sees too if asked for."""
    locations, slopes = [-2.0, 0.5, 1.0, 1.7], [-1.0, 0.7, 1.2, -0.4]
    net = features.logistic("net", x, locations=locations[:size], slope_mean=slopes[:size])
    options |= {"observation": [x, v + 0.3 * net]} if sees else {}
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


def _tidal(**options: Any) -> Model:
    """Affine in states and inputs, with gains that change with time, known or not."""
    time = sp.Symbol("time") if "transition" not in options else sp.Integer(1)
    motion = [x + 0.5 * v, 0.9 * v + (0.3 + 0.2 * time) * unknown("gain", 0.8, 0.5) * u + 0.1]
    return Model([x, v], [u], motion, **({"time": time} if time.is_Symbol else {}), **options)


def _wide() -> Model:
    """Eight states, six of them measured, with unknowns in a few rows each: too many entries to be written out."""
    states, push = sp.symbols("w0:8"), sp.symbols("q0:2")
    unknowns = [unknown(f"c{i}", 0.3, 0.2) for i in range(5)]
    motion = []
    for i, state in enumerate(states):
        near = sum(states[(i + step) % 8] * (0.1 + 0.02 * step) for step in (1, 2, 3, 5))
        motion.append(0.8 * state + near * (1 + 0.1 * sp.sin(states[(i + 4) % 8])) + 0.2 * push[i % 2])
    for i, c in enumerate(unknowns):
        motion[i] += 0.1 * c * states[i + 2]
    measured = [*states[:5], sp.sin(states[5]) * unknowns[4]]
    return Model(list(states), list(push), motion, observation=measured, name="wide")


def _swing() -> Model:
    """A pendulum of unknown length with a motor too weak to lift it at once."""
    pull = unknown("pull", 1.0, 0.1)
    motion = [x + 0.1 * v, v + 0.1 * (u - 9.81 * pull * sp.sin(x) - 0.2 * v)]
    return Model([x, v], [u], motion, process_noise=0.01, measurement_noise=0.01, name="swing")


def _lit(**options: Any) -> Model:
    """Correlated noise that grows with the input, measurements that are worse far away and later."""
    k = sp.Symbol("k")
    steps = sp.Matrix([[0.01 + 0.02 * u**2, 0.01 * u], [0.01 * u, 0.02 + 0.01 * v**2]])
    seen = sp.Matrix([[0.01 + 0.1 * (x - 2) ** 2, 0.01 * v], [0.01 * v, 0.05 + 0.02 * k + 0.02 * v**2]])
    motion = [x + 0.4 * v, v + unknown("b", 1.0, 0.5) * u - 0.1 * sp.sin(x)]
    measured = [sp.atan(x), v + 0.1 * unknown("b", 1.0, 0.5) * x]
    return Model(
        [x, v], [u], motion, observation=measured, process_noise=steps, measurement_noise=seen, time=k, **options
    )


def _quadratic(**options: Any) -> Model:
    """Of second degree in states and unknowns together."""
    b, c = unknown("b", 1.0, 0.5), unknown("c", 0.5, 0.5)
    motion = [0.9 * x + 0.3 * b * u + 0.2 * b * x, v + 0.5 * c * x - 0.25 * x**2 + 0.1 * b * c]
    measured = [x + 0.5 * x * v, v + c**2 - 0.5 * b * x]
    return Model([x, v], [u], motion, observation=measured, filter="second_order", **options)


def _product() -> Model:
    """A product of two families in the dynamics: pairs of vectors of weights."""
    one, other = features.fourier("g", x, count=4, lengthscale=2.0), features.fourier("w", v, count=4, lengthscale=2.0)
    return Model(
        [x, v], [u], [x + 0.4 * v, v + one * other + u], process_noise=0.01, measurement_noise=0.01,
        filter="second_order", name="second_product",
    )  # fmt: skip


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
    "sighted": lambda: _network(sees=True, size=4, name="sighted"),
    "larger": lambda: _network(size=4, name="larger"),
    "angle": lambda: _angle(name="angle"),
    "iterated": lambda: _mixed(filter="iterated", name="iterated"),
    "iterated_angle": lambda: _angle(filter="iterated", name="iterated_angle"),
    "smoothed": lambda: _cart(filter="iterated", name="smoothed"),
    "smoothed_mixed": lambda: _mixed(
        filter="iterated",
        transition=np.eye(3) + 0.1 * np.arange(9.0).reshape(3, 3) / 9,
        drift=_dense_matrix(3, 1, 0.1),
        name="smoothed_mixed",
    ),
    "smoothed_robust": lambda: _mixed(
        filter="iterated", square_root=True, drift=_spread(3, 0.01, 0.1), name="smoothed_robust"
    ),
    "iterated_second": lambda: _mixed(filter="iterated_second_order", name="iterated_second"),
    "iterated_second_cart": lambda: _cart(filter="iterated_second_order", name="iterated_second_cart"),
    "iterated_second_network": lambda: _network(
        sees=True, filter="iterated_second_order", square_root=True, name="iterated_second_network"
    ),
    "iterated_second_lit": lambda: _lit(filter="iterated_second_order", name="iterated_second_lit"),
    "recalibrated_angle": lambda: _angle(filter="recalibrated", name="recalibrated_angle"),
    "recalibrated_lit": lambda: _lit(filter="recalibrated", square_root=True, name="recalibrated_lit"),
    "recalibrated_network": lambda: _network(
        sees=True, filter="recalibrated_second_order", name="recalibrated_network"
    ),
    "recalibrated_second_lit": lambda: _lit(
        filter="recalibrated_second_order", square_root=True, name="recalibrated_second_lit"
    ),
    "doubting_cart": lambda: _cart(outliers=3.0, name="doubting_cart"),
    "doubting_angle": lambda: _angle(outliers=2.0, filter="recalibrated", name="doubting_angle"),
    "doubting_robust": lambda: _mixed(outliers=3.0, filter="second_order", square_root=True, name="doubting_robust"),
    "doubting_lit": lambda: _lit(outliers=2.0, square_root=True, name="doubting_lit"),
    "doubting_smoothed": lambda: _mixed(outliers=3.0, filter="iterated", name="doubting_smoothed"),
    "numb": lambda: Model(
        [x, v], [u, w], [0.8 * x + unknown("b", 0.8, 0.3) * u**2 + 0.1 * v, 0.9 * v + w], name="numb"
    ),
    "kink": lambda: Model([x], [u], [x + unknown("b", 1.0, 1.0) * sp.Max(u, -u)], name="kink"),
    "double": _double,
    "tidal": lambda: _tidal(name="tidal"),
    "fading": lambda: _tidal(transition=np.array([0.7]), name="fading"),
    "unstable": lambda: Model(
        [x, v],
        [u],
        [3 * x + 0.5 * v + 0.2 * unknown("gain", 1.0, 0.1) * u, 2.5 * v + unknown("gain", 1.0, 0.1) * u],
        name="unstable",
    ),
    "swing": _swing,
    "ratio": lambda: Model([x], [u], [0.5 * x + 0.1 * unknown("b", 1.0, 0.1) / u], name="ratio"),
    "far_valley": lambda: Model(
        [x], [u], [unknown("b", 1.0, 0.1) * (0.05 * u - 11 + 11 * sp.exp(-((u / 8) ** 2)))], name="far_valley"
    ),
    "ripples": lambda: Model([x], [u], [unknown("b", 1.0, 0.1) * (3 * sp.sin(u) + 0.1 * u)], name="ripples"),
    "known": lambda: Model([x], [u], [x + 2 * u], process_noise=0.1, name="known"),
    "offset": lambda: Model([x, v], [u], [x + 0.1 * v, 0.9 * v + u + unknown("c", 0.2, 1.0)], name="offset"),
    "wide": _wide,
    "robust_drift": lambda: _mixed(
        transition=np.eye(3) + 0.1 * np.arange(9.0).reshape(3, 3) / 9,
        drift=_dense_matrix(3, 1, 0.1),
        square_root=True,
        name="robust_drift",
    ),
    "robust": lambda: _mixed(drift=_spread(3, 0.01, 0.1), square_root=True, name="robust"),
    "lit": lambda: _lit(name="lit"),
    "lit_robust": lambda: _lit(square_root=True, drift=0.01, name="lit_robust"),
    "lit_iterated": lambda: _lit(filter="iterated", name="lit_iterated"),
    "second": lambda: _mixed(filter="second_order", name="second"),
    "second_cart": lambda: _cart(filter="second_order", name="second_cart"),
    "second_network": lambda: _network(sees=True, filter="second_order", name="second_network"),
    "second_product": _product,
    "quadratic": lambda: _quadratic(name="quadratic"),
    "rooted_quadratic": lambda: _quadratic(square_root=True, name="rooted_quadratic"),
    "second_robust": lambda: _mixed(filter="second_order", square_root=True, name="second_robust"),
    "second_robust_network": lambda: _network(
        sees=True, filter="second_order", square_root=True, name="second_robust_network"
    ),
    "second_lit": lambda: _lit(filter="second_order", name="second_lit"),
    "robust_cart": lambda: _cart(square_root=True, name="robust_cart"),
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
            *(self._dependent_noise() if m.noise is not None else ()),
        )

    def _dependent_noise(self) -> tuple[Callable[..., np.ndarray], Callable[..., np.ndarray]]:
        """Q and R as functions of time, z and input, straight from the expressions of the model."""
        m, n = self.model, self.reference.nx
        assert m.noise is not None
        symbols = (m.time or sp.Symbol("nothing"), m.states, m.inputs)
        Q = sp.lambdify(symbols, sp.Matrix(m.noise.process), "numpy")
        R = sp.lambdify(symbols, sp.Matrix(m.noise.measurement), "numpy")
        zero = np.zeros(self.reference.nu)
        return (
            lambda time, z, u: np.array(Q(time, z[:n], u), dtype=np.float64),
            lambda time, z: np.array(R(time, z[:n], zero), dtype=np.float64),
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

    @property
    def settings(self) -> np.ndarray:
        """The record of settings: noise, bounds, data and default settings."""
        return self.package.records.make_settings(
            *self.noise[:2], *self.motion, self.cost.bounds, self.package.numbers["data"]
        )

    def make_workspace(self, **changes: float) -> Any:
        """A workspace for the whole horizon, with these settings changed."""
        records, settings = self.package.records, self.settings
        for key, value in changes.items():
            settings[key] = value
        return records.make_workspace(self.horizon, records.make_stage_costs(*self.cost[:3]), settings, order=2)

    @property
    def held(self) -> np.ndarray:
        """The belief as a record."""
        return self.package.records.make_belief(*self.belief)

    def cost_of(self, form: str, k: int, inputs: np.ndarray, learning: bool = True) -> tuple[float, float, bool]:
        """(Jbar, Jd, fell back) of a given sequence of inputs."""
        workspace, calls = self.make_workspace(learning=learning), self.package.calls
        place = (k, self.horizon, np.int64(0))
        nominal = calls.follow(k, self.horizon, self.held, inputs, workspace)
        if form == "lowrank":
            return nominal, calls.jd_lowrank(*place, self.held, workspace), False
        return nominal, *calls.jd_structured(*place, np.int64(2 if form == "second_order" else 1), self.held, workspace)

    def plan(
        self, k: int, first: np.ndarray, tolerance: float = 1e-12, policy: tuple[float, float] | None = None
    ) -> tuple[float, int, np.ndarray]:
        """(cost, status, inputs) of the plan with a given first input; `policy`: gain and offset to start from."""
        N, calls, workspace = self.package.nominal, self.package.calls, self.make_workspace(tolerance=tolerance)
        assert calls.begin(k, self.horizon, self.held, workspace) == N.CONVERGED
        if policy is not None:
            workspace.stages["policy_gain"][:], workspace.stages["policy_offset"][:] = policy
        cost, status, buffer, _ = calls.plan_through(k, self.horizon, first, workspace)
        return cost, status, workspace.plan["u"][buffer, : self.horizon - k].copy()


COMPILED = ("cart", "toy", "double")


@dataclass
class Interpreted:
    """A generated package without numba: its modules are attributes."""

    module: types.ModuleType
    numbers: dict[str, np.ndarray]
    places: dict[str, str]

    state_bounds = property(LoadedPackage.state_bounds.func)
    within_bounds = LoadedPackage.within_bounds

    def __getattr__(self, name: str) -> Any:
        if name.isupper():
            return getattr(self.module, name)
        place = self.places[name].removesuffix(".py").replace("/", ".")
        return importlib.import_module(f"{self.module.__name__}.{place}")


@pytest.fixture(scope="session")
def interpret(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Model], Interpreted]]:
    """Return a function that renders a package with numba's decorator replaced and imports it."""
    parent, count = tmp_path_factory.mktemp("interpreted"), itertools.count()
    sys.path.insert(0, str(parent))

    def run(model: Model) -> Interpreted:
        folder = parent / f"interpreted_{next(count)}_{model.name}"
        folder.mkdir()
        files = package(derive(model)).files
        for name, content in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            _write_plain(folder / name, content)
        module = importlib.import_module(folder.name)
        return Interpreted(module, module.numbers(), modules_of(files))

    yield run
    sys.path.remove(str(parent))


_PLAIN_OPTIONS = b"""ALLOCATING = ENTRY = INNER = INNER_ALLOCATING = NOALIAS = ORDERED = KERNEL = EXACT = {}
CACHED = False


def function_at(signature):
    return None
"""


def _write_plain(file: Path, content: bytes) -> None:
    if file.name == "options.py":
        content = _PLAIN_OPTIONS
    elif file.suffix == ".py":
        text = re.sub(r"from \.+ import one_name\n\n__name__ = one_name\(__spec__\)\n", "", content.decode())
        stub = "def njit(**options):\n    return lambda function: function\n"
        text = text.replace("from numba import cfunc, njit, types\n", f"from numba import cfunc, types\n\n{stub}")
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
