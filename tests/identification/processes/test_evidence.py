"""The marginal likelihood and its gradient: scikit-learn, recursive filters with features, 50-digit differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp

from symdual import Model, constant, covariances, features, unknown
from symdual.common.arrays import Array
from symdual.identification.processes.evidence import Evidence
from symdual.identification.processes.setup import ProcessSetup

a, b, c = sp.symbols("a b c")
u, v = sp.symbols("u v")
AMPLITUDE = ("g_amplitude", 2)  # scikit-learn's constant is its square
PLAIN = [AMPLITUDE, ("g_lengthscale0", 1), ("g_lengthscale1", 1)]

#: our kernel, scikit-learn's, and what each of its parameters is: one of ours and a power
STATIC: dict[str, tuple[covariances.Covariance, Callable[[Any], Any], list[tuple[str, int]]]] = {
    "squared exponential": (
        covariances.squared_exponential([0.7, 2.0], 1.3),
        lambda k: k.ConstantKernel() * k.RBF([1.0, 1.0]),
        PLAIN,
    ),
    "matern 3/2": (
        covariances.matern32([0.7, 2.0], 1.3),
        lambda k: k.ConstantKernel() * k.Matern([1.0, 1.0], nu=1.5),
        PLAIN,
    ),
    "matern 5/2": (
        covariances.matern52([0.7, 2.0], 1.3),
        lambda k: k.ConstantKernel() * k.Matern([1.0, 1.0], nu=2.5),
        PLAIN,
    ),
    "rational quadratic": (
        covariances.rational_quadratic(0.7, 1.3, shape=1.7),
        lambda k: k.ConstantKernel() * k.RationalQuadratic(),
        [AMPLITUDE, ("g_shape", 1), ("g_lengthscale", 1)],
    ),
    "periodic": (
        covariances.periodic(0.7, 1.3, period=2.2),
        lambda k: k.ConstantKernel() * k.ExpSineSquared(),
        [AMPLITUDE, ("g_lengthscale", 1), ("g_period", 1)],
    ),
    "sum": (
        covariances.squared_exponential(0.7, 1.3) + covariances.matern32(3.0, 0.4),
        lambda k: k.ConstantKernel() * k.RBF() + k.ConstantKernel() * k.Matern(nu=1.5),
        [AMPLITUDE, ("g_lengthscale", 1), ("g_amplitude_2", 2), ("g_lengthscale_2", 1)],
    ),
    "product": (
        covariances.squared_exponential(2.0, 1.3) * covariances.periodic(1.0, 1.0, period=1.6),
        lambda k: k.ConstantKernel() * k.RBF() * k.ConstantKernel() * k.ExpSineSquared(),
        [AMPLITUDE, ("g_lengthscale", 1), ("g_amplitude_2", 2), ("g_lengthscale_2", 1), ("g_period", 1)],
    ),
}


@pytest.mark.parametrize("case", STATIC)
def test_static_regression_is_that_of_scikit_learn(
    case: str, recorded: Callable[..., ProcessSetup], evidence_at: Callable[..., Evidence]
) -> None:
    kernels = pytest.importorskip("sklearn.gaussian_process.kernels")
    regressors = pytest.importorskip("sklearn.gaussian_process")
    kernel, theirs, names = STATIC[case]
    arguments = [u, v] if ("g_lengthscale1", 1) in names else u
    random = np.random.default_rng(1)
    inputs = random.uniform(-2, 2, (31, 2))
    inputs[7] = inputs[3]  # two measurements at one place
    values = np.concatenate([[np.nan], np.sin(2 * inputs[:-1, 0]) + 0.3 * random.standard_normal(30)])
    model = Model(
        [a], [u, v], [features.gaussian_process("g", arguments, kernel)], process_noise=0.03, measurement_noise=0.02
    )
    setup = recorded(model, inputs, values[:, None])
    evidence = evidence_at(setup)
    places = inputs[:-1, : 2 if isinstance(arguments, list) else 1]
    # the sum of the noises is their alpha; the optimiser stays out of it
    regressor = regressors.GaussianProcessRegressor(theirs(kernels), alpha=0.05, optimizer=None).fit(places, values[1:])
    position = {str(h.name): i for i, h in enumerate(setup.hyperparameters)}
    for _ in range(3):
        psi = np.log([h.value for h in setup.hyperparameters]) + random.uniform(-0.5, 0.5, len(position))
        theta = np.array([power * psi[position[name]] for name, power in names])
        expected, slopes = regressor.log_marginal_likelihood(theta, eval_gradient=True)
        gradient = np.zeros(len(psi))
        for (name, power), slope in zip(names, slopes, strict=True):
            gradient[position[name]] += power * slope
        found = evidence.at(psi)
        assert found.log_likelihood == pytest.approx(expected, rel=1e-8)
        np.testing.assert_allclose(found.gradient, gradient, rtol=1e-8, atol=1e-8)


# ---------------------------------------------------------------- the recursive filter with features


def basis(point: Array) -> Array:
    """phi(s) of the kernel below, without its amplitude."""
    return np.array([1.0, point[0], np.sin(point[0]), np.cos(2 * point[0]) * point[1]])


def feature_kernel(*s: sp.Expr) -> sp.Expr:
    """kappa(s, s') = size^2 phi(s) phi(s')'."""

    def phi(p: sp.Expr, q: sp.Expr) -> list[sp.Expr]:
        return [sp.S.One, p, sp.sin(p), sp.cos(2 * p) * q]

    return constant("size", 0.8) ** 2 * sp.Add(
        *(one * other for one, other in zip(phi(*s[:2]), phi(*s[2:]), strict=True))
    )


