"""The symbolic part of the module `process` of a package: the kernel of each Gaussian process, and its derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import sympy as sp

from symdual.derive.branches import derivative
from symdual.derive.derivation import Derivation
from symdual.emit.kernels import data_layout, process_evaluations, process_points
from symdual.emit.printer import print_expression
from symdual.emit.steps import Line
from symdual.spec.symbols import Family


class ProcessCode(NamedTuple):
    """One Gaussian process: sizes, where its arrays start in `data`, and the lines that compute covariances.

    `row_lines` give kappa between a point and index _i, `slope_lines` its derivatives by the point too;
    `variance_lines` kappa at one point twice; `between_lines` kernel and mixed second derivatives for two lists.
    `fixed` are the lines before a loop over indices, `constants` those before a loop over two lists.
    """

    name: str
    memory: int
    arguments: int
    kernel: str
    novelty: str
    places: tuple[int, ...]
    known: int
    factor: int
    state: int
    fixed: str
    row_lines: str
    slope_lines: str
    variance_lines: str
    constants: str
    between_lines: str


class ProcessValue(NamedTuple):
    """A value of a process that a step uses: where its weights start in theta, and its column of the gains."""

    start: int
    column: int


class ProcessPoint(NamedTuple):
    """A point of a step of the dynamics: its row, its process, and the values that are taken there."""

    row: int
    process: str
    values: tuple[ProcessValue, ...]


def process_codes(derivation: Derivation) -> tuple[ProcessCode, ...]:
    """The Gaussian processes of a model."""
    starts = {name: start for name, start, _ in data_layout(derivation).entries}
    return tuple(_code(family, starts) for family in derivation.model.families if family.process is not None)


def calls_matern(processes: Sequence[ProcessCode]) -> bool:
    """Whether a kernel is printed with the function `_matern`."""
    return any("_matern(" in line for code in processes for line in (code.row_lines, code.between_lines))


def points_of_a_step(derivation: Derivation) -> tuple[ProcessPoint, ...]:
    """Where one step of the dynamics evaluates Gaussian processes."""
    evaluations = process_evaluations(derivation)
    starts = {block.symbol: block.start for block in derivation.weights}
    return tuple(
        ProcessPoint(
            row,
            point.family.name,
            tuple(
                ProcessValue(starts[point.family.weights[e.output].symbol], column)
                for column, e in enumerate(evaluations)
                if e.point is point
            ),
        )
        for row, point in enumerate(process_points(derivation))
    )


def process_pairs(derivation: Derivation) -> tuple[tuple[int, int], ...]:
    """(pair of the Hessian, column of the value) for pairs whose left vector are the features of a process."""
    evaluations = process_evaluations(derivation)
    pairs = [pair.evaluation for pair in derivation.dynamics_hessian.pairs]
    return tuple((n, evaluations.index(e)) for n, e in enumerate(pairs) if e in evaluations)


def parameter_spans(derivation: Derivation) -> tuple[tuple[int, int], ...]:
    """The spans of theta whose covariance is a covariance of parameters, not of what is remembered of a process."""
    spans, start = [], 0
    for block in (*derivation.processes, None):
        stop = derivation.theta_size if block is None else block.start
        if stop > start:
            spans.append((start, stop))
        start = stop if block is None else block.start + block.count
    return tuple(spans)


def _code(family: Family, starts: dict[str, int]) -> ProcessCode:
    process = family.process
    assert process is not None
    kappa = process.kernel.xreplace({c: sp.Symbol(c.name, real=True) for c in family.constants})
    first, second = family.arguments, process.places
    slopes = [derivative(kappa, a) for a in first]
    mixed = [derivative(slope, b) for slope, b in zip(slopes, second, strict=True)]
    variance = kappa.xreplace(dict(zip(second, first, strict=True)))
    point = [Line(symbol.name, "=", f"_point[{q}]") for q, symbol in enumerate(first)]
    constants = [Line(c.name, "=", f"data[{starts[c.name]}]") for c in family.constants]
    indexed = tuple(Line(s.name, "=", f"data[{starts[s.name]} + _i]") for s in second)
    used = {symbol.name for symbol in variance.free_symbols}
    return ProcessCode(
        name=family.name,
        memory=family.count,
        arguments=len(first),
        kernel=sp.sstr(process.kernel),
        novelty=repr(process.novelty),
        places=tuple(starts[s.name] for s in second),
        known=starts[process.known.name],
        factor=starts[f"{family.name}_factor"],
        state=starts[f"{family.name}_state"],
        fixed=_text((*point, *constants)),
        row_lines=_text(indexed + _lines([("_row[_i]", kappa)])),
        slope_lines=_text(indexed + _lines([(f"_rows[{t}, _i]", e) for t, e in enumerate((kappa, *slopes))])),
        variance_lines=_text([*(e for e in (*point, *constants) if e.target in used), *_lines([("return", variance)])]),
        constants=_text(constants),
        between_lines=_text(
            [
                *(Line(s.name, "=", f"_points[_n, {q}]") for q, s in enumerate(first)),
                *(Line(s.name, "=", f"_others[_m, {q}]") for q, s in enumerate(second)),
                *_lines([(f"_out[{t}, _n, _m]", e) for t, e in enumerate((kappa, *mixed))]),
            ]
        ),
    )


def _text(lines: Sequence[Line]) -> str:
    return "\n".join(" ".join(part for part in (e.target, e.operator, e.value) if part) for e in lines)


def _lines(targets: Sequence[tuple[str, sp.Expr]]) -> tuple[Line, ...]:
    """Assignments with their common subexpressions taken out."""
    fresh = (sp.Symbol(f"_b{i}", real=True) for i in range(10**6))
    shared, reduced = sp.cse([e for _, e in targets], symbols=fresh, order="canonical")
    lines = [Line(symbol.name, "=", print_expression(e)) for symbol, e in shared]
    for (place, _), e in zip(targets, reduced, strict=True):
        lines.append(Line(place, "" if place == "return" else "=", print_expression(e)))
    return tuple(lines)
