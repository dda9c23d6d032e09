"""An order in which everything is defined before it is used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush

import sympy as sp


def in_order(defines: Sequence[Iterable[sp.Symbol]], uses: Sequence[Iterable[sp.Symbol]]) -> list[int]:
    """The positions of items so that each uses only what stands before it, the given order kept where it can be.

    At every place stands the first of the given items that is ready. Symbols that no item defines are always ready.
    """
    owner = {symbol: position for position, symbols in enumerate(defines) for symbol in symbols}
    needs = [{owner[s] for s in symbols if s in owner} - {position} for position, symbols in enumerate(uses)]
    users: list[list[int]] = [[] for _ in needs]
    for position, needed in enumerate(needs):
        for other in needed:
            users[other].append(position)
    open_needs = [len(needed) for needed in needs]
    ready = [position for position, count in enumerate(open_needs) if not count]
    heapify(ready)
    ordered = []
    while ready:
        position = heappop(ready)
        ordered.append(position)
        for user in users[position]:
            open_needs[user] -= 1
            if not open_needs[user]:
                heappush(ready, user)
    assert len(ordered) == len(needs), "a definition depends on itself"
    return ordered