def recursive_log_likelihood(
    A: list[Array],
    B: list[Array],
    points: Array,
    offset: Array,
    C: Array,
    drift: tuple[float, float],
    setup: ProcessSetup,
) -> float:
    """The sum of a Kalman filter's log-likelihoods on (x, w), w the weights of the features with w_0 ~ N(0, size^2)."""
    lam, rho = drift
    size, features = len(setup.start), len(basis(points[0]))
    mean = np.concatenate([setup.start, np.zeros(features)])
    P = np.zeros((len(mean), len(mean)))
    P[:size, :size], P[size:, size:] = setup.start_covariance, 0.8**2 * np.eye(features)
    total = 0.0
    for t in range(len(A) + 1):
        y = setup.measurements[t]
        seen = np.isfinite(y)
        H = np.hstack([C[seen], np.zeros((seen.sum(), features))])
        S = H @ P @ H.T + setup.measurement_noise[np.ix_(seen, seen)]
        e = y[seen] - H @ mean
        total -= 0.5 * (e @ np.linalg.solve(S, e) + np.linalg.slogdet(2 * np.pi * S)[1])
        gain = P @ H.T @ np.linalg.inv(S)
        kept = np.eye(len(mean)) - gain @ H
        mean, P = mean + gain @ e, kept @ P @ kept.T + gain @ setup.measurement_noise[np.ix_(seen, seen)] @ gain.T
        if t < len(A):
            F = np.block(
                [[A[t], np.outer(B[t], basis(points[t]))], [np.zeros((features, size)), lam * np.eye(features)]]
            )
            mean = F @ mean + np.concatenate([offset[t], np.zeros(features)])
            P = F @ P @ F.T
            P[:size, :size] += setup.process_noise
            P[size:, size:] += rho * 0.8**2 * np.eye(features)
    return float(total)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("steps", [3, 8, 20])
