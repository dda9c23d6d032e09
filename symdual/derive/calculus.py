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

from dataclasses import dataclass

import sympy as sp

from symdual.derive.branches import derivative, product, total
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


class Calculus:
    """Differentiates one program; collects the scalar definitions and sums that the derivatives need.

    `variables` are the core variables in order. Everything is found when asked for, and found once.
    """

    def __init__(self, program: Program, variables: tuple[sp.Symbol, ...]) -> None:
        self.program = program
        self.variables = variables
        self.evaluations = tuple(Evaluation(p, o, s) for p in program.points for o, s in p.values)
        self.definitions: dict[sp.Symbol, sp.Expr] = {
            node.symbol: node.expression for node in program.nodes if isinstance(node, Definition)
        }
        self.sums: dict[sp.Symbol, Sum] = {e.symbol: Sum(e.symbol, e.point, e.summand) for e in self.evaluations}
        self.costate = tuple(sp.Symbol(f"_lam{i}", real=True) for i in range(len(program.outputs)))
        self._tangents: dict[sp.Symbol, dict[sp.Symbol, sp.Expr]] = {v: {v: sp.S.One} for v in variables}
        for node in program.nodes:
            self._push_forward(node)
        self._rows = [self._tangent_of(e) for e in program.outputs]

    @property
    def injections(self) -> tuple[sp.Symbol, ...]:
        """The symbols of the family values, each standing for its injection."""
        return tuple(e.symbol for e in self.evaluations)

    def jacobian(self, row: int, variable: sp.Symbol) -> sp.Expr:
        """T[F_row][variable] for a core variable or an injection."""
        return self._rows[row].get(variable, sp.S.Zero)

    def weight_jacobian(self, row: int, weight: sp.Symbol) -> Vector:
        """dF_row / dw_i for a generic index i."""
        return _vector((self.jacobian(row, e.symbol), e.point, derivative(e.summand, weight)) for e in self.evaluations)

    # ---------------------------------------------------------------- first order

    def _push_forward(self, node: Definition | Point) -> None:
        if isinstance(node, Definition):
            tangent = self._tangent_of(node.expression)
            self._tangents[node.symbol] = {v: self._name(e) for v, e in tangent.items()}
            return
        for evaluation in self.evaluations:
            if evaluation.point is not node:
                continue
            tangent = {evaluation.symbol: sp.S.One}
            for position, argument in enumerate(node.arguments):
                slope = self._sum(evaluation, (position,))
                for variable, change in self._tangents.get(argument, {}).items():
                    tangent[variable] = total([tangent.get(variable, sp.S.Zero), product(slope, change)])
            self._tangents[evaluation.symbol] = _nonzero(tangent)

    def _tangent_of(self, expression: sp.Expr) -> dict[sp.Symbol, sp.Expr]:
        tangent: dict[sp.Symbol, sp.Expr] = {}
        for leaf in _leaves(expression, self._tangents):
            slope = derivative(expression, leaf)
            for variable, change in self._tangents[leaf].items():
                tangent[variable] = total([tangent.get(variable, sp.S.Zero), product(slope, change)])
        return _nonzero(tangent)

    def _sum(self, evaluation: Evaluation, orders: tuple[int, ...]) -> sp.Expr:
        """The sum over i of the summand's derivative by the arguments at `orders`."""
        orders = tuple(sorted(orders))
        body = evaluation.summand
        for position in orders:
            body = derivative(body, evaluation.point.arguments[position])
        if body == 0:
            return sp.S.Zero
        symbol = sp.Symbol(evaluation.symbol.name + "_d" + "_".join(map(str, orders)), real=True)
        self.sums.setdefault(symbol, Sum(symbol, evaluation.point, body))
        return symbol

    def _name(self, expression: sp.Expr) -> sp.Expr:
        """Give a composite expression a name of its own, so that it is computed once.

        Cases stay as they are: what they are multiplied with has to be taken into them.
        """
        if expression.is_Atom or (-expression).is_Atom or isinstance(expression, sp.Piecewise):
            return expression
        symbol = sp.Symbol(f"_n{len(self.definitions)}", real=True)
        self.definitions[symbol] = expression
        return symbol

    # ---------------------------------------------------------------- second order

    def adjoints(self) -> dict[sp.Symbol, sp.Expr]:
        """tau[t] = d(lam' F)/dt for every definition and family value, through the costate symbols."""
        tau: dict[sp.Symbol, sp.Expr] = {}
        named: dict[sp.Symbol, sp.Expr] = {}

        def pull(expression: sp.Expr, weight: sp.Expr) -> None:
            for leaf in _leaves(expression, self._tangents):
                if leaf not in self.variables:
                    tau[leaf] = total([tau.get(leaf, sp.S.Zero), product(weight, derivative(expression, leaf))])

        for row, expression in enumerate(self.program.outputs):
            pull(expression, self.costate[row])
        for node in reversed(self.program.nodes):
            if isinstance(node, Definition):
                if node.symbol in tau:
                    named[node.symbol] = self._name(tau[node.symbol])
                    pull(node.expression, named[node.symbol])
                continue
            for evaluation in self.evaluations:
                if evaluation.point is node and evaluation.symbol in tau:
                    weight = named[evaluation.symbol] = self._name(tau[evaluation.symbol])
                    for position, argument in enumerate(node.arguments):
                        if argument not in self.variables and argument in self._tangents:
                            slope = self._sum(evaluation, (position,))
                            tau[argument] = total([tau.get(argument, sp.S.Zero), product(weight, slope)])
        return named

    def hessian(self) -> Hessian:
        """H = sum_i lam_i d2 F_i, by structure."""
        tau = self.adjoints()
        core: dict[tuple[sp.Symbol, sp.Symbol], sp.Expr] = {}

        def add(weight: sp.Expr, curvature: sp.Expr, one: sp.Symbol, other: sp.Symbol) -> None:
            for a, change in self._tangents.get(one, {}).items():
                for b, reaction in self._tangents.get(other, {}).items():
                    part = product(weight, curvature, change, reaction)
                    core[a, b] = total([core.get((a, b), sp.S.Zero), part])

        curved = [(self.costate[row], e) for row, e in enumerate(self.program.outputs)]
        curved += [
            (tau[node.symbol], node.expression)
            for node in self.program.nodes
            if isinstance(node, Definition) and node.symbol in tau
        ]
        for weight, expression in curved:
            leaves = _leaves(expression, self._tangents)
            for one in leaves:
                slope = derivative(expression, one)
                for other in leaves:
                    curvature = derivative(slope, other)
                    if curvature != 0:
                        add(weight, curvature, one, other)
        for evaluation in self.evaluations:
            if evaluation.symbol in tau:
                arguments = evaluation.point.arguments
                for p, one in enumerate(arguments):
                    for q, other in enumerate(arguments):
                        curvature = self._sum(evaluation, (p, q))
                        if curvature != 0:
                            add(tau[evaluation.symbol], curvature, one, other)
        return Hessian(self, tau, {pair: e for pair, e in core.items() if e != 0})

    def tangent(self, symbol: sp.Symbol, variable: sp.Symbol) -> sp.Expr:
        """T[symbol][variable]."""
        return self._tangents.get(symbol, {}).get(variable, sp.S.Zero)


