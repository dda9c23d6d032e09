"""`Objective`: what scenarios ask of the generated code beyond the plain quadratic cost.

    L = sum_{k=0..T-1} l_k(x, u) + l_T(x),    l = quadratic form + sum_i w_i t_i(x, u)^2   or   + sum_i w_i t_i(x, u)

The expressions t_i become code, the weights w_i and the quadratic form stay data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import sympy as sp
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanAtom

from symdual.common.arrays import Array
from symdual.common.errors import ModelError, did_you_mean
from symdual.common.numbers import natural_order
from symdual.spec.expressions import as_expression, check_part
from symdual.spec.past import Previous, check_previous
from symdual.spec.signals import Signal
from symdual.spec.symbols import Constant, FeatureSum, Unknown

if TYPE_CHECKING:
    from symdual.spec.system import System

#: A cost: one expression, or a list of residuals whose squares are summed.
CostGiven: TypeAlias = "sp.Expr | Sequence[sp.Expr]"


def as_text(expression: sp.Expr) -> str:
    """An expression as text, in the order in which plain symbols would stand."""
    return str(sp.sstr(expression.xreplace({s: sp.Symbol(s.name) for s in expression.free_symbols})))


@dataclass(frozen=True)
class Terms:
    """Expressions whose weighted squares, or whose weighted values, are summed."""

    expressions: tuple[sp.Expr, ...] = ()
    squares: bool = True

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.expressions)


@dataclass(frozen=True)
class Objective:
    """The terms of each step, those of the end, and constraints g <= 0.

    With none of them, the quadratic form has cross terms or references of inputs.
    """

    stage: Terms = Terms()
    final: Terms = Terms()
    constraints: tuple[sp.Expr, ...] = ()

    @property
    def expressions(self) -> tuple[sp.Expr, ...]:
        """All expressions."""
        return self.stage.expressions + self.final.expressions + self.constraints

    @property
    def cost_as_text(self) -> dict[str, list[str]]:
        """The terms of the cost, for people."""
        return {
            f"{role}, {'squared' if terms.squares else 'added'}": [as_text(e) for e in terms.expressions]
            for role, terms in (("step", self.stage), ("end", self.final))
            if terms
        }

    @property
    def constraints_as_text(self) -> tuple[str, ...]:
        """The constraints, for people."""
        return tuple(f"{as_text(g)} <= 0" for g in self.constraints)

    @property
    def constants(self) -> tuple[Constant, ...]:
        """The constants that occur, by name."""
        found = {s.name: s for e in self.expressions for s in e.free_symbols if isinstance(s, Constant)}
        return tuple(found[name] for name in natural_order(found))

    @property
    def signals(self) -> tuple[Signal, ...]:
        """The signals that occur, by name."""
        return tuple(c for c in self.constants if isinstance(c, Signal))

    def moved(self, symbols: Mapping[sp.Symbol, sp.Symbol]) -> Objective:
        """The same in other symbols."""
        stage, final = (
            Terms(tuple(e.xreplace(_with_past(e, symbols)) for e in terms.expressions), terms.squares)
            for terms in (self.stage, self.final)
        )
        return Objective(stage, final, tuple(g.xreplace(_with_past(g, symbols)) for g in self.constraints))

    def affine(self, model: System) -> bool:
        """Whether there are no constraints, and all terms are squares of affine functions: the cost is quadratic."""
        if self.constraints:
            return False
        variables = [*model.states, *model.inputs, *(p for e in self.expressions for p in e.atoms(Previous))]
        return all(
            not terms or (terms.squares and all(_is_affine(e, variables) for e in terms.expressions))
            for terms in (self.stage, self.final)
        )

    def input_slopes(self, model: System) -> Array | None:
        """Row i: c where t_i = c' u with numbers c, else zeros: the cost is at least u' (sum_i w_i c_i c_i') u.

        None where the terms are no squares, or those of the end may be negative: such a cost has no lower bound that is
        known.
        """
        if self.stage and not self.stage.squares:
            return None
        if self.final and not (self.final.squares or all(map(_never_negative, self.final.expressions))):
            return None
        rows = np.zeros((len(self.stage.expressions), len(model.inputs)))
        for row, expression in enumerate(self.stage.expressions):
            slopes = [sp.diff(expression, u) for u in model.inputs]
            rest = expression.subs(dict.fromkeys(model.inputs, 0))
            if expression.free_symbols <= set(model.inputs) and rest == 0 and all(s.is_number for s in slopes):
                rows[row] = [float(s) for s in slopes]
        return rows


def stage_terms(given: CostGiven | None, model: System, what: str) -> Terms:
    """The checked terms of a cost in states, inputs, constants and time."""
    allowed = {s.name: s for s in (*model.states, *model.inputs, *([model.time] if model.time else []))}
    return _terms(given, allowed, (*model.states, *model.inputs), model.inputs, what)


def final_terms(given: CostGiven | None, model: System, what: str) -> Terms:
    """The checked terms of a cost of the last state: there is no input any more."""
    expressions = () if given is None else _listed(given, what)[0]
    for expression in expressions:
        for symbol in model.inputs:
            if symbol in expression.free_symbols:  # its past is another symbol
                raise ModelError(f'{what} contains the input "{symbol.name}", but there is none at the end')
    allowed = {s.name: s for s in (*model.states, *([model.time] if model.time else []))}
    return _terms(given, allowed, model.states, model.inputs, what)


def merged(objectives: Mapping[str, Objective | None], model: System) -> Objective | None:
    """What the scenarios of a model ask for together; expressions of two kinds need two models."""
    present = {name: objective for name, objective in objectives.items() if objective is not None}
    if not present:
        return None
    parts = {}
    for role, said in (("stage", "cost"), ("final", "terminal_cost")):
        own = {name: getattr(objective, role) for name, objective in present.items() if getattr(objective, role)}
        distinct = list(dict.fromkeys(own.values()))
        if len(distinct) > 1:
            names = [next(name for name, terms in own.items() if terms == one) for one in distinct[:2]]
            raise ModelError(
                f'the scenarios "{names[0]}" and "{names[1]}" give the model "{model.name}" different expressions as '
                f'{said}: let one of them have a model of its own, model.named("...")'
            )
        parts[role] = distinct[0] if distinct else Terms()
    constraints = {name: objective.constraints for name, objective in present.items() if objective.constraints}
    if len(set(constraints.values())) > 1:
        raise ModelError(
            f'the scenarios {", ".join(constraints)} give the model "{model.name}" different constraints: let one of '
            'them have a model of its own, model.named("...")'
        )
    return Objective(**parts, constraints=next(iter(constraints.values()), ()))


def constraints(given: Sequence[Any], model: System) -> tuple[sp.Expr, ...]:
    """Relations as expressions that are at most zero where they hold."""
    if isinstance(given, (Relational, bool, BooleanAtom)) or not isinstance(given, Iterable):
        given = [given]
    return tuple(_constraint(relation, number, model) for number, relation in enumerate(given))


def _constraint(relation: Any, number: int, model: System) -> sp.Expr:
    what = f"the constraint number {number}"
    if isinstance(relation, (bool, BooleanAtom)):
        raise ModelError(f"{what} is {relation}: it contains no state or input")
    if isinstance(relation, (sp.LessThan, sp.StrictLessThan)):
        limit = relation.lhs - relation.rhs
    elif isinstance(relation, (sp.GreaterThan, sp.StrictGreaterThan)):
        limit = relation.rhs - relation.lhs
    else:
        raise ModelError(f"{what} is {relation}, which is not a relation such as position <= 1.0")
    own = {symbol.meaning: symbol for symbol in model.unknowns}  # of the same name and prior
    limit = limit.xreplace({a: own[a.meaning] for a in limit.atoms(Unknown) if a.meaning in own})
    variables = (*model.states, *model.inputs)
    allowed = {s.name: s for s in (*variables, *model.unknowns, *([model.time] if model.time else []))}
    if limit.has(sp.oo, -sp.oo, sp.nan):
        raise ModelError(f"{what} is {relation}, which contains a value that is NaN or infinite")
    for symbol in sorted(limit.atoms(Previous), key=str):
        check_previous(symbol, model.inputs, what)
    _check(limit, allowed, what, unknowns=True)
    if not any(s in variables or isinstance(s, Previous) for s in limit.free_symbols):
        raise ModelError(f"{what} is {relation}, in which there is no state or input: nothing can be done about it")
    return limit


def _with_past(expression: sp.Expr, symbols: Mapping[sp.Symbol, sp.Symbol]) -> dict[sp.Symbol, sp.Symbol]:
    """The symbols, and those of the past of inputs."""
    past = {p: Previous(symbols.get(p.of, p.of), p.steps) for p in expression.atoms(Previous)}
    return dict(symbols) | past


def _never_negative(expression: sp.Expr) -> bool:
    """Whether an expression in real numbers is known to be at least zero."""
    real = {symbol: sp.Dummy(symbol.name, real=True) for symbol in expression.free_symbols}
    return bool(expression.subs(real).is_nonnegative)


def _is_affine(expression: sp.Expr, variables: Sequence[sp.Symbol]) -> bool:
    own = [v for v in variables if v in expression.free_symbols]
    # not by second derivatives: those of cases with different slopes are zero
    return all(sp.diff(expression, a).expand().free_symbols.isdisjoint(own) for a in own)


def _listed(given: Any, what: str) -> tuple[tuple[sp.Expr, ...], bool]:
    """The expressions, and whether they are residuals."""
    if isinstance(given, sp.MatrixBase):
        given = given.flat()
    if isinstance(given, Iterable) and not isinstance(given, (str, bytes)):
        return tuple(as_expression(e, f"the residual number {i} of {what}") for i, e in enumerate(given)), True
    return (as_expression(given, what),), False


def _terms(
    given: CostGiven | None,
    allowed: Mapping[str, sp.Symbol],
    variables: Sequence[sp.Symbol],
    inputs: Sequence[sp.Symbol],
    what: str,
) -> Terms:
    if given is None:
        return Terms()
    expressions, squares = _listed(given, what)
    for symbol in sorted({p for e in expressions for p in e.atoms(Previous)}, key=str):
        check_previous(symbol, inputs, what)
    if not expressions:
        raise ModelError(f"{what} is an empty list; leave it out where nothing is to be added")
    for expression in expressions:
        _check(expression, allowed, what)
        if not any(v in variables or isinstance(v, Previous) for v in expression.free_symbols):
            raise ModelError(f"{what} contains {expression}, in which there is no state or input: it changes nothing")
    return Terms(expressions, squares)


def _check(expression: Any, allowed: Mapping[str, sp.Symbol], what: str, unknowns: bool = False) -> None:
    if not isinstance(expression, sp.Expr) or expression.is_Matrix:
        raise ModelError(f"{what} is {expression!r}, which is not a scalar SymPy expression")
    for part in sp.preorder_traversal(expression):
        if isinstance(part, Unknown) and not unknowns:
            raise ModelError(f'{what} contains the unknown "{part.name}": {_ONLY}')
        if isinstance(part, FeatureSum):
            raise ModelError(f'{what} contains the features "{part.family.name}": {_ONLY}')
        if not isinstance(part, sp.Symbol):
            check_part(part, what)
        elif not isinstance(part, (Constant, Previous)) and allowed.get(part.name) != part:
            known, hint = ", ".join(allowed), did_you_mean(part.name, allowed)
            raise ModelError(f'{what} contains "{part.name}", which is none of {known}{hint}')


_ONLY = "a cost depends on states, inputs and time only"
