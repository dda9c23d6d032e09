"""The controller that plans to learn, near constraints; all of it through C, which compiles in no time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from symdual.runtime.belief import Belief
from symdual.runtime.closed_loop import Settings, simulate
from symdual.runtime.controller import controller
from symdual.runtime.costs import settings_of, stage_costs_of
from symdual.runtime.options import Options
from symdual.runtime.problem import Problem

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests" / "models"
PLANS = Options(look_ahead=False)

# the same problem without a wall and with one that is never near
FENCED = """
import sympy as sp
from symdual import Model, Scenario, unknown
x, v, u = sp.symbols("x v u")
{name} = Model(
    [x, v], [u], [x + 0.4 * v, 0.8 * v + unknown("b", 1.0, 0.3) * u], process_noise=1e-3, measurement_noise=1e-2,
    bounds={{u: (-30.0, 30.0)}},
)
scenario = Scenario({name}, 6, cost=[x - 1.0, u], cost_weights=[1.0, 0.1]{more}, truth={{"b": 0.7}})
"""

# an unknown hill before a buffer
HILL = """
import sympy as sp
from symdual import Model, Scenario, features
position, speed, pull = sp.symbols("position speed pull")


def hill_with(grade):
    motion = [position + speed, 0.98 * speed + pull / 2 + grade]
    return Model([position, speed], [pull], motion, process_noise=1e-3, measurement_noise=[0.1, 0.01],
                 bounds={pull: (-3.0, 3.0)})


hill = hill_with(features.gaussian_process("grade", position, lengthscale=12.0, amplitude=0.2, memory=16))
track = hill_with(0.2 * sp.sin(position / 8))
scenario = Scenario(hill, 8, cost=[position - 12.0, pull], cost_weights=[0.1, 0.1], terminal_cost=[speed],
                    constraints=[position <= 10.0], probability=0.95, plant=track)
