"""Models with long sums and deep nests: exact derivatives, and code that Python, numba and C take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sympy as sp

from symdual import Model, unknown
from symdual.backends.c import source
from symdual.backends.c.backend import library_text
from symdual.backends.c.program import Program
from symdual.runtime import evaluate

TERMS, LEVELS = 150, 45
x, u = sp.symbols("x u")
gain = unknown("gain", 1.0)


def wave() -> sp.Expr:
    return gain * sp.Add(*(sp.cos(n * x) / n**2 for n in range(1, TERMS + 1)))


def nest() -> sp.Expr:
    e: sp.Expr = x
    for n in range(LEVELS):
        e = sp.sin(e + u / (n + 1))
    return e


def expected(x: float, u: float, gain: float) -> tuple[float, np.ndarray, np.ndarray]:
    """Value, gradient and Hessian of wave + nest by (x, gain, u)."""
    n = np.arange(1, TERMS + 1)
    cosines, sines = np.cos(n * x), np.sin(n * x)
    value, slope, bend = np.sum(cosines / n**2), -np.sum(sines / n), -np.sum(cosines)
    first = np.array([gain * slope, value, 0.0])
    second = np.array([[gain * bend, slope, 0.0], [slope, 0.0, 0.0], [0.0, 0.0, 0.0]])
    inner, d, h = x, np.array([1.0, 0.0, 0.0]), np.zeros((3, 3))
    for level in range(LEVELS):
        inner, d = inner + u / (level + 1), d + np.array([0.0, 0.0, 1.0]) / (level + 1)
        inner, d, h = np.sin(inner), np.cos(inner) * d, np.cos(inner) * h - np.sin(inner) * np.outer(d, d)
    return gain * value + inner, first + d, second + h


def test_long_sums_and_deep_nests(interpreted: Callable[[Model], Any]) -> None:
    model = Model([x], [u], [wave() + nest()], name="lengthy")
    lengthy = interpreted(model)
    for place in ((0.3, 0.4, 1.2), (-2.0, 1.1, 0.7)):
        at = ([place[0]], [place[1]], [place[2]])
        value, first, second = expected(*place)
        np.testing.assert_allclose(evaluate.dynamics(lengthy, *at), [value], rtol=1e-12)
        _, f_x, f_u, f_theta = evaluate.jacobian(lengthy, *at)
        np.testing.assert_allclose(np.hstack([f_x, f_theta, f_u])[0], first, rtol=1e-11, atol=1e-12)
        found = evaluate.hessian(lengthy, *at, [1.0])
        np.testing.assert_allclose(
            np.block([[found.zz, found.uz.T], [found.uz, found.uu]]), second, rtol=1e-11, atol=1e-11
        )
    assert max(line.count("math.") for line in lengthy.source.split("\n")) <= 80
    assert "sin(" in library_text(source.translated(Program(lengthy.files), "lengthy", "lengthy"))
