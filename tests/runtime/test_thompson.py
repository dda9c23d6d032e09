"""Posterior sampling: what is drawn, for how long it is kept, and that nobody else notices."""

from __future__ import annotations

import numpy as np
import pytest

import symdual
from symdual.backends.c.program import Program
from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.runtime.belief import Belief
from symdual.runtime.controller import Controller, controller
from symdual.runtime.costs import given_of
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Problem


@pytest.fixture(scope="module")
def pair(pair_package: LoadedPackage) -> Problem:
    """Two states, two inputs, three unknown gains."""
    return symdual.problem(pair_package)


def drawn(one: Controller, seed: int, belief: Belief) -> Array:
    """What is drawn at the first step with a seed."""
    one.solver.settings["seed"] = seed
    state, _ = one.choose(one.init(belief))
    assert state.plans is not None
    return np.array(state.plans["z"][1, 0, one.problem.package.NX :])


@pytest.mark.parametrize("rank", [3, 2, 1, 0])
def test_draws_have_mean_and_covariance_of_the_belief(pair: Problem, rank: int) -> None:
    """Also where some directions are known: a draw never leaves those that are not."""
    root = np.array([[1.0, 0.0, 0.0], [0.5, 0.7, 0.0], [-0.4, 0.2, 0.9]])[:, :rank]
    covariance = np.zeros((5, 5))
    covariance[2:, 2:] = root @ root.T
    covariance[2:, 2:] -= 1e-17 * np.eye(3) if rank else 0.0  # rounding that makes it indefinite
    mean = np.array([1.0, -1.0, 0.5, 0.3, -0.5])
    one = controller(pair, "thompson")
    draws = np.array([drawn(one, seed, Belief(mean, covariance)) for seed in range(2000)]) - mean[2:]
    error = 5.0 / np.sqrt(len(draws))
    assert draws.mean(axis=0) == pytest.approx(np.zeros(3), abs=1.2 * error)
    assert draws.T @ draws / len(draws) == pytest.approx(root @ root.T, abs=1.6 * error)
    if rank < 3:
        away = np.linalg.svd(root.T if rank else np.zeros((1, 3)))[2][rank:]
        assert np.abs(draws @ away.T).max() < 1e-6


def test_a_draw_is_kept_and_moves_as_parameters_do(fading_package: LoadedPackage) -> None:
    """The offset of FADING halves itself at every step."""
    one = controller(symdual.problem(fading_package), "thompson", options=symdual.Options(hold=3, seed=4))
    state, found = one.init(), []
    for _ in range(5):
        state, _, _ = one.step(state, [0.1])
        assert state.plans is not None
        found.append(float(state.plans["z"][1, 0, 1]))
    assert found[1:3] == [found[0] / 2, found[0] / 4]
    assert found[3] not in (found[0] / 8, found[0]) and found[4] == found[3] / 2


def test_a_moving_horizon_whose_times_are_alike_draws_too(pair: Problem) -> None:
    one = controller(pair, "thompson", window=2, options=symdual.Options(hold=2))
    state, found = one.init(), []
    for _ in range(10):
        state, _, _ = one.step(state, [0.1, 0.2])
        assert state.plans is not None
        found.append(state.plans["z"][1, 0, 2:].tolist())
    assert found[::2] == found[1::2] and len({str(draw) for draw in found}) == 5


def test_without_uncertainty_it_is_certainty_equivalence(pair: Problem) -> None:
    known = pair.changed(prior_covariance=np.zeros((3, 3)))
    np.testing.assert_array_equal(controller(known, "thompson").act(), controller(known, "ce").act())


def test_it_plans_as_if_the_draw_were_the_truth(pair: Problem) -> None:
    one = controller(pair, "thompson")
    state, u = one.choose(one.init())
    assert state.plans is not None
    believed = pair.changed(prior_mean=state.plans["z"][1, 0, 2:])
    np.testing.assert_allclose(u, controller(believed, "ce").act(), rtol=1e-12)
    assert not np.allclose(u, controller(pair, "ce").act())


def test_episodes_draw_by_themselves_and_leave_the_others_alone(pair: Problem) -> None:
    both, alone = symdual.simulate(pair, ["ce", "thompson"], runs=5), symdual.simulate(pair, "ce", runs=5)
    np.testing.assert_array_equal(both["ce"].states, alone["ce"].states)
    np.testing.assert_array_equal(
        symdual.simulate(pair, "thompson", runs=3)["thompson"].states, both["thompson"].states[:3]
    )
    assert len({u.tobytes() for u in both["thompson"].inputs[:, 0]}) == 5


def test_an_explained_episode_is_that_of_the_simulation(pair: Problem) -> None:
    held = symdual.simulate(pair, "thompson", runs=2)["thompson"]
    episode = symdual.explain(pair, "thompson", run=1, points=2)["thompson"]
    np.testing.assert_allclose(episode.states, held.states[1], rtol=1e-9)
    for decision in episode.decisions:
        np.testing.assert_array_equal(decision.plan_inputs[0], decision.u)


def test_a_copy_goes_on_with_the_same_draw(pair: Problem) -> None:
    import copy

    one = controller(pair, "thompson")
    one.act()
    other = copy.copy(one)
    np.testing.assert_array_equal(one.act([0.2, 0.1]), other.act([0.2, 0.1]))


def test_plain_python_draws_the_same(pair: Problem) -> None:
    program = Program(pair.package.files)
    settings, records = program.module("settings"), program.module("records")
    given = given_of(pair)
    told = settings.settings_of("thompson", 1, given, {"seed": 7})
    workspace = records.make_workspace(4, settings.stage_costs_of(given, 4), told)
    belief = records.make_belief(pair.prior.mean, pair.prior.covariance)
    candidates, out = np.full((1, 2), np.nan), np.zeros((1, 7))
    program.module("decision")._thompson(0, 4, belief, workspace, candidates, out)
    one = controller(pair, "thompson", options=symdual.Options(seed=7))
    np.testing.assert_allclose(workspace.stored_plans["z"][1, 0, 2:], drawn(one, 7, pair.prior), rtol=1e-13)
    np.testing.assert_allclose(candidates[0], one.act(), rtol=1e-9)


def test_what_it_is_told_is_checked(pair: Problem) -> None:
    with pytest.raises(SymdualError, match="hold must be at least 1, not 0"):
        controller(pair, "thompson", options=symdual.Options(hold=0))
    with pytest.raises(SymdualError, match='no option "holt"; did you mean "hold"'):
        symdual.Options().told({"holt": "3"})
    with pytest.raises(SymdualError, match=r'the option "hold" must be a whole number, not "3\.5"'):
        symdual.Options().told({"hold": "3.5"})
    assert symdual.Options().told({"hold": "3", "look_ahead": "0"}).numbers["hold"] == 3
