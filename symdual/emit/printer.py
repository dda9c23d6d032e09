"""Prints a SymPy expression as one line of Python that numba compiles."""

from __future__ import annotations

import math

import sympy as sp
from sympy.printing.pycode import PythonCodePrinter

from symdual.common.errors import ModelError


class KernelPrinter(PythonCodePrinter):
    """`PythonCodePrinter` with numbers in full precision and with the functions of symdual.

    `NumPyPrinter` would be wrong here: its `Max` and `Piecewise` work on arrays and do not compile on scalars.
    """

    def __init__(self) -> None:
        # not for humans: then SymPy of every version returns what it cannot print beside the text
        super().__init__({"fully_qualified_modules": True, "human": False})

    def _print_Float(self, expression: sp.Float) -> str:
        return _number(expression)

    def _print_Rational(self, expression: sp.Rational) -> str:
        # the quotient is rounded here, once, instead of being an operation of the generated code
        return _number(expression)

    def _print_Integer(self, expression: sp.Integer) -> str:
        return _number(expression)

    _print_Zero = _print_One = _print_NegativeOne = _print_Integer  # which some versions of SymPy print apart
    _print_Half = _print_Rational

    def _print_Pow(self, expression: sp.Pow, rational: bool = False) -> str:
        base, exponent = expression.args
        if exponent.is_Integer and abs(int(exponent)) <= 16:
            # a whole exponent: multiplications, no call of pow
            shown = self.parenthesize(base, sp.printing.precedence.PRECEDENCE["Pow"])
            power = shown if abs(int(exponent)) == 1 else f"{shown}**{abs(int(exponent))}"
            return power if exponent > 0 else f"1.0/{power}"
        if exponent == sp.Rational(-1, 2):
            return f"1.0/math.sqrt({self._print(base)})"
        return str(super()._print_Pow(expression, rational=False))

    def _print_sign(self, expression: sp.Expr) -> str:
        argument = self._print(expression.args[0])
        return f"(0.0 if {argument} == 0.0 else math.copysign(1.0, {argument}))"

    def _print_logistic(self, expression: sp.Expr) -> str:
        return f"_logistic({self._print(expression.args[0])})"

    def _print_matern(self, expression: sp.Expr) -> str:
        order, square = expression.args
        return f"_matern({int(order)}, {self._print(square)})"

    def _print_power(self, expression: sp.Expr) -> str:
        base, exponent, by_base, by_exponent = expression.args
        if by_base == by_exponent == 0:
            return str(self._print(sp.Pow(base, exponent, evaluate=False)))
        return f"_power_{by_base}{by_exponent}({self._print(base)}, {self._print(exponent)})"

    def _print_monomial(self, expression: sp.Expr) -> str:
        base, power = (self._print(argument) for argument in expression.args)
        return f"math.pow({base}, {power})"


def _number(expression: sp.Number) -> str:
    """A number in full precision; beyond double precision, a literal that is infinity."""
    try:
        value = float(expression)
    except OverflowError:
        value = math.copysign(math.inf, 1 if expression > 0 else -1)
    return repr(value).replace("inf", "1e999")


_PRINTER = KernelPrinter()


def print_expression(expression: sp.Expr) -> str:
    """Return the Python text of an expression, or say which function cannot be generated."""
    _, unprinted, text = _PRINTER.doprint(expression)
    if unprinted:
        culprit = next(part for part in sp.postorder_traversal(expression) if part in unprinted)
        raise ModelError(f"a derivative needs {type(culprit).__name__}, which the generated code cannot compute")
    return str(text)
