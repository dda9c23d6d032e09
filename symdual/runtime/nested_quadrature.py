"""The expected cost of the smallest problem when every later input is optimal, by nested quadrature; for `exact`.

    x' = a x + b u + xi,   xi ~ N(0, Q),   y = x,   a known, b ~ N(m, v) unknown

The state is measured without noise, so the belief is (x, m, v), and Bellman's equation can be written down:

    V_T(x) = W_T (x - r_T)^2
    J_k(u) = W_k (x - r_k)^2 + U_k u^2 + E V_{k+1}(a x + m u + s e, m + d e, v Q / s^2),    e ~ N(0, 1)
    V_k    = min_u J_k(u),        s^2 = u^2 v + Q,    d = v u / s

| what      | how                                                                                                 |
|-----------|-----------------------------------------------------------------------------------------------------|
| V_{T-1}   | min of a quadratic: polynomials and W E^2 K / (K + W m^2), E = a x - r_T, K = U_{T-1} + W_T v       |
| J_{T-2}   | the mean of that fraction: a pole in the complex plane, so the Faddeeva function; see `left_over`   |
| V_{T-2}   | every valley of J_{T-2} on a grid that is even in asinh(u sqrt(v / Q)), refined with the derivative |
| J_{T-3}   | Gauss and Kronrod, halved where they differ: V_{T-2} has kinks where the best input changes sign    |

Another step would be a quadrature over a minimum over this: at most three steps are within reach. All
functions are in this file: numba would not notice that one in another file has changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numba import njit

from symdual.common.arrays import Array
from symdual.runtime.compiled import may_keep  # which makes numba's cache safe before the first function

LONGEST = 3  #: steps
_KEPT = may_keep(Path(__file__).parent)

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _compiled(function: _Function) -> _Function:
    """The function compiled by numba, with its types kept."""
    return cast(_Function, njit(cache=_KEPT, error_model="numpy", fastmath={"contract", "reassoc"})(function))


class Two(NamedTuple):
    """What two steps are about: the model, the weights and references of three times, and the costs of two inputs."""

    a: float
    q: float
    W0: float
    W1: float
    W2: float
    U0: float
    U1: float
    r0: float
    r1: float
    r2: float


class Next(NamedTuple):
    """The belief after an input, as a function of the noise e: (x + s e, m + d e, v)."""

    x: float
    s: float
    m: float
    d: float
    v: float


@_compiled
def two_from(j: int, a: float, q: float, W: Array, U: Array, r: Array) -> Two:
    """The numbers of the steps j and j + 1."""
    return Two(
        a, q, W[j, 0, 0], W[j + 1, 0, 0], W[j + 2, 0, 0], U[j, 0, 0], U[j + 1, 0, 0], r[j, 0], r[j + 1, 0], r[j + 2, 0]
    )


@_compiled
def last_cost(
    j: int, u: float, x: float, m: float, v: float, a: float, q: float, W: Array, U: Array, r: Array
) -> float:
    """J_{T-1}(u), T = j + 1."""
    weight = W[j + 1, 0, 0]
    error = a * x + m * u - r[j + 1, 0]
    here = x - r[j, 0]
    return float(W[j, 0, 0] * here * here + U[j, 0, 0] * u * u + weight * (error * error + v * u * u + q))


# ------------------------------------------------------------ two steps


def _faddeeva_table(count: int) -> tuple[float, Array]:
    """L and the coefficients of p, highest power first, of the approximation in `faddeeva`."""
    length = math.sqrt(count / math.sqrt(2.0))
    angle = np.arange(1 - 2 * count, 2 * count) * np.pi / (2 * count)
    place = length * np.tan(0.5 * angle)
    samples = np.exp(-place * place) * (length * length + place * place)
    return length, samples @ np.cos(np.outer(angle, np.arange(count, 0, -1))) / (4 * count)


_TERMS = 36  # of the Faddeeva function: 14 digits
_LENGTH, _TABLE = _faddeeva_table(_TERMS)
_POINTS = 32  # of Gauss and Hermite
_PLACES, _SHARES = np.polynomial.hermite_e.hermegauss(_POINTS)
_SHARES = _SHARES / math.sqrt(2.0 * math.pi)
_FAR = 4.0  # standard deviations: poles farther from the real axis than this leave a polynomial of low degree
_ASIDE = 9.0  # standard deviations: poles farther along the real axis than this have no weight


@_compiled
def faddeeva(x: float, y: float) -> complex:
    """w(z) = exp(-z^2) erfc(-i z), z = x + i y, for y >= 0 and |z| up to 10 or so.

    w(z) = 2 p(Z) / (L - i z)^2 + 1 / (sqrt(pi) (L - i z)), where Z = (L + i z) / (L - i z) takes the upper half plane
    to the unit disc (J. A. C. Weideman, SIAM J. Numer. Anal. 31, 1994). A polynomial with real coefficients at a
    complex place takes two real numbers: its remainder modulo Z^2 - 2 Re(Z) Z + |Z|^2.
    """
    below = 1.0 / complex(_LENGTH + y, -x)
    place = complex(_LENGTH - y, x) * below
    twice = 2.0 * place.real
    square = place.real * place.real + place.imag * place.imag
    slope = 0.0
    constant = _TABLE[0]
    for k in range(1, _TERMS):
        slope, constant = constant + twice * slope, _TABLE[k] - square * slope
    return complex(2.0 * (slope * place + constant) * below * below + below / math.sqrt(math.pi))


@_compiled
def left_over(
    error: float,
    error_u: float,
    spread: float,
    spread_u: float,
    m: float,
    d: float,
    d_u: float,
    kept: float,
    applied_u: float,
    weight: float,
) -> tuple[float, float]:
    """What the best last input leaves, E[W E^2 K / (K + W M^2)], and its derivative by u; m does not depend on u.

    E = error + spread e and M = m + d e with d >= 0, K = `kept`. The poles are at e = zeta and its conjugate, zeta =
    (-m + i sqrt(K / W)) / d. With F(zeta) = E[1 / (e - zeta)] = i sqrt(pi / 2) w(zeta / sqrt(2)) and F' = -1 - zeta F,

        E[W E^2 K / (K + W M^2)] = W Im(zeta) Im[(error + spread zeta)^2 F + spread^2 zeta].

    This cancels for large zeta, where the integrand has no feature that Gauss and Hermite would miss.
    """
    height = math.sqrt(kept / weight) if weight > 0.0 else math.inf
    if height >= _FAR * d or abs(m) >= _ASIDE * d:
        total = 0.0
        rate = 0.0
        for i in range(_POINTS):
            e = _PLACES[i]
            missed = error + spread * e
            mean = m + d * e
            over = 1.0 / (kept + weight * mean * mean)
            part = _SHARES[i] * missed * over
            total += part * missed
            rate += part * (
                2.0 * (error_u + spread_u * e) - missed * over * (applied_u + 2.0 * weight * mean * d_u * e)
            )
        return weight * kept * total, weight * (applied_u * total + kept * rate)
    pole = complex(-m / d, height / d)
    pole_u = complex(0.0, 0.5 * applied_u / (weight * height * d)) - pole * (d_u / d)
    mean = complex(0.0, math.sqrt(0.5 * math.pi)) * faddeeva(math.sqrt(0.5) * pole.real, math.sqrt(0.5) * pole.imag)
    mean_u = -(1.0 + pole * mean) * pole_u
    there = error + spread * pole
    there_u = error_u + spread_u * pole + spread * pole_u
    inner = (there * there * mean + spread * spread * pole).imag
    inner_u = (
        there * (2.0 * there_u * mean + there * mean_u) + spread * (2.0 * spread_u * pole + spread * pole_u)
    ).imag
    return weight * pole.imag * inner, weight * (pole_u.imag * inner + pole.imag * inner_u)


@_compiled
def cost_and_slope(u: float, x: float, m: float, v: float, two: Two) -> tuple[float, float]:
    """J_{T-2}(u) and its derivative.

    The sign of the noise is free, so d = v |u| / s and E = a x' - r_T = error + a sign(u) s e.
    """
    square = u * u * v + two.q
    s = math.sqrt(square)
    d, d_u, left, left_u = 0.0, 0.0, v, 0.0
    if s > 0.0:
        d = v * abs(u) / s
        left = v * two.q / square
        d_u = math.copysign(left, u) / s
        left_u = -2.0 * u * v * left / square
    after = two.a * x + m * u
    error = two.a * after - two.r2
    spread = two.a * math.copysign(s, u)
    kept = two.U1 + two.W2 * left
    rest, rest_u = left_over(error, two.a * m, spread, two.a * d, m, d, d_u, kept, two.W2 * left_u, two.W2)
    here = x - two.r0
    there = after - two.r1
    value = two.W0 * here * here + two.U0 * u * u + two.W1 * (there * there + square) + two.W2 * two.q + rest
    return value, 2.0 * (two.U0 * u + two.W1 * (m * there + v * u)) + rest_u


@_compiled
def cost_two(j: int, u: float, x: float, m: float, v: float, a: float, q: float, W: Array, U: Array, r: Array) -> float:
    """J_{T-2}(u), T = j + 2."""
    return cost_and_slope(u, x, m, v, two_from(j, a, q, W, U, r))[0]


# ------------------------------------------------------------ the best of two steps

_STEP = 0.5  # of the grid in t, u = scale sinh(t)
_FEWEST = 20  # steps of the grid on a side
_LEAST_SCALE = 1e-6  # of the largest input
_SETTLED = 1e-8  # of the value: what a parabola may take off the last point of a refinement


@_compiled
def valley(
    t0: float,
    f0: float,
    g0: float,
    t1: float,
    f1: float,
    g1: float,
    scale: float,
    x: float,
    m: float,
    v: float,
    two: Two,
) -> float:
    """The least cost between t0, where it falls, and t1, where it rises, by cubics through values and derivatives."""
    f = min(f0, f1)
    drop = 0.0
    for _ in range(30):
        bend = g0 + g1 - 3.0 * (f1 - f0) / (t1 - t0)
        root = math.sqrt(max(bend * bend - g0 * g1, 0.0))
        edge = 1e-3 * (t1 - t0)
        t = t1 - (t1 - t0) * (g1 + root - bend) / (g1 - g0 + 2.0 * root)
        t = min(max(t, t0 + edge), t1 - edge)
        f, g = cost_and_slope(scale * math.sinh(t), x, m, v, two)
        g *= scale * math.cosh(t)
        if g < 0.0:
            curvature = (g1 - g) / (t1 - t)
            t0, f0, g0 = t, f, g
        else:
            curvature = (g - g0) / (t - t0)
            t1, f1, g1 = t, f, g
        drop = 0.5 * g * g / curvature
        if not drop > _SETTLED * f:
            break
    return f - drop


@_compiled
def side(end: float, least: float, f0: float, g0: float, scale: float, x: float, m: float, v: float, two: Two) -> float:
    """The least cost of the inputs between 0 and `end`, or `least` if none is lower.

    f0 and g0 are the cost at 0 and its derivative. A valley is not refined if it would have to fall faster inside than
    at its edges to be lower than `least`.
    """
    if end == 0.0:
        return least
    signed = math.copysign(scale, end)
    last = math.asinh(end / signed)
    step = min(_STEP, last / _FEWEST)
    g0 *= signed
    for i in range(1, math.ceil(last / step) + 1):
        t = i * step
        grown = math.exp(t)
        f1, g1 = cost_and_slope(0.5 * signed * (grown - 1.0 / grown), x, m, v, two)
        g1 *= 0.5 * signed * (grown + 1.0 / grown)
        if g0 < 0.0 and g1 >= 0.0 and min(f0, f1) - step * max(-g0, g1) < least:
            least = min(least, valley(t - step, f0, g0, t, f1, g1, signed, x, m, v, two))
        f0, g0 = f1, g1
    return least


@_compiled
def certain_guess(x: float, m: float, two: Two) -> float:
    """The certainty-equivalent input with two steps to go: -m (K a x + p) / (U + m^2 K)."""
    share = two.a * two.W2 * two.U1 / (two.U1 + m * m * two.W2)
    K = two.W1 + two.a * share
    p = -two.W1 * two.r1 - share * two.r2
    return -m * (K * two.a * x + p) / (two.U0 + m * m * K)


@_compiled
def value_two(x: float, m: float, v: float, two: Two) -> float:
    """V_{T-2}: the lowest valley of J_{T-2}.

    What can be learned changes at u = sqrt(Q / v), so the grid is even in asinh(u sqrt(v / Q)). It ends where

        W_k (x - r_k)^2 + U_k u^2 + W_{k+1} E(x' - r_{k+1})^2 + W_{k+2} Q,

    which is no more than J, exceeds the cost of zero or of the certainty-equivalent input.
    """
    zero, slope = cost_and_slope(0.0, x, m, v, two)
    guessed, _ = cost_and_slope(certain_guess(x, m, two), x, m, v, two)
    least = min(zero, guessed)
    miss = two.a * x - two.r1
    curvature = two.U0 + two.W1 * (m * m + v)
    middle = -two.W1 * m * miss / curvature
    here = x - two.r0
    floor = two.W0 * here * here + two.W1 * (miss * miss + two.q) + two.W2 * two.q
    reach = math.sqrt(max((least - floor) / curvature + middle * middle, 0.0))
    longest = abs(middle) + reach
    if not 0.0 < longest < math.inf:  # nothing to search, or not a number
        return zero
    scale = math.sqrt(two.q / v) if v > 0.0 else longest
    scale = min(max(scale, _LEAST_SCALE * longest), longest)
    least = side(min(middle - reach, 0.0), least, zero, slope, scale, x, m, v, two)
    return side(max(middle + reach, 0.0), least, zero, slope, scale, x, m, v, two)


# ------------------------------------------------------------ three steps

_REACH = 8.0  # standard deviations on either side
_EDGES = np.array([-_REACH, -3.0, 0.0, 3.0, _REACH, _REACH, _REACH])  # of the first panels, with room for two more
_WAITING = 64  # panels that may wait
_SHORTEST = 1e-6  # panel that is still halved
_ACCURACY = 1e-9  # of the expectation: by how much the two rules may differ in a panel

# Gauss and Kronrod: 15 places, of which every second is one of Gauss's 7; the left half and the middle
_RULE = np.array(
    """-0.9914553711208126 -0.9491079123427585 -0.8648644233597691 -0.7415311855993944
    -0.5860872354676911 -0.4058451513773972 -0.2077849550078985 0.0""".split(),
    dtype=np.float64,
)
_KRONROD = np.array(
    """0.02293532201052922 0.06309209262997855 0.1047900103222502 0.1406532597155259
    0.1690047266392679 0.1903505780647854 0.2044329400752989 0.2094821410847278""".split(),
    dtype=np.float64,
)
_GAUSS = np.array([0.0, 0.1294849661688697, 0.0, 0.2797053914892767, 0.0, 0.3818300505051189, 0.0, 0.4179591836734694])
_RULE = np.concatenate([_RULE, -_RULE[-2::-1]])
_KRONROD = np.concatenate([_KRONROD, _KRONROD[-2::-1]])
_GAUSS = np.concatenate([_GAUSS, _GAUSS[-2::-1]])
_NODES = len(_RULE)


@_compiled
def next_value(e: float, ahead: Next, two: Two) -> float:
    """V_{T-2} after the noise e."""
    return value_two(ahead.x + ahead.s * e, ahead.m + ahead.d * e, ahead.v, two)


@_compiled
def panel(low: float, high: float, ahead: Next, two: Two) -> tuple[float, float]:
    """The integral of exp(-e^2 / 2) V_{T-2} by Kronrod's rule, and how far Gauss's differs."""
    middle = 0.5 * (low + high)
    half = 0.5 * (high - low)
    kronrod = 0.0
    gauss = 0.0
    for i in range(_NODES):
        e = middle + half * _RULE[i]
        value = math.exp(-0.5 * e * e) * next_value(e, ahead, two)
        kronrod += _KRONROD[i] * value
        gauss += _GAUSS[i] * value
    return half * kronrod, half * abs(kronrod - gauss)


@_compiled
def first_panels(panels: Array, ahead: Next, two: Two) -> int:
    """Rows (low, high) between edges and the noises after which the best input may change its sign.

    V_{T-2} is even in m, so it has a kink at m = 0 unless the best input is zero there. It is even in x as well where
    there is no reference, or a constant one that the model can stay at, and then has another where a x = r.
    """
    cuts = _EDGES.copy()
    if abs(ahead.m) < _REACH * abs(ahead.d):
        cuts[-1] = -ahead.m / ahead.d
    if abs(two.r1 - two.a * ahead.x) < _REACH * abs(two.a * ahead.s):
        cuts[-2] = (two.r1 - two.a * ahead.x) / (two.a * ahead.s)
    cuts.sort()
    count = 0
    low = cuts[0]
    for i in range(1, len(cuts)):
        if cuts[i] - low > _SHORTEST:
            panels[count] = (low, cuts[i])
            low = cuts[i]
            count += 1
    return count


@_compiled
def expected_value(ahead: Next, two: Two) -> float:
    """E V_{T-2}, by panels that are halved where two rules differ."""
    panels = np.empty((_WAITING, 2))
    count = first_panels(panels, ahead, two)
    rough = next_value(-1.0, ahead, two) + next_value(1.0, ahead, two)  # twice E of a parabola
    tolerance = _ACCURACY * math.sqrt(0.5 * math.pi) * rough
    total = 0.0
    while count > 0:
        count -= 1
        low, high = panels[count]
        integral, difference = panel(low, high, ahead, two)
        if not difference > tolerance or high - low < _SHORTEST or count + 2 > _WAITING:
            total += integral
            continue
        middle = 0.5 * (low + high)
        panels[count] = (low, middle)
        panels[count + 1] = (middle, high)
        count += 2
    return total / math.sqrt(2.0 * math.pi)


@_compiled
def cost_three(
    j: int, u: float, x: float, m: float, v: float, a: float, q: float, W: Array, U: Array, r: Array
) -> float:
    """J_{T-3}(u), T = j + 3."""
    square = u * u * v + q
    s = math.sqrt(square)
    d = v * u / s if s > 0.0 else 0.0
    left = v * q / square if s > 0.0 else v
    ahead = Next(a * x + m * u, s, m, d, left)
    here = x - r[j, 0]
    expected = expected_value(ahead, two_from(j + 1, a, q, W, U, r))
    return float(W[j, 0, 0] * here * here + U[j, 0, 0] * u * u + expected)


# ------------------------------------------------------------ any number of steps


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
