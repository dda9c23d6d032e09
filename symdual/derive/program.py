"""The user's expressions as a program: scalars defined one after another, and points at which families are evaluated.

A map F(x, u, theta) becomes an ordered list of nodes

    Definition   t = e(earlier symbols)
    Point        g_o = sum_i s_o(a_1, ..., a_q; weights_i, data_i)   a family at arguments a, for each output o in use

followed by output expressions. Discretisation only adds definitions, so a Runge-Kutta step of a model with features is
nothing special, and everything is differentiated exactly as discretised.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import sympy as sp

from symdual.derive.holes import Filled, filled
from symdual.derive.order import in_order
from symdual.derive.pieces import Limits, in_pieces
from symdual.integrators import INTEGRATORS, Explicit
from symdual.spec.symbols import Constant, Family, FeatureSum, Unknown, logistic, power, tanh
from symdual.spec.system import System

DIFFERENTIATED = Limits(terms=sys.maxsize, depth=16)  # of an expression of which derivatives are found; sums are easy


@dataclass(frozen=True)
class Definition:
    """One scalar assignment."""

    symbol: sp.Symbol
    expression: sp.Expr


@dataclass(frozen=True)
class Point:
    """A family evaluated at scalar arguments; `values` holds the symbol of each output in use."""

    label: str
    family: Family
    arguments: tuple[sp.Symbol, ...]
    values: tuple[tuple[int, sp.Symbol], ...]

    def summand(self, output: int) -> sp.Expr:
        """The summand of an output for a generic index, at this point's arguments."""
        rule = dict(zip(self.family.arguments, self.arguments, strict=True))
        rule |= {c: sp.Symbol(c.name, real=True) for c in self.family.constants}
        return _summand(self.family, output).expression.xreplace(rule)


Node = Definition | Point


@dataclass(frozen=True)
class Program:
    """Nodes in an order in which each uses only what stands before it, the outputs, and remarks for the user."""

    nodes: tuple[Node, ...]
    outputs: tuple[sp.Expr, ...]
    remarks: tuple[str, ...] = ()

    @property
    def points(self) -> tuple[Point, ...]:
        """The points at which families are evaluated."""
        return tuple(node for node in self.nodes if isinstance(node, Point))


def canonical_symbols(model: System) -> dict[sp.Symbol, sp.Expr]:
    """What stands for each symbol of the model: a plain real one of the same name, free of the user's assumptions.

    For an unknown with bounds it is the expression that keeps to them, in the symbol of what is normal.
    """
    scalars = [*model.states, *model.inputs, *model.constants, *([model.time] if model.time else [])]
    found: dict[sp.Symbol, sp.Expr] = {symbol: sp.Symbol(symbol.name, real=True) for symbol in scalars}
    return found | {symbol: _within_bounds(symbol) for symbol in model.unknowns}


def scalar_symbol(unknown: Unknown) -> sp.Symbol:
    """The symbol of an unknown in theta: that of its logarithm or logit where it has bounds."""
    return sp.Symbol(unknown.transform.inner_name(unknown.name), real=True)


def _within_bounds(unknown: Unknown) -> sp.Expr:
    """An unknown in terms of its entry of theta, see `symdual.common.transforms`."""
    one, kappa = unknown.transform, scalar_symbol(unknown)
    if not one:
        return kappa
    if one.two_sided:
        lower, upper = map(sp.sympify, (one.lower, one.upper))
        return lower + (upper - lower) * logistic(kappa)
    return sp.sympify(one.lower) + sp.exp(kappa) if one.sign > 0 else sp.sympify(one.upper) - sp.exp(kappa)


def dynamics_program(model: System) -> Program:
    """The next state x_{k+1} = f(x, u, theta), discretised if the model was given in continuous time.

    With substeps it is where the first of them leads; what remembers inputs moves by whole steps, and waits until then.
    """
    symbols = canonical_symbols(model)
    states = tuple(symbols[s] for s in model.states)
    prepared = [_prepared(e) for e in model.dynamics]
    motion = tuple(e.expression.xreplace(symbols) for e in prepared)
    remarks = _remarks(prepared)
    own = len(model.own_states)
    if model.step is None:
        definitions, outputs = _within_state_bounds(model, motion[:own])
        return _build(definitions, outputs + motion[own:], remarks)
    clock = symbols[model.time] if model.time else None
    definitions, moved = _discretised(model, states[:own], motion[:own], clock)
    stopped, outputs = _within_state_bounds(model, moved)
    definitions += stopped
    remembering = motion if model.substeps == 1 else states
    return _build(definitions, outputs + remembering[own:], remarks)


def _within_state_bounds(model: System, moved: tuple[sp.Expr, ...]) -> tuple[list[Definition], tuple[sp.Expr, ...]]:
    """The states where a step leads, stopped at their bounds."""
    definitions, outputs = [], list(moved)
    for i, (low, high) in model.bounded_states.items():
        free = sp.Symbol(f"_free_{model.states[i].name}", real=True)
        definitions.append(Definition(free, moved[i]))
        outputs[i] = free if low is None else sp.Max(free, sp.sympify(low))
        outputs[i] = outputs[i] if high is None else sp.Min(outputs[i], sp.sympify(high))
    return definitions, tuple(outputs)


