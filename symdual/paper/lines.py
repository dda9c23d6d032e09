"""Puts what the paper prints elsewhere in its place: cases that read other lines get the values of those lines."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from symdual.paper.case import Case, Computed, Derivation, Printed, Undecidable
from symdual.paper.machine import NotEvaluable, evaluate


@dataclass(frozen=True, slots=True)
class Lines:
    """All transcriptions by id."""

    texts: Mapping[str, str]

    def filled(self, case: Case, text: str) -> Case:
        """The case with values in place of every `Printed` that ``text`` uses; raises NotEvaluable as those lines do.

        Lines are filled in the order in which the case names them, so that one may use those before it.
        """
        used = self._used(case, text)
        symbols = {name: value for name, value in case.symbols.items() if not isinstance(value, Printed)}
        for name in used:
            symbols[name] = self._value(case.symbols[name], dict(symbols))
        expected = case.expected
        if isinstance(expected, Computed):
            printed = {name: self._value(line, symbols) for name, line in expected.lines.items()}
            try:
                expected = expected.function(**printed)
            except (ValueError, TypeError, LookupError, ArithmeticError, StopIteration) as error:
                raise NotEvaluable(f"nothing follows from the lines that are read ({error})") from error
        return Case(case.where, symbols, expected)

    def reads(self, text: str, derivation: Derivation | Undecidable | None) -> tuple[str, ...]:
        """The ids of the lines on which the verdict on ``text`` depends besides its own, in order."""
        if not isinstance(derivation, Derivation):
            return ()
        sources = (derivation.cases, *(convention.cases for convention in derivation.conventions))
        firsts = [case for cases in sources for case in islice(cases(), 1)]
        return tuple(dict.fromkeys(i for case in firsts for i in self._ids(case, text)))

    def _ids(self, case: Case, text: str) -> Iterator[str]:
        yield from (case.symbols[name].id for name in self._used(case, text))
        if isinstance(case.expected, Computed):
            yield from (line.id for line in case.expected.lines.values())

    def _used(self, case: Case, text: str) -> list[str]:
        """The names that stand for other lines in ``text``, or in a line that is read on its behalf."""
        printed = {name: value for name, value in case.symbols.items() if isinstance(value, Printed)}
        computed = case.expected.lines.values() if isinstance(case.expected, Computed) else ()
        open_texts = [text, *(self.texts[line.id] for line in computed)]
        used: set[str] = set()
        while open_texts:
            for name in names(open_texts.pop()) & printed.keys() - used:
                used.add(name)
                open_texts.append(self.texts[printed[name].id])
        return [name for name in printed if name in used]

    def _value(self, line: Printed, symbols: Mapping[str, Any]) -> Any:
        text, known = self.texts[line.id], {**symbols, **line.symbols}
        if not line.parameters:
            return evaluate(text, known)
        return lambda *values: evaluate(text, {**known, **dict(zip(line.parameters, values, strict=True))})


NO_LINES = Lines({})


def names(text: str) -> set[str]:
    """The names that a transcription uses; none if it is not well formed."""
    try:
        return {node.id for node in ast.walk(ast.parse(text.strip(), mode="eval")) if isinstance(node, ast.Name)}
    except SyntaxError:
        return set()
