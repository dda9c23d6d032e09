"""Which kernels a model gets, what each writes where, and how it is described."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import sympy as sp

from symdual.derive.calculus import Calculus, Evaluation, Hessian
from symdual.derive.derivation import Derivation, theta_row
from symdual.derive.pieces import depth
from symdual.derive.program import Point
from symdual.derive.structure import Structure, hessian_diagonals
from symdual.emit.kernel import KernelBuilder
from symdual.emit.sizes import Sizes, arguments_of, shapes_text, sizes_of
from symdual.emit.stages import (
    StageLayout,
    stage_layout,
    write_slope,
    write_slope_by_state,
    write_slope_hessian,
    write_slope_jacobian,
)
from symdual.emit.steps import Kernel


class KernelFunction(NamedTuple):
    """A kernel with its signature and the text of its docstring."""

    name: str
    arguments: tuple[str, ...]
    summary: str
    equations: tuple[str, ...]
    shapes: str
    kernel: Kernel


class DataLayout(NamedTuple):
    """The flat array of known numbers: (name, start, count) of each array, then of each constant."""

    entries: tuple[tuple[str, int, int], ...]

    @property
    def size(self) -> int:
        """The length of the array."""
        return sum(count for _, _, count in self.entries)


def data_layout(derivation: Derivation) -> DataLayout:
    """Place the families' data arrays and the constants one after another."""
    entries: list[tuple[str, int, int]] = []
    start = 0

    def place(name: str, count: int) -> None:
        nonlocal start
        entries.append((name, start, count))
        start += count

    for family in derivation.model.families:
        for array in family.data:
            place(array.symbol.name, family.count)
        if family.process is not None:
            place(f"{family.name}_factor", family.count**2)
            place(f"{family.name}_state", 7)
    for constant in derivation.model.constants:
        place(constant.name, 1)
    if derivation.model.step is not None:
        place("step_length", 1)
    return DataLayout(tuple(entries))


def kernel_functions(derivation: Derivation, structure: Structure) -> tuple[KernelFunction, ...]:
    """All kernels of a model; of a step in loops those of the map that these put together."""
    # they write their entries by the functions of this module
    from symdual.emit.cost_kernels import cost_functions
    from symdual.emit.noise_kernels import noise_functions

    layout = stages(derivation)
    functions = (
        *(_whole_step(derivation, structure) if layout is None else _link(derivation, layout)),
        _observation(derivation),
        _observation_jacobian(derivation, structure),
        _observation_hessian(derivation),
        *([_process_points(derivation)] if process_evaluations(derivation) else []),
        *cost_functions(derivation),
        *noise_functions(derivation),
    )
    sizes = sizes_of_kernels(derivation, structure, functions)
    return tuple(f._replace(shapes=shapes_text(_declared(f, layout), f.arguments, sizes)) for f in functions)


def sizes_of_kernels(derivation: Derivation, structure: Structure, functions: Iterable[KernelFunction]) -> Sizes:
    """The sizes of a package with these kernels."""
    work = max(function.kernel.work for function in functions)
    return sizes_of(derivation, structure, data_layout(derivation).size, work)


def _declared(function: KernelFunction, layout: StageLayout | None) -> str:
    """The entry that a kernel is declared with: what a step in loops calls has its arguments from the step."""
    inner = layout is not None and function.name.startswith(layout.link)
    return "dynamics_hessian" if inner else function.name


def leaf(name: str, summary: str, equations: tuple[str, ...], kernel: Kernel) -> KernelFunction:
    """A kernel that is called by others, with its declared arguments; its shapes are not known before the last one."""
    return KernelFunction(name, arguments_of(name), summary, equations, "", kernel)


def stages(derivation: Derivation) -> StageLayout | None:
    """How the substeps and stages of a step in loops share the work array; None for a step that is written out."""
    if derivation.loops is None:
        return None
    starts = {name: start for name, start, _ in data_layout(derivation).entries}
    return stage_layout(derivation, derivation.loops, starts["step_length"])


def _whole_step(derivation: Derivation, structure: Structure) -> tuple[KernelFunction, ...]:
    return (
        _dynamics(derivation),
        _linearise(derivation),
        _dynamics_jacobian(derivation, structure),
        _dynamics_hessian(derivation),
    )


