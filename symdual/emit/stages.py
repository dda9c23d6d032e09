"""A step in loops: substeps and stages, composed from kernels of a map g that are written once.

A step consists of substeps, x_0 = x, x_1, ..., f = x_N, and each of them of stages,

    X_s = x_n + a_s h k_{s-1},   k_s = g(X_s, u, theta),   x_{n+1} = x_n + h sum_s b_s k_s

where a and b are those of a method (`symdual.integrators`), and g is the right-hand side of a long step. A short
substep is written out: g is the substep itself then, with one stage, and x_{n+1} = k. With v = (x, theta, u),
Z_s = dX_s/dv and G the derivatives of g, the chain rule is

    Z_s = dx_n/dv + a_s h K_{s-1},     K_s = dk_s/dv = G_x Z_s + [0 G_theta G_u]
    dx_{n+1}/dv = dx_n/dv + h sum_s b_s K_s
    mu_s = b_s h lam_{n+1} + a_{s+1} h G_x' mu_{s+1}              the derivative of lam' f by k_s
    lam_n = lam_{n+1} + sum_s G_x' mu_s                           and by x_n
    d2(lam' f)/dv2 = sum_n sum_s V_s' (mu_s' g_vv) V_s,           V_s = [Z_s; 0 I 0; 0 0 I]

as differentiating the whole step gives, in another order of its sums. On the way back the stages of a substep are
computed again, so that only its start is kept. All that passes between the kernels of g and the loops above them
(`kernels/stages.py.jinja`) lies in the work array, where the kernels of g write

    k, the entries of G_x one after another with tables of their rows and columns, G_theta and G_u at their places in K;
    M = (mu' g_vv) by rows of states, scalar unknowns and inputs: entries by a state one after another, the others at
    their places; the loops complete it to M V_s.

Weights by weights are pairs of vectors, some from each stage. Where there would be more pairs than weights, the block
is filled instead, and the pairs are its rows: left = I, right = half of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from symdual.derive.calculus import Calculus
from symdual.derive.derivation import Derivation, Loops, theta_row
from symdual.derive.structure import curved_states, hessian_diagonals, moving_pattern, pairs_in_loops, remembered
from symdual.emit.collocation import sizes as collocation_sizes
from symdual.emit.kernel import KernelBuilder
from symdual.integrators import Explicit, Implicit, Integrator

AT_ONCE = 4  # entries of a row that are multiplied in one pass


class Entries(NamedTuple):
    """The entries of a matrix that may be non-zero, one after another in groups of four of the same row.

    `rows` has a row for each group, `columns` a column for each place; places that are left over hold zeros.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    places: tuple[tuple[int, int, int], ...]  #: (place, row, column) of every entry