@dataclass(frozen=True)
class Hessian:
    """The contracted second derivative of a program; `core` is over core variables and injections."""

    calculus: Calculus
    tau: dict[sp.Symbol, sp.Expr]
    core: dict[tuple[sp.Symbol, sp.Symbol], sp.Expr]

    def entry(self, one: sp.Symbol, other: sp.Symbol) -> sp.Expr:
        """H[one][other] for core variables and injections."""
        return self.core.get((one, other), sp.S.Zero)

    def mixed(self, variable: sp.Symbol, weight: sp.Symbol) -> Vector:
        """H[variable][w_i] for a core variable and a generic index i."""
        calculus = self.calculus
        terms = [(self.entry(variable, e.symbol), e.point, derivative(e.summand, weight)) for e in calculus.evaluations]
        for e in calculus.evaluations:
            for argument in e.point.arguments:
                coefficient = product(self.tau.get(e.symbol, sp.S.Zero), calculus.tangent(argument, variable))
                terms.append((coefficient, e.point, derivative(derivative(e.summand, weight), argument)))
        return _vector(terms)

    def diagonal(self, weight: sp.Symbol, other: sp.Symbol) -> Vector:
        """The part of H[w_i][w'_j] at i = j that comes from the summands' own curvature."""
        evaluations = self.calculus.evaluations
        return _vector(
            (self.tau.get(e.symbol, sp.S.Zero), e.point, derivative(derivative(e.summand, weight), other)) for e in evaluations
        )

    def pairs(self) -> tuple[tuple[Evaluation, dict[sp.Symbol, Vector]], ...]:
        """The vectors rho_c, by weight array, of each family value c: theta by theta is sum_c phi_c rho_c' + mirrored.

        phi_c[w] = s_c,w          rho_c[w'] = H[g_c][g_c]/2 s_c,w' + sum_{d > c} H[g_c][g_d] s_d,w'
                                            + sum_d tau[g_d] sum_q T[arg_q of d][g_c] s_d,w'q
        """
        calculus = self.calculus
        found = []
        for position, c in enumerate(calculus.evaluations):
            rho: dict[sp.Symbol, Vector] = {}
            for weight in self._weights():
                terms = [(self.entry(c.symbol, c.symbol) / 2, c.point, derivative(c.summand, weight))]
                for d in calculus.evaluations[position + 1 :]:
                    terms.append((self.entry(c.symbol, d.symbol), d.point, derivative(d.summand, weight)))
                for d in calculus.evaluations:
                    for argument in d.point.arguments:
                        coefficient = product(self.tau.get(d.symbol, sp.S.Zero), calculus.tangent(argument, c.symbol))
                        terms.append((coefficient, d.point, derivative(derivative(d.summand, weight), argument)))
                if vector := _vector(terms):
                    rho[weight] = vector
            if rho:
                found.append((c, rho))
        return tuple(found)

    @staticmethod
    def own_gradient(evaluation: Evaluation, weight: sp.Symbol) -> Vector:
        """phi_c[w] = s_c,w for a generic index."""
        return _vector([(sp.S.One, evaluation.point, derivative(evaluation.summand, weight))])

    def _weights(self) -> list[sp.Symbol]:
        families = {id(e.point.family): e.point.family for e in self.calculus.evaluations}
        return [w.symbol for family in families.values() for w in family.weights]


def _leaves(expression: sp.Expr, known: dict[sp.Symbol, dict[sp.Symbol, sp.Expr]]) -> list[sp.Symbol]:
    """The symbols of an expression that depend on a variable, in a fixed order."""
    return sorted((s for s in expression.free_symbols if known.get(s)), key=lambda s: str(s.name))


def _nonzero(tangent: dict[sp.Symbol, sp.Expr]) -> dict[sp.Symbol, sp.Expr]:
    return {variable: expression for variable, expression in tangent.items() if expression != 0}


def _vector(terms: object) -> Vector:
    return tuple(VectorTerm(c, p, b) for c, p, b in terms if c != 0 and b != 0)  # type: ignore[attr-defined]
