"""The linearisation against complex steps through a model written by hand; smoothing; the trajectory that is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual import Model, features, logistic, unknown
from symdual.common.arrays import Array
from symdual.identification.processes.evidence import CovarianceFunction
from symdual.identification.processes.linearised import Block, Lineariser, MeanFunction
from symdual.identification.processes.setup import ProcessSetup
from symdual.identification.processes.trajectory import Trajectories
from symdual.identification.processes.whitening import smooth, whiten

angle, rate = sp.symbols("angle rate")
torque, clock = sp.symbols("torque clock")
STEP, LENGTH, AMPLITUDE, PERSISTENCE, GROWTH = 0.2, 1.4, 0.9, 0.9, 0.2
CENTRES = np.array([-1.0, 0.5, 1.0])


@pytest.fixture
def setup(recorded: Callable[..., ProcessSetup]) -> ProcessSetup:
    """A Runge-Kutta step that takes two outputs of a process at four points, beside a scalar unknown and a family."""
    friction = unknown("friction", 0.3, 0.1)
    bumps = features.rbf("bumps", rate, CENTRES, lengthscale=0.7, variance=0.2)
    pull, drag = features.gaussian_process("g", [angle, torque], lengthscale=LENGTH, amplitude=AMPLITUDE, outputs=2)
    weights = 1 + len(CENTRES)
    model = Model(
        [angle, rate],
        [torque],
        derivatives=[rate + 0.1 * sp.tanh(drag), pull * sp.cos(rate) - friction * rate + bumps + torque + 0.1 * clock],
        step=STEP,
        method="rk4",
        time=clock,
        observation=[sp.sin(angle) + friction, logistic(rate) + 0.1 * bumps],
        process_noise=[1e-3, 2e-3],
        measurement_noise=[1e-2, 2e-2],
        transition=[0.98] * weights + [PERSISTENCE] * 128,
        drift=[1e-4] * weights + [GROWTH] * 128,
    )
    random = np.random.default_rng(0)
    measured = random.normal(size=(7, 2))
    measured[3] = np.nan
    times = STEP * np.array([0, 1, 2, 3, 5, 6, 8])  # rows are left out: the input holds
    return recorded(model, random.normal(size=(7, 1)), measured, times, start_covariance=[0.2, 0.1])


def mean_function(setup: ProcessSetup, random: np.random.Generator) -> MeanFunction:
    """Some function that the recording might have led to."""
    times = np.array([0, 2, 5])
    points, slopes = random.normal(size=(3, 2)), np.zeros((3, 2, 2))
    block = Block(setup.families[0], points, times, np.zeros((2, 3), np.intp), slopes)
    return MeanFunction((block,), (random.normal(size=(2, 3)),))


def value(mean: MeanFunction, output: int, t: int, a: Any, u: float) -> Any:
    """E g_t(a, u), written out."""
    scales = [1.0]
    for _ in range(10):
        scales.append(PERSISTENCE**2 * scales[-1] + GROWTH)
    total = 0.0
    for (p, q), s, weight in zip(mean.blocks[0].points, mean.blocks[0].times, mean.weights[0][output], strict=True):
        tau = PERSISTENCE ** abs(t - s) * scales[min(t, s)]
        total += weight * tau * AMPLITUDE**2 * np.exp(-((a - p) ** 2 + (u - q) ** 2) / (2 * LENGTH**2))
    return total


def next_state(mean: MeanFunction, z: Any, u: float, t: int, added: Any) -> Any:
    """The Runge-Kutta step of the model; `added` (2, 4) is added to the values of the process, output by output."""
    return runge_kutta(mean, z, u, t, added)[0]


def last_point(mean: MeanFunction, z: Any, u: float, t: int) -> Any:
    """Where the last stage takes the process."""
    return np.array([runge_kutta(mean, z, u, t, np.zeros((2, 4)))[1][0], u + 0j])


def runge_kutta(mean: MeanFunction, z: Any, u: float, t: int, added: Any) -> tuple[Any, Any]:
    """The next state and the state of the last stage."""

    def motion(x: Any, time: float, stage: int) -> Any:
        pull = value(mean, 0, t, x[0], u) + added[0][stage]
        drag = value(mean, 1, t, x[0], u) + added[1][stage]
        bumps = sum(w * np.exp(-((x[1] - c) ** 2) / (2 * 0.7**2)) for w, c in zip(z[3:], CENTRES, strict=True))
        return np.array([x[1] + 0.1 * np.tanh(drag), pull * np.cos(x[1]) - z[2] * x[1] + bumps + u + 0.1 * time])

    x = np.array(z[:2])
    k1 = motion(x, t, 0)
    k2 = motion(x + STEP / 2 * k1, t + 0.5, 1)
    k3 = motion(x + STEP / 2 * k2, t + 0.5, 2)
    last = x + STEP * k3
    k4 = motion(last, t + 1.0, 3)
    return x + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4), last


def measured(z: Any) -> Any:
    bumps = sum(w * np.exp(-((z[1] - c) ** 2) / (2 * 0.7**2)) for w, c in zip(z[3:], CENTRES, strict=True))
    return np.array([np.sin(z[0]) + z[2], 1 / (1 + np.exp(-z[1])) + 0.1 * bumps])


def complex_step(function: Callable[[Any], Any], point: Array) -> Array:
    """The Jacobian, exact to rounding."""
    return np.stack([function(point + 1e-30j * e).imag / 1e-30 for e in np.eye(len(point))], axis=1)


def test_every_block_is_the_derivative_of_the_model(setup: ProcessSetup) -> None:
    random = np.random.default_rng(5)
    mean = mean_function(setup, random)
    trajectory = random.normal(size=(setup.steps + 1, 6))
    system = Lineariser(setup).along(trajectory, mean, setup.constants)
    assert system.gains.shape == (8, 6, 8)
    nothing = np.zeros((2, 4))
    for t, z in enumerate(trajectory[:-1]):
        u = float(setup.inputs[t, 0])
        A = complex_step(lambda p, t=t, u=u: next_state(mean, p, u, t, nothing), z)
        B = complex_step(lambda g, t=t, u=u, z=z: next_state(mean, z, u, t, g.reshape(2, 4)), np.zeros(8))
        np.testing.assert_allclose(system.transition[t, :2], A, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(system.transition[t, 2:], np.hstack([np.zeros((4, 2)), 0.98 * np.eye(4)]))
        np.testing.assert_allclose(system.gains[t, :2], B, rtol=1e-11, atol=1e-13)
        assert not system.gains[t, 2:].any()
        # at the trajectory itself, and with the mean of the process there, the linear system is the model
        points = system.blocks[0].points[system.blocks[0].times == t]
        taken = np.array([[value(mean, o, t, p, q) for p, q in points] for o in range(2)]).ravel()
        slopes = complex_step(lambda p, t=t, u=u: last_point(mean, p, u, t), z)
        np.testing.assert_allclose(system.blocks[0].slopes[4 * t + 3], slopes[:, :2], rtol=1e-11, atol=1e-13)
        there = system.transition[t] @ z + system.gains[t] @ taken + system.offset[t]
        np.testing.assert_allclose(there[:2], next_state(mean, z, u, t, nothing), rtol=1e-11)
        np.testing.assert_allclose(there[2:], 0.98 * z[2:])
    for row, t in enumerate(setup.times):
        C = complex_step(measured, trajectory[t])
        np.testing.assert_allclose(system.observation[row], C, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(C @ trajectory[t] + system.shift[row], measured(trajectory[t]), rtol=1e-11)


def test_the_inputs_hold_where_rows_are_left_out(setup: ProcessSetup) -> None:
    assert setup.times[setup.recordings[0].lines > 0].tolist() == [0, 1, 2, 3, 5, 6, 8]
    assert np.isnan(setup.measurements[[4, 7]]).all()
    assert setup.inputs[3] == setup.inputs[4]
    assert setup.inputs[6] == setup.inputs[7]
    assert len(np.unique(setup.inputs)) == 6


def test_smoothing_is_conditioning(setup: ProcessSetup) -> None:
    """E[z | y, g] against the dense Gaussian of all states and measurements."""
    random = np.random.default_rng(2)
    system = Lineariser(setup).along(random.normal(size=(9, 6)), mean_function(setup, random), setup.constants)
    values = random.normal(size=(8, 8))
    found = smooth(setup, system, whiten(setup, system), values)
    size, steps = 6, 8
    T = np.zeros(((steps + 1) * size, (steps + 1) * size))
    T[:size, :size] = np.eye(size)
    mean = [setup.start]
    for t in range(steps):
        here, after = slice(size * t, size * (t + 1)), slice(size * (t + 1), size * (t + 2))
        T[after] = system.transition[t] @ T[here]
        T[after, after] = np.eye(size)
        mean.append(system.transition[t] @ mean[-1] + system.gains[t] @ values[t] + system.offset[t])
    sources = np.kron(np.eye(steps + 1), setup.process_noise)
    sources[:size, :size] = setup.start_covariance
    P = T @ sources @ T.T
    C = np.zeros((18, (steps + 1) * size))
    for row, t in enumerate(setup.times):
        C[2 * row : 2 * row + 2, size * t : size * (t + 1)] = system.observation[row]
    y = (setup.measurements - system.shift).ravel()
    seen = np.isfinite(y)
    S = (C @ P @ C.T + np.kron(np.eye(9), setup.measurement_noise))[np.ix_(seen, seen)]
    prior = np.concatenate(mean)
    expected = prior + P @ C[seen].T @ np.linalg.solve(S, y[seen] - C[seen] @ prior)
    np.testing.assert_allclose(found.ravel(), expected, rtol=1e-9, atol=1e-10)


def test_the_trajectory_is_the_most_probable_one(recorded: Callable[..., ProcessSetup]) -> None:
    """-log p(x, g, y), with g at its best for given x, has its minimum at the trajectory that is found.

    1/2 r' (K(x) + Q)^-1 r + 1/2 sum (y - x)^2 / R + prior,       r_t = x_{t+1} - (0.9 x_t + u_t)
    """
    x, u = sp.symbols("x u")
    g = features.gaussian_process("g", x, lengthscale=0.8, amplitude=0.7)
    model = Model([x], [u], [0.9 * x + u + g], process_noise=0.05, measurement_noise=0.3)
    random = np.random.default_rng(8)
    inputs, states = random.normal(size=(13, 1)), [0.5]
    for push in inputs[:-1, 0]:
        states.append(0.9 * states[-1] + push + 0.7 * np.sin(states[-1]) + 0.2 * random.normal())
    measured = np.array(states)[:, None] + 0.5 * random.normal(size=(13, 1))
    setup = recorded(model, inputs, measured, start_covariance=0.5)
    found = Trajectories(setup)
    psi = np.log([h.value for h in setup.hyperparameters])
    estimate, _, posterior, still = found.rest(found.first(psi), psi)
    assert still
    kernel = CovarianceFunction(setup.families[0])

    def objective(path: Array) -> float:
        K = kernel.gram(path[:-1, None], path[:-1, None], [0.7, 0.8])
        r = path[1:] - 0.9 * path[:-1] - inputs[:-1, 0]
        misfit = setup.measurements[:, 0] - path
        prior = path[0] ** 2 / 0.5
        return float(0.5 * (r @ np.linalg.solve(K + 0.05 * np.eye(12), r) + misfit @ misfit / 0.3 + prior))

    def slope(path: Array) -> Array:
        return np.array([(objective(path + s) - objective(path - s)) / 2e-5 for s in 1e-5 * np.eye(13)])

    path = estimate.trajectory[:, 0]
    assert np.max(np.abs(slope(path))) < 1e-4
    assert np.max(np.abs(slope(path + 0.01))) > 1e-2  # the measure is not blind
    # and g is the regression on what the trajectory does beside the known part
    K = kernel.gram(path[:-1, None], path[:-1, None], [0.7, 0.8])
    r = path[1:] - 0.9 * path[:-1] - inputs[:-1, 0]
    np.testing.assert_allclose(posterior.values[:, 0], K @ np.linalg.solve(K + 0.05 * np.eye(12), r), atol=1e-6)
