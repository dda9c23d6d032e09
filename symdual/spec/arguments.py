"""What every feature family has: arguments, placeholders for them, named arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import sympy as sp

from symdual.common.errors import ModelError
from symdual.spec.expressions import as_expression
from symdual.spec.names import check_name

Arguments: TypeAlias = sp.Expr | Sequence[sp.Expr]


def expressions(name: str, arguments: Arguments) -> tuple[sp.Expr, ...]:
    """The arguments of a family as a tuple of expressions."""
    listed = arguments if isinstance(arguments, (list, tuple)) else [arguments]
    points = tuple(as_expression(argument, f'an argument of "{name}"') for argument in listed)
    if not points:
        raise ModelError("a feature family needs at least one argument")
    return points


def require_count(name: str, count: int) -> None:
    """Refuse a family without features."""
    if count < 1:
        raise ModelError(f'the family "{name}" has {count} features; it needs at least one')


def output_count(name: str, outputs: int) -> int:
    """The number of outputs of a family, at least one."""
    if outputs < 1:
        raise ModelError(f'the family "{name}" has {outputs} outputs; it needs at least one')
    return outputs


def slots_for(count: int) -> tuple[sp.Symbol, ...]:
    """The symbols that stand for the arguments in the summand of a family."""
    return tuple(sp.Symbol(f"_a{q}", real=True) for q in range(count))


def array_symbol(name: str) -> sp.Symbol:
    """The symbol of an array with one number per feature."""
    check_name(name, f'the array "{name}"')
    return sp.Symbol(name, real=True)
