"""A problem that is written in another way, or in other units, has the same decisions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import symdual
from symdual.runtime.constraints import chosen_weights
from symdual.runtime.controller import controller
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.options import Options

Make = Callable[[str, str], LoadedPackage]

HEAD = """
import sympy as sp
from symdual import Model, Scenario, features, unknown
x, u = sp.symbols("x u")
"""

UNITS = (
    HEAD
    + """
X, U = {X}, {U}
b = unknown("b", 0.6 * X / U, 0.4 * (X / U) ** 2)
noise = 1e-2 * X**2
{name} = Model([x], [u], [0.9 * x + b * u + 0.1 * X * sp.sin(x / X)], process_noise=noise, measurement_noise=noise)
scenario = Scenario({name}, 5, state_cost=1 / X**2, input_cost=0.05 / U**2, start=0.3 * X, reference=X{more})
"""
)


@pytest.mark.parametrize("wall", [False, True])
def test_planned_in_other_units(make_quickly: Make, wall: bool) -> None:
    more = ", constraints=[x <= 0.8 * X], probability=0.9" if wall else ""
    found = []
    for name, X, U in (("plain", 1.0, 1.0), ("tiny", 1e-6, 1e-9)):
        name = f"{name}_{wall}".lower()
        package = make_quickly(name, UNITS.format(name=name, X=X, U=U, more=more))
        found.append(controller(symdual.problem(package), "planned").act()[0] / U)
    assert found[1] == pytest.approx(found[0], abs=5e-3 if wall else 1e-9)


SQUARES = (
    HEAD
    + """
g = unknown("g", 0.8, 0.3)
{name} = Model([x], [u], [0.8 * x + g * u**2], process_noise=0.01, measurement_noise=0.01, bounds={{u: ({least}, 3)}})
scenario = Scenario({name}, 4, start=1.0, reference=4.0, input_cost=0.01)
"""
)


@pytest.mark.parametrize("name", ["cautious", "dual"])
def test_an_input_that_could_rest_where_it_has_no_slope(make_quickly: Make, name: str) -> None:
    resting, awake = (
        controller(symdual.problem(make_quickly(model, SQUARES.format(name=model, least=least))), name).act()[0]
        for model, least in (("resting", 0.0), ("awake", 0.1))
    )
    assert resting == pytest.approx(awake, abs=0.01)  # how often an answer is clipped depends on the bound


WORDINGS = (
    HEAD
    + """
g = sp.Symbol("g") if {state} else unknown("g", 0.3, 1.0)
more = {{"observation": [x], "process_noise": [0.05, 0.0]}} if {state} else {{"process_noise": 0.05}}
{name} = Model([x, g][: 1 + {state}], [u], [x + g * u, g][: 1 + {state}], measurement_noise=0.01, **more)
start = {{"start": [2.0, 0.3], "start_covariance": [0.0, 1.0]}} if {state} else {{"start": [2.0]}}
scenario = Scenario({name}, 8, state_cost=[1.0, 0.0][: 1 + {state}], input_cost=0.1, **start)
"""
)


@pytest.mark.parametrize("name", ["dual", "planned"])
def test_an_unknown_that_is_written_as_a_state(make_quickly: Make, name: str) -> None:
    unknown, state = (
        controller(symdual.problem(make_quickly(model, WORDINGS.format(name=model, state=number))), name).act()[0]
        for number, model in enumerate(("as_unknown", "as_state"))
    )
    assert state == pytest.approx(unknown, abs=1e-6)
    assert abs(state) < 1.5  # where ce takes 4


LEVELS = (
    HEAD
    + """
b = unknown("b", 0.3, 1.0)
{name} = Model([x], [u], [x + b * u], process_noise=1e-2, measurement_noise=1e-2, bounds={{u: (-20, 20)}})
scenario = Scenario({name}, 4, input_cost=0.02, terminal_cost=(x - 1) ** 2 {more})
"""
)


@pytest.mark.parametrize("name", ["cautious", "dual"])
def test_a_constant_in_the_cost_does_not_limit_the_search(make_quickly: Make, name: str) -> None:
    plain, shifted = (
        controller(symdual.problem(make_quickly(model, LEVELS.format(name=model, more=more))), name).act()[0]
        for model, more in (("level", ""), ("lower", "- 10"))
    )
    assert shifted == pytest.approx(plain, rel=1e-6)


CASES = (
    HEAD
    + """
