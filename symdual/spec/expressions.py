"""What the expressions of a model may be made of: functions with a derivative that the generated code can compute."""

from __future__ import annotations

import math
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.functions.elementary.piecewise import ExprCondPair
from sympy.logic.boolalg import BooleanAtom

from symdual.common.errors import ModelError
from symdual.spec.symbols import FamilyToken, FeatureSum, logistic, matern, monomial

#: What an expression may be made of. Functions with a kink are differentiated on either side of it.
ACCEPTED: tuple[type, ...] = (
    *(sp.Add, sp.Mul, sp.Pow, sp.exp, sp.log, sp.sin, sp.cos, sp.tan, sp.asin, sp.acos, sp.atan, sp.atan2),
    *(sp.sinh, sp.cosh, sp.tanh, sp.asinh, sp.acosh, sp.atanh, sp.erf, sp.erfc, sp.Abs, sp.Max, sp.Min),
    *(logistic, matern, monomial, FeatureSum, sp.Piecewise, ExprCondPair),
    *(sp.Lt, sp.Le, sp.Gt, sp.Ge, sp.Eq, sp.Ne, sp.And, sp.Or),
)
_JUMPS = (sp.Heaviside, sp.sign, sp.floor, sp.ceiling, sp.DiracDelta, sp.Mod, sp.frac)


def as_expression(value: Any, what: str) -> sp.Expr:
    """Return an expression or a number as an expression; a text is refused, for SymPy would run it as a program."""
    if isinstance(value, (str, bytes)):
        shown = repr(value) if len(value) <= 60 else repr(value[:57]) + "..."
        raise ModelError(f"{what} is the text {shown}; write it as an expression of SymPy symbols")
    try:
        return sp.sympify(value, strict=True)
    except sp.SympifyError:
        shown = " ".join(repr(value).split())
        raise ModelError(f"{what} is {shown}, which is not a scalar SymPy expression") from None


def check_part(part: sp.Basic, where: str) -> None:
    """Refuse a node of an expression (symbols apart) that has no value, no derivative, or no generated code."""
    if getattr(part, "is_number", False):
        if part.has(sp.nan, sp.oo, -sp.oo, sp.zoo) or part.is_real is False or (part.is_Atom and not _is_double(part)):
            raise ModelError(f"{where} contains {_shortened(part)}, which is not a finite real number")
        if part.is_Atom:
            return
        _check_arguments(part, where)
    name = str(getattr(part.func, "__name__", part.func))
    if isinstance(part, AppliedUndef):
        raise ModelError(f"{where} uses the function {name!r}, which has no definition")
    if isinstance(part, _JUMPS):
        raise ModelError(f"{where} uses {name}, which has no derivative where it jumps")
    if isinstance(part, sp.Piecewise) and part.args[-1].cond != sp.true:
        raise ModelError(f"{where} uses a Piecewise without a last case for all that remains (condition True)")
    if part.func not in ACCEPTED and not isinstance(part, (FamilyToken, BooleanAtom)):
        raise ModelError(f"{where} uses {name}, which the generated code cannot compute")


def _check_arguments(constant: sp.Expr, where: str) -> None:
    """Refuse a function of a constant that is not finite in double precision: SymPy may not come to an end over it."""
    for part in sp.postorder_traversal(constant):  # so that no argument is computed before those within it are known
        if isinstance(part, (sp.Function, sp.Pow)) and not isinstance(part, sp.Piecewise):
            for argument in part.args:
                if not _is_double(argument):
                    raise ModelError(
                        f"{where} contains {_shortened(part)}, where {_shortened(argument)} is not a finite real number"
                    )


def _shortened(part: sp.Basic) -> str:
    """An expression as text, without the middle of hundreds of digits."""
    text = str(part)
    return text if len(text) <= 80 else f"{text[:40]}...{text[-20:]}"


def _is_double(number: sp.Expr) -> bool:
    """Whether a number is finite in double precision too."""
    try:
        return math.isfinite(float(number))
    except OverflowError:
        return False
