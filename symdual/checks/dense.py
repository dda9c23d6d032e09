"""Dense numpy recursions: the equations of the filter, the plan and the dual cost, written down with full matrices.

No structure is exploited and nothing is shared with the generated code, so that agreement means something. For small
sizes and clarity, not for speed.

    x' = f(x, u, theta) + N(0, Q),   theta' = D theta + N(0, Xi),   y = h(x, theta) + N(0, R),   z = (x, theta)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from symdual.common.arrays import Array

MEASUREMENT_FLOOR = 1e-12  # measurement variance at least this share of the predicted variance, as in the filter


@dataclass(frozen=True)
class DenseModel:
    """A model as plain functions of time index, augmented state z and input u.

    `jacobian` returns df/d(z, u), shape (nx, nz + nu); `hessian` returns the second derivatives of lam' f with respect
    to (z, u), shape (nz + nu, nz + nu); `observation_jacobian` returns dh/dz, shape (ny, nz), `observation_hessian`
    the second derivatives of mu' h, shape (nz, nz), which only the second-order filter asks for. With `second_order`
    covariances along plans have the terms of that filter.
    """

    nx: int
    nu: int
    ny: int
    ntheta: int
    dynamics: Callable[[int, Array, Array], Array]
    jacobian: Callable[[int, Array, Array], Array]
    hessian: Callable[[int, Array, Array, Array], Array]
    observation: Callable[[int, Array], Array]
    observation_jacobian: Callable[[int, Array], Array]
    observation_hessian: Callable[[int, Array, Array], Array] | None = None
    second_order: bool = False
    keep: Callable[[Array], Array] = np.array  # states within their bounds, of a mean (nz,)

    @property
    def nz(self) -> int:
        """Length of the augmented state."""
        return self.nx + self.ntheta


class Noise(NamedTuple):
    """Covariances and the parameters' motion as full matrices; Q and R may be functions of time, z and input."""

    process: Array
    measurement: Array
    transition: Array
    diffusion: Array
    process_at: Callable[[int, Array, Array], Array] | None = None
    measurement_at: Callable[[int, Array], Array] | None = None

    def of_step(self, time: int, z: Array, u: Array) -> Array:
        """Q at a point."""
        return self.process if self.process_at is None else semidefinite(self.process_at(time, z, u))

    def of_measurement(self, time: int, z: Array) -> Array:
        """R at a point."""
        return self.measurement if self.measurement_at is None else semidefinite(self.measurement_at(time, z))


def semidefinite(matrix: Array) -> Array:
    """The matrix if it is a covariance, else NaN: nothing is to be compared where there is none."""
    fine = np.all(np.isfinite(matrix)) and np.linalg.eigvalsh(matrix).min() >= -1e-12 * np.abs(matrix).max()
    return matrix if fine else np.full_like(matrix, np.nan)


class LocalCost(NamedTuple):
    """A cost at one point: its value, and halves of its slope by (x, u), its curvature at order 1, the exact one."""

    value: float
    slope: Array
    curvature: Array
    exact: Array


class Cost(NamedTuple):
    """Weights (T+1, nx, nx), (T, nu, nu), reference (T+1, nx) and bounds (2, nu) of L = sum (x-r)'W(x-r) + sum u'Uu.

    Any other cost is a function of time, z and input (None at the end of the plan), which replaces all but bounds.
    """

    state: Array
    input: Array
    reference: Array
    bounds: Array
    other: Callable[[int, Array, Array | None], LocalCost] | None = None

    def at(self, time: int, z: Array, u: Array | None) -> LocalCost:
        """The cost at one point."""
        if self.other is not None:
            return self.other(time, z, u)
        n, m = self.state.shape[-1], self.input.shape[-1]
        x = z[:n]
        weight = np.zeros((n + m, n + m))
        weight[:n, :n] = self.state[time]
        weight[n:, n:] = 0.0 if u is None else self.input[time]
        error = np.concatenate([x - self.reference[time], np.zeros(m) if u is None else u])
        return LocalCost(float(error @ weight @ error), weight @ error, weight, weight)


