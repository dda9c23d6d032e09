"""The same recursions compiled, compiled with every index checked, and not compiled at all."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from symdual.runtime.loading import LoadedPackage

from . import exercise

LEGS = {
    "indices checked": {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "1"},
    "not compiled": {"NUMBA_DISABLE_JIT": "1"},
}
# the search may stop at another point of the same flat valley
TOLERANCES = {"decision": 1e-4, "cost of the decision": 1e-8}


@pytest.fixture(scope="module")
def both(toy_package: LoadedPackage, pair_package: LoadedPackage) -> list[LoadedPackage]:
    """One input and two inputs."""
    return [toy_package, pair_package]


@pytest.fixture(scope="module")
def ordinary(both: list[LoadedPackage]) -> list[exercise.Numbers]:
    """What the recursions return when they are compiled as usual."""
    return [exercise.numbers(package) for package in both]


@pytest.mark.parametrize("leg", [pytest.param("indices checked", marks=pytest.mark.soak), "not compiled"])
def test_another_way_to_run_gives_the_same_numbers(
    both: list[LoadedPackage],
    ordinary: list[exercise.Numbers],
    leg: str,
    tmp_path: Path,
    fresh_python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    folders = [str(package.folder) for package in both]
    program = Path(exercise.__file__).read_text() + (
        "\nimport json\nfrom symdual.runtime.loading import load\n"
        f"packages = [load(folder) for folder in {folders}]\n"
        "print(json.dumps([numbers(package) for package in packages]))\n"
        "print(sum(map(compiled_twice, packages), []))\n"
    )
    # code with checks must neither come from the cache of code without them nor go there
    done = fresh_python(program, tmp_path, NUMBA_CACHE_DIR=str(tmp_path), **LEGS[leg])
    assert "Error" not in done.stderr  # behind a function pointer an exception is printed, not raised
    values, doubles = done.stdout.splitlines()
    assert doubles == "[]"
    for found, expected in zip(json.loads(values), ordinary, strict=True):
        assert found.keys() == expected.keys()
        for name, wanted in expected.items():
            np.testing.assert_allclose(found[name], wanted, rtol=TOLERANCES.get(name, 1e-9), atol=1e-11, err_msg=name)
