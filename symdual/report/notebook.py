"""How models, scenarios and beliefs show themselves in a notebook: mathematics as MathML, numbers as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from symdual.common.display import first_few
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

_MOST = 40  # lines of a table
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
    states, inputs = list(problem.package.STATES), list(problem.package.INPUTS)
    bounds = zip(inputs, *problem.bounds, strict=True)
    facts = [
        ("horizon", f"{problem.horizon} steps"),
        ("state cost", _weights(problem.state_cost, states)),
        ("input cost", _weights(problem.input_cost, inputs)),
        ("reference", _vector(problem.reference, states)),
        ("bounds", ", ".join(f"{name} {low:.4g} to {high:.4g}" for name, low, high in bounds)),
        ("model", problem.package.name),
        ("plant", "the model itself" if problem.plant_is_model else problem.plant.name),
        ("true parameters", "drawn from the prior" if problem.truth is None else "given"),
    ]
    return _with_facts(problem.name, facts, problem.prior)


def controller_html(controller: Controller) -> str:
    """A controller by where it is, and what it believes now."""
    window = "to the end" if controller.window is None else f"{controller.window} steps"
    facts = [
        ("problem", controller.problem.name),
        ("step", f"{controller.k} of {controller.problem.horizon}"),
        ("looks ahead", window),
        ("compiled by", "C" if controller.problem.package.backend == "c" else "numba"),
    ]
    return _with_facts(controller.name, facts, controller.belief)


def info_html(info: Info) -> str:
    """A decision by its cost, and the belief that it was made with."""
    inputs = zip(info.planned_inputs.names, info.planned_inputs[0], strict=True)
    facts = [("input", ", ".join(f"{name} {value:.4g}" for name, value in inputs))]
    facts += [("plan", info.status), ("cost", f"{sum(info.parts):.4g}")]
    facts += [(name.replace("_", " "), f"{value:.4g}") for name, value in info.parts._asdict().items() if value]
    facts += [("doubt", sentence) for sentence in info.doubts]
    return _with_facts(f"step {info.k}", facts, info.after)


def episodes_html(episodes: Episodes) -> str:
    """Episodes by their number, what they cost, and what each array holds."""
    runs, steps = episodes.inputs.shape[:2]
    finished = episodes.costs[np.isfinite(episodes.costs)]
    error = f" +- {finished.std(ddof=1) / np.sqrt(len(finished)):.2g}" if len(finished) > 1 else ""
    facts = [("runs", f"{runs} of {steps} steps"), ("finished", str(int((episodes.outcomes == 0).sum())))]
    facts += [("cost", f"{finished.mean():.4g}{error}")] if len(finished) else []
    arrays = [
        (name, " x ".join(map(str, values.shape)), first_few(getattr(values, "names", ())))
        for name, values in episodes._asdict().items()
        if isinstance(values, np.ndarray) and values.size
    ]
    return str(element("div", table(("", ""), facts), table(("array", "shape", "names of the last axis"), arrays)))


def array_html(array: NamedArray) -> str:
    """The first rows of an array with names; of one with more than two axes only its shape."""
    if array.ndim not in (1, 2) or not array.names:
        return str(element("pre", repr(array)))
    rows = np.atleast_2d(np.asarray(array))
    numbers = [[f"{value:.4g}" for value in row[:_MOST]] for row in rows[:_FEW]]
    rest = f"and {len(rows) - _FEW} more rows" if len(rows) > _FEW else ""
    shown = table(array.names[:_MOST], numbers, numeric=range(min(len(array.names), _MOST)))
    return str(element("div", shown, element("p", rest) if rest else ""))


def _with_facts(title: str, facts: Sequence[tuple[str, str]], belief: Belief) -> str:
    head = element("p", element("b", title))
    return str(element("div", head, table(("", ""), facts), Markup(belief_html(belief))))


def scenario_html(scenario: Scenario) -> str:
    """A scenario by its cost, start and prior, with the equations of its model."""
    plant = "the model itself" if scenario.plant is scenario.model else scenario.plant.name or "another model"
    facts = [
        ("horizon", f"{scenario.horizon} steps"),
        ("state cost", _weights(scenario.state_cost, [s.name for s in scenario.model.states])),
        ("input cost", _weights(scenario.input_cost, [u.name for u in scenario.model.inputs])),
        ("reference", _vector(scenario.reference, [s.name for s in scenario.model.states])),
        ("start", _vector(scenario.start[None], [s.name for s in scenario.model.states])),
        ("plant", plant),
        ("true parameters", "drawn from the prior" if scenario.truth is None else "given"),
    ]
    head = element("p", element("b", scenario.name or "scenario"))
    return str(element("div", head, table(("", ""), facts), Markup(model_html(scenario.model))))


def belief_html(belief: Belief) -> str:
    """Mean and standard deviation of everything that is uncertain."""
    own = belief.everything
    numbers = zip(belief.labels, np.ravel(own.mean), np.ravel(own.deviation), strict=True)
    rows = [(name, f"{mean:.4g}", f"{deviation:.3g}") for name, mean, deviation in numbers]
    rest = f"and {len(rows) - _MOST} more" if len(rows) > _MOST else ""
    shown = table(("", "mean", "standard deviation"), rows[:_MOST], numeric=(1, 2))
    return str(element("div", shown, element("p", rest) if rest else ""))


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


def _weights(cost: np.ndarray, names: Sequence[str]) -> str:
    """A cost by its diagonal, if it is one and always the same."""
    first = cost[0]
    if np.any(cost != first) or np.any(first != np.diag(np.diag(first))):
        return "changes with time" if np.any(cost != first) else "a matrix"
    return _vector(np.diag(first)[None], names)


def _vector(values: np.ndarray, names: Sequence[str]) -> str:
    if np.any(values != values[0]):
        return "changes with time"
    if len(names) > _MOST:
        return f"{len(names)} numbers"
    return ", ".join(f"{name} {value:.4g}" for name, value in zip(names, values[0], strict=True))
