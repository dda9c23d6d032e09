"""Rivals: rollout, scenario, information and dither, against recursions in numpy and in their limits."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import symdual
from symdual.backends.c.program import Program
from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.runtime.controller import Controller, controller
from symdual.runtime.costs import given_of
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.options import Options
from symdual.runtime.problem import Problem

RIVALS = ("rollout", "scenario", "information", "dither")

GAIN = """
import sympy as sp
from symdual import Model, Scenario, unknown
x, u = sp.symbols("x u")
b = unknown("b", mean=0.3, variance=0.5)
gain = Model([x], [u], [x + b * u], process_noise=0.2, measurement_noise=0.1, bounds={u: (-4, 4)})
scenario = Scenario(gain, horizon=2, input_cost=0.1, start=1.5, start_covariance=0.05)
"""
Q, R, U, MEAN, VARIANCE, X, V = 0.2, 0.1, 0.1, 0.3, 0.5, 1.5, 0.05


@pytest.fixture(scope="module")
def gain(make_quickly: Callable[[str, str], LoadedPackage]) -> Problem:
    """Two steps with an unknown gain."""
    return symdual.problem(make_quickly("gain", GAIN))


@pytest.fixture(scope="module")
def pair(pair_package: LoadedPackage) -> Problem:
    """Two states, two inputs, three unknown gains."""
    return symdual.problem(pair_package)


class Plain:
    """A decision in plain Python: the modules of a package and all that they work on."""

    def __init__(self, problem: Problem, kind: str, **options: int) -> None:
        self._program = Program(problem.package.files)
        settings, records = self.module("settings"), self.module("records")
        given, steps = given_of(problem), problem.horizon
        told = settings.settings_of(kind, 1, given, Options(**options).numbers)
        self.steps = steps
        self.workspace: Any = records.make_workspace(steps, settings.stage_costs_of(given, steps), told)
        self.belief = records.make_belief(problem.prior.mean, problem.prior.covariance)

    def module(self, name: str) -> ModuleType:
        return self._program.module(name)

    def rows(self, cost: str, inputs: list[float]) -> Array:
        """Results of the certainty-equivalent input, and of others."""
        found = []
        for u in (np.nan, *inputs):
            candidates, out = np.array([[u]]), np.zeros((1, 7))
            self.module(cost).choose(0, self.steps, self.belief, self.workspace, candidates, out)
            found.append([candidates[0, 0], *out[0]])
        return np.array(found)


def alike(problem: Problem, one: str, other: str, **options: int) -> None:
    """Two controllers choose the same inputs, to the bit."""
    told = symdual.runtime.closed_loop.Settings(truth="prior", options=Options(**options))
    held = symdual.simulate(problem, [one, other], runs=3, settings=told)
    np.testing.assert_array_equal(held[one].inputs, held[other].inputs)


def test_without_what_makes_them_differ_they_are_certainty_equivalence(pair: Problem) -> None:
    alike(pair, "information", "ce", reward=0)
    alike(pair, "rollout", "ce", candidates=1)
    alike(pair, "rollout", "ce", samples=0)
    alike(pair, "dither", "ce", dither=0)


def test_a_tree_of_the_mean_alone_is_certainty_equivalence(pair: Problem) -> None:
    held = [controller(pair, name, options=Options(branches=1)).act() for name in ("scenario", "ce")]
    np.testing.assert_allclose(*held, rtol=1e-6)
    assert not np.allclose(controller(pair, "scenario").act(), held[1], rtol=1e-2)


def ce_cost(u: Array | float, x: Array | float, b: Array | float) -> tuple[Any, Any]:
    """Jbar of two steps through u, and the second input, for x' = x + b u."""
    x1 = x + b * u
    u1 = np.clip(-b * x1 / (b * b + U), -4, 4)
    return x * x + U * u * u + x1**2 + U * u1**2 + (x1 + b * u1) ** 2, u1


def measured(u: float) -> tuple[float, float, Array]:
    """Innovation's variance, what is left of the variance of b, and the gains after one step."""
    P = np.array([[V + u * u * VARIANCE + Q, u * VARIANCE], [u * VARIANCE, VARIANCE]])
    S = P[0, 0] + R
    return S, VARIANCE - P[1, 0] ** 2 / S, P[:, 0] / S


def test_information_is_priced_as_a_kalman_filter_says(gain: Problem) -> None:
    inputs = [-3.0, -0.5, 0.0, 1.0, 4.0]
    rows = Plain(gain, "information", reward=20).rows("information_bonus", inputs)
    worth = 0.2 * rows[0, 2]
    for u, total, *_ in rows:
        jbar, _ = ce_cost(u, X, MEAN)
        told = 0.5 * np.log(VARIANCE / measured(u)[1])
        assert total == pytest.approx(jbar + worth * (20.0 - told), rel=1e-9)