def grouped(pairs: Iterable[tuple[int, int]]) -> Entries:
    """Put entries (row, column) into groups."""
    by_row: dict[int, list[int]] = {}
    for row, column in sorted(pairs):
        by_row.setdefault(row, []).append(column)
    rows, columns, places = list[int](), list[int](), list[tuple[int, int, int]]()
    for row, own in by_row.items():
        places += [(len(columns) + n, row, column) for n, column in enumerate(own)]
        groups = -(-len(own) // AT_ONCE)
        rows += [row] * groups
        columns += own + [0] * (groups * AT_ONCE - len(own))
    return Entries(tuple(rows), tuple(columns), tuple(places))


class StageLayout(NamedTuple):
    """What the template needs to know: sizes, tables, and where in the work array everything lies."""

    substeps: int
    method: Integrator | None
    columns: int
    rows: int
    first_input: int
    jacobian: Entries
    hessian: Entries
    curved: tuple[int, ...]
    own_pairs: int
    dense: bool
    diagonals: int
    zeros: tuple[tuple[int, int, int], ...]
    remembered: tuple[tuple[int, int], ...]
    step_at: int
    offsets: tuple[tuple[str, int, str], ...]

    @property
    def written_out(self) -> bool:
        """Whether the map of the loops is a substep as a whole."""
        return self.method is None

    @property
    def implicit(self) -> bool:
        """Whether stages are found together (`emit.collocation`)."""
        return isinstance(self.method, Implicit)

    @property
    def parts(self) -> int:
        """How many parts an implicit step has at most."""
        return self.substeps + (self.method.more_parts if isinstance(self.method, Implicit) else 0)

    @property
    def shifts(self) -> list[float]:
        """The a_s of the method."""
        return [float(a) for a in self.method.shift] if isinstance(self.method, Explicit) else [0.0]

    @property
    def shares(self) -> list[float]:
        """The b_s of the method, times their denominator."""
        return [float(b) for b in self.method.numerators] if isinstance(self.method, Explicit) else [1.0]

    @property
    def link(self) -> str:
        """What the kernels of the map are called."""
        return "_substep" if self.written_out else "_slope"

    @property
    def size(self) -> int:
        """How much of the work array is used, in whole vectors of eight."""
        return 8 * -(-self.offsets[-1][1] // 8)

    def at(self, name: str) -> int:
        """Where something lies."""
        return next(start for known, start, _ in self.offsets if known == name)


def stage_layout(derivation: Derivation, loops: Loops, step_at: int) -> StageLayout:
    """Lay out the work array of the loops; `step_at` is the place of the step length among the known numbers."""
    slope, stages, substeps = loops.link, loops.stages, loops.substeps
    nx, ns, nu = len(derivation.states), len(derivation.scalars), len(derivation.inputs)
    nz = nx + derivation.theta_size
    rows, columns = nx + ns + nu, 4 * -(-(nz + nu) // 4)  # whole vectors
    place = {symbol: n for n, symbol in enumerate(slope.variables)}
    jacobian = grouped((i, place[x]) for i in range(nx) for x in derivation.states if slope.jacobian(i, x) != 0)
    hessian = grouped(
        (place[one], place[other]) for one, other in slope.hessian.core if one in place and place.get(other, nx) < nx
    )
    diagonals = sum(count for _, _, count, _ in hessian_diagonals(derivation, slope.hessian))
    weights = derivation.theta_size - ns
    own_and_others = pairs_in_loops(derivation, loops)
    dense = own_and_others > (0 if loops.implicit else weights)
    pairs = len(slope.hessian.pairs) * derivation.theta_size if dense else 0
    groups = len(derivation.core) + len(derivation.weights)
    entries = len(jacobian.columns)
    of_the_step = [
        ("START", substeps * nx, "x at the start of each substep"),
        ("BASE", substeps * nx * columns, "dx/dv there"),
        ("LAM", nx, "derivative of lam' f by x at the end of a substep"),
        ("STAGE_POINT", stages * nz, "(x, theta) of each stage"),
        ("SLOPE", nx, "k of the last stage"),
        ("NEXT", nx, "x at the end of a substep"),
        ("ENTRY", entries, "entries of G_x of the last stage"),
        ("STAGE_JACOBIANS", stages * entries, "of each stage"),
        ("Z", stages * nx * columns, "dX/dv of each stage"),
        ("K", nx * columns, "dk/dv of the last stage"),
        ("FLOW", nx * columns, "dx/dv there"),
        ("MU", stages * nx, "derivative of lam' f by k of each stage"),
    ]
    if isinstance(loops.method, Implicit):
        of_the_step = collocation_sizes(loops.method, substeps, nx, nz, columns, entries)
    sizes = (
        *of_the_step,
        ("CURVED", len(hessian.columns), "entries of the second derivatives by a state"),
        ("M", rows * columns, "rows of the second derivatives times V"),
        ("H", rows * columns, "their sum over the stages"),
        ("DIAGONAL", diagonals, "diagonals between weights"),
        ("LEFT", pairs, "pairs of vectors of g itself"),
        ("RIGHT", pairs, "their other halves"),
        ("HALF", derivation.theta_size if dense else 0, "of a row of M"),
    )
    offsets, start = [], 0
    for name, size, meaning in sizes:
        offsets.append((name, start, meaning))
        start += size
    return StageLayout(
        substeps=substeps,
        method=loops.method,
        columns=columns,
        rows=rows,
        first_input=nx + ns,
        jacobian=jacobian,
        hessian=hessian,
        curved=curved_states(slope),
        own_pairs=len(slope.hessian.pairs),
        dense=dense,
        zeros=_zeros(derivation, moving_pattern(derivation).first) if loops.implicit else (),
        remembered=tuple((row, j if j < nx else nz + j - groups) for row, j in remembered(derivation)),
        diagonals=diagonals,
        step_at=step_at,
        offsets=(*offsets, ("END", start, "")),
    )


def _zeros(derivation: Derivation, present: NDArray[np.bool_]) -> tuple[tuple[int, int, int], ...]:
    """(row, start, stop) of what is identically zero in dx/dv, where rounding in the equations of stages would be."""
    nx, ns = len(derivation.states), len(derivation.scalars)
    ends = [*range(1, nx + ns + 1), *(nx + block.start + block.count for block in derivation.weights)]
    ends += [nx + derivation.theta_size + a + 1 for a in range(len(derivation.inputs))]
    spans = list(zip([0, *ends[:-1]], ends, strict=True))
    return tuple(
        (row, *span) for row, own in enumerate(present) for span, there in zip(spans, own, strict=True) if not there
    )


def write_slope(builder: KernelBuilder, slope: Calculus, layout: StageLayout) -> None:
    """k = g."""
    for i, expression in enumerate(slope.program.outputs):
        builder.write(_at(layout, "SLOPE", i), expression, always=True)


def write_slope_by_state(builder: KernelBuilder, derivation: Derivation, slope: Calculus, layout: StageLayout) -> None:
    """G_x entry by entry."""
    for e, i, j in layout.jacobian.places:
        builder.write(_at(layout, "ENTRY", e), slope.jacobian(i, derivation.states[j]))


def write_slope_jacobian(builder: KernelBuilder, derivation: Derivation, slope: Calculus, layout: StageLayout) -> None:
    """G_x entry by entry, G_theta and G_u at their places in K."""
    nx, width = len(derivation.states), layout.columns
    write_slope_by_state(builder, derivation, slope, layout)
    counts = {block.start: block.count for block in derivation.weights}
    for i in range(nx):
        scalars, vectors = theta_row(derivation, slope, i)
        for column, expression in scalars.items():
            builder.write(_at(layout, "K", i * width + nx + column), expression)
        for start, vector in vectors.items():
            builder.write_vector(_run(layout, "K", i * width + nx + start), counts[start], vector)
        for a, u in enumerate(derivation.inputs):
            builder.write(_at(layout, "K", i * width + nx + derivation.theta_size + a), slope.jacobian(i, u))


def write_slope_hessian(builder: KernelBuilder, derivation: Derivation, slope: Calculus, layout: StageLayout) -> None:
    """mu' g_vv: entries by a state one after another, the others at their places in M; families by structure."""
    hessian, width = slope.hessian, layout.columns
    nx, ns = len(derivation.states), len(derivation.scalars)
    variables = slope.variables
    for e, row, column in layout.hessian.places:
        builder.write(_at(layout, "CURVED", e), hessian.entry(variables[row], variables[column]))
    place = {symbol: n for n, symbol in enumerate(variables)}
    direct = {(place[a], place[b]): e for (a, b), e in hessian.core.items() if a in place and place.get(b, 0) >= nx}
    for one, other in sorted(direct):
        column = other if other < nx + ns else other + derivation.theta_size - ns
        builder.write(_at(layout, "M", one * width + column), direct[one, other])
    for row, variable in enumerate(variables):
        for block in derivation.weights:
            vector = hessian.mixed(variable, block.symbol)
            builder.write_vector(_run(layout, "M", row * width + nx + block.start), block.count, vector)
    weights = {nx + block.start: block.symbol for block in derivation.weights}
    for row_start, column_start, count, start in hessian_diagonals(derivation, hessian):
        vector = hessian.diagonal(weights[row_start], weights[column_start])
        builder.write_vector(_run(layout, "DIAGONAL", start), count, vector)
    for position, pair in enumerate(hessian.pairs):
        for block in derivation.weights:
            for array, side in (("left", pair.left), ("right", pair.right)):
                target = f"{array}_out[_pair + {position}, {block.start} + {{i}}]"
                if layout.dense:
                    target = _run(layout, array.upper(), position * derivation.theta_size + block.start)
                builder.write_vector(target, block.count, side.get(block.symbol, ()))


def _at(layout: StageLayout, name: str, offset: int) -> str:
    return f"work[{layout.at(name) + offset}]"


def _run(layout: StageLayout, name: str, offset: int) -> str:
    return f"work[{layout.at(name) + offset} + {{i}}]"
