"""Nothing depends on units: states, inputs and unknowns are rescaled by powers of ten, and all stays the same.

What depends on them has an absolute constant in it, or an eigenvalue of a matrix whose rows have different units.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symdual
from symdual.common.errors import ModelError, SymdualError
from symdual.common.numbers import as_semidefinite, require_semidefinite, root
from symdual.runtime.problem import Problem
from symdual.runtime.result_fields import normalised_errors

InC = Callable[[Path | str, str], Problem]

#: turns a problem in its own units into the same one in others: x = x' / X and so on, by exact substitution
HEAD = """
import numpy as np
import sympy as sp
from symdual import Model, Scenario, unknown

POWERS = {powers}


def scaled(matrix, factors):
    matrix = np.asarray(matrix, float)
    square = np.diag(matrix) if matrix.ndim == 1 else matrix
    return square * np.outer(factors, factors)


def in_units(states, inputs, unknowns, motion, noise, measured, horizon, state_cost, input_cost, start, reference,
             spread, bounds=None, seen=None, **more):
    factors = [sp.Integer(10) ** power for power in POWERS]
    X, factors = factors[: len(states)], factors[len(states) :]
    U, P = factors[: len(inputs)], factors[len(inputs) :]
    new = {{s: unknown(str(s), float(f) * m, float(f) ** 2 * v) for f, (s, (m, v)) in zip(P, unknowns.items())}}
    swap = {{s: s / f for s, f in zip([*states, *inputs], [*X, *U])}} | {{s: new[s] / f for s, f in zip(unknowns, P)}}
    moved = [f * sp.sympify(e).xreplace(swap) for f, e in zip(X, motion)]
    x, u = np.array(X, float), np.array(U, float)
    own = {{"derivatives" if "step" in more else "dynamics": moved}}
    own |= {{key: more.pop(key) for key in ("step", "method", "substeps", "filter") if key in more}}
    own |= {{"bounds": {{s: (low * f, high * f) for s, f, (low, high) in zip(inputs, u, bounds)}}}} if bounds else {{}}
    own |= {{"observation": [sp.sympify(e).xreplace(swap) for e in seen]}} if seen else {{}}
    y = np.ones(len(seen)) if seen else x
    model = Model(states, inputs, process_noise=scaled(noise, x), measurement_noise=scaled(measured, y), **own)
    more |= {{"input_reference": list(np.multiply(more["input_reference"], u))}} if "input_reference" in more else {{}}
    costs = {{"state_cost": scaled(state_cost, 1 / x), "input_cost": scaled(input_cost, 1 / u)}}
    places = {{"start": list(np.multiply(start, x)), "reference": list(np.multiply(reference, x))}}
    return model, Scenario(model, horizon, **costs, **places, start_covariance=scaled(spread, x), **more)
"""

#: problems by name: the numbers of states, inputs and unknowns, and how they are written
PROBLEMS = {
    "gain": (1, 1, 1, """
x, u, b = sp.symbols("x u b")
NAME, scenario = in_units(
    [x], [u], {b: (0.3, 1.0)}, [x + b * u], [0.01], [0.01], 5, [1.0], [0.05], [1.0], [0.0], [0.05]
)
"""),
    "pair": (2, 2, 3, """
p, q, u, v, b, c, d = sp.symbols("p q u v b c d")
NAME, scenario = in_units(
    [p, q], [u, v], {b: (0.5, 2.0), c: (0.3, 1.0), d: (-0.5, 2.0)},
    [0.9 * p + 0.2 * q + b * u + c * v, 0.8 * q + d * v],
    [[0.1, 0.03], [0.03, 0.1]], [[0.01, 0.002], [0.002, 0.01]], 4, [1.0, 1.0], [[0.1, 0.02], [0.02, 0.1]], [1.0, -1.0],
    [0.0, 0.0], [[0.1, 0.02], [0.02, 0.2]],
)
"""),
    # a stirred tank: a rate of 7e10 1/min, an activation energy of 8750 K
    "reactor": (2, 1, 2, """
