"""`previous`: an input some steps ago, from which penalties on its changes, delays and inputs in measurements follow.

    previous(force), previous(force, 3)

A model that uses them remembers inputs in states of its own, p1' = u, p2' = p1, ..., which are known: they have no
noise, start without uncertainty, and are not measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike

from symdual.common.arrays import Array
from symdual.common.errors import ModelError, did_you_mean
from symdual.common.numbers import as_numbers
from symdual.spec.symbols import Constant, Unknown

MOST = 1000  # steps back


class Previous(sp.Symbol):
    """The input `of`, so many `steps` ago."""

    of: sp.Symbol
    steps: int

    def __new__(cls, of: sp.Symbol, steps: int) -> Previous:
        """Make the symbol; use `previous` for the checks."""
        symbol = sp.Symbol.__xnew__(cls, f"previous_{of.name}" + (f"_{steps}" if steps > 1 else ""), real=True)
        symbol.of, symbol.steps = of, steps
        return symbol  # type: ignore[no-any-return]

    def __getnewargs_ex__(self) -> tuple[tuple[sp.Symbol, int], dict[str, Any]]:
        return (self.of, self.steps), {}

    def _hashable_content(self) -> tuple[Any, ...]:
        return (self.name, self.of, self.steps)

    @property
    def written(self) -> str:
        """As the user wrote it."""
        return f"previous({self.of.name})" if self.steps == 1 else f"previous({self.of.name}, {self.steps})"


def previous(of: sp.Symbol, steps: int = 1) -> Previous:
    """An input `steps` steps ago.

    >>> u = sympy.Symbol("u")
    >>> change = u - symdual.previous(u)        # to be penalised in a cost, or in dynamics with a delay
    >>> symdual.previous(u, 2).written
    'previous(u, 2)'
    """
    if not isinstance(of, sp.Symbol) or isinstance(of, (Unknown, Constant, Previous)):
        raise ModelError(f"previous({of}): only inputs are remembered")
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
        raise ModelError(f"previous({of.name}, {steps!r}): the number of steps must be a whole number of at least 1")
    if steps > MOST:
        raise ModelError(f"previous({of.name}, {steps}): no more than {MOST} steps can be remembered, each in a state")
    return Previous(of, int(steps))


def check_previous(symbol: Previous, inputs: Sequence[sp.Symbol], where: str) -> None:
    """Raise unless it is an input of the model."""
    if symbol.of not in inputs:
        raise ModelError(f'{where} contains {symbol.written}, but "{symbol.of.name}" is not an input of the model')


def depths(expressions: Iterable[sp.Expr], inputs: Sequence[sp.Symbol]) -> dict[int, int]:
    """How many steps back expressions look, by the position of the input."""
    found: dict[int, int] = {}
    for expression in expressions:
        for symbol in expression.atoms(Previous):
            place = inputs.index(symbol.of)
            found[place] = max(found.get(place, 0), symbol.steps)
    return found


def deepest(*needs: Mapping[int, int]) -> dict[int, int]:
    """What is enough for all."""
    return {place: max(need.get(place, 0) for need in needs) for need in needs for place in need}


def memory(inputs: Sequence[sp.Symbol], needs: Mapping[int, int]) -> tuple[Previous, ...]:
    """The states that remember inputs, those of one input together."""
    return tuple(Previous(u, step) for a, u in enumerate(inputs) for step in range(1, needs.get(a, 0) + 1))


def next_memory(states: Sequence[Previous]) -> tuple[sp.Expr, ...]:
    """What they are one step later."""
    return tuple(p.of if p.steps == 1 else Previous(p.of, p.steps - 1) for p in states)


def past_inputs(given: Mapping[Any, ArrayLike] | None, inputs: Sequence[sp.Symbol], horizon: int) -> Array:
    """What inputs were before the start, (inputs, steps back); zero where nothing is said, held where too little is."""
    if not isinstance(given, Mapping | None):
        raise ModelError(f"past must be a mapping from inputs to what they were, but is {given!r}")
    names = [u.name for u in inputs]
    values = np.zeros((len(inputs), horizon))
    for key, value in (given or {}).items():
        name = key.name if isinstance(key, sp.Symbol) else str(key)
        if name not in names:
            raise ModelError(f'past names "{name}", which is not an input{did_you_mean(name, names)}')
        listed = np.atleast_1d(as_numbers(value, f'the past of "{name}"'))
        if listed.ndim != 1 or not listed.size:
            raise ModelError(f'the past of "{name}" must be a number or a list of numbers')
        values[names.index(name)] = listed[np.minimum(np.arange(horizon), listed.size - 1)]
    return values
