"""Models in real units: no false miss, and no real one that is hidden by a row with larger numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest

import symdual
from symdual import Model, Scenario
from symdual.backends.c import compilation
from symdual.checks.exact_plan import _inverse
from symdual.checks.kernels import BlockResult
from symdual.checks.places import places
from symdual.checks.recursions import check_recursions
from symdual.report.terminal import verdict
from symdual.runtime.loading import LoadedPackage
from symdual.spec.loading import load_model_file

# a stirred tank: a rate of 7e10 1/min, an activation energy of 8750 K; nothing is wanted of the temperature
REACTOR = """
import sympy as sp
from symdual import Model, Scenario, unknown
C, T, Tc = sp.symbols("C T Tc")
k0, E = unknown("k0", 7.2e10, 1e20), unknown("E", 8750.0, 900.0)
r = k0 * sp.exp(-E / T) * C
hot_reactor = Model(
    [C, T], [Tc], derivatives=[1 - C - r, 350 - T + 209.2 * r + 2.09 * (Tc - T)], step=0.05, method="rk4",
    process_noise=[1e-6, 0.1], measurement_noise=[1e-4, 0.5], bounds={Tc: (250, 350)},
)
scenario = Scenario(
    hot_reactor, 30, state_cost=[100, 0], input_cost=1e-4, start=[0.87, 324.5], start_covariance=[1e-4, 1.0],
    reference=[0.6, 0],
)
"""


@pytest.fixture(scope="module")
def reactor(
    shared_models: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Model, list[Scenario], LoadedPackage]:
    """The reactor through C, which is compiled in seconds."""
    try:
        compilation.compiler()
    except compilation.NoCompiler as failure:
        pytest.skip(str(failure))
    file = tmp_path_factory.mktemp("models") / "hot_reactor.py"
    file.write_text(REACTOR)
    contents = load_model_file(file)
    package = symdual.load(shared_models(file) / "hot_reactor", backend="c")
    return contents.specifications["hot_reactor"], list(contents.scenarios.values()), package


def test_a_reference_of_which_nothing_is_wanted_is_no_place_to_be(reactor: Any) -> None:
    model, scenarios, _ = reactor
    (group,) = places(model, scenarios, np.random.default_rng(0))
    assert all(place.x[1] > 300.0 and place.x_spread[1] < 30.0 for place in group)


def test_recursions_of_a_reactor_are_fine_and_broken_ones_are_found(reactor: Any) -> None:
    model, scenarios, package = reactor
    results = check_recursions(model, package, scenarios=scenarios)
    assert all(r.passed and r.undefined == 0 for r in results)

    def missed(name: str, change: Callable[[Any], Any]) -> set[str]:
        calls = package.calls
        own = {key: getattr(calls, key) for key in dir(calls) if not key.startswith("_")}
        sound = own[name]
        own[name] = lambda *arguments: change(sound(*arguments))
        broken = _Broken(package, SimpleNamespace(**own))
        return {r.block for r in check_recursions(model, broken, scenarios=scenarios) if not r.passed}  # type: ignore[arg-type]

    found = missed("jd_structured", lambda pair: (pair[0] * (1 + 1e-7), *pair[1:]))
    assert "dual cost, structured" in found and "dual cost, second order" in found


class _Broken:
    """A package some of whose calls are changed."""

    def __init__(self, package: LoadedPackage, calls: Any) -> None:
        self._package, self.calls = package, calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._package, name)


def test_a_matrix_without_finite_entries_has_no_inverse() -> None:
    with pytest.raises(ZeroDivisionError):
        _inverse(mpmath.matrix([[mpmath.nan, 0], [0, 1]]))


def test_the_first_line_says_whether_all_is_well() -> None:
    fine = BlockResult("f by x", "50 digits", 2, 3e-10, True)
    silent = BlockResult("f by u", "differences", 2, 0.0, True, undefined=1)
    wrong = BlockResult("dual cost", "dense", 2, 1e-3, False)
    assert verdict([fine, silent]) == (
        "all is well in 2 checks, compared with 50-digit values, its differences; in 1 of them there was nothing "
        "finite to compare at some points"
    )
    assert verdict([fine, wrong]).startswith("1 of 2 checks MISS, compared with 50-digit values, recursions by full")