def _link(derivation: Derivation, layout: StageLayout) -> tuple[KernelFunction, ...]:
    """The kernels of the map g that loops put together; what they write where is said in `emit.stages`."""
    loops, model = derivation.loops, derivation.model
    assert loops is not None
    value, first, second = (new_builder(derivation, loops.link, layout.size) for _ in range(3))
    write_slope(value, loops.link, layout)
    write_slope(first, loops.link, layout)
    write_slope_jacobian(first, derivation, loops.link, layout)
    write_slope_hessian(second, derivation, loops.link, layout)
    by_state = new_builder(derivation, loops.link, layout.size)
    write_slope(by_state, loops.link, layout)
    write_slope_by_state(by_state, derivation, loops.link, layout)
    own = len(model.own_states)
    names = tuple(f"d {s.name} / dt" for s in derivation.states[:own])
    written = equations_text(names, model.dynamics[:own])
    if layout.written_out:
        written += (f"discretised by {model.method} with step_length / {model.substeps}",)
    what = "where a substep leads" if layout.written_out else "the right-hand side"
    place = ("time_index", "z_in", "u_in")
    values = KernelFunction(
        layout.link, (*place, "data", "work"), f"k = g(x, u, theta): {what}.", written, "", value.build()
    )
    for_newton = KernelFunction(
        f"{layout.link}_by_state",
        (*place, "data", "work"),
        f"k = g(x, u, theta), {what}, with its Jacobian G_x.",
        written,
        "",
        by_state.build(),
    )
    return (
        for_newton if layout.implicit else values,
        KernelFunction(
            f"{layout.link}_jacobian",
            (*place, "data", "work"),
            "k = g(x, u, theta) with its Jacobians G_x, G_theta and G_u.",
            (),
            "",
            first.build(),
        ),
        KernelFunction(
            f"{layout.link}_hessian",
            (*place, "costate", "data", "work", "_pair", "left_out", "right_out"),
            "The second derivatives of costate' g, by structure; _pair is the row of the first pair of vectors.",
            (),
            "",
            second.build(),
        ),
    )


def new_builder(
    derivation: Derivation, calculus: Calculus, work: int = 0, more: Mapping[sp.Symbol, str] | None = None
) -> KernelBuilder:
    """A builder that knows where the symbols of a model are read, and where `more` are."""
    nx = len(derivation.states)
    scalars = {s: f"z_in[{i}]" for i, s in enumerate(derivation.states)}
    scalars |= {s: f"z_in[{nx + i}]" for i, s in enumerate(derivation.scalars)}
    scalars |= {s: f"u_in[{i}]" for i, s in enumerate(derivation.inputs)}
    if derivation.model.time is not None:
        scalars[sp.Symbol(derivation.model.time.name, real=True)] = "float(time_index)"
    scalars |= {s: f"costate[{i}]" for i, s in enumerate(calculus.costate)}
    layout = {name: start for name, start, _ in data_layout(derivation).entries}
    single = [c.name for c in derivation.model.constants] + ["step_length"]
    scalars |= {sp.Symbol(name, real=True): f"data[{layout[name]}]" for name in single if name in layout}
    indexed = {block.symbol: _indexed("z_in", nx + block.start) for block in derivation.weights}
    indexed |= {
        array.symbol: _indexed("data", layout[array.symbol.name])
        for family in derivation.model.families
        for array in family.data
    }
    return KernelBuilder(calculus, scalars | dict(more or {}), indexed, work)


def _indexed(array: str, start: int, row: int | None = None) -> str:
    before = "" if row is None else f"{row}, "
    return f"{array}[{before}{start} + {{i}}]" if start else f"{array}[{before}{{i}}]"


def write_values(builder: KernelBuilder, calculus: Calculus, place: str) -> None:
    """Write the outputs of a program."""
    for i, expression in enumerate(calculus.program.outputs):
        builder.write(f"{place}[{i}]", expression, always=True)  # what is identically zero is still a value


def write_jacobian(builder: KernelBuilder, calculus: Calculus, place: str, variables: tuple[sp.Symbol, ...]) -> None:
    """Write their derivatives by some variables."""
    for i in range(len(calculus.program.outputs)):
        for j, variable in enumerate(variables):
            builder.write(f"{place}[{i}, {j}]", calculus.jacobian(i, variable))


