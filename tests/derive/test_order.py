"""The order of definitions: each after what it uses, otherwise as given."""

from __future__ import annotations

import random

import pytest
import sympy as sp

from symdual.derive.order import in_order

symbols = sp.symbols("s0:40")


@pytest.mark.parametrize("seed", range(5))
def test_the_first_that_is_ready_comes_next(seed: int) -> None:
    """The definition itself, tried on random dependencies, against a plain search."""
    rng = random.Random(seed)
    hidden = list(range(40))
    rng.shuffle(hidden)
    uses: list[set[sp.Symbol]] = [set() for _ in symbols]
    for position, item in enumerate(hidden):
        uses[item] = {symbols[other] for other in hidden[:position] if rng.random() < 0.1} | {sp.Symbol("outside")}
    expected: list[int] = []
    while len(expected) < 40:
        done = {symbols[n] for n in expected} | {sp.Symbol("outside")}
        expected.append(next(n for n in range(40) if n not in expected and uses[n] <= done))
    assert in_order([(s,) for s in symbols], uses) == expected


def test_a_circle_is_a_fault() -> None:
    with pytest.raises(AssertionError, match="itself"):
        in_order([(symbols[0],), (symbols[1],)], [{symbols[1]}, {symbols[0]}])
