"""What inputs within bounds can answer: the linear feedback that a clipped one amounts to."""

from __future__ import annotations

import math


def _upper_tail(x: float) -> float:
    """P(xi > x) of a standard normal xi."""
    return 0.5 * math.erfc(x / math.sqrt(2.0))


def added_excess(g: float, s: float) -> float:
    """(E max(0, g + s xi)^2 - max(0, g)^2) / s^2 = ((g^2 + s^2) Phi(g / s) + g s phi(g / s) - max(0, g)^2) / s^2."""
    density = math.exp(-0.5 * (g / s) ** 2) / math.sqrt(2.0 * math.pi)
    return ((g * g + s * s) * _upper_tail(-g / s) + g * s * density - max(0.0, g) ** 2) / s**2


def share_of(w: float, s: float, u: float, low: float, high: float) -> tuple[float, float]:
    """The share of what an answer N(0, s^2) around w saves if it is clipped, and its equivalent gain."""
    if s == 0.0:
        return float(low < u < high), 1.0
    share = 1.0
    if math.isfinite(high):
        share -= added_excess(w - high, s)
    if math.isfinite(low):
        share -= added_excess(low - w, s)
    inside = _upper_tail((low - w) / s) - _upper_tail((high - w) / s)
    return (share if share > 1e-12 else 0.0), inside
