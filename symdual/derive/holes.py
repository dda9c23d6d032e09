"""Holes in the domain of a formula that a case with an equality fills, such as

    Piecewise((cos(h), Eq(w, 0)), ((sin(h + w) - sin(h)) / w, True)).

An equality holds on a set without volume, so the derivatives of its own case say nothing: here that by w would vanish.
What is wanted is the limit of the derivatives beside the hole. So the case gets the terms of first and second order of
the Taylor polynomial, in w, of the formula beside it; they vanish where the case holds and leave its value as written,
and differentiating case by case then gives the limits of all first and second derivatives.

The polynomial comes from a series in t = w - w_0 with finitely many negative powers, computed from the leaves of the
expression upwards. Where there is none, the case stays as written and a remark says so.
"""

from __future__ import annotations

from typing import NamedTuple

import sympy as sp

from symdual.spec.symbols import FeatureSum

_TERMS = 9  #: terms of a series at the leaves; each power of t in a denominator costs one, and three are needed
_STEP = sp.Symbol("_t", real=True)


class Filled(NamedTuple):
    """An expression whose holes are filled, and what is to be said about those that are not."""

    expression: sp.Expr
    remarks: tuple[str, ...]


def filled(expression: sp.Expr) -> Filled:
    """Fill the holes of an expression, innermost first."""
    if not expression.has(sp.Eq, sp.Ne):
        return Filled(expression, ())
    remarks: list[str] = []

    def fill(part: sp.Piecewise) -> sp.Expr:
        cases = list(_with_equality_first(part).args)
        for position, (value, condition) in enumerate(cases):
            for equality in (part for part in sp.And.make_args(condition) if isinstance(part, sp.Eq)):
                polynomial = _polynomial(value, equality, _beside(cases[position + 1 :]))
                if polynomial is None:
                    remarks.append(
                        f"no limit of the derivatives was found where {sp.sstr(equality.lhs)} = "
                        f"{sp.sstr(equality.rhs)}: there they are those of {sp.sstr(value)}, as written"
                    )
                else:
                    cases[position] = (polynomial, condition)
        return sp.Piecewise(*cases)

    changed = expression.replace(lambda part: isinstance(part, sp.Piecewise), fill)
    return Filled(changed, tuple(dict.fromkeys(remarks)))


def _with_equality_first(part: sp.Piecewise) -> sp.Piecewise:
    """Piecewise((a, Ne(s, t)), (b, True)) with its cases exchanged."""
    if len(part.args) == 2 and isinstance(part.args[0][1], sp.Ne) and part.args[1][1] == sp.true:
        (beside, condition), (value, _) = part.args
        return sp.Piecewise((value, sp.Eq(*condition.args)), (beside, True), evaluate=False)
    return part


def _beside(later: list[tuple[sp.Expr, sp.Basic]]) -> list[sp.Expr]:
    """The formulas of the cases that can hold beside an equality."""
    return [e for e, condition in later if not isinstance(condition, sp.Eq)]


def _polynomial(value: sp.Expr, condition: sp.Eq, beside: list[sp.Expr]) -> sp.Expr | None:
    """`value` with the terms of first and second order that all formulas beside the hole agree on."""
    distance = condition.lhs - condition.rhs
    for symbol in sorted(distance.free_symbols, key=lambda s: str(s.name)):
        slope = sp.diff(distance, symbol)
        if not slope.is_number or slope == 0:
            continue
        place = sp.expand(symbol - distance / slope)
        here = value.xreplace({symbol: place})
        found = [_taylor(e, symbol, place) for e in beside]
        if any(f is None or not _is_zero(f[0] - here) for f in found):
            continue
        first, *others = [f for f in found if f is not None]
        if all(_is_zero(a - b) for other in others for a, b in zip(first, other, strict=True)):
            return here + first[1] * (symbol - place) + first[2] * (symbol - place) ** 2
    return None


def _taylor(e: sp.Expr, symbol: sp.Symbol, place: sp.Expr) -> tuple[sp.Expr, sp.Expr, sp.Expr] | None:
    """The first three coefficients of a formula in powers of symbol - place."""
    try:
        series = _series(e.xreplace({symbol: place + _STEP}))
    except _NoSeries:
        return None
    while series.lowest < 0 and series.terms and _is_zero(series.terms[0]):
        series = _Series(series.lowest + 1, series.terms[1:])
    if series.lowest < 0 or series.lowest + len(series.terms) < 3:
        return None
    terms = (sp.S.Zero,) * series.lowest + series.terms
    return terms[0], terms[1], terms[2]


