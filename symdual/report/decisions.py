"""`symdual simulate --html`: one page that shows every decision of an episode, with a slider over time.

The page needs nothing but itself. Its numbers lie in it as JSON, its script draws them; a policy allows this script,
by its hash, and nothing else. What people have named is set as text by the script and is never markup or code.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from symdual.common.arrays import Array
from symdual.common.transforms import Transforms, moments_of, values_of
from symdual.controllers import knows_truth
from symdual.report.html import element, join, opening, page, section, write_page
from symdual.runtime.belief import processes_of
from symdual.runtime.explained import Decision, Explained, ExplainedEpisode
from symdual.runtime.objective import constraints_of

_UNKNOWNS = 8  # that have a row of their own
_DIGITS = 5
_POINTS = 61  # of an unknown function
_TRUTHS = {
    "scenario": "the scenario's true parameters",
    "prior": "true parameters drawn from the prior",
    "drift": "true parameters drawn from the prior, drifting",
}


def decisions_page(explained: Explained) -> str:
    """The page as text."""
    plan = explained.plan
    content = _content(explained)
    names = ", ".join(explained)
    lead = f"Run {explained.run}, seed {plan.seed}, {_TRUTHS[plan.settings.truth]}: {names}."
    left_out = content.pop("left_out")
    body = [
        opening(f"{plan.problem.name}: decision by decision", lead),
        _controls(plan.steps),
        section("decision", "The decision"),
        section("costs", "What the input costs", _cost_keys(explained)),
        section("states", "Trajectory and plan", _state_keys()),
        section("inputs", "Inputs, applied and planned"),
        section("unknowns", "What is believed about the unknowns", _unknown_keys(left_out)),
        Markup('<script type="application/json" id="data">{}</script>').format(Markup(safe_json(content))),
    ]
    title = f"{plan.problem.name}: decisions of {names}"
    return page(title, join(body), _file("decisions.css"), _file("decisions.js"))


def write_decisions(explained: Explained, path: Path) -> None:
    """Write the page of an episode's decisions."""
    write_page(path, decisions_page(explained))