C, T, Tc, a, e = sp.symbols("C T Tc a e")
r = a * sp.exp(-e / T) * C
NAME, scenario = in_units(
    [C, T], [Tc], {a: (7.2e10, 1e20), e: (8750.0, 900.0)}, [1 - C - r, 350 - T + 209.2 * r + 2.09 * (Tc - T)],
    [1e-6, 0.1], [1e-4, 0.5], 6, [100.0, 0.0], [1e-4], [0.87, 324.5], [0.8, 0.0], [1e-4, 1.0], bounds=[(250, 350)],
    input_reference=[300.0], step=0.05, method="rk4",
)
"""),
    "cart": (2, 1, 2, """
p, v, F, a, b = sp.symbols("p v F a b")
NAME, scenario = in_units(
    [p, v], [F], {a: (1.0, 0.2), b: (0.3, 0.05)}, [p + 0.2 * v, v + 0.2 * (a * F - b * v - 0.5 * sp.sin(p))],
    [0.0, 1e-3], [1e-3, 1e-2], 5, [1.0, 0.1], [0.05], [0.0, 0.0], [1.0, 0.0], [0.0, 0.01],
)
"""),
    "rooted": (2, 1, 2, """
p, v, F, a, b = sp.symbols("p v F a b")
NAME, scenario = in_units(
    [p, v], [F], {a: (1.0, 0.2), b: (0.3, 0.05)}, [p + 0.2 * v, v + 0.2 * (a * F - b * v)],
    [1e-4, 1e-3], [1e-3, 1e-2], 5, [1.0, 0.1], [0.05], [0.0, 0.0], [1.0, 0.0], [0.01, 0.01], square_root=True,
)
"""),
    "curved": (1, 1, 1, """
x, u, b = sp.symbols("x u b")
NAME, scenario = in_units(
    [x], [u], {b: (1.0, 0.2)}, [x + b * u], [0.01], [1e-4], 5, [1.0], [0.1], [2.0], [0.0], [0.3], seen=[sp.exp(-x)],
    filter="iterated",
)
"""),
    "exact": (1, 1, 1, """
x, u, c = sp.symbols("x u c")
NAME, scenario = in_units(
    [x], [u], {c: (0.5, 1.0)}, [0.9 * x + u + c], [0.1], [0.0], 5, [1.0], [0.1], [1.0], [0.0], [0.0]
)
"""),
    "tanks": (3, 2, 3, """
h, i, j, q, s, a, b, g = sp.symbols("h i j q s a b g")
first, second = a * sp.sqrt(h + 1), b * sp.sqrt(i + 1)
NAME, scenario = in_units(
    [h, i, j], [q, s], {a: (0.5, 0.02), b: (0.6, 0.02), g: (1.0, 0.1)},
    [g * q - first, first - second + 0.3 * s, second + s - 0.5 * sp.sqrt(j + 1)], [1e-3] * 3, [1e-2, 1e-2], 5,
    [1.0, 2.0, 1.0], [0.1, 0.3], [1.0, 1.0, 2.0], [2.0, 1.5, 2.5], [0.01] * 3, bounds=[(0, 3), (-1, 2)], seen=[h, j],
    step=0.2, method="rk4",
)
"""),
    # six masses in a row, twelve states, driven at both ends
    "chain": (12, 2, 3, """
x, (u, w, k, l, n) = sp.symbols("x0:12"), sp.symbols("u w k l n")
place = [0, *x[:6], 0]
pulls = [k * (place[i] - 2 * place[i + 1] + place[i + 2]) - l * x[6 + i] - 0.2 * x[i] ** 3 for i in range(6)]
pulls[0] += n * u
pulls[5] += w
NAME, scenario = in_units(
    list(x), [u, w], {k: (1.0, 0.1), l: (0.2, 0.01), n: (0.8, 0.2)}, [*x[6:], *pulls], [1e-4] * 12, [1e-3] * 12, 4,
    [1.0] * 6 + [0.1] * 6, [0.05, 0.1], [0.5] + [0.0] * 11, [0.0] * 12, [1e-3] * 12, step=0.2, method="rk4",
)
"""),
    "stiff": (2, 1, 2, """
