"""How models, scenarios and beliefs show themselves in a notebook: mathematics as MathML, numbers as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from symdual.report import facts
from symdual.report.html import element, join, table

if TYPE_CHECKING:
    import sympy as sp

    from symdual.common.named_arrays import NamedArray
    from symdual.report.mathml import Typesetter
    from symdual.runtime.belief import Belief
    from symdual.runtime.closed_loop import Episodes
    from symdual.runtime.controller import Controller
    from symdual.runtime.info import Info
    from symdual.runtime.problem import Problem
    from symdual.spec.model import Model
    from symdual.spec.scenario import Scenario

_MOST = 40  # columns of an array
_FEW = 8  # rows of an array
_LARGEST = 400  # operations of an expression that is typeset


def model_html(model: Model) -> str:
    """The equations of a model and what is unknown in them."""
    setter = _typesetter(model)
    head = element("p", element("b", model.name or "model"), ": ", _sizes(model))
    unknowns = _unknowns(model, setter)
    return str(element("div", head, _equations(model, setter), unknowns))


def problem_html(problem: Problem) -> str:
    """A problem by its cost and bounds, with the belief before the first step."""
    return _with_facts(problem.name, facts.of_problem(problem), problem.prior)


def controller_html(controller: Controller) -> str:
    """A controller by where it is, and what it believes now."""
    return _with_facts(controller.name, facts.of_controller(controller), controller.belief)


def info_html(info: Info) -> str:
    """A decision by its cost, and the belief that it was made with."""
    return _with_facts(f"step {info.k}", facts.of_decision(info), info.after)


def episodes_html(episodes: Episodes) -> str:
    """Episodes by their number, what they cost, and what each array holds."""
    arrays = table(("array", "shape", "names of the last axis"), facts.arrays_of(episodes))
    return str(element("div", table(("", ""), facts.of_episodes(episodes)), arrays))


def array_html(array: NamedArray) -> str:
    """The first rows of an array with names; of one with more than two axes only its shape."""
    if array.ndim not in (1, 2) or not array.names:
        return str(element("pre", repr(array)))
    rows = np.atleast_2d(np.asarray(array))
    numbers = [[f"{value:.4g}" for value in row[:_MOST]] for row in rows[:_FEW]]
    rest = f"and {len(rows) - _FEW} more rows" if len(rows) > _FEW else ""
    shown = table(array.names[:_MOST], numbers, numeric=range(min(len(array.names), _MOST)))
    return str(element("div", shown, element("p", rest) if rest else ""))


def _with_facts(title: str, told: Sequence[tuple[str, str]], belief: Belief) -> str:
    head = element("p", element("b", title))
    return str(element("div", head, table(("", ""), told), Markup(belief_html(belief))))


def scenario_html(scenario: Scenario) -> str:
    """A scenario by its cost, start and prior, with the equations of its model."""
    head = element("p", element("b", scenario.name or "scenario"))
    return str(element("div", head, table(("", ""), facts.of_scenario(scenario)), Markup(model_html(scenario.model))))


def belief_html(belief: Belief) -> str:
    """Mean and standard deviation of everything that is uncertain."""
    rows, rest = facts.of_belief(belief)
    return str(element("div", table(facts.BELIEF, rows, numeric=(1, 2)), element("p", rest) if rest else ""))


def _typesetter(model: Model) -> Typesetter:
    from symdual.report.mathml import Typesetter
    from symdual.report.names import Names

    symbols = [*model.states, *model.inputs, *model.unknowns, *model.constants]
    symbols += [model.time] if model.time is not None else []
    symbols += [w.symbol for f in model.families for w in f.weights]
    return Typesetter(Names([s.name for s in symbols], [f.name for f in model.families]))


def _sizes(model: Model) -> str:
    size = len(model.prior_mean)
    time = "" if model.step is None else f", continuous time ({model.method}, step {model.step:g})"
    return f"{len(model.states)} states, {len(model.inputs)} inputs, {size} unknowns{time}"


def _equations(model: Model, setter: Typesetter) -> Markup:
    from symdual.report.mathml import operator, rate, row

    dot = model.step is not None
    lines = []
    for state, expression in zip(model.states, model.dynamics, strict=True):
        name = setter.name(state.name)
        left = rate(name) if dot else setter.name(state.name, power=operator("+"))
        lines.append(row(left, operator("="), _set(setter, expression)))
    for i, expression in enumerate(model.observation):
        if expression != (model.states[i] if i < len(model.states) else None):
            lines.append(row(setter.name(f"y{i}"), operator("="), _set(setter, expression)))
    return _lines(lines)


def _set(setter: Typesetter, expression: sp.Expr) -> Markup:
    import sympy as sp

    size = int(sp.count_ops(expression))
    return setter.typeset(expression) if size <= _LARGEST else element("mtext", f"({size} operations)")


def _lines(lines: Iterable[Markup]) -> Markup:
    from symdual.report.mathml import math

    return join(element("p", math(line)) for line in lines)


def _unknowns(model: Model, setter: Typesetter) -> Markup:
    from symdual.report.mathml import math

    rows: list[Sequence[str | Markup]] = [
        (math(setter.name(u.name)), f"{u.mean:.4g}", f"{np.sqrt(u.variance):.4g}") for u in model.unknowns
    ]
    for family in model.families:
        kind = f"{family.kind}, {family.count} x {len(family.weights)}"
        rows.append((math(setter.name(family.name)), kind, ""))
    return table(("unknown", "mean", "standard deviation"), rows, numeric=(1, 2)) if rows else Markup("")
