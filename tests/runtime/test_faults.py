"""Costs and constraints that are no numbers where a problem begins, and constraints that nothing can keep there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual import Model, Scenario, previous, signal, unknown
from symdual.common.errors import SymdualError
from symdual.runtime.constraints import violated_at_start
from symdual.runtime.faults import fault_along, require_finite
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Problem, from_numbers
from symdual.spec.loading import gathered

pressure, level, fire, feed, k = sp.symbols("pressure level fire feed k")
steam = signal("steam", usual=3.0)
gain = unknown("gain", 0.8, 0.04)
QUIET = "ignore:(divide by zero|invalid value):RuntimeWarning"  # the interpreter warns where compiled code does not


ROOTS = [
    sp.sqrt(level - 2),
    sp.log(level - 2),
    1 / (level - 1),
    sp.sqrt(level - 1),
    fire / feed,
    fire + sp.log(steam - 2.5),
]
ENDS = [sp.log(1 - level), level]


@pytest.fixture(scope="module")
def boiler(interpreted: Callable[[Model], Any]) -> Callable[..., Problem]:
    """Return a function that makes a problem, at a pressure of 10 and a level of 1, without compiling anything."""

    def make(bounds: Mapping[Any, Any] | None = None, **asked: Any) -> Problem:
        motion = [pressure + gain * fire - 0.2 * steam - 0.05 * feed, level + 0.1 * feed - 0.02 * steam]
        constraints = {fire: (0.0, 2.0), feed: (-1.0, 3.0)} if bounds is None else bounds
        model = Model([pressure, level], [fire, feed], motion, bounds=constraints, time=k, name="boiler")
        given = {"start": [10.0, 1.0], "signals": {steam: 2.0}} | asked
        contents = gathered(Scenario(model, 6, **given))
        ((name, own),) = contents.scenarios.items()
        found = interpreted(contents.specifications["boiler"])
        kernels: Any = SimpleNamespace(offers=lambda name: True, module=lambda name: found.kernels)
        package = LoadedPackage("boiler", Path(), found.module, found.numbers, {}, found.files, kernels)
        return from_numbers(name, package, package, own.numbers())

    return make


@pytest.fixture(scope="module")
def rooted(boiler: Callable[..., Problem]) -> Problem:
    """A problem with all terms, of which none has a weight."""
    return boiler(cost=ROOTS, cost_weights=0.0, terminal_cost=ENDS, terminal_weights=0.0)


def weighted(problem: Problem, step: int | None = None, end: int | None = None, since: int = 0) -> Problem:
    """The problem with one term of its steps, from some step on, and one of its end."""
    assert problem.objective is not None
    stage, final = np.zeros_like(problem.objective.cost_weights), np.zeros_like(problem.objective.terminal_weights)
    if step is not None:
        stage[since:, step] = 1.0
    if end is not None:
        final[end] = 1.0
    return replace(problem, objective=problem.objective._replace(cost_weights=stage, terminal_weights=final))


@pytest.mark.parametrize(
    ("term", "sentence"),
    [
        (0, r"^sqrt\(level - 2\), in the cost of a step, is not finite at the start, x = \(10, 1\), u = \(0, 0\)$"),
        (1, r"^log\(level - 2\), in the cost of a step, is not finite at the start"),
        (2, r"^1/\(level - 1\), in the cost of a step, is not finite"),
        (3, r"^the slope of sqrt\(level - 1\), in the cost of a step, is not finite"),
        (4, r"^fire/feed, in the cost"),
        (5, r"log\(steam - 2.5\), in the cost"),  # its first value, not its usual one
    ],
)
@pytest.mark.filterwarnings(QUIET)
def test_a_cost_that_is_no_number_at_the_start_is_named(rooted: Problem, term: int, sentence: str) -> None:
    with pytest.raises(SymdualError, match=sentence):
        require_finite(weighted(rooted, term))


@pytest.mark.filterwarnings(QUIET)
def test_a_curvature_that_is_not_finite_is_named(boiler: Callable[..., Problem]) -> None:
    step = r"^the curvature of pressure or Abs\(level - 1\)\*\*1.5 or fire, in the cost of a step, is not finite"
    with pytest.raises(SymdualError, match=step):
        require_finite(boiler(cost=[pressure, sp.Abs(level - 1) ** 1.5, fire]))
    end = r"^the curvature of pressure \+ Abs\(level - 1\)\*\*1.5, in the cost of the end, is not finite"
    with pytest.raises(SymdualError, match=end):
        require_finite(boiler(terminal_cost=pressure + sp.Abs(level - 1) ** 1.5))


@pytest.mark.filterwarnings(QUIET)
def test_a_cost_of_the_end_that_is_no_number_is_named(rooted: Problem) -> None:
    with pytest.raises(SymdualError, match=r"^log\(1 - level\), in the cost of the end, is not finite at the start"):
        require_finite(weighted(rooted, end=0))
    require_finite(weighted(rooted, end=1))


@pytest.mark.parametrize(
    ("constraints", "sentence"),
    [
        (
            [level <= 2, sp.sqrt(level - 2) <= 3],
            r"^the constraint sqrt\(level - 2\) - 3 <= 0 is not finite at the start",
        ),
        ([sp.sqrt(fire) <= 3], r"^the slope of the constraint sqrt\(fire\) - 3 <= 0 is not finite at the start"),
    ],
)
@pytest.mark.filterwarnings(QUIET)
def test_a_constraint_that_is_no_number_at_the_start_is_named(
    boiler: Callable[..., Problem], constraints: list[Any], sentence: str
) -> None:
    with pytest.raises(SymdualError, match=sentence):
        require_finite(boiler(constraints=constraints))


@pytest.mark.filterwarnings(QUIET)
def test_a_term_without_weight_is_not_looked_at(rooted: Problem) -> None:
    """Nor is what it is later; a plan that gets there is told so, with the step."""
    require_finite(rooted)
    late = weighted(rooted, 0, since=4)
    require_finite(late)
    states, inputs = np.tile([10.0, 1.0], (7, 1)), np.zeros((6, 2))
    found = fault_along(late, 0, states, inputs, np.array([0.8]))
    assert found is not None and found.startswith(
        "sqrt(level - 2), in the cost of a step, is not finite at step 4, x ="
    )
    states[:, 1] = 3.0
    assert fault_along(late, 0, states, inputs, np.array([0.8])) is None


WALLS = {
    pressure <= 8.0: "2",
    pressure >= 10.5: "0.5",
    pressure <= 10.5: None,
    pressure - steam <= 7.5: "0.5",  # the first value of the signal
    fire >= 0.5: None,  # zero violates it, but nobody has to choose zero
    fire >= 3.0: "1",  # beyond its bounds
    pressure - 9 + feed <= 0: None,
    pressure - 8 + feed <= 0: "1",
    fire - previous(fire) <= -1.0: "1",
    gain * pressure <= 7.0: "1",
}


def test_only_what_no_input_can_keep_is_violated_at_the_start(boiler: Callable[..., Problem]) -> None:
    problem = boiler(constraints=list(WALLS))
    texts = [
        text for text, excess in zip(problem.package.CONSTRAINTS, WALLS.values(), strict=True) if excess is not None
    ]
    excesses = [excess for excess in WALLS.values() if excess is not None]
    expected = [f"{text} is violated by {excess} at the start" for text, excess in zip(texts, excesses, strict=True)]
    said = violated_at_start(problem)
    assert len(said) == len(expected)
    assert all(part in sentence for part, sentence in zip(expected, said, strict=True)), said


def test_an_input_without_bounds_can_keep_anything(boiler: Callable[..., Problem]) -> None:
    assert violated_at_start(boiler(bounds={}, constraints=[fire >= 1e6])) == []