def _is_zero(e: sp.Expr) -> bool:
    return e == 0 or sp.expand(e) == 0 or e.equals(0) is True


# -------------------------------------------------------------------- series with finitely many negative powers


class _NoSeries(Exception):
    """An expression has no such series, or none that is found."""


class _Series(NamedTuple):
    """sum_i terms[i] t^(lowest + i), up to a rest of order lowest + len(terms)."""

    lowest: int
    terms: tuple[sp.Expr, ...]


def _series(e: sp.Expr) -> _Series:
    if _STEP not in e.free_symbols:
        return _Series(0, (e,) + (sp.S.Zero,) * (_TERMS - 1))
    if e == _STEP:
        return _Series(0, (sp.S.Zero, sp.S.One) + (sp.S.Zero,) * (_TERMS - 2))
    if e.has(sp.Piecewise, sp.Max, sp.Min, sp.Abs, FeatureSum):
        raise _NoSeries
    if e.is_Add:
        return _sum([_series(part) for part in e.args])
    if e.is_Mul:
        result = _series(e.args[0])
        for part in e.args[1:]:
            result = _times(result, _series(part))
        return result
    if e.is_Pow and e.exp.is_Integer:
        base = _series(e.base) if e.exp > 0 else _reciprocal(_series(e.base))
        result = base
        for _ in range(abs(int(e.exp)) - 1):
            result = _times(result, base)
        return result
    inner = [position for position, argument in enumerate(e.args) if _STEP in argument.free_symbols]
    if len(inner) != 1 or abs(e.count_ops()) > 500:
        raise _NoSeries
    return _composed(e, inner[0])


def _sum(parts: list[_Series]) -> _Series:
    lowest = min(part.lowest for part in parts)
    end = min(part.lowest + len(part.terms) for part in parts)
    terms = [
        sp.Add(*(p.terms[n - p.lowest] for p in parts if 0 <= n - p.lowest < len(p.terms))) for n in range(lowest, end)
    ]
    return _Series(lowest, tuple(terms))


def _times(a: _Series, b: _Series) -> _Series:
    length = min(len(a.terms), len(b.terms))
    terms = [sp.Add(*(a.terms[i] * b.terms[n - i] for i in range(n + 1))) for n in range(length)]
    return _Series(a.lowest + b.lowest, tuple(terms))


def _reciprocal(a: _Series) -> _Series:
    while a.terms and _is_zero(a.terms[0]):
        a = _Series(a.lowest + 1, a.terms[1:])
    if not a.terms:
        raise _NoSeries
    terms = [1 / a.terms[0]]
    for n in range(1, len(a.terms)):
        terms.append(-sp.Add(*(a.terms[i] * terms[n - i] for i in range(1, n + 1))) / a.terms[0])
    return _Series(-a.lowest, tuple(terms))


def _composed(e: sp.Expr, position: int) -> _Series:
    """A function of a series without negative powers: sum_k f^(k)(a_0) / k! (a - a_0)^k."""
    argument = _series(e.args[position])
    while argument.lowest < 0 and argument.terms and _is_zero(argument.terms[0]):
        argument = _Series(argument.lowest + 1, argument.terms[1:])
    if argument.lowest < 0 or not argument.terms:
        raise _NoSeries
    coefficients = (sp.S.Zero,) * argument.lowest + argument.terms
    start, moved = coefficients[0], _Series(0, (sp.S.Zero, *coefficients[1:]))
    slot = sp.Symbol("_slot", real=True)
    outer = e.func(*(slot if n == position else part for n, part in enumerate(e.args)))
    result, power = _constant(outer, slot, start, len(coefficients)), moved
    for k in range(1, len(coefficients)):
        outer = sp.diff(outer, slot)
        factor = _constant(outer / sp.factorial(k), slot, start, len(coefficients))
        result, power = _sum([result, _times(factor, power)]), _times(power, moved)
    return result


def _constant(e: sp.Expr, slot: sp.Symbol, start: sp.Expr, length: int) -> _Series:
    value = e.subs(slot, start)
    if value.has(sp.nan, sp.oo, -sp.oo, sp.zoo):
        raise _NoSeries
    return _Series(0, (value,) + (sp.S.Zero,) * (length - 1))
