"""The filters: prediction and update to first and second order, and at the most probable point."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from symdual.checks.dense.model import Belief, DenseModel, Noise, augmented
from symdual.common.arrays import Array

MEASUREMENT_FLOOR = 1e-12  # measurement variance at least this share of the predicted variance, as in the filter


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


def update_recalibrated(
    model: DenseModel, noise: Noise, time: int, belief: Belief, y: Array, *, second_order: bool = False
) -> Belief:
    """The update with P <- (I - K C) P (I - K C)' + K R K' for the slope C of h at the new mean.

    It is undone where the variances, each as a share of what it was, do not fall on the whole. To second order, the
    moments of h count in K and, around the new mean, in R.
    """
    z, P = belief
    measured = ~np.isnan(y)
    seen = np.ix_(measured, measured)
    R = noise.of_measurement(time, z)

    def around(point: Array) -> tuple[Array, Array, Array]:
        more = measurement_moments(model, time, point, P) if second_order else Moments(np.zeros(len(y)), 0.0 * R)
        expected = model.observation(time, point) + more.mean
        return expected[measured], model.observation_jacobian(time, point)[measured], (R + more.covariance)[seen]

    expected, C, noisy = around(z)
    K = np.linalg.solve(innovation_covariance(C, P, noisy), C @ P).T
    mean = z + K @ (y[measured] - expected)
    _, C, noisy = around(mean)
    left = np.eye(model.nz) - K @ C
    effective = innovation_covariance(C, P, noisy) - C @ P @ C.T
    covariance = left @ P @ left.T + K @ effective @ K.T
    known = np.diag(P) > 0.0
    helps = np.sum((np.diag(covariance) / np.where(known, np.diag(P), 1.0) - 1.0)[known]) < 0.0
    return Belief(mean, covariance) if helps else belief


class Judged(NamedTuple):
    """What is made of outliers: the belief, the noise of the measurement, how often each number was too far off."""

    belief: Belief
    noise: Noise
    rejected: Array


def judge_outliers(
    model: DenseModel, noise: Noise, time: int, belief: Belief, y: Array, rejected: Array, *,
    limit: float, patience: int = 5, second_order: bool = False,
) -> Judged:  # fmt: skip
    """R_aa grows until an innovation beyond `limit` deviations is just so far off.

    After `patience` in a row, the states' variances grow by a multiple of the squares of g = C_a P, until the square of
    the innovation is what is expected where h depends on states alone.
    """
    z, P = belief
    more = (
        measurement_moments(model, time, z, P)
        if second_order
        else Moments(np.zeros(len(y)), np.zeros((len(y), len(y))))
    )
    C, R = model.observation_jacobian(time, z), noise.of_measurement(time, z).copy()
    seen = np.diag(C @ P @ C.T)
    variances = seen + np.maximum(np.diag(R), MEASUREMENT_FLOOR * seen) + np.diag(more.covariance)
    squares = (y - model.observation(time, z) - more.mean) ** 2
    rejected, covariance = rejected.copy(), P.copy()
    for a in np.flatnonzero(~np.isnan(y)):
        far = squares[a] > limit**2 * variances[a]
        if far and rejected[a] < patience:
            R[a, a] += squares[a] / limit**2 - variances[a]
        elif far:
            jump = (C[a] @ P)[: model.nx]
            scale = (squares[a] - variances[a]) / np.sum((C[a, : model.nx] * jump) ** 2)
            covariance[: model.nx, : model.nx] += scale * np.diag(jump**2)
        rejected[a] = rejected[a] + 1 if far and rejected[a] < patience else 0
    return Judged(Belief(z, covariance), noise._replace(measurement=R, measurement_at=None), rejected)


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
            of_states = motion_moments(model, time - 1, z0, departure.u, left[:n, :n])
            of_step = Moments(*(np.pad(part, (0, model.ntheta)) for part in of_states))  # D theta has none
        if second_order:
            if both is before:  # the prediction, which the step's moments widen
                both = before + of_step.covariance
            of_measurement = measurement_moments(model, time, move(z0) + of_step.mean + found[n:], both)
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