def _discretised(
    model: System, states: tuple[sp.Symbol, ...], motion: tuple[sp.Expr, ...], clock: sp.Symbol | None
) -> tuple[list[Definition], tuple[sp.Expr, ...]]:
    """One step of the method."""
    share = sp.Rational(1, model.substeps)
    step = sp.Symbol("step_length", real=True) * share
    moving = _Moving(states, motion, step, clock, share)
    method = INTEGRATORS[model.method]
    assert isinstance(method, Explicit)  # others have no such program, see `derive`
    return _stages(method, moving, states)


class _Moving(NamedTuple):
    """A right-hand side that is evaluated at other states and times; `share` is that of a substep in a whole step."""

    states: tuple[sp.Symbol, ...]
    motion: tuple[sp.Expr, ...]
    step: sp.Expr
    clock: sp.Symbol | None
    share: sp.Expr

    def slopes(self, here: Sequence[sp.Expr], shift: sp.Expr) -> list[sp.Expr]:
        place = dict(zip(self.states, here, strict=True))
        if self.clock is not None:
            place[self.clock] = self.clock + shift * self.share
        return [e.xreplace(place) for e in self.motion]


def slope_program(model: System) -> Program:
    """The time derivative of the state, g(x, u, theta), of a model in continuous time; what remembers inputs waits."""
    symbols = canonical_symbols(model)
    prepared = [_prepared(e) for e in model.dynamics[: len(model.own_states)]]
    waiting = (sp.S.Zero,) * model.memory
    return _build([], tuple(e.expression.xreplace(symbols) for e in prepared) + waiting, _remarks(prepared))


def observation_program(model: System) -> Program:
    """The measurement y = h(x, theta)."""
    return terms_program(model, model.observation)


def terms_program(model: System, expressions: Iterable[sp.Expr]) -> Program:
    """Expressions in the symbols of a model."""
    symbols = canonical_symbols(model)
    prepared = [_prepared(e) for e in expressions]
    return _build([], tuple(e.expression.xreplace(symbols) for e in prepared), _remarks(prepared))


def values_program(expressions: Iterable[sp.Expr]) -> Program:
    """Expressions in canonical symbols that were prepared before, such as derivatives of a program's outputs."""
    return _build([], tuple(expressions), ())


def expanded_outputs(program: Program) -> tuple[sp.Expr, ...]:
    """The outputs of a program without families, as expressions in its variables."""
    known: dict[sp.Symbol, sp.Expr] = {}
    for node in program.nodes:
        if isinstance(node, Definition):
            known[node.symbol] = node.expression.xreplace(known)
    return tuple(e.xreplace(known) for e in program.outputs)


def _stages(
    method: Explicit, moving: _Moving, here: tuple[sp.Symbol, ...]
) -> tuple[list[Definition], tuple[sp.Expr, ...]]:
    """A step of a method; state and slope of each stage become definitions, unless there is one only."""
    definitions: list[Definition] = []
    slopes: list[list[sp.Symbol]] = []
    step, names = moving.step, [x.name for x in moving.states]
    if method.stages == 1:
        return [], tuple(x + step * dx for x, dx in zip(here, moving.slopes(here, sp.S.Zero), strict=True))
    for stage, part in enumerate(method.shift):
        shift = sp.Rational(part.numerator, part.denominator)
        place: list[sp.Expr] = list(here)
        if slopes:
            place = [sp.Symbol(f"_s{stage}_{name}", real=True) for name in names]
            moved = [x + shift * step * slope for x, slope in zip(here, slopes[-1], strict=True)]
            definitions += [Definition(s, e) for s, e in zip(place, moved, strict=True)]
        slopes.append([sp.Symbol(f"_k{stage}_{name}", real=True) for name in names])
        definitions += [Definition(s, e) for s, e in zip(slopes[-1], moving.slopes(place, shift), strict=True)]
    sums = (sp.Add(*(n * k for n, k in zip(method.numerators, ks, strict=True))) for ks in zip(*slopes, strict=True))
    return definitions, tuple(x + step * total / method.denominator for x, total in zip(here, sums, strict=True))


def _prepared(expression: sp.Expr) -> Filled:
    """The expression in a form whose derivatives are accurate wherever it has some."""
    plain = expression.replace(sp.tanh, tanh) if expression.has(sp.tanh) else expression
    return filled(plain.replace(_may_vanish, lambda part: power(*part.args, 0, 0)))


def _may_vanish(part: sp.Basic) -> bool:
    """Whether this is a power with an exponent that is no number, of a base that may be zero."""
    if not isinstance(part, sp.Pow) or part.exp.is_number or part.base.is_number:
        return False
    constants = {s: sp.Float(s.value) for s in part.base.free_symbols if isinstance(s, Constant)}
    real = {s: sp.Symbol(s.name, real=True) for s in part.base.free_symbols - constants.keys()}
    return part.base.xreplace(constants | real).is_positive is not True