b = unknown("b", 0.8, 0.2)
{name} = Model([x], [u], [x + b * u + 1], process_noise=1e-2, measurement_noise=1e-2)
scenario = Scenario({name}, 4, input_cost=1.0, cost=[{cost}], start=-2.0)
"""
)


def test_cases_with_different_slopes_are_not_affine(make_quickly: Make) -> None:
    costs = {"apart": "sp.Piecewise((10 * x, x > 0), (x, True))", "larger": "sp.Max(10 * x, x)"}
    found = []
    for name, cost in costs.items():
        package = make_quickly(name, CASES.format(name=name, cost=cost))
        assert not package.nominal.LINEAR
        ce = controller(symdual.problem(package), "ce")
        found.append(ce.step(ce.init())[2].parts.certainty_equivalent)
    assert found[0] == pytest.approx(found[1], rel=1e-9)


GAINS = (
    HEAD
    + """
{name} = Model([x], [u], [0.9 * x + {gain}], process_noise=1e-2, measurement_noise=1e-2)
scenario = Scenario({name}, 15, input_cost=0.05, reference=1.0, start=0.2)
"""
)


def test_a_function_of_which_nothing_is_remembered_is_uncertain(make_quickly: Make) -> None:
    """A straight line through zero with a random slope is an unknown gain.

    With more steps than those of short plans, which have a closer look ahead, and without rollouts, which draw each in
    its own way.
    """
    gains = {
        "gained": 'unknown("b", 0.0, 0.4) * u',
        "lined": 'features.gaussian_process("g", u, lambda p, q: 0.4 * p * q, memory=20)',
    }
    problems = [symdual.problem(make_quickly(name, GAINS.format(name=name, gain=gain))) for name, gain in gains.items()]
    inputs = [abs(controller(problem, "planned", options=Options(samples=0)).act()[0]) for problem in problems]
    assert inputs[0] > 0.2
    assert inputs[1] == pytest.approx(inputs[0], rel=0.05)


ITERATED = (
    HEAD
    + """
L = {L}
{name} = Model([x], [u], [x + L * u], observation=[sp.exp(-x / L)], process_noise=(0.1 * L) ** 2,
               measurement_noise=1e-6, filter="iterated")
scenario = Scenario({name}, 5, state_cost=1 / L**2, input_cost=0.1, start=2 * L, start_covariance=0.5 * L**2)
"""
)


def test_the_iterated_filter_in_other_units(make_quickly: Make) -> None:
    means = []
    for name, L in (("metres", 1.0), ("picometres", 1e-12)):
        ce = controller(symdual.problem(make_quickly(name, ITERATED.format(name=name, L=L))), "ce")
        state, _, _ = ce.step(ce.init(), np.array([0.4]))
        means.append(state.belief.mean[0] / L)
    assert means[1] == pytest.approx(means[0], rel=1e-9)


WALLS = (
    HEAD
    + """
v = sp.Symbol("v")
g = unknown("g", 0.8, 0.3)
{name} = Model([x, v], [u], [x + 0.3 * v, v + 0.3 * g * u], bounds={{u: (-2, 3)}})
scenario = Scenario({name}, 6, start=[1.0, 0.0], {cost}, constraints=[{limit}])
"""
)
QUADRATIC = "state_cost=[{c} * 2, {c} * {d}], input_cost={c} * 0.05, reference=[0.2, 0.0]"
RESIDUALS = "cost=[x - 0.2, v, u], cost_weights=[2, 0.1, 0.05], terminal_cost=[x - 0.2, v], terminal_weights=[2, 0.1]"
EXPRESSION = (
    "cost={c} * (2 * (x - 0.2)**2 + 0.1 * v**2 + 0.05 * u**2), terminal_cost={c} * (2 * (x - 0.2)**2 + 0.1 * v**2)"
)


def usual_weight(make_quickly: Make, name: str, limit: str, cost: str) -> float:
    """The weight of a constraint that is given none."""
    return float(
        chosen_weights(symdual.problem(make_quickly(name, WALLS.format(name=name, limit=limit, cost=cost))))[0]
    )


def test_the_usual_weight_of_a_constraint_has_the_units_of_the_problem(make_quickly: Make) -> None:
    plain, half = QUADRATIC.format(c=1, d=0.1), QUADRATIC.format(c=1, d=0)
    own = usual_weight(make_quickly, "own", "v >= -0.3", plain)
    assert own == pytest.approx(100.0)
    for name, cost in (("residuals", RESIDUALS), ("expression", EXPRESSION.format(c=1))):
        assert usual_weight(make_quickly, name, "v >= -0.3", cost) == pytest.approx(own)
    for name, c in (("dear", 1e6), ("cheap", 1e-6)):
        assert usual_weight(make_quickly, name, "v >= -0.3", EXPRESSION.format(c=c)) == pytest.approx(own * c)
    free = usual_weight(make_quickly, "free", "v >= -0.3", half)  # v costs nothing by itself
    assert usual_weight(make_quickly, "milli", "v / 1000 >= -0.0003", half) == pytest.approx(1e6 * free)
    assert usual_weight(make_quickly, "costly", "v >= -0.3", QUADRATIC.format(c=1e8, d=0)) == pytest.approx(1e8 * free)
    assert free > 100.0
