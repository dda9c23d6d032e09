"""What is known of a model's matrices without numbers: zero rows, linearity, when an input shows in the belief."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from symdual.derive.calculus import Calculus, Hessian, Vector
from symdual.derive.derivation import Derivation, theta_row
from symdual.spec.noise import places

Spans = tuple[tuple[int, int], ...]


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
    observation_curved_rows: tuple[int, ...]

    @property
    def nz(self) -> int:
        """The size of the augmented state."""
        return self.nx + self.ntheta


def structure(derivation: Derivation) -> Structure:
    """Read the pattern of every block off the derivation."""
    f, h = derivation.dynamics, derivation.observation
    states, inputs = derivation.states, derivation.inputs
    rows = [theta_row(derivation, f, i) for i in range(len(states))]
    theta_rows = tuple(i for i, (scalars, vectors) in enumerate(rows) if scalars or vectors)
    measured = [theta_row(derivation, h, i) for i in range(len(h.program.outputs))]
    hessian = derivation.dynamics_hessian
    return Structure(
        nx=len(states),
        nu=len(inputs),
        ny=len(h.program.outputs),
        ns=len(derivation.scalars),
        ntheta=derivation.theta_size,
        theta_rows=theta_rows,
        f_x_columns=_columns(f, states),
        f_u_columns=_columns(f, inputs),
        f_theta_spans=tuple(_spans(derivation, *rows[i]) for i in theta_rows),
        h_theta_rows=tuple(i for i, (scalars, vectors) in enumerate(measured) if scalars or vectors),
        h_selects=tuple(states.index(e) if e in states else -1 for e in h.program.outputs),
        h_x_columns=_columns(h, states),
        linear=is_affine(derivation),
        input_delay=input_delay(derivation),
        hessian_core_rows=_hessian_rows(derivation, hessian, derivation.core),
        hessian_input_rows=_hessian_rows(derivation, hessian, inputs),
        hessian_diagonals=hessian_diagonals(derivation, hessian),
        npairs=_pairs(derivation),
        huu_nonzero=any(hessian.entry(a, b) != 0 for a in inputs for b in inputs),
        curved_rows=_curved_rows(derivation, f),
        observation_curved_rows=_curved_rows(derivation, h),
    )


def _columns(calculus: Calculus, variables: tuple[sp.Symbol, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(
        tuple(j for j, variable in enumerate(variables) if calculus.jacobian(i, variable) != 0)
        for i in range(len(calculus.program.outputs))
    )


def _spans(derivation: Derivation, scalars: dict[int, sp.Expr], vectors: dict[int, Vector]) -> Spans:
    counts = {block.start: block.count for block in derivation.weights}
    pieces = sorted([(i, i + 1) for i in scalars] + [(start, start + counts[start]) for start in vectors])
    merged: list[tuple[int, int]] = []
    for start, stop in pieces:
        if merged and merged[-1][1] == start:
            merged[-1] = (merged[-1][0], stop)
        else:
            merged.append((start, stop))
    return tuple(merged)


STAGES = 4  #: of the Runge-Kutta method


def curved_states(slope: Calculus) -> tuple[int, ...]:
    """The states in which a right-hand side is not affine: their rows of its second derivatives are not all zero."""
    hessian = slope.hessian
    variables = set(slope.variables)
    touched = {one for one, other in hessian.core if other in variables} | {one for one, _ in hessian.mixed_vectors}
    return tuple(i for i in range(len(slope.program.outputs)) if slope.variables[i] in touched)


def _pairs(derivation: Derivation) -> int:
    """Pairs of vectors in the parameter block; by stages, also one for each curved state of all but the first stage."""
    slope = derivation.slope
    if slope is None:
        return len(derivation.dynamics_hessian.pairs)
    through_states = (STAGES - 1) * len(curved_states(slope)) if derivation.weights else 0
    return STAGES * len(slope.hessian.pairs) + through_states


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


def is_affine(derivation: Derivation) -> bool:
    """Whether f is affine in (x, u) for fixed theta and time: its Jacobians then contain neither."""
    f = derivation.dynamics
    known = _dependence(f)
    variables = derivation.states + derivation.inputs
    entries = [f.jacobian(i, v) for i in range(len(derivation.states)) for v in variables]
    return not _depends(entries, known) & set(variables)


def _curved_rows(derivation: Derivation, calculus: Calculus) -> tuple[int, ...]:
    """The outputs whose derivatives by z or u depend on z or u: their second derivatives are not all zero."""
    scalars = *derivation.core, *derivation.inputs
    variables = {*scalars, *(block.symbol for block in derivation.weights)}
    rows, known = [], _dependence(calculus)
    for i in range(len(calculus.program.outputs)):
        entries = [calculus.jacobian(i, v) for v in scalars]
        for block in derivation.weights:
            entries += _vector_expressions(calculus.weight_jacobian(i, block.symbol))
        if _depends(entries, known) & variables:
            rows.append(i)
    return tuple(rows)


def input_delay(derivation: Derivation) -> int:
    """The first step s at which an input u_k can show in the belief on theta at k + s; 0 if it never does.

    Two masks are carried along: which mean states, and which covariances, depend on u_k. The belief before u_k is taken
    as full. One round is: linearise at the mean, predict, linearise the observation, update. Weights of one array share
    one row of the masks.
    """
    n, groups = len(derivation.states), len(derivation.core) + len(derivation.weights)
    f = _Masks(derivation, derivation.dynamics, n)
    h = _Masks(derivation, derivation.observation, len(derivation.observation.program.outputs))
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

    def __init__(self, derivation: Derivation, calculus: Calculus, rows: int) -> None:
        known = _dependence(calculus)
        self._states, self._inputs = derivation.states, derivation.inputs
        columns = [*derivation.core, *derivation.weights]
        dynamic = calculus is derivation.dynamics
        self.present: NDArray[np.bool_] = np.zeros((rows, len(columns)), bool)
        self._needs: dict[tuple[int, int], set[sp.Symbol]] = {}
        for i in range(rows):
            for j, column in enumerate(columns):
                if isinstance(column, sp.Symbol):
                    entry = calculus.jacobian(i, column)
                    self.present[i, j] = entry != 0
                    self._needs[i, j] = _depends([entry], known)
                else:
                    vector = calculus.weight_jacobian(i, column.symbol)
                    self.present[i, j] = bool(vector)
                    self._needs[i, j] = _depends(_vector_expressions(vector), known)
        self._input_rows = [
            any(calculus.jacobian(i, u) != 0 for u in derivation.inputs) if dynamic else False for i in range(rows)
        ]

    def moved(self, mean: NDArray[np.bool_], inputs: bool) -> NDArray[np.bool_]:
        """Which entries depend on u_k, given which mean states do."""
        changed = {s for s, m in zip(self._states, mean, strict=True) if m} | (set(self._inputs) if inputs else set())
        mask = np.zeros_like(self.present)
        for (i, j), needs in self._needs.items():
            mask[i, j] = bool(needs & changed)
        return mask

    def next_mean(self, mean: NDArray[np.bool_], inputs: bool) -> NDArray[np.bool_]:
        """Which states of the next mean depend on u_k."""
        n = len(self._states)
        through = (self.present[:n, :n] & mean).any(axis=1)
        return np.asarray(through | np.array(self._input_rows) if inputs else through)


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
