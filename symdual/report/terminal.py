"""The derivation, the generated code and the checks as seen in a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import sympy as sp
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from symdual.checks.kernels import BlockResult
from symdual.common.transforms import between
from symdual.derive.derivation import Derivation
from symdual.derive.display import Abbreviations, Equation, letters, one_line
from symdual.derive.structure import Structure
from symdual.emit.kernels import KernelFunction
from symdual.report.grid import grid
from symdual.spec.specification import Specification

LONGEST_LINE = 240  #: characters of a right side; longer ones are abbreviated
MOST_NAMES = 100  #: parts with a name of their own; equations that need more are left to the page


def left_side(equation: Equation) -> str:
    """The left side of an equation, such as `d velocity' / d position`."""
    if "pair" in equation.block:
        return f"{equation.function}, {', '.join(equation.variables)}"
    order = "" if len(equation.variables) == 1 else str(len(equation.variables))
    return f"d{order} {equation.function} / {' '.join('d ' + v for v in equation.variables)}"


def right_side(equation: Equation) -> str:
    """The right side of an equation on one line."""
    return "(too large to be shown)" if equation.right is None else one_line(equation.right)


def model_summary(model: Specification, structure: Structure) -> Table:
    """Sizes and names of a model, and what is known about it without numbers."""
    return grid(
        ("", ""), [(Text(label, style="dim"), text) for label, text in summary_rows(model, structure)], left=(0, 1)
    )


def summary_rows(model: Specification, structure: Structure) -> list[tuple[str, str]]:
    """The facts of `model_summary` as plain text."""
    s = structure
    scalars = [u.name for u in model.unknowns]
    families = [f"{f.name} ({f.kind}, {f.count} x {len(f.weights)})" for f in model.families]
    bounded = [f"{u.transform.formula(u.name)} is normal" for u in model.unknowns if u.transform]
    stopped = [f"{model.states[i].name} {between(sides)}" for i, sides in model.bounded_states.items()]
    untouched = [model.states[i].name for i in range(s.nx) if i not in s.theta_rows]
    rows = [
        ("states", ", ".join(x.name for x in model.states)),
        ("inputs", ", ".join(u.name for u in model.inputs)),
        ("unknowns", f"{s.ntheta}: " + (", ".join([*scalars, *families]) or "none")),
        *([("with bounds", ", ".join(bounded))] if bounded else []),
        *([("states within", ", ".join(stopped))] if stopped else []),
        ("z = (x, theta)", f"{s.nz} numbers"),
        ("f_theta", f"rows of {', '.join(untouched)} vanish" if untouched else "no row vanishes"),
        ("f", "affine in x and u: the nominal trajectory is exact" if s.linear else "not affine in x and u"),
        (
            "u shows in theta",
            f"in the belief {s.input_delay} step{'s' if s.input_delay > 1 else ''} later" if s.input_delay else "never",
        ),
    ]
    rows.append(("filter", filter_text(model, s)))
    if model.signals:
        rows.append(("signals", ", ".join(s.name for s in model.signals)))
    if model.noise is not None:
        rows += [("noise", f"{what} = {one_line(e)}") for what, e in model.noise.named if e != 0]
    rows += cost_rows(model)
    if model.step is not None:
        rows.insert(2, ("time", f"continuous, {model.method} with step {model.step:g}{_within(model)}"))
    return rows


def filter_text(model: Specification, structure: Structure) -> str:
    """Which filter runs; one that cannot differ from the extended one is not used."""
    used = structure.filter_in_use(model.filter)
    over = (
        "the measurement" if structure.processes or not structure.curved_in_z else "the measurement and the step before"
    )
    words = {
        "extended": "extended, linearised at the mean",
        "second_order": "second order in what is uncertain",
        "iterated": f"iterated over {over}",
        "iterated_second_order": f"iterated over {over}, second order in what is uncertain",
        "recalibrated": "recalibrated, with the slope of a measurement at the new mean",
        "recalibrated_second_order": "recalibrated, second order in what is uncertain",
    }
    kept = ", square root of the covariance" if model.square_root else ""
    if model.outliers is not None:
        kept += f", outliers beyond {model.outliers:g} deviations count less"
    if not structure.processes and (model.outliers is not None or used.startswith(("iterated", "recalibrated"))):
        kept += f"; fits use the {'filter of second order' if used.endswith('second_order') else 'extended filter'}"
    if used == model.filter:
        return words[used] + kept
    why = "no measurement is curved" if structure.curved_in_z else "nothing is curved"
    if structure.processes and structure.curved_in_z:
        why += ", and Gaussian processes cannot go back a step"
    return f'{words[used]}{kept}; "{model.filter}" cannot differ from it, since {why}'


def _within(model: Specification) -> str:
    return f" in {model.substeps} substeps" if model.substeps > 1 else ""


def cost_rows(model: Specification) -> list[tuple[str, str]]:
    """What scenarios add to the quadratic cost, and to the inputs."""
    tried = f"{model.combinations} combinations of inputs with a finite set of values"
    discrete = [("choices", tried)] if model.combinations else []
    if model.objective is None:
        return discrete
    rows = []
    for label, letter, terms in (("cost", "l", model.objective.stage), ("terminal cost", "e", model.objective.final)):
        how = "weighted squares of" if terms.squares else "weighted"
        rows += [(label, f"{how} {letter}{i} = {one_line(e)}") for i, e in enumerate(terms.expressions)]
    rows += [("constraint", f"{one_line(g)} <= 0") for g in model.objective.constraints]
    return (rows or [("cost", "quadratic, with cross terms or references of inputs")]) + discrete


def kernel_table(functions: Sequence[KernelFunction]) -> Table:
    """The kernels with their operation counts."""
    return grid(("kernel", "operations"), [(f.name, f.kernel.operations) for f in functions], left=(0, 1))


def derivation_view(derivation: Derivation, listed: Sequence[Equation]) -> RenderableType:
    """The equations of a derivation, block by block; long ones with names for parts of them, which are said below.

    Where the long ones of a function need more names than anybody reads in a terminal, they are counted instead.
    """
    long = [e for e in listed if e.right is None or len(right_side(e)) > LONGEST_LINE]
    briefs: dict[int, sp.Expr] = {}
    notes: list[RenderableType] = []
    for letter in letters(derivation):
        own = [e for e in long if e.block.startswith(letter)]
        names, shortened = Abbreviations(derivation, letter).of([e.brief for e in own])
        if len(names) > MOST_NAMES:
            notes.append(_left_to_the_page(own, len(names)))
            continue
        briefs |= {id(e): brief for e, brief in zip(own, shortened, strict=True)}
        if names:
            notes.append(Text(f"\nwhere, in the derivatives of {letter}", style="bold"))
            notes += [_line(name.name, one_line(meaning)) for name, meaning in names.items()]
    hidden = {id(e) for e in long} - set(briefs)
    return Group(*_blocks([e for e in listed if id(e) not in hidden], briefs), *notes)


def _blocks(listed: Sequence[Equation], briefs: Mapping[int, sp.Expr]) -> Iterator[RenderableType]:
    """Equations below the names of their blocks, each block once."""
    for block in dict.fromkeys(e.block for e in listed):
        yield Text(f"\n{block}", style="bold")
        for equation in listed:
            if equation.block == block:
                brief = briefs.get(id(equation))
                yield _line(left_side(equation), right_side(equation) if brief is None else one_line(brief))


def _left_to_the_page(long: Sequence[Equation], names: int) -> Text:
    """How many equations of which blocks are too long for a terminal, and where they can be seen."""
    counts = Counter(equation.block for equation in long)
    listed = ", ".join(f"{count} of {block}" for block, count in counts.items())
    return Text(f"\nnot shown: {listed}, which are long and have {names} parts in common; --html FILE shows all of it")


def _line(left: str, right: str) -> Text:
    return Text.assemble((f"  {left}", "cyan"), (" = ", "dim"), (right, "default"))


#: what a model was compared with, by oracle, in words
ORACLES = {
    "50 digits": "50-digit values",
    "as written": "the model as written",
    "differences": "its differences",
    "dense": "recursions by full matrices",
    "Gram matrix": "recursions by Gram matrices",
    "optimiser": "a general optimiser",
    "manifest": "the files as they were generated",
}


def verdict(results: Sequence[BlockResult]) -> str:
    """Whether all is well, in how many checks, and what was compared: what a reader wants to know first."""
    with_what = ", ".join(dict.fromkeys(ORACLES.get(r.oracle, r.oracle) for r in results))
    missed = sum(not r.passed for r in results)
    silent = sum(r.passed and r.undefined > 0 for r in results)
    found = f"{missed} of {len(results)} checks MISS" if missed else f"all is well in {len(results)} checks"
    partly = f"; in {silent} of them there was nothing finite to compare at some points" if silent else ""
    return f"{found}, compared with {with_what}{partly}"


def _by_kind(results: Sequence[BlockResult]) -> list[BlockResult]:
    """The same with first derivatives of a function in one row, and second ones, as far as all is well with them."""
    found = dict[tuple[str, str], BlockResult]()
    for result in results:
        function, _, variables = result.block.partition(" by ")
        kind = f"{function}, {'second' if ',' in variables else 'first'} derivatives" if variables else result.block
        if not result.passed or result.undefined:
            kind = result.block
        before = found.get((kind, result.oracle), replace(result, block=kind, entries=0, error=0.0))
        entries, error = before.entries + result.entries, max(before.error, result.error)
        found[kind, result.oracle] = replace(before, entries=entries, error=error)
    return list(found.values())


def check_table(results: Sequence[BlockResult]) -> Table:
    """The worst error of each kind of block that is not trivially zero, all misses, and places that are not finite."""
    rows = []
    for result in _by_kind(results):
        if result.error > 0 or not result.passed or result.undefined:
            verdict = Text("ok", style="green") if result.passed else Text("MISS", style="bold red")
            error, ulps = f"{result.error:.1e}", f"{result.ulps:.1f}"
            count = f"{result.undefined} point{'s' if result.undefined > 1 else ''}"
            note = f"not finite at {count}" if result.undefined else ""
            rows.append((result.block, result.oracle, str(result.entries), error, ulps, verdict, note))
    return grid(("block", "oracle", "entries", "relative error", "ulp", "", ""), rows, left=(0, 1, 6))
