"""The filter against dense recursions, against scipy, and over long runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import sympy as sp

from symdual import Model, features
from symdual.checks import dense
from symdual.runtime.loading import LoadedPackage

from .conftest import Case

Make = Callable[..., Case]

# the interpreter warns where compiled code quietly gives the infinity that is meant
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")


class Filter:
    """A belief that the generated filter moves; hides whether a factor or a covariance is stored."""

    def __init__(self, c: Case) -> None:
        self.c, self.module = c, c.package.filter
        self.belief = c.held
        if c.package.SQUARE_ROOT:
            c.package.filter.factorise(self.belief)
        self.filter_workspace, self.stats = self.module.make_filter_workspace(c.settings), np.zeros(3)

    @property
    def z(self) -> np.ndarray:
        return self.belief["z"][0]

    @property
    def covariance(self) -> np.ndarray:
        if self.c.package.SQUARE_ROOT:
            self.c.package.filter.complete(self.belief)
        return self.c.package.records.read_covariance(self.belief)

    def predict(self, k: int, u: np.ndarray) -> None:
        self.module.predict(k, self.belief, u, self.filter_workspace)

    def update(self, k: int, y: np.ndarray, kind: str = "update") -> int:
        return int(getattr(self.module, kind)(k, self.belief, y, self.filter_workspace, self.stats))

    def step(self, k: int, u: np.ndarray, y: np.ndarray) -> int:
        return int(self.module.step(k, self.belief, u, y, self.filter_workspace))


@pytest.mark.parametrize(
    "name",
    [
        *("toy", "cart", "network", "drifting", "mixed", "values", "wide", "robust", "robust_drift", "robust_cart"),
        *("lit", "lit_robust"),
    ],
)
def test_steps_equal_the_dense_filter(case: Make, name: str) -> None:
    c = case(name)
    generated, belief = Filter(c), c.belief
    for k in range(6):
        u = c.random.normal(size=c.reference.nu)
        y = c.random.normal(size=c.reference.ny)
        if k == 3:
            y[-1] = np.nan
        if k < 4:
            assert generated.step(k, u, y) == (1 if np.isnan(y).all() else 0)
        else:  # the two halves by themselves
            generated.predict(k, u)
            assert generated.update(k + 1, y) == 0
        belief = dense.predict(c.reference, c.noise, k, belief, u)
        if not np.isnan(y).all():
            belief = dense.update(c.reference, c.noise, k + 1, belief, y)
        P = generated.covariance
        assert generated.z == pytest.approx(belief.mean, rel=1e-11, abs=1e-12)
        assert np.abs(P - belief.covariance).max() <= 1e-12 * np.abs(belief.covariance).max()
        assert (P == P.T).all()
        assert np.linalg.eigvalsh(P).min() >= -1e-12 * P.diagonal().max()


@pytest.mark.parametrize(
    "name",
    [
        *("second", "second_cart", "second_network", "second_product", "second_lit"),
        *("second_robust", "second_robust_network"),
    ],
)
def test_second_order_steps_equal_the_dense_filter(case: Make, name: str) -> None:
    c = case(name)
    generated, belief = Filter(c), c.belief
    for k in range(4):
        u = c.random.normal(size=c.reference.nu)
        y = c.random.normal(size=c.reference.ny)
        if k == 2:
            y[-1] = np.nan
        assert generated.step(k, u, y) == 0
        linear = dense.predict(c.reference, c.noise, k, belief, u)
        belief = dense.predict_second_order(c.reference, c.noise, k, belief, u)
        assert np.abs(belief.covariance - linear.covariance).max() > 1e-9  # curvature counts here
        belief = dense.update_second_order(c.reference, c.noise, k + 1, belief, y)
        P = generated.covariance
        assert generated.z == pytest.approx(belief.mean, rel=1e-10, abs=1e-12)
        assert np.abs(P - belief.covariance).max() <= 1e-11 * np.abs(belief.covariance).max()
        assert (P == P.T).all()
    generated, y = Filter(c), c.random.normal(size=c.reference.ny)
    assert generated.update(1, y, "update_consider") == 0
    expected = dense.update_second_order(c.reference, c.noise, 1, c.belief, y, learning=False)
    assert generated.z == pytest.approx(expected.mean, rel=1e-11)
    assert generated.covariance == pytest.approx(expected.covariance, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize(
    "name", ["recalibrated_angle", "recalibrated_lit", "recalibrated_network", "recalibrated_second_lit"]
)
def test_recalibrated_updates_equal_the_dense_filter(case: Make, name: str) -> None:
    c = case(name)
    second, undone, differ = name in ("recalibrated_network", "recalibrated_second_lit"), 0, 0
    for trial in range(12):
        c.belief = c.belief._replace(mean=c.random.normal(size=c.reference.nz))
        generated, y = Filter(c), 3.0 * c.random.normal(size=c.reference.ny)
        if trial == 2:
            y[-1] = np.nan
        status = generated.update(1, y)
        belief = dense.update_recalibrated(c.reference, c.noise, 1, c.belief, y, second_order=second)
        plain = dense.update_second_order if second else dense.update
        differ += np.abs(belief.covariance - plain(c.reference, c.noise, 1, c.belief, y).covariance).max() > 1e-6
        helped = not np.array_equal(belief.mean, c.belief.mean)
        assert status == (0 if helped or np.isnan(y).all() else 1)
        undone += not helped
        P = generated.covariance
        assert generated.z == pytest.approx(belief.mean, rel=1e-10, abs=1e-11)
        assert np.abs(P - belief.covariance).max() <= 1e-10 * np.abs(belief.covariance).max()
        assert np.linalg.eigvalsh(P).min() >= -1e-12 * P.diagonal().max()
    assert differ >= 11
    assert undone == (4 if name == "recalibrated_angle" else 0)


@pytest.mark.parametrize(
    "name",
    [
        *("smoothed", "smoothed_mixed", "smoothed_robust", "lit_iterated"),
        *("iterated_second", "iterated_second_cart", "iterated_second_network", "iterated_second_lit"),
    ],
)
def test_iterated_steps_equal_the_dense_filter(case: Make, name: str) -> None:
    c = case(name)
    generated, belief, second_order = Filter(c), c.belief, name.startswith("iterated")
    predict = dense.predict_second_order if second_order else dense.predict
    for k in range(4):
        u = c.random.normal(size=c.reference.nu)
        predicted = predict(c.reference, c.noise, k, belief, u)
        y = c.reference.observation(k + 1, predicted.mean) + 0.3 * c.random.normal(size=c.reference.ny)
        if k == 2:
            y[-1] = np.nan
        assert generated.step(k, u, y) == (1 if np.isnan(y).all() else 0)
        departure = dense.Departure(belief, u)
        there = dense.update_iterated(c.reference, c.noise, k + 1, predicted, y, departure, second_order=second_order)
        over_h = dense.update_iterated(c.reference, c.noise, k + 1, predicted, y, second_order=second_order)
        assert np.abs(there.mean - over_h.mean).max() > 1e-6  # the step before counts
        belief, P = there, generated.covariance
        tolerance = 1e-5 if second_order else 1e-9
        assert generated.z == pytest.approx(belief.mean, rel=tolerance, abs=tolerance)
        assert np.abs(P - belief.covariance).max() <= tolerance * np.abs(belief.covariance).max()
        assert (P == P.T).all()


@pytest.mark.parametrize("name", ["toy", "lit_robust"])
def test_many_recordings_at_once_are_one_after_the_other(case: Make, name: str) -> None:
    c = case(name)
    one, random = Filter(c), np.random.default_rng(5)
    inputs, seen = random.normal(size=(2, 3, c.package.NU)), random.normal(size=(2, 3, c.package.NY))
    start, alone = one.belief.copy(), []
    for u, y in zip(inputs, seen, strict=True):
        one.belief[:] = start
        for k in range(3):
            one.step(2 + k, u[k], y[k])
        alone.append(one.belief.copy())
    beliefs = np.repeat(start, 2)
    one.module.steps(2, beliefs, inputs, seen, one.filter_workspace)
    np.testing.assert_array_equal(beliefs, np.concatenate(alone))


@pytest.mark.parametrize("name", ["values", "robust"])
def test_innovation_statistics(case: Make, name: str) -> None:
    from scipy.stats import multivariate_normal

    c = case(name)
    generated = Filter(c)
    y = np.array([0.4, -0.3])
    C = c.reference.observation_jacobian(1, c.belief.mean)
    S = C @ c.belief.covariance @ C.T + c.noise.measurement
    e = y - c.reference.observation(1, c.belief.mean)
    generated.update(1, y)
    assert generated.stats == pytest.approx([multivariate_normal(cov=S).logpdf(e), e @ np.linalg.solve(S, e), 2.0])
    generated = Filter(c)
    generated.update(1, np.array([np.nan, -0.3]))
    alone = multivariate_normal(cov=S[1:, 1:]).logpdf(e[1:])
    assert generated.stats == pytest.approx([alone, e[1] ** 2 / S[1, 1], 1.0])


@pytest.mark.parametrize("name", ["cart", "values", "robust", "robust_cart", "lit", "lit_robust"])
def test_consider_update_leaves_the_parameters_alone(case: Make, name: str) -> None:
    c = case(name)
    generated, y = Filter(c), np.array([0.5, -0.2])
    assert generated.update(1, y, "update_consider") == 0
    expected = dense.update(c.reference, c.noise, 1, c.belief, y, learning=False)
    nx = c.reference.nx
    assert generated.z == pytest.approx(expected.mean, rel=1e-12)
    assert (generated.z[nx:] == c.belief.mean[nx:]).all()
    assert generated.covariance == pytest.approx(expected.covariance, rel=1e-11, abs=1e-13)


def test_iterated_update_finds_the_most_probable_state(case: Make) -> None:
    from scipy.optimize import minimize

    c = case("iterated")
    generated, y = Filter(c), c.reference.observation(1, c.belief.mean) + np.array([0.2, 0.3])
    assert generated.update(1, y) == 0
    found = minimize(lambda z: energy(c, y, z), generated.z, method="BFGS", options={"gtol": 1e-9}).fun
    once = gauss_newton(c, y, 1)
    assert energy(c, y, generated.z) == pytest.approx(found, rel=1e-8)
    assert energy(c, y, generated.z) < energy(c, y, once)


def energy(c: Case, y: np.ndarray, z: np.ndarray) -> float:
    """Minus twice the logarithm of the posterior density at z, up to a constant; what is NaN in y is not measured."""
    seen = ~np.isnan(y)
    d, e = z - c.belief.mean, (y - c.reference.observation(1, z))[seen]
    R = c.noise.measurement[np.ix_(seen, seen)]
    return float(d @ np.linalg.solve(c.belief.covariance, d) + e @ np.linalg.solve(R, e))


def gauss_newton(c: Case, y: np.ndarray, steps: int) -> np.ndarray:
    """The iterated update without step control, by its textbook formula."""
    mean, P = c.belief
    z = mean
    for _ in range(steps):
        C = c.reference.observation_jacobian(1, z)[~np.isnan(y)]
        e = (y - c.reference.observation(1, z))[~np.isnan(y)] - C @ (mean - z)
        R = c.noise.measurement[np.ix_(~np.isnan(y), ~np.isnan(y))]
        z = mean + P @ C.T @ np.linalg.solve(C @ P @ C.T + R, e)
    return z


@pytest.mark.parametrize("y", [[0.1, -0.2], [-0.3, np.nan]])
def test_iterated_update_finds_the_most_probable_state_where_whole_steps_never_settle(
    case: Make, y: list[float]
) -> None:
    from scipy.optimize import minimize

    c, measured = case("iterated_angle"), np.array(y)
    c.belief = dense.Belief(np.array([2.0, 1.0]), np.array([[9.0, 0.1], [0.1, 0.2]]))
    c.noise = c.noise._replace(measurement=np.array([[1e-2, 2e-3], [2e-3, 2e-2]]))
    generated = Filter(c)
    assert generated.update(1, measured) == generated.module.MEASURED
    best = min(
        (minimize(lambda z: energy(c, measured, z), start, method="BFGS") for start in ([2.0, 1.0], [0.0, 1.0])),
        key=lambda found: float(found.fun),
    )
    assert energy(c, measured, generated.z) == pytest.approx(best.fun, rel=1e-6)
    assert min(energy(c, measured, gauss_newton(c, measured, steps)) for steps in range(30, 41)) > 10.0 * best.fun
    # the covariance is that of the linearisation there
    C = c.reference.observation_jacobian(1, generated.z)[~np.isnan(measured)]
    P, R = c.belief.covariance, c.noise.measurement[: len(C), : len(C)]
    expected = P - P @ C.T @ np.linalg.solve(C @ P @ C.T + R, C @ P)
    assert generated.covariance == pytest.approx(expected, abs=1e-6 * P.max())


def test_an_iterated_update_that_stops_short_says_so(case: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    c, y = case("iterated_angle"), np.array([0.1, -0.2])
    c.belief = dense.Belief(np.array([2.0, 1.0]), np.array([[9.0, 0.1], [0.1, 0.2]]))
    c.noise = c.noise._replace(measurement=np.diag([1e-2, 2e-2]))
    costs = [energy(c, y, c.belief.mean)]
    for limit in range(1, 4):
        generated = Filter(c)
        monkeypatch.setattr(c.package.filter, "ITERATIONS", limit)
        assert generated.update(1, y) == c.package.filter.NOT_CONVERGED
        costs.append(energy(c, y, generated.z))
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < 0.5 * costs[0]


@pytest.mark.parametrize("name", ["cart", "robust_cart"])
def test_measurements_that_are_no_numbers(case: Make, name: str) -> None:
    c = case(name)
    generated = Filter(c)
    before = generated.belief.copy()
    for y, status in (([np.nan, np.nan], 1), ([np.inf, 0.0], 2), ([0.0, -np.inf], 2)):
        assert generated.update(1, np.array(y)) == status
        assert generated.belief.tobytes() == before.tobytes()
    generated.z[3] = np.nan
    assert generated.update(1, np.zeros(2)) == 2


@pytest.mark.parametrize("name", ["toy", "cart", "robust_cart"])
@pytest.mark.parametrize("process", [0.0, 1e-2])
def test_measurements_without_noise(case: Make, name: str, process: float) -> None:
    """R = 0, with and without process noise: exact states, no NaN, and a covariance."""
    c = case(name)
    n = c.reference.nx
    c.noise = c.noise._replace(process=process * np.eye(n), measurement=np.zeros((n, n)))
    truth, generated = 0.3 * c.random.normal(size=c.reference.nz), Filter(c)
    truth[:n] = c.belief.mean[:n]
    for k in range(200 if name == "robust_cart" else 500):
        u = np.array([0.5 * np.sin(0.9 * k) - 0.3 * truth[0] - 0.5 * truth[n - 1]])
        truth[:n] = c.reference.dynamics(k, truth, u) + np.sqrt(process) * c.random.normal(size=n)
        assert generated.step(k, u, truth[:n]) == 0
        P = generated.covariance
        assert np.isfinite(generated.z).all()
        assert (P == P.T).all()
        assert np.linalg.eigvalsh(P).min() >= -1e-12 * P.diagonal().max()
        if process > 0.0:
            assert generated.z[:n] == pytest.approx(truth[:n], rel=1e-6, abs=1e-6)


def test_linear_and_known_is_the_kalman_filter(case: Make) -> None:
    c = case("known")
    Q, R = np.array([[0.1]]), np.array([[0.3]])
    c.noise = dense.Noise(Q, R, np.zeros((0, 0)), np.zeros((0, 0)))
    c.belief = dense.Belief(np.array([0.5]), np.array([[2.0]]))
    generated, m, p = Filter(c), 0.5, 2.0
    for k in range(5):
        u, y = np.array([0.3]), np.array([1.0 - 0.2 * k])
        generated.step(k, u, y)
        m, p = m + 0.6, p + 0.1
        gain = p / (p + 0.3)
        m, p = m + gain * (y[0] - m), p * (1.0 - gain)
        assert generated.z[0] == pytest.approx(m, rel=1e-14)
        assert generated.covariance[0, 0] == pytest.approx(p, rel=1e-14)


def _wide_cart(count: int, **options: str) -> Model:
    x, v, u = sp.symbols("x v u")
    slope = features.fourier("g", x, count=count, lengthscale=1.0)
    return Model([x, v], [u], [x + 0.1 * v, 0.95 * v + slope + u], name=f"wide_cart{count}", **options)


@pytest.mark.parametrize("steps", [3000, pytest.param(100_000, marks=pytest.mark.soak)])
def test_long_runs_stay_covariances(compiled: Callable[[Model], LoadedPackage], steps: int) -> None:
    """100 000 steps with 300 parameters, prior variance 1e6 beside R = 1e-6."""
    package = compiled(_wide_cart(300))
    module, records, data = package.filter, package.records, package.numbers["data"]
    random = np.random.default_rng(0)
    truth = np.concatenate([[0.0, 0.0], 0.05 * random.normal(size=300)])
    belief = records.make_belief(np.zeros(302), np.diag(np.concatenate([np.full(2, 1e-6), np.full(300, 1e6)])))
    motion, bounds = (package.numbers["transition"], package.numbers["drift"]), np.array([[-np.inf], [np.inf]])
    filter_workspace = module.make_filter_workspace(
        records.make_settings(1e-8 * np.eye(2), 1e-6 * np.eye(2), *motion, bounds, data)
    )
    work, f = np.zeros(package.WORK), np.zeros(2)
    for k in range(steps):
        u = np.array([-0.3 * truth[0] - 0.5 * truth[1] + 0.3 * np.sin(0.001 * k * (1.0 + 0.1 * np.sin(0.01 * k)))])
        package.kernels.dynamics(k, truth, u, data, work, f)
        truth[:2] = f
        y = truth[:2] + 1e-3 * random.normal(size=2)
        assert module.step(k, belief, u, y, filter_workspace) == 0
        if k in (10, 100, 1000, 10_000, steps - 1):
            P = records.read_covariance(belief)
            assert np.isfinite(belief["z"]).all()
            assert (P == P.T).all()
            assert np.linalg.eigvalsh(P).min() >= -1e-12 * P.diagonal().max()
    assert abs(belief["z"][0, 0] - truth[0]) < 1e-2


@pytest.mark.parametrize(
    "name", ["doubting_cart", "doubting_angle", "doubting_robust", "doubting_lit", "doubting_smoothed"]
)
def test_outliers_count_as_in_the_dense_filter(case: Make, name: str) -> None:
    """Five times in a row they get more noise, then the states are widened; what is missing counts for nothing."""
    c = case(name)
    second, limit = name == "doubting_robust", c.package.OUTLIERS
    generated, belief, rejected = Filter(c), c.belief, np.zeros(c.reference.ny)
    told, widenings = np.zeros(c.reference.ny), 0
    for k in range(11):
        u, far = 0.3 * c.random.normal(size=c.reference.nu), np.where(np.arange(c.reference.ny) == 0, 30.0, 0.0)
        before = belief
        predict = dense.predict_second_order if second else dense.predict
        belief = predict(c.reference, c.noise, k, belief, u)
        y = c.reference.observation(k + 1, belief.mean) + (far if k != 3 else 0.0) * 0.5 ** (k > 6)
        if k == 2 and len(y) > 1:
            y[-1] = np.nan
        judged = dense.judge_outliers(
            c.reference, c.noise, k + 1, belief, y, rejected, limit=limit, second_order=second
        )
        assert generated.step(k, u, y) in (0, 1, 3)
        assert generated.belief["rejected"][0].tolist() == judged.rejected.tolist()
        told += judged.rejected
        widened = np.abs(judged.belief.covariance - belief.covariance).max() > 0.0
        widenings += widened
        given = c.reference, judged.noise, k + 1, judged.belief, y
        if name == "doubting_angle":
            belief = dense.update_recalibrated(*given)
        elif name == "doubting_smoothed":
            departure = None if widened else dense.Departure(before, u)
            belief = dense.update_iterated(*given, departure)
        else:
            belief = (dense.update_second_order if second else dense.update)(*given)
        rejected = judged.rejected
        P = generated.covariance
        assert generated.z == pytest.approx(belief.mean, rel=1e-8, abs=1e-9)
        assert np.abs(P - belief.covariance).max() <= 1e-8 * np.abs(belief.covariance).max()
    assert told[0] > 5
    assert widenings == 1
    assert not generated.filter_workspace.scratch["doubt"].any()
