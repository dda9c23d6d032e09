"""Numbers along the printed references and schedules of Section 6, and statements that follow from other lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symdual.common.arrays import Array
from symdual.paper.case import (
    Case,
    Computed,
    Correction,
    Derivation,
    Printed,
    Within,
)
from symdual.paper.machine import counted
from symdual.paper.matrices import Matrix

Feature = Callable[[float], float]
STRONG, NEGLIGIBLE = (0.5, math.inf), (0.0, 0.01)
"""Ranges of |phi|: both features are between 0 and 1."""

PAIR = {2: ("6.2.feature-1", "6.2.feature-2"), 4: ("6.4.feature-1", "6.4.feature-2")}


def steps(schedule: Any) -> list[Any]:
    """The printed values step by step; a step that is given twice has the later one."""
    given = {step: value for first, last, value in schedule for step in range(first, last + 1)}
    return [given[step] for step in sorted(given)]


def positions(reference: Any) -> list[float]:
    """The first state of the reference."""
    return [float(value[0]) for value in steps(reference)]


def weights(schedule: Any) -> list[float]:
    """The weight of the position."""
    return [float(value[0][0]) for value in steps(schedule)]


def largest(reference: Any, feature: Feature) -> float:
    """The largest |phi| along a reference."""
    return max(abs(feature(x)) for x in positions(reference))


def at_the_end(reference: Any, feature: Feature) -> float:
    """|phi| where a reference ends."""
    return abs(feature(positions(reference)[-1]))


def first_met(reference: Any, feature: Feature, other: Feature) -> float:
    """|phi| where the reference first meets one of the two features."""
    return next(abs(feature(x)) for x in positions(reference) if max(abs(feature(x)), abs(other(x))) > STRONG[0])


def effect(reference: Any, system: Callable[..., Matrix], pair: Sequence[Feature], which: int) -> float:
    """The largest change of the next state along a reference when theta^which grows by one."""

    def after(x: float, theta: Array) -> Array:
        def varphi(i: int, at: Matrix) -> float:
            return pair[i - 1](float(at.array[0, 0]))

        return system(Matrix([x, 0.0]), counted(list(theta)), Matrix(0.0), varphi).array

    unit = np.eye(2)[which - 1]
    return max(float(np.max(np.abs(after(x, unit) - after(x, np.zeros(2))))) for x in positions(reference))


def features(experiment: int) -> dict[str, Any]:
    """The printed features of experiment 2, which 3 has too, or 4, by their names."""
    pair = {f"varphi{i + 1}": Printed(name, ("x",)) for i, name in enumerate(PAIR[experiment])}
    return {"exp": math.exp, **pair}


def along(number: int, expected: Within) -> Iterator[Case]:
    """Numbers along the reference of an experiment."""
    symbols: dict[str, Any] = {
        **features(2 if number == 3 else 4),
        "matrix": Matrix,
        "largest": largest,
        "at_the_end": at_the_end,
        "first_met": first_met,
        "effect": effect,
        "reference": Printed(f"6.{number}.reference"),
        "system": Printed("6.2.system", ("x", "theta", "u", "varphi")),
    }
    yield Case(f"along the printed reference of experiment {number}", symbols, expected)


def from_lines(where: str, function: Callable[..., Any], **lines: Printed) -> Derivation:
    """A statement on one number or word that follows from other lines."""
    method = f"Computed from what is printed: {where}."
    symbols = {"matrix": Matrix, "exp": math.exp}
    return Derivation(method, lambda: iter([Case(where, symbols, Computed(function, lines))]))


def with_correction(derivation: Derivation, latex: str, machine: str, reason: str) -> Derivation:
    """The same derivation with the form that it gives."""
    return Derivation(derivation.method, derivation.cases, derivation.conventions, Correction(latex, machine, reason))


RUNS_DECIDE = (
    "A statement about runs of which the paper prints no number; `symdual paper run` measures it on its own runs."
)