class Belief(NamedTuple):
    """Mean and covariance of z."""

    mean: Array
    covariance: Array


class DualCost(NamedTuple):
    """Nominal cost, uncertain part Jd, and whether order 2 fell back to order 1."""

    nominal: float
    uncertain: float
    fallback: bool


class Parts(NamedTuple):
    """Jd divided in the part that future learning cannot change and the part that it can (both sum to Jd)."""

    caution: float
    probing: float


def augmented(model: DenseModel, noise: Noise, time: int, z: Array, u: Array) -> tuple[Array, Array]:
    """A~ = [f_x f_theta; 0 D] and B~ = [f_u; 0]."""
    jacobian = model.jacobian(time, z, u)
    A = np.zeros((model.nz, model.nz))
    A[: model.nx] = jacobian[:, : model.nz]
    A[model.nx :, model.nx :] = noise.transition
    B = np.zeros((model.nz, model.nu))
    B[: model.nx] = jacobian[:, model.nz :]
    return A, B


def predict(model: DenseModel, noise: Noise, time: int, belief: Belief, u: Array) -> Belief:
    """z <- (f, D theta),  P <- A~ P A~' + blkdiag(Q, Xi)."""
    z, P = belief
    A, _ = augmented(model, noise, time, z, u)
    covariance = A @ P @ A.T
    covariance[: model.nx, : model.nx] += noise.of_step(time, z, u)
    covariance[model.nx :, model.nx :] += noise.diffusion
    mean = np.concatenate([model.dynamics(time, z, u), noise.transition @ z[model.nx :]])
    return Belief(mean, covariance)


def innovation_covariance(C: Array, P: Array, R: Array) -> Array:
    """S = C P C' + R with the floor on the measurement variances."""
    predicted = C @ P @ C.T
    lifted = R.copy()
    for a in range(len(R)):
        lifted[a, a] = max(R[a, a], MEASUREMENT_FLOOR * predicted[a, a])
    return np.asarray(predicted + lifted)


def update(model: DenseModel, noise: Noise, time: int, belief: Belief, y: Array, *, learning: bool = True) -> Belief:
    """z <- z + K (y - h),  P <- (I - K C) P (I - K C)' + K R K'; NaN entries of y are missing.

    With learning off, the rows of K that belong to the parameters are zero (consider filter).
    """
    z, P = belief
    measured = ~np.isnan(y)
    C = model.observation_jacobian(time, z)[measured]
    S = innovation_covariance(C, P, noise.of_measurement(time, z)[np.ix_(measured, measured)])
    K = np.linalg.solve(S, C @ P).T
    if not learning:
        K[model.nx :] = 0.0
    left = np.eye(model.nz) - K @ C
    effective = S - C @ P @ C.T
    mean = model.keep(z + K @ (y - model.observation(time, z))[measured])
    return Belief(mean, left @ P @ left.T + K @ effective @ K.T)


class Moments(NamedTuple):
    """What curvature adds to the mean and the covariance of a map of z ~ N(m, P), to second order."""

    mean: Array
    covariance: Array


def moments(hessians: Array, P: Array) -> Moments:
    """1/2 tr(H_i P) and 1/2 tr(H_i P H_j P), with hessians (rows, nz, nz)."""
    products = hessians @ P
    return Moments(
        0.5 * np.trace(products, axis1=1, axis2=2), np.asarray(0.5 * np.einsum("iab,jba->ij", products, products))
    )


def observation_hessians(model: DenseModel, time: int, z: Array) -> Array:
    """The second derivatives of all rows of h; none where nobody gave them."""
    if model.observation_hessian is None:
        return np.zeros((0, model.nz, model.nz))
    return np.array([model.observation_hessian(time, z, unit) for unit in np.eye(model.ny)])


def motion_moments(model: DenseModel, time: int, z: Array, u: Array, P: Array) -> Moments:
    """What the curvature of f adds around a point."""
    return moments(np.array([model.hessian(time, z, u, unit)[: model.nz, : model.nz] for unit in np.eye(model.nx)]), P)


