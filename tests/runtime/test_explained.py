"""Episodes to be looked at: they are the episodes of `simulate`, and their parts are what they are called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

import symdual
from symdual.runtime.closed_loop import Settings, simulate
from symdual.runtime.explained import Explained
from symdual.runtime.explained import explained as looked_at
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.options import Options
from symdual.runtime.problem import Problem
from symdual.runtime.sweep import sweep

ROOT = Path(__file__).resolve().parents[2]
RUN, SEED = 3, 5
EVEN = np.array([NormalDist().inv_cdf((i + 0.5) / 20000) for i in range(20000)])  # standard normal, evenly
PUSHED = """
import sympy as sp
from symdual import Model, Scenario, unknown

x, u, v = sp.symbols("x u v")
pushed = Model(
    states=[x],
    inputs=[u, v],
    dynamics=[x + unknown("b", 1.0, 0.2) * u + unknown("c", 0.5, 0.1) * v],
    process_noise=0.01,
    measurement_noise=0.01,
    bounds={u: (-1.5, 1.5), v: (-1.5, 1.5)},
)
pushing = Scenario(
    pushed,
    horizon=4,
    state_cost=1.0,
    input_cost=[0.1, 0.05],
    reference=1.2,
    constraints=[x <= 1.0],
    constraint_weight=30.0,
    probability=0.95,
    truth={"b": 1.3, "c": 0.3},
)
"""


@pytest.fixture(scope="module")
def explained(toy_package: LoadedPackage) -> Explained:
    problem = symdual.problem(toy_package).changed(horizon=4)
    return symdual.explain(problem, ["ce", "cautious", "dual"], run=RUN, seed=SEED, truth="prior")


@pytest.mark.parametrize("name", ["ce", "cautious", "dual"])
def test_it_is_the_run_of_the_simulation(explained: Explained, name: str) -> None:
    held = symdual.simulate(explained.plan.problem, name, RUN + 1, SEED, truth="prior")[name]
    episode = explained[name]
    np.testing.assert_allclose(episode.states, held.states[RUN], rtol=1e-9)
    np.testing.assert_allclose([d.u for d in episode.decisions], held.inputs[RUN], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose([b.mean for b in episode.beliefs], held.means[RUN], rtol=1e-8)
    np.testing.assert_array_equal(episode.truths[0], held.truths[RUN])
    assert episode.failure is None


@pytest.mark.parametrize(
    ("file", "model", "controllers"),
    [
        ("examples/light_dark.py", "light_dark", ("ce",)),  # noise that depends
        ("tests/models/scenarios.py", "squeezed", ("planned", "oracle")),  # parameters that jump, rollouts
    ],
)
def test_it_is_the_run_of_the_simulation_whatever_happens_there(
    in_c: Callable[[Path | str, str], Problem], file: str, model: str, controllers: tuple[str, ...]
) -> None:
    problem = in_c(ROOT / file, model)
    settings = Settings(options=Options(look_ahead=False, samples=8))
    looked = looked_at(sweep(problem, controllers, RUN + 1, SEED, settings), RUN, points=2)
    episodes = simulate(problem, list(controllers), RUN + 1, SEED, settings)
    for name, held in episodes.items():
        np.testing.assert_allclose(looked[name].states, held.states[RUN], rtol=1e-9, err_msg=name)
        np.testing.assert_allclose([d.u for d in looked[name].decisions], held.inputs[RUN], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose([b.mean for b in looked[name].beliefs], held.means[RUN], rtol=1e-8)


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


def test_the_curves_are_of_the_order_of_the_decision(in_c: Callable[[Path | str, str], Problem]) -> None:
    plan = sweep(in_c(ROOT / "tests/models/scenarios.py", "squeezed"), ["dual"], 1, SEED, Settings(order=2))
    for decision in looked_at(plan, 0, points=401)["dual"].decisions:
        (curve,) = decision.curves
        assert np.interp(decision.u[0], curve.values, curve.cost) == pytest.approx(sum(decision.parts), rel=1e-3)


def test_beside_a_wall_the_chosen_input_has_the_least_cost_over_each_input(
    in_c: Callable[[Path | str, str], Problem],
) -> None:
    episodes = looked_at(sweep(in_c(PUSHED, "pushed"), ["ce", "cautious", "dual"], 1, SEED), 0, points=201)
    for name, episode in episodes.items():
        for decision in episode.decisions:
            assert [curve.input for curve in decision.curves] == ["u", "v"]
            for value, curve in zip(decision.u, decision.curves, strict=True):
                certain, still = curve.certainty_equivalent, curve.certainty_equivalent + curve.caution
                counted = {"ce": certain, "cautious": still, "dual": curve.cost}[name]
                assert sum(decision.parts) <= counted.min() * (1 + 1e-4)
                assert np.interp(value, curve.values, counted) == pytest.approx(sum(decision.parts), rel=2e-2)
                if name == "dual":
                    found = np.interp(value, curve.values, curve.probing)
                    assert found == pytest.approx(decision.parts.probing, rel=0.1, abs=1e-3)
    assert episodes["dual"].decisions[0].parts.probing < -0.005


def test_beside_a_wall_the_parts_are_those_by_hand(in_c: Callable[[Path | str, str], Problem]) -> None:
    """One step from a known x: sigma^2 = var x', d = q sigma, penalty w max(0, g + d)^2, Jd = (W + w Phi) sigma^2.

    `planned` itself counts w (E max(0, x' - 1)^2 - max(0, g)^2) in the place of w Phi sigma^2.
    """
    problem = in_c(PUSHED, "pushed").changed(horizon=1)
    episodes = looked_at(sweep(problem, ["ce", "dual", "planned"], 1, SEED), 0)
    for name, episode in episodes.items():
        quantile, (decision,) = 0.0 if name == "ce" else NormalDist().inv_cdf(0.95), episode.decisions
        for a, curve in enumerate(decision.curves):
            u = np.repeat(decision.u[None], len(curve.values), axis=0)
            u[:, a] = curve.values
            x, sigma = u @ [1.0, 0.5], np.sqrt(u**2 @ [0.2, 0.1] + 0.01)
            excess = np.maximum(0.0, x - 1.0 + quantile * sigma)
            share = np.array([NormalDist().cdf(g) for g in (x - 1.0) / sigma])
            still = (1.0 + 30.0 * share) * sigma**2
            held = 1.2**2 + u**2 @ [0.1, 0.05] + (x - 1.2) ** 2 + 30.0 * excess**2
            np.testing.assert_allclose(curve.certainty_equivalent, held, rtol=1e-9)
            np.testing.assert_allclose(curve.caution, still, rtol=1e-7)
            if name == "dual":
                assert decision.parts.caution == pytest.approx(np.interp(decision.u[a], curve.values, still), rel=1e-2)
            if name == "planned":
                g, deviation = float(decision.u @ [1.0, 0.5]) - 1.0, float(decision.u**2 @ [0.2, 0.1] + 0.01) ** 0.5
                drawn = np.maximum(0.0, g + deviation * EVEN) ** 2
                by_hand = deviation**2 + 30.0 * (drawn.mean() - max(0.0, g) ** 2)
                assert decision.parts.caution == pytest.approx(by_hand, rel=1e-3)
            np.testing.assert_allclose(curve.probing, 0.0, atol=1e-9)  # it is over before anything learned can help


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
    for episode in explained.values():
        for decision in episode.decisions:
            np.testing.assert_allclose(decision.plan_inputs[0], decision.u, rtol=1e-6, atol=1e-9)
            np.testing.assert_allclose(decision.plan_states[0], decision.belief.mean[:1])
            assert len(decision.plan_inputs) == 4 - decision.k


def test_where_the_plant_is_not_finite_the_info_ends(toy_package: LoadedPackage) -> None:
    problem = symdual.problem(toy_package).changed(start={"x": 1e200}, truth={"b": 1e150})
    episode = symdual.explain(problem, "ce")["ce"]
    assert episode.failure is not None and "not finite" in episode.failure
    assert len(episode.states) < 3 + 1
