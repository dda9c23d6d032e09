"""Appendix A with non-commuting letters, where the algebra closes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from symdual.paper.case import Case
from symdual.paper.machine import Indexed
from symdual.paper.words import Blocks, Polynomial, blocks, invert, letter, nothing, unit

WHERE = "non-commuting letters"


def _filter_step(prior: Polynomial, h: Polynomial, innovation: Polynomial) -> Polynomial:
    """P - P H' S^-1 H P with a formal S^-1."""
    return prior - prior @ h.T @ invert(innovation) @ h @ prior


def _common() -> dict[str, object]:
    return {
        "A": Indexed({j: letter(f"A{j}") for j in range(2)}),
        "P0": letter("P0", symmetric=True),
        "Q": letter("Q", symmetric=True),
        "R": letter("R", symmetric=True),
        "H": letter("H"),
        "S1": letter("S1", symmetric=True),
        "S2": letter("S2", symmetric=True),
        "inv": invert,
        "stack": blocks,
    }


def predicted() -> Iterator[Case]:
    """A_1 P_1 A_1' + Q after one filter step."""
    a0, a1, p0, q, h = (
        letter("A0"),
        letter("A1"),
        letter("P0", symmetric=True),
        letter("Q", symmetric=True),
        letter("H"),
    )
    before = a0 @ p0 @ a0.T + q
    after = _filter_step(before, h, letter("S1", symmetric=True))
    yield Case(WHERE, _common(), a1 @ after @ a1.T + q)


def two_steps() -> Iterator[Case]:
    """The second filter step applied to the predicted covariance g_11 - g_10 H' S_1^-1 H g_01."""
    g11, g10, h = letter("g11", symmetric=True), letter("g10"), letter("H")
    s1, s2 = letter("S1", symmetric=True), letter("S2", symmetric=True)
    before = g11 - g10 @ h.T @ invert(s1) @ h @ g10.T
    symbols = {**_common(), "g11": g11, "g10": g10, "g01": g10.T}
    yield Case(WHERE, symbols, _filter_step(before, h, s2))


def transition(inverted: bool) -> Iterator[Case]:
    """F, or its inverse, for up to five steps: states written as sums of increments, or the increments as states."""
    for count in range(1, 6):
        factors = {j: letter(f"A{j}") for j in range(1, count)}
        expected = _increments(count, factors) if inverted else _states(count, factors)
        symbols = {
            "m": count - 1,
            "A": Indexed(factors),
            "one": unit(),
            "nil": nothing(),
            "blocks": _square,
            "product": _product,
        }
        yield Case(f"{WHERE}, k = {count}", symbols, expected)


def _square(count: int, entry: Callable[[int, int], Polynomial]) -> Polynomial | Blocks:
    return blocks([[entry(i, j) for j in range(1, count + 1)] for i in range(1, count + 1)])


def _product(factors: Indexed, last: int, first: int) -> Polynomial:
    result: Polynomial = factors[last]
    for index in range(last - 1, first - 1, -1):
        result = result @ factors[index]
    return result


def _states(count: int, factors: dict[int, Polynomial]) -> Polynomial | Blocks:
    """x_{j+1} = A_j x_j + d_{j+1}, every state kept as its coefficients of d_1, d_2, ..."""
    rows = [[unit() if i == 0 else nothing() for i in range(count)]]
    for j in range(1, count):
        rows.append([factors[j] @ value for value in rows[-1]])
        rows[-1][j] = rows[-1][j] + unit()
    return blocks(rows)


def _increments(count: int, factors: dict[int, Polynomial]) -> Polynomial | Blocks:
    """d_{j+1} = x_{j+1} - A_j x_j, every increment kept as its coefficients of x_1, x_2, ..."""
    rows = [[nothing() for _ in range(count)] for _ in range(count)]
    for j in range(count):
        rows[j][j] = unit()
        if j:
            rows[j][j - 1] = nothing() - factors[j]
    return blocks(rows)


def gram(kernels: bool) -> Iterator[Case]:
    """What the weights add to the covariance of (y_1, y_2): x_1 gains Phi_0 w, x_2 gains A_1 Phi_0 w + Phi_1 w."""
    a1, sww = letter("A1"), letter("Sww", symmetric=True)
    phi = {j: letter(f"Phi{j}") for j in range(2)}
    kappa = {(i, j): letter(f"kappa{i}{j}") for i in range(2) for j in range(2)}
    first, second = [(unit(), 0)], [(a1, 0), (unit(), 1)]

    def between(left: list[tuple[Polynomial, int]], right: list[tuple[Polynomial, int]]) -> Polynomial:
        total = nothing()
        for c, i in left:
            for d, j in right:
                inner = kappa[i, j] if kernels else phi[i] @ sww @ phi[j].T
                total = total + c @ inner @ d.T
        return total

    expected = Blocks([[between(left, right) for right in (first, second)] for left in (first, second)])
    symbols = {
        "G": Blocks([[nothing(), nothing()], [nothing(), nothing()]]),
        "A": Indexed({1: a1}),
        "Phi": Indexed(phi),
        "Sww": sww,
        "kappa": Indexed(kappa),
        "stack": blocks,
    }
    yield Case(WHERE, symbols, expected)
