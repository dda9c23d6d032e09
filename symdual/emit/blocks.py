"""Turns what is known of the structure of f_x, f_u, f_theta and h into loops: the only place where this is done.

The module `blocks` of a package multiplies, whitens and reduces matrices on z = (x, theta) that are kept by blocks. Its
template is ordinary code with holes; what fills them is printed here:

    combination   rows of a product with a matrix that has known zeros, such as f_x S
    outer         a sum of outer products taken off a row
    dot           a dot product over the columns that may be non-zero

A product with few non-zero entries is written out, one with many is a loop over tables of its entries, so that neither
the length of a file nor the time to compile it grows with the number of states.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from symdual.derive.structure import Spans, Structure

WRITTEN_OUT = 24  # products with at most so many non-zero entries are written out
ROWS_AT_ONCE = 4  # outer products that are taken off in one pass
FEW_PARAMETERS = 8  # up to so many, one triangle of their covariance is computed and copied


class Pattern(NamedTuple):
    """A matrix by the columns of each row that may be non-zero; `entry` is the text of an entry, "" for a one.

    `table` is the name under which its entries are listed where it is too large to be written out.
    """

    entry: str
    columns: tuple[tuple[int, ...], ...]
    table: str

    @property
    def size(self) -> int:
        """The number of entries that may be non-zero."""
        return sum(len(columns) for columns in self.columns)

    def at(self, row: int | str, column: int | str) -> str:
        """The text of one entry."""
        return self.entry.format(i=row, c=column)


def transposed(columns: tuple[tuple[int, ...], ...], width: int) -> tuple[tuple[int, ...], ...]:
    """The rows of each column."""
    return tuple(tuple(i for i, row in enumerate(columns) if c in row) for c in range(width))


class Table(NamedTuple):
    """A constant of the module `blocks`: a list of whole numbers with what it means."""

    name: str
    values: tuple[int, ...]
    meaning: str


def combination(
    pattern: Pattern, target: str, source: str, length: str, plus: Mapping[int, str] | str = "", rows: str = "NX"
) -> str:
    """target = pattern source, for each k below `length`; target and source may be the same.

    `target` is a text with {i} for the row, `source` one with {c}; both contain k. `plus` is added to a row, or to all.
    """
    own = plus if isinstance(plus, str) else ""
    if pattern.size <= WRITTEN_OUT:
        return _written_out(pattern, target, source, length, plus, own)
    return _by_table(pattern, target, source, length, plus, own, rows)


def _written_out(
    pattern: Pattern, target: str, source: str, length: str, plus: Mapping[int, str] | str, own: str
) -> str:
    lines = []
    if pattern.entry:
        for i, columns in enumerate(pattern.columns):
            lines += [f"a{i}_{c} = {pattern.at(i, c)}" for c in columns]
    lines.append(f"for k in range({length}):")
    for c in sorted({c for columns in pattern.columns for c in columns}):
        lines.append(f"    s{c} = {source.format(c=c)}")
    for i, columns in enumerate(pattern.columns):
        terms = [f"a{i}_{c} * s{c}" if pattern.entry else f"s{c}" for c in columns]
        extra = own if isinstance(plus, str) else plus.get(i, "")
        terms += [extra.format(i=i)] if extra else []
        lines.append(f"    {target.format(i=i)} = {' + '.join(terms) or '0.0'}")
    return "\n".join(lines)


def _by_table(
    pattern: Pattern, target: str, source: str, length: str, plus: Mapping[int, str] | str, own: str, rows: str
) -> str:
    starts, columns = f"{pattern.table}_STARTS", f"{pattern.table}_COLUMNS"
    coefficient = f"{pattern.at('i', 'c')} * " if pattern.entry else ""
    lines = [
        f"for i in range({rows}):",
        f"    for k in range({length}):",
        f"        mixed[i, k] = {own.format(i='i') or '0.0'}",
        f"    for e in range({starts}[i + 1] - {starts}[i]):",
        f"        c = {columns}[{starts}[i] + e]",
    ]
    if coefficient:
        lines.append(f"        entry = {pattern.at('i', 'c')}")
        coefficient = "entry * "
    lines += [
        f"        for k in range({length}):",
        f"            mixed[i, k] += {coefficient}{source.format(c='c')}",
        f"for i in range({rows}):",
        f"    for k in range({length}):",
        f"        {target.format(i='i')} = mixed[i, k]",
    ]
    if not isinstance(plus, str) and plus:
        lines += [f"for k in range({length}):"]
        lines += [f"    {target.format(i=i)} += {text.format(i=i)}" for i, text in plus.items()]
    return "\n".join(lines)


def tables(pattern: Pattern) -> tuple[Table, ...]:
    """The entries of a pattern that is not written out."""
    if pattern.size <= WRITTEN_OUT:
        return ()
    starts = [0]
    for columns in pattern.columns:
        starts.append(starts[-1] + len(columns))
    return (
        Table(f"{pattern.table}_STARTS", tuple(starts), "where the entries of each row start"),
        Table(f"{pattern.table}_COLUMNS", tuple(c for columns in pattern.columns for c in columns), "their columns"),
    )


def outer(target: str, left: str, right: str, count: int, length: str) -> str:
    """target <- target - sum_a left_a right_a for each k below `length`, with left fixed and a up to `count`.

    The texts have {a} for the number of the product; `left` is read before the loop.
    """
    lines = []
    for first in range(0, count, ROWS_AT_ONCE):
        some = range(first, min(first + ROWS_AT_ONCE, count))
        lines += [f"c{a} = {left.format(a=a)}" for a in some]
        value = "(" * (len(some) - 1) + target
        for a in some:
            value += f" - c{a} * {right.format(a=a)}" + (")" if a != some[-1] else "")
        lines += [f"for k in range({length}):", f"    {target} = {value}"]
    return "\n".join(lines)


def dot(name: str, spans: tuple[Spans, ...], ntheta: int) -> str:
    """The body of a function that returns row r of `name` times `vector`, over the columns that may be non-zero."""
    if all(span == ((0, ntheta),) for span in spans):
        lines = ["for k in range(WIDTH):", f"    total += {name}[r, k] * vector[k]"]
    else:
        table = name.upper()
        lines = [
            f"for e in range({table}_SPANS[r + 1] - {table}_SPANS[r]):",
            f"    first = {table}_FIRST[{table}_SPANS[r] + e]",
            f"    for k in range({table}_COUNT[{table}_SPANS[r] + e]):",
            f"        total += {name}[r, first + k] * vector[first + k]",
        ]
    return "\n".join(["total = 0.0", *lines, "return total"])


def span_tables(name: str, spans: tuple[Spans, ...], ntheta: int) -> tuple[Table, ...]:
    """The spans that `dot` runs over, where they are not all columns."""
    if all(span == ((0, ntheta),) for span in spans):
        return ()
    starts = [0]
    for row in spans:
        starts.append(starts[-1] + len(row))
    pieces = [piece for row in spans for piece in row]
    table = name.upper()
    return (
        Table(f"{table}_SPANS", tuple(starts), f"where the spans of each row of {name} start"),
        Table(f"{table}_FIRST", tuple(first for first, _ in pieces), "their first columns"),
        Table(f"{table}_COUNT", tuple(last - first for first, last in pieces), "their lengths"),
    )


class BlockText(NamedTuple):
    """What fills the holes of `blocks/blocks.py.jinja`, and its tables."""

    tables: tuple[Table, ...]
    cost_tables: tuple[Table, ...]
    f_theta_dot: str
    multiply: str
    predict_half: str
    predict_mixed: str
    predict_states: str
    project_states: str
    project_mixed: str
    innovation: str
    reduce_states: str
    reduce_mixed: str
    reduce_parameters: str
    few_parameters: bool
    reduce_and_multiply: str
    effort_states: str
    effort_mixed: str
    effort_inputs: str
    effort_parameters: str
    learned: str
    back_half: str
    back_mixed: str
    back_states: str
    back_parameters: str
    reduce_cost_states: str
    reduce_cost_mixed: str

    @property
    def moves_cost(self) -> bool:
        """Whether D of the parameters is applied to the cost-to-go apart from the rest of its pass."""
        return "transform_cost(" in self.back_parameters

    def begin(self, text: str, *later: str, **names: str) -> str:
        """A text, after lines `name = meaning` for those names that it, or a later one of its function, uses.

        Which of them are used depends on the structure: a row that is zero needs none.
        """
        used = set(re.findall(r"\w+", " ".join(getattr(self, one) for one in (text, *later))))
        return "\n".join([*(f"{name} = {names[name]}" for name in names if name in used), getattr(self, text)])


def block_text(s: Structure, transition: str, width: str) -> BlockText:
    """Print the structure of a model; `width` is the text of the number of parameters that take part."""
    f_x = Pattern("f_x[{i}, {c}]", s.f_x_columns, "F_X")
    f_xt = Pattern("f_x[{c}, {i}]", transposed(s.f_x_columns, s.nx), "F_X_T")
    f_ut = Pattern("f_u[{c}, {i}]", transposed(s.f_u_columns, s.nu), "F_U_T")
    selecting = all(selected >= 0 for selected in s.h_selects)
    h = Pattern("" if selecting else "h_x[{i}, {c}]", s.h_x_columns, "H_X")
    theta = {row: position for position, row in enumerate(s.theta_rows)}
    seen = {row: f"seen[{position}, k]" for position, row in enumerate(s.h_theta_rows)}
    few = s.ntheta <= FEW_PARAMETERS
    noise = {i: f"Q[{i}, k]" + (f" + cross[{theta[i]}, k]" if i in theta else "") for i in range(s.nx)}
    return BlockText(
        tables=(
            Table("THETA_ROWS", s.theta_rows, "states whose row of f_theta is not identically zero"),
            Table("H_THETA_ROWS", s.h_theta_rows, "components of h whose row of h_theta is not identically zero"),
            Table("H_SELECTS", s.h_selects, "the state that a component of h is, or -1"),
            *(table for pattern in (f_x, h) for table in tables(pattern)),
            *span_tables("f_theta", s.f_theta_spans, s.ntheta),
        ),
        cost_tables=(*tables(f_xt), *tables(f_ut)),
        f_theta_dot=dot("f_theta", s.f_theta_spans, s.ntheta),
        multiply=_multiply(s),
        predict_half=combination(
            f_x, "half[{i}, k]", "xx[{c}, k]", "NX", {row: f"cross[{r}, k]" for row, r in theta.items()}
        ),
        predict_mixed=combination(
            f_x, "xt[{i}, k]", "xt[{c}, k]", width, {row: f"product[{r}, k]" for row, r in theta.items()}
        ),
        predict_states=combination(f_x, "xx[{i}, k]", "half[k, {c}]", "NX", noise),
        project_states=combination(h, "qx[{i}, k]", "xx[{c}, k]", "NX", rows="NY"),
        project_mixed=combination(h, "qt[{i}, k]", "xt[{c}, k]", width, seen, "NY"),
        innovation=combination(h, "root[k, {i}]", "qx[k, {c}]", "NY", rows="NY"),
        reduce_states=outer("xx[i, k]", "qx[{a}, i]", "qx[{a}, k]", s.ny, "i + 1"),
        reduce_mixed=outer("xt[i, k]", "qx[{a}, i]", "qt[{a}, k]", s.ny, width),
        reduce_parameters=outer("tt[i, k]", "qt[{a}, i]", "qt[{a}, k]", s.ny, "i + 1" if few else "WIDTH"),
        few_parameters=few,
        reduce_and_multiply=_reduce_and_multiply(s),
        effort_states=combination(f_ut, "KB[{i}, k]", "xx[{c}, k]", "NX", rows="NU"),
        effort_mixed=combination(f_xt, "Mx[k, {i}]", "KB[k, {c}]", "NU"),
        effort_inputs=combination(f_ut, "Huu[k, {i}]", "KB[k, {c}]", "NU", rows="NU"),
        effort_parameters=combination(f_ut, "Mt[{i}, k]", "xt[{c}, k]", width, rows="NU"),
        learned=_learned(s),
        back_half=combination(f_xt, "half[{i}, k]", "xx[{c}, k]", "NX"),
        back_mixed=combination(f_xt, "xt[{i}, k]", "xt[{c}, k]", width),
        back_states=combination(f_xt, "xx[{i}, k]", "half[k, {c}]", "NX", "W[{i}, k]"),
        back_parameters=_back_parameters(s, transition),
        reduce_cost_states=outer("xx[i, k]", "Mx[{a}, i]", "Mx[{a}, k]", s.nu, "NX"),
        reduce_cost_mixed=outer("xt[i, k]", "Mx[{a}, i]", "Mt[{a}, k]", s.nu, width),
    )


def _in_one_pass(*counts: int) -> bool:
    """Whether so many rows are worth one pass; more would not stay in registers."""
    return sum(counts) <= 2 * ROWS_AT_ONCE


def _whole_rows(s: Structure) -> bool:
    return all(span == ((0, s.ntheta),) for span in s.f_theta_spans)


_MULTIPLY = """for group in range(NTHETA // 4):
    i = 4 * group
    for r in range(NR):
        t0 = 0.0
        t1 = 0.0
        t2 = 0.0
        t3 = 0.0
        for k in range(WIDTH):
            value = f_theta[r, k]
            t0 += value * tt[i, k]
            t1 += value * tt[i + 1, k]
            t2 += value * tt[i + 2, k]
            t3 += value * tt[i + 3, k]
        product[r, i] = t0
        product[r, i + 1] = t1
        product[r, i + 2] = t2
        product[r, i + 3] = t3
for rest in range(NTHETA % 4):
    i = NTHETA - 1 - rest
    for r in range(NR):
        product[r, i] = f_theta_dot(f_theta, r, tt[i])"""

_MULTIPLY_SPANS = """for i in range(NTHETA):
    for r in range(NR):
        product[r, i] = f_theta_dot(f_theta, r, tt[i])"""


def _multiply(s: Structure) -> str:
    """product_r = tt f_theta_r; four rows of tt at a time where f_theta has no known zeros."""
    return _MULTIPLY if _whole_rows(s) else _MULTIPLY_SPANS


def _reduce_and_multiply(s: Structure) -> str:
    """One pass over the parameters' block for the reduction and the products with f_theta, if both fit into one."""
    nr = len(s.theta_rows)
    if not (_whole_rows(s) and _in_one_pass(s.ny, nr)):
        return "reduce_parameters(S, stage)\nmultiply(S, point, scratch)"
    lines = ["for i in range(NTHETA):", *(f"    c{a} = qt[{a}, i]" for a in range(s.ny))]
    lines += [f"    t{r} = 0.0" for r in range(nr)]
    taken = "".join(f" - c{a} * qt[{a}, k]" for a in range(s.ny))
    lines += ["    for k in range(WIDTH):", f"        value = tt[i, k]{taken}", "        tt[i, k] = value"]
    lines += [f"        t{r} += value * f_theta[{r}, k]" for r in range(nr)]
    return "\n".join(lines + [f"    product[{r}, i] = t{r}" for r in range(nr)])


_LEARNED = """for i in range(NTHETA):
    for a in range(NY):
        inner = 0.0
        for k in range(WIDTH):
            inner += tt[i, k] * qt[a, k]
        total += inner * qt[a, i]"""


def _learned(s: Structure) -> str:
    """total += sum_a q_a' tt q_a."""
    if not _in_one_pass(s.ny):
        return _LEARNED
    lines = ["for i in range(NTHETA):", *(f"    t{a} = 0.0" for a in range(s.ny))]
    lines += ["    for k in range(WIDTH):", "        value = tt[i, k]"]
    lines += [f"        t{a} += value * qt[{a}, k]" for a in range(s.ny)]
    return "\n".join([*lines, "    total += " + " + ".join(f"t{a} * qt[{a}, i]" for a in range(s.ny))])


_BACK_PARAMETERS = """total = learned(K, stage)
transform_cost(K, settings, scratch)
for i in range(NTHETA):
    for r in range(NR):
        left = f_theta[r, i]
        right = y[r, i]
        for k in range(WIDTH):
            tt[i, k] += left * y[r, k] + right * f_theta[r, k]
    for a in range(NU):
        less = Mt[a, i]
        for k in range(WIDTH):
            tt[i, k] -= less * Mt[a, k]"""


def _back_parameters(s: Structure, transition: str) -> str:
    """total = sum_a q_a' tt q_a, then tt <- D' tt D + f_theta' y + y' f_theta - Mt' Mt; in one pass where D = I."""
    nr = len(s.theta_rows)
    if transition != "identity" or not _in_one_pass(nr, nr, s.nu, s.ny):
        return _BACK_PARAMETERS
    lines = ["total = 0.0", "for i in range(NTHETA):"]
    for r in range(nr):
        lines += [f"    left{r} = f_theta[{r}, i]", f"    right{r} = y[{r}, i]"]
    lines += [f"    less{a} = Mt[{a}, i]" for a in range(s.nu)]
    lines += [f"    t{a} = 0.0" for a in range(s.ny)]
    lines += ["    for k in range(WIDTH):", "        value = tt[i, k]"]
    lines += [f"        t{a} += value * qt[{a}, k]" for a in range(s.ny)]
    more = "".join(f" + left{r} * y[{r}, k] + right{r} * f_theta[{r}, k]" for r in range(nr))
    more += "".join(f" - less{a} * Mt[{a}, k]" for a in range(s.nu))
    lines += [f"        tt[i, k] = value{more}"]
    return "\n".join([*lines, "    total += " + " + ".join(f"t{a} * qt[{a}, i]" for a in range(s.ny))])


class MotionText(NamedTuple):
    """How the parameters move: D and Xi by their form."""

    transition: str
    diffusion: str
    apply_transition: str
    apply_transition_transposed: str
    propagate_parameters: str
    transform_parameters: str
    transform_cost: str


_DENSE_VECTOR = """for i in range(NTHETA):
    total = 0.0
    for k in range(NTHETA):
        total += settings.D[{entry}] * v[k]
    scratch.moved[i] = total
for i in range(NTHETA):
    v[i] = scratch.moved[i]"""

_DENSE_SANDWICH = """for i in range(NTHETA):
    for k in range(NTHETA):
        scratch.square[i, k] = 0.0
    for c in range(NTHETA):
        value = settings.D[{left}]
        for k in range(NTHETA):
            scratch.square[i, k] += value * {name}.tt[c, k]
for i in range(NTHETA):
    for k in range(i + 1):
        total = 0.0
        for c in range(NTHETA):
            total += scratch.square[i, c] * settings.D[{right}]
        {name}.tt[i, k] = total
        {name}.tt[k, i] = total"""

_DIAGONAL_SANDWICH = """for i in range(NTHETA):
    value = settings.D[i]
    for k in range(NTHETA):
        {name}.tt[i, k] *= value * settings.D[k]"""

_DIFFUSION = {
    "none": "",
    "diagonal": "for i in range(NTHETA):\n    S.tt[i, i] += settings.Xi[i]",
    "dense": "for i in range(NTHETA):\n    for k in range(NTHETA):\n        S.tt[i, k] += settings.Xi[i, k]",
}


def motion_text(transition: str, diffusion: str) -> MotionText:
    """Print the motion of the parameters."""
    if transition == "identity":
        vector = back = cost = "pass"
        parameters = ""
    elif transition == "diagonal":
        vector = back = "for i in range(NTHETA):\n    v[i] *= settings.D[i]"
        parameters, cost = _DIAGONAL_SANDWICH.format(name="S"), _DIAGONAL_SANDWICH.format(name="K")
    else:
        vector, back = _DENSE_VECTOR.format(entry="i, k"), _DENSE_VECTOR.format(entry="k, i")
        parameters = _DENSE_SANDWICH.format(left="i, c", right="k, c", name="S")
        cost = _DENSE_SANDWICH.format(left="c, i", right="c, k", name="K")
    both = "\n".join(text for text in (parameters, _DIFFUSION[diffusion]) if text) or "pass"
    return MotionText(transition, diffusion, vector, back, both, parameters or "pass", cost)
