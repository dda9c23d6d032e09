"""Episodes to be looked at: they are the episodes of `simulate`, and their parts are what they are called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import symdual
from symdual.export import compilation
from symdual.runtime.explained import Explained
from symdual.runtime.loading import LoadedPackage

MODELS = Path(__file__).resolve().parents[1] / "models"
RUN, SEED = 3, 5


@pytest.fixture(scope="module")
def explained(toy_package: LoadedPackage) -> Explained:
    task = symdual.problem(toy_package).changed(horizon=4)
    return symdual.explain(task, ["ce", "cautious", "dual"], run=RUN, seed=SEED, truth="prior")


@pytest.mark.parametrize("name", ["ce", "cautious", "dual"])
def test_it_is_the_run_of_the_simulation(explained: Explained, name: str) -> None:
    held = symdual.simulate(explained.plan.problem, name, RUN + 1, SEED, truth="prior")[name]
    story = explained[name]
    np.testing.assert_allclose(story.states, held.states[RUN], rtol=1e-9)
    np.testing.assert_allclose([d.u for d in story.decisions], held.inputs[RUN], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose([b.mean for b in story.beliefs], held.means[RUN], rtol=1e-8)
    np.testing.assert_array_equal(story.truths[0], held.truths[RUN])
    assert story.failure is None


def test_it_is_the_run_of_the_simulation_where_noise_depends(shared_models: Callable[[Path], Path]) -> None:
    """On the state and on a signal; the square-root form besides. Through C, which compiles in no time."""
    try:
        compilation.compiler()
    except compilation.NoCompiler as missing:
        pytest.skip(str(missing))
    task = symdual.problem(symdual.load(shared_models(MODELS / "noises.py") / "lit_rooted", backend="c"))
    held = symdual.simulate(task, "ce", RUN + 1, SEED)["ce"]
    story = symdual.explain(task, "ce", run=RUN, seed=SEED, points=3)["ce"]
    np.testing.assert_allclose(story.states, held.states[RUN], rtol=1e-9)
    np.testing.assert_allclose([b.mean for b in story.beliefs], held.means[RUN], rtol=1e-8)


def test_the_chosen_input_has_the_least_cost(explained: Explained) -> None:
    for decision in explained["dual"].decisions:
        (curve,) = decision.curves
        assert np.interp(decision.u[0], curve.values, curve.cost) <= curve.cost.min() + 1e-2 * np.ptp(curve.cost)
        assert sum(decision.parts) <= curve.cost.min() + 1e-9
    for decision in explained["cautious"].decisions:
        (curve,) = decision.curves
        careful = curve.certainty_equivalent + curve.caution
        assert sum(decision.parts) <= careful.min() + 1e-9
    for decision in explained["ce"].decisions:
        assert decision.parts.certainty_equivalent <= decision.curves[0].certainty_equivalent.min() + 1e-9


def test_learning_takes_something_off(explained: Explained) -> None:
    curves = [d.curves[0] for d in explained["dual"].decisions]
    assert all(np.all(curve.probing <= 1e-9) and np.all(curve.caution >= 0.0) for curve in curves)
    assert min(curve.probing.min() for curve in curves) < -0.1


def test_the_outlook_is_that_of_the_filter(explained: Explained) -> None:
    """x' = x + b u + xi: the covariance along the plan by hand, without measurements and with exact ones."""
    decision = explained["dual"].decisions[1]
    for measuring, found in ((False, decision.unmeasured), (True, decision.measured)):
        S, spread = decision.belief.covariance, [decision.belief.covariance.diagonal()]
        for u in decision.plan_inputs[:, 0]:
            A = np.array([[1.0, u], [0.0, 1.0]])
            S = A @ S @ A.T + np.diag([0.1, 0.0])
            if measuring:
                S = S - np.outer(S[:, 0], S[0]) / S[0, 0]
            spread.append(S.diagonal())
        np.testing.assert_allclose(found, np.sqrt(np.maximum(spread, 0.0)), atol=2e-4)
    assert np.all(decision.measured <= decision.unmeasured + 1e-6)


def test_the_plan_begins_with_the_input(explained: Explained) -> None:
    for story in explained.values():
        for decision in story.decisions:
            np.testing.assert_allclose(decision.plan_inputs[0], decision.u, rtol=1e-6, atol=1e-9)
            np.testing.assert_allclose(decision.plan_states[0], decision.belief.mean[:1])
            assert len(decision.plan_inputs) == 4 - decision.k


def test_where_the_plant_leaves_the_numbers_the_story_ends(toy_package: LoadedPackage) -> None:
    task = symdual.problem(toy_package).changed(start={"x": 1e200}, truth={"b": 1e150})
    story = symdual.explain(task, "ce")["ce"]
    assert story.failure is not None and "not finite" in story.failure
    assert len(story.states) < 3 + 1
