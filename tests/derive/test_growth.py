"""Nothing that is derived or written grows with the number of features, few sines apart, which are taken one by one."""

from __future__ import annotations

import re

import pytest
import sympy as sp

from symdual import Model, features
from symdual.derive.derivation import derive
from symdual.derive.display import equations
from symdual.emit.package import package

x, v, u = sp.symbols("x v u")


def model(count: int) -> Model:
    slope = features.fourier("g", x, count=count)
    net = features.logistic("net", v, locations=[0.1 * i for i in range(count)])
    return Model([x, v], [u], [x + v * slope, v + net * slope + u], name="growing", observation=[x, net])


@pytest.fixture(scope="module")
def sizes() -> dict[int, dict[str, bytes]]:
    return {count: dict(package(derive(model(count))).files) for count in (40, 1000)}


def test_the_code_is_the_same_but_for_its_numbers(sizes: dict[int, dict[str, bytes]]) -> None:
    def without_numbers(text: bytes) -> str:
        return re.sub(r"\b\d+\b|\b[0-9a-f]{64}\b|(?<=_sincos_)\d+|(?<=_exp_)\d+", "#", text.decode())

    for name in sizes[40]:
        if name.endswith(".py"):
            assert without_numbers(sizes[40][name]) == without_numbers(sizes[1000][name]), name


def test_the_files_have_nearly_the_same_size(sizes: dict[int, dict[str, bytes]]) -> None:
    for name in sizes[40]:
        if name.endswith(".py"):
            assert len(sizes[1000][name]) <= 1.3 * len(sizes[40][name]), name


def test_the_derivation_has_the_same_equations() -> None:
    few, many = (equations(derive(model(count))) for count in (40, 1000))
    assert [(e.block, e.function, e.variables, e.operations) for e in few] == [
        (e.block, e.function, e.variables, e.operations) for e in many
    ]
    assert all(e.right is not None for e in many)
