"""Rollouts: the generator of random numbers, and a future against dense numpy with the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from symdual.checks import dense

CERTAIN, BEST, SECOND = 0, 1, 2


def test_the_generator_gives_the_published_numbers(case: Callable[..., Any]) -> None:
    """The first numbers of MRG32k3a from the seed 12345, and the moments of many normal ones."""
    random_numbers = case("mixed").package.random_numbers
    stream = np.full(6, 12345.0)
    published = [0.1270111220, 0.3185275654, 0.3091860156]
    assert [random_numbers.uniform(stream) for _ in range(3)] == pytest.approx(published, abs=1e-10)
    drawn = np.array([random_numbers.normal(stream) for _ in range(8000)])
    assert abs(drawn.mean()) < 4 / np.sqrt(8000)
    assert abs((drawn**2).mean() - 1) < 4 * np.sqrt(2 / 8000)
    assert abs((drawn**4).mean() - 3) < 4 * np.sqrt(96 / 8000)
    assert abs((drawn[1:] * drawn[:-1]).mean()) < 4 / np.sqrt(8000)


def test_streams_of_neighbours_have_nothing_in_common(case: Callable[..., Any]) -> None:
    random_numbers = case("mixed").package.random_numbers
    rows = []
    for seed, k, number in [(0, 0, n) for n in range(60)] + [(0, k, 0) for k in range(1, 60)] + [(5, 0, 0), (6, 0, 0)]:
        stream = np.zeros(6)
        random_numbers.open_stream(float(seed), k, number, stream)
        rows.append([random_numbers.uniform(stream) for _ in range(4)])
    rows = np.array(rows) - 0.5
    assert np.unique(rows).size == rows.size
    product = rows.T @ rows / len(rows)  # of the first numbers of all streams
    assert np.abs(product - np.eye(4) / 12).max() < 4 / 12 / np.sqrt(len(rows))
    assert abs((rows[1:, 0] * rows[:-1, 0]).mean()) < 4 / 12 / np.sqrt(len(rows))


def test_streams_are_no_lattice(case: Callable[..., Any]) -> None:
    """Neither rollouts nor times nor seeds that follow each other are at equal distances; those are uniform."""
    random_numbers = case("mixed").package.random_numbers
    for step in np.eye(3):
        firsts = []
        for n in range(400):
            stream = np.zeros(6)
            random_numbers.open_stream(*(3.0 + n * step), stream)
            firsts.append([random_numbers.uniform(stream) for _ in range(3)])
        distances = np.diff(firsts, axis=0) % 1.0
        for column in distances.T:
            assert stats.kstest(column, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("name", ["mixed", "drifting", "robust", "robust_drift", "lit"])
def test_a_rollout_is_the_one_of_dense_matrices(case: Callable[..., Any], name: str) -> None:
    """Truth, noise, filter and cost of a plan that is followed by its feedback to the end."""
    c = case(name, horizon=4)
    package = c.package
    workspace, held = c.make_workspace(seed=3.0), c.held
    nx, nu, nz = c.reference.nx, c.reference.nu, c.reference.nz
    kept, random = workspace.stored_plans[BEST], np.random.default_rng(1)
    kept["u"][:4], kept["z"][:4] = random.normal(size=(4, nu)), random.normal(size=(4, nz))
    kept["gain_x"][:4], kept["gain_t"][:4, :, : nz - nx] = (0.1 * random.normal(size=(4, nu, n)) for n in (nx, nz - nx))
    kept["steps"][0] = 4
    decision_log = workspace.decision_log[0]
    decision_log["entry_place"][0], decision_log["entry_follow"][0] = BEST, 4
    package.simulation.prepare(held[0], workspace)
    for number in (0, 7):
        found = package.rollouts.simulate_rollout(number, 0, 0, 4, 1e9, held, workspace)
        assert found == pytest.approx(_future(c, package.random_numbers, kept, number), rel=1e-9)
    assert package.rollouts.simulate_rollout(0, 0, 0, 4, 1e-3, held, workspace) == 1e-3


def _future(c: Any, random_numbers: Any, kept: Any, number: int) -> float:
    """The same with full matrices; random numbers in the order parameters, states, then noise step by step."""
    stream, nx = np.zeros(6), c.reference.nx
    random_numbers.open_stream(3.0, 0, number, stream)

    def shaken(root: np.ndarray) -> np.ndarray:
        return root @ np.array([random_numbers.normal(stream) for _ in range(len(root))])

    S, noise, belief = c.belief.covariance, c.noise, c.belief
    order = [*range(nx, c.reference.nz), *range(nx)]  # parameters are drawn first
    z = np.zeros(c.reference.nz)
    z[order] = shaken(np.linalg.cholesky(S[np.ix_(order, order)]))
    z += belief.mean
    total = 0.0
    for k in range(4):
        L = np.hstack([kept["gain_x"][k], kept["gain_t"][k, :, : c.reference.ntheta]])
        u = kept["u"][k] + L @ (belief.mean - kept["z"][k])
        total += c.cost.at(k, z, u).value
        x = c.reference.dynamics(k, z, u) + shaken(np.linalg.cholesky(noise.of_step(k, z, u)))
        theta = noise.transition @ z[nx:]
        if noise.diffusion.any():
            theta = theta + shaken(np.linalg.cholesky(noise.diffusion))
        z = np.concatenate([x, theta])
        y = c.reference.observation(k + 1, z) + shaken(np.linalg.cholesky(noise.of_measurement(k + 1, z)))
        belief = dense.update(c.reference, noise, k + 1, dense.predict(c.reference, noise, k, belief, u), y)
    return float(total + c.cost.at(4, z, None).value)


def test_confidence_is_that_of_students_t(case: Callable[..., Any]) -> None:
    confidence_of = case("mixed").package.selection.confidence_of
    for met in (16, 64):
        for t in (-4.0, -1.5, 0.0, 0.3, 2.0, 5.0):
            assert confidence_of(-t, 1.0, float(met)) == pytest.approx(stats.t.cdf(t, met - 1), abs=2e-3)
    assert [confidence_of(gap, 0.0, 16.0) for gap in (-1.0, 0.0, 1.0)] == [1.0, 0.5, 0.0]


def _race(c: Any, inputs: dict[int, float], samples: float, confidence: float) -> tuple[int, Any]:
    """The place that rollouts choose among stored plans that hold their inputs, and the decision log."""
    records = c.package.records
    workspace = c.make_workspace(seed=1.0, samples=samples, confidence=confidence)._replace(
        gradients=np.zeros(3, records.GRADIENT), covariances=np.zeros(3, records.GAUSSIAN)
    )
    c.package.ce_solver.solve_ce(0, 2, c.held, workspace, np.zeros(1))
    for place, away in inputs.items():
        workspace.stored_plans[place] = workspace.stored_plans[CERTAIN]
        workspace.stored_plans["u"][place, 0] += away
    log = workspace.decision_log[0]
    log["reach"][:] = 1.0
    place = c.package.selection.select(0, 2, False, SECOND in inputs, 1e3, c.held, workspace)
    return place, log


@pytest.mark.parametrize("confidence", [5.0, 95.0])
def test_what_rollouts_find_worse_is_not_applied_and_costs_few_of_them(
    case: Callable[..., Any], confidence: float
) -> None:
    """A plan that begins far off the certainty-equivalent one is rejected in the first batch, whatever is asked."""
    place, log = _race(case("swing", horizon=2), {BEST: 30.0}, 64.0, confidence)
    assert place in (CERTAIN, 5)  # or the cautious plan
    won = int(log["entry_won"])
    assert log["entry_place"][won] == place
    tried = [n for n in range(int(log["entries"])) if log["entry_place"][n] == BEST]
    assert tried and all(not log["entry_in"][n] for n in tried)
    assert min(log["entry_sure"][n] for n in tried if np.isfinite(log["entry_sure"][n])) < 0.01
    assert log["met"] == 16.0  # the first heat


def test_a_plan_that_rollouts_confirm_is_kept(case: Callable[..., Any]) -> None:
    """Of two challengers the one near the optimum: the certainty-equivalent plan is made a bad one here."""
    c = case("swing", horizon=2)
    place, log = _race(c, {BEST: 0.0}, 64.0, 5.0)
    assert place == BEST  # its first input is that of ce: there is nothing to decide
    assert log["entries"] == 0.0
    place, log = _race(c, {SECOND: 0.3, BEST: 25.0, CERTAIN: 30.0}, 64.0, 95.0)
    assert place == SECOND
    assert log["entry_sure"][int(log["entry_won"])] > 0.95


def test_what_nobody_can_tell_apart_is_applied_unless_confirmation_is_asked_for(case: Callable[..., Any]) -> None:
    c = case("swing", horizon=2)
    unclear = 0
    for away in (-0.12, 0.12, 0.3, 0.5, 0.8):
        place, log = _race(c, {BEST: away}, 16.0, 1.0)
        sure = np.nanmax([log["entry_sure"][n] for n in range(int(log["entries"])) if log["entry_place"][n] == BEST])
        if 0.05 < sure < 0.95:
            unclear += 1
            assert place == BEST
            assert _race(c, {BEST: away}, 16.0, 99.0)[0] != BEST
    assert unclear > 0
