"""Substeps one after another, with 50 digits: first and second derivatives of a whole step from those of each of them.

x_{n+1} = phi(x_n, theta, u),      Z_{n+1} = phi_x Z_n + [0 phi_theta phi_u],      lam_n = phi_x' lam_{n+1}
d2(lam' f)/dv2 = sum_n V_n' (lam_{n+1}' phi_vv) V_n,                               V_n = [Z_n; 0 I 0; 0 0 I]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import mpmath

from symdual.many_digits.arithmetic import Bounded, known, plus, times


class Link(NamedTuple):
    """The derivatives of one substep at a place: where it leads, and functions of (row, column), (column, column)."""

    ends: Callable[[], list[Bounded]]
    first: Callable[[int, int], Bounded]
    second: Callable[[int, int], Bounded]


class Step(NamedTuple):
    """Those of a whole step: by row, by (row, column) and by (column, column)."""

    ends: list[Bounded]
    first: dict[tuple[int, int], Bounded]
    second: dict[tuple[int, int], Bounded]


def composed(
    link: Link,
    place: Callable[[Sequence[Bounded], mpmath.mpf, Sequence[Bounded]], None],
    x: Sequence[Bounded],
    costate: Sequence[Bounded],
    columns: Sequence[int],
    substeps: int,
) -> Step:
    """Go through all substeps and back. `place` sets state, time within the step and costate; states come first."""
    n, nothing = len(x), known(0.0)
    states = range(n)
    others = [c for c in columns if c >= n]
    here, tangent = list(x), {(i, c): known(float(i == c)) for i in states for c in columns}
    passed = []
    for number in range(substeps):
        place(here, mpmath.mpf(number) / substeps, costate)
        slopes = {(i, m): link.first(i, m) for i in states for m in states}
        passed.append((here, tangent, slopes))
        beside = {(i, c): link.first(i, c) for i in states for c in others}
        tangent = {
            (i, c): plus([*(product(slopes[i, m], tangent[m, c]) for m in states), beside.get((i, c), nothing)])
            for i in states
            for c in columns
        }
        here = link.ends()
    hessians: dict[tuple[int, int], list[Bounded]] = {(a, b): [] for a in columns for b in columns if a <= b}
    weights = list(costate)
    for number in reversed(range(substeps)):
        start, moved, slopes = passed[number]
        place(start, mpmath.mpf(number) / substeps, weights)
        add_curvature(hessians, link, moved, n, columns)
        weights = [plus([product(slopes[i, m], weights[i]) for i in states]) for m in states]
    second = {pair: plus(terms) for pair, terms in hessians.items()}
    return Step(here, tangent, second | {(b, a): value for (a, b), value in second.items()})


def add_curvature(
    hessians: dict[tuple[int, int], list[Bounded]],
    link: Link,
    moved: dict[tuple[int, int], Bounded],
    n: int,
    columns: Sequence[int],
) -> None:
    """V' (costate' phi)_vv V, term by term: states move with every column, the others by themselves."""
    states, nothing = range(n), known(0.0)
    parts = [*states, *(c for c in columns if c >= n)]
    own = {(p, q): link.second(p, q) for p in parts for q in parts}
    half = {
        (p, b): plus([*(product(own[p, m], moved[m, b]) for m in states), own[p, b] if b >= n else nothing])
        for p in parts
        for b in columns
    }
    for (a, b), terms in hessians.items():
        terms += [product(moved[m, a], half[m, b]) for m in states]
        terms += [half[a, b]] if a >= n else []


def product(one: Bounded, other: Bounded) -> Bounded:
    """A product in which a zero outside its case takes the other factor away."""
    return known(0.0) if one.value == 0 or other.value == 0 else times(one, other)
