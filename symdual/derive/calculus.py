"""First and second derivatives of a program, for a generic index of every family.

The variables are the core (states, scalar unknowns, inputs) and, for every family value g_c, an injection: a number
added to g_c. With T[t][a] the total derivative of the symbol t by the variable a, and tau[t] the derivative of
lam' F by t, the chain rules are

    first order    dF/da         = T[F][a]
                   dF/dw_i       = sum_c T[F][g_c] s_c,w(i)
    second order   H[a][b]       = sum_t tau[t] sum_pq t,pq T[p][a] T[q][b]
                   H[a][w_i]     = sum_c H[a][g_c] s_c,w(i)  +  sum_c tau[g_c] sum_q s_c,wq(i) T[arg_q][a]
                   H[w_i][w'_j]  = sum_cd H[g_c][g_d] s_c,w(i) s_d,w'(j)
                                 + sum_cd tau[g_d] sum_q T[arg_q of d][g_c] s_c,w(i) s_d,w'q(j)  +  mirrored
                                 + [i = j] sum_c tau[g_c] s_c,ww'(i)

where s_c is the summand of g_c, commas are partial derivatives, and q runs over the arguments of the family. So theta
by theta is a diagonal plus one pair of vectors per family value, whatever the number of features.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import sympy as sp

from symdual.derive.branches import derivative, gradient, indicator, product, total
from symdual.derive.program import Definition, Point, Program


@dataclass(frozen=True)
class Evaluation:
    """One output of a family at a point: g = sum_i s(i)."""

    point: Point
    output: int
    symbol: sp.Symbol

    @property
    def summand(self) -> sp.Expr:
        """The summand for a generic index."""
        return self.point.summand(self.output)


@dataclass(frozen=True)
class Sum:
    """A derivative of g by arguments of its family: `symbol` = sum_i body(i)."""

    symbol: sp.Symbol
    point: Point
    body: sp.Expr


@dataclass(frozen=True)
class VectorTerm:
    """coefficient * body(i): a scalar times one number per feature at a point."""

    coefficient: sp.Expr
    point: Point
    body: sp.Expr


Vector = tuple[VectorTerm, ...]


@dataclass(frozen=True, eq=False)
class Calculus:
    """A program with its first and second derivatives.

    `variables` are the core variables in order, `costate` the symbols lam; `definitions` and `sums` are all that the
    derivatives are made of, in an order in which each uses only what stands before it; `tangents` are the T[t] and
    `rows` the T[F_i].
    """

    program: Program
    variables: tuple[sp.Symbol, ...]
    costate: tuple[sp.Symbol, ...]
    evaluations: tuple[Evaluation, ...]
    definitions: Mapping[sp.Symbol, sp.Expr]
    sums: Mapping[sp.Symbol, Sum]
    tangents: Mapping[sp.Symbol, Mapping[sp.Symbol, sp.Expr]]
    rows: tuple[Mapping[sp.Symbol, sp.Expr], ...]
    hessian: Hessian

    def jacobian(self, row: int, variable: sp.Symbol) -> sp.Expr:
        """T[F_row][variable] for a core variable or an injection."""
        return self.rows[row].get(variable, sp.S.Zero)

    def tangent(self, symbol: sp.Symbol, variable: sp.Symbol) -> sp.Expr:
        """T[symbol][variable]."""
        return self.tangents.get(symbol, {}).get(variable, sp.S.Zero)

    def weight_jacobian(self, row: int, weight: sp.Symbol) -> Vector:
        """dF_row / dw_i for a generic index i."""
        return _vector((self.jacobian(row, e.symbol), e.point, derivative(e.summand, weight)) for e in self.evaluations)


class Pair(NamedTuple):
    """The vectors phi_c and rho_c of a family value c, by weight array; theta by theta is sum_c phi_c rho_c' + (.)'.

    phi_c[w] = s_c,w          rho_c[w'] = H[g_c][g_c]/2 s_c,w' + sum_{d > c} H[g_c][g_d] s_d,w'
                                        + sum_d tau[g_d] sum_q T[arg_q of d][g_c] s_d,w'q
    """

    evaluation: Evaluation
    left: Mapping[sp.Symbol, Vector]
    right: Mapping[sp.Symbol, Vector]


@dataclass(frozen=True, eq=False)
class Hessian:
    """The contracted second derivative of a program, H = sum_i lam_i d2 F_i, by structure; what is absent is zero.

    `core` is over core variables and injections, `mixed_vectors` over a core variable and a weight array,
    `diagonals` over two weight arrays of one family.
    """

    core: Mapping[tuple[sp.Symbol, sp.Symbol], sp.Expr]
    mixed_vectors: Mapping[tuple[sp.Symbol, sp.Symbol], Vector]
    diagonals: Mapping[tuple[sp.Symbol, sp.Symbol], Vector]
    pairs: tuple[Pair, ...]

    def entry(self, one: sp.Symbol, other: sp.Symbol) -> sp.Expr:
        """H[one][other] for core variables and injections."""
        return self.core.get((one, other), sp.S.Zero)

    def mixed(self, variable: sp.Symbol, weight: sp.Symbol) -> Vector:
        """H[variable][w_i] for a core variable and a generic index i."""
        return self.mixed_vectors.get((variable, weight), ())

    def diagonal(self, weight: sp.Symbol, other: sp.Symbol) -> Vector:
        """The part of H[w_i][w'_j] at i = j that comes from the summands' own curvature."""
        return self.diagonals.get((weight, other), ())


def differentiate(program: Program, variables: tuple[sp.Symbol, ...]) -> Calculus:
    """Find all first and second derivatives of a program by its core variables and the weights of its families."""
    return _Differentiation(program, variables).finished()


class _Differentiation:
    """Collects the scalar definitions and sums that the derivatives of one program need."""

    def __init__(self, program: Program, variables: tuple[sp.Symbol, ...]) -> None:
        self._program = program
        self._variables = variables
        self._evaluations = tuple(Evaluation(p, o, s) for p in program.points for o, s in p.values)
        self._definitions: dict[sp.Symbol, sp.Expr] = {
            node.symbol: node.expression for node in program.nodes if isinstance(node, Definition)
        }
        self._sums: dict[sp.Symbol, Sum] = {e.symbol: Sum(e.symbol, e.point, e.summand) for e in self._evaluations}
        self._costate = tuple(sp.Symbol(f"_lam{i}", real=True) for i in range(len(program.outputs)))
        self._tangents: dict[sp.Symbol, dict[sp.Symbol, sp.Expr]] = {v: {v: sp.S.One} for v in variables}

    def finished(self) -> Calculus:
        """Differentiate once, then twice."""
        for node in self._program.nodes:
            self._push_forward(node)
        rows = [self._tangent_of(e) for e in self._program.outputs]
        tau = self._adjoints()
        core = self._core(tau)
        return Calculus(
            program=self._program,
            variables=self._variables,
            costate=self._costate,
            evaluations=self._evaluations,
            definitions=MappingProxyType(self._definitions),
            sums=MappingProxyType(self._sums),
            tangents=MappingProxyType({s: MappingProxyType(tangent) for s, tangent in self._tangents.items()}),
            rows=tuple(MappingProxyType(row) for row in rows),
            hessian=_by_structure(self._variables, self._evaluations, self._tangents, tau, core),
        )

    # ---------------------------------------------------------------- first order

    def _push_forward(self, node: Definition | Point) -> None:
        if isinstance(node, Definition):
            tangent = self._tangent_of(node.expression)
            self._tangents[node.symbol] = {v: self._name(e) for v, e in tangent.items()}
            return
        for evaluation in self._evaluations:
            if evaluation.point is not node:
                continue
            tangent = {evaluation.symbol: sp.S.One}
            for position, argument in enumerate(node.arguments):
                slope = self._sum(evaluation, (position,))
                for variable, change in self._tangents.get(argument, {}).items():
                    tangent[variable] = total([tangent.get(variable, sp.S.Zero), product(slope, change)])
            self._tangents[evaluation.symbol] = _nonzero(tangent)

    def _tangent_of(self, expression: sp.Expr) -> dict[sp.Symbol, sp.Expr]:
        terms: dict[sp.Symbol, list[sp.Expr]] = {}
        for leaf, slope in gradient(expression, self._leaves(expression)).items():
            for variable, change in self._tangents[leaf].items():
                terms.setdefault(variable, []).append(product(slope, change))
        return _nonzero({variable: total(parts) for variable, parts in terms.items()})

    def _leaves(self, expression: sp.Expr) -> list[sp.Symbol]:
        """The symbols of an expression that depend on a variable, in a fixed order."""
        return sorted((s for s in expression.free_symbols if self._tangents.get(s)), key=lambda s: str(s.name))

    def _sum(self, evaluation: Evaluation, orders: tuple[int, ...]) -> sp.Expr:
        """The sum over i of the summand's derivative by the arguments at `orders`."""
        orders = tuple(sorted(orders))
        body = evaluation.summand
        for position in orders:
            body = derivative(body, evaluation.point.arguments[position])
        if body == 0:
            return sp.S.Zero
        symbol = sp.Symbol(evaluation.symbol.name + "_d" + "_".join(map(str, orders)), real=True)
        self._sums.setdefault(symbol, Sum(symbol, evaluation.point, body))
        return symbol

    def _name(self, expression: sp.Expr) -> sp.Expr:
        """Give a composite expression a name of its own, so that it is computed once.

        Cases stay as they are: what they are multiplied with has to be taken into them.
        """
        if expression.is_Atom or (-expression).is_Atom or isinstance(expression, sp.Piecewise):
            return expression
        symbol = sp.Symbol(f"_n{len(self._definitions)}", real=True)
        self._definitions[symbol] = expression
        return symbol

    # ---------------------------------------------------------------- second order

    def _adjoints(self) -> dict[sp.Symbol, sp.Expr]:
        """tau[t] = d(lam' F)/dt for every definition and family value, through the costate symbols."""
        terms: dict[sp.Symbol, list[sp.Expr]] = {}
        named: dict[sp.Symbol, sp.Expr] = {}
        variables = set(self._variables)

        def pull(expression: sp.Expr, weight: sp.Expr) -> None:
            leaves = [leaf for leaf in self._leaves(expression) if leaf not in variables]
            for leaf, slope in gradient(expression, leaves).items():
                terms.setdefault(leaf, []).append(product(weight, slope))

        def named_total(symbol: sp.Symbol) -> sp.Expr:
            named[symbol] = self._name(total(terms[symbol]))
            return named[symbol]

        for row, expression in enumerate(self._program.outputs):
            pull(expression, self._costate[row])
        for node in reversed(self._program.nodes):
            if isinstance(node, Definition):
                if node.symbol in terms:
                    pull(node.expression, named_total(node.symbol))
                continue
            for evaluation in self._evaluations:
                if evaluation.point is node and evaluation.symbol in terms:
                    weight = named_total(evaluation.symbol)
                    for position, argument in enumerate(node.arguments):
                        if argument not in variables and argument in self._tangents:
                            slope = self._sum(evaluation, (position,))
                            terms.setdefault(argument, []).append(product(weight, slope))
        return named

    def _core(self, tau: Mapping[sp.Symbol, sp.Expr]) -> dict[tuple[sp.Symbol, sp.Symbol], sp.Expr]:
        """H over core variables and injections."""
        terms: dict[tuple[sp.Symbol, sp.Symbol], list[sp.Expr]] = {}

        def add(weight: sp.Expr, curvature: sp.Expr, one: sp.Symbol, other: sp.Symbol) -> None:
            for a, change in self._tangents.get(one, {}).items():
                for b, reaction in self._tangents.get(other, {}).items():
                    terms.setdefault((a, b), []).append(product(weight, curvature, change, reaction))

        curved = [(self._costate[row], e) for row, e in enumerate(self._program.outputs)]
        curved += [
            (tau[node.symbol], node.expression)
            for node in self._program.nodes
            if isinstance(node, Definition) and node.symbol in tau
        ]
        for weight, expression in curved:
            leaves = self._leaves(expression)
            for one, slope in gradient(expression, leaves).items():
                for other, curvature in gradient(slope, leaves).items():
                    if curvature != 0:
                        add(weight, curvature, one, other)
        for evaluation in self._evaluations:
            if evaluation.symbol in tau:
                arguments = evaluation.point.arguments
                for p, one in enumerate(arguments):
                    for q, other in enumerate(arguments):
                        curvature = self._sum(evaluation, (p, q))
                        if curvature != 0:
                            add(tau[evaluation.symbol], curvature, one, other)
        return {pair: e for pair, parts in terms.items() if (e := total(parts)) != 0}


def _by_structure(
    variables: tuple[sp.Symbol, ...],
    evaluations: tuple[Evaluation, ...],
    tangents: Mapping[sp.Symbol, Mapping[sp.Symbol, sp.Expr]],
    tau: Mapping[sp.Symbol, sp.Expr],
    core: dict[tuple[sp.Symbol, sp.Symbol], sp.Expr],
) -> Hessian:
    """The blocks of H that belong to weights, from those over core variables and injections."""
    families = {id(e.point.family): e.point.family for e in evaluations}
    weights = [w.symbol for family in families.values() for w in family.weights]
    slopes = {(e, w): derivative(e.summand, w) for e in evaluations for w in weights}
    bends = {(e, w, a): derivative(slope, a) for (e, w), slope in slopes.items() for a in e.point.arguments}

    def entry(one: sp.Symbol, other: sp.Symbol) -> sp.Expr:
        return core.get((one, other), sp.S.Zero)

    def bent(variable: sp.Symbol, weight: sp.Symbol) -> list[tuple[sp.Expr, Point, sp.Expr]]:
        """sum_c tau[g_c] sum_q s_c,wq T[arg_q][variable]."""
        return [
            (product(tau[e.symbol], change), e.point, bends[e, weight, argument])
            for e in evaluations
            if e.symbol in tau
            for argument in e.point.arguments
            if (change := tangents.get(argument, {}).get(variable, sp.S.Zero)) != 0
        ]

    def mixed(variable: sp.Symbol, weight: sp.Symbol) -> Vector:
        terms = [(entry(variable, e.symbol), e.point, slopes[e, weight]) for e in evaluations]
        return _vector([*terms, *bent(variable, weight)])

    def diagonal(weight: sp.Symbol, other: sp.Symbol) -> Vector:
        return _vector(
            (tau.get(e.symbol, sp.S.Zero), e.point, derivative(slopes[e, weight], other)) for e in evaluations
        )

    def right(position: int, weight: sp.Symbol) -> Vector:
        c = evaluations[position]
        terms = [(product(entry(c.symbol, c.symbol), sp.S.Half), c.point, slopes[c, weight])]
        terms += [(entry(c.symbol, d.symbol), d.point, slopes[d, weight]) for d in evaluations[position + 1 :]]
        return _vector([*terms, *bent(c.symbol, weight)])

    def pair(position: int) -> Pair:
        c = evaluations[position]
        rho = {weight: vector for weight in weights if (vector := right(position, weight))}
        present = indicator([term.coefficient for vector in rho.values() for term in vector])
        phi = {w: vector for w in weights if (vector := _vector([(present, c.point, slopes[c, w])]))}
        return Pair(c, MappingProxyType(phi), MappingProxyType(rho))

    pairs = [pair(position) for position in range(len(evaluations))]
    return Hessian(
        core=MappingProxyType(core),
        mixed_vectors=_present({(v, w): mixed(v, w) for v in variables for w in weights}),
        diagonals=_present({(w, o): diagonal(w, o) for w in weights for o in weights}),
        pairs=tuple(p for p in pairs if p.right),
    )


def _present(vectors: dict[tuple[sp.Symbol, sp.Symbol], Vector]) -> Mapping[tuple[sp.Symbol, sp.Symbol], Vector]:
    return MappingProxyType({pair: vector for pair, vector in vectors.items() if vector})


def _nonzero(tangent: dict[sp.Symbol, sp.Expr]) -> dict[sp.Symbol, sp.Expr]:
    return {variable: expression for variable, expression in tangent.items() if expression != 0}


def _vector(terms: Iterable[tuple[sp.Expr, Point, sp.Expr]]) -> Vector:
    return tuple(VectorTerm(c, p, b) for c, p, b in terms if c != 0 and b != 0)
