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
        self.task = r.make_task(Q, R, *motion, bounds, package.numbers["data"])[0]
        self.D, self.Xi = (value if value.ndim == 2 else np.diag(value) for value in motion)
        self.space, self.step, self.note = (np.zeros(1, kind)[0] for kind in (r.SPACE, r.STEP, r.NOTE))
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
        s, n = self.step, self.note
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
        self.note.qx[:], self.note.qt[:, : self.p] = values[:, : self.nx], values[:, self.nx :]
        return values


@pytest.fixture(params=list(SHAPES), scope="module")
def dense(request: pytest.FixtureRequest, interpret: Interpret) -> Dense:
    return Dense(interpret(random_model(request.param)))


def test_products_with_many_entries_are_loops_over_tables(dense: Dense) -> None:
    assert hasattr(dense.package.blocks, "F_X_STARTS") == (np.count_nonzero(dense.step.f_x) > WRITTEN_OUT)


def test_prediction(dense: Dense) -> None:
    blocks, (records, S) = dense.package.blocks, dense.matrix()
    blocks.multiply(records[0], dense.step, dense.space)
    rows = dense.A[list(dense.package.THETA_ROWS), dense.nx :]
    np.testing.assert_allclose(dense.space.product[:, : dense.p], rows @ S[dense.nx :, dense.nx :], rtol=1e-12)
    blocks.predict_covariance(records[0], dense.step, dense.task.Q, dense.task, dense.space)
    np.testing.assert_allclose(dense.full(records), dense.A @ S @ dense.A.T + dense.noise, rtol=1e-11, atol=1e-12)
    assert (records["xx"][0] == records["xx"][0].T).all()


