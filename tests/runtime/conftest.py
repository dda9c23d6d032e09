"""Compiled packages for the tests of the runtime: made once in a session, shared by all workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import symdual
from symdual.backends.c import backend, compilation, compilers
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Problem

# an offset that every input leaves as uncertain as it was: the input never shows in the belief on c
OFFSET = """
import sympy as sp
from symdual import Model, Scenario, unknown
x, u = sp.symbols("x u")
c = unknown("c", mean=0.5, variance=1.0)
offset = Model(states=[x], inputs=[u], dynamics=[0.9 * x + u + c], process_noise=0.1, measurement_noise=0.0)
scenario = Scenario(offset, horizon=4, start=1.0, truth={"c": 0.3}, bonus=5.0)
"""

# two inputs, three unknown gains between them
PAIR = """
import sympy as sp
from symdual import Model, Scenario, unknown
p, q, u, v = sp.symbols("p q u v")
b, c, d = unknown("b", 0.5, 2.0), unknown("c", 0.3, 1.0), unknown("d", -0.5, 2.0)
pair = Model(
    states=[p, q],
    inputs=[u, v],
    dynamics=[0.9 * p + 0.2 * q + b * u + c * v, 0.8 * q + d * v],
    process_noise=0.1,
    measurement_noise=0.01,
)
scenario = Scenario(pair, horizon=4, input_cost=0.1, start=[1.0, -1.0], truth={"b": 0.5, "c": 0.3, "d": -0.5})
"""

# an offset that halves itself at every step and drifts; the same sizes as the toy
FADING = """
import sympy as sp
from symdual import Model, Scenario, unknown
x, u = sp.symbols("x u")
a = unknown("a", mean=0.0, variance=1.0)
fading = Model(
    states=[x], inputs=[u], dynamics=[a + u], process_noise=1e-3, measurement_noise=1e-3, transition=0.5, drift=0.04
)
scenario = Scenario(fading, horizon=5, input_cost=0.1, start=0.5, reference=0.5, truth={"a": 1.0})
"""

# a slope with ups and downs: plans that start differently end in different minima
WAVES = """
import sympy as sp
from symdual import Model, Scenario, unknown
x, u = sp.symbols("x u")
b = unknown("b", mean=1.0, variance=0.3)
moved = x + b * u + 0.8 * sp.sin(3 * x)
waves = Model([x], [u], [moved], process_noise=1e-3, measurement_noise=1e-3, bounds={u: (-1, 1)})
scenario = Scenario(waves, horizon=8, input_cost=0.1, reference=4.0, truth={"b": 1.0})
"""


@pytest.fixture(scope="session")
def make(
    shared_package: Callable[[Path], LoadedPackage], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str], LoadedPackage]:
    """Generate and load a package from the text of a model file."""

    def from_text(name: str, text: str) -> LoadedPackage:
        file = tmp_path_factory.mktemp("models") / f"{name}.py"
        file.write_text(text)
        return shared_package(file)

    return from_text


@pytest.fixture(scope="session")
def make_quickly(
    shared_models: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str], LoadedPackage]:
    """The same for tests of what controllers do, not of how they are compiled: through C, where there is a compiler."""

    def from_text(name: str, text: str) -> LoadedPackage:
        file = tmp_path_factory.mktemp("models") / f"{name}.py"
        file.write_text(text)
        return symdual.load(shared_models(file) / name)

    return from_text


@pytest.fixture
def toy(toy_package: LoadedPackage) -> Problem:
    """Two steps with the toy."""
    return symdual.problem(toy_package)


@pytest.fixture
def numba_toy(numba_toy_package: LoadedPackage) -> Problem:
    """The same, compiled by numba."""
    return symdual.problem(numba_toy_package)


@pytest.fixture(scope="session")
def offset_package(make: Callable[[str, str], LoadedPackage]) -> LoadedPackage:
    """x' = 0.9 x + u + c, the same sizes as the toy."""
    return make("offset", OFFSET)


@pytest.fixture(scope="session")
def quick_offset_package(make_quickly: Callable[[str, str], LoadedPackage]) -> LoadedPackage:
    """The same through C, where there is a compiler."""
    return make_quickly("offset", OFFSET)


@pytest.fixture(scope="session")
def pair_package(make_quickly: Callable[[str, str], LoadedPackage]) -> LoadedPackage:
    """Two states, two inputs, three unknown gains."""
    return make_quickly("pair", PAIR)


@pytest.fixture(scope="session")
def fading_package(make_quickly: Callable[[str, str], LoadedPackage]) -> LoadedPackage:
    """x' = a + u, a' = a / 2: a parameter that moves."""
    return make_quickly("fading", FADING)


@pytest.fixture(scope="session")
def waves_package(make_quickly: Callable[[str, str], LoadedPackage]) -> LoadedPackage:
    """x' = x + b u + 0.8 sin(3 x), |u| <= 1: a plan has many local minima."""
    return make_quickly("waves", WAVES)


@pytest.fixture(scope="module")
def in_c(
    shared_models: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Path | str, str], Problem]]:
    """Return a function that gives the problem of a model in a file, or in a text, through C, compiled quickly."""
    try:
        compilers.compiler()
    except compilers.NoCompiler as failure:
        pytest.skip(str(failure))

    def run(source: Path | str, name: str) -> Problem:
        if isinstance(source, str):
            file = tmp_path_factory.mktemp("models") / f"{name}.py"
            file.write_text(source)
            source = file
        return symdual.problem(symdual.load(shared_models(source) / name, backend="c"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compilation, "FAST", ("-O1",))  # sums in their order
        patch.setattr(backend, "_BACKENDS", {})  # so that what is compiled like this is not met by other tests
        yield run