def measurement_moments(model: DenseModel, time: int, z: Array, P: Array) -> Moments:
    """What the curvature of h adds around a point."""
    return moments(observation_hessians(model, time, z), P)


def predict_second_order(model: DenseModel, noise: Noise, time: int, belief: Belief, u: Array) -> Belief:
    """z <- (f + 1/2 tr(H_i P), D theta),  P <- A~ P A~' + blkdiag(1/2 tr(H_i P H_j P) + Q, Xi)."""
    more = motion_moments(model, time, belief.mean, u, belief.covariance)
    mean, covariance = predict(model, noise, time, belief, u)
    mean[: model.nx] += more.mean
    covariance[: model.nx, : model.nx] += more.covariance
    return Belief(model.keep(mean), covariance)


def update_second_order(
    model: DenseModel, noise: Noise, time: int, belief: Belief, y: Array, *, learning: bool = True
) -> Belief:
    """The update with h + 1/2 tr(H_a P) expected and 1/2 tr(H_a P H_b P) more noise."""
    z, P = belief
    more = measurement_moments(model, time, z, P)
    R = noise.of_measurement(time, z) + more.covariance
    held = noise._replace(measurement=R, measurement_at=None)
    return update(model, held, time, belief, y - more.mean, learning=learning)


class Departure(NamedTuple):
    """The belief before a prediction, and the input of the step."""

    belief: Belief
    u: Array


def most_probable(
    prior: Belief, measure: Callable[[Array], Array], slope: Callable[[Array], Array], y: Array, R: Array
) -> Array:
    """The most probable z, by Gauss-Newton steps z <- m + K (y - h(z) - C (m - z)), halved while they do not help."""
    start, z = prior.mean, prior.mean
    deviations = np.sqrt(np.diag(prior.covariance))
    units = np.where(deviations > 0.0, deviations, 1.0)  # without them lstsq would take small variances for zero
    correlations = prior.covariance / np.outer(units, units)

    def unlikely(at: Array) -> float:
        error, moved = y - measure(at), (at - start) / units
        return float(moved @ np.linalg.lstsq(correlations, moved)[0] + error @ np.linalg.solve(R, error))

    for _ in range(100):
        C = slope(z)
        gain = np.linalg.solve(innovation_covariance(C, prior.covariance, R), C @ prior.covariance).T
        step = start + gain @ (y - measure(z) - C @ (start - z)) - z
        share = 1.0
        while share > 1e-9 and unlikely(z + share * step) > unlikely(z) * (1 + 1e-12):
            share *= 0.5
        z = z + share * step
        if np.all(np.abs(step) <= 1e-14 * (units + np.abs(z))):
            break
    return z