@pytest.mark.parametrize("drift", [(1.0, 0.0), (0.9, 0.3), (-0.7, 0.1)])
def test_multi_step_form_is_the_recursive_filter(
    n: int,
    steps: int,
    drift: tuple[float, float],
    recorded: Callable[..., ProcessSetup],
    evidence_at: Callable[..., Evidence],
) -> None:
    """Random systems with input; g is a function of the inputs, so that nothing has to be linearised."""
    random = np.random.default_rng(100 * n + steps)
    states = [a, b, c][:n]
    M, N, D = random.normal(size=(n, n)) / n, random.normal(size=(n, n)) / n, random.normal(size=(n, n))
    direction, push, C = random.normal(size=n), random.normal(size=n), random.normal(size=(2, n))
    g = features.gaussian_process("g", [u, v], feature_kernel)
    theta = unknown("theta", 0.3, 0.5)
    motion = (sp.Matrix(M) + v * sp.Matrix(N)) * sp.Matrix(states)
    model = Model(
        states,
        [u, v],
        [motion[i] + direction[i] * (1 + u) * g + push[i] * (theta * u + v) for i in range(n)],
        observation=list(sp.Matrix(C) * sp.Matrix(states)),
        process_noise=D @ D.T * 0.1,
        measurement_noise=[0.1, 0.3],
        transition=[1.0] + [drift[0]] * 64,
        drift=[0.0] + [drift[1]] * 64,
    )
    inputs, measurements = random.normal(size=(steps + 1, 2)), random.normal(size=(steps + 1, 2))
    measurements[1, 0] = measurements[2] = np.nan
    start = D.T @ D + np.eye(n)
    setup = recorded(model, inputs, measurements, start=random.normal(size=n), start_covariance=start)
    z = n + 1  # the scalar unknown is a constant state
    A, offset = [], np.zeros((steps, z))
    for t in range(steps):
        A.append(np.eye(z))
        A[t][:n, :n], A[t][:n, n] = M + inputs[t, 1] * N, push * inputs[t, 0]
        offset[t, :n] = push * inputs[t, 1]
    B = [np.append(direction * (1 + inputs[t, 0]), 0.0) for t in range(steps)]
    full = np.hstack([C, np.zeros((2, 1))])
    expected = recursive_log_likelihood(A, B, inputs, offset, full, drift, setup)
    found = evidence_at(setup).at(np.log([0.8]))
    assert found.log_likelihood == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_an_unstable_system_does_not_lose_digits(
    recorded: Callable[..., ProcessSetup], evidence_at: Callable[..., Evidence]
) -> None:
    """1.5^150 is far beyond double precision: the covariance of the measurements itself could not be factored."""
    random = np.random.default_rng(0)
    steps = 150
    g = features.gaussian_process("g", [u, v], feature_kernel)
    model = Model([a], [u, v], [1.5 * a + g], process_noise=0.1, measurement_noise=0.2)
    inputs = random.normal(size=(steps + 1, 2))
    setup = recorded(model, inputs, random.normal(size=(steps + 1, 1)), start_covariance=1.0)
    one = np.ones((1, 1))
    expected = recursive_log_likelihood(
        [1.5 * one] * steps, [np.ones(1)] * steps, inputs, np.zeros((steps, 1)), one, (1.0, 0.0), setup
    )
    assert evidence_at(setup).at(np.log([0.8])).log_likelihood == pytest.approx(expected, rel=1e-9)


# ---------------------------------------------------------------- the gradient


