"""Noise and hyperparameters together, and what is known of the begins: against one dense Gaussian of everything."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sympy as sp

from symdual import Model, Scenario, SymdualError, features, unknown
from symdual.common.arrays import Array
from symdual.identification.fitted import fitted
from symdual.identification.noise import Noises, parts
from symdual.identification.processes.evidence import Evidence
from symdual.identification.processes.likelihood import ProcessLikelihood
from symdual.identification.processes.setup import ProcessSetup, setup_for, with_noise
from symdual.identification.processes.trajectory import Estimate, Trajectories
from symdual.spec.fitted import read_fit

from .conftest import table

p, v, u = sp.symbols("p v u")
DRIVE = 1.3


def model() -> Model:
    drive = unknown("drive", 1.0, 0.25)
    slope = features.gaussian_process("slope", p, lengthscale=1.0, amplitude=1.0)
    return Model(
        [p, v],
        [u],
        [p + 0.4 * v, 0.9 * v + 0.5 * slope + drive * u + 0.1 * sp.sin(v)],
        observation=[p, p + 0.2 * v**2],
        process_noise=[[1e-3, 3e-4], [3e-4, 4e-3]],
        measurement_noise=[1e-2, 3e-2],
        drift=[1e-4] + [0.0] * 64,
        name="cart",
    )


def recording(file: Path, rows: int, seed: int) -> Path:
    random = np.random.default_rng(seed)
    x, columns = np.array([0.3 * seed, 0.0]), []
    for k in range(rows):
        force = float(random.normal() - 0.5 * x[0])
        seen = np.array([x[0], x[0] + 0.2 * x[1] ** 2]) + np.array([0.05, 0.1]) * random.normal(size=2)
        columns.append([k, force, *np.where(random.random(2) < 0.1, np.nan, seen)])
        x = np.array([x[0] + 0.4 * x[1], 0.9 * x[1] + 0.25 * np.sin(x[0]) + DRIVE * force + 0.1 * np.sin(x[1])])
        x += np.array([0.03, 0.06]) * random.normal(size=2)
    file.write_text(table(["time", "u", "p", "y1"], list(np.array(columns).T)))
    return file


@pytest.fixture
def setup(tmp_path: Path) -> ProcessSetup:
    files = [recording(tmp_path / "one.csv", 14, 1), recording(tmp_path / "two.csv", 9, 2)]
    return with_noise(setup_for(model(), Scenario(model(), 5, name="s", start_covariance=[0.2, 0.1]), files))


class Dense:
    """All states of both recordings and all measurements as one Gaussian, for given noise and kernel."""

    def __init__(self, evidence: Evidence, psi: Array) -> None:
        setup, system = evidence.setup.under(psi), evidence.system
        self.setup, size, steps = setup, len(setup.start), setup.steps
        self.T = np.zeros(((steps + 1) * size, (steps + 1) * size))
        self.T[:size, :size] = np.eye(size)
        count = system.gains.shape[2]
        L, mean = np.zeros(((steps + 1) * size, steps * count)), [setup.start]
        for t in range(steps):
            here, after = slice(size * t, size * (t + 1)), slice(size * (t + 1), size * (t + 2))
            self.T[after] = system.transition[t] @ self.T[here]
            self.T[after, after] = np.eye(size)
            L[after] = system.transition[t] @ L[here]
            L[after, count * t : count * (t + 1)] = system.gains[t]
            mean.append(system.transition[t] @ mean[-1] + system.offset[t])
        (block,), (function,) = system.blocks, evidence.functions
        K = function.gram(block.points, block.points, [float(np.exp(a)) for a in psi[:2]])
        C = np.zeros((len(setup.times) * 2, (steps + 1) * size))
        for row, t in enumerate(setup.times):
            C[2 * row : 2 * row + 2, size * t : size * (t + 1)] = system.observation[row]
        y = (setup.measurements - system.shift).ravel()
        self.seen = np.isfinite(y)
        self.C, self.mean = C[self.seen], np.concatenate(mean)
        self.L, self.K = L, K
        self.P = self.T @ self.sources(setup.process_noise, begins=True) @ self.T.T + L @ K @ L.T
        self.S = self.C @ self.P @ self.C.T + self.measured(setup.measurement_noise)
        self.e = y[self.seen] - self.C @ self.mean
        self.inverse = np.linalg.inv(self.S)

    def sources(self, noise: Array, begins: bool = False) -> Array:
        size = len(noise)
        found = np.kron(np.eye(self.setup.steps + 1), noise)
        for t in (-1, *self.setup.breaks):
            found[size * (t + 1) : size * (t + 2), size * (t + 1) : size * (t + 2)] = 0.0
            if begins:
                own = self.setup.start_covariance.copy()
                own[2:, 2:] *= t == -1  # the unknowns go on
                found[size * (t + 1) : size * (t + 2), size * (t + 1) : size * (t + 2)] = own
        return found

    def measured(self, noise: Array) -> Array:
        return np.asarray(np.kron(np.eye(len(self.setup.times)), noise)[np.ix_(self.seen, self.seen)])

    def log_likelihood(self) -> float:
        determinant = np.linalg.slogdet(self.S)[1]
        return float(-0.5 * (self.e @ self.inverse @ self.e + determinant + len(self.e) * np.log(2 * np.pi)))

    def slope(self, dS: Array) -> float:
        a = self.inverse @ self.e
        return float(0.5 * np.sum((np.outer(a, a) - self.inverse) * dS))

    def known(self, t: int) -> tuple[Array, Array]:
        own = slice(3 * t, 3 * t + 3)
        gain = self.P[own] @ self.C.T @ self.inverse
        return self.mean[own] + gain @ self.e, self.P[own, own] - gain @ self.C @ self.P[:, own]


def test_value_gradient_and_begins_are_those_of_the_dense_gaussian(setup: ProcessSetup) -> None:
    assert setup.names[2:] == (
        *("process_noise[p]", "process_noise[v,p]", "process_noise[v]"),
        *("measurement_noise[p]", "measurement_noise[y1]", "drift[drive]"),
    )
    assert setup.breaks == {13} and setup.steps == 22
    random, found = np.random.default_rng(0), Trajectories(setup)
    along = found.first(setup.psi).trajectory + 0.1 * random.normal(size=(setup.steps + 1, 3))
    evidence = found.evidence(Estimate(along, found.lineariser.prior), setup.psi)
    psi = setup.psi + 0.3 * random.normal(size=len(setup.psi))
    dense, value = Dense(evidence, psi), evidence.at(psi)
    assert value.log_likelihood == pytest.approx(dense.log_likelihood(), rel=1e-10)
    for block, part in parts(setup.blocks):
        for got, tangent in zip(value.gradient[2:][part], block.tangents(psi[2:][part]), strict=True):
            zero = Noises(np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((1, 1)))
            getattr(zero, block.kind)[np.ix_(block.indices, block.indices)] = tangent
            noise = np.zeros((3, 3))
            noise[:2, :2], noise[2:, 2:] = zero.process_noise, zero.drift
            dS = dense.C @ dense.T @ dense.sources(noise) @ dense.T.T @ dense.C.T
            dS += dense.measured(zero.measurement_noise)
            assert got == pytest.approx(dense.slope(dS), rel=1e-8, abs=1e-9)
    first, second = evidence.score(psi).begins
    mean, covariance = dense.known(0)
    np.testing.assert_allclose(first.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(first.covariance, covariance, rtol=1e-7, atol=1e-12)
    mean, covariance = dense.known(14)
    np.testing.assert_allclose(second.mean[:2], mean[:2], rtol=1e-9)
    np.testing.assert_allclose(second.covariance[:2, :2], covariance[:2, :2], rtol=1e-7, atol=1e-12)


def test_values_elsewhere_are_those_of_the_dense_gaussian(setup: ProcessSetup) -> None:
    random, found = np.random.default_rng(1), Trajectories(setup)
    along = found.first(setup.psi).trajectory + 0.1 * random.normal(size=(setup.steps + 1, 3))
    evidence = found.evidence(Estimate(along, found.lineariser.prior), setup.psi)
    psi = setup.psi + 0.2 * random.normal(size=len(setup.psi))
    dense, points = Dense(evidence, psi), np.linspace(-3.0, 3.0, 5)[:, None]
    (block,), (function,) = evidence.system.blocks, evidence.functions
    values = [float(np.exp(a)) for a in psi[:2]]
    between, among = (function.gram(one, points, values) for one in (block.points, points))
    shown = dense.C @ dense.L
    gain = between.T @ shown.T @ dense.inverse
    told = evidence.elsewhere(psi, [points])
    np.testing.assert_allclose(told.mean, gain @ dense.e, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(told.covariance, among - gain @ shown @ between, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(told.shared, between - dense.K @ shown.T @ gain.T, rtol=1e-7, atol=1e-9)
    # together with the first state and the unknown
    first = -evidence.setup.start_covariance @ evidence.score(psi).response @ told.shared
    np.testing.assert_allclose(first, -dense.P[:3] @ dense.C.T @ gain.T, rtol=1e-7, atol=1e-9)


@pytest.mark.soak
def test_noise_unknowns_and_hyperparameters_are_found_together(tmp_path: Path) -> None:
    files = [recording(tmp_path / "one.csv", 90, 1), recording(tmp_path / "two.csv", 60, 2)]
    scenario = Scenario(model(), 5, name="s", start_covariance=[0.2, 0.1])
    result = fitted(ProcessLikelihood(with_noise(setup_for(model(), scenario, files), hold=["drift"])))
    assert result.converged and result.log_likelihood > result.start_log_likelihood
    for name, truth in (("process_noise[v]", 0.06**2), ("measurement_noise[p]", 0.05**2)):
        assert abs(np.log(result[name].value / truth)) < 3 * np.log(result[name].factor)
    drive = result["drive"]
    assert abs(drive.value - DRIVE) < 4 * drive.deviation < drive.before
    for one, truth in (("one", 0.3), ("two", 0.6)):
        begin = result[f"{one}: start[p]"]
        assert abs(begin.value - truth) < 4 * begin.deviation
    content = read_fit(result.to_json())
    assert content.unknowns == ("drive",) and content.mean[0] == pytest.approx(drive.value, rel=1e-9)
    assert content.noises["process_noise"][1, 1] == pytest.approx(result["process_noise[v]"].value, rel=1e-9)
    covariance = result["process_noise[v,p]"]
    assert content.noises["process_noise"][0, 1] == pytest.approx(covariance.value, rel=1e-9)
    assert covariance.deviation is not None and abs(covariance.value) < 4 * covariance.deviation  # the truth has none


def test_the_drift_has_the_names_of_all_unknowns(setup: ProcessSetup) -> None:
    only = ProcessLikelihood(with_noise(setup, only=["drift"]))
    content = fitted(only, starts=1).to_json()
    names = setup.model.unknown_names
    assert content["drift_of"] == list(names) and len(content["drift"]) == len(names) == 65
    drift = read_fit(content).drift(names[::-1])
    assert drift is not None and drift[-1] > 0 and not drift[:-1].any()


def test_what_is_not_there_cannot_be_fitted(setup: ProcessSetup) -> None:
    with pytest.raises(SymdualError, match=r'"slope_lengthscal".*did you mean "slope_lengthscale"'):
        with_noise(setup, only=["slope_lengthscal"])
    with pytest.raises(SymdualError, match="there is nothing to fit"):
        with_noise(setup, only=["slope"], hold=["slope"])
    held = with_noise(setup, only=["slope"], hold=["slope_amplitude"])
    assert held.blocks == () and "slope_amplitude" in held.held


def test_a_process_that_drifts_takes_one_recording(tmp_path: Path) -> None:
    g = features.gaussian_process("g", p)
    drifting = Model([p], [u], [p + g + u], process_noise=1e-2, measurement_noise=1e-2, drift=0.1, name="m")
    file = tmp_path / "a.csv"
    file.write_text(table(["time", "u", "p"], [np.arange(5), np.zeros(5), np.zeros(5)]))
    with pytest.raises(SymdualError, match="m drifts: fit its recordings one by one"):
        setup_for(drifting, Scenario(drifting, 5, name="s"), [file, file])
