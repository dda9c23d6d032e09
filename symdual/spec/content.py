"""What occurs in the expressions of a model: unknowns, constants and families, each under one name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sympy as sp

from symdual.common.errors import ModelError, did_you_mean
from symdual.common.numbers import natural_order
from symdual.spec.expressions import check_part
from symdual.spec.past import Previous, check_previous
from symdual.spec.signals import Signal
from symdual.spec.symbols import Constant, Family, FamilyToken, FeatureSum, Unknown


def in_place(constants: Mapping[str, Constant]) -> tuple[Constant, ...]:
    """Constants by name, signals after all others: in the array of numbers they stand together."""
    ordered = [constants[name] for name in natural_order(constants)]
    return tuple(sorted(ordered, key=lambda c: isinstance(c, Signal)))


class Content:
    """Collects the unknowns, constants and families that occur in the expressions of a model."""

    def __init__(self, inputs: tuple[sp.Symbol, ...]) -> None:
        self._inputs = inputs
        self._symbols: dict[str, set[sp.Symbol]] = {}
        self._families: dict[str, set[Family]] = {}

    def add(self, expression: sp.Expr, where: str, declared: Mapping[str, sp.Symbol]) -> None:
        """Take the symbols of one expression, and refuse what cannot be understood or generated."""
        if not isinstance(expression, sp.Expr) or expression.is_Matrix:
            shown = " ".join(repr(expression).split())
            raise ModelError(f"{where} is {shown}, which is not a scalar SymPy expression")
        for part in sp.preorder_traversal(expression):
            if isinstance(part, (Unknown, Constant)):
                self._symbols.setdefault(part.name, set()).add(part)
            elif isinstance(part, Previous):
                check_previous(part, self._inputs, where)
            elif isinstance(part, sp.Symbol) and not isinstance(part, FamilyToken):
                if declared.get(part.name) != part:
                    _complain_about(part, where, [*declared, *self._symbols])
            else:
                check_part(part, where)
                if isinstance(part, FeatureSum):
                    self._families.setdefault(part.family.name, set()).add(part.family)
                    _require_known_arguments(part, declared)

    @property
    def families(self) -> tuple[Family, ...]:
        """The families, in the order of their declarations."""
        return tuple(sorted((next(iter(own)) for own in self._families.values()), key=lambda f: f.declared))

    @property
    def unknowns(self) -> tuple[Unknown, ...]:
        """The scalar unknowns, in the order of their declarations."""
        return tuple(sorted((s for s in self._scalars() if isinstance(s, Unknown)), key=lambda s: s.declared))

    @property
    def constants(self) -> tuple[Constant, ...]:
        """The constants, by name, those of families among them."""
        named = {s.name: s for s in self._scalars() if isinstance(s, Constant)}
        named |= {c.name: c for family in self.families for c in family.constants}
        return in_place(named)

    def _scalars(self) -> list[sp.Symbol]:
        return [next(iter(symbols)) for symbols in self._symbols.values()]

    def check_names(self, declared: Mapping[str, sp.Symbol]) -> None:
        """Every name means one thing."""
        for name, symbols in self._symbols.items():
            if len(symbols) > 1 or name in declared:
                raise ModelError(f'the name "{name}" is given to two different symbols')
        for name, families in self._families.items():
            if len(families) > 1:
                raise ModelError(f'the name "{name}" is given to two different feature families')
        taken = set(declared) | set(self._symbols)
        for symbol in self.unknowns:
            inner = symbol.transform.inner_name(symbol.name)
            if symbol.transform and inner in taken:
                raise ModelError(
                    f'the name "{inner}" stands for what is normal of the unknown "{symbol.name}", which has bounds; '
                    "rename the other one"
                )
            taken.add(inner)
        for family in self.families:
            arrays = [
                *(w.symbol for w in family.weights),
                *(d.symbol for d in family.data),
                *family.constants,
            ]
            for symbol in arrays:
                if symbol.name in taken and symbol not in self._symbols.get(symbol.name, ()):
                    raise ModelError(f'the name "{symbol.name}" is given twice, once by the features "{family.name}"')
                taken.add(symbol.name)


def _complain_about(symbol: sp.Symbol, where: str, known: Iterable[str]) -> None:
    names = list(known)
    if symbol.name in names:
        raise ModelError(f'{where} contains a symbol "{symbol.name}" with other assumptions than the declared one')
    shown = symbol.name if len(symbol.name) <= 60 else symbol.name[:57] + "..."
    hint = did_you_mean(symbol.name, names) or "; make it an unknown or a constant, or write a number"
    raise ModelError(f"{where} contains {shown!r}, which is not declared{hint}")


def _require_known_arguments(part: FeatureSum, declared: Mapping[str, sp.Symbol]) -> None:
    """A Gaussian process is remembered by the points where it was evaluated: they must not be uncertain themselves."""
    if part.family.process is None:
        return
    for symbol in sorted(part.free_symbols, key=lambda s: str(s.name)):
        if not isinstance(symbol, Constant) and declared.get(symbol.name) != symbol:
            raise ModelError(
                f'the Gaussian process "{part.family.name}" has the argument "{symbol.name}", which is neither a state '
                "nor an input"
            )
    if any(point.has(FeatureSum) for point in part.points):
        raise ModelError(f'the argument of the Gaussian process "{part.family.name}" contains features')
