"""`exact`: the optimal dual controller of the smallest problem, by nested quadrature.

    x' = a x + b u + xi,   xi ~ N(0, Q),   y = x,   a known, b ~ N(m, v) unknown

The state is measured without noise, so the belief is (x, m, v), and Bellman's equation can be written down:

    V_T(x) = W_T (x - r_T)^2
    J_k(u) = W_k (x - r_k)^2 + U_k u^2 + E V_{k+1}(a x + m u + s e, m + g s e, v Q / s^2),    e ~ N(0, 1)
    V_k    = min_u J_k(u),        s^2 = u^2 v + Q,    g = v u / s^2

V_{T-1} is known in closed form; each step before it costs a quadrature and a minimisation, so at most three steps
remain within reach. The cost is a function pointer with the same signature as those of a generated package: the same
search and the same episodes run it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numba import cfunc, njit

from symdual.errors import SymdualError
from symdual.runtime import evaluate

if TYPE_CHECKING:
    from symdual.runtime.problem import Array, Belief, Problem

LONGEST = 3  # steps

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _compiled(function: _Function) -> _Function:
    """The function compiled by numba, with its types kept."""
    return cast(_Function, njit(cache=True, error_model="numpy")(function))


_REACH = 8.0  # standard deviations on either side
_PANELS = 8  # of the outer quadrature, before they are halved
_DEPTH = 24  # panels that may wait to be halved
_SIDE = 24  # grid points on either side of the middle in a nested minimisation
_GOLDEN = 24  # evaluations of its refinement
_SHARE = 0.6180339887498949


@_compiled
def last_value(j: int, x: float, m: float, v: float, a: float, q: float, W: Array, U: Array, r: Array) -> float:
    """V_{T-1}, T = j + 1: min_u of a quadratic; its minimum is u = -W m (a x - r) / (U + W (m^2 + v))."""
    weight = W[j + 1, 0, 0]
    error = a * x - r[j + 1, 0]
    curvature = U[j, 0, 0] + weight * (m * m + v)
    gain = weight * m * error
    saved = gain * gain / curvature if curvature > 0.0 else 0.0
    here = x - r[j, 0]
    return float(W[j, 0, 0] * here * here + weight * (error * error + q) - saved)


@_compiled
def last_cost(
    j: int, u: float, x: float, m: float, v: float, a: float, q: float, W: Array, U: Array, r: Array
) -> float:
    """J_{T-1}(u), T = j + 1."""
    weight = W[j + 1, 0, 0]
    error = a * x + m * u - r[j + 1, 0]
    here = x - r[j, 0]
    return float(W[j, 0, 0] * here * here + U[j, 0, 0] * u * u + weight * (error * error + v * u * u + q))


@_compiled
def spacing(j: int, u: float, v: float, q: float, W: Array, U: Array) -> float:
    """Distance of the points of a quadrature, in standard deviations.

    V is a rational function of the mean with poles sqrt(U / W + v') away from the real axis, and the mean moves by
    v |u| / s in a standard deviation. The trapezoidal rule converges like exp(-2 pi (distance of the pole) / spacing).
    """
    s = math.sqrt(u * u * v + q)
    weight = W[j + 2, 0, 0]
    if s == 0.0 or weight == 0.0 or v * abs(u) == 0.0:
        return 0.125
    pole = math.sqrt(U[j + 1, 0, 0] / weight + v * q / (s * s)) * s / (v * abs(u))
    return float(min(0.125, max(0.35 * pole, 1e-3)))


@_compiled
def cost_two(j: int, u: float, x: float, m: float, v: float, a: float, q: float, W: Array, U: Array, r: Array) -> float:
    """J_{T-2}(u), T = j + 2, by a quadrature over V_{T-1}."""
    square = u * u * v + q
    s = math.sqrt(square)
    shift = v * u / s if s > 0.0 else 0.0
    left = v * q / square if square > 0.0 else v
    h = spacing(j, u, v, q, W, U)
    count = int(_REACH / h)
    total = 0.0
    mass = 0.0
    for i in range(2 * count + 1):
        e = (i - count) * h
        p = math.exp(-0.5 * e * e)
        total += p * last_value(j + 1, a * x + m * u + s * e, m + shift * e, left, a, q, W, U, r)
        mass += p
    here = x - r[j, 0]
    return float(W[j, 0, 0] * here * here + U[j, 0, 0] * u * u + total / mass)


@_compiled
def value_two(j: int, x: float, m: float, v: float, a: float, q: float, W: Array, U: Array, r: Array) -> float:
    """V_{T-2}, T = j + 2: the lowest of a grid around the certainty-equivalent input, refined by golden sections."""
    middle = certain_input(j, j + 2, x, m, a, W, U, r)
    start = cost_two(j, middle, x, m, v, a, q, W, U, r)
    reach = math.sqrt(start / U[j, 0, 0])
    low = min(-reach, middle)
    high = max(reach, middle)
    best = start
    left = middle
    right = middle
    before = low
    for i in range(2 * _SIDE + 1):
        t = (i - _SIDE) / _SIDE
        stretch = math.sinh(4.0 * t) / math.sinh(4.0)
        u = middle + stretch * (high - middle if t > 0.0 else middle - low)
        value = cost_two(j, u, x, m, v, a, q, W, U, r)
        if value <= best:
            best = value
            left = before
            following = (i + 1 - _SIDE) / _SIDE
            stretch = math.sinh(4.0 * min(following, 1.0)) / math.sinh(4.0)
            right = middle + stretch * (high - middle if following > 0.0 else middle - low)
        before = u
    inner = right - _SHARE * (right - left)
    outer = left + _SHARE * (right - left)
    inner_cost = cost_two(j, inner, x, m, v, a, q, W, U, r)
    outer_cost = cost_two(j, outer, x, m, v, a, q, W, U, r)
    for _ in range(_GOLDEN):
        if inner_cost < outer_cost:
            right = outer
            outer = inner
            outer_cost = inner_cost
            inner = right - _SHARE * (right - left)
            inner_cost = cost_two(j, inner, x, m, v, a, q, W, U, r)
        else:
            left = inner
            inner = outer
            inner_cost = outer_cost
            outer = left + _SHARE * (right - left)
            outer_cost = cost_two(j, outer, x, m, v, a, q, W, U, r)
    return min(best, inner_cost, outer_cost)


@_compiled
def weighed_value(
    j: int, e: float, u: float, x: float, m: float, v: float, a: float, q: float, W: Array, U: Array, r: Array
) -> float:
    """exp(-e^2 / 2) V_{T-2} after the noise e, T = j + 3."""
    square = u * u * v + q
    s = math.sqrt(square)
    shift = v * u / s if s > 0.0 else 0.0
    left = v * q / square if square > 0.0 else v
    value = value_two(j + 1, a * x + m * u + s * e, m + shift * e, left, a, q, W, U, r)
    return math.exp(-0.5 * e * e) * value


@_compiled
def cost_three(
    j: int, u: float, x: float, m: float, v: float, a: float, q: float, W: Array, U: Array, r: Array
) -> float:
    """J_{T-3}(u), T = j + 3, by an adaptive quadrature over V_{T-2}.

    V_{T-2} has a kink where the best input changes its side, so Simpson's rule is refined where halves disagree.
    """
    panels = np.empty((_PANELS + _DEPTH, 6))  # left, right, tolerance, and the values at left, middle and right
    width = 2.0 * _REACH / _PANELS
    scale = abs(weighed_value(j, 0.0, u, x, m, v, a, q, W, U, r))
    for i in range(_PANELS):
        low = -_REACH + i * width
        panels[i, 0] = low
        panels[i, 1] = low + width
        panels[i, 2] = 1e-7 * scale
        panels[i, 3] = panels[i - 1, 5] if i > 0 else weighed_value(j, low, u, x, m, v, a, q, W, U, r)
        panels[i, 4] = weighed_value(j, low + 0.5 * width, u, x, m, v, a, q, W, U, r)
        panels[i, 5] = weighed_value(j, low + width, u, x, m, v, a, q, W, U, r)
    count = _PANELS
    total = 0.0
    while count > 0:
        count -= 1
        low, high, tolerance, first, middle, last = panels[count]
        length = high - low
        quarter = weighed_value(j, low + 0.25 * length, u, x, m, v, a, q, W, U, r)
        third = weighed_value(j, low + 0.75 * length, u, x, m, v, a, q, W, U, r)
        whole = length / 6.0 * (first + 4.0 * middle + last)
        halves = length / 12.0 * (first + 4.0 * quarter + 2.0 * middle + 4.0 * third + last)
        if abs(halves - whole) <= 15.0 * tolerance or count + 2 > _PANELS + _DEPTH or length < 1e-4:
            total += halves + (halves - whole) / 15.0
            continue
        centre = low + 0.5 * length
        panels[count] = (low, centre, 0.5 * tolerance, first, quarter, middle)
        panels[count + 1] = (centre, high, 0.5 * tolerance, middle, third, last)
        count += 2
    here = x - r[j, 0]
    return float(W[j, 0, 0] * here * here + U[j, 0, 0] * u * u + total / math.sqrt(2.0 * math.pi))


@_compiled
def certain_to_go(j: int, horizon: int, m: float, a: float, W: Array, U: Array, r: Array) -> tuple[float, float, float]:
    """(K, p, c) of the certainty-equivalent cost-to-go K x^2 + 2 p x + c from time j on, for b = m without noise."""
    K = W[horizon, 0, 0]
    p = -K * r[horizon, 0]
    c = K * r[horizon, 0] ** 2
    for back in range(horizon - j):
        i = horizon - 1 - back
        curvature = U[i, 0, 0] + m * m * K
        share = m * m / curvature if curvature > 0.0 else 0.0
        c += W[i, 0, 0] * r[i, 0] ** 2 - share * p * p
        p = a * (p - share * K * p) - W[i, 0, 0] * r[i, 0]
        K = W[i, 0, 0] + a * a * (K - share * K * K)
    return K, p, c


@_compiled
def certain_input(j: int, horizon: int, x: float, m: float, a: float, W: Array, U: Array, r: Array) -> float:
    """The certainty-equivalent input at time j: -m (K a x + p) / (U + m^2 K)."""
    K, p, _ = certain_to_go(j + 1, horizon, m, a, W, U, r)
    curvature = U[j, 0, 0] + m * m * K
    return float(-m * (K * a * x + p) / curvature) if curvature > 0.0 else 0.0


@_compiled
def certain_cost(j: int, horizon: int, u: float, x: float, m: float, a: float, W: Array, U: Array, r: Array) -> float:
    """Jbar(u): the noise-free cost of an input for b = m."""
    K, p, c = certain_to_go(j + 1, horizon, m, a, W, U, r)
    after = a * x + m * u
    here = x - r[j, 0]
    return float(W[j, 0, 0] * here * here + U[j, 0, 0] * u * u + K * after * after + 2.0 * p * after + c)


@_compiled
def cost(
    j: int, horizon: int, u: float, x: float, m: float, v: float, a: float, q: float, W: Array, U: Array, r: Array
) -> float:
    """J_j(u), the expected cost from time j on when every later input is optimal; infinite beyond three steps."""
    if horizon - j == 1:
        return last_cost(j, u, x, m, v, a, q, W, U, r)
    if horizon - j == 2:
        return cost_two(j, u, x, m, v, a, q, W, U, r)
    if horizon - j == 3:
        return cost_three(j, u, x, m, v, a, q, W, U, r)
    return math.inf


# columns of a row of results and the status of a plan, as in generated packages
_COST, _NOMINAL, _UNCERTAIN, _STATUS, _FALLBACK, _ITERATIONS = range(6)
_CONVERGED, _NOT_FINITE = 0, 3

_VECTOR, _MATRIX, _TENSOR = "float64[::1]", "float64[:, ::1]", "float64[:, :, ::1]"
_SIGNATURE = (
    f"int64(int64, int64, {_VECTOR}, {_MATRIX}, {_MATRIX}, {_MATRIX}, {_VECTOR}, {_VECTOR}, {_TENSOR}, {_TENSOR}, "
    f"{_MATRIX}, {_MATRIX}, {_VECTOR}, {_VECTOR}, {_MATRIX}, {_VECTOR}, {_MATRIX}, {_MATRIX}, {_MATRIX})"
)
_POINTERS: list[Any] = []


def _candidate_cost(k, horizon, z, P, Q, R, D, Xi, W, U, r, bounds, data, settings, candidates, work, small, wide, out):  # type: ignore[no-untyped-def]
    a = settings[0]
    if math.isnan(candidates[0, 0]):
        candidates[0, 0] = certain_input(k, horizon, z[0], z[1], a, W, U, r)
    u = candidates[0, 0]
    total = cost(k, horizon, u, z[0], z[1], P[1, 1], a, Q[0, 0], W, U, r)
    nominal = certain_cost(k, horizon, u, z[0], z[1], a, W, U, r)
    out[0, _COST] = total
    out[0, _NOMINAL] = nominal
    out[0, _UNCERTAIN] = total - nominal
    out[0, _STATUS] = _CONVERGED if math.isfinite(total) else _NOT_FINITE
    out[0, _FALLBACK] = 0.0
    out[0, _ITERATIONS] = 0.0
    return _CONVERGED if math.isfinite(total) else _NOT_FINITE


def cost_pointer() -> Any:
    """The exact cost as a function pointer for the search of a generated package, compiled at the first call."""
    if not _POINTERS:
        _POINTERS.append(cfunc(_SIGNATURE, cache=True)(_candidate_cost))
    return _POINTERS[0]


def coefficient(problem: Problem, steps: int) -> float:
    """The number a of a model x' = a x + b u that `exact` can treat, or a sentence that says why it cannot."""
    package = problem.package
    reasons = {
        "the model must have one state, one input, one unknown and one measurement": (
            (package.NX, package.NU, package.NTHETA, package.NY) == (1, 1, 1, 1)
        ),
        f"at most {LONGEST} steps can be treated, not {steps}": steps <= LONGEST,
        "the state itself must be measured, without noise": (
            package.H_SELECTS == (0,) and not np.any(package.numbers["measurement_noise"])
        ),
        "the unknown must not drift or move": (package.TRANSITION, package.DIFFUSION) == ("identity", "none"),
        "the input must have no bounds": bool(np.all(np.isinf(problem.bounds))),
        "the start must be known": problem.prior.covariance[0].max() == 0.0,
        "the input cost must be positive": bool(np.all(problem.input_cost > 0.0)),
    }
    for reason, holds in reasons.items():
        if not holds:
            raise SymdualError(f'the controller "exact" does not fit the model {package.name}: {reason}')
    a = float(evaluate.dynamics(package, [1.0], [0.0], [0.0])[0])
    for x, u, b in np.random.default_rng(0).standard_normal((8, 3)):
        if abs(evaluate.dynamics(package, [x], [u], [b])[0] - (a * x + b * u)) > 1e-12 * (
            abs(a * x) + abs(b * u) + 1.0
        ):
            raise SymdualError(
                f'the controller "exact" does not fit the model {package.name}: it is not x\' = a x + b u'
            )
    return a


def expected_cost(problem: Problem, k: int, belief: Belief, u: float) -> float:
    """J_k(u) for a belief whose state is known."""
    a = coefficient(problem, problem.horizon - k)
    x, m = belief.mean
    q = problem.package.numbers["process_noise"][0, 0]
    costs = (problem.state_cost, problem.input_cost, problem.reference)
    return float(cost(k, problem.horizon, float(u), x, m, belief.covariance[1, 1], a, q, *costs))
