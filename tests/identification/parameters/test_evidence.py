"""The likelihood and its gradient: 50 digits and differences of them, an own Kalman filter, and the emitted filter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp

import symdual
from symdual import Model, features, previous, signal, unknown
from symdual.checks.likelihood import ExactFilter, Numbers, check_likelihood
from symdual.common.arrays import Array
from symdual.identification.parameters.filtering import Filter
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.replay import Recording, replay

x, v, u, k = sp.symbols("x v u k")
SUN, PRICE = signal("sun", 1.5), signal("price", 0.2)
STEP = mpmath.mpf(10) ** -15

MODELS: dict[str, Callable[[], Model]] = {
    "scalar": lambda: Model([x], [u], [sp.sin(x) + unknown("b", 1.0) * u], name="scalar"),
    "pendulum": lambda: Model(
        [x, v],
        [u],
        derivatives=[v, -unknown("a", 1.0) * sp.sin(x) - unknown("c", 0.2) * v * sp.Abs(v) + u * sp.cos(k)],
        step=0.2,
        method="rk4",
        time=k,
        observation=[sp.sin(x), x * v],
        name="pendulum",
    ),
    "features": lambda: Model(
        [x, v],
        [u],
        [x + 0.4 * v, v + features.rbf("g", [x, u], [[0, 0], [1, 1]]) * unknown("b", 1.0) + u],
        observation=[x * features.linear("w", [v]) + x],
        name="features",
    ),
    "signals": lambda: Model(
        [x, v],
        [u],
        derivatives=[v, sp.tanh(unknown("a", 0.5) * SUN * u) - unknown("c", 0.3) * x * v],
        step=0.3,
        observation=[x * (1 + PRICE), v],
        name="signals",
    ),
    "noisy": lambda: Model(
        [x, v],
        [u],
        [x + 0.4 * v, v + unknown("a", 0.5) * sp.sin(x) + unknown("b", 1.0) * u],
        process_noise=sp.Matrix([[0.2 + x**2, 0.1 * u], [0.1 * u, 0.3 + u**2 * sp.exp(x)]]),
        measurement_noise=sp.Matrix([[1 + sp.sin(v) ** 2, 0.2 * x], [0.2 * x, 0.5 + SUN * sp.exp(v)]]),
        observation=[x**2, v + x],
        name="noisy",
    ),
    "second": lambda: Model(
        [x, v],
        [u],
        derivatives=[v, -unknown("a", 1.0) * sp.sin(x) * u - unknown("c", 0.2) * v**3 + sp.cos(u) * SUN],
        step=0.2,
        observation=[sp.sin(x) * unknown("s", 1.0), x * v, v],
        filter="second_order",
        name="second",
    ),
    "second_features": lambda: Model(
        [x, v],
        [u],
        [x + 0.4 * v, v + features.rbf("g", [x, u], [[0, 0], [1, 1]]) * unknown("b", 1.0) + u],
        observation=[x * features.linear("w", [v]) + x],
        filter="second_order",
        name="second_features",
    ),
    "second_weights": lambda: Model(
        [x],
        [u],
        [x + 0.3 * features.logistic("g", x, locations=[-1.0, 0.5], slope_mean=[-1.0, 0.7]) + u],
        observation=[x**3],
        process_noise=0.1 + sp.sin(x) ** 2,
        measurement_noise=0.3,
        filter="iterated_second_order",
        square_root=True,
        name="second_weights",
    ),
    "second_products": lambda: Model(
        [x, v],
        [u],
        [x + 0.4 * v, v + features.linear("one", [x, u]) * features.rbf("other", [v], [[0], [1]]) + u],
        observation=[x],
        filter="second_order",
        name="second_products",
    ),
    "late": lambda: Model(
        [x],
        [u],
        [sp.sin(x) + unknown("b", 1.0) * previous(u, 2)],
        process_noise=0.1 + previous(u) ** 2,
        measurement_noise=0.3,
        name="late",
    ),
}


class Case:
    """A model with random numbers, some unknowns in the filter and some constant."""

    def __init__(self, package: Any, seed: int = 0, rows: int = 4) -> None:
        random = np.random.default_rng(seed)
        nx, nu, ny, nz = package.NX, package.NU, package.NY, package.NZ

        def covariance(size: int, scale: float) -> Array:
            root = random.normal(size=(size, size))
            return np.asarray(scale * (root @ root.T / max(size, 1) + np.eye(size)))

        self.active = np.array([*range(nx), *range(nx + 1, nz, 2)], dtype=np.int64)
        size = len(self.active)
        mean = np.concatenate([0.5 * random.normal(size=nx), package.numbers["prior_mean"] + 0.2])
        self.inputs, self.measurements = random.normal(size=(rows, nu)), random.normal(size=(rows, ny))
        self.measurements[1, 0] = np.nan
        D = np.eye(size - nx) + 0.1 * random.normal(size=(size - nx, size - nx))
        heard = len(getattr(package, "SIGNALS", ()))
        self.signals = random.uniform(0.5, 1.5, (rows, heard)) if heard else None
        noise = covariance(size, 0.05), covariance(ny, 0.2)
        self.filter = Filter(package, mean, covariance(size, 0.1), self.active, *noise, D, self.signals)

    def exact(self, model: Model, expected: bool = False, **changed: Any) -> tuple[mpmath.mpf, Any, Any]:
        f = self.filter
        own = Numbers(f.mean, f.covariance, f.process_noise, f.measurement_noise, self.inputs)
        run = ExactFilter(model, list(self.active), f.transition, self.signals)
        return run(own._replace(**changed), self.measurements, expected)


@pytest.mark.parametrize("name", list(MODELS))
def test_value_and_gradient_against_50_digits(name: str, interpreted_likelihood: Callable[[Model], Any]) -> None:
    model = MODELS[name]()
    case = Case(interpreted_likelihood(model))
    filtered = case.filter.run(case.inputs, case.measurements)
    exact = case.exact(model)[0]
    assert filtered.log_likelihood == pytest.approx(float(exact), rel=1e-12)
    mean, covariance, noise, measured, applied = case.filter.back(case.inputs, case.measurements, filtered)
    found, wanted = [], []
    with mpmath.workdps(60):
        for i in range(len(mean)):
            up, down = (
                [mpmath.mpf(m) + (sign * STEP if j == i else 0) for j, m in enumerate(case.filter.mean)]
                for sign in (1, -1)
            )
            found.append(mean[i])
            wanted.append((case.exact(model, mean=up)[0] - case.exact(model, mean=down)[0]) / (2 * STEP))
        random = np.random.default_rng(1)
        for key, slope in (("covariance", covariance), ("process_noise", noise), ("measurement_noise", measured)):
            if key != "covariance" and model.noise is not None:
                continue  # it is code
            base = getattr(case.filter, key)
            root = random.normal(size=base.shape)
            along = root + root.T
            up, down = (mpmath.matrix(base.tolist()) + sign * STEP * mpmath.matrix(along.tolist()) for sign in (1, -1))
            found.append(float(np.sum(slope * along)))
            change = case.exact(model, **{key: up.tolist()})[0] - case.exact(model, **{key: down.tolist()})[0]
            wanted.append(change / (2 * STEP))
    scale = max(abs(float(w)) for w in wanted)
    np.testing.assert_allclose(found, [float(w) for w in wanted], rtol=1e-9, atol=1e-10 * scale)
    # by the inputs: directional, with float differences of the interpreted filter itself
    along = np.random.default_rng(2).normal(size=case.inputs.shape)
    up, down = (case.filter.run(case.inputs + s * 1e-6 * along, case.measurements).log_likelihood for s in (1, -1))
    assert float(np.sum(applied * along)) == pytest.approx((up - down) / 2e-6, rel=1e-6)


@pytest.mark.parametrize("name", list(MODELS))
def test_the_backward_pass_of_an_expected_experiment(name: str, interpreted_likelihood: Callable[[Model], Any]) -> None:
    model = MODELS[name]()
    case = Case(interpreted_likelihood(model), seed=3)
    size = len(case.active)
    random = np.random.default_rng(4)
    by_mean, root = random.normal(size=len(case.filter.mean)), random.normal(size=(size, size))
    by_covariance = root + root.T

    def value(inputs: Array, mean: Array) -> float:
        last = case.filter._replace(mean=mean).run(inputs, case.measurements, expected=True)
        return float(by_mean @ last.means[-1] + np.sum(by_covariance * last.covariances[-1]))

    filtered = case.filter.run(case.inputs, case.measurements, expected=True)
    _, z, P = case.exact(model, expected=True)
    np.testing.assert_allclose(filtered.means[-1], [float(e) for e in z], rtol=1e-12)
    np.testing.assert_allclose(filtered.covariances[-1], np.array(P.tolist(), dtype=float), rtol=1e-10, atol=1e-12)
    back = case.filter.back(case.inputs, case.measurements, filtered, (by_mean, by_covariance), expected=True)
    for slope, along, up in (
        (back[4], random.normal(size=case.inputs.shape), lambda d: value(case.inputs + d, case.filter.mean)),
        (back[0], random.normal(size=case.filter.mean.shape), lambda d: value(case.inputs, case.filter.mean + d)),
    ):
        difference = (up(1e-6 * along) - up(-1e-6 * along)) / 2e-6
        assert float(np.sum(slope * along)) == pytest.approx(difference, rel=1e-6, abs=1e-7)


def test_no_slope_passes_where_curvature_takes_a_prediction_to_a_bound(
    interpreted_likelihood: Callable[[Model], Any],
) -> None:
    model = Model(
        [x, v],
        [u],
        [0.9 * x - unknown("a", 0.5) * x**2 + 0.3 * v + u, 0.8 * v + 0.2 * sp.sin(x)],
        state_bounds={x: (0, None)},
        filter="second_order",
        name="stopped",
    )
    package, D = interpreted_likelihood(model), np.eye(1)
    inputs, y = np.array([[-0.29], [0.1], [0.0]]), np.array([[np.nan, np.nan], [0.1, 0.1], [0.05, 0.2]])
    Q, R = np.diag([0.01, 0.02, 0.0]), np.diag([0.04, 0.05])

    def filtered(moved: Array) -> Filter:
        return Filter(package, np.array([0.4, 0.1, 0.5]) + moved, np.diag([0.15, 0.1, 0.04]), np.arange(3), Q, R, D)

    own = filtered(np.zeros(3))
    run = own.run(inputs, y)
    kept = 0.4 * 0.9 - 0.5 * 0.4**2 + 0.03 - 0.29
    assert run.means[1, 0] == 0.0 < kept  # f alone stays above
    differences = [
        (filtered(1e-6 * one).run(inputs, y).log_likelihood - filtered(-1e-6 * one).run(inputs, y).log_likelihood)
        / 2e-6
        for one in np.eye(3)
    ]
    np.testing.assert_allclose(own.back(inputs, y, run)[0], differences, rtol=1e-6)


# ------------------------------------------------------------------------------------------------ linear models


def kalman(A: Array, B: Array, C: Array, Q: Array, R: Array, m: Array, P: Array, inputs: Array, y: Array) -> float:
    """The log-likelihood of a linear model from the joint Gaussian of all measurements, without any recursion."""
    rows, n = len(y), len(m)
    mean, covariance = np.zeros(rows * n), np.zeros((rows * n, rows * n))
    mean[:n], covariance[:n, :n] = m, P
    for t in range(1, rows):
        now, before = slice(t * n, (t + 1) * n), slice((t - 1) * n, t * n)
        mean[now] = A @ mean[before] + B @ inputs[t - 1]
        covariance[now, : t * n] = A @ covariance[before, : t * n]
        covariance[: t * n, now] = covariance[now, : t * n].T
        covariance[now, now] = A @ covariance[before, before] @ A.T + Q
    big = np.kron(np.eye(rows), C)
    G = big @ covariance @ big.T + np.kron(np.eye(rows), R)
    e = y.ravel() - big @ mean
    used = np.isfinite(e)
    G, e = G[np.ix_(used, used)], e[used]
    return float(-0.5 * (e @ np.linalg.solve(G, e) + np.linalg.slogdet(G)[1] + len(e) * np.log(2 * np.pi)))


def test_a_linear_model_has_the_likelihood_of_the_joint_gaussian(
    interpreted_likelihood: Callable[[Model], Any],
) -> None:
    model = Model([x, v], [u], [0.9 * x + 0.4 * v, -0.2 * x + 0.8 * v + u], observation=[x, x - v], name="linear")
    random = np.random.default_rng(5)
    inputs, y = random.normal(size=(12, 1)), random.normal(size=(12, 2))
    y[3], y[7, 1] = np.nan, np.nan
    A, B, C = np.array([[0.9, 0.4], [-0.2, 0.8]]), np.array([[0.0], [1.0]]), np.array([[1.0, 0.0], [1.0, -1.0]])
    Q, R, P, m = np.diag([0.1, 0.3]), np.array([[0.2, 0.05], [0.05, 0.1]]), np.diag([2.0, 0.5]), np.array([0.3, -1.0])
    own = Filter(interpreted_likelihood(model), m, P, np.arange(2), Q, R, np.zeros((0, 0)))
    filtered = own.run(inputs, y)
    assert filtered.log_likelihood == pytest.approx(kalman(A, B, C, Q, R, m, P, inputs, y), rel=1e-11)
    mean, covariance, noise, measured, _ = own.back(inputs, y, filtered)
    for slope, change in (
        (mean, lambda d: kalman(A, B, C, Q, R, m + d, P, inputs, y)),
        (covariance, lambda d: kalman(A, B, C, Q, R, m, P + d, inputs, y)),
        (noise, lambda d: kalman(A, B, C, Q + d, R, m, P, inputs, y)),
        (measured, lambda d: kalman(A, B, C, Q, R + d, m, P, inputs, y)),
    ):
        root = random.normal(size=slope.shape)
        along = root + root.T if slope.ndim == 2 else root
        # a fourth-order difference: errors far below 1e-9
        h = 1e-4
        exact = (8 * (change(h * along) - change(-h * along)) - change(2 * h * along) + change(-2 * h * along)) / (
            12 * h
        )
        assert float(np.sum(slope * along)) == pytest.approx(exact, rel=1e-8)


def test_information_is_what_an_augmented_filter_gathers(interpreted_likelihood: Callable[[Model], Any]) -> None:
    # linear in (x, b) for fixed inputs: the posterior of b in the filter is prior precision plus information
    b, c = unknown("b", 1.0, 2.0), unknown("c", 0.5, 3.0)
    model = Model([x], [u], [0.8 * x + b * u + c], observation=[x], name="augmented")
    package = interpreted_likelihood(model)
    random = np.random.default_rng(6)
    inputs, y = random.normal(size=(15, 1)), random.normal(size=(15, 1))
    y[4] = np.nan
    Q, R, mean = np.array([[0.1]]), np.array([[0.2]]), np.array([0.0, 1.0, 0.5])
    known = Filter(package, mean, np.array([[0.3]]), np.arange(1), Q, R, np.zeros((0, 0)))
    told = known.information(inputs, y, known.run(inputs, y), np.eye(3)[:, 1:], parts=3)
    P = np.diag([0.3, 2.0, 3.0])
    whole = Filter(package, mean, P, np.arange(3), np.diag([0.1, 0.0, 0.0]), R, np.eye(2))
    after = whole.run(inputs, y).covariances[-1][1:, 1:]
    np.testing.assert_allclose(np.linalg.inv(after), np.diag([1 / 2.0, 1 / 3.0]) + told[-1], rtol=1e-9)
    part = known.information(inputs[:5], y[:5], known.run(inputs[:5], y[:5]), np.eye(3)[:, 1:])[0]
    np.testing.assert_allclose(told[0], part, rtol=1e-12)


def test_forecasts_are_those_of_a_filter_without_measurements(interpreted_likelihood: Callable[[Model], Any]) -> None:
    case = Case(interpreted_likelihood(MODELS["pendulum"]()), seed=7, rows=5)
    own, y = case.filter, case.measurements
    outputs, spreads = own.forecast(case.inputs, y, own.run(case.inputs, y), 3)
    for origin in range(4):
        blind = y.copy()
        blind[origin + 1 :] = np.nan
        alone = own.run(case.inputs, blind)
        for steps in range(1, min(3, 4 - origin) + 1):
            np.testing.assert_allclose(outputs[origin, steps - 1], alone.outputs[origin + steps], rtol=1e-12)
            np.testing.assert_allclose(spreads[origin, steps - 1], alone.variances[origin + steps], rtol=1e-12)
    assert np.isnan(outputs[3, 1:]).all() and np.isnan(outputs[4]).all()


# ------------------------------------------------------------------------------------------------ compiled


def test_the_compiled_likelihood_is_that_of_the_emitted_filter(toy_package: LoadedPackage) -> None:
    problem = symdual.problem(toy_package)
    random = np.random.default_rng(8)
    inputs, y = random.normal(size=(30, 1)), random.normal(size=(30, 1))
    y[5] = np.nan
    recording = Recording(np.arange(30.0), inputs, y, list(range(30)), [])
    numbers = toy_package.numbers
    noise = np.zeros((2, 2))
    noise[0, 0] = numbers["process_noise"][0, 0]
    own = Filter(
        *(toy_package, problem.prior.mean, problem.prior.covariance, np.arange(2), noise),
        *(numbers["measurement_noise"] + 0.1, np.eye(1)),
    )
    toy_package.numbers["measurement_noise"] = numbers["measurement_noise"] + 0.1
    try:
        again = replay(problem, recording)
    finally:
        toy_package.numbers["measurement_noise"] = numbers["measurement_noise"] - 0.1
    filtered = own.run(inputs, y)
    assert filtered.log_likelihood == pytest.approx(again.log_likelihood, rel=1e-9)
    np.testing.assert_allclose(filtered.means[-1], again.means[-1], rtol=1e-9)
    mean = own.back(inputs, y, filtered)[0]
    up, down = (own._replace(mean=own.mean + np.array([0.0, s * 1e-5])).run(inputs, y).log_likelihood for s in (1, -1))
    assert mean[1] == pytest.approx((up - down) / 2e-5, rel=1e-6)


def test_a_component_that_is_known_exactly_says_nothing(interpreted_likelihood: Callable[[Model], Any]) -> None:
    model = Model([x], [u], [0.5 * x + u], observation=[x, 2 * x], name="doubled")
    own = Filter(
        *(interpreted_likelihood(model), np.zeros(1), np.eye(1), np.arange(1)),
        *(np.eye(1), np.zeros((2, 2)), np.zeros((0, 0))),
    )
    filtered = own.run(np.zeros((2, 1)), np.array([[0.3, 0.6], [0.1, 0.2]]))
    assert filtered.stats[:, 2].tolist() == [1, 1]  # the second is the first once more
    single = Model([x], [u], [0.5 * x + u], observation=[x], name="single")
    alone = own._replace(package=interpreted_likelihood(single), measurement_noise=np.zeros((1, 1)))
    assert filtered.log_likelihood == pytest.approx(
        alone.run(np.zeros((2, 1)), np.array([[0.3], [0.1]])).log_likelihood
    )
    assert np.isfinite(own.back(np.zeros((2, 1)), np.array([[0.3, 0.6], [0.1, 0.2]]), filtered)[3]).all()


def test_a_filter_that_breaks_down_says_so(interpreted_likelihood: Callable[[Model], Any]) -> None:
    model = Model([x], [u], [x**2 + u], name="bursting")
    own = Filter(
        *(interpreted_likelihood(model), np.array([1e200]), np.eye(1), np.arange(1)),
        *(np.eye(1), np.eye(1), np.zeros((0, 0))),
    )
    with np.errstate(all="ignore"):
        assert np.isnan(own.run(np.zeros((4, 1)), np.full((4, 1), np.nan)).log_likelihood)


def test_every_kind_of_model_has_the_gradient_of_its_likelihood(
    zoo_model: Model, interpreted_likelihood: Callable[[Model], Any]
) -> None:
    """Families, products and functions of them: each has Hessian blocks of its own; directions against differences."""
    case = Case(interpreted_likelihood(zoo_model), seed=9, rows=3)
    own, y = case.filter, case.measurements
    mean, covariance, noise, measured, applied = own.back(case.inputs, y, own.run(case.inputs, y))
    random = np.random.default_rng(10)
    along = [random.normal(size=part.shape) for part in (mean, covariance, noise, measured, applied)]
    along[1:4] = [part + part.T for part in along[1:4]]

    def at(step: float) -> float:
        changed = Filter(
            *(own.package, own.mean + step * along[0], own.covariance + step * along[1], own.active),
            *(own.process_noise + step * along[2], own.measurement_noise + step * along[3], own.transition),
        )
        return changed.run(case.inputs + step * along[4], y).log_likelihood

    slope = sum(float(np.sum(a * b)) for a, b in zip(along, (mean, covariance, noise, measured, applied), strict=True))
    h = 1e-4
    difference = (8 * (at(h) - at(-h)) - at(2 * h) + at(-2 * h)) / (12 * h)
    assert slope == pytest.approx(difference, rel=1e-5, abs=1e-6)


# ------------------------------------------------------------------------------------------------ in `symdual check`


def test_check_compares_the_likelihood(interpreted_likelihood: Callable[[Model], Any]) -> None:
    model = MODELS["features"]()
    package = interpreted_likelihood(model)
    results = check_likelihood(model, package)
    assert len(results) == 6 and all(r.passed for r in results)
    assert max(r.error for r in results) < 1e-13
    forward, reverse = package.likelihood.forward, package.likelihood_gradient.reverse

    def larger(*arguments: Any) -> float:
        return float(forward(*arguments) * (1 + 1e-7))

    def steeper(setting: Any, recording: Any, trace: Any, slopes: Any, *scratch: Any) -> None:
        reverse(setting, recording, trace, slopes, *scratch)
        slopes.noise[0, 0] *= 1 + 1e-7
        slopes.inputs[1] += 1e-7 * slopes.inputs[0]

    package.likelihood.forward, package.likelihood_gradient.reverse = larger, steeper
    missed = {r.block for r in check_likelihood(model, package) if not r.passed}
    package.likelihood.forward, package.likelihood_gradient.reverse = forward, reverse
    assert missed == {"likelihood", "likelihood by process noise", "likelihood by inputs"}


def test_check_says_where_the_likelihood_is_not_finite(interpreted_likelihood: Callable[[Model], Any]) -> None:
    model = Model([x], [u], [sp.exp(sp.exp(sp.exp(10 + x**2))) + u], name="beyond")
    (result,) = check_likelihood(model, interpreted_likelihood(model))
    assert result.passed and result.undefined == 1


def test_check_knows_terms_of_second_order(interpreted_likelihood: Callable[[Model], Any]) -> None:
    model = MODELS["second_features"]()
    package = interpreted_likelihood(model)
    results = check_likelihood(model, package)
    assert len(results) == 6 and all(r.passed for r in results)
    assert max(r.error for r in results) < 1e-8
    plain = interpreted_likelihood(MODELS["features"]())
    missed = {r.block for r in check_likelihood(model, plain) if not r.passed}
    assert missed == {r.block for r in results}


@pytest.mark.parametrize(("name", "count"), [("signals", 6), ("noisy", 4), ("late", 4)])
def test_check_knows_signals_the_past_and_noise(
    name: str, count: int, interpreted_likelihood: Callable[[Model], Any]
) -> None:
    model = MODELS[name]()
    results = check_likelihood(model, interpreted_likelihood(model))
    assert len(results) == count and all(r.passed and not r.undefined for r in results)
    assert max(r.error for r in results) < 1e-11