def _write_theta(
    builder: KernelBuilder, derivation: Derivation, calculus: Calculus, place: str, rows: tuple[int, ...]
) -> None:
    counts = {block.start: block.count for block in derivation.weights}
    for position, row in enumerate(rows):
        scalars, vectors = theta_row(derivation, calculus, row)
        for column, expression in scalars.items():
            builder.write(f"{place}[{position}, {column}]", expression)
        for start, vector in vectors.items():
            builder.write_vector(_indexed(place, start, position), counts[start], vector)


def _write_hessian(builder: KernelBuilder, derivation: Derivation, hessian: Hessian) -> None:
    nx, core = len(derivation.states), derivation.core
    entries = _entries(hessian, core, core)
    for i, row in enumerate(core):
        for j, entry in entries.get(i, ()):
            builder.write(f"core_out[{i}, {j}]", entry)
        for block in derivation.weights:
            vector = hessian.mixed(row, block.symbol)
            builder.write_vector(_indexed("core_out", nx + block.start, i), block.count, vector)
    weights = {nx + block.start: block.symbol for block in derivation.weights}
    for row_start, column_start, count, start in hessian_diagonals(derivation, hessian):
        vector = hessian.diagonal(weights[row_start], weights[column_start])
        builder.write_vector(_indexed("diagonal_out", start), count, vector)
    for position, pair in enumerate(hessian.pairs):
        for block in derivation.weights:
            for place, side in (("left_out", pair.left), ("right_out", pair.right)):
                builder.write_vector(_indexed(place, block.start, position), block.count, side.get(block.symbol, ()))


def _entries(
    hessian: Hessian, rows: tuple[sp.Symbol, ...], columns: tuple[sp.Symbol, ...]
) -> dict[int, list[tuple[int, sp.Expr]]]:
    """The entries that are not zero, by row and in the order of the columns."""
    row_of, column_of = ({symbol: n for n, symbol in enumerate(symbols)} for symbols in (rows, columns))
    found: dict[int, list[tuple[int, sp.Expr]]] = {}
    for (one, other), entry in hessian.core.items():
        if one in row_of and other in column_of:
            found.setdefault(row_of[one], []).append((column_of[other], entry))
    return {row: sorted(entries, key=lambda pair: pair[0]) for row, entries in found.items()}


def equations_text(names: tuple[str, ...], expressions: tuple[sp.Expr, ...]) -> tuple[str, ...]:
    """Equations for a docstring, as far as they can be read."""
    return tuple(f"{name} = {_readable(e)}" for name, e in zip(names, expressions, strict=True))


def _readable(expression: sp.Expr) -> str:
    """An expression as text, unless it has more than four hundred characters."""
    parts = sum(1 for _ in itertools.islice(sp.preorder_traversal(expression), 401))
    text = sp.sstr(expression) if parts <= 400 and depth(expression) <= 100 else ""
    return text if 0 < len(text) <= 400 else "(long, see the model file)"


def _dynamics(derivation: Derivation) -> KernelFunction:
    calculus = derivation.dynamics
    builder = new_builder(derivation, calculus)
    write_values(builder, calculus, "f_out")
    model = derivation.model
    if model.step is None:
        names = tuple(f"{s.name}'" for s in derivation.states)
    else:
        names = tuple(f"d {s.name} / dt" for s in derivation.states)
    within = f" in {model.substeps} substeps" if model.substeps > 1 else ""
    discretised = () if model.step is None else (f"discretised by {model.method} with step_length{within}",)
    return leaf(
        "dynamics",
        "The next state, f_out = f(x, u, theta).",
        equations_text(names, model.dynamics) + discretised,
        builder.build(),
    )


def _linearise(derivation: Derivation) -> KernelFunction:
    calculus = derivation.dynamics
    builder = new_builder(derivation, calculus)
    write_values(builder, calculus, "f_out")
    write_jacobian(builder, calculus, "f_x_out", derivation.states)
    write_jacobian(builder, calculus, "f_u_out", derivation.inputs)
    return leaf(
        "linearise",
        "The next state with its Jacobians by state and input.",
        ("f_x_out = df/dx, f_u_out = df/du",),
        builder.build(),
    )


def _dynamics_jacobian(derivation: Derivation, structure: Structure) -> KernelFunction:
    calculus = derivation.dynamics
    builder = new_builder(derivation, calculus)
    write_values(builder, calculus, "f_out")
    write_jacobian(builder, calculus, "f_x_out", derivation.states)
    write_jacobian(builder, calculus, "f_u_out", derivation.inputs)
    _write_theta(builder, derivation, calculus, "f_theta_out", structure.theta_rows)
    rows = ", ".join(derivation.states[i].name for i in structure.theta_rows) or "none"
    return leaf(
        "dynamics_jacobian",
        "The next state with its Jacobians: the upper rows of A~ = [f_x f_theta; 0 D] and B~ = [f_u; 0].",
        (f"f_theta_out = df/dtheta, only the rows that are not identically zero: {rows}",),
        builder.build(),
    )


