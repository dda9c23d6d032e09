"""Every block operation alone against numpy, on models with random patterns of zeros."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual import Model, unknown
from symdual.emit.blocks import WRITTEN_OUT

Interpret = Callable[[Model], Any]

# states, inputs, unknowns, measurements, share of entries that are not zero; transition, drift
SHAPES: dict[str, tuple[int, int, int, int, float, str, str]] = {
    "one": (1, 1, 1, 1, 1.0, "identity", "none"),
    "small": (2, 1, 3, 2, 0.7, "identity", "none"),
    "moving": (3, 2, 4, 2, 0.6, "diagonal", "diagonal"),
    "mixing": (3, 2, 4, 3, 0.6, "dense", "dense"),
    "long": (2, 1, 11, 1, 1.0, "identity", "diagonal"),
    "wide": (7, 3, 5, 6, 0.8, "identity", "none"),
    "sparse": (9, 2, 12, 5, 0.3, "diagonal", "none"),
    "known": (3, 2, 0, 2, 0.8, "identity", "none"),
    "values": (3, 2, 13, 4, 0.6, "identity", "none"),
    "rare": (5, 2, 16, 3, 0.05, "identity", "none"),
    "many": (7, 3, 20, 4, 0.8, "identity", "none"),
    "selected": (2, 1, 9, 1, 1.0, "identity", "none"),
}
#: those with a low-rank form: eight unknowns or more, which do not move
LOW_RANK = ("values", "rare", "many", "selected")


def random_model(name: str) -> Model:
    """A model whose Jacobians have a random pattern of zeros; every second measurement is a state."""
    n, m, p, d, share, transition, drift = SHAPES[name]
    random = np.random.default_rng(list(SHAPES).index(name))
    x, u = sp.symbols(f"x0:{n}"), sp.symbols(f"u0:{m}")
    theta = [unknown(f"t{i}", 0.1, 1.0) for i in range(p)]

    def some(symbols: Any) -> Any:
        return sum((s for s in symbols if random.random() < share), sp.Integer(0))

    motion = [some(x) + some(u) + 0.1 * some(theta) * x[i] for i in range(n)]
    motion[0] += x[0] + u[0] + sum((0.1 * t * x[0] for t in theta), sp.Integer(0))
    seen = [x[a % n] if a % 2 == 0 else sp.sin(x[a % n]) + some(x) + some(theta) for a in range(d)]
    forms = {
        "identity": None,
        "none": None,
        "diagonal": random.uniform(0.5, 1.0, p),
        "dense": 0.3 * random.normal(size=(p, p)),
    }
    spread = forms[drift] if drift != "dense" else forms[drift] @ forms[drift].T
    return Model(
        list(x), list(u), motion, observation=seen, transition=forms[transition], drift=spread, name=f"random_{name}"
    )


class Dense:
    """Random records of a package beside the full matrices that they stand for."""

    def __init__(self, package: Any, seed: int = 0) -> None:
        self.package, self.random = package, np.random.default_rng(seed)
        r = package.records
        self.nx, self.nz, self.p, self.nu, self.ny = r.NX, r.NZ, r.NTHETA, r.NU, r.NY
        bounds = np.array([[-np.inf] * self.nu, [np.inf] * self.nu])
        Q, R = self.positive(self.nx), self.positive(self.ny)
        motion = package.numbers["transition"], package.numbers["drift"]
        self.settings = r.make_settings(Q, R, *motion, bounds, package.numbers["data"])[0]
        self.D, self.Xi = (value if value.ndim == 2 else np.diag(value) for value in motion)
        self.scratch, self.point, self.stage = (np.zeros(1, kind)[0] for kind in (r.SCRATCH, r.POINT, r.STAGE))
        self.noise = np.zeros((self.nz, self.nz))
        self.noise[: self.nx, : self.nx], self.noise[self.nx :, self.nx :] = Q, self.Xi
        self.R = R
        self._fill()
        self.width = r.WIDTH

    def positive(self, size: int) -> np.ndarray:
        root = self.random.normal(size=(size, size))
        return root @ root.T / size + 0.5 * np.eye(size)

    def matrix(self) -> tuple[Any, np.ndarray]:
        """A random symmetric matrix on z as a record, and as it is."""
        full = self.positive(self.nz)
        full = 0.5 * (full + full.T)
        return self.package.records.make_belief(np.zeros(self.nz), full), full

    def full(self, records: Any) -> np.ndarray:
        return np.asarray(self.package.records.read_covariance(records))

    def _fill(self) -> None:
        """Jacobians at a random point, from the kernels themselves: the zeros are those of the model."""
        kernels, work = self.package.kernels, np.zeros(self.package.WORK)
        z, u, data = self.random.normal(size=self.nz), self.random.normal(size=self.nu), self.package.numbers["data"]
        s, n = self.point, self.stage
        kernels.dynamics_jacobian(0, z, u, data, work, np.zeros(self.nx), s.f_x, s.f_u, s.f_theta)
        kernels.observation_jacobian(0, z, data, work, n.h, n.h_x, n.h_theta)
        self.A, self.B = np.zeros((self.nz, self.nz)), np.zeros((self.nz, self.nu))
        self.A[: self.nx, : self.nx], self.A[self.nx :, self.nx :] = s.f_x, self.D
        for row, values in zip(self.package.THETA_ROWS, s.f_theta, strict=True):
            self.A[row, self.nx :] = values[: self.p]
        self.B[: self.nx] = s.f_u
        self.C = np.zeros((self.ny, self.nz))
        self.C[:, : self.nx] = n.h_x
        for row, values in zip(self.package.H_THETA_ROWS, n.h_theta, strict=True):
            self.C[row, self.nx :] = values[: self.p]
        for row, state in enumerate(self.package.H_SELECTS):
            if state >= 0:
                self.C[row] = np.eye(self.nz)[state]

    def q(self) -> np.ndarray:
        """Random directions in the note."""
        values = self.random.normal(size=(self.ny, self.nz))
        self.stage.qx[:], self.stage.qt[:, : self.p] = values[:, : self.nx], values[:, self.nx :]
        return values


@pytest.fixture(params=list(SHAPES), scope="module")
def dense(request: pytest.FixtureRequest, interpret: Interpret) -> Dense:
    return Dense(interpret(random_model(request.param)))


def test_products_with_many_entries_are_loops_over_tables(dense: Dense) -> None:
    assert hasattr(dense.package.blocks, "F_X_STARTS") == (np.count_nonzero(dense.point.f_x) > WRITTEN_OUT)


def test_prediction(dense: Dense) -> None:
    blocks, (records, S) = dense.package.blocks, dense.matrix()
    blocks.multiply(records[0], dense.point, dense.scratch)
    rows = dense.A[list(dense.package.THETA_ROWS), dense.nx :]
    np.testing.assert_allclose(dense.scratch.product[:, : dense.p], rows @ S[dense.nx :, dense.nx :], rtol=1e-12)
    blocks.predict_covariance(records[0], dense.point, dense.settings.Q, dense.settings, dense.scratch)
    np.testing.assert_allclose(dense.full(records), dense.A @ S @ dense.A.T + dense.noise, rtol=1e-11, atol=1e-12)
    assert (records["xx"][0] == records["xx"][0].T).all()


def test_measurement(dense: Dense) -> None:
    blocks, (records, S) = dense.package.blocks, dense.matrix()
    dense.scratch.present[:] = 1.0
    blocks.project_parameters(records[0], dense.stage, dense.scratch)
    blocks.measure(records[0], dense.stage, dense.settings, dense.width, dense.scratch)
    L = np.linalg.cholesky(dense.C @ S @ dense.C.T + dense.R)
    q = np.linalg.solve(L, dense.C @ S)
    np.testing.assert_allclose(np.tril(dense.stage.root, -1), np.tril(L, -1), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(dense.stage.pivots, 1.0 / np.diag(L), rtol=1e-10)
    np.testing.assert_allclose(dense.stage.qx, q[:, : dense.nx], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(dense.stage.qt[:, : dense.p], q[:, dense.nx :], rtol=1e-9, atol=1e-11)


def test_reduction(dense: Dense) -> None:
    blocks, (records, S), nx = dense.package.blocks, dense.matrix(), dense.nx
    q = dense.q()
    less = S - q.T @ q
    blocks.reduce_states(records[0], dense.stage, dense.width)
    states = S.copy()
    states[:nx], states[:, :nx] = less[:nx], less[:, :nx]
    np.testing.assert_allclose(dense.full(records), states, rtol=1e-11, atol=1e-12)
    both = records.copy()
    blocks.reduce_parameters(records[0], dense.stage)
    np.testing.assert_allclose(dense.full(records), less, rtol=1e-11, atol=1e-12)
    assert (dense.full(records) == dense.full(records).T).all()
    blocks.reduce_and_multiply(both[0], dense.stage, dense.point, dense.scratch)
    np.testing.assert_allclose(dense.full(both), less, rtol=1e-11, atol=1e-12)
    rows = dense.A[list(dense.package.THETA_ROWS), nx:]
    np.testing.assert_allclose(dense.scratch.product[:, : dense.p], rows @ less[nx:, nx:], rtol=1e-9, atol=1e-11)


def test_a_step_back(dense: Dense) -> None:
    cost, (records, K), nx = dense.package.cost_blocks, dense.matrix(), dense.nx
    U, W, q = dense.positive(dense.nu), dense.positive(nx), dense.q()
    W = 0.5 * (W + W.T)
    free = np.ones(dense.nu, dtype=bool)
    free[-1] = dense.nu == 1
    dense.scratch.free[:] = free
    B, weights = dense.B * free, np.zeros((dense.nz, dense.nz))
    weights[:nx, :nx] = W
    # the two traces before the step
    inner = np.einsum("ai,ij,aj", q[:, nx:], K[nx:, nx:], q[:, nx:])
    assert cost.learned(records[0], dense.stage) == pytest.approx(inner, rel=1e-11)
    rest = np.einsum("ai,ij,aj", q, K, q) - inner
    assert cost.expected_states(records[0], dense.stage, dense.width) == pytest.approx(rest, rel=1e-10)
    # M and what the inputs take off
    cost.effort(records[0], dense.point, dense.width, dense.scratch)
    cost.effort_parameters(dense.point, dense.settings, dense.scratch)
    np.testing.assert_allclose(dense.scratch.Mx, (B.T @ K @ dense.A)[:, :nx], rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(dense.scratch.Mt[:, : dense.p], (B.T @ K @ dense.A)[:, nx:], rtol=1e-10, atol=1e-11)
    dense.scratch.Huu[:] += U
    cost.solve_effort(dense.width, dense.scratch)
    G = (U + B.T @ K @ B)[np.ix_(free, free)]
    M = (B.T @ K @ dense.A)[free]
    expected = weights + dense.A.T @ K @ dense.A - M.T @ np.linalg.solve(G, M)
    for i in range(nx):
        dense.package.blocks.apply_transition_transposed(records[0].xt[i], dense.settings, dense.scratch)
    found = cost.back_parameters(records[0], dense.point, dense.stage, dense.settings, dense.scratch)
    assert found == pytest.approx(inner, rel=1e-11)
    dense.package.riccati.couple_cost(records[0], dense.point)
    cost.back_mixed(records[0], dense.point, dense.width, dense.scratch)
    cost.back_states(records[0], dense.point, W, dense.scratch)
    np.testing.assert_allclose(dense.full(records), expected, rtol=1e-9, atol=1e-10)
    assert (records["xx"][0] == records["xx"][0].T).all()


def test_what_a_measurement_saves(dense: Dense) -> None:
    """V <- (I - Kf C)' V (I - Kf C), of the slopes of the dual cost."""
    adjoint, (covariance, S), (records, V) = dense.package.adjoint_blocks, dense.matrix(), dense.matrix()
    dense.scratch.present[:] = 1.0
    dense.package.blocks.project_parameters(covariance[0], dense.stage, dense.scratch)
    dense.package.blocks.measure(covariance[0], dense.stage, dense.settings, dense.width, dense.scratch)
    gain = np.linalg.solve(dense.C @ S @ dense.C.T + dense.R, dense.C @ S).T
    adjoint.filter_loss(records[0], dense.stage, dense.width, dense.scratch)
    found = np.hstack([dense.scratch.loss_x, dense.scratch.loss_t[:, : dense.p]])
    np.testing.assert_allclose(found, (V @ gain).T, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(dense.scratch.inner_loss, gain.T @ V @ gain, rtol=1e-9, atol=1e-10)
    adjoint.project_loss(dense.stage, dense.scratch)
    adjoint.adjoint_measurement(records[0], dense.stage, dense.width, dense.scratch)
    adjoint.adjoint_measurement_parameters(records[0], dense.stage, dense.scratch)
    left = np.eye(dense.nz) - gain @ dense.C
    np.testing.assert_allclose(dense.full(records), left.T @ V @ left, rtol=1e-9, atol=1e-9)


def test_feedback_and_what_it_leads_to(dense: Dense) -> None:
    """L = -(U + B' K B)^-1 B' K A, the rows of the states of K (A + B L), and N <- (A + B L) N (A + B L)'."""
    cost, adjoint = dense.package.cost_blocks, dense.package.adjoint_blocks
    (records, K), (spread, N), nx = dense.matrix(), dense.matrix(), dense.nx
    gradient, U = np.zeros(1, dense.package.records.GRADIENT)[0], dense.positive(dense.nu)
    dense.scratch.free[:] = 1.0
    cost.effort(records[0], dense.point, dense.width, dense.scratch)
    cost.effort_parameters(dense.point, dense.settings, dense.scratch)
    dense.scratch.Huu[:] += U
    cost.solve_effort(dense.width, dense.scratch)
    adjoint.feedback(gradient, dense.width, dense.scratch)
    L = -np.linalg.solve(U + dense.B.T @ K @ dense.B, dense.B.T @ K @ dense.A)
    np.testing.assert_allclose(np.hstack([gradient.gain_x, gradient.gain_t[:, : dense.p]]), L, rtol=1e-9, atol=1e-10)
    gradient.closed_loop_x[:], gradient.closed_loop_t[:, : dense.p] = K[:nx, :nx], K[:nx, nx:]
    adjoint.carry_rows(gradient.closed_loop_x, gradient.closed_loop_t, dense.point, dense.settings, dense.scratch)
    adjoint.close_rows(gradient, dense.width, dense.scratch)
    closed = dense.A + dense.B @ L
    reach = np.hstack([gradient.closed_loop_x, gradient.closed_loop_t[:, : dense.p]])
    np.testing.assert_allclose(reach, (K @ closed)[:nx], rtol=1e-9, atol=1e-9)
    adjoint.apply_gain(spread[0], gradient, dense.width, dense.scratch)
    np.testing.assert_allclose(dense.scratch.Huu, L @ N @ L.T, rtol=1e-9, atol=1e-10)
    adjoint.propagate_closed_loop(spread[0], dense.point, dense.settings, dense.scratch)
    np.testing.assert_allclose(dense.full(spread), closed @ N @ closed.T, rtol=1e-8, atol=1e-9)


def test_fields_of_a_record_do_not_overlap(dense: Dense) -> None:
    kinds = [kind for kind in vars(dense.package.records).values() if isinstance(kind, np.dtype)]
    assert len(kinds) > 10
    for kind in kinds:
        places = sorted((offset, offset + field.itemsize) for field, offset in kind.fields.values())
        assert all(first[1] <= second[0] for first, second in pairwise(places))
        assert not {
            name for name in kind.names if hasattr(np.zeros(1)[0], name)
        }  # un-jitted code would find numpy's own


class Values(Dense):
    """Matrices on (x, v) in low-rank form: v are `live` values to come, and behind them those of this step.

    Records hold random numbers wherever no value stands, which nobody may read.
    """

    def __init__(self, package: Any, ahead: int) -> None:
        super().__init__(package)
        r, rows, seen = package.records, package.THETA_ROWS, package.H_THETA_ROWS
        self.live, self.own = ahead * package.lowrank.BLOCK, (ahead + 1) * package.lowrank.BLOCK
        self.size = self.nx + self.own
        self.met = slice(self.nx + self.live, self.nx + self.live + r.NR)  # values of the dynamics
        self.seen = slice(self.nx + self.live + r.NR, self.size)  # values of the measurement
        self.scatter(self.scratch, "zeros")
        self.scatter(self.stage, "h_x")
        self.scratch.present[:] = 1.0
        self.F, self.G = np.eye(self.size), np.zeros((self.size, self.nu))
        self.F[: self.nx, : self.nx], self.F[rows, self.met] = self.point.f_x, np.eye(r.NR)
        self.G[: self.nx] = self.point.f_u
        self.H = np.zeros((self.ny, self.size))
        self.H[:, : self.nx], self.H[seen, self.seen] = self.C[:, : self.nx], np.eye(r.NHR)

    def scatter(self, record: Any, *but: str) -> None:
        """Random numbers in all fields of a record but some."""
        for name in record.dtype.names:
            if name not in but:
                record[name] = self.random.normal(size=record.dtype[name].shape)

    def symmetric(self, *absent: slice) -> np.ndarray:
        """A random symmetric matrix on (x, v) without some of the values."""
        full = self.positive(self.size)
        full = 0.5 * (full + full.T)
        for part in absent:
            full[part], full[:, part] = 0.0, 0.0
        return full

    def held(self, full: np.ndarray, width: int | None = None) -> Any:
        """The first values of a matrix as a record."""
        record, width, nx = np.zeros(1, self.package.records.GAUSSIAN)[0], self.own if width is None else width, self.nx
        self.scatter(record)
        record.xx[:], record.xt[:, :width] = full[:nx, :nx], full[:nx, nx : nx + width]
        record.tt[:width, :width] = full[nx : nx + width, nx : nx + width]
        return record

    def read(self, record: Any, width: int) -> np.ndarray:
        """A record as a matrix with the first values."""
        xt = record.xt[:, :width]
        return np.block([[record.xx, xt], [xt.T, record.tt[:width, :width]]])

    def rows(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Rows of which the parts of states and values are apart."""
        return np.hstack([x, v[:, : self.own]])

    def measure(self) -> np.ndarray:
        """Take a measurement into the note; returns the gain of the filter."""
        S, blocks = self.symmetric(), self.package.blocks
        record = self.held(S)
        self.package.lowrank.project_values(record, self.live, self.scratch)
        blocks.measure(record, self.stage, self.settings, self.live, self.scratch)
        return np.linalg.solve(self.H @ S @ self.H.T + self.R, self.H @ S).T

    def apply_gain(self, K: np.ndarray, gradient: Any) -> tuple[np.ndarray, np.ndarray]:
        """Let the inputs answer to the cost-to-go K; returns M and the feedback."""
        cost, U = self.package.cost_blocks, self.positive(self.nu)
        self.scratch.free[:] = 1.0
        cost.effort(self.held(K, self.live), self.point, self.live, self.scratch)
        self.package.lowrank.effort_values(self.live, self.scratch)
        self.scratch.Huu[:] += U
        cost.solve_effort(self.own, self.scratch)
        self.package.adjoint_blocks.feedback(gradient, self.own, self.scratch)
        curvature, mixed = U + self.G.T @ K @ self.G, self.G.T @ K @ self.F
        return np.linalg.solve(np.linalg.cholesky(curvature), mixed), -np.linalg.solve(curvature, mixed)

    def gradient(self) -> Any:
        record = np.zeros(1, self.package.records.GRADIENT)[0]
        self.scatter(record)
        return record


@pytest.fixture(params=LOW_RANK, scope="module")
def still(request: pytest.FixtureRequest, interpret: Interpret) -> Any:
    return interpret(random_model(request.param))


@pytest.fixture(params=["first step", "last step"])
def values(request: pytest.FixtureRequest, still: Any) -> Values:
    """With as many values to come as there is room for, or with none."""
    return Values(still, still.NTHETA // still.lowrank.BLOCK - 1 if request.param == "first step" else 0)


def test_values_are_of_several_kinds(still: Any) -> None:
    assert 2 * still.lowrank.BLOCK <= still.NTHETA  # so that some are still to come
    assert (len(still.THETA_ROWS) < still.NX) == ("rare" in still.module.__name__)
    assert (len(still.H_THETA_ROWS) == 0) == ("selected" in still.module.__name__)


def test_rows_of_states_are_saved(values: Values) -> None:
    S, target = values.held(values.symmetric()), values.held(values.symmetric())
    rest = target.copy()
    values.package.value_blocks.save_states(S, values.live, target)
    assert (target.xx == S.xx).all()
    assert (target.xt[:, : values.live] == S.xt[:, : values.live]).all()
    assert (target.xt[:, values.live :] == rest.xt[:, values.live :]).all()
    assert (target.tt == rest.tt).all()


def test_what_a_measurement_saves_in_low_rank_form(values: Values) -> None:
    """V' = (I - Kf C)' V (I - Kf C), in which the values of the measurement appear."""
    adjoint, gain, V = values.package.adjoint_blocks, values.measure(), values.symmetric(values.met, values.seen)
    record = values.held(V, values.live)
    adjoint.filter_loss(record, values.stage, values.live, values.scratch)
    adjoint.adjoint_measurement(record, values.stage, values.live, values.scratch)
    values.package.value_blocks.adjoint_measurement_values(record, values.stage, values.live, values.scratch)
    left = np.eye(values.size) - gain @ values.H
    written = np.delete(np.arange(values.size), values.met)
    found, expected = (one[np.ix_(written, written)] for one in (values.read(record, values.own), left.T @ V @ left))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def test_slopes_by_the_covariance_in_low_rank_form(values: Values) -> None:
    """The rows of the states of (K - V') A, what E = A' (K - V') A adds to those of the values, and its mixed block."""
    blocks, nx, live = values.package.value_blocks, values.nx, values.live
    K, V = values.symmetric(values.met, values.seen), values.symmetric(values.met)
    cost, saved = values.held(K, live), values.held(V)
    saved.xt[:, values.met.start - nx : values.met.stop - nx] = np.nan  # not there yet
    before = cost.copy()
    blocks.carry_values(cost, saved, values.point, live, values.scratch)
    rows = values.rows(values.scratch.rows_x, values.scratch.rows_t)
    np.testing.assert_allclose(rows, ((K - V) @ values.F)[:nx], rtol=1e-11, atol=1e-12)
    E = values.F.T @ (K - V) @ values.F
    blocks.write_values(cost, saved, live, values.scratch)
    expected = E[nx:, nx:].copy()
    expected[:live, :live] = before.tt[:live, :live]  # as it was
    np.testing.assert_allclose(cost.tt[: values.own, : values.own], expected, rtol=1e-11, atol=1e-12)
    assert (cost.xt == before.xt).all()
    blocks.write_mixed(cost, values.point, values.own, values.scratch)
    np.testing.assert_allclose(cost.xt[:, : values.own], E[:nx, nx:], rtol=1e-11, atol=1e-12)
    assert (cost.xx == before.xx).all()


def test_a_step_back_in_low_rank_form(values: Values) -> None:
    """K (A + B L), and V = A' V' A - M' M."""
    blocks, cost, nx = values.package.value_blocks, values.package.cost_blocks, values.nx
    K, V, gradient = values.symmetric(values.met, values.seen), values.symmetric(values.met), values.gradient()
    M, L = values.apply_gain(K, gradient)
    blocks.store_closed_loop_rows(values.held(K, values.live), values.point, values.live, gradient, values.scratch)
    reach = values.rows(gradient.closed_loop_x, gradient.closed_loop_t)
    np.testing.assert_allclose(reach, (K @ (values.F + values.G @ L))[:nx], rtol=1e-9, atol=1e-10)
    record, expected = values.held(V), values.F.T @ V @ values.F - M.T @ M
    blocks.back_saved(record, values.live, values.scratch)
    np.testing.assert_allclose(record.tt[: values.own, : values.own], expected[nx:, nx:], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(record.xt[:, : values.own], (V @ values.F)[:nx, nx:], rtol=1e-12)
    cost.back_mixed(record, values.point, values.own, values.scratch)
    cost.back_states(record, values.point, values.scratch.zeros, values.scratch)
    np.testing.assert_allclose(values.read(record, values.own), expected, rtol=1e-9, atol=1e-9)


def test_the_spread_in_low_rank_form(values: Values) -> None:
    """N <- (A + B L) N (A + B L)' - q' q: in `adjoint_lowrank` it has the other sign."""
    blocks, nx, kept = values.package.value_blocks, values.nx, values.nx + values.live
    N, gradient = values.symmetric(), values.gradient()
    _, L = values.apply_gain(values.symmetric(values.met, values.seen), gradient)
    record, closed = values.held(N), values.F + values.G @ L
    values.package.adjoint_blocks.apply_gain(record, gradient, values.own, values.scratch)
    blocks.move_values(record, values.point, values.live, values.scratch)
    moved = (closed @ N @ closed.T)[:kept, :kept]
    np.testing.assert_allclose(values.read(record, values.live), moved, rtol=1e-9, atol=1e-9)
    before, q = record.copy(), values.random.normal(size=(values.ny, values.live))
    values.stage.qt[:, : values.live] = q
    blocks.learn_values(record, values.stage, values.live)
    np.testing.assert_allclose(values.read(record, values.live)[nx:, nx:], moved[nx:, nx:] - q.T @ q, rtol=1e-9)
    assert (record.xx == before.xx).all()
    assert (record.xt == before.xt).all()
    blocks.clear_values(record, values.live)
    assert (values.read(record, values.live) == 0.0).all()
    assert (record.xt[:, values.live :] == before.xt[:, values.live :]).all()
