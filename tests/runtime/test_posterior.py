"""Gaussian processes in compiled packages: belief, planning, memory, and what a user sees of the function."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import symdual
from symdual.checks import dense, gram
from symdual.checks.places import Place
from symdual.checks.processes import ProcessSample
from symdual.checks.recursions import check_recursions
from symdual.checks.slopes import SLOPE
from symdual.commands import main
from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.runtime.belief import Belief
from symdual.runtime.closed_loop import Settings, draw, run, simulate
from symdual.runtime.controller import State, controller
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.posterior import MemoryWarning, by_values, posterior, remembered
from symdual.runtime.problem import Problem
from symdual.runtime.replay import read_recording, replay
from symdual.runtime.results import Chunk, Results
from symdual.runtime.summary import summarise
from symdual.runtime.sweep import Sweep, run_sweep, sweep
from symdual.runtime.threads import on_this_machine
from symdual.spec.loading import load_model_file

# a cart on an unknown hill, and the true one
HILL = """
import sympy as sp
from symdual import Model, Scenario, features
p, v, u = sp.symbols("p v u")
slope = features.gaussian_process("g", p, lengthscale=1.5, memory=12)
noise = {"process_noise": 1e-2, "measurement_noise": 1e-2}
hill = Model([p, v], [u], [p + 0.4 * v, 0.9 * v + 0.5 * slope + u], **noise)
track = Model([p, v], [u], [p + 0.4 * v, 0.9 * v + 0.5 * sp.sin(p) + u], **noise)
scenario = Scenario(hill, horizon=6, state_cost=[1.0, 0.1], input_cost=0.1, reference=[1.0, 0.0], plant=track, truth={})
"""

# two inputs, one of them an argument; two functions of several kernels, one with two mixed outputs; all of it drifting
RICH = """
import sympy as sp
from symdual import Model, covariances, features
p, v, w, u, a = sp.symbols("p v w u a")
g = features.gaussian_process("g", [p, u], covariances.matern52([1.5, 2.0]), memory=10, mean=lambda p, u: 0.1 * p)
h0, h1 = features.gaussian_process(
    "h", v, covariances.squared_exponential(1.3, 0.7) + covariances.matern32(2.0, 0.4),
    outputs=2, output_covariance=[[1.0, 0.3], [0.3, 0.5]], memory=10,
)
rich = Model(
    states=[p, v, w],
    inputs=[u, a],
    dynamics=[0.9 * p + 0.4 * v + 0.2 * h1, 0.8 * v + 0.3 * g + u, 0.7 * w + 0.4 * h0 * sp.cos(p) + a + 0.2 * h1],
    observation=[p + w, sp.sin(v) + w],
    process_noise=[1e-2, 1e-2, 2e-2],
    measurement_noise=1e-2,
    transition=0.95,
    drift=0.02,
)
"""

# the input chooses where the function is looked at: regression
LINE = """
import sympy as sp
from symdual import Model, features
p, y, u = sp.symbols("p y u")
slope = features.gaussian_process("g", p, lengthscale=0.8, amplitude=1.3, memory=30)
line = Model([p, y], [u], [u, slope], process_noise=[0.0, 0.01], measurement_noise=0.0)
"""


@pytest.fixture(scope="module")
def hill_package(make_quickly: Callable[[str, str], LoadedPackage]) -> LoadedPackage:
    return make_quickly("hill", HILL)


@pytest.fixture(scope="module")
def hill(hill_package: LoadedPackage) -> Problem:
    return symdual.problem(hill_package)


def _file(tmp_path: Path, name: str, text: str) -> Path:
    (tmp_path / f"{name}.py").write_text(text)
    return tmp_path / f"{name}.py"


# ------------------------------------------------------------------------------------------------ against other forms


def test_filter_and_dual_cost_are_those_of_the_gram_form(hill_package: LoadedPackage, tmp_path: Path) -> None:
    model = load_model_file(_file(tmp_path, "hill", HILL)).specifications["hill"]
    results = check_recursions(model, hill_package)
    assert {result.oracle for result in results} == {"Gram matrix"}
    assert len(results) == 13
    assert max(result.error for result in results if result.block != SLOPE) < 1e-12
    assert [result.error < 1e-9 for result in results if result.block == SLOPE] == [True]  # differences
    # and the comparison can fail: one number that is remembered, moved
    spoiled = hill_package.numbers["data"].copy()
    spoiled[hill_package.DATA_ENTRIES["g_lengthscale"][0]] = 1.51
    twin = replace(hill_package, numbers=hill_package.numbers | {"data": spoiled})
    assert not all(result.passed for result in check_recursions(model, twin))


@pytest.mark.soak
def test_many_functions_with_drift(make_quickly: Callable[[str, str], LoadedPackage], tmp_path: Path) -> None:
    package = make_quickly("rich", RICH)
    model = load_model_file(_file(tmp_path, "rich", RICH)).specifications["rich"]
    worst = max(result.error for result in check_recursions(model, package))
    assert worst < 1e-11


def test_order_two_has_the_slopes_as_further_unknowns(hill_package: LoadedPackage, tmp_path: Path) -> None:
    """theta = values and slopes at the points of the plan; slopes of the reference by differences of values."""
    model = load_model_file(_file(tmp_path, "hill", HILL)).specifications["hill"]
    ones = np.ones(hill_package.NX), np.ones(hill_package.NU), np.ones(hill_package.NTHETA)
    around = Place(*(0.0 * one for one in ones), *ones, horizon=10)
    problem = ProcessSample(model, hill_package, around, np.random.default_rng(3))
    belief, start, transitions, measurements = problem._filtered()
    steps, inputs, k, step = 3, problem._inputs[4:], 4, 1e-3
    assert belief.memory is not None
    z, points, curvature = belief.mean.copy(), [], []
    for j in range(steps):
        points.append(z[0])
        around = posterior(hill_package, belief, z[0] + np.array([-step, 0.0, step])).mean
        curvature.append((around[0] - 2 * around[1] + around[2]) / step**2)
        value, slope = around[1], (around[2] - around[0]) / (2 * step)
        assert slope == pytest.approx(posterior(hill_package, belief, z[:1]).slope_mean[0, 0], abs=1e-6)
        z[:2] = [z[0] + 0.4 * z[1], 0.9 * z[1] + 0.5 * value + inputs[j, 0]]
    asked = [gram.Value(0, np.array([s + shift * step]), k) for s in points for shift in (-1, 0, 1)]
    mean, covariance = gram.posterior(start, transitions, measurements, problem._Q, problem._covariance, asked)
    # (values, slopes) from neighbouring values
    to_theta = np.zeros((2 + 2 * steps, 2 + 3 * steps))
    to_theta[:2, :2] = np.eye(2)
    for j in range(steps):
        to_theta[2 + 2 * j, 2 + 3 * j + 1] = 1.0
        to_theta[3 + 2 * j, 2 + 3 * j], to_theta[3 + 2 * j, 2 + 3 * j + 2] = -0.5 / step, 0.5 / step
    known = dense.Belief(to_theta @ mean, to_theta @ covariance @ to_theta.T)

    def dynamics(time: int, z: Array, u: Array) -> Array:
        value, slope, away = z[2 + 2 * (time - k)], z[3 + 2 * (time - k)], z[0] - points[time - k]
        slope_here = value + slope * away + 0.5 * curvature[time - k] * away**2
        return np.array([z[0] + 0.4 * z[1], 0.9 * z[1] + 0.5 * slope_here + u[0]])

    def jacobian(time: int, z: Array, u: Array) -> Array:
        J = np.zeros((2, 2 + 2 * steps + 1))
        J[0, :2], J[1, 1], J[1, -1] = [1.0, 0.4], 0.9, 1.0
        J[1, 0], J[1, 2 + 2 * (time - k)] = 0.5 * z[3 + 2 * (time - k)], 0.5
        return J

    def hessian(time: int, z: Array, u: Array, lam: Array) -> Array:
        H = np.zeros((2 + 2 * steps + 1,) * 2)
        H[0, 0] = 0.5 * lam[1] * curvature[time - k]
        H[0, 3 + 2 * (time - k)] = H[3 + 2 * (time - k), 0] = 0.5 * lam[1]
        return H

    reference = dense.DenseModel(
        2, 1, 2, 2 * steps, dynamics, jacobian, hessian, lambda t, z: z[:2], lambda t, z: np.eye(2, 2 + 2 * steps)
    )
    random = np.random.default_rng(0)
    cost = dense.Cost(
        np.stack([np.diag([1.0, 0.3])] * (k + steps + 1)),
        np.stack([np.eye(1)] * (k + steps)),
        random.normal(size=(k + steps + 1, 2)),
        np.array([[-np.inf], [np.inf]]),
    )
    noise = dense.Noise(problem._Q, problem._R, np.eye(2 * steps), np.zeros((2 * steps,) * 2))
    exact = dense.dual_cost(reference, noise, cost, k, known, inputs, order=2)
    assert not exact.fallback
    records, calls = hill_package.records, hill_package.calls
    given = records.make_settings(problem._Q, problem._R, problem._D, problem._Xi, cost.bounds, belief.memory)
    workspace, held = (
        records.make_workspace(steps, records.make_stage_costs(*cost[:3]), given, order=2),
        records.make_belief(*belief[:2]),
    )
    calls.follow(k, k + steps, held, inputs, workspace)
    uncertain, _ = calls.jd_structured(k, k + steps, 0, 2, held, workspace)
    assert uncertain == pytest.approx(exact.uncertain, rel=1e-6)
    first = dense.dual_cost(reference, noise, cost, k, known, inputs, order=1)
    assert abs(first.uncertain / exact.uncertain - 1) > 1e-3  # the terms in question are there


def test_static_regression_is_that_of_scikit_learn(make_quickly: Callable[[str, str], LoadedPackage]) -> None:
    gaussian_process = pytest.importorskip("sklearn.gaussian_process")
    package = make_quickly("line", LINE)
    random = np.random.default_rng(0)
    points = random.uniform(-2, 2, 25)
    targets = np.sin(points) + 0.1 * random.normal(size=25)
    inputs, measured = np.append(points[1:], 0.0)[:, None], np.stack([np.full(25, np.nan), targets], axis=1)
    belief = _filtered(package, inputs, measured, start=points[0])
    kernels = gaussian_process.kernels
    other = gaussian_process.GaussianProcessRegressor(
        kernels.ConstantKernel(1.3**2) * kernels.RBF(0.8), alpha=0.01, optimizer=None
    ).fit(points[:, None], targets)
    at = np.linspace(-3, 3, 31)
    mean, covariance = other.predict(at[:, None], return_cov=True)
    found = posterior(package, belief, at)
    np.testing.assert_allclose(found.mean, mean, atol=1e-8)
    np.testing.assert_allclose(found.covariance, covariance, atol=1e-8)
    h = 1e-5
    ahead, behind = (posterior(package, belief, at + s) for s in (h, -h))
    np.testing.assert_allclose(found.slope_mean[:, 0], (ahead.mean - behind.mean) / (2 * h), atol=1e-8)
    both = posterior(package, belief, np.concatenate([at + h, at - h])).covariance
    n = len(at)
    difference = np.hstack([np.eye(n), -np.eye(n)]) / (2 * h)
    np.testing.assert_allclose(
        found.slope_variance[:, 0], np.diag(difference @ both @ difference.T), rtol=1e-4, atol=1e-5
    )


def test_features_approach_the_kernel_at_the_monte_carlo_rate(hill_package: LoadedPackage) -> None:
    """Random Fourier features: the error of the belief falls with the root of their number."""
    random = np.random.default_rng(5)
    measured = random.normal(size=(6, 2))
    inputs = random.normal(size=(6, 1))
    belief = _filtered(hill_package, inputs, measured)

    def error(count: int, seed: int) -> float:
        frequencies = np.random.default_rng(seed).normal(size=count) / 1.5
        z, P = np.zeros(2 + 2 * count), np.eye(2 + 2 * count)
        P[:2, :2] = 0.0

        def phi(p: float) -> Array:
            return np.concatenate([np.sin(frequencies * p), np.cos(frequencies * p)]) / np.sqrt(count)

        for u, y in zip(inputs, measured, strict=True):
            g, slope = phi(z[0]), np.concatenate([frequencies, -frequencies])
            bent = slope * np.concatenate([np.cos(frequencies * z[0]), np.sin(frequencies * z[0])]) / np.sqrt(count)
            A = np.array([[1.0, 0.4], [0.5 * bent @ z[2:], 0.9]])
            x = np.array([z[0] + 0.4 * z[1], 0.9 * z[1] + 0.5 * g @ z[2:] + u[0]])
            rows = A @ P[:2]  # the rows of the states of A~ P
            rows[1] += 0.5 * g @ P[2:]
            xx = rows[:, :2] @ A.T
            xx[:, 1] += 0.5 * rows[:, 2:] @ g
            P[:2, 2:], P[2:, :2], P[:2, :2] = rows[:, 2:], rows[:, 2:].T, xx + 0.01 * np.eye(2)
            z[:2] = x
            K = np.linalg.solve(P[:2, :2] + 0.01 * np.eye(2), P[:2]).T
            z, P = z + K @ (y - z[:2]), P - K @ P[:2]
        at = np.linspace(-2, 2, 9)
        values = np.array([phi(p) for p in at]) @ z[2:]
        return float(np.sqrt(np.mean((values - posterior(hill_package, belief, at).mean) ** 2)))

    few = np.sqrt(np.mean([error(100, seed) ** 2 for seed in range(12)]))
    many = np.sqrt(np.mean([error(1000, seed) ** 2 for seed in range(12)]))
    assert many < 0.05
    assert 2.0 < few / many < 5.0  # the root of ten is 3.2


class Filter:
    """A belief that the generated filter moves."""

    def __init__(self, package: LoadedPackage, start: float = 0.0) -> None:
        self._package = package
        bounds = np.array([package.numbers["lower"], package.numbers["upper"]])
        problem = package.records.make_settings(*package.noise, bounds, package.numbers["data"])
        self._filter_workspace = package.filter.make_filter_workspace(problem)
        mean = np.zeros(package.NZ)
        mean[0] = start
        self._held = package.records.make_belief(mean, np.zeros((package.NZ, package.NZ)))

    def step(self, k: int, u: Array, y: Array) -> None:
        self._package.filter.step(k, self._held, u, y, self._filter_workspace)

    @property
    def belief(self) -> Belief:
        covariance = self._package.records.read_covariance(self._held)
        return Belief(self._held["z"][0].copy(), covariance, self._filter_workspace.settings["numbers"][0].copy())


def _filtered(package: LoadedPackage, inputs: Array, measured: Array, start: float = 0.0) -> Belief:
    moved = Filter(package, start)
    for k, (u, y) in enumerate(zip(inputs, measured, strict=True)):
        moved.step(k, u, y)
    return moved.belief


# ------------------------------------------------------------------------------------------------ what a user sees


def test_before_any_data_there_is_the_prior(hill: Problem) -> None:
    found = posterior(hill.package, hill.prior, [0.0, 1.0])
    np.testing.assert_array_equal(found.mean, 0.0)
    np.testing.assert_allclose(found.covariance, [[1.0, np.exp(-1 / 4.5)], [np.exp(-1 / 4.5), 1.0]])
    np.testing.assert_allclose(found.slope_variance, 1 / 1.5**2)
    assert remembered(hill.package, hill.prior).shape == (0, 1)
    assert np.isnan(by_values(hill.package, hill.prior)[0][2:]).all()


def test_bad_questions(hill: Problem) -> None:
    for points, message in (([[0.0, 1.0]], "shape"), ([np.nan], "NaN"), ([[[0.0]]], "shape")):
        with pytest.raises(SymdualError, match=message):
            posterior(hill.package, hill.prior, points)
    with pytest.raises(SymdualError, match='no Gaussian process "h"'):
        posterior(hill.package, hill.prior, [0.0], "h")
    with pytest.raises(SymdualError, match="no output 1"):
        posterior(hill.package, hill.prior, [0.0], output=1)
    with pytest.raises(SymdualError, match="contains no Gaussian process"):
        posterior(hill.plant, hill.prior, [0.0])
    with pytest.raises(SymdualError, match="memory of the belief must have shape"):
        controller(hill, "ce").init(hill.prior._replace(memory=np.zeros(3)))
    with pytest.raises(SymdualError, match="NaN or infinite"):
        controller(hill, "ce").init(hill.prior._replace(memory=np.full(hill.package.DATA, np.nan)))


def test_a_function_has_no_true_parameters(hill: Problem) -> None:
    with pytest.raises(SymdualError, match="has no true parameters"):
        simulate(hill, ["ce"], 1, settings=Settings(truth="prior"))
    with pytest.raises(SymdualError, match="has no true parameters"):
        replace(hill, plant=hill.package, truth=np.zeros(12)).for_oracle(np.zeros(12))


# ------------------------------------------------------------------------------------------------ the loop


def test_all_controllers_run_and_the_loop_is_that_of_python(hill: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    noise_draws = draw(hill, Settings(), np.random.SeedSequence(1).spawn(3))
    for name in ("ce", "cautious", "beb", "dual"):
        episodes = run(hill, name, noise_draws, Settings())
        monkeypatch.setattr("numba.get_num_threads", lambda: 1)
        again = run(hill, name, noise_draws, Settings())
        np.testing.assert_array_equal(episodes.inputs, again.inputs)
        np.testing.assert_array_equal(episodes.memories, again.memories)
        assert (episodes.outcomes == 0).all()
        chosen = controller(hill, name)
        state, y = chosen.init(), None
        for k in range(hill.horizon):
            state, u, _ = chosen.step(state, y)
            np.testing.assert_allclose(u, episodes.inputs[0, k], atol=1e-4)
            y = episodes.states[0, k + 1] + noise_draws.measurement[0, k]
            state = State(state.k, state.belief, episodes.inputs[0, k])
        state, _ = chosen.update(state, y)
        last = episodes.last_belief(0)
        np.testing.assert_allclose(state.belief.mean, last.mean, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(state.belief.memory, last.memory, rtol=1e-9, atol=1e-12)
        assert len(remembered(hill.package, last)) == hill.horizon
        assert np.isnan(episodes.variances[:, :, 2:]).all() and np.isfinite(episodes.variances[:, :, :2]).all()


def test_a_dual_controller_learns_the_hill(hill: Problem) -> None:
    episodes = simulate(hill, ["dual"], 1, seed=2)["dual"]
    last = episodes.last_belief(0)
    at = remembered(hill.package, last)[:, 0]
    found = posterior(hill.package, last, at)
    assert np.all(np.abs(found.mean - np.sin(at)) < 4 * found.deviation)
    assert found.deviation.min() < 0.5


def test_a_step_does_not_touch_the_state_it_is_given(hill: Problem) -> None:
    chosen = controller(hill, "dual")
    first, _, _ = chosen.step(chosen.init())
    assert first.belief.memory is not None
    kept = first.belief.memory.copy()
    second, u, _ = chosen.step(first, [0.1, 0.2])
    np.testing.assert_array_equal(first.belief.memory, kept)
    _, again, _ = chosen.step(first, [0.1, 0.2])
    np.testing.assert_allclose(u, again, atol=1e-6)
    assert len(remembered(hill.package, second.belief)) == 1


# ------------------------------------------------------------------------------------------------ memory


def test_beyond_the_memory_the_loss_is_said_and_small(hill_package: LoadedPackage) -> None:
    random = np.random.default_rng(0)
    inputs = 0.3 * random.normal(size=(40, 1))
    measured = 0.5 * random.normal(size=(40, 2))
    short = _filtered(hill_package, inputs, measured)
    state = short.memory[hill_package.DATA_ENTRIES["g_state"][0] :]  # type: ignore[index]
    process = hill_package.process
    assert state[process.COUNT] == 12 and state[process.COMBINED] == 28
    assert 0 < state[process.LEFT_OPEN] < 0.2
    at = np.linspace(-1, 1, 5)
    found = posterior(hill_package, short, at)
    exact = posterior(hill_package, _filtered(hill_package, inputs[:12], measured[:12]), at)
    assert np.all(found.deviation < exact.deviation)  # it goes on learning
    chosen = controller(symdual.problem(hill_package), "ce", window=3)
    chosen.act()
    with pytest.warns(MemoryWarning, match="was not kept exactly: .* combinations of at most 12"):
        for y in measured:
            chosen.act(y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chosen.act(measured[0])  # said once


def test_novelty_keeps_the_room_for_places_that_are_not_explained(
    make_quickly: Callable[[str, str], LoadedPackage],
) -> None:
    """A walk that comes back to where it was: what is kept follows from the Gram matrix of the places kept before."""
    share, memory = 0.02, 9
    text = LINE.replace("line = ", "novel = ").replace("memory=30", f"memory={memory}, novelty={share}")
    package = make_quickly("novel", text)
    places = np.cumsum(0.3 * np.random.default_rng(4).normal(size=60))

    def kernel(one: Array, other: Array) -> Array:
        return 1.3**2 * np.exp(-0.5 * (one[:, None] - other) ** 2 / 0.8**2)

    expected: list[float] = []
    for place in places:
        at, kept = np.array([place]), np.array(expected)
        explained = kernel(at, kept) @ np.linalg.solve(kernel(kept, kept), kernel(kept, at)) if expected else 0.0
        if 1.0 - float(np.squeeze(explained)) / 1.3**2 > share:
            expected.append(place)
    assert 4 <= len(expected) < memory  # so that it is not the room that decides

    def visited(planning: int) -> Array:
        data, row, pi = package.numbers["data"].copy(), np.empty(memory), np.empty(memory)
        for place in places:
            package.process.remember_g(np.array([place]), planning, data, row, pi)
        return remembered(package, Belief(np.zeros(package.NZ), np.zeros((package.NZ, package.NZ)), data))[:, 0]

    np.testing.assert_array_equal(visited(planning=0), expected)
    np.testing.assert_array_equal(visited(planning=1), places[:memory])  # a plan gives its room back


@pytest.mark.soak
def test_a_sweep_says_once_what_was_not_kept(hill: Problem, tmp_path: Path) -> None:
    runs, settings = 40, Settings(window=2, length=18)  # three chunks, and more steps than there is memory
    with pytest.warns(MemoryWarning) as given:
        episodes = simulate(hill, ["ce"], runs, settings=settings)["ce"]
    (expected,) = (str(warning.message) for warning in given if warning.category is MemoryWarning)
    combined = episodes.memories[:, hill.package.DATA_ENTRIES["g_state"][0] + hill.package.process.COMBINED]
    assert combined.min() > 0 and f": {int(combined.sum())} of its values" in expected

    def two_chunks(plan: Sweep, pending: list[Chunk]) -> Iterator[tuple[Chunk, bytes]]:
        yield from [plan.payloads([chunk], plan.noise_draws([chunk]))[0] for chunk in pending[:2]]
        raise KeyboardInterrupt

    plan = sweep(hill, ["ce", "oracle"], runs, settings=settings)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(plan, tmp_path, two_chunks)
    file = run_sweep(plan, tmp_path, on_this_machine(), resume=True)  # without a warning, which would be an error
    with Results(file) as results:
        sentences = summarise(results).sentences()
    assert [sentence for sentence in sentences if "Gaussian process" in sentence] == [expected]
    assert expected.startswith("ce: the Gaussian process g was not kept exactly")


def _without_noise(package: LoadedPackage) -> LoadedPackage:
    numbers = package.numbers | {"process_noise": np.zeros((2, 2)), "measurement_noise": np.zeros((2, 2))}
    return replace(package, numbers=numbers)


def test_a_thousand_measurements_in_one_place_without_noise(hill_package: LoadedPackage) -> None:
    quiet = _without_noise(hill_package)
    belief = _filtered(quiet, np.zeros((1000, 1)), np.zeros((1000, 2)))
    assert np.isfinite(belief.covariance).all() and np.isfinite(belief.mean).all()
    found = posterior(quiet, belief, [0.0, 1e-9, 0.5])
    assert np.all(np.diag(found.covariance) > -1e-6) and found.deviation[0] < 1e-3
    assert len(remembered(quiet, belief)) == 1
    raised = belief.memory[quiet.DATA_ENTRIES["g_state"][0] + quiet.process.RAISED]  # type: ignore[index]
    assert raised == 1000


@pytest.mark.parametrize("spread", [1e-9, 1e-5, 1e-2, 0.3])
def test_measurements_without_noise_are_neither_lost_nor_trusted_too_much(
    hill_package: LoadedPackage, spread: float
) -> None:
    """On the flat, with places that are almost the same or not: the hill is flat there, and unknown elsewhere."""
    quiet = _without_noise(hill_package)
    for seed in range(6):
        inputs, x, measured = spread * np.random.default_rng(seed).normal(size=(60, 1)), np.zeros(2), []
        for (u,) in inputs:
            x = np.array([x[0] + 0.4 * x[1], 0.9 * x[1] + u])
            measured.append(x)
        belief = _filtered(quiet, inputs, np.array(measured))
        found = posterior(quiet, belief, [0.0, 0.5, 6.0])
        np.testing.assert_allclose(found.mean[:2], 0.0, atol=1e-6)
        assert found.deviation[0] < 1e-2
        if spread == 1e-9:  # only g(0) is known: 1 - kappa(0, 1/2)^2
            assert found.deviation[1] == pytest.approx(np.sqrt(1 - np.exp(-1 / 9)), rel=1e-4)
        assert np.all(np.diag(found.covariance) > -1e-6) and found.deviation[2] > 0.1


def test_measurements_that_contradict_a_model_without_noise(hill_package: LoadedPackage) -> None:
    """Without noise a position that is off by 1e-9 is impossible; what follows is finite, but makes no sense."""
    impossible = 1e-9 * np.random.default_rng(3).normal(size=(60, 2))
    belief = _filtered(_without_noise(hill_package), np.zeros((60, 1)), impossible)
    assert np.isfinite(belief.covariance).all() and np.isfinite(belief.mean).all()


def test_lost_digits_are_said(hill_package: LoadedPackage) -> None:
    belief = _filtered(hill_package, np.zeros((3, 1)), np.zeros((3, 2)))
    start = hill_package.NX + hill_package.UNKNOWNS[hill_package.PROCESSES["g"][0]][0]
    belief.covariance[start, start] -= 5.0
    with pytest.warns(MemoryWarning, match="g has lost its digits: a variance is -.* process noise"):
        posterior(hill_package, belief, [0.0])


def test_endless_operation_stays_sound(hill_package: LoadedPackage) -> None:
    """Thousands of steps with a full memory: finite, no negative variance, and the hill is learned all the same."""
    random = np.random.default_rng(1)
    moved, x = Filter(hill_package), np.zeros(2)
    for k in range(5000):
        u = np.array([-0.6 * x[0] - 0.5 * x[1] + 0.8 * np.sin(0.05 * k) + 0.3 * random.normal()])
        x = np.array([x[0] + 0.4 * x[1], 0.9 * x[1] + 0.5 * np.sin(x[0]) + u[0]]) + 0.1 * random.normal(size=2)
        moved.step(k, u, x + 0.1 * random.normal(size=2))
    belief = moved.belief
    assert np.isfinite(belief.covariance).all() and np.isfinite(belief.mean).all()
    at = remembered(hill_package, belief)[:, 0]
    found = posterior(hill_package, belief, np.linspace(at.min(), at.max(), 21))
    assert np.linalg.eigvalsh(found.covariance)[0] > -1e-7  # B has grown to 5000 / R by now
    assert np.linalg.eigvalsh(belief.covariance[:2, :2])[0] > 0
    inside = posterior(hill_package, belief, [0.0, 0.5])
    np.testing.assert_allclose(inside.mean, np.sin([0.0, 0.5]), atol=0.1)


# ------------------------------------------------------------------------------------------------ recordings, commands


def test_replay_shows_the_function_by_its_values(
    hill: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "data.csv"
    file.write_text("time,u,p,v\n0,0.5,0.0,0.0\n1,-0.5,0.1,0.6\n2,0.25,0.3,\n3,,0.4,0.2\n")
    recording = read_recording(file, hill.package)
    result, by_numba = replay(hill, recording), replay(hill.by_numba(), recording)
    np.testing.assert_allclose(by_numba.means, result.means, rtol=1e-9, atol=1e-12)
    at = remembered(hill.package, result.belief)
    assert at.shape == (3, 1)
    np.testing.assert_allclose(result.means[-1, 2:5], posterior(hill.package, result.belief, at).mean)
    assert np.isnan(result.means[0, 2:]).all()
    answer = CliRunner().invoke(
        main, ["replay", str(_file(tmp_path, "hill", HILL)), str(file), "-o", str(tmp_path / "out")]
    )
    assert answer.exit_code == 0, answer.output
    assert (tmp_path / "out").is_dir()
    shown = [line.split(" = ")[0].strip() for line in answer.output.splitlines() if " = " in line]
    assert shown == ["p", "v", "g[0]", "g[1]", "g[2]"]  # of twelve values three are remembered
    assert "nan" not in answer.output