"""


@pytest.fixture(scope="module")
def brim(in_c: Callable[[Path | str, str], Problem]) -> Problem:
    return in_c(ROOT / "examples" / "brim.py", "brim")


@pytest.fixture(scope="module")
def walled(in_c: Callable[[Path | str, str], Problem]) -> Problem:
    return in_c(MODELS / "scenarios.py", "walled")


def _cost_of(problem: Problem, belief: Belief, k: int, inputs: np.ndarray) -> float:
    """Jbar + w Jd of a plan at its own distances, as `planned` counts it."""
    records, calls = problem.package.records, problem.package.calls
    workspace = records.make_workspace(
        problem.horizon, stage_costs_of(problem), settings_of(problem, "planned", 1), 1, True
    )
    held = records.make_belief(belief.mean, belief.covariance)
    nominal = calls.follow(k, problem.horizon, held, np.ascontiguousarray(inputs), workspace)
    return float(calls.total_cost(k, problem.horizon, 0, nominal, held, workspace))


def test_its_plan_costs_no_more_than_that_of_dual(brim: Problem) -> None:
    """For the same beliefs, those of an episode with a pump that is stronger than expected."""
    own, dual = controller(brim, "planned", options=PLANS), controller(brim, "dual")
    state, level, trend = own.init(), 0.0, 0.0
    for k in range(5):
        y = [level, trend] if k else None
        _, _, searched = dual.step(state._replace(plans=None), y)
        state, u, info = own.step(state, y)
        found = _cost_of(brim, state.belief, k, info.planned_inputs)
        assert info.costs[0, 0] == pytest.approx(found, rel=1e-9)
        assert found <= _cost_of(brim, state.belief, k, searched.planned_inputs) + 1e-9
        level, trend = 0.7 * level + trend, 0.3 * trend + 1.2 * u[0]


def test_a_kept_plan_is_never_made_worse(brim: Problem) -> None:
    """The plan of the step before, continued by its feedback, is among the starts; what comes out costs no more."""
    own = controller(brim, "planned", options=replace(PLANS, samples=0))
    state, _, _ = own.step(own.init())
    _, _, info = own.step(state, [0.0, -0.5])
    assert info.planned is not None
    assert info.costs[0, 0] <= min(start.cost for start in info.planned.starts)


def test_a_constraint_that_never_binds_changes_nothing(in_c: Callable[[Path | str, str], Problem]) -> None:
    free = in_c(FENCED.format(name="free", more=""), "free")
    fenced = in_c(FENCED.format(name="fenced", more=", constraints=[x <= 1e4], probability=0.95"), "fenced")
    # looking ahead from kept plans differs a little: near constraints their feedback answers to parameters too
    for options, measured in ((PLANS, (None, [0.1, 0.6], [0.5, 0.9])), (Options(samples=0), (None,))):
        both = [controller(problem, "planned", options=options) for problem in (free, fenced)]
        states = [own.init() for own in both]
        for y in measured:
            (states[0], u, info), (states[1], v, other) = (c.step(s, y) for c, s in zip(both, states, strict=True))
            np.testing.assert_allclose(u, v, atol=1e-10)
            np.testing.assert_allclose(info.costs[0], other.costs[0], rtol=1e-10, atol=1e-10)


def test_with_nothing_to_learn_and_no_backoff_it_is_ce_to_the_bit(walled: Problem) -> None:
    known = replace(walled, prior=Belief(walled.prior.mean, 0.0 * walled.prior.covariance, None))
    numbers = walled.package.numbers
    quiet = replace(walled.package, numbers={**numbers, "process_noise": 0.0 * numbers["process_noise"]})
    careless = replace(known, package=quiet).changed(probability=0.5)
    found = simulate(careless, ["planned", "ce"], 6, seed=1)
    np.testing.assert_array_equal(found["planned"].inputs, found["ce"].inputs)
    # noise is reason enough to keep away
    (away,) = simulate(known, ["planned"], 20, settings=Settings(truth="prior")).values()
    assert np.mean(away.constraints[:, 3:, 0] > 0.0) < 0.15


def test_the_parts_add_up_to_the_cost_whatever_uncertainty_weighs(walled: Problem) -> None:
    heavy = controller(replace(walled, dual_weight=3.0), "planned")
    _, u, info = heavy.step(heavy.init())
    (row,) = info.costs[np.all(info.candidates == u, axis=1)]
    assert sum(info.parts) == pytest.approx(row[0], rel=1e-12)
    assert info.parts.certainty_equivalent == row[1] < 0.999 * row[0]


def test_episodes_keep_away_and_tell_of_violations(walled: Problem) -> None:
    found = simulate(walled, ["ce", "planned"], runs=40)
    late = {name: np.mean(episodes.constraints[:, 3:, 0] > 0.0) for name, episodes in found.items()}
    assert late["planned"] < 0.15 < late["ce"]
    assert found["planned"].states[:, 3:, 0].mean() > 0.9
    again = simulate(walled, ["planned"], runs=40)["planned"]
    np.testing.assert_array_equal(found["planned"].inputs, again.inputs)


@pytest.mark.soak
def test_an_unknown_function_has_its_distance(in_c: Callable[[Path | str, str], Problem]) -> None:
    """All controllers before a buffer, on a hill that they do not know."""
    problem = in_c(HILL, "hill")
    found = simulate(problem, ["ce", "cautious", "dual", "planned"], runs=4)
    nearest = {name: episodes.constraints[:, :, 0].max(axis=1).mean() for name, episodes in found.items()}
    assert not any(episodes.outcomes.any() for episodes in found.values())
    assert max(nearest["cautious"], nearest["dual"], nearest["planned"]) < 0.1 < nearest["ce"] + 0.5
    plans = {}
    for name in ("ce", "cautious", "dual"):
        own = controller(problem, name)
        plans[name] = own.step(own.init())[2].planned_states[:, 0].max()
    assert plans["cautious"] < plans["dual"] < plans["ce"]