def update_iterated(
    model: DenseModel,
    noise: Noise,
    time: int,
    belief: Belief,
    y: Array,
    departure: Departure | None = None,
    *,
    second_order: bool = False,
) -> Belief:
    """The update at the most probable (z0, w) with z = F(z0) + w, where z0 is what was predicted from; see `departure`.

    Without it, z0 is z. The covariance is that of the linearisation there; NaN entries of y are missing. To second
    order, F and h count the moments of what is left of the covariances of z0 and z, as in a fixed point.
    """
    n, measured = model.nz, ~np.isnan(y)
    R = noise.of_measurement(time, belief.mean)  # that of the prediction: it stays while z moves
    prior, N = belief, np.zeros((n, n))
    if departure is not None:
        prior, Q = departure.belief, noise.of_step(time - 1, departure.belief.mean, departure.u)
        N[: model.nx, : model.nx], N[model.nx :, model.nx :] = Q, noise.diffusion
    if not (np.all(np.isfinite(prior.covariance)) and np.all(np.isfinite(R)) and np.all(np.isfinite(N))):
        return Belief(np.full_like(belief.mean, np.nan), np.full_like(belief.covariance, np.nan))

    def move(z0: Array) -> Array:
        if departure is None:
            return z0
        x = model.dynamics(time - 1, z0, departure.u)
        return np.concatenate([x, noise.transition @ z0[model.nx :]])

    def slope_of(z0: Array) -> Array:
        own = np.eye(n) if departure is None else augmented(model, noise, time - 1, z0, departure.u)[0]
        return np.hstack([own, np.eye(n)])

    joint = Belief(np.concatenate([prior.mean, np.zeros(n)]), _blocks(prior.covariance, N))
    left, before = joint.covariance, slope_of(prior.mean) @ joint.covariance @ slope_of(prior.mean).T
    found, both = joint.mean, before
    while True:
        z0 = found[:n]
        of_step, of_measurement = Moments(np.zeros(n), np.zeros((n, n))), Moments(np.zeros(len(y)), np.zeros_like(R))
        if second_order and departure is not None:
            of_step = _moments_of_step(model, time - 1, z0, departure.u, left[:n, :n])
        if second_order:
            if both is before:  # the prediction, which the step's moments widen
                both = before + of_step.covariance
            assert model.observation_hessian is not None
            z = move(z0) + of_step.mean + found[n:]
            rows = [model.observation_hessian(time, z, unit) for unit in np.eye(model.ny)]
            of_measurement = moments(np.array(rows), both)
        tried = joint._replace(covariance=_blocks(prior.covariance, N + of_step.covariance))
        noisy = (R + of_measurement.covariance)[np.ix_(measured, measured)]

        def reach(Z: Array, shift: Array = of_step.mean) -> Array:
            return move(Z[:n]) + shift + Z[n:]

        def measure(Z: Array, shift: Array = of_measurement.mean, reach: Callable[[Array], Array] = reach) -> Array:
            return (model.observation(time, reach(Z)) + shift)[measured]

        def slope(Z: Array, reach: Callable[[Array], Array] = reach) -> Array:
            return model.observation_jacobian(time, reach(Z))[measured] @ slope_of(Z[:n])

        found = most_probable(tried, measure, slope, y[measured], noisy)
        C, known = slope(found), left
        S = innovation_covariance(C, tried.covariance, noisy)
        left = tried.covariance - tried.covariance @ C.T @ np.linalg.solve(S, C @ tried.covariance)
        both = slope_of(found[:n]) @ left @ slope_of(found[:n]).T
        if not second_order or np.all(np.abs(np.diag(left - known)) <= 1e-12 * np.diag(tried.covariance)):
            return Belief(model.keep(reach(found)), both)


def _blocks(one: Array, other: Array) -> Array:
    zero = np.zeros((len(one), len(other)))
    return np.block([[one, zero], [zero.T, other]])


def _moments_of_step(model: DenseModel, time: int, z: Array, u: Array, P: Array) -> Moments:
    """Those of (f, D theta), where D theta has none."""
    rows = [model.hessian(time, z, u, unit)[: model.nz, : model.nz] for unit in np.eye(model.nx)]
    own = moments(np.array(rows), P)
    return Moments(np.pad(own.mean, (0, model.ntheta)), np.pad(own.covariance, (0, model.ntheta)))


def forward_pass(model: DenseModel, noise: Noise, k: int, z: Array, inputs: Array) -> Array:
    """Augmented states (len(inputs) + 1, nz) of the noise-free model from time k."""
    states = [z]
    for i, u in enumerate(inputs):
        here = states[-1]
        states.append(np.concatenate([model.dynamics(k + i, here, u), noise.transition @ here[model.nx :]]))
    return np.array(states)


def nominal_cost(model: DenseModel, cost: Cost, k: int, states: Array, inputs: Array) -> float:
    """L along a trajectory from time k."""
    return sum(local.value for local in local_costs(model, cost, k, states, inputs))


def local_costs(model: DenseModel, cost: Cost, k: int, states: Array, inputs: Array) -> list[LocalCost]:
    """The cost at every point of a trajectory."""
    actions = [*inputs, None]
    return [cost.at(k + i, z, u) for i, (z, u) in enumerate(zip(states, actions, strict=True))]


