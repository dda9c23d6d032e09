"""The verdict on one printed formula, computed from the comparison of transcription and derivation.

definition   the formula introduces its symbol; only its size or its ranges can be checked, and they are right
correct      it gives what the derivation gives
convention   it does so under a stated reading which the paper does not print
typo         it does not, but the paper prints the right form elsewhere, or one bracket repairs it
wrong        it does not, and the paper prints the right form nowhere
undefined    a constant or a range is not supplied, or is given twice with different values
undecided    nothing here decides it
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from symdual.paper.case import Convention, Correction, Derivation, Undecidable
from symdual.paper.comparison import Comparison, Counterexample, Status, compare
from symdual.paper.equation import Equation
from symdual.paper.lines import NO_LINES, Lines
from symdual.paper.machine import NotEvaluable, compiled


class Verdict(StrEnum):
    """What the check says about a printed formula."""

    DEFINITION = "definition"
    CORRECT = "correct"
    CONVENTION = "convention"
    TYPO = "typo"
    WRONG = "wrong"
    UNDEFINED = "undefined"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and what it rests on."""

    verdict: Verdict
    evidence: str
    cases: int = 0
    worst_error: float = 0.0
    counterexample: Counterexample | None = None
    convention: str = ""
    correction: Correction | None = None


def judge(
    equation: Equation,
    derivation: Derivation | Undecidable | None,
    introduced: frozenset[str],
    lines: Lines = NO_LINES,
) -> Judgement:
    """Confront the transcription with its derivation; ``introduced`` are the symbols defined further up.

    ``lines`` are all transcriptions, for statements that are about other lines too.
    """
    if derivation is None:
        return Judgement(Verdict.UNDECIDED, "no derivation is known")
    if isinstance(derivation, Undecidable):
        return Judgement(Verdict.UNDECIDED, derivation.reason)
    literal = compare(equation.machine, derivation.cases(), lines)
    if literal.status is Status.EQUAL:
        return _right(equation, derivation, literal, introduced)
    if literal.status in (Status.GIVEN_TWICE, Status.MISSING):
        evidence = _evidence(derivation)
        return Judgement(Verdict.UNDEFINED, evidence, literal.cases, counterexample=literal.counterexample)
    if literal.status is Status.UNPROVEN:
        return Judgement(Verdict.UNDECIDED, "equal at every probe, but not proven equal", literal.cases)
    convention = _fitting_convention(equation, derivation, lines)
    if convention is not None:
        return convention_judgement(derivation, *convention, literal)
    return _faulty(equation, derivation, literal, lines)


def _right(equation: Equation, derivation: Derivation, literal: Comparison, introduced: frozenset[str]) -> Judgement:
    evidence = _evidence(derivation)
    if not literal.formal:
        return Judgement(Verdict.CORRECT, evidence, literal.cases, literal.worst)
    if not equation.introduces:
        return Judgement(Verdict.UNDECIDED, "only the size is known, and nothing is defined here", literal.cases)
    if equation.introduces in introduced:
        return Judgement(Verdict.UNDEFINED, f"{equation.introduces} was already defined above", literal.cases)
    return Judgement(Verdict.DEFINITION, evidence, literal.cases)


def _fitting_convention(
    equation: Equation, derivation: Derivation, lines: Lines
) -> tuple[Convention, Comparison] | None:
    for convention in derivation.conventions:
        comparison = compare(equation.machine, convention.cases(), lines)
        if comparison.status is Status.EQUAL:
            return convention, comparison
    return None


def convention_judgement(
    derivation: Derivation, convention: Convention, fit: Comparison, literal: Comparison
) -> Judgement:
    """The verdict `convention`: right under the stated reading, with the literal reading's counterexample."""
    return Judgement(
        Verdict.CONVENTION,
        _evidence(derivation),
        fit.cases,
        fit.worst,
        literal.counterexample,
        convention.statement,
    )


def _faulty(equation: Equation, derivation: Derivation, literal: Comparison, lines: Lines) -> Judgement:
    correction = derivation.correction
    if correction is not None:
        fit = compare(correction.machine, derivation.cases(), lines)
        if fit.status is not Status.EQUAL:
            reason = f"differs from the derivation, and so does the proposed correction ({fit.counterexample})"
            return Judgement(Verdict.UNDECIDED, reason, literal.cases, counterexample=literal.counterexample)
    verdict = Verdict.TYPO if _repaired_by_the_paper(equation, derivation, lines) else Verdict.WRONG
    return Judgement(
        verdict,
        _evidence(derivation),
        literal.cases,
        literal.worst,
        literal.counterexample,
        correction=correction,
    )


def _repaired_by_the_paper(equation: Equation, derivation: Derivation, lines: Lines) -> bool:
    candidates = [other.machine for other in equation.restated]
    candidates += bracket_repairs(equation.machine)
    return any(compare(text, derivation.cases(), lines).status is Status.EQUAL for text in candidates)


def bracket_repairs(text: str) -> Iterator[str] | list[str]:
    """Every well-formed text that one deleted bracket makes of an ill-formed one."""
    try:
        compiled(text)
    except NotEvaluable:
        return [cut for cut in _without_one_bracket(text) if _well_formed(cut)]
    return []


def _without_one_bracket(text: str) -> Iterator[str]:
    for position, character in enumerate(text):
        if character in "()[]":
            yield text[:position] + text[position + 1 :]


def _well_formed(text: str) -> bool:
    try:
        compiled(text)
    except NotEvaluable:
        return False
    return True


def _evidence(derivation: Derivation) -> str:
    return f"{derivation.method} {derivation.remark}".strip()
