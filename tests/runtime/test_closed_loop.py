"""Episodes: the same as the loop in Python, bit-identical in parallel, and honest about failures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numba
import numpy as np
import pytest
import sympy as sp

import symdual
from symdual import Model, unknown
from symdual.backends.c import compilers
from symdual.common.errors import SymdualError, SymdualWarning
from symdual.runtime.belief import Belief
from symdual.runtime.closed_loop import (
    OUTCOMES,
    Episodes,
    NoiseDraws,
    Settings,
    draw,
    plant_problem,
    root,
    run,
    simulate,
)
from symdual.runtime.controller import controller
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Problem
from symdual.runtime.result_fields import fields

if TYPE_CHECKING:
    from tests.conftest import Interpreted


@pytest.fixture
def threads() -> Iterator[None]:
    """Put the number of threads back."""
    before = numba.get_num_threads()
    yield
    numba.set_num_threads(before)


def noise_draws(problem: Problem, runs: int, settings: Settings = Settings(), seed: int = 0) -> NoiseDraws:
    return draw(problem, settings, np.random.SeedSequence(seed).spawn(runs))


def same_bytes(left: Episodes, right: Episodes) -> bool:
    arrays = [(a, b) for a, b in zip(left, right, strict=True) if isinstance(a, np.ndarray)]
    return len(arrays) == 12 and all(a.tobytes() == b.tobytes() for a, b in arrays)


# ------------------------------------------------------------------------------------------------ the loop itself


@pytest.mark.parametrize("name", ["ce", "cautious", "beb", "dual", "oracle", "exact"])
def test_an_episode_is_the_loop_written_in_python(toy: Problem, name: str) -> None:
    given = noise_draws(toy, 5)
    episodes = run(toy, name, given, Settings())
    for n in range(5):
        chosen = controller(toy, name, truth=given.truths[n] if name == "oracle" else None)
        x, b = given.starts[n, 0], given.truths[n, 0]
        state, y, cost = chosen.init(), None, 0.0
        for k in range(toy.horizon):
            before = state
            state, u, info = chosen.step(state, y)
            np.testing.assert_allclose(episodes.states[n, k], [x], rtol=1e-12)
            np.testing.assert_allclose(episodes.inputs[n, k], u, rtol=1e-9)
            np.testing.assert_allclose(episodes.means[n, k], info.after.mean, rtol=1e-9)
            np.testing.assert_allclose(episodes.variances[n, k], np.diag(info.after.covariance), rtol=1e-9, atol=1e-15)
            np.testing.assert_allclose(episodes.steps[n, k, 6], info.parts.certainty_equivalent, rtol=1e-9)
            if before.u is not None:
                np.testing.assert_allclose(episodes.steps[n, k, 3:6], [info.nis, 1.0, info.log_likelihood], rtol=1e-9)
            np.testing.assert_allclose(episodes.steps[n, k, 0], x * x + u[0] ** 2, rtol=1e-9)
            cost += x * x + u[0] ** 2
            x = x + b * u[0] + given.process[n, k, 0]
            y = np.array([x + given.measurement[n, k, 0]])
        final, _ = chosen.update(state, y)
        np.testing.assert_allclose(episodes.means[n, -1], final.belief.mean, rtol=1e-9)
        np.testing.assert_allclose(episodes.covariances[n], final.belief.covariance, rtol=1e-9, atol=1e-15)
        np.testing.assert_allclose(episodes.costs[n], cost + x * x, rtol=1e-9)


def test_two_inputs_and_noisy_measurements_too(pair_package: LoadedPackage) -> None:
    problem = symdual.problem(pair_package)
    given = noise_draws(problem, 2)
    episodes = run(problem, "dual", given, Settings())
    for n in range(2):
        chosen = controller(problem, "dual")
        x, (b, c, d) = given.starts[n], given.truths[n]
        state, y = chosen.init(), None
        for k in range(problem.horizon):
            state, u, _ = chosen.step(state, y)
            np.testing.assert_allclose(episodes.inputs[n, k], u, rtol=1e-7, atol=1e-9)
            x = np.array([0.9 * x[0] + 0.2 * x[1] + b * u[0] + c * u[1], 0.8 * x[1] + d * u[1]]) + given.process[n, k]
            y = x + given.measurement[n, k]
        np.testing.assert_allclose(episodes.states[n, -1], x, rtol=1e-7)


def test_a_moving_horizon_in_an_episode_is_that_of_the_controller(toy: Problem) -> None:
    settings = Settings(window=3, length=7)
    given = noise_draws(toy, 1, settings)
    episodes = run(toy, "dual", given, settings)
    chosen = controller(toy, "dual", window=3)
    y = None
    for k in range(7):
        np.testing.assert_allclose(episodes.inputs[0, k], chosen.act(y), rtol=1e-9)
        y = episodes.states[0, k + 1]
    with pytest.raises(SymdualError, match="an episode of another length than the scenario's needs a moving horizon"):
        run(toy, "ce", given, Settings(length=7))


# ------------------------------------------------------------------------------------------------ random draws


def test_draws_belongs_to_its_seed_alone(toy: Problem) -> None:
    uncertain = replace(toy, prior=Belief(toy.prior.mean, np.diag([0.5, 10.0])))
    few, many = noise_draws(uncertain, 3), noise_draws(uncertain, 8)
    for a, b in zip(few, many, strict=True):
        assert np.array_equal(a, b[:3])
    assert len(np.unique(many.starts)) == 8


def test_draws_has_the_covariances_of_the_plant(pair_package: LoadedPackage) -> None:
    noisy = replace(symdual.problem(pair_package), truth=None)
    given = noise_draws(noisy, 4000)
    np.testing.assert_allclose(np.cov(given.truths.T), np.diag([2.0, 1.0, 2.0]), atol=0.15)
    np.testing.assert_allclose(given.truths.mean(axis=0), [0.5, 0.3, -0.5], atol=0.08)
    np.testing.assert_allclose(np.cov(given.process[:, 1].T), 0.1 * np.eye(2), atol=0.01)
    np.testing.assert_allclose(np.cov(given.measurement[:, 2].T), 0.01 * np.eye(2), atol=0.001)


def test_moving_a_declaration_changes_no_draws(make_quickly: Callable[[str, str], LoadedPackage]) -> None:
    text = """