def costates(model: DenseModel, noise: Noise, cost: Cost, k: int, states: Array, inputs: Array) -> Array:
    """lam_j for j = k..T: lam_T = (W (x - r); 0),  lam_j = (W (x - r); 0) + A~' lam_{j+1}; else l_x for W (x - r)."""
    steps = len(inputs)
    local = local_costs(model, cost, k, states, inputs)
    lam = np.zeros((steps + 1, model.nz))
    for i in range(steps, -1, -1):
        lam[i, : model.nx] = local[i].slope[: model.nx]
        if i < steps:
            A, _ = augmented(model, noise, k + i, states[i], inputs[i])
            lam[i] += A.T @ lam[i + 1]
    return lam


class PlanCovariances(NamedTuple):
    """Predicted (steps) and filtered (steps + 1) covariances along a plan."""

    predicted: list[Array]
    filtered: list[Array]


def plan_covariances(
    model: DenseModel, noise: Noise, k: int, P: Array, states: Array, inputs: Array, learning: bool = True
) -> PlanCovariances:
    """S_{j+1|j} and S_{j|j} with the measurements that the plan expects (the mean does not move)."""
    predicted: list[Array] = []
    filtered = [P]
    step, correct = (predict_second_order, update_second_order) if model.second_order else (predict, update)
    for i, u in enumerate(inputs):
        before = step(model, noise, k + i, Belief(states[i], filtered[-1]), u)
        predicted.append(before.covariance)
        expected = model.observation(k + i + 1, states[i + 1])
        belief = Belief(states[i + 1], before.covariance)
        filtered.append(correct(model, noise, k + i + 1, belief, expected, learning=learning).covariance)
    return PlanCovariances(predicted, filtered)


class Curvature(NamedTuple):
    """Second derivatives of the Hamiltonian at one step."""

    Hzz: Array
    Hzu: Array
    Huu: Array


def curvatures(
    model: DenseModel, noise: Noise, cost: Cost, k: int, states: Array, inputs: Array, order: int
) -> list[Curvature]:
    """Hzz = W~ + lam' f_zz, Hzu = N' + lam' f_zu, Huu = U + lam' f_uu for each step; at order 1 without those in f."""
    lam = costates(model, noise, cost, k, states, inputs)
    local = local_costs(model, cost, k, states, inputs)
    x, own = slice(0, model.nx), slice(model.nz, model.nz + model.nu)
    found = []
    for i, u in enumerate(inputs):
        full = np.zeros((model.nz + model.nu, model.nz + model.nu))
        if order == 2:
            full = np.array(model.hessian(k + i, states[i], u, lam[i + 1, : model.nx]))
        hessians = local[i].exact if order == 2 else local[i].curvature
        full[x, x] += hessians[: model.nx, : model.nx]
        full[x, own] += hessians[: model.nx, model.nx :]
        full[own, x] += hessians[model.nx :, : model.nx]
        full[own, own] += hessians[model.nx :, model.nx :]
        found.append(
            Curvature(full[: model.nz, : model.nz], full[: model.nz, model.nz :], full[model.nz :, model.nz :])
        )
    return found


class CostToGo(NamedTuple):
    """K_{j+1} of each step, the reductions M G^-1 M' of all but the first, and whether each G - U is semidefinite."""

    matrices: list[Array]
    reductions: list[Array]
    semidefinite: bool


def last_curvature(model: DenseModel, local: LocalCost, order: int) -> Array:
    """K_T = W~."""
    K = np.zeros((model.nz, model.nz))
    K[: model.nx, : model.nx] = (local.exact if order == 2 else local.curvature)[: model.nx, : model.nx]
    return K


