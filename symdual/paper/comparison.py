"""Does a printed formula give what the derivation gives?  Equality of values, sizes, ranges and supplied constants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import sympy as sp

from symdual.paper.case import Case, Coverage, Form, Meant, Single, Supplies, Within
from symdual.paper.lines import NO_LINES, Lines, names
from symdual.paper.machine import Indexed, NotEvaluable, evaluate
from symdual.paper.matrices import Matrix
from symdual.paper.words import Blocks, Polynomial

TOLERANCE = 1e-7
"""Largest relative difference of two numbers that count as equal; rounding stays below 1e-9, a slip is above 1e-3."""

PROBES = (0.37, 0.81, 1.13, 1.57, 0.59, 1.91, 0.23, 1.39, 0.71, 1.03, 0.47, 1.69)
"""Values given to free symbols when two expressions are told apart by numbers."""


class Status(Enum):
    """How one confrontation ended."""

    EQUAL = "equal"
    DIFFERENT = "different"
    NOT_EVALUABLE = "not evaluable"
    GIVEN_TWICE = "given twice"
    MISSING = "missing"
    UNPROVEN = "unproven"


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Numbers at which the printed formula fails."""

    where: str
    values: tuple[tuple[str, str], ...]
    printed: str
    derived: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcome over all cases: the first failure, or the worst error."""

    status: Status
    cases: int
    formal: bool
    worst: float
    counterexample: Counterexample | None = None


@dataclass(frozen=True, slots=True)
class _Outcome:
    status: Status
    error: float = 0.0
    printed: str = ""
    derived: str = ""
    values: tuple[tuple[str, str], ...] = ()


def compare(text: str, cases: Iterable[Case], lines: Lines = NO_LINES) -> Comparison:
    """Evaluate ``text`` in every case; stop at the first one that fails."""
    count, formal, worst = 0, True, 0.0
    for open_case in cases:
        count += 1
        case, outcome = _one(text, open_case, lines)
        formal = formal and isinstance(case.expected, Form | Meant | Coverage | Supplies | Single)
        worst = max(worst, outcome.error)
        if outcome.status is not Status.EQUAL:
            values = outcome.values or shown_values(text, case.symbols)
            example = Counterexample(case.where, values, outcome.printed, outcome.derived)
            return Comparison(outcome.status, count, formal, worst, example)
    if not count:
        raise ValueError("a derivation without cases decides nothing")
    return Comparison(Status.EQUAL, count, formal, worst)


def _one(text: str, open_case: Case, lines: Lines) -> tuple[Case, _Outcome]:
    case = open_case
    try:
        case = lines.filled(open_case, text)
        value = evaluate(text, case.symbols)
    except NotEvaluable as error:
        expected = case.expected
        derived = "an expression" if isinstance(expected, sp.Basic | sp.MatrixBase) else show(expected)
        return case, _Outcome(Status.NOT_EVALUABLE, printed=str(error), derived=derived)
    return case, _confront(value, case.expected)


def _confront(value: Any, expected: Any) -> _Outcome:
    if isinstance(expected, Form):
        return _form(value, expected)
    if isinstance(expected, Meant):
        return _confront(value, expected.value)
    if isinstance(expected, Single):
        return _single(value)
    if isinstance(expected, Coverage):
        return _coverage(value, expected)
    if isinstance(expected, Supplies):
        return _supplies(value, expected)
    if isinstance(expected, Within):
        return _within(value, expected)
    if isinstance(expected, Matrix | float | int) and not isinstance(expected, bool):
        return _numbers(value, expected)
    if isinstance(expected, sp.Basic | sp.MatrixBase):
        return _expressions(value, expected)
    return _plain(value, expected)


def _form(value: Any, expected: Form) -> _Outcome:
    shape = value.shape if isinstance(value, Matrix | sp.MatrixBase) else (1, 1)
    if shape == (expected.rows, expected.columns):
        return _Outcome(Status.EQUAL)
    return _Outcome(Status.DIFFERENT, printed=f"size {shape}", derived=f"size {(expected.rows, expected.columns)}")


def _single(values: Any) -> _Outcome:
    first, *others = values
    for other in others:
        if _confront(other, first).status is not Status.EQUAL:
            return _Outcome(Status.GIVEN_TWICE, printed=" and ".join(map(show, values)), derived="one value")
    return _Outcome(Status.EQUAL)


def _coverage(schedule: Any, expected: Coverage) -> _Outcome:
    given: dict[int, list[Any]] = {}
    for first, last, value in schedule:
        for step in range(first, last + 1):
            given.setdefault(step, []).append(value)
    wanted = range(expected.first, expected.last + 1)
    twice = [step for step in wanted if len(given.get(step, ())) > 1]
    if twice:
        printed = "; ".join(f"step {s}: " + " and ".join(map(str, given[s])) for s in twice)
        return _Outcome(Status.GIVEN_TWICE, printed=printed, derived="one value for each step")
    missing = [step for step in wanted if step not in given]
    beyond = sorted(set(given) - set(wanted))
    if missing:
        return _Outcome(Status.MISSING, printed=f"nothing for {missing}", derived="one value for each step")
    if beyond:
        return _Outcome(Status.DIFFERENT, printed=f"steps {beyond}", derived=f"steps {wanted[0]} to {wanted[-1]}")
    for step, value in zip(wanted, expected.values, strict=bool(expected.values)):
        if given[step][0] != value:
            return _Outcome(Status.DIFFERENT, printed=f"step {step}: {given[step][0]}", derived=f"{value}")
    return _Outcome(Status.EQUAL)


def _supplies(constants: Any, expected: Supplies) -> _Outcome:
    missing = sorted(expected.needed - {name for name, value in constants.items() if value is not None})
    if missing:
        named = [f"{name} ({expected.words[name]})" if name in expected.words else name for name in missing]
        return _Outcome(Status.MISSING, printed="not supplied: " + ", ".join(named), derived="a value for each")
    return _Outcome(Status.EQUAL)


def _within(numbers: Any, expected: Within) -> _Outcome:
    if not isinstance(numbers, dict) or not numbers.keys() >= expected.ranges.keys():
        return _Outcome(Status.DIFFERENT, printed=show(numbers), derived=show(expected))
    named = ", ".join(f"{name}: {_number(float(numbers[name]))}" for name in expected.ranges)
    if all(low <= float(numbers[name]) <= high for name, (low, high) in expected.ranges.items()):
        return _Outcome(Status.EQUAL)
    return _Outcome(Status.DIFFERENT, printed=named, derived=show(expected))


def _numbers(value: Any, expected: Matrix | float) -> _Outcome:
    right = expected if isinstance(expected, Matrix) else Matrix(expected)
    try:
        left = value if isinstance(value, Matrix) else Matrix(value)
    except (TypeError, ValueError):
        return _Outcome(Status.DIFFERENT, printed=show(value), derived=show(expected))
    if left.shape != right.shape:
        return _Outcome(Status.DIFFERENT, printed=_sized(left), derived=_sized(right))
    scale = max(1.0, float(np.max(np.abs(right.array))))
    error = float(np.max(np.abs(left.array - right.array))) / scale
    if error <= TOLERANCE:
        return _Outcome(Status.EQUAL, error)
    if left.array.size <= 12:
        return _Outcome(Status.DIFFERENT, error, show(left), show(right))
    row, column = np.unravel_index(int(np.argmax(np.abs(left.array - right.array))), left.shape)
    place = f"entry ({row + 1}, {column + 1})"
    printed, derived = (f"{place}: {_number(float(m.array[row, column]))}" for m in (left, right))
    return _Outcome(Status.DIFFERENT, error, printed, derived)


def _sized(matrix: Matrix) -> str:
    return show(matrix) if matrix.array.size > 12 else f"{show(matrix)} of size {matrix.shape}"


def _expressions(value: Any, expected: Any) -> _Outcome:
    left, right = _column(value), _column(expected)
    if left.shape != right.shape:
        return _Outcome(Status.DIFFERENT, printed=f"size {left.shape}", derived=f"size {right.shape}")
    difference = left - right
    numbers = dict(zip(sorted(left.free_symbols | right.free_symbols, key=str), PROBES * 4, strict=False))
    for shift in (0, sp.Rational(1, 7), sp.Rational(3, 11)):
        point = {symbol: sp.Float(number, 30) + shift for symbol, number in numbers.items()}
        if any(abs(entry.evalf(20)) > sp.Float(10) ** -12 for entry in difference.subs(point)):
            values = tuple((str(symbol), f"{float(number):.4g}") for symbol, number in point.items())
            return _Outcome(
                Status.DIFFERENT,
                printed=_numeric(left.subs(point)),
                derived=_numeric(right.subs(point)),
                values=values,
            )
    if all(vanishes(entry) for entry in difference):
        return _Outcome(Status.EQUAL)
    return _Outcome(Status.UNPROVEN, printed=show(value), derived=show(expected))


def vanishes(expression: Any) -> bool:
    """Whether the expression is zero as a rational function of its symbols and of exp, sin and cos of them.

    Sufficient, not necessary: an identity between different exponentials or angles is not seen.
    """
    places: dict[Any, Any] = {}
    replaced = {function: _independent(function, places) for function in expression.atoms(sp.exp, sp.sin, sp.cos)}
    numerator, _ = sp.fraction(sp.together(sp.sympify(expression).xreplace(replaced)))
    return bool(sp.expand(numerator) == 0)


def _independent(function: Any, places: dict[Any, Any]) -> Any:
    """Symbols in place of a function of one argument: exp(2 a - b) becomes A^2 / B, sin(-a) becomes -A."""
    argument = sp.expand(function.args[0])
    if function.func is sp.exp:
        factors = (term.as_coeff_Mul() for term in sp.Add.make_args(argument))
        return sp.Mul(*(_place(places, sp.exp, rest) ** number for number, rest in factors))
    negative = argument.could_extract_minus_sign()
    symbol = _place(places, function.func, -argument if negative else argument)
    return -symbol if negative and function.func is sp.sin else symbol


def _place(places: dict[Any, Any], function: Any, argument: Any) -> Any:
    return places.setdefault((function, argument), sp.Dummy(positive=True))


def _column(value: Any) -> Any:
    return value if isinstance(value, sp.MatrixBase) else sp.Matrix([sp.sympify(value)])


def _numeric(matrix: Any) -> str:
    entries = [f"{complex(entry):.6g}".removesuffix("+0j") for entry in matrix]
    return entries[0] if len(entries) == 1 else "(" + ", ".join(entries) + ")"


def _plain(value: Any, expected: Any) -> _Outcome:
    if type(value) is type(expected) and value == expected:
        return _Outcome(Status.EQUAL)
    return _Outcome(Status.DIFFERENT, printed=show(value), derived=show(expected))


def show(value: Any) -> str:
    """A value in a few characters."""
    if isinstance(value, Matrix):
        if value.array.size > 12:
            return f"a matrix of size {value.shape}"
        rows = [", ".join(_number(entry) for entry in row) for row in value.array]
        return rows[0] if value.array.size == 1 else "[" + "; ".join(rows) + "]"
    if isinstance(value, Within):
        return ", ".join(f"{name}: {_range(*limits)}" for name, limits in value.ranges.items())
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, frozenset):
        return "{" + ", ".join(map(str, sorted(value))) + "}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(show, value)) + ")"
    if isinstance(value, Polynomial | Blocks):
        text = str(value)
        return text if len(text) < 160 else text[:157] + "..."
    return str(value)


def _number(value: float) -> str:
    """Six digits; rounding noise is zero."""
    return "0" if abs(value) < 1e-13 else f"{value:.6g}"


def _range(low: float, high: float) -> str:
    if high == np.inf:
        return f"at least {low:g}"
    return f"at most {high:g}" if low in (0.0, -np.inf) else f"{low:g} to {high:g}"


def _few(family: Indexed) -> str:
    """The members of a family of single numbers, if there are not many of them."""
    members = [(index, value) for index, value in family.items() if not isinstance(value, str)]
    single = all(isinstance(v, float | int) or (isinstance(v, Matrix) and v.array.size == 1) for _, v in members)
    if not single or not 0 < len(members) <= 6:
        return ""
    return ", ".join(show(value) for _, value in members)


def family_range(family: Indexed) -> str:
    """The indices of a family: ``0..3``."""
    indices = [str(index) for index, _ in family.items()]
    return indices[0] if len(indices) == 1 else f"{indices[0]}..{indices[-1]}"


def shown_values(text: str, symbols: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The numbers of the case that the formula uses, as far as they are short."""
    shown = []
    for name in sorted(names(text)):
        value = symbols.get(name)
        if isinstance(value, float | int) or (isinstance(value, Matrix) and value.array.size <= 4):
            shown.append((name, show(value)))
        elif isinstance(value, Indexed) and (few := _few(value)):
            shown.append((f"{name}[{family_range(value)}]", few))
    return tuple(shown[:8])