def _dynamics_hessian(derivation: Derivation) -> KernelFunction:
    calculus, hessian = derivation.dynamics, derivation.dynamics_hessian
    builder = new_builder(derivation, calculus)
    _write_hessian(builder, derivation, hessian)
    nx = len(derivation.states)
    for a, one in enumerate(derivation.inputs):
        for j, column in enumerate(derivation.core):
            builder.write(f"input_out[{a}, {j}]", hessian.entry(one, column))
        for block in derivation.weights:
            vector = hessian.mixed(one, block.symbol)
            builder.write_vector(_indexed("input_out", nx + block.start, a), block.count, vector)
        for b, other in enumerate(derivation.inputs):
            builder.write(f"uu_out[{a}, {b}]", hessian.entry(one, other))
    return leaf(
        "dynamics_hessian",
        "The second derivatives of costate' f by (z, z), (u, z) and (u, u), by structure.",
        (
            "core_out: full rows of the states and scalar unknowns; input_out: f_uz; uu_out: f_uu",
            "theta by theta of the families: diagonal_out on diagonals, plus left' right + right' left",
        ),
        builder.build(),
    )


def _observation(derivation: Derivation) -> KernelFunction:
    calculus = derivation.observation
    builder = new_builder(derivation, calculus)
    write_values(builder, calculus, "h_out")
    names = tuple(f"y{i}" for i in range(len(calculus.program.outputs)))
    return leaf(
        "observation",
        "The expected measurement, h_out = h(x, theta).",
        equations_text(names, derivation.model.observation),
        builder.build(),
    )


def _observation_jacobian(derivation: Derivation, structure: Structure) -> KernelFunction:
    calculus = derivation.observation
    builder = new_builder(derivation, calculus)
    write_values(builder, calculus, "h_out")
    write_jacobian(builder, calculus, "h_x_out", derivation.states)
    _write_theta(builder, derivation, calculus, "h_theta_out", structure.h_theta_rows)
    rows = ", ".join(f"y{i}" for i in structure.h_theta_rows) or "none"
    return leaf(
        "observation_jacobian",
        "The expected measurement with its Jacobians: C~ = [h_x h_theta].",
        (f"h_theta_out = dh/dtheta, only the rows that are not identically zero: {rows}",),
        builder.build(),
    )


def _observation_hessian(derivation: Derivation) -> KernelFunction:
    calculus, hessian = derivation.observation, derivation.observation_hessian
    builder = new_builder(derivation, calculus)
    _write_hessian(builder, derivation, hessian)
    return leaf(
        "observation_hessian",
        "The second derivatives of costate' h by (z, z), by structure.",
        ("the blocks are those of dynamics_hessian",),
        builder.build(),
    )


def process_evaluations(derivation: Derivation) -> tuple[Evaluation, ...]:
    """The values of Gaussian processes that one step of the dynamics uses."""
    return tuple(e for e in derivation.dynamics.evaluations if e.point.family.process is not None)


def process_points(derivation: Derivation) -> tuple[Point, ...]:
    """The points at which one step of the dynamics evaluates Gaussian processes."""
    return tuple(p for p in derivation.dynamics.program.points if p.family.process is not None)


def _process_points(derivation: Derivation) -> KernelFunction:
    calculus = derivation.dynamics
    builder = new_builder(derivation, calculus)
    for row, point in enumerate(process_points(derivation)):
        for q, argument in enumerate(point.arguments):
            builder.write(f"points_out[{row}, {q}]", argument)
    for column, evaluation in enumerate(process_evaluations(derivation)):
        for i in range(len(derivation.states)):
            builder.write(f"gains_out[{i}, {column}]", calculus.jacobian(i, evaluation.symbol))
    names = ", ".join(e.symbol.name for e in process_evaluations(derivation))
    return leaf(
        "process_points",
        "Where a step of the dynamics evaluates Gaussian processes, and how the next state depends on their values.",
        (f"gains_out = df/dg for g = {names}",),
        builder.build(),
    )