def cost_to_go(
    model: DenseModel, noise: Noise, cost: Cost, k: int, states: Array, inputs: Array, order: int
) -> CostToGo:
    """K_T = W~, K_j = Hzz + A~'K A~ - M G^-1 M', M = Hzu + A~'K B~, G = Huu + B~'K B~; inputs at a bound stay out."""
    steps = len(inputs)
    hessians = curvatures(model, noise, cost, k, states, inputs, order)
    local = local_costs(model, cost, k, states, inputs)
    K = last_curvature(model, local[-1], order)
    matrices = [K]
    reductions: list[Array] = []
    fine = True
    for i in range(steps - 1, 0, -1):
        A, B = augmented(model, noise, k + i, states[i], inputs[i])
        free = (inputs[i] > cost.bounds[0]) & (inputs[i] < cost.bounds[1])
        B, Hzu = B[:, free], hessians[i].Hzu[:, free]
        G = hessians[i].Huu[np.ix_(free, free)] + B.T @ K @ B
        reduction = np.zeros_like(K)
        if free.any():
            excess = G - local[i].curvature[model.nx :, model.nx :][np.ix_(free, free)]
            scale = float(np.abs(np.diag(excess)).max())
            fine = fine and bool(np.linalg.eigvalsh(excess).min() >= -1e-10 * scale)
            M = Hzu + A.T @ K @ B
            reduction = M @ np.linalg.solve(G, M.T)
        K = hessians[i].Hzz + A.T @ K @ A - reduction
        matrices.insert(0, K)
        reductions.insert(0, reduction)
    return CostToGo(matrices, reductions, fine)


def dual_cost(
    model: DenseModel,
    noise: Noise,
    cost: Cost,
    k: int,
    belief: Belief,
    inputs: Array,
    *,
    order: int = 1,
    learning: bool = True,
) -> DualCost:
    """Jbar and Jd = tr{W~ S_T|T + sum_j [Hzz_j S_j|j + K_{j+1} (S_{j+1|j} - S_{j+1|j+1})]} of a plan.

    Order 2 falls back to order 1 when some Huu + B~'K B~ - U is not positive semidefinite or Jd is negative.
    """
    states = forward_pass(model, noise, k, belief.mean, inputs)
    covariances = plan_covariances(model, noise, k, belief.covariance, states, inputs, learning)
    bar = nominal_cost(model, cost, k, states, inputs)
    to_go = cost_to_go(model, noise, cost, k, states, inputs, order)
    hessians = curvatures(model, noise, cost, k, states, inputs, order)
    steps = len(inputs)
    last = last_curvature(model, local_costs(model, cost, k, states, inputs)[-1], order)
    uncertain = float(np.sum(last * covariances.filtered[steps]))
    for i in range(steps):
        uncertain += float(np.sum(hessians[i].Hzz * covariances.filtered[i]))
        uncertain += float(np.sum(to_go.matrices[i] * (covariances.predicted[i] - covariances.filtered[i + 1])))
    if order == 2 and (not to_go.semidefinite or uncertain < 0.0):
        first = dual_cost(model, noise, cost, k, belief, inputs, order=1, learning=learning)
        return DualCost(bar, first.uncertain, True)
    return DualCost(bar, uncertain, False)


def parts(
    model: DenseModel, noise: Noise, cost: Cost, k: int, belief: Belief, inputs: Array, *, order: int = 1
) -> Parts:
    """The same Jd written as caution + probing.

    caution = tr[Hzz_k S_k|k + K_{k+1} S_{k+1|k} + sum_{j>k} K_{j+1} (S_{j+1|j} - A~ S_j|j A~')]
    probing = sum_{j>k} tr[M G^-1 M' S_j|j]
    """
    states = forward_pass(model, noise, k, belief.mean, inputs)
    covariances = plan_covariances(model, noise, k, belief.covariance, states, inputs)
    to_go = cost_to_go(model, noise, cost, k, states, inputs, order)
    hessians = curvatures(model, noise, cost, k, states, inputs, order)
    caution = float(np.sum(hessians[0].Hzz * covariances.filtered[0]))
    caution += float(np.sum(to_go.matrices[0] * covariances.predicted[0]))
    probing = 0.0
    for i in range(1, len(inputs)):
        A, _ = augmented(model, noise, k + i, states[i], inputs[i])
        caution += float(np.sum(to_go.matrices[i] * (covariances.predicted[i] - A @ covariances.filtered[i] @ A.T)))
        probing += float(np.sum(to_go.reductions[i - 1] * covariances.filtered[i]))
    return Parts(caution, probing)


class ClosedLoop(NamedTuple):
    """Along a plan: the filter's covariances S_j|j, the spreads M_j of the estimate (steps + 1), the gains L_j."""

    filtered: list[Array]
    spread: list[Array]
    gains: list[Array]