def fifty_digits(evidence: Evidence, psi: list[Any]) -> Any:
    """log p from the dense covariance of all measurements, with 50 digits and more."""
    setup, system = evidence.setup, evidence.system
    names = {str(h.name): mpmath.exp(p) for h, p in zip(setup.hyperparameters, psi, strict=True)}
    steps, size, count = system.gains.shape
    K = mpmath.zeros(steps * count)
    for block in system.blocks:
        process = block.family.process
        assert process is not None
        symbols = [*block.family.arguments, *process.places, *block.family.constants]
        special = {
            "matern": lambda order, s: (1 + mpmath.sqrt(s)) * mpmath.exp(-mpmath.sqrt(s)) if order == 3 else None
        }
        kappa = sp.lambdify(symbols, process.kernel, modules=[special, "mpmath"])
        values = [names[str(h.name)] for h in block.family.constants]
        drift = setup.drifts[block.family.name]
        for i, left in enumerate(block.points):
            for j, right in enumerate(block.points):
                s, t = sorted([int(block.times[i]), int(block.times[j])])
                tau = mpmath.mpf(drift.persistence) ** (t - s) * mpmath.mpf(drift.scales[s])
                entry = tau * kappa(*map(mpmath.mpf, left), *map(mpmath.mpf, right), *values)
                for columns in block.columns:
                    K[int(columns[i]), int(columns[j])] = entry
    start, noise = mpmath.matrix(setup.start_covariance.tolist()), mpmath.matrix(setup.process_noise.tolist())
    mean = mpmath.matrix(setup.start.tolist())
    # every z_t as a linear map of the sources: start, noises, values of processes
    sources = size + size * steps + steps * count
    cov = mpmath.zeros(sources)
    cov[:size, :size] = start
    for t in range(steps):
        cov[size * (t + 1) : size * (t + 2), size * (t + 1) : size * (t + 2)] = noise
    cov[size * (steps + 1) :, size * (steps + 1) :] = K
    T = mpmath.zeros(size, sources)
    T[:, :size] = mpmath.eye(size)
    rows, residuals, blocks = [], [], []
    for t in range(steps + 1):
        C = mpmath.matrix(system.observation[t].tolist())
        predicted = C * mean + mpmath.matrix(system.shift[t].tolist())
        for i, y in enumerate(setup.measurements[t]):
            if np.isfinite(y):
                rows.append(C[i, :] * T)
                residuals.append(mpmath.mpf(y) - predicted[i])
                blocks.append((t, i))
        if t < steps:
            A, B = mpmath.matrix(system.transition[t].tolist()), mpmath.matrix(system.gains[t].tolist())
            mean, T = A * mean + mpmath.matrix(system.offset[t].tolist()), A * T
            T[:, size * (t + 1) : size * (t + 2)] = mpmath.eye(size)
            first = size * (steps + 1) + count * t
            T[:, first : first + count] = B
    L = mpmath.matrix(len(rows), sources)
    for i, row in enumerate(rows):
        L[i, :] = row
    G = L * cov * L.T
    for i, (t, one) in enumerate(blocks):
        for j, (s, other) in enumerate(blocks):
            if s == t:
                G[i, j] += mpmath.mpf(float(setup.measurement_noise[one, other]))
    e = mpmath.matrix(residuals)
    factor = mpmath.cholesky(G)
    logarithm = 2 * mpmath.fsum(mpmath.log(factor[i, i]) for i in range(len(rows)))
    return -(e.T * mpmath.lu_solve(G, e))[0] / 2 - logarithm / 2 - len(rows) * mpmath.log(2 * mpmath.pi) / 2


def test_the_gradient_is_that_of_50_digit_differences(
    recorded: Callable[..., ProcessSetup], evidence_at: Callable[..., Evidence]
) -> None:
    """Two processes, one with two outputs, functions of states, drift, gaps: value and gradient."""
    g0, g1 = features.gaussian_process(
        "g",
        [a, u],
        covariances.rational_quadratic([1.1, 0.8], 0.9, 1.4),
        outputs=2,
        output_covariance=[[1, 0.4], [0.4, 2]],
    )
    h = features.gaussian_process("h", b, "matern32", lengthscale=1.7, amplitude=0.6)
    model = Model(
        [a, b],
        [u],
        [0.8 * a + 0.3 * sp.sin(b) + g0, 0.5 * b + u + g1 * sp.cos(a) + h],
        observation=[a, a * b],
        process_noise=[0.02, 0.05],
        measurement_noise=[[0.1, 0.02], [0.02, 0.3]],
        transition=0.95,
        drift=0.1,
    )
    random = np.random.default_rng(3)
    inputs, measurements = random.normal(size=(6, 1)), random.normal(size=(6, 2))
    measurements[2, 1] = np.nan
    setup = recorded(model, inputs, measurements, start_covariance=[0.3, 0.2])
    evidence = evidence_at(setup, random.normal(size=(6, 2)))
    psi = np.log([h.value for h in setup.hyperparameters]) + 0.1
    found = evidence.at(psi)
    with mpmath.workdps(60):
        exact = [mpmath.mpf(p) for p in psi]
        assert found.log_likelihood == pytest.approx(float(fifty_digits(evidence, exact)), rel=1e-12)
        step = mpmath.mpf(10) ** -20
        for i in range(len(psi)):
            up, down = ([p + sign * step * (j == i) for j, p in enumerate(exact)] for sign in (1, -1))
            slope = (fifty_digits(evidence, up) - fifty_digits(evidence, down)) / (2 * step)
            assert found.gradient[i] == pytest.approx(float(slope), rel=1e-10)