def safe_json(content: Any) -> str:
    """JSON that may stand inside a script element: no character of it can end the element or begin a comment."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@cache
def _file(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


# ------------------------------------------------------------ words


def _controls(steps: int) -> Markup:
    slider = Markup('<input type="range" id="step" min="0" max="{}" value="0" aria-label="step">').format(steps)
    return element(
        "div",
        element("button", "Play", id="play", type="button"),
        slider,
        element("output", "", id="now"),
        element("button", "Dark", id="scheme", type="button", title="dark or light"),
        element("span", "keys: ← → Home End, space to play", class_="note"),
        class_="controls",
    )


def _key(colour: str, words: str, class_: str = "") -> Markup:
    return element("span", element("i", style=f"color: var(--{colour})", class_=class_ or None), words)


def _cost_keys(explained: Explained) -> Markup:
    constrained = bool(constraints_of(explained.plan.problem.package))
    text = (
        "The cost of the plan through each input, as dual counts it under this controller's belief: what certainty "
        "would make of it, what uncertainty adds if nothing is learned, and what the planned learning takes off. "
        "The dashed line is the chosen input."
    )
    if constrained:
        text += (
            " Plans are those with the back-off from the constraints that this controller keeps; penalties are part of "
            "what certainty would make of it."
        )
    keys = [
        _key("ink", "cost"),
        _key("certain", "certainty-equivalent"),
        _key("caution", "caution"),
        _key("probing", "probing"),
    ]
    return element("p", text, class_="note") + element("p", *keys, class_="keys note")


def _state_keys() -> Markup:
    text = (
        "Bands are two standard deviations: of the belief so far; of the plan if nothing were measured (wide), and "
        "with the measurements that it expects (narrow). Dotted: what is wanted."
    )
    keys = [
        _key("ink", "true state"),
        _key("accent", "belief, in the colour of the controller"),
        _key("accent", "plan", "dashed"),
    ]
    return element("p", text, class_="note") + element("p", *keys, class_="keys note")


def _unknown_keys(left_out: str) -> Markup:
    text = (
        "Bands are two standard deviations: of the belief so far, and from this step on of the belief that the plan "
        "expects. Dotted: the truth."
    )
    return element("p", text, class_="note") + element("p", left_out, class_="note")


# ------------------------------------------------------------ numbers


def _content(explained: Explained) -> dict[str, Any]:
    problem, steps = explained.plan.problem, explained.plan.steps
    package = problem.package
    functions = _Functions(explained)
    entries = _entries(package.belief_names, package.NX, functions.weights, processes_of(package))
    held = problem.reference[np.minimum(np.arange(steps + 1), problem.horizon)]
    rest = len(package.belief_names) - package.NX - len(entries) - len(functions.weights)
    return {
        "steps": steps,
        "states": list(package.STATES),
        "inputs": list(package.INPUTS),
        "unknowns": [package.belief_names[i] for i in entries],
        "reference": _columns(held) if np.any(problem.state_cost) else [],
        "functions": functions.about,
        "controllers": [_controller(episode, entries, functions) for episode in explained.values()],
        "left_out": f"{rest} further unknowns have no row here." if rest > 0 else "",
    }


def _entries(names: Sequence[str], nx: int, weights: set[int], processes: Any) -> list[int]:
    """The entries of z that have a row of their own."""
    own = [i for i in range(nx, len(names)) if i not in weights and not processes[i]]
    return own[:_UNKNOWNS]


def _controller(episode: ExplainedEpisode, entries: Sequence[int], functions: _Functions) -> dict[str, Any]:
    nx = episode.states.shape[1]
    mean = np.array([b.mean for b in episode.beliefs])
    deviation = np.sqrt(np.maximum([b.covariance.diagonal() for b in episode.beliefs], 0.0))
    transforms = episode.beliefs[0].transforms if episode.beliefs else ()
    shown, (lower, upper) = moments_of(transforms, mean, deviation**2).mean, _ends(transforms, mean, deviation)
    oracle = knows_truth(episode.controller) and not episode.problem.plant_is_model
    inputs = np.array([d.u for d in episode.decisions]).reshape(len(episode.decisions), -1)
    known = knows_truth(episode.controller) or episode.problem.plant_is_model
    return {
        "name": episode.controller,
        "kind": episode.controller,
        "failure": episode.failure,
        "states": _columns(episode.states),
        "inputs": _columns(inputs),
        "mean": _columns(mean[:, :nx]),
        "deviation": _columns(deviation[:, :nx]),
        "unknowns": [
            None
            if oracle
            else {
                "mean": _numbers(shown[:, i]),
                "lower": _numbers(lower[:, i]),
                "upper": _numbers(upper[:, i]),
                "truth": _numbers(episode.truths[:, i - nx]) if known else None,
            }
            for i in entries
        ],
        "decisions": [_decision(d, [] if oracle else entries) for d in episode.decisions],
        "functions": functions.beliefs(episode),
    }


def _decision(decision: Decision, entries: Sequence[int]) -> dict[str, Any]:
    nx = decision.plan_states.shape[1]
    lower, upper = _ends(decision.belief.transforms, decision.belief.mean, decision.measured)
    return {
        "k": decision.k,
        "u": _numbers(decision.u),
        "parts": _numbers(np.array(decision.parts)),
        "plan": _columns(decision.plan_states),
        "inputs": _columns(decision.plan_inputs),
        "wide": _columns(decision.unmeasured[:, :nx]),
        "narrow": _columns(decision.measured[:, :nx]),
        "learned": [{"lower": _numbers(lower[:, i]), "upper": _numbers(upper[:, i])} for i in entries],
        "curves": [
            {
                "values": _numbers(curve.values),
                "certain": _numbers(curve.certainty_equivalent),
                "caution": _numbers(curve.caution),
                "probing": _numbers(curve.probing),
                "total": _numbers(curve.cost),
            }
            for curve in decision.curves
        ],
    }


def _ends(transforms: Transforms, mean: Array, deviation: Array) -> list[Array]:
    """The ends of bands of two deviations, in the user's units."""
    return [values_of(transforms, mean + side * deviation) for side in (-2.0, 2.0)]