def closed_loop(
    model: DenseModel, noise: Noise, cost: Cost, k: int, belief: Belief, inputs: Array, *, learning: bool = True
) -> ClosedLoop:
    """M_{j+1} = (A~ + B~ L) M (A~ + B~ L)' + S_{j+1|j} - S_{j+1|j+1},  L_j = -(Huu + B~'K B~)^-1 (Hzu' + B~'K A~).

    At order 1. The first input is fixed, L_k = 0; inputs at a bound have no gain. S + M is the covariance of z around
    the plan:

        Jd = sum_j tr(W~ X_j) + 2 tr(N' L M_j) + tr(U L M_j L'),     X = S + M
    """
    states = forward_pass(model, noise, k, belief.mean, inputs)
    predicted, filtered = plan_covariances(model, noise, k, belief.covariance, states, inputs, learning)
    to_go = cost_to_go(model, noise, cost, k, states, inputs, 1).matrices
    hessians = curvatures(model, noise, cost, k, states, inputs, 1)
    spread, gains = [np.zeros((model.nz, model.nz))], []
    for i, u in enumerate(inputs):
        A, B = augmented(model, noise, k + i, states[i], u)
        L = np.zeros((model.nu, model.nz))
        free = (u > cost.bounds[0]) & (u < cost.bounds[1]) if i else np.zeros(model.nu, dtype=bool)
        if free.any():
            K, Bf = to_go[i], B[:, free]
            G = hessians[i].Huu[np.ix_(free, free)] + Bf.T @ K @ Bf
            L[free] = -np.linalg.solve(G, hessians[i].Hzu[:, free].T + Bf.T @ K @ A)
        moved = A + B @ L
        seen = predicted[i] - filtered[i + 1]
        if not learning:  # the consider filter's difference has no part in the parameters alone
            seen = seen.copy()
            seen[model.nx :, model.nx :] = 0.0
        spread.append(moved @ spread[-1] @ moved.T + seen)
        gains.append(L)
    return ClosedLoop(filtered, spread, gains)


def parameter_variance(model: DenseModel, noise: Noise, k: int, belief: Belief, inputs: Array, steps: int) -> float:
    """tr Stt_{k+s|k+s} along a plan after s = steps steps."""
    states = forward_pass(model, noise, k, belief.mean, inputs)
    covariances = plan_covariances(model, noise, k, belief.covariance, states, inputs)
    return float(np.trace(covariances.filtered[steps][model.nx :, model.nx :]))


def best_plan(
    model: DenseModel,
    noise: Noise,
    cost: Cost,
    k: int,
    z: Array,
    first_input: Array,
    start: Array | None = None,
) -> tuple[float, Array]:
    """Minimise L over the inputs after the first, within the bounds, by a general optimiser; returns (L, inputs)."""
    from scipy.optimize import minimize

    steps = len(cost.input) - k

    def inputs_of(free: Array) -> Array:
        return np.vstack([first_input[None], free.reshape(steps - 1, model.nu)])

    def value(free: Array) -> tuple[float, Array]:
        inputs = inputs_of(free)
        states = forward_pass(model, noise, k, z, inputs)
        lam = costates(model, noise, cost, k, states, inputs)
        local = local_costs(model, cost, k, states, inputs)
        gradient = np.zeros_like(inputs)
        for i, u in enumerate(inputs):
            _, B = augmented(model, noise, k + i, states[i], u)
            gradient[i] = 2.0 * (local[i].slope[model.nx :] + B.T @ lam[i + 1])
        return nominal_cost(model, cost, k, states, inputs), gradient[1:].ravel()

    guess = np.zeros((steps - 1) * model.nu) if start is None else start[1:].ravel()
    limits = [(lo, hi) for _ in range(steps - 1) for lo, hi in cost.bounds.T]
    options = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-10}
    found = minimize(value, guess, jac=True, bounds=limits, method="L-BFGS-B", options=options)
    return float(found.fun), inputs_of(np.asarray(found.x))