def test_measurement(dense: Dense) -> None:
    blocks, (records, S) = dense.package.blocks, dense.matrix()
    dense.space.present[:] = 1.0
    blocks.see_parameters(records[0], dense.note, dense.space)
    blocks.measure(records[0], dense.note, dense.task, dense.width, dense.space)
    L = np.linalg.cholesky(dense.C @ S @ dense.C.T + dense.R)
    q = np.linalg.solve(L, dense.C @ S)
    np.testing.assert_allclose(np.tril(dense.note.root, -1), np.tril(L, -1), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(dense.note.pivots, 1.0 / np.diag(L), rtol=1e-10)
    np.testing.assert_allclose(dense.note.qx, q[:, : dense.nx], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(dense.note.qt[:, : dense.p], q[:, dense.nx :], rtol=1e-9, atol=1e-11)


def test_reduction(dense: Dense) -> None:
    blocks, (records, S), nx = dense.package.blocks, dense.matrix(), dense.nx
    q = dense.q()
    less = S - q.T @ q
    blocks.reduce_states(records[0], dense.note, dense.width)
    states = S.copy()
    states[:nx], states[:, :nx] = less[:nx], less[:, :nx]
    np.testing.assert_allclose(dense.full(records), states, rtol=1e-11, atol=1e-12)
    both = records.copy()
    blocks.reduce_parameters(records[0], dense.note)
    np.testing.assert_allclose(dense.full(records), less, rtol=1e-11, atol=1e-12)
    assert (dense.full(records) == dense.full(records).T).all()
    blocks.reduce_and_multiply(both[0], dense.note, dense.step, dense.space)
    np.testing.assert_allclose(dense.full(both), less, rtol=1e-11, atol=1e-12)
    rows = dense.A[list(dense.package.THETA_ROWS), nx:]
    np.testing.assert_allclose(dense.space.product[:, : dense.p], rows @ less[nx:, nx:], rtol=1e-9, atol=1e-11)


def test_a_step_back(dense: Dense) -> None:
    cost, (records, K), nx = dense.package.cost_blocks, dense.matrix(), dense.nx
    U, W, q = dense.positive(dense.nu), dense.positive(nx), dense.q()
    W = 0.5 * (W + W.T)
    free = np.ones(dense.nu, dtype=bool)
    free[-1] = dense.nu == 1
    dense.space.free[:] = free
    B, weights = dense.B * free, np.zeros((dense.nz, dense.nz))
    weights[:nx, :nx] = W
    # the two traces before the step
    inner = np.einsum("ai,ij,aj", q[:, nx:], K[nx:, nx:], q[:, nx:])
    assert cost.learned(records[0], dense.note) == pytest.approx(inner, rel=1e-11)
    rest = np.einsum("ai,ij,aj", q, K, q) - inner
    assert cost.expected_states(records[0], dense.note, dense.width) == pytest.approx(rest, rel=1e-10)
    # M and what the inputs take off
    cost.effort(records[0], dense.step, dense.width, dense.space)
    cost.effort_parameters(dense.step, dense.task, dense.space)
    np.testing.assert_allclose(dense.space.Mx, (B.T @ K @ dense.A)[:, :nx], rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(dense.space.Mt[:, : dense.p], (B.T @ K @ dense.A)[:, nx:], rtol=1e-10, atol=1e-11)
    dense.space.Huu[:] += U
    cost.solve_effort(dense.width, dense.space)
    G = (U + B.T @ K @ B)[np.ix_(free, free)]
    M = (B.T @ K @ dense.A)[free]
    expected = weights + dense.A.T @ K @ dense.A - M.T @ np.linalg.solve(G, M)
    for i in range(nx):
        dense.package.blocks.move_vector_back(records[0].xt[i], dense.task, dense.space)
    found = cost.back_parameters(records[0], dense.step, dense.note, dense.task, dense.space)
    assert found == pytest.approx(inner, rel=1e-11)
    dense.package.riccati.meet_cost(records[0], dense.step)
    cost.back_mixed(records[0], dense.step, dense.width, dense.space)
    cost.back_states(records[0], dense.step, W, dense.space)
    np.testing.assert_allclose(dense.full(records), expected, rtol=1e-9, atol=1e-10)
    assert (records["xx"][0] == records["xx"][0].T).all()


def test_what_a_measurement_saves(dense: Dense) -> None:
    """V <- (I - Kf C)' V (I - Kf C), of the slopes of the dual cost."""
    adjoint, (covariance, S), (records, V) = dense.package.adjoint_blocks, dense.matrix(), dense.matrix()
    dense.space.present[:] = 1.0
    dense.package.blocks.see_parameters(covariance[0], dense.note, dense.space)
    dense.package.blocks.measure(covariance[0], dense.note, dense.task, dense.width, dense.space)
    gain = np.linalg.solve(dense.C @ S @ dense.C.T + dense.R, dense.C @ S).T
    adjoint.filter_loss(records[0], dense.note, dense.width, dense.space)
    found = np.hstack([dense.space.loss_x, dense.space.loss_t[:, : dense.p]])
    np.testing.assert_allclose(found, (V @ gain).T, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(dense.space.inner_loss, gain.T @ V @ gain, rtol=1e-9, atol=1e-10)
    adjoint.see_loss(dense.note, dense.space)
    adjoint.look_back(records[0], dense.note, dense.width, dense.space)
    adjoint.look_back_parameters(records[0], dense.note, dense.space)
    left = np.eye(dense.nz) - gain @ dense.C
    np.testing.assert_allclose(dense.full(records), left.T @ V @ left, rtol=1e-9, atol=1e-9)


def test_feedback_and_what_it_leads_to(dense: Dense) -> None:
    """L = -(U + B' K B)^-1 B' K A, the rows of the states of K (A + B L), and N <- (A + B L) N (A + B L)'."""
    cost, adjoint = dense.package.cost_blocks, dense.package.adjoint_blocks
    (records, K), (spread, N), nx = dense.matrix(), dense.matrix(), dense.nx
    pull, U = np.zeros(1, dense.package.records.PULL)[0], dense.positive(dense.nu)
    dense.space.free[:] = 1.0
    cost.effort(records[0], dense.step, dense.width, dense.space)
    cost.effort_parameters(dense.step, dense.task, dense.space)
    dense.space.Huu[:] += U
    cost.solve_effort(dense.width, dense.space)
    adjoint.feedback(pull, dense.width, dense.space)
    L = -np.linalg.solve(U + dense.B.T @ K @ dense.B, dense.B.T @ K @ dense.A)
    np.testing.assert_allclose(np.hstack([pull.Lx, pull.Lt[:, : dense.p]]), L, rtol=1e-9, atol=1e-10)
    pull.reach_x[:], pull.reach_t[:, : dense.p] = K[:nx, :nx], K[:nx, nx:]
    adjoint.carry_rows(pull.reach_x, pull.reach_t, dense.step, dense.task, dense.space)
    adjoint.close_rows(pull, dense.width, dense.space)
    closed = dense.A + dense.B @ L
    reach = np.hstack([pull.reach_x, pull.reach_t[:, : dense.p]])
    np.testing.assert_allclose(reach, (K @ closed)[:nx], rtol=1e-9, atol=1e-9)
    adjoint.answer(spread[0], pull, dense.width, dense.space)
    np.testing.assert_allclose(dense.space.Huu, L @ N @ L.T, rtol=1e-9, atol=1e-10)
    adjoint.move_spread(spread[0], dense.step, dense.task, dense.space)
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
        self.scatter(self.space, "nothing")
        self.scatter(self.note, "h_x")
        self.space.present[:] = 1.0
        self.F, self.G = np.eye(self.size), np.zeros((self.size, self.nu))
        self.F[: self.nx, : self.nx], self.F[rows, self.met] = self.step.f_x, np.eye(r.NR)
        self.G[: self.nx] = self.step.f_u
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
        record, width, nx = np.zeros(1, self.package.records.BLOCKS)[0], self.own if width is None else width, self.nx
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
        self.package.lowrank.see(record, self.live, self.space)
        blocks.measure(record, self.note, self.task, self.live, self.space)
        return np.linalg.solve(self.H @ S @ self.H.T + self.R, self.H @ S).T

    def answer(self, K: np.ndarray, pull: Any) -> tuple[np.ndarray, np.ndarray]:
        """Let the inputs answer to the cost-to-go K; returns M and the feedback."""
        cost, U = self.package.cost_blocks, self.positive(self.nu)
        self.space.free[:] = 1.0
        cost.effort(self.held(K, self.live), self.step, self.live, self.space)
        self.package.lowrank.effort_values(self.live, self.space)
        self.space.Huu[:] += U
        cost.solve_effort(self.own, self.space)
        self.package.adjoint_blocks.feedback(pull, self.own, self.space)
        curvature, mixed = U + self.G.T @ K @ self.G, self.G.T @ K @ self.F
        return np.linalg.solve(np.linalg.cholesky(curvature), mixed), -np.linalg.solve(curvature, mixed)

    def pull(self) -> Any:
        record = np.zeros(1, self.package.records.PULL)[0]
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
    adjoint.filter_loss(record, values.note, values.live, values.space)
    adjoint.look_back(record, values.note, values.live, values.space)
    values.package.value_blocks.look_back_values(record, values.note, values.live, values.space)
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
    blocks.carry_values(cost, saved, values.step, live, values.space)
    rows = values.rows(values.space.rows_x, values.space.rows_t)
    np.testing.assert_allclose(rows, ((K - V) @ values.F)[:nx], rtol=1e-11, atol=1e-12)
    E = values.F.T @ (K - V) @ values.F
    blocks.write_values(cost, saved, live, values.space)
    expected = E[nx:, nx:].copy()
    expected[:live, :live] = before.tt[:live, :live]  # as it was
    np.testing.assert_allclose(cost.tt[: values.own, : values.own], expected, rtol=1e-11, atol=1e-12)
    assert (cost.xt == before.xt).all()
    blocks.write_mixed(cost, values.step, values.own, values.space)
    np.testing.assert_allclose(cost.xt[:, : values.own], E[:nx, nx:], rtol=1e-11, atol=1e-12)
    assert (cost.xx == before.xx).all()


def test_a_step_back_in_low_rank_form(values: Values) -> None:
    """K (A + B L), and V = A' V' A - M' M."""
    blocks, cost, nx = values.package.value_blocks, values.package.cost_blocks, values.nx
    K, V, pull = values.symmetric(values.met, values.seen), values.symmetric(values.met), values.pull()
    M, L = values.answer(K, pull)
    blocks.keep_reach(values.held(K, values.live), values.step, values.live, pull, values.space)
    reach = values.rows(pull.reach_x, pull.reach_t)
    np.testing.assert_allclose(reach, (K @ (values.F + values.G @ L))[:nx], rtol=1e-9, atol=1e-10)
    record, expected = values.held(V), values.F.T @ V @ values.F - M.T @ M
    blocks.back_saved(record, values.live, values.space)
    np.testing.assert_allclose(record.tt[: values.own, : values.own], expected[nx:, nx:], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(record.xt[:, : values.own], (V @ values.F)[:nx, nx:], rtol=1e-12)
    cost.back_mixed(record, values.step, values.own, values.space)
    cost.back_states(record, values.step, values.space.nothing, values.space)
    np.testing.assert_allclose(values.read(record, values.own), expected, rtol=1e-9, atol=1e-9)


def test_the_spread_in_low_rank_form(values: Values) -> None:
    """N <- (A + B L) N (A + B L)' - q' q: in `adjoint_lowrank` it has the other sign."""
    blocks, nx, kept = values.package.value_blocks, values.nx, values.nx + values.live
    N, pull = values.symmetric(), values.pull()
    _, L = values.answer(values.symmetric(values.met, values.seen), pull)
    record, closed = values.held(N), values.F + values.G @ L
    values.package.adjoint_blocks.answer(record, pull, values.own, values.space)
    blocks.move_values(record, values.step, values.live, values.space)
    moved = (closed @ N @ closed.T)[:kept, :kept]
    np.testing.assert_allclose(values.read(record, values.live), moved, rtol=1e-9, atol=1e-9)
    before, q = record.copy(), values.random.normal(size=(values.ny, values.live))
    values.note.qt[:, : values.live] = q
    blocks.learn_values(record, values.note, values.live)
    np.testing.assert_allclose(values.read(record, values.live)[nx:, nx:], moved[nx:, nx:] - q.T @ q, rtol=1e-9)
    assert (record.xx == before.xx).all()
    assert (record.xt == before.xt).all()
    blocks.clear_values(record, values.live)
    assert (values.read(record, values.live) == 0.0).all()
    assert (record.xt[:, values.live :] == before.xt[:, values.live :]).all()
