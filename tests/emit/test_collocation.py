"""Implicit steps: kernels, dense twin and many digits agree, and steps solve stiff equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp
from scipy.integrate import solve_ivp

from symdual import Model, features, previous, unknown
from symdual.checks.expanded import expand
from symdual.common.arrays import Array
from symdual.common.errors import ModelError
from symdual.integrators import INTEGRATORS, Implicit
from symdual.many_digits.arithmetic import DIGITS
from symdual.many_digits.collocation import exact_matrix
from symdual.many_digits.model import ExactModel
from symdual.runtime import evaluate
from symdual.spec.specification import specified

x, v, w, u, k = sp.symbols("x v w u k")
RADAU = INTEGRATORS["radau"]


def models() -> dict[str, Model]:
    rate = unknown("k0", 7.2e10, 1e20) * sp.exp(-8750 / v) * x
    net = features.logistic("net", x + 0.3 * u, locations=[-1.0, 0.5], slope_mean=[-1.0, 0.7])
    stiff: dict[str, Any] = {"step": 0.05, "method": "radau"}
    forms = -w * unknown("a", 1.0) - 400 * w * (v - x) ** 2
    return {
        "tank": Model([x, v], [u], derivatives=[1 - x - rate, 350 - v + 209.2 * rate + 2.09 * (u - v)], **stiff),
        "weights": Model([x, v, w], [u], derivatives=[v + w**2, net * v + u * x, forms], substeps=2, **stiff),
        "past": Model([x, v], [u], derivatives=[v * sp.cos(k), -300 * v**3 + previous(u, 2)], time=k, **stiff),
        "affine": Model([x, v], [u], derivatives=[v, -2000 * x + unknown("b", 1.0) * u], substeps=3, **stiff),
    }


POINTS = {  # state, input, theta; the second of the tank ignites within the step
    "tank": [([0.877, 324.5], [300.0], [7e10]), ([0.7, 400.0], [300.0], [7e10])],
    "weights": [([0.3, -0.4, 0.9], [0.5], [1.1, -0.7, 0.4, 0.2, -0.5])],
    "past": [([0.3, -0.4, 0.2, 0.1], [0.5], [])],
    "affine": [([0.3, -0.4], [0.5], [1.3])],
}


def near(found: Array, wanted: Array, share: float) -> None:
    assert np.isfinite(wanted).all()
    np.testing.assert_allclose(found, wanted, rtol=share, atol=share * np.abs(wanted).max(initial=0.0))


@pytest.mark.parametrize("name", list(POINTS))
def test_kernels_twin_and_many_digits_agree(name: str, interpreted: Callable[[Model], Any]) -> None:
    model = models()[name].named("implicit")
    package, twin, exact = interpreted(model), expand(specified(model)), ExactModel(model)
    for point in POINTS[name]:
        state, action, theta = map(np.array, point)
        z, time, costate = np.concatenate([state, theta]), 3, 1.0 / np.abs(state)
        first = evaluate.jacobian(package, state, action, theta, time)
        slopes = np.hstack([first.f_x, first.f_theta, first.f_u])
        near(first.f, twin.dynamics(time, z, action), 1e-13)
        near(evaluate.dynamics(package, state, action, theta, time), first.f, 1e-15)
        wanted = twin.jacobian(time, z, action)
        near(slopes, wanted, 1e-11)
        f, f_x, f_u = evaluate.linearise(package, state, action, theta, time)
        near(np.hstack([f_x, f_u]), np.hstack([first.f_x, first.f_u]), 1e-15)
        second = evaluate.hessian(package, state, action, theta, costate, time)
        whole = np.block([[second.zz, second.uz.T], [second.uz, second.uu]])
        near(whole, twin.hessian(time, z, action, costate), 1e-10)
        np.testing.assert_array_equal(whole, whole.T)
        with mpmath.workdps(DIGITS):
            numbers = ([mpmath.mpf(float(n)) for n in part] for part in (state, action, theta))
            ends = np.array([float(n) for n in exact.dynamics(time, *numbers)])
        near(f, ends, 1e-13)


def test_nothing_that_lies_in_the_work_array_counts(interpreted: Callable[[Model], Any]) -> None:
    package = interpreted(models()["weights"].named("implicit"))
    state, action, theta = map(np.array, POINTS["weights"][0])
    z, costate, found = np.concatenate([state, theta]), np.ones(3), []
    for junk in (0.0, 7.0):
        pairs = (package.NPAIRS, package.NTHETA)
        shapes = (3 + package.NS, package.NZ), (1, package.NZ), (1, 1), (package.NTHETA,), pairs, pairs
        out = [np.zeros(shape) for shape in shapes]
        data, work = package.numbers["data"], np.full(package.WORK, junk)
        package.kernels.dynamics_hessian(0, z, action, costate, data, work, *out)
        found.append(out)
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_coefficients_are_those_of_the_polynomial() -> None:
    assert isinstance(RADAU, Implicit)
    with mpmath.workdps(DIGITS):
        nodes, matrix = exact_matrix(RADAU, mpmath.mp.prec)
        np.testing.assert_allclose([float(c) for c in nodes], RADAU.nodes, rtol=1e-15)
        np.testing.assert_allclose([[float(a) for a in row] for row in matrix], RADAU.matrix, rtol=1e-14)


def test_robertsons_problem(interpreted: Callable[[Model], Any]) -> None:
    """Rates from 0.04 to beyond 1e4, over steps that grow to 1e3, against an integrator that chooses its own."""
    fast, slow = 1e4 * v * w, 0.04 * x
    model = Model(
        [x, v, w], [u], derivatives=[fast - slow, slow - fast - 3e7 * v**2, 3e7 * v**2], step=1.0, method="radau"
    )
    package = interpreted(model.named("robertson"))
    place = package.DATA_ENTRIES["step_length"][0]
    state, time, steps = np.array([1.0, 0.0, 0.0]), 0.0, 1e-6 * 1.15 ** np.arange(144)
    for step in steps:
        package.numbers["data"][place] = step
        state = evaluate.dynamics(package, state, [0.0], [])
        time += step

    def slope(_: float, y: Array) -> list[float]:
        a, b, c = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
        return [b - a, a - b - c, c]

    wanted = solve_ivp(slope, (0.0, time), [1.0, 0.0, 0.0], method="Radau", rtol=1e-12, atol=1e-16).y[:, -1]
    np.testing.assert_allclose(state, wanted, rtol=1e-8, atol=1e-12)
    assert time > 1000.0


def test_what_has_no_solution_is_not_finite(interpreted: Callable[[Model], Any]) -> None:
    """x' = x^2 from 1 is infinite at t = 1."""
    for step, finite in ((0.9, True), (1.5, False)):
        package = interpreted(Model([x], [u], derivatives=[x**2 + u], step=step, method="radau").named("explodes"))
        first = evaluate.jacobian(package, [1.0], [0.0], [])
        second = evaluate.hessian(package, [1.0], [0.0], [], [1.0])
        for array in (*first[:3], second.zz, evaluate.dynamics(package, [1.0], [0.0], [])):
            assert np.isfinite(array).all() == finite
    near(evaluate.dynamics(interpreted(decay(0.9)), [1.0], [0.0], []), np.array([np.exp(-0.9)]), 1e-4)


def decay(step: float) -> Model:
    return Model([x], [u], derivatives=[-x + u], step=step, method="radau").named("decay")


def test_a_decay_never_grows(interpreted: Callable[[Model], Any]) -> None:
    for step in (1e-3, 1.0, 1e3, 1e9):
        assert 0.0 <= evaluate.dynamics(interpreted(decay(step)), [1.0], [0.0], [])[0] < 1.0


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(ModelError, match='method="radau" is not for models with state_bounds'):
        Model([x], [u], derivatives=[u], step=0.1, method="radau", state_bounds={x: (0, None)})
    g = features.gaussian_process("g", x, memory=8)
    with pytest.raises(ModelError, match='method="radau" is not for models with a Gaussian process'):
        Model([x], [u], derivatives=[g + u], step=0.1, method="radau", process_noise=0.01)
