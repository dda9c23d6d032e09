"""What is known of a model's matrices without numbers: zero rows, linearity, when an input shows in the belief."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from symdual.derive.calculus import Calculus, Hessian, Vector
from symdual.derive.derivation import Derivation, Loops
from symdual.spec.noise import places

Spans = tuple[tuple[int, int], ...]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Structure:
    """Sizes and patterns of non-zeros; everything that templates need to know, as small tuples."""

    nx: int
    nu: int
    ny: int
    ns: int
    ntheta: int
    theta_rows: tuple[int, ...]
    f_x_columns: tuple[tuple[int, ...], ...]
    f_u_columns: tuple[tuple[int, ...], ...]
    f_theta_spans: tuple[Spans, ...]
    h_theta_rows: tuple[int, ...]
    h_selects: tuple[int, ...]
    h_x_columns: tuple[tuple[int, ...], ...]
    linear: bool
    input_delay: int
    hessian_core_rows: tuple[int, ...]
    hessian_input_rows: tuple[int, ...]
    hessian_diagonals: tuple[tuple[int, int, int, int], ...]
    npairs: int
    huu_nonzero: bool
    curved_rows: tuple[int, ...]
    curved_in_z: tuple[int, ...]
    observation_curved_rows: tuple[int, ...]
    processes: bool

    @property
    def nz(self) -> int:
        """The size of the augmented state."""
        return self.nx + self.ntheta

    def filter_in_use(self, wanted: str) -> str:
        """The filter that a model asks for, or a simpler one where that is the same: nothing is curved.

        Beside Gaussian processes, an iterated filter does not go back over the step before. A recalibrated one differs
        by curved measurements only.
        """
        measured = bool(self.observation_curved_rows)
        curved = measured or bool(self.curved_in_z)
        useful = {
            "second_order": curved,
            "iterated": measured if self.processes else curved,
            "iterated_second_order": curved,
            "recalibrated": measured,
            "recalibrated_second_order": measured,
        }
        if wanted == "recalibrated_second_order" and curved and not measured:
            return "second_order"
        return wanted if useful.get(wanted, True) else "extended"


def structure(derivation: Derivation) -> Structure:
    """Read the pattern of every block off the derivation."""
    h = derivation.observation
    states, inputs = derivation.states, derivation.inputs
    step, measured = step_pattern(derivation), pattern(derivation, h)
    rows = [_theta_pieces(derivation, row) for row in step.first]
    theta_rows = tuple(i for i, pieces in enumerate(rows) if pieces)
    core_rows, input_rows, huu_nonzero = _hessian_blocks(derivation, step)
    nx, first_input = len(states), len(derivation.core) + len(derivation.weights)
    return Structure(
        nx=nx,
        nu=len(inputs),
        ny=len(h.program.outputs),
        ns=len(derivation.scalars),
        ntheta=derivation.theta_size,
        theta_rows=theta_rows,
        f_x_columns=_columns(step.first[:, :nx]),
        f_u_columns=_columns(step.first[:, first_input:]),
        f_theta_spans=tuple(_spans(rows[i]) for i in theta_rows),
        h_theta_rows=tuple(i for i, row in enumerate(measured.first) if _theta_pieces(derivation, row)),
        h_selects=tuple(states.index(e) if e in states else -1 for e in h.program.outputs),
        h_x_columns=_columns(measured.first[:, :nx]),
        linear=_is_affine(derivation, step),
        input_delay=input_delay(derivation),
        hessian_core_rows=core_rows,
        hessian_input_rows=input_rows,
        hessian_diagonals=hessian_diagonals(derivation, derivation.dynamics_hessian),
        npairs=_pairs(derivation),
        huu_nonzero=huu_nonzero,
        curved_rows=tuple(sorted(step.second)),
        curved_in_z=tuple(i for i in sorted(step.second) if step.second[i][:first_input, :first_input].any()),
        observation_curved_rows=tuple(sorted(measured.second)),
        processes=any(family.process is not None for family in derivation.model.families),
    )


def _columns(present: Mask) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(j) for j in np.flatnonzero(row)) for row in present)


def _theta_pieces(derivation: Derivation, row: Mask) -> list[tuple[int, int]]:
    """Where in theta a row of a Jacobian may differ from zero."""
    nx, ns = len(derivation.states), len(derivation.scalars)
    pieces = [(i, i + 1) for i in range(ns) if row[nx + i]]
    return pieces + [(b.start, b.start + b.count) for n, b in enumerate(derivation.weights) if row[nx + ns + n]]


def _spans(pieces: list[tuple[int, int]]) -> Spans:
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(pieces):
        if merged and merged[-1][1] == start:
            merged[-1] = (merged[-1][0], stop)
        else:
            merged.append((start, stop))
    return tuple(merged)


def curved_states(slope: Calculus) -> tuple[int, ...]:
    """The states in which a right-hand side is not affine: their rows of its second derivatives are not all zero."""
    hessian = slope.hessian
    variables = set(slope.variables)
    touched = {one for one, other in hessian.core if other in variables} | {one for one, _ in hessian.mixed_vectors}
    return tuple(i for i in range(len(slope.program.outputs)) if slope.variables[i] in touched)


def _pairs(derivation: Derivation) -> int:
    """Pairs of vectors in the parameter block; in loops, of all links: no more of them than there are weights."""
    loops = derivation.loops
    if loops is None:
        return len(derivation.dynamics_hessian.pairs)
    weights, found = sum(block.count for block in derivation.weights), pairs_in_loops(derivation, loops)
    return min(found * (weights if loops.implicit else 1), weights)


def pairs_in_loops(derivation: Derivation, loops: Loops) -> int:
    """The link's own pairs, and one for each state in which it is curved: in the first these depend on no weight.

    Of an implicit method that is what a substep has at least.
    """
    through_states = (loops.links - 1) * len(curved_states(loops.link)) if derivation.weights else 0
    return loops.links * len(loops.link.hessian.pairs) + through_states


def _hessian_blocks(derivation: Derivation, step: Pattern) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
    """The rows of states and scalar unknowns, and those of inputs, by z that are not zero; whether f_uu is."""
    first_input = len(derivation.core) + len(derivation.weights)
    if derivation.model.substeps > 1 or derivation.model.is_implicit:
        bent = step.bent
        by_z = np.flatnonzero(bent[:, :first_input].any(axis=1)).tolist()
        inputs = tuple(i - first_input for i in by_z if i >= first_input)
        return tuple(i for i in by_z if i < len(derivation.core)), inputs, bool(bent[first_input:, first_input:].any())
    hessian, inputs_ = derivation.dynamics_hessian, derivation.inputs
    return (
        _hessian_rows(derivation, hessian, derivation.core),
        _hessian_rows(derivation, hessian, inputs_),
        any(hessian.entry(a, b) != 0 for a in inputs_ for b in inputs_),
    )


def _hessian_rows(derivation: Derivation, hessian: Hessian, variables: tuple[sp.Symbol, ...]) -> tuple[int, ...]:
    core = set(derivation.core)
    touched = {one for one, other in hessian.core if other in core} | {one for one, _ in hessian.mixed_vectors}
    return tuple(i for i, variable in enumerate(variables) if variable in touched)


def hessian_diagonals(derivation: Derivation, hessian: Hessian) -> tuple[tuple[int, int, int, int], ...]:
    """(row, column, count, start) of each diagonal between two weight arrays of one family, in indices of z."""
    nx = len(derivation.states)
    found: list[tuple[int, int, int, int]] = []
    start = 0
    for i, one in enumerate(derivation.weights):
        for other in derivation.weights[i:]:
            if one.family == other.family and hessian.diagonal(one.symbol, other.symbol):
                found.append((nx + one.start, nx + other.start, one.count, start))
                start += one.count
    return tuple(found)


# -------------------------------------------------------------------- dependence


def _dependence(calculus: Calculus) -> dict[sp.Symbol, set[sp.Symbol]]:
    """For each defined symbol, the core variables and weights that it depends on."""
    known: dict[sp.Symbol, set[sp.Symbol]] = {}

    def of(expression: sp.Expr) -> set[sp.Symbol]:
        return set().union(*(resolve(symbol) for symbol in expression.free_symbols))

    def resolve(symbol: sp.Symbol) -> set[sp.Symbol]:
        if symbol not in known:
            if symbol in calculus.definitions:
                known[symbol] = of(calculus.definitions[symbol])
            elif symbol in calculus.sums:
                known[symbol] = of(calculus.sums[symbol].body)
            else:
                return {symbol}
        return known[symbol]

    for symbol in (*calculus.definitions, *calculus.sums):
        resolve(symbol)
    return known


def _depends(expressions: Iterable[sp.Expr], known: dict[sp.Symbol, set[sp.Symbol]]) -> set[sp.Symbol]:
    return set().union(*(known.get(s, {s}) for e in expressions for s in e.free_symbols))


def _vector_expressions(vector: Vector) -> list[sp.Expr]:
    return [e for term in vector for e in (term.coefficient, term.body)]


@dataclass(frozen=True, eq=False)
class Pattern:
    """Which first derivatives of a map may differ from zero, (row, column), and on which columns each of them depends.

    Columns are states, scalar unknowns, weight arrays (one for each) and inputs; `second` has the rows that are curved.
    """

    first: Mask
    second: Mapping[int, Mask]

    @property
    def bent(self) -> Mask:
        """The second derivatives that some row has, (column, column)."""
        size = self.first.shape[1]
        return np.asarray(np.any([np.zeros((size, size), dtype=bool), *self.second.values()], axis=0))

    def after(self, before: Pattern) -> Pattern:
        """That of this map after another one, which moves the states alone."""
        n, size = len(before.first), before.first.shape[1]
        moved = np.eye(size, dtype=bool)
        moved[:n] = before.first
        second = {i: _any_product(_any_product(moved.T, own), moved) for i, own in self.second.items()}
        for i, row in enumerate(self.first):
            through = [own for m, own in before.second.items() if row[m]]
            if through:
                second[i] = np.any([*through, *([second[i]] if i in second else [])], axis=0)
        return Pattern(_any_product(self.first, moved), second)

    def is_like(self, other: Pattern) -> bool:
        """Whether both are the same."""
        same = np.array_equal(self.first, other.first) and self.second.keys() == other.second.keys()
        return same and all(np.array_equal(own, other.second[i]) for i, own in self.second.items())


def pattern(derivation: Derivation, calculus: Calculus) -> Pattern:
    """The pattern of f or h as derived."""
    known = _dependence(calculus)
    columns = [*derivation.core, *(block.symbol for block in derivation.weights), *derivation.inputs]
    place = {symbol: n for n, symbol in enumerate(columns)}
    weights = {block.symbol for block in derivation.weights}
    first = np.zeros((len(calculus.program.outputs), len(columns)), dtype=bool)
    second: dict[int, Mask] = {}
    for i in range(len(first)):
        for j, column in enumerate(columns):
            vector = calculus.weight_jacobian(i, column) if column in weights else ()
            entries = _vector_expressions(vector) if column in weights else [calculus.jacobian(i, column)]
            first[i, j] = any(entry != 0 for entry in entries)
            for symbol in _depends(entries, known) & place.keys():
                second.setdefault(i, np.zeros((len(columns), len(columns)), dtype=bool))[j, place[symbol]] = True
    return Pattern(first, second)


def step_pattern(derivation: Derivation) -> Pattern:
    """The pattern of a whole step: that of its substeps one after another, and of what remembers inputs."""
    found, known = moving_pattern(derivation), dict(remembered(derivation))
    if derivation.loops is None:
        return found
    for row, column in known.items():
        found.first[row] = False
        found.first[row, column] = True
    return Pattern(found.first, {i: own for i, own in found.second.items() if i not in known})


def moving_pattern(derivation: Derivation) -> Pattern:
    """The pattern of substeps one after another, or of any number of them; what remembers inputs waits.

    An implicit step is like many steps of Euler's method: it has all that follows from the pattern of 1 + h G_x.
    """
    one = found = pattern(derivation, derivation.dynamics)
    if derivation.model.is_implicit:
        one = found = Pattern(one.first | np.eye(*one.first.shape, dtype=np.bool_), one.second)
    elif derivation.model.substeps == 1:
        return found
    many = len(one.first) ** 2 + 2 if derivation.model.is_implicit else derivation.model.substeps - 1
    for _ in range(many):
        before, found = found, one.after(found)
        if found.is_like(before):
            break
    return found


def remembered(derivation: Derivation) -> list[tuple[int, int]]:
    """(row, column) of each state that remembers an input: what it is at the end of a step."""
    model = derivation.model
    names = [symbol.name for symbol in (*derivation.core, *(b.symbol for b in derivation.weights), *derivation.inputs)]
    own = len(model.own_states)
    return [(own + n, names.index(e.name)) for n, e in enumerate(model.dynamics[own:])] if model.memory else []


def _is_affine(derivation: Derivation, step: Pattern) -> bool:
    """Whether f is affine in (x, u) for fixed theta and time: its Jacobians then contain neither."""
    moving = [
        *range(len(derivation.states)),
        *range(len(derivation.core) + len(derivation.weights), step.first.shape[1]),
    ]
    return not step.bent[np.ix_(moving, moving)].any()


def input_delay(derivation: Derivation) -> int:
    """The first step s at which an input u_k can show in the belief on theta at k + s; 0 if it never does.

    Two masks are carried along: which mean states, and which covariances, depend on u_k. The belief before u_k is taken
    as full. One round is: linearise at the mean, predict, linearise the observation, update. Weights of one array share
    one row of the masks.
    """
    n, groups = len(derivation.states), len(derivation.core) + len(derivation.weights)
    f, h = _Masks(derivation, step_pattern(derivation)), _Masks(derivation, pattern(derivation, derivation.observation))
    noise = _NoiseMasks(derivation)
    theta = slice(n, groups)
    mean = np.zeros(n, dtype=bool)
    shown = np.zeros((groups, groups), dtype=bool)
    for step in range(1, 2 * groups + n + 2):
        before = mean, shown
        shown = _predicted(f.present, f.moved(mean, inputs=step == 1), shown)
        shown[:n, :n] |= noise.of_process(mean, inputs=step == 1)
        mean = f.next_mean(mean, inputs=step == 1)
        seen = h.moved(mean, inputs=False)
        cross = _times_depends(h.present, seen, shown)
        innovation = _product_depends(h.present, seen, cross).any() or noise.of_measurement(mean)
        touched = np.asarray(cross.any(axis=0))
        shown = np.asarray(shown | touched[:, None] | touched[None, :] | innovation)
        if shown[theta, theta].any():
            return step
        if step > 1 and np.array_equal(mean, before[0]) and np.array_equal(shown, before[1]):
            return 0  # nothing will change any more
    return 0


class _Masks:
    """Non-zero pattern and dependence of the rows of [f_x f_theta], or of C~, by groups of columns."""

    def __init__(self, derivation: Derivation, own: Pattern) -> None:
        self._n, groups = len(derivation.states), len(derivation.core) + len(derivation.weights)
        self.present: Mask = own.first[:, :groups]
        self._needs, self._groups = {i: needs[:groups] for i, needs in own.second.items()}, groups
        self._input_rows = np.asarray(own.first[:, groups:].any(axis=1))

    def moved(self, mean: Mask, inputs: bool) -> Mask:
        """Which entries depend on u_k, given which mean states do."""
        mask = np.zeros_like(self.present)
        for i, needs in self._needs.items():
            mask[i] = (needs[:, : self._n] & mean).any(axis=1)
            if inputs:
                mask[i] |= needs[:, self._groups :].any(axis=1)
        return mask

    def next_mean(self, mean: Mask, inputs: bool) -> Mask:
        """Which states of the next mean depend on u_k."""
        through = (self.present[: self._n, : self._n] & mean).any(axis=1)
        return np.asarray(through | self._input_rows if inputs else through)


class _NoiseMasks:
    """On which states and inputs the entries of Q and R depend; on none where they are numbers."""

    def __init__(self, derivation: Derivation) -> None:
        self._derivation = derivation
        noise = derivation.noise
        calculi = () if noise is None else (noise.process, noise.measurement)
        self._needs = [[_depends([e], _dependence(c)) for e in c.program.outputs] for c in calculi] or [[], []]

    def of_process(self, mean: NDArray[np.bool_], inputs: bool) -> NDArray[np.bool_]:
        """Which entries of Q depend on u_k, given which mean states do."""
        n = len(mean)
        changed = self._changed(mean) | (set(self._derivation.inputs) if inputs else set())
        mask = np.zeros((n, n), dtype=bool)
        for needs, (i, j) in zip(self._needs[0], places(n), strict=False):
            mask[i, j] = mask[j, i] = bool(needs & changed)
        return mask

    def of_measurement(self, mean: NDArray[np.bool_]) -> bool:
        """Whether R depends on u_k, given which mean states do."""
        changed = self._changed(mean)
        return any(needs & changed for needs in self._needs[1])

    def _changed(self, mean: NDArray[np.bool_]) -> set[sp.Symbol]:
        return {s for s, m in zip(self._derivation.states, mean, strict=True) if m}


def _times_depends(present: NDArray[np.bool_], moves: NDArray[np.bool_], shown: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Dependence mask of A P, for a full P."""
    return np.asarray(np.asarray(moves.any(axis=1))[:, None] | _any_product(present, shown))


def _product_depends(
    present: NDArray[np.bool_], moves: NDArray[np.bool_], left: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Dependence mask of A P A', for a full P; `left` is that of A P."""
    return np.asarray(_any_product(left, present.T) | np.outer(present.any(axis=1), moves.any(axis=1)))


def _predicted(present: NDArray[np.bool_], moves: NDArray[np.bool_], shown: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Dependence mask of A~ P A~' with A~ = [f_x f_theta; 0 I]: the lower rows of A~ only pass on."""
    n = len(present)
    upper = _times_depends(present, moves, shown)
    result = shown.copy()
    result[:n, :n] = _product_depends(present, moves, upper)
    # a row that moves does so in each column of a full P
    result[:n, n:] = upper[:, n:]
    result[n:, :n] = upper[:, n:].T
    return result


def _any_product(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.asarray(one.astype(np.float32) @ other.astype(np.float32) > 0)
