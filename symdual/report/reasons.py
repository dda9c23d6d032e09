"""What is zero in a model's derivatives, and why, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import sympy as sp

from symdual.derive.calculus import Calculus, Hessian
from symdual.derive.derivation import Derivation, WeightBlock
from symdual.report.patterns import Kind, Pattern


class Reason(NamedTuple):
    """Blocks that vanish, wholly or in part, such as `f_zz f_zu`, and the sentence that says why."""

    block: str
    sentence: str


def reasons(derivation: Derivation, curvature: Pattern) -> list[Reason]:
    """All zeros of the Jacobians and Hessians that can be read off the model; `curvature` is that of f over (z, u)."""
    d = derivation
    found = [reason for row in range(len(d.states)) for reason in _dynamics_row(d, row)]
    found += _unknowns_move(d)
    found += _observation(d)
    return found + _curvature(d, curvature)


def appearing(calculus: Calculus, row: int) -> set[sp.Symbol]:
    """The variables, unknowns and weights on which output `row` depends, through all definitions and sums."""
    seen: set[sp.Symbol] = set()
    waiting = list(calculus.program.outputs[row].free_symbols)
    while waiting:
        symbol = waiting.pop()
        if symbol not in seen:
            seen.add(symbol)
            if symbol in calculus.definitions:
                waiting += calculus.definitions[symbol].free_symbols
            elif symbol in calculus.sums:
                waiting += calculus.sums[symbol].body.free_symbols
    return seen


def _dynamics_row(d: Derivation, row: int) -> list[Reason]:
    f, where = d.dynamics, f"the dynamics of {d.states[row].name}"
    present = appearing(f, row)
    found = _missing_unknowns(d, f, row, where, "f_theta")
    for block, variables, noun in (("f_u", d.inputs, "input"), ("f_x", d.states, "state")):
        absent = [v.name for v in variables if v not in present]
        if absent:
            what = f"The {noun}{'s' if len(absent) > 1 else ''} {listed(absent)}"
            found.append(Reason(block, f"{what} {_do(absent)} not appear in {where}."))
        cancelled = [v.name for v in variables if v in present and f.jacobian(row, v) == 0]
        found += [Reason(block, f"{name} appears in {where} but cancels.") for name in cancelled]
    return found


def _missing_unknowns(d: Derivation, calculus: Calculus, row: int, where: str, block: str) -> list[Reason]:
    if d.theta_size == 0:
        return []
    present = appearing(calculus, row)
    weights = {b.symbol: b for b in d.weights}
    absent = [s.name for s in d.scalars if s not in present]
    absent += [f"{b.symbol.name}[i]" for b in d.weights if b.symbol not in present]
    if len(absent) == len(d.scalars) + len(weights):
        return [Reason(block, f"No unknown appears in {where}: its row is zero and is never touched.")]
    return (
        [
            Reason(
                block,
                f"The unknown{'s' if len(absent) > 1 else ''} {listed(absent)} {_do(absent)} not appear in {where}.",
            )
        ]
        if absent
        else []
    )


def _unknowns_move(d: Derivation) -> list[Reason]:
    if d.theta_size == 0:
        return [Reason("theta", "The model has no unknowns: z is the state itself.")]
    found = [
        Reason(
            "A~ B~",
            "The unknowns move by themselves, whatever state and input do: all that stands below the dynamics is zero.",
        )
    ]
    transition = d.model.transition
    if transition is None:
        found.append(Reason("D", "The unknowns are constant: D is the unit matrix."))
    elif transition.ndim == 1:
        found.append(Reason("D", "Each unknown moves by itself: D is diagonal."))
    return found


def _observation(d: Derivation) -> list[Reason]:
    h = d.observation
    outputs = h.program.outputs
    if all(e in d.states for e in outputs):
        measured = "the state itself" if tuple(outputs) == d.states else "one of the states"
        what = "The measurement is" if measured.startswith("the") else "Each measurement is"
        found = [Reason("h_x", f"{what} {measured}: each row has a single one.")]
        return [*found, Reason("h_theta h_zz", "No unknown and no curvature is in the measurement.")]
    found = []
    for row in range(len(outputs)):
        where = f"the measurement y{row}"
        found += _missing_unknowns(d, h, row, where, "h_theta")
        absent = [s.name for s in d.states if s not in appearing(h, row)]
        if absent:
            found.append(
                Reason(
                    "h_x",
                    f"The state{'s' if len(absent) > 1 else ''} {listed(absent)} {_do(absent)} not appear in {where}.",
                )
            )
    return found


def _curvature(d: Derivation, pattern: Pattern) -> list[Reason]:
    hessian = d.dynamics_hessian
    variables: list[sp.Symbol | WeightBlock] = [*d.core, *d.weights, *d.inputs]
    flat = [group.name for group, cells in zip(pattern.rows, pattern.cells, strict=True) if set(cells) == {Kind.ZERO}]
    if len(flat) == len(variables):
        return [
            Reason(
                "f_zz f_zu f_uu",
                "The dynamics are affine in state, input and unknowns together: no curvature at all.",
            )
        ]
    found = []
    used = set().union(*(appearing(d.dynamics, row) for row in range(len(d.states))))
    symbols = [v.symbol if isinstance(v, WeightBlock) else v for v in variables]
    straight = [s.name for s in symbols if s.name in flat and s in used]
    unused = [s.name for s in symbols if s.name in flat and s not in used]
    if straight:
        verb = "enter" if len(straight) > 1 else "enters"
        which = "their rows and columns are" if len(straight) > 1 else "its row and column are"
        found.append(
            Reason(
                "f_zz f_zu", f"{listed(straight, capital=True)} {verb} with constant coefficients only: {which} zero."
            )
        )
    if unused:
        found.append(
            Reason("f_zz f_zu", f"{listed(unused, capital=True)} {_do(unused)} not appear in the dynamics at all.")
        )
    return found + _theta_by_theta(d, pattern) + _inputs_curve(d, hessian)


def _theta_by_theta(d: Derivation, pattern: Pattern) -> list[Reason]:
    theta = [i for i, group in enumerate(pattern.rows) if group.part == "theta"]
    weights = [i for i in theta if pattern.rows[i].indexed]
    block = "f_thetatheta"
    if theta and _kinds(pattern, theta) == {Kind.ZERO}:
        return [Reason(block, "The unknowns enter linearly and are never multiplied with each other.")]
    if weights and _kinds(pattern, weights) == {Kind.ZERO}:
        return [Reason(block, "The weights enter linearly and are never multiplied with each other.")]
    if weights and not _kinds(pattern, weights) & {Kind.PAIR, Kind.BOTH}:
        return [Reason(block, "Weights of different features never meet: between weights only diagonals remain.")]
    return []


def _kinds(pattern: Pattern, positions: Sequence[int]) -> set[Kind]:
    return {pattern.cells[i][j] for i in positions for j in positions}


def _inputs_curve(d: Derivation, hessian: Hessian) -> list[Reason]:
    found = []
    if all(hessian.entry(a, b) == 0 for a in d.inputs for b in d.inputs):
        what = "The input enters" if len(d.inputs) == 1 else "The inputs enter"
        found.append(Reason("f_uu", f"{what} linearly."))
    mixed = any(hessian.entry(u, v) != 0 for u in d.inputs for v in d.core)
    mixed = mixed or any(hessian.mixed(u, b.symbol) for u in d.inputs for b in d.weights)
    if not mixed:
        found.append(Reason("f_zu", "No input meets a state or an unknown in a product or inside a function."))
    return found


def listed(names: Sequence[str], capital: bool = False) -> str:
    """Names as in a sentence: a, b and c. Names keep their spelling, so `capital` puts a word before them."""
    text = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"The variable{'s' if len(names) > 1 else ''} {text}" if capital else text


def _do(names: Sequence[str]) -> str:
    return "do" if len(names) > 1 else "does"
