"""States with bounds: a tank that runs dry stops there, in the plant, in plans, in the filter and in checks of all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import symdual
from symdual.checks.kernels import check_kernels
from symdual.checks.recursions import check_recursions
from symdual.identification.parameters.filtering import Filter
from symdual.runtime import evaluate
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Problem
from symdual.spec.loading import load_model_file

TANK = """
import sympy as sp
from symdual import Model, Scenario, unknown
level, pump = sp.symbols("level pump")
leak = unknown("leak", 0.1, 0.03**2)
numbers = dict(
    derivatives=[pump - leak], step=1.0, substeps=2, process_noise=0.03**2, measurement_noise=0.02**2,
    observation=[level + 0.2 * level**2], bounds={pump: (0.0, 0.3)},
)
tank = Model([level], [pump], state_bounds={level: (0, 0.2)}, filter="second_order", **numbers)
endless = Model([level], [pump], **numbers)
problem = dict(horizon=12, state_cost=1.0, input_cost=4.0, start=0.1, start_covariance=0.04**2, truth={"leak": 0.12})
scenario = Scenario(tank, reference=0.05, **problem)
hopeful = Scenario(endless, plant=tank, reference=0.05, **problem)
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model file."""
    place = tmp_path_factory.mktemp("models") / "tank.py"
    place.write_text(TANK)
    return place


@pytest.fixture(scope="module")
def loaded(file: Path, shared_models: Callable[[Path], Path]) -> dict[str, LoadedPackage]:
    """The tank, and a model of it that knows of no bounds."""
    folder = shared_models(file)
    return {name: symdual.load(folder / name) for name in ("tank", "endless")}


@pytest.fixture
def tank(loaded: dict[str, LoadedPackage]) -> Problem:
    """The tank that believes what is true."""
    return symdual.problem(loaded["tank"])


def test_a_step_stops_at_a_bound_with_its_slopes(loaded: dict[str, LoadedPackage]) -> None:
    package = loaded["tank"]
    half = np.clip(0.02 + 0.5 * (0.0 - 0.1), 0.0, 0.2)  # a substep
    assert half == 0.0 and evaluate.dynamics(package, [0.02], [0.0], [0.1]) == [0.0]
    dry, wet = (evaluate.jacobian(package, [level], [0.0], [0.1]) for level in (0.02, 0.15))
    assert not dry.f_x.any() and not dry.f_u.any() and not dry.f_theta.any()
    assert wet.f_x == pytest.approx(1.0) and wet.f_theta == pytest.approx(-1.0)
    assert evaluate.dynamics(package, [0.19], [0.3], [0.1]) == [0.2]
    assert package.STATE_BOUNDS == {"level": (0.0, 0.2)}


@pytest.mark.parametrize("name", ["tank", "endless"])
def test_the_plant_stops_and_means_do_where_the_model_knows(loaded: dict[str, LoadedPackage], name: str) -> None:
    own = symdual.problem(loaded[name])
    episodes = symdual.simulate(own, ["ce"], runs=40, truth="scenario")["ce"]
    assert np.all(episodes.outcomes == 0)
    assert episodes.states.min() == 0.0 and episodes.states.max() <= 0.2
    assert 0.05 < np.mean(episodes.states == 0.0) < 0.95
    means = episodes.z_means[..., 0]
    if name == "tank":
        assert means.min() == 0.0 and means.max() <= 0.2
    else:
        assert means.min() < 0.0


def test_explained_episodes_meet_the_same_plant(tank: Problem) -> None:
    told = symdual.explain(tank, ["ce"], seed=1)["ce"]
    run = symdual.simulate(tank, ["ce"], runs=1, seed=1)["ce"]
    assert np.array_equal(told.states, run.states[0]) and np.any(told.states == 0.0)


def test_the_filter_puts_its_mean_on_the_bound(tank: Problem) -> None:
    belief = tank.package.records.make_belief(np.array([0.01, 0.1]), np.diag([0.05**2, 0.03**2]))
    package = tank.package
    settings = package.records.make_settings(*package.noise, tank.bounds, package.numbers["data"].copy())
    workspace = package.filter.make_filter_workspace(settings)
    assert package.filter.update(0, belief, np.array([-0.05]), workspace, np.zeros(3)) == 0
    assert belief["z"][0, 0] == 0.0 and 0.0 < belief["xx"][0, 0, 0] < 0.05**2


def test_gradients_of_the_likelihood_pass_a_bound(loaded: dict[str, LoadedPackage]) -> None:
    """Against differences, where a correction puts the level on its bound."""
    package, inputs = loaded["tank"], np.array([[0.0], [0.1], [0.1], [0.0]])
    seen = np.array([[0.1], [-0.05], [0.04], [0.02]])

    def filtered(level: float) -> Filter:
        start, Q, R = np.array([0.1 + level, 0.03]), np.diag([9e-4, 0.0]), np.array([[4e-4]])
        return Filter(package, start, np.diag([0.04**2, 0.03**2]), np.arange(2), Q, R, np.eye(1))

    up, down = (filtered(step).run(inputs, seen).log_likelihood for step in (1e-6, -1e-6))
    own, run = filtered(0.0), filtered(0.0).run(inputs, seen)
    assert own.back(inputs, seen, run)[0][0] == pytest.approx((up - down) / 2e-6, rel=1e-6)


def test_everything_agrees_with_50_digits_and_dense_numpy(file: Path, loaded: dict[str, LoadedPackage]) -> None:
    contents = load_model_file(file)
    model, scenarios = contents.specifications["tank"], list(contents.scenarios.values())[:1]
    package = loaded["tank"]
    results = check_kernels(model, package, points=3) + check_recursions(model, package, scenarios=scenarios)
    assert all(result.passed for result in results), [r for r in results if not r.passed]