def test_information_makes_bolder_inputs(gain: Problem) -> None:
    wide = gain.changed(horizon=6, prior_mean=[0.02])
    first = [abs(controller(wide, "information", options=Options(reward=r)).act()[0]) for r in (0, 5, 100)]
    assert first[0] < first[1] < first[2]


def test_a_tree_is_that_of_a_recursion_in_numpy(gain: Problem) -> None:
    inputs = [-2.0, -0.7, 0.4, 3.0]
    plain = Plain(gain, "scenario", branches=5, seed=3)
    rows = plain.rows("scenario", inputs)
    rollout, numbers = plain.workspace.rollout[0], plain.module("random_numbers")
    x, b = rollout.samples[:5].T
    assert (x[-1], b[-1]) == (X, MEAN)
    np.testing.assert_allclose(b[0:4:2] + b[1:4:2], 2 * MEAN)
    for u, total, *_ in rows:
        found = []
        for n in range(5):
            stream = np.zeros(6)
            numbers.open_stream(3, 0, 8 + n, stream)
            after = x + b * u
            y = after[n] + np.sqrt(Q + R) * numbers.normal(stream)
            weights = np.exp(-0.5 * (y - after) ** 2 / (Q + R))
            weights /= weights.sum()
            mean_x, mean_b = weights @ after, weights @ b
            u1 = np.clip(-mean_b * mean_x / (mean_b**2 + U), -4, 4)
            found.append(x[n] ** 2 + U * u * u + after[n] ** 2 + U * u1 * u1 + (after[n] + b[n] * u1) ** 2)
        assert total == pytest.approx(np.mean(found), rel=1e-6)


def test_samples_have_mean_and_covariance_of_the_belief(pair: Problem) -> None:
    plain = Plain(pair, "scenario", branches=3)
    drawn = []
    for seed in range(400):
        plain.workspace.settings[0].seed = seed
        plain.module("scenario").draw_samples(0, plain.belief, plain.workspace)
        drawn.append(plain.workspace.rollout[0].samples[:3].copy())
    away = np.array(drawn) - pair.prior.mean
    np.testing.assert_allclose(away.mean(axis=1), 0.0, atol=1e-12)
    covariance = np.einsum("nmi,nmj->ij", away, away) / (3 * len(drawn))
    np.testing.assert_allclose(covariance, pair.prior.covariance, atol=0.35)


def test_a_tree_learns_more_where_it_measures_more_often(gain: Problem) -> None:
    """With later measurements there is less reason to ask now: values differ, and none is below what knowing costs."""
    longer = gain.changed(horizon=5)
    rows = [Plain(longer, "scenario", branches=4, depth=d).rows("scenario", [0.5])[:, 1] for d in (1, 3)]
    assert np.isfinite(rows).all() and not np.allclose(*rows)


def simulated(u: float, rng: np.random.Generator, runs: int) -> tuple[float, float]:
    """Mean cost, with its error, of u and then certainty equivalence with a Kalman filter."""
    x = X + np.sqrt(V) * rng.standard_normal(runs)
    b = MEAN + np.sqrt(VARIANCE) * rng.standard_normal(runs)
    after = x + b * u + np.sqrt(Q) * rng.standard_normal(runs)
    _, _, gains = measured(u)
    seen = after + np.sqrt(R) * rng.standard_normal(runs) - (X + MEAN * u)
    mean_x, mean_b = X + MEAN * u + gains[0] * seen, MEAN + gains[1] * seen
    u1 = np.clip(-mean_b * mean_x / (mean_b**2 + U), -4, 4)
    last = after + b * u1 + np.sqrt(Q) * rng.standard_normal(runs)
    costs = x * x + U * u * u + after**2 + U * u1 * u1 + last**2
    return float(costs.mean()), float(costs.std() / np.sqrt(runs))


def test_rollouts_cost_what_a_simulation_in_numpy_does(gain: Problem) -> None:
    plain = Plain(gain, "rollout", samples=600, candidates=1)
    plain.rows("rollout", [])
    plain.module("simulation").prepare(plain.belief[0], plain.workspace)
    module, found = plain.module("rollout"), []
    module.make_ready(0, 2, plain.belief, plain.workspace)
    buffer = plain.module("nominal").plan_through(0, 2, np.array([-2.0]), plain.workspace)[2]
    plain.module("trajectory").store(3, 0, 2, buffer, False, plain.workspace)
    found = module.mean_cost(0, 2, 1e6, plain.belief, plain.workspace)
    expected, error = simulated(-2.0, np.random.default_rng(0), 200_000)
    assert found == pytest.approx(expected, abs=5 * error * np.sqrt(200_000 / 600))
    assert plain.workspace.stored_plans[3, 0].u[0] == -2.0


