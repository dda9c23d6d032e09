"""The machine-evaluable notation: Python expressions over the symbols that a case supplies.

A transcription such as ``-inv(B.T @ K[j+1] @ B + U[j]) @ B.T @ (K[j+1] @ A @ x[j] + p[j+1])`` is evaluated with numbers
(`symdual.paper.matrices`), with SymPy expressions, or with non-commuting letters (`symdual.paper.words`), whichever the
case at hand binds its names to.  The texts are part of the package, never a user's input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import CodeType
from typing import Any


class NotEvaluable(Exception):
    """The formula has no value as it is printed; the message says why."""


class Indexed:
    """A family of values with an explicit range of indices, as in x_1, ..., x_F; any other index is an error."""

    def __init__(self, values: Mapping[Any, Any]) -> None:
        self._values = dict(values)

    def __getitem__(self, index: Any) -> Any:
        try:
            return self._values[index]
        except KeyError:
            known = sorted(self._values, key=str)
            raise NotEvaluable(f"index {index} does not exist, only {known[0]} to {known[-1]}") from None

    def items(self) -> Iterable[tuple[Any, Any]]:
        """Indices and values."""
        return self._values.items()


def counted(values: Any, first: int = 1) -> Indexed:
    """The values numbered from ``first`` on."""
    return Indexed({first + i: value for i, value in enumerate(values)})


def total(first: int, last: int, term: Callable[[int], Any]) -> Any:
    """sum_{i=first}^{last} term(i), both ends included; an empty sum is 0."""
    result: Any = 0
    for index in range(first, last + 1):
        result = term(index) if index == first else result + term(index)
    return result


def span(first: int, last: int) -> frozenset[int]:
    """The index range first:last, both ends included."""
    return frozenset(range(first, last + 1))


_ALWAYS: dict[str, Any] = {
    "__builtins__": {},
    "total": total,
    "span": span,
    "dict": dict,
    "frozenset": frozenset,
}


def compiled(text: str) -> CodeType:
    """The code of a transcription; an ill-formed one is not evaluable."""
    try:
        return compile(text.strip(), "<printed>", "eval")
    except SyntaxError as error:
        raise NotEvaluable(f"not well formed: {error.msg}") from error


def evaluate(text: str, symbols: Mapping[str, Any]) -> Any:
    """The value of a transcription under the given symbols."""
    code = compiled(text)
    try:
        return eval(code, {**_ALWAYS, **symbols})
    except NameError as error:
        raise NotEvaluable(str(error)) from error
    except (TypeError, ValueError, AttributeError, KeyError, IndexError, ZeroDivisionError) as error:
        raise NotEvaluable(str(error)) from error