@lru_cache(maxsize=1024)
def _summand(family: Family, output: int) -> Filled:
    return _prepared(family.summands[output])


def _remarks(prepared: Iterable[Filled]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(remark for part in prepared for remark in part.remarks))


def _build(definitions: Sequence[Definition], outputs: Iterable[sp.Expr], remarks: tuple[str, ...]) -> Program:
    """Take the families out of the expressions, share common subexpressions, and put the nodes in order."""
    listed = tuple(outputs)
    taken = _FamilyExtraction()
    scalars = [Definition(d.symbol, taken.replace(d.expression)) for d in definitions]
    results = [taken.replace(e) for e in listed]
    scalars += taken.argument_definitions
    scalars, results = _shallow(scalars, results)
    shared, reduced = sp.cse(
        [d.expression for d in scalars] + results,
        symbols=(sp.Symbol(f"_c{i}", real=True) for i in range(10**6)),
        order="canonical",
    )
    nodes: list[Node] = [Definition(symbol, expression) for symbol, expression in shared]
    nodes += [Definition(d.symbol, e) for d, e in zip(scalars, reduced, strict=False)]
    nodes += taken.points()
    summands = [_summand(point.family, output) for point in taken.points() for output, _ in point.values]
    said = dict.fromkeys((*remarks, *_remarks(summands)))
    return Program(tuple(_sorted(nodes)), tuple(reduced[len(scalars) :]), tuple(said))


def _shallow(definitions: list[Definition], outputs: list[sp.Expr]) -> tuple[list[Definition], list[sp.Expr]]:
    """The same without deep nests: the derivatives of a nest that is written out grow with the square of its depth."""
    numbers = itertools.count()
    found: list[Definition] = []

    def apart(expression: sp.Expr) -> sp.Expr:
        pieces = in_pieces(expression, DIFFERENTIATED, lambda: sp.Symbol(f"_d{next(numbers)}", real=True))
        found.extend(Definition(*piece) for piece in pieces.taken)
        return pieces.rest

    for definition in definitions:
        rest = apart(definition.expression)
        found.append(Definition(definition.symbol, rest))
    outputs = [apart(e) for e in outputs]
    return found, outputs


class _FamilyExtraction:
    """Replaces each FeatureSum by a symbol, and remembers the points at which families are evaluated."""

    def __init__(self) -> None:
        self.argument_definitions: list[Definition] = []
        self._points: dict[tuple[int, tuple[sp.Expr, ...]], tuple[str, Family, tuple[sp.Symbol, ...]]] = {}
        self._values: dict[tuple[int, tuple[sp.Expr, ...]], dict[int, sp.Symbol]] = {}

    def replace(self, expression: sp.Expr) -> sp.Expr:
        """Replace innermost families first, so that a family may stand in another's argument."""
        while True:
            inner = [
                part
                for part in sp.preorder_traversal(expression)
                if isinstance(part, FeatureSum) and not any(point.has(FeatureSum) for point in part.points)
            ]
            if not inner:
                return expression
            expression = expression.xreplace({part: self._value(part) for part in dict.fromkeys(inner)})

    def _value(self, part: FeatureSum) -> sp.Symbol:
        key = (id(part.family), part.points)
        if key not in self._points:
            # the number first: no two points can end up with one label, whatever the families are called
            label = f"{len(self._points)}_{part.family.name}"
            arguments = tuple(self._argument(label, q, point) for q, point in enumerate(part.points))
            self._points[key] = (label, part.family, arguments)
            self._values[key] = {}
        label = self._points[key][0]
        several = len(part.family.summands) > 1
        name = f"_sum{label}_out{part.output}" if several else f"_sum{label}"
        return self._values[key].setdefault(part.output, sp.Symbol(name, real=True))

    def _argument(self, label: str, position: int, point: sp.Expr) -> sp.Symbol:
        if isinstance(point, sp.Symbol):
            return point
        symbol = sp.Symbol(f"_arg{position}_{label}", real=True)
        self.argument_definitions.append(Definition(symbol, point))
        return symbol

    def points(self) -> list[Point]:
        return [
            Point(label, family, arguments, tuple(sorted(self._values[key].items())))
            for key, (label, family, arguments) in self._points.items()
        ]


def _sorted(nodes: Sequence[Node]) -> list[Node]:
    """Sort so that each node uses only symbols defined before it, keeping the given order otherwise."""
    return [nodes[n] for n in in_order([_defines(node) for node in nodes], [_uses(node) for node in nodes])]


def _defines(node: Node) -> tuple[sp.Symbol, ...]:
    return (node.symbol,) if isinstance(node, Definition) else tuple(symbol for _, symbol in node.values)


def _uses(node: Node) -> set[sp.Symbol]:
    return set(node.expression.free_symbols) if isinstance(node, Definition) else set(node.arguments)