class _Functions:
    """The unknown functions of one argument, where the model is at hand, over the arguments that were met."""

    def __init__(self, explained: Explained) -> None:
        self.about: list[dict[str, Any]] = []
        self.weights: set[int] = set()
        self._shown: list[tuple[Any, Array, Any]] = []
        self._problem, self._model = explained.plan.problem, explained.model
        if self._model is None:
            return
        from symdual.report.functions import functions_of, true_function

        package = self._problem.package
        for subject in functions_of(self._model):
            at = self._argument(subject.argument)
            if at is None:
                continue
            met = np.concatenate([at(episode.states[:-1], _applied(episode)) for episode in explained.values()])
            low, high = float(np.min(met, initial=-1e-9)), float(np.max(met, initial=1e-9))
            margin = 0.25 * (high - low) + 1e-3
            points = np.linspace(low - margin, high + margin, _POINTS)
            truth = None
            if self._problem.plant_is_model:
                truth = true_function(self._model, next(iter(explained.values())).truths[0], subject, points)
            self._shown.append((subject, points, at))
            for weight in subject.family.weights:
                start, count = package.UNKNOWNS[weight.symbol.name]
                self.weights |= set(range(package.NX + start, package.NX + start + count))
            self.about.append(
                {
                    "title": subject.title,
                    "argument": str(subject.argument),
                    "points": _numbers(points),
                    "truth": None if truth is None else _numbers(truth),
                }
            )

    def _argument(self, expression: Any) -> Any:
        """The argument of a function as a function of states (K, NX) and inputs (K, NU), if it needs no more."""
        from symdual.spec.numeric import as_numpy

        model = self._model
        assert model is not None
        constants = list(model.constants)
        symbols = [*model.states, *model.inputs, *constants]
        if not expression.free_symbols <= set(symbols):
            return None
        compute = as_numpy(symbols, [expression])

        def at(states: Array, inputs: Array) -> Array:
            values = compute(*states.T, *inputs.T, *(float(c.value) for c in constants))[0]
            return np.broadcast_to(np.asarray(values, dtype=np.float64), len(states))

        return at

    def beliefs(self, episode: ExplainedEpisode) -> list[list[dict[str, Any]]]:
        """What is believed of each function at each decision; nothing for an oracle that has another model."""
        from symdual.report.functions import believed

        if knows_truth(episode.controller) and not episode.problem.plant_is_model:
            return [[{"mean": [], "deviation": [], "at": None}] for _ in self._shown]
        rows = []
        for subject, points, at in self._shown:
            met = at(episode.states[: len(episode.decisions)], _applied(episode))
            own = []
            for decision, now in zip(episode.decisions, met, strict=True):
                assert self._model is not None
                found = believed(self._model, episode.problem.package, decision.belief, subject, points)
                own.append(
                    {"mean": _numbers(found.mean), "deviation": _numbers(found.deviation), "at": _number(float(now))}
                )
            rows.append(own)
        return rows


def _applied(episode: ExplainedEpisode) -> Array:
    return np.array([d.u for d in episode.decisions]).reshape(len(episode.decisions), -1)


def _columns(array: Array) -> list[list[float | None]]:
    return [_numbers(column) for column in np.asarray(array).T]


def _numbers(values: Array) -> list[float | None]:
    return [_number(float(v)) for v in values]


def _number(value: float) -> float | None:
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
