"""What values say of themselves, in names and numbers: tables for notebooks, and for those who print them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from symdual.common.display import first_few

if TYPE_CHECKING:
    from symdual.runtime.belief import Belief
    from symdual.runtime.closed_loop import Episodes
    from symdual.runtime.controller import Controller
    from symdual.runtime.info import Info
    from symdual.runtime.problem import Problem
    from symdual.spec.scenario import Scenario

Facts = list[tuple[str, str]]

BELIEF = ("", "mean", "standard deviation")  #: the columns of a belief
_MOST = 40  # lines of a table
_SHORT = 12  # lines of one that is printed


def of_problem(problem: Problem) -> Facts:
    """The horizon, the cost, the constraints, the bounds; for whom."""
    package, objective = problem.package, problem.objective
    states, inputs = list(package.STATES), list(package.INPUTS)
    bounds = zip(inputs, *problem.bounds, strict=True)
    told = [("horizon", f"{problem.horizon} steps"), *_quadratic_cost(problem, states, inputs)]
    if objective is not None:
        told += _other_cost(package.COST, objective.cost_weights, objective.terminal_weights)
        told += _constraints(getattr(package, "CONSTRAINTS", ()), objective.probabilities)
    return [
        *told,
        ("bounds", ", ".join(f"{name} {low:.4g} to {high:.4g}" for name, low, high in bounds)),
        ("model", package.name),
        ("plant", "the model itself" if problem.plant_is_model else problem.plant.name),
        ("true parameters", "drawn from the prior" if problem.truth is None else "given"),
    ]


def of_controller(controller: Controller) -> Facts:
    """Where it is, and how far it looks."""
    return [
        ("problem", controller.problem.name),
        ("step", f"{controller.k} of {controller.problem.horizon}"),
        ("looks ahead", "to the end" if controller.window is None else f"{controller.window} steps"),
        ("compiled by", "C" if controller.problem.package.backend == "c" else "numba"),
    ]


def of_decision(info: Info) -> Facts:
    """The input, its cost with its parts, and what speaks against it."""
    inputs = zip(info.planned_inputs.names, info.planned_inputs[0], strict=True)
    told = [("input", ", ".join(f"{name} {value:.4g}" for name, value in inputs))]
    told += [("plan", info.status), ("cost", f"{sum(info.parts):.4g}")]
    told += [(name.replace("_", " "), f"{value:.4g}") for name, value in info.parts._asdict().items() if value]
    if info.planned is not None and info.planned.cut:
        told.append(("budget", f"used up after {info.planned.work} steps of plans"))
    return told + [("doubt", sentence) for sentence in info.doubts]


def of_episodes(episodes: Episodes) -> Facts:
    """Their number, and what they cost."""
    runs, steps = episodes.inputs.shape[:2]
    finished = episodes.costs[np.isfinite(episodes.costs)]
    error = f" +- {finished.std(ddof=1) / np.sqrt(len(finished)):.2g}" if len(finished) > 1 else ""
    told = [("runs", f"{runs} of {steps} steps"), ("finished", str(int((episodes.outcomes == 0).sum())))]
    return told + ([("cost of a run", f"{finished.mean():.4g}{error}")] if len(finished) else [])


def arrays_of(episodes: Episodes) -> list[tuple[str, str, str]]:
    """What each array of episodes holds."""
    return [
        (name, " x ".join(map(str, values.shape)), first_few(getattr(values, "names", ())))
        for name, values in episodes._asdict().items()
        if isinstance(values, np.ndarray) and values.size
    ]


def of_scenario(scenario: Scenario) -> Facts:
    """The horizon, the cost, the constraints, the start; for whom."""
    states, inputs = [s.name for s in scenario.model.states], [u.name for u in scenario.model.inputs]
    own = scenario.plant is scenario.model
    told = [("horizon", f"{scenario.horizon} steps"), *_quadratic_cost(scenario, states, inputs)]
    if scenario.objective is not None:
        told += _other_cost(scenario.objective.cost_as_text, scenario.cost_weights, scenario.terminal_weights)
        told += _constraints(scenario.objective.constraints_as_text, scenario.probabilities)
    return [
        *told,
        ("start", _vector(scenario.start[None], states)),
        ("plant", "the model itself" if own else scenario.plant.name or "another model"),
        ("true parameters", "drawn from the prior" if scenario.truth is None else "given"),
    ]


def _quadratic_cost(given: Problem | Scenario, states: Sequence[str], inputs: Sequence[str]) -> Facts:
    """W, U and r; those that are zero are left out where there is another cost."""
    weights, alone = (given.state_cost, given.input_cost), given.objective is None
    told = [("state cost", _weights(weights[0], states)), ("input cost", _weights(weights[1], inputs))]
    told = [line for line, weight in zip(told, weights, strict=True) if alone or np.any(weight)]
    return told + ([("reference", _vector(given.reference, states))] if alone or np.any(weights[0]) else [])


def _other_cost(cost: Mapping[str, Sequence[str]], of_steps: np.ndarray, of_end: np.ndarray) -> Facts:
    """The terms that weigh something; `cost` has them by "step" or "end", and by whether their squares count."""
    told = Facts()
    for key, terms in cost.items():
        step, squared = key.startswith("step"), key.endswith("squared")
        columns = (of_steps if step else of_end[None]).T
        words = [_term(e, squared, w) for e, w in zip(terms, columns, strict=True) if np.any(w)]
        told += [("cost of a step" if step else "cost of the end", " + ".join(words))] if words else []
    return told


def _term(expression: str, squared: bool, weights: np.ndarray) -> str:
    if weights[0] == 1.0 and not squared and np.all(weights == 1.0):
        return expression
    weight = f"{weights[0]:.4g} " if np.all(weights == weights[0]) else "w_k "
    return f"{'' if weight == '1 ' else weight}({expression}){'^2' if squared else ''}"


def _constraints(constraints: Sequence[str], probabilities: np.ndarray) -> Facts:
    pairs = zip(constraints, probabilities, strict=True)
    return [("constraint", f"{constraint} with probability {p:.4g}") for constraint, p in pairs]


def of_belief(belief: Belief, most: int = _MOST) -> tuple[list[tuple[str, str, str]], str]:
    """Mean and standard deviation of everything that is uncertain, and how much is left out."""
    own = belief.everything
    numbers = zip(belief.labels, np.ravel(own.mean), np.ravel(own.deviation), strict=True)
    rows = [(name, f"{mean:.4g}", f"{deviation:.3g}") for name, mean, deviation in numbers]
    return rows[:most], f"and {len(rows) - most} more" if len(rows) > most else ""


# ------------------------------------------------------------ printed


def problem_text(problem: Problem) -> str:
    """A problem, as it is printed."""
    return f"{_text(problem.name, of_problem(problem))}\n{belief_text(problem.prior)}"


def controller_text(controller: Controller) -> str:
    """A controller, as it is printed."""
    return f"{_text(controller.name, of_controller(controller))}\n{belief_text(controller.belief)}"


def decision_text(info: Info) -> str:
    """A decision, as it is printed."""
    return f"{_text(f'step {info.k}', of_decision(info))}\n{belief_text(info.after)}"


def episodes_text(episodes: Episodes) -> str:
    """Episodes, as they are printed."""
    arrays = [("array", "shape", "names of the last axis"), *arrays_of(episodes)]
    return f"{_text('episodes', of_episodes(episodes))}\n{_aligned(arrays)}"


def belief_text(belief: Belief) -> str:
    """A belief, as it is printed."""
    rows, rest = of_belief(belief, _SHORT)
    table = _aligned([("belief", *BELIEF[1:]), *rows], numbers=True)
    return f"{table}\n{rest}" if rest else table


def _text(title: str, told: Facts) -> str:
    return f"{title}\n{_aligned([(f'  {name}', value) for name, value in told])}"


def _aligned(rows: Sequence[Sequence[str]], numbers: bool = False) -> str:
    """Rows in columns; those after the first one are numbers, or text."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        first, *rest = [
            cell.rjust(width) if numbers and i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join([first, *rest]).rstrip())
    return "\n".join(lines)


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
