"""Derivatives of expressions with cases: each case is differentiated by itself and counts only where it holds.

    d/ds Piecewise((e_i, c_i)) = Piecewise((de_i/ds, c_i))
    a Piecewise((e_i, c_i))    = Piecewise((a e_i, c_i))

Factors are taken into the cases. So what is infinite or not a number outside its case, such as the slope of sqrt(x)
behind the guard x > 0, or the slope of the root in sqrt(Max(x, 0)), never meets the zero that stands for it there.
Where two cases of a maximum or minimum meet, the derivative is the mean of theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import mul

import sympy as sp

_CASES = (sp.Piecewise, sp.Max, sp.Min)
_SLOT = sp.Symbol("_slot", real=True)
_LONG = 8  # terms of a sum


def almost_everywhere(expression: sp.Expr) -> sp.Expr:
    """Drop the point masses that differentiating a kink or a jump leaves: derivatives hold on either side of it."""
    return (
        expression.replace(sp.DiracDelta, lambda *arguments: sp.S.Zero) if expression.has(sp.DiracDelta) else expression
    )


def derivative(expression: sp.Expr, symbol: sp.Symbol) -> sp.Expr:
    """The derivative of an expression by one of its symbols."""
    if symbol not in expression.free_symbols:
        return sp.S.Zero
    if not expression.has(*_CASES):
        return almost_everywhere(sp.diff(expression, symbol))
    if isinstance(expression, sp.Piecewise):
        return _cases((derivative(e, symbol), condition) for e, condition in expression.args)
    if isinstance(expression, (sp.Max, sp.Min)):
        return _of_extremum(expression, symbol)
    changes = [(position, derivative(argument, symbol)) for position, argument in enumerate(expression.args)]
    return total(product(_partial(expression, position), change) for position, change in changes if change != 0)


def gradient(expression: sp.Expr, symbols: Iterable[sp.Symbol]) -> dict[sp.Symbol, sp.Expr]:
    """The derivatives of an expression by those of the symbols that it contains, in the given order.

    A long sum is differentiated term by term, each by its own symbols, also where it is a factor (as the slope is in
    x + step * slope): the time is then proportional to its length, not to the square of it.
    """
    wanted = list(symbols)
    slopes = _slopes(expression, set(wanted))
    return {s: slopes[s] for s in wanted if s in slopes}


def _slopes(expression: sp.Expr, wanted: set[sp.Symbol]) -> dict[sp.Symbol, sp.Expr]:
    if isinstance(expression, sp.Add):
        terms: dict[sp.Symbol, list[sp.Expr]] = {}
        for part in expression.args:
            for symbol, slope in _slopes(part, wanted).items():
                terms.setdefault(symbol, []).append(slope)
        return {symbol: total(parts) for symbol, parts in terms.items()}
    sums = [part for part in expression.args if isinstance(part, sp.Add) and len(part.args) > _LONG]
    if isinstance(expression, sp.Mul) and sums:
        rest = sp.Mul(*(part for part in expression.args if part is not sums[0]))
        slopes = {symbol: product(rest, slope) for symbol, slope in _slopes(sums[0], wanted).items()}
        for symbol in rest.free_symbols & wanted:
            slopes[symbol] = total([slopes.get(symbol, sp.S.Zero), product(sums[0], derivative(rest, symbol))])
        return slopes
    return {symbol: derivative(expression, symbol) for symbol in expression.free_symbols & wanted}


def indicator(coefficients: Sequence[sp.Expr]) -> sp.Expr:
    """One where any of the coefficients may differ from zero: cases if all of them have the same conditions."""
    conditions = {_conditions(c) if isinstance(c, sp.Piecewise) else () for c in coefficients}
    if len(conditions) != 1 or conditions == {()}:
        return sp.S.One
    (shared,) = conditions
    values = [sp.S.Zero if all(c.args[n][0] == 0 for c in coefficients) else sp.S.One for n in range(len(shared))]
    return _cases(zip(values, shared, strict=True))


def product(*factors: sp.Expr) -> sp.Expr:
    """The product of all factors, inside the cases of those that have some."""
    if not any(factor.has(sp.Piecewise) for factor in factors):
        return reduce(mul, factors)
    parts = [part for factor in factors for part in sp.Mul.make_args(factor)]
    for position, part in enumerate(parts):
        rest = parts[:position] + parts[position + 1 :]
        if isinstance(part, sp.Piecewise):
            conditions = _conditions(part)
            return _cases(
                (product(e, *(_assuming(r, conditions, case) for r in rest)) if e != 0 else e, condition)
                for case, (e, condition) in enumerate(part.args)
            )
        if isinstance(part, sp.Add) and any(_has_cases(term) for term in part.args):
            return total(product(term, *rest) for term in part.args)
    return reduce(mul, parts, sp.S.One)


def total(terms: Iterable[sp.Expr]) -> sp.Expr:
    """The sum of all terms, case by case where several have the same conditions."""
    plain: list[sp.Expr] = []
    by_conditions: dict[tuple[sp.Basic, ...], list[sp.Piecewise]] = {}
    for term in terms:
        if isinstance(term, sp.Piecewise):
            by_conditions.setdefault(_conditions(term), []).append(term)
        else:
            plain.append(term)
    for conditions, alike in by_conditions.items():
        sums = [total(t.args[case][0] for t in alike) for case in range(len(conditions))]
        plain.append(_cases(zip(sums, conditions, strict=True)) if len(alike) > 1 else alike[0])
    return sp.Add(*plain)


def _of_extremum(expression: sp.Expr, symbol: sp.Symbol) -> sp.Expr:
    first, *others = expression.args
    rest = expression.func(*others)
    one, other = derivative(first, symbol), derivative(rest, symbol)
    wins, loses = (sp.Gt, sp.Lt) if isinstance(expression, sp.Max) else (sp.Lt, sp.Gt)
    mean = product(total([one, other]), sp.S.Half)
    return _cases([(one, wins(first, rest)), (other, loses(first, rest)), (mean, sp.true)])


def _partial(expression: sp.Expr, position: int) -> sp.Expr:
    """The derivative of a function by one of its arguments."""
    arguments = list(expression.args)
    argument, arguments[position] = arguments[position], _SLOT
    slope = almost_everywhere(sp.diff(expression.func(*arguments), _SLOT))
    return slope.xreplace({_SLOT: argument})


def _cases(pairs: Iterable[tuple[sp.Expr, sp.Basic]]) -> sp.Expr:
    listed = list(pairs)
    alike = all(e == listed[0][0] for e, _ in listed)
    return listed[0][0] if alike else sp.Piecewise(*listed)


def _has_cases(term: sp.Expr) -> bool:
    return any(isinstance(factor, sp.Piecewise) for factor in sp.Mul.make_args(term))


def _conditions(expression: sp.Piecewise) -> tuple[sp.Basic, ...]:
    return tuple(condition for _, condition in expression.args)


def _assuming(expression: sp.Expr, conditions: tuple[sp.Basic, ...], case: int) -> sp.Expr:
    """The expression where case number `case` of these conditions holds."""
    known = [part for part in expression.atoms(sp.Piecewise) if _conditions(part) == conditions]
    return expression.xreplace({part: part.args[case][0] for part in known})