s, v, u, a, b = sp.symbols("s v u a b")
NAME, scenario = in_units(
    [s, v], [u], {a: (1.0, 0.1), b: (2.0, 0.5)}, [v, b * u - a * sp.tanh(v / 0.2) - 5 * v], [1e-6, 1e-4],
    [1e-4, 1e-3], 5, [5.0, 0.1], [0.02], [0.0, 0.0], [0.5, 0.0], [1e-4, 1e-4], step=0.05, method="rk4", substeps=4,
)
"""),
    "unstable": (2, 1, 2, """
a, w, u, g, h = sp.symbols("a w u g h")
NAME, scenario = in_units(
    [a, w], [u], {g: (9.0, 4.0), h: (1.0, 0.3)}, [a + 0.05 * w, w + 0.05 * (g * sp.sin(a) + h * u)], [1e-6, 1e-5],
    [1e-4, 1e-3], 6, [10.0, 0.1], [0.01], [0.2, 0.0], [0.0, 0.0], [1e-4, 1e-4], bounds=[(-20, 20)],
)
"""),
    # an input that costs nothing by itself, and has bounds
    "free": (2, 2, 2, """
x, y, u, v, b, c = sp.symbols("x y u v b c")
NAME, scenario = in_units(
    [x, y], [u, v], {b: (0.3, 1.0), c: (0.5, 0.5)}, [x + b * u, 0.9 * y + c * v + 0.1 * x], [0.01, 0.01],
    [0.01, 0.01], 4, [1.0, 1.0], [0.0, 0.1], [1.0, 0.0], [0.0, 0.5], [0.05, 0.05], bounds=[(-2, 2), (-1, 1)],
)
"""),
}  # fmt: skip

STATISTICS = ("nees_state", "nees_parameters", "nis", "costs")


def apart(one: Any, other: Any, least: Any = 0.0) -> float:
    """The largest difference of two arrays by their last axis, relative to the largest entry there, or to `least`."""
    one, other = np.asarray(one, float), np.asarray(other, float)
    assert np.array_equal(np.isnan(one), np.isnan(other))
    axes = tuple(range(one.ndim - 1))
    size = np.maximum(np.nanmax(np.abs(one), axis=axes, initial=0.0), least)
    return float(np.max(np.nanmax(np.abs(one - other), axis=axes, initial=0.0) / np.where(size > 0.0, size, 1.0)))


def in_two_units(in_c: InC, name: str, seed: int = 0) -> tuple[list[Problem], list[np.ndarray[Any, Any]]]:
    """A problem in its own units and in others, with the units of the states, inputs and unknowns there."""
    *sizes, text = PROBLEMS[name]
    powers = np.random.default_rng(seed).integers(-6, 7, sum(sizes))
    problems = []
    for own, given in ((f"{name}_plain", 0 * powers), (f"{name}_scaled", powers)):
        problems.append(in_c(HEAD.format(powers=given.tolist()) + text.replace("NAME", own), own))
    return problems, np.split(10.0**powers, np.cumsum(sizes[:2]))


def searched(problem: Problem, name: str) -> Any:
    """How far a controller searches at its first step, along each input: it ends at a share of that, not of the input.

    Where an input hardly matters the last bits decide by which points a simplex comes to its end.
    """
    if name not in ("cautious", "dual"):
        return 0.0
    controller = symdual.controller(problem, name)
    _, _, info = controller.step(controller.init())
    return np.ptp(info.candidates, axis=0)


def compare(in_c: InC, name: str, controllers: list[str], runs: int) -> None:
    """Simulate in both units and compare: truths and noise, decisions, and what the filter is judged by."""
    problems, (X, U, P) = in_two_units(in_c, name)
    settings = symdual.Settings(truth="prior")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", symdual.SymdualWarning)
        plain, scaled = (symdual.simulate(t, controllers, runs=runs, seed=3, settings=settings) for t in problems)
    for controller in controllers:
        here, there = plain[controller], scaled[controller]
        assert apart(here.truths, there.truths / P) < 1e-14
        assert apart(here.inputs, there.inputs / U, searched(problems[0], controller)) < 1e-6, controller
        if controller in ("ce", "planned"):  # after a search states follow what is left open in inputs
            assert apart(here.states, there.states / X) < 1e-6, controller
        # a search ends at a minimum, where the cost tells inputs apart to half of the digits: so do statistics after it
        exact = 1e-8 if controller == "ce" else 1e-6
        for field in STATISTICS:
            assert apart(plain.array(controller, field), scaled.array(controller, field)) < exact, (controller, field)
    assert np.any(plain[controllers[-1]].inputs != plain["ce"].inputs) or len(controllers) == 1


def test_decisions_and_statistics_do_not_depend_on_units(in_c: InC) -> None:
    compare(in_c, "pair", ["ce", "dual"], runs=2)


@pytest.mark.soak
@pytest.mark.parametrize("name", PROBLEMS)
def test_no_decision_of_any_controller_depends_on_units(in_c: InC, name: str) -> None:
    compare(in_c, name, ["ce", "cautious", "dual", "planned"], runs=3)


def test_normalised_errors_have_no_units() -> None:
    random = np.random.default_rng(4)
    factors = random.standard_normal((30, 4, 4))
    covariances, errors = factors @ factors.swapaxes(1, 2), random.standard_normal((30, 4))
    units = np.array([1e10, 1.0, 1e-9, 1e3])
    found = normalised_errors(errors * units, covariances * np.outer(units, units), units**2)
    assert found == pytest.approx(normalised_errors(errors, covariances, np.ones(4)), rel=1e-8)


def test_draws_has_no_units() -> None:
    covariance, units = np.array([[2.0, 0.9], [0.9, 1.0]]), np.array([1e10, 1e-3])
    drawn = root(covariance * np.outer(units, units))
    assert drawn @ drawn.T == pytest.approx(covariance * np.outer(units, units), rel=1e-12)
    assert drawn / units[:, None] == pytest.approx(root(covariance), rel=1e-12)


def test_a_correlation_of_more_than_one_is_refused_whatever_the_units() -> None:
    wrong = np.array([[1e20, 1.5e10], [1.5e10, 1.0]])
    with pytest.raises(ModelError, match=r"the smallest eigenvalue of its correlations is -0\.5"):
        as_semidefinite(wrong, 2, "prior_covariance")
    with pytest.raises(SymdualError, match=r"correlations is -0\.5"):
        require_semidefinite(wrong[None], "the covariance of the belief", 1e-6)
    with pytest.raises(ModelError, match=r"smallest eigenvalue"):
        as_semidefinite([1e10, -1e-3], 2, "process_noise")
    assert as_semidefinite(wrong / np.array([[1.0, 2.0], [2.0, 1.0]]), 2, "fine").shape == (2, 2)


def test_an_input_is_searched_in_its_own_units(in_c: InC) -> None:
    """u' U u >= u_a^2 / (U^-1)_aa: no further than that, along each input."""
    problem = in_c(HEAD.format(powers=[0] * 7) + PROBLEMS["pair"][3].replace("NAME", "pair_plain"), "pair_plain")
    U = np.array([[0.1, 0.02], [0.02, 0.1]])
    assert problem.floors == pytest.approx(np.tile(1.0 / np.diag(np.linalg.inv(U)), (problem.horizon, 1)), rel=1e-12)
    units = np.array([1e-6, 1e4])
    scaled = problem.changed(input_cost=U * np.outer(units, units))
    assert scaled.floors == pytest.approx(problem.floors * units**2, rel=1e-12)