def test_rollout_chooses_the_best_of_its_candidates(gain: Problem) -> None:
    """ce stands still where it does not know the sign of its gain; simulated futures tell that this is worst."""
    blind = gain.changed(horizon=6, prior_mean=[0.0])
    assert controller(blind, "ce").act() == pytest.approx([0.0], abs=1e-9)
    chosen = controller(blind, "rollout", options=Options(samples=300)).act()[0]
    costs = symdual.simulate(blind, ["ce", "rollout"], runs=60, truth="prior")
    assert abs(chosen) > 0.3
    assert costs["rollout"].costs.mean() < 0.8 * costs["ce"].costs.mean()


def first_moves(problem: Problem, seed: int, **options: int) -> Array:
    """What dither adds in three decisions that meet the same measurements."""
    plain, moved = controller(problem, "ce"), controller(problem, "dither", options=Options(seed=int(seed), **options))
    return np.array([moved.act(y) - plain.act(y) for y in (None, [0.1, 0.2], [0.0, 0.1])])


def test_dither_has_the_size_that_it_is_told(gain: Problem) -> None:
    """The plan costs so many percent more, either way, and less and less of it."""
    free = gain.changed(bounds=np.array([[-50.0], [50.0]]))
    least = Plain(free, "ce").rows("information_bonus", [])[0, 2]
    for dither in (5, 40):
        for seed in 2**20 * np.arange(1, 6) ** 2:
            u = controller(free, "dither", options=Options(seed=int(seed), dither=dither)).act()[0]
            assert ce_cost(u, X, MEAN)[0] / least - 1 == pytest.approx(0.01 * dither, rel=0.15)


def test_dither_is_coins_that_fade(pair: Problem) -> None:
    loose = pair.changed(bounds=np.array([[-9.0, -9.0], [9.0, 9.0]]))
    signs = {tuple(np.sign(first_moves(loose, seed)[0])) for seed in 2**20 * np.arange(1, 20) ** 2}
    assert len(signs) == 4
    np.testing.assert_array_equal(first_moves(loose, 5), first_moves(loose, 5))
    steady, fading = (
        np.abs([first_moves(loose, seed, decay=decay) for seed in range(8)]).mean(axis=(0, 2)) for decay in (0, 100)
    )
    np.testing.assert_allclose(fading[0], steady[0])
    assert fading[1] < 0.7 * steady[1]


def test_dither_stays_within_bounds(gain: Problem) -> None:
    held = symdual.simulate(gain, "dither", runs=8, settings=told(dither=1000))["dither"]
    assert np.abs(held.inputs).max() == 4.0


def told(**options: int) -> Any:
    return symdual.runtime.closed_loop.Settings(truth="prior", options=Options(**options))


@pytest.mark.parametrize("name", RIVALS)
def test_episodes_are_what_they_are_alone_and_explained(pair: Problem, name: str) -> None:
    both = symdual.simulate(pair, ["ce", name], runs=3)
    alone = symdual.simulate(pair, name, runs=2)
    np.testing.assert_array_equal(alone[name].states, both[name].states[:2])
    episode = symdual.explain(pair, name, run=1, points=2)[name]
    np.testing.assert_allclose(episode.states, both[name].states[1], rtol=1e-9)


def test_a_moving_horizon_tosses_another_coin_each_time(pair: Problem) -> None:
    one: Controller = controller(pair, "dither", window=2, options=Options(dither=100, seed=1))
    ce = controller(pair, "ce", window=2)
    state, signs = one.init(), set()
    for _ in range(8):
        believed = state
        state, u, _ = one.step(state, [0.1, 0.2])
        signs.add(tuple(np.sign(u - ce.step(believed._replace(plans=None), [0.1, 0.2])[1])))
    assert len(signs) > 2


CHOSEN = GAIN + "scenario = Scenario(gain, horizon=2, input_cost=0.1, start=1.5, choices={u: [-1.0, 0.0, 1.0]})\n"


def test_what_they_cannot_do_is_said(make_quickly: Callable[[str, str], LoadedPackage]) -> None:
    chosen = symdual.problem(make_quickly("gain_of_choices", CHOSEN.replace("gain", "gain_of_choices")))
    for name in RIVALS:
        with pytest.raises(SymdualError, match=f'"{name}" does not know inputs with a finite set of values'):
            controller(chosen, name)
    with pytest.raises(SymdualError, match="branches must be at most 8, not 9"):
        controller(chosen, "ce", options=Options(branches=9))