import sympy as sp
from symdual import Model, Scenario, unknown
x, u = sp.symbols("x u")
declared = {name: unknown(name, mean, variance) for name, mean, variance in DECLARATIONS}
model = Model([x], [u], [declared["c"] * x + declared["a"] * u + declared["b"]], drift=0.1)
scenario = Scenario(model, horizon=3)
"""
    declarations = [("c", 3.0, 0.3), ("a", 1.0, 0.1), ("b", 2.0, 0.2)]
    drawn = []
    for name, own in (("one", declarations), ("other", declarations[::-1])):
        package = make_quickly(name, text.replace("DECLARATIONS", str(own)))
        assert list(package.UNKNOWNS) == [entry[0] for entry in own]
        given = noise_draws(symdual.problem(package), 5, Settings("drift"))
        columns = [package.UNKNOWNS[entry][0] for entry in "abc"]
        drawn.append([given.truths[:, columns], given.wander[:, :, columns]])
    for one, other in zip(*drawn, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)


def test_all_controllers_meet_the_same_draws(toy: Problem) -> None:
    results = simulate(replace(toy, truth=None), ["ce", "dual"], runs=4, seed=3, settings=Settings(truth="prior"))
    assert np.array_equal(results["ce"].truths, results["dual"].truths)
    assert len(np.unique(results["ce"].truths)) == 4
    ce, dual = results["ce"], results["dual"]
    noise = [e.states[:, 1:, 0] - e.states[:, :-1, 0] - e.truths * e.inputs[:, :, 0] for e in (ce, dual)]
    np.testing.assert_allclose(noise[0], noise[1], atol=1e-12)


def test_roots_of_covariances() -> None:
    matrix = np.array([[2.0, 1.0, 0.0], [1.0, 0.5, 0.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(root(matrix) @ root(matrix).T, matrix, atol=1e-14)


# ------------------------------------------------------------------------------------------------ parameters that move


def without_noise(given: NoiseDraws) -> NoiseDraws:
    return given._replace(process=np.zeros_like(given.process), measurement=np.zeros_like(given.measurement))


def test_the_true_parameters_follow_the_transition(fading_package: LoadedPackage) -> None:
    """x' = a + u, a' = a / 2 from a = 1 without noise: the plant adds 1, 1/2, 1/4, ... to its inputs."""
    problem = symdual.problem(fading_package)
    episodes = run(problem, "ce", without_noise(noise_draws(problem, 1)), Settings())
    added = episodes.states[0, 1:, 0] - episodes.inputs[0, :, 0]
    np.testing.assert_allclose(added, [1.0, 0.5, 0.25, 0.125, 0.0625], rtol=1e-14)


@pytest.mark.parametrize("truth", ["scenario", "prior", "drift"])
def test_in_every_truth_the_plant_moves_as_its_model_says(fading_package: LoadedPackage, truth: str) -> None:
    settings = Settings(truth=truth)
    problem = plant_problem(symdual.problem(fading_package), settings)
    given = noise_draws(problem, 3000, settings)
    assert np.array_equal(given.last_truths, given.wander[:, -1])
    theta = np.concatenate([given.truths[:, None], given.wander], axis=1)
    drift = theta[:, 1:] - 0.5 * theta[:, :-1]
    if truth == "drift":
        assert drift.var() == pytest.approx(0.04, rel=0.05)
        assert abs(np.corrcoef(drift[:, 1, 0], drift[:, 2, 0])[0, 1]) < 0.06
    else:
        np.testing.assert_allclose(drift, 0.0, atol=1e-15)
    few = NoiseDraws(*(part[:7] for part in given))
    episodes = run(problem, "dual", few, settings)
    moved = theta[:7, :-1] + episodes.inputs + few.process
    np.testing.assert_allclose(episodes.states[:, 1:], moved, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("truth", ["scenario", "prior", "drift"])
def test_the_oracle_knows_parameters_that_move(fading_package: LoadedPackage, truth: str) -> None:
    settings = Settings(truth=truth)
    problem = plant_problem(symdual.problem(fading_package), settings)
    given = noise_draws(problem, 300, settings)
    oracle, ce = (run(problem, name, given, settings) for name in ("oracle", "ce"))
    theta = np.concatenate([given.truths[:, None], given.wander], axis=1)
    np.testing.assert_allclose(oracle.means[:, :, 1:], theta, rtol=1e-14)
    assert not oracle.variances[:, :, 1].any()
    better = ce.costs - oracle.costs
    assert better.mean() > 4 * better.std() / np.sqrt(len(better)) > 0.0


def test_the_oracle_in_python_believes_that_parameters_move(fading_package: LoadedPackage) -> None:
    problem = symdual.problem(fading_package)
    given = noise_draws(problem, 1)
    episodes = run(problem, "oracle", given, Settings())
    oracle = controller(problem, "oracle")
    y = None
    for k in range(problem.horizon):
        np.testing.assert_allclose(oracle.act(y), episodes.inputs[0, k], rtol=1e-9)
        y = episodes.states[0, k + 1] + given.measurement[0, k]
    belief = oracle.observe(y)
    assert belief.mean[1] == pytest.approx(0.5**5, rel=1e-14)
    assert not belief.covariance[1].any()


def test_an_honest_filter_of_parameters_that_move_is_consistent(fading_package: LoadedPackage) -> None:
    """The model is linear, so that the filter is exact: its squared errors are what it says they are."""
    settings = Settings(truth="drift")
    problem = plant_problem(symdual.problem(fading_package), settings)
    given = noise_draws(problem, 2000, settings)
    found = fields(problem, "ce", given, run(problem, "ce", given, settings))
    assert found["nees_parameters"].mean() == pytest.approx(1.0, abs=0.12)  # 3.8 standard errors
    assert np.nanmean(found["nis"]) == pytest.approx(1.0, abs=0.06)


def test_a_plant_of_its_own_has_its_own_transition_and_drift(toy: Problem, fading_package: LoadedPackage) -> None:
    """The model is the toy, whose gain neither moves nor drifts; a model that is its own plant drifts when asked to."""
    assert noise_draws(toy, 2).wander.shape == (2, 0, 1)
    own = symdual.problem(fading_package)
    np.testing.assert_allclose(
        noise_draws(own, 2).wander[:, :, 0], [[0.5, 0.25, 0.125, 0.0625, 0.03125]] * 2, rtol=1e-15
    )
    mixed = replace(toy.extended(3), plant=fading_package, truth=np.array([1.0]))
    given = noise_draws(mixed, 2000)
    theta = np.concatenate([given.truths[:, None], given.wander], axis=1)
    assert (theta[:, 1:] - 0.5 * theta[:, :-1]).var() == pytest.approx(0.04, rel=0.06)
    oracle = run(mixed, "oracle", NoiseDraws(*(part[:3] for part in given)), Settings())
    np.testing.assert_allclose(oracle.means[:, :, 1:], theta[:3], rtol=1e-14)


def test_a_dense_transition_and_the_same_bits_in_any_company(
    toy: Problem, interpreted: Callable[[Model], Interpreted]
) -> None:
    x, u = sp.symbols("x u")
    D = np.array([[0.9, 0.3, 0.0], [-0.2, 0.7, 0.1], [0.05, 0.0, 1.0]])
    a, b, c = unknown("a", 1.0), unknown("b", 2.0), unknown("c", 3.0)
    model = interpreted(Model([x], [u], [a * x + b * u + c], transition=D, name="dense"))
    plant = LoadedPackage("dense", Path(), model.module, model.numbers)
    problem = replace(toy.extended(4), plant=plant, truth=np.array([1.0, -2.0, 0.5]))
    given = noise_draws(problem, 40)
    powers = [np.linalg.matrix_power(D, k) @ problem.truth for k in range(1, 7)]
    np.testing.assert_allclose(given.wander, np.repeat(np.array(powers)[None], 40, axis=0), rtol=1e-13)
    assert np.array_equal(noise_draws(problem, 1).wander, given.wander[:1])


def test_parameters_that_grow_beyond_all_numbers_fail_with_their_plant(fading_package: LoadedPackage) -> None:
    growing = replace(fading_package, numbers={**fading_package.numbers, "transition": np.array([1e100])})
    problem = symdual.problem(growing)
    given = noise_draws(problem, 2)
    assert np.isinf(given.last_truths).all()
    with pytest.warns(SymdualWarning, match="ce: run 0: the certainty-equivalent plan at step 1 is not finite"):
        assert np.all(run(problem, "ce", given, Settings()).outcomes != 0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (Settings(truth="prio"), 'there is no truth "prio"; known: scenario, prior, drift'),
        (Settings(), 'the scenario "toy" gives no true parameters; use the truth "prior"'),
    ],
)
def test_bad_settings_are_named(toy: Problem, settings: Settings, message: str) -> None:
    with pytest.raises(SymdualError, match=message):
        simulate(replace(toy, truth=None), ["ce"], 1, settings=settings)


def test_zero_runs_and_unknown_controllers_are_refused(toy: Problem) -> None:
    with pytest.raises(SymdualError, match="the number of runs must be at least 1, not 0"):
        simulate(toy, ["ce"], 0)
    with pytest.raises(SymdualError, match='there is no controller "dul"; did you mean "dual"'):
        simulate(toy, ["dul"], 1)


# ------------------------------------------------------------------------------------------------ in parallel


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("name", ["dual", "oracle"])
def test_any_number_of_threads_gives_the_same_bytes(toy: Problem, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also more workers than threads, which then come one after the other, and more than there are episodes."""
    longer = replace(toy.extended(4), truth=None)
    settings = Settings(truth="prior")
    given = noise_draws(longer, 23, settings)
    numba.set_num_threads(1)
    alone = run(longer, name, given, settings)
    for count, workers in ((1, 7), (2, 2), (2, 16), (2, 40)):
        numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))
        monkeypatch.setattr("numba.get_num_threads", lambda workers=workers: workers)
        assert same_bytes(alone, run(longer, name, given, settings)), (count, workers)
    # and each episode by itself, with a fresh workspace
    for n in (0, 9, 22):
        single = run(longer, name, NoiseDraws(*(part[n : n + 1] for part in given)), settings)
        assert single.states[0].tobytes() == alone.states[n].tobytes()


