"""A reactor that ignites, in closed loop: no step is lost, and what has no solution is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from symdual import api, load
from symdual.checks.stiffness import stiffness
from symdual.common.errors import SymdualWarning
from symdual.generation import wanted
from symdual.runtime.closed_loop import Settings, simulate
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import problem
from symdual.runtime.stiffness import too_fast
from symdual.spec.loading import contents_of

MODELS = Path(__file__).parents[1] / "models/stiff.py"


@pytest.fixture(scope="module")
def ignition(shared_models: Callable[[Path], Path]) -> LoadedPackage:
    return load(shared_models(MODELS) / "ignition")


@pytest.mark.parametrize("name", ["oracle", "ce", "dual"])
def test_every_episode_of_a_reactor_comes_to_its_end(ignition: LoadedPackage, name: str) -> None:
    found = simulate(problem(ignition), [name], 4, settings=Settings(truth="prior"))[name]
    assert (found.outcomes == 0).all()
    hottest = found.states[:, :, 1].max(axis=1)
    assert ((hottest > 450.0) & (hottest < 550.0)).all()  # all ignite, and none has more heat than it has fuel


EXPLODES = """
import sympy as sp
from symdual import Model, Scenario, unknown
x, u = sp.symbols("x u")
explodes = Model(
    [x], [u], derivatives=[unknown("k", mean=0.0, variance=1e-12) * x**2 + u], step=0.5, method="radau",
    measurement_noise=1e300, bounds={u: (-1, 1)},
)
scenario = Scenario(explodes, horizon=8, start=1.0, truth={"k": 1.0})
"""


def test_a_step_without_a_solution_is_told(make_quickly: Callable[[str, str], LoadedPackage]) -> None:
    package = make_quickly("explodes", EXPLODES)
    with pytest.warns(
        SymdualWarning, match=r"the plant is not finite at step .*; radau does not converge there: at step"
    ):
        found = simulate(problem(package), ["ce"], 1)
    assert found["ce"].outcomes.tolist() == [1]
    near, far = ((0, np.array([x]), np.zeros(1), np.ones(1)) for x in (1.0, 3.0))
    assert not too_fast(package, [near]) and "at step 0" in too_fast(package, [near, far])


def test_an_explicit_step_that_is_not_safe_is_told(tmp_path: Path) -> None:
    """The same reactor by Runge and Kutta: at rest it ignites, and is then far beyond the limit."""
    file = tmp_path / "explicit.py"
    text = MODELS.read_text().split("# substeps")[0].replace('"radau"', '"rk4"').replace("ignition =", "explicit =")
    file.write_text(
        text.replace("    ignition,", "    explicit,").replace("bounds={Tc: (280, 370)}", "bounds={Tc: (370, 380)}")
    )
    found = api.stiffness(file)["explicit"]
    assert found.unsafe and 500.0 < found.rate < 5000.0 and found.product == pytest.approx(found.rate * 0.05)
    assert "rk4 is not stable up to 2.785" in found.sentence() and 'method="radau"' in found.sentence()
    file.write_text(file.read_text().replace('"rk4"', '"rk4", substeps=200'))
    cured = api.stiffness(file)["explicit"]
    assert not cured.unsafe and cured.rate == pytest.approx(found.rate, rel=0.2)
    one = wanted(contents_of(MODELS))[0]
    assert stiffness(one.specification, one.scenarios) is None


BRAKED = """
import sympy as sp
from symdual import Model, Scenario, previous, unknown
x, push = sp.symbols("x push")
late = previous(push, 1)
braked = Model([x], [push], derivatives=[0.9 * push + 0.1 * late - unknown("k", 1.0, 0.01) * x**3], step=0.02,
               method="rk4", bounds={push: (0, 1000)})
scenario = Scenario(braked, horizon=20, reference=7.0, input_cost=1e-9, name="away")
"""


def test_a_plan_into_what_is_fast_is_told(make_quickly: Callable[[str, str], LoadedPackage], tmp_path: Path) -> None:
    """At rest the rate 3 k x^2 is nothing; near x = 7, where the plan leads, it is beyond the limit."""
    package = make_quickly("braked", BRAKED)
    file = tmp_path / "braked.py"
    file.write_text(BRAKED)
    assert api.stiffness(file)["braked"].rate < 1e-9
    found = api.stiffness(file, [package])["braked"]
    assert found.planned and found.unsafe and found.scenario == "away"
    assert found.rate == pytest.approx(3.0 * 7.0**2, rel=0.25)
    assert "along the plan of ce" in found.sentence()
