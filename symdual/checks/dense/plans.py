"""Plans: the nominal cost and the dual cost with what they are made of, the closed loop, and the best plan."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from symdual.checks.dense.filters import predict, predict_second_order, update, update_second_order
from symdual.checks.dense.model import Belief, Cost, DenseModel, LocalCost, Noise, augmented
from symdual.checks.dense.saturation import share_of
from symdual.common.arrays import Array


class DualCost(NamedTuple):
    """Nominal cost, uncertain part Jd, and whether order 2 fell back to order 1."""

    nominal: float
    uncertain: float
    fallback: bool


class Parts(NamedTuple):
    """Jd divided in the part that future learning cannot change and the part that it can (both sum to Jd)."""

    caution: float
    probing: float


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
    """K_{j+1} of each step, the reductions M G^-1 M' of all but the first, and whether each G - U is semidefinite.

    weights (steps, nu): what bounds add to the weights of the inputs' answers, infinite for one that does not answer.
    """

    matrices: list[Array]
    reductions: list[Array]
    semidefinite: bool
    weights: Array


def last_curvature(model: DenseModel, local: LocalCost, order: int) -> Array:
    """K_T = W~."""
    K = np.zeros((model.nz, model.nz))
    K[: model.nx, : model.nx] = (local.exact if order == 2 else local.curvature)[: model.nx, : model.nx]
    return K


def cost_to_go(
    model: DenseModel,
    noise: Noise,
    cost: Cost,
    k: int,
    states: Array,
    inputs: Array,
    order: int,
    shares: Array | None = None,
) -> CostToGo:
    """K_T = W~, K_j = Hzz + A~'K A~ - M G^-1 M', M = Hzu + A~'K B~, G = Huu + B~'K B~; inputs at a bound stay out.

    With `shares` (steps, nu), those of a share of zero stay out, and G_aa / share_a takes the place of G_aa.
    """
    if shares is None:
        shares = ((inputs > cost.bounds[0]) & (inputs < cost.bounds[1])).astype(float)
    weights = np.zeros(shares.shape)
    steps = len(inputs)
    hessians = curvatures(model, noise, cost, k, states, inputs, order)
    local = local_costs(model, cost, k, states, inputs)
    K = last_curvature(model, local[-1], order)
    matrices = [K]
    reductions: list[Array] = []
    fine = True
    for i in range(steps - 1, 0, -1):
        A, B = augmented(model, noise, k + i, states[i], inputs[i])
        free = shares[i] > 0.0
        weights[i, ~free] = np.inf
        B, Hzu = B[:, free], hessians[i].Hzu[:, free]
        G = hessians[i].Huu[np.ix_(free, free)] + B.T @ K @ B
        reduction = np.zeros_like(K)
        if free.any():
            excess = G - local[i].curvature[model.nx :, model.nx :][np.ix_(free, free)]
            scale = float(np.abs(np.diag(excess)).max())
            fine = fine and bool(np.linalg.eigvalsh(excess).min() >= -1e-10 * scale)
            M = Hzu + A.T @ K @ B
            weights[i, free] = np.diag(G) * (1.0 / shares[i, free] - 1.0)
            G = G + np.diag(weights[i, free])
            reduction = M @ np.linalg.solve(G, M.T)
        K = hessians[i].Hzz + A.T @ K @ A - reduction
        matrices.insert(0, K)
        reductions.insert(0, reduction)
    return CostToGo(matrices, reductions, fine, weights)


def slopes_by_inputs(model: DenseModel, noise: Noise, cost: Cost, k: int, states: Array, inputs: Array) -> Array:
    """Half the slope of L by every input of a plan, l_u + f_u' lam."""
    lam = costates(model, noise, cost, k, states, inputs)
    local = local_costs(model, cost, k, states, inputs)
    rows = [
        local[i].slope[model.nx :] + augmented(model, noise, k + i, states[i], u)[1].T @ lam[i + 1]
        for i, u in enumerate(inputs)
    ]
    return np.array(rows)


def cost_to_go_within_bounds(
    model: DenseModel,
    noise: Noise,
    cost: Cost,
    k: int,
    P: Array,
    states: Array,
    inputs: Array,
    order: int,
    learning: bool = True,
) -> CostToGo:
    """`cost_to_go` with the shares that follow from the closed loop with the answers of the one without bounds.

    (the same as `cost_to_go` where a cost does not saturate)
    """
    if not cost.saturates:
        return cost_to_go(model, noise, cost, k, states, inputs, order)
    steps = len(inputs)
    alone = cost_to_go(model, noise, cost, k, states, inputs, order, np.ones((steps, model.nu)))
    if not alone.semidefinite:
        return alone
    predicted, filtered = plan_covariances(model, noise, k, P, states, inputs, learning)
    hessians = curvatures(model, noise, cost, k, states, inputs, order)
    slopes = slopes_by_inputs(model, noise, cost, k, states, inputs)
    shares, M = np.ones((steps, model.nu)), np.zeros((model.nz, model.nz))
    for i, u in enumerate(inputs):
        A, B = augmented(model, noise, k + i, states[i], u)
        if i > 0:
            K = alone.matrices[i]
            G = hessians[i].Huu + B.T @ K @ B
            L = -np.linalg.solve(G, hessians[i].Hzu.T + B.T @ K @ A)
            spread = np.sqrt(np.maximum(np.einsum("ai,ij,aj->a", L, M, L), 0.0))
            for a in range(model.nu):
                w = u[a] - slopes[i, a] / G[a, a]
                shares[i, a], inside = share_of(w, spread[a], u[a], cost.bounds[0, a], cost.bounds[1, a])
                L[a] *= inside
            A = A + B @ L
        seen = predicted[i] - filtered[i + 1]
        if not learning:  # the estimate of the parameters stays
            seen = seen.copy()
            seen[model.nx :], seen[:, model.nx :] = 0.0, 0.0
        M = A @ M @ A.T + seen
    return cost_to_go(model, noise, cost, k, states, inputs, order, shares)


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
    to_go = cost_to_go_within_bounds(model, noise, cost, k, belief.covariance, states, inputs, order, learning)
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
    to_go = cost_to_go_within_bounds(model, noise, cost, k, belief.covariance, states, inputs, order)
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
    """Along a plan: the filter's covariances S_j|j, the covariances M_j of the estimate (steps + 1), the gains L_j."""

    filtered: list[Array]
    covariances: list[Array]
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
    covariances, gains = [np.zeros((model.nz, model.nz))], []
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
        covariances.append(moved @ covariances[-1] @ moved.T + seen)
        gains.append(L)
    return ClosedLoop(filtered, covariances, gains)


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