FORKED = """
    import os, sys
    import symdual
    from symdual.runtime.closed_loop import simulate
    toy = symdual.problem(symdual.load(os.environ["TOY"], backend="numba"))

    def forked():
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            print(simulate(toy, ["ce"], 3)["ce"].costs.tobytes().hex())
            sys.stdout.flush()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    forked()  # before any threads
    print(simulate(toy, ["ce"], 3)["ce"].costs.tobytes().hex())
    forked()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("layer", ["omp", "workqueue"])
def test_a_forked_process_runs_episodes(
    numba_toy: Problem, tmp_path: Path, layer: str, fresh_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """Whatever numba uses for loops in parallel: episodes have threads of their own, which do not outlive a call."""
    simulate(numba_toy, ["ce"], 1)  # compiles
    done = fresh_python(
        FORKED, tmp_path, NUMBA_THREADING_LAYER=layer, TOY=str(numba_toy.package.folder), PYTHONWARNINGS="ignore"
    )
    before, own, after = done.stdout.splitlines()
    assert before == own == after


# ------------------------------------------------------------------------------------------------ failures


def test_a_plant_that_overflows_fails_alone(toy: Problem, quick_offset_package: LoadedPackage) -> None:
    problem = replace(toy.extended(3), plant=quick_offset_package, truth=np.array([0.3]))
    given = noise_draws(problem, 3)
    given.truths[1] = 1.7e308  # c: the state is infinite after two steps at the latest
    episodes = run(problem, "ce", given, Settings())
    assert [OUTCOMES[i] for i in episodes.outcomes[[0, 2]]] == ["finished", "finished"]
    assert episodes.outcomes[1] != 0
    assert np.isnan(episodes.costs).tolist() == [False, True, False]
    assert np.isfinite(episodes.states[[0, 2]]).all() and np.isnan(episodes.states[1, -1, 0])
    alone = run(problem, "ce", NoiseDraws(*(part[[0, 2]] for part in given)), Settings())
    assert np.array_equal(alone.states, episodes.states[[0, 2]])


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_a_state_that_is_not_finite_is_the_plants_failure(toy: Problem, bad: float) -> None:
    given = noise_draws(toy, 2)
    given.process[0, 1] = bad
    episodes = run(toy, "dual", given, Settings())
    assert [OUTCOMES[i] for i in episodes.outcomes] == ["the plant's state or measurement is not finite", "finished"]
    assert np.isfinite(episodes.inputs[0]).all() and np.isnan(episodes.states[0, 2, 0])
    assert np.isnan(episodes.covariances[0]).all()


def test_nan_in_a_measurement_means_missing_and_infinity_a_failure(toy: Problem) -> None:
    given = noise_draws(toy, 2)
    given.measurement[0, 0] = np.nan
    given.measurement[1, 0] = np.inf
    episodes = run(toy, "ce", given, Settings())
    assert [OUTCOMES[i] for i in episodes.outcomes] == ["finished", "the plant's state or measurement is not finite"]
    assert episodes.steps[0, 1, 4] == 0.0  # nothing measured
    assert episodes.variances[0, 1, 1] == 10.0


@pytest.mark.parametrize(
    ("push", "reason"),
    [
        (1e200, "the plan is not finite"),  # the state is finite, but the square that it costs is not
        (1.7e308, "the belief is not finite"),  # so is this one, but not what it says about the gain
    ],
)
@pytest.mark.parametrize("name", ["ce", "dual"])
def test_a_plan_and_a_belief_that_are_not_finite_are_told_apart(
    toy: Problem, name: str, push: float, reason: str
) -> None:
    given = noise_draws(toy, 2)
    given.process[0, 0] = push
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", SymdualWarning)
        episodes = run(toy, name, given, Settings())
    assert all(str(one.message).startswith(f"{name}: run 0: ") for one in told)
    assert bool(told) or "belief" in reason
    assert [OUTCOMES[i] for i in episodes.outcomes] == [reason, "finished"]
    assert np.isfinite(episodes.costs[1])
    # the loop in Python gives the same reason
    chosen = controller(toy, name)
    u = chosen.act()
    y = given.starts[0] + given.truths[0] * u + push + given.measurement[0, 0]
    with pytest.raises(SymdualError, match=r"the certainty-equivalent plan at step 1|the belief is not") as said:
        chosen.act(y)
    assert ("plan" in str(said.value)) == ("plan" in reason)


# ------------------------------------------------------------------------------------------------ another plant


def test_a_plant_of_another_backend_is_refused(toy: Problem, fading_package: LoadedPackage) -> None:
    if fading_package.c is None:
        pytest.skip("no C compiler")
    mixed = replace(toy.by_numba(), plant=fading_package, truth=np.array([1.0]))
    sentence = "the model toy is compiled by numba and its plant fading by C: load both with the same backend"
    with pytest.raises(SymdualError, match=sentence):
        run(mixed, "ce", noise_draws(mixed, 1), Settings())


def test_another_plant_runs_without_a_new_compilation(numba_toy: Problem, offset_package: LoadedPackage) -> None:
    run(numba_toy, "ce", noise_draws(numba_toy, 1), Settings())
    episodes = numba_toy.package.episode.episodes
    compiled = len(episodes.overloads)
    other = replace(numba_toy, plant=offset_package, truth=np.array([0.3]))
    given = noise_draws(other, 2)
    result = run(other, "ce", given, Settings())
    assert len(episodes.overloads) == compiled
    moved = 0.9 * result.states[:, :-1] + result.inputs + 0.3 + given.process
    np.testing.assert_allclose(result.states[:, 1:], moved, rtol=1e-12)


SEAM = """
import json, sys
import numpy as np
import symdual
from dataclasses import replace
from symdual.runtime.closed_loop import Settings, draw, run
from symdual.runtime.loading import load
folder = sys.argv[1]
toy, plant = load(folder + "/toy"), load(folder + "/rail")
problem = replace(symdual.problem(toy), plant=plant, truth=np.zeros(0))
noise_draws = draw(problem, Settings(), np.random.SeedSequence(0).spawn(1))
episodes = run(problem, "ce", noise_draws, Settings())
moved = episodes.states[0, 1, 0] - episodes.inputs[0, 0, 0] - noise_draws.process[0, 0, 0]
fraction = moved / episodes.states[0, 0, 0]
stats = toy.episode.episodes.stats
print(json.dumps([fraction, sum(stats.cache_hits.values()), sum(stats.cache_misses.values())]))
"""

RAIL = """
import sympy as sp
from symdual import Model
x, u = sp.symbols("x u")
rail = Model(states=[x], inputs=[u], dynamics=[{factor} * x + u], process_noise=0.1, measurement_noise=0.0)
"""


def test_an_edit_of_the_plant_is_followed_by_a_cached_episode(
    numba_toy: Problem, packages: Path, make: Callable[[str, str], LoadedPackage]
) -> None:
    for factor in (0.75, 0.5, 0.25):
        make("rail", RAIL.format(factor=factor))
        command = [sys.executable, "-W", "ignore", "-c", SEAM, str(packages)]
        answer = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
        fraction, hits, misses = json.loads(answer.stdout)
        assert fraction == pytest.approx(factor)
        assert hits + misses == 1
        assert hits == 1 or factor == 0.75  # the first process may have had to compile the episode


# ------------------------------------------------------------------------------------------------ long runs


def test_a_long_episode_keeps_its_belief_sound(toy: Problem) -> None:
    settings = Settings(window=3, length=20_000)
    given = noise_draws(toy, 1, settings)
    (episodes,) = (run(toy, "ce", given, settings),)
    assert episodes.outcomes[0] == 0
    assert np.isfinite(episodes.means).all() and np.isfinite(episodes.inputs).all()
    assert episodes.variances.min() >= -1e-12 * episodes.variances.max()
    smallest = np.linalg.eigvalsh(episodes.covariances[0])[0]
    assert smallest >= -1e-12 * episodes.covariances[0].diagonal().max()
    assert episodes.means[0, -1, 1] == pytest.approx(2.0, abs=0.05)  # the gain is learned


# ------------------------------------------------------------------------------------------------ both backends

# two inputs, constraints, a cost by an expression, noise that depends, a signal, moving parameters
CRANE = """
import sympy as sp
from symdual import Model, Scenario, previous, signal, unknown
x, v, u, w, wind = *sp.symbols("x v u w"), signal("wind", usual=0.1)
b = unknown("b", 1.0, 0.2)
crane = Model(
    states=[x, v],
    inputs=[u, w],
    dynamics=[x + 0.4 * v + 0.1 * w, 0.9 * v + b * u + wind - 0.05 * sp.sin(x)],
    observation=[x, v],
    process_noise=[1e-4, 1e-3 * (1 + 0.5 * v**2)],
    measurement_noise=[1e-3 * (1 + x**2), 1e-2],
    transition=0.99,
    drift=1e-3,
    bounds={u: (-1, 1), w: (-1, 1)},
)
scenario = Scenario(
    crane,
    horizon=4,
    cost=1 - sp.cos(x - 1) + 0.1 * u**2 + 0.1 * w**2 + 0.05 * u * v,
    terminal_cost=(x - 1) ** 2,
    constraints=[x <= 1.1, u - previous(u) <= 0.8],
    signals={wind: [0.1, 0.0, -0.1, 0.0, 0.1]},
    truth={"b": 0.8},
)
"""


@pytest.mark.parametrize(
    "names", [["dual"], pytest.param(["ce", "cautious", "beb", "dual", "planned"], marks=pytest.mark.soak)]
)
def test_numba_and_c_run_the_same_episodes(
    shared_models: Callable[[Path], Path], tmp_path: Path, names: list[str]
) -> None:
    """What single capabilities do is tested through C, which compiles in no time; that numba compiles them, here."""
    try:
        compilers.compiler()
    except compilers.NoCompiler as missing:
        pytest.skip(str(missing))
    (tmp_path / "crane.py").write_text(CRANE)
    folder = shared_models(tmp_path / "crane.py") / "crane"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SymdualWarning)
        compiled, translated = (
            simulate(symdual.problem(symdual.load(folder, backend=backend)), names, 3, settings=Settings("prior"))
            for backend in ("numba", "c")
        )
    for name in names:
        assert np.isfinite(compiled[name].costs).all()
        for field in ("inputs", "means", "variances", "costs", "constraints"):
            np.testing.assert_allclose(
                getattr(translated[name], field), getattr(compiled[name], field), rtol=1e-6, atol=1e-7, err_msg=name
            )
