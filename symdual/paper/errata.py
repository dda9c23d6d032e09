"""The results of the paper check as ``docs/errata.md``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from symdual.paper import checking
from symdual.paper.comparison import Counterexample
from symdual.paper.typeset import is_sentence, sentence, standalone
from symdual.paper.verdict import Verdict
from symdual.paper.wording import FAULTS, MEANINGS, SECTIONS, chapter, numbers, place

if TYPE_CHECKING:
    from symdual.paper.checking import Result


def render(results: Sequence[Result]) -> str:
    """The text for these results."""
    return "\n".join(_lines(results)).rstrip() + "\n"


def _lines(results: Sequence[Result]) -> Iterator[str]:
    yield "# Errata of the paper"
    yield ""
    yield "Klenske and Hennig, *Dual Control for Approximate Bayesian Reinforcement Learning*, JMLR 2016."
    yield "Written by `symdual paper check`; the verdicts are computed, not typed. Lines are those of the LaTeX source."
    yield ""
    yield "| verdict | formulas | meaning |"
    yield "|---|---:|---|"
    counts = checking.counts(results)
    for verdict in Verdict:
        yield f"| {verdict.value} | {counts[verdict.value]} | {MEANINGS[verdict]} |"
    yield ""
    yield "A formula is judged with its ingredients as corrected, each of which has a verdict of its own; where a"
    yield "verdict reads other lines as they are printed, it names them."
    for title, verdicts in _PARTS:
        chosen = [result for result in results if result.judgement.verdict in verdicts]
        if chosen:
            yield ""
            yield f"## {title}"
            for result in chosen:
                yield from _entry(result)
    yield ""
    yield "## All verdicts"
    for name, heading in SECTIONS.items():
        chosen = [result for result in results if chapter(result.equation) == name]
        if chosen:
            yield ""
            yield f"### {heading}"
            yield ""
            yield "| id | formula | verdict |"
            yield "|---|---|---|"
            for result in chosen:
                yield f"| `{result.equation.id}` | {result.equation.title} | {result.judgement.verdict.value} |"


_PARTS = (
    ("Wrong", (Verdict.WRONG,)),
    ("Typos", (Verdict.TYPO,)),
    ("Undefined or given twice", (Verdict.UNDEFINED,)),
    ("Right under a convention", (Verdict.CONVENTION,)),
    ("Undecided", (Verdict.UNDECIDED,)),
)


def _entry(result: Result) -> Iterator[str]:
    equation, judgement = result.equation, result.judgement
    yield ""
    yield f"### `{equation.id}` {equation.title}"
    yield ""
    yield f"{place(equation)}. Printed:"
    yield from _formula(equation.latex)
    if judgement.correction is not None:
        yield "Corrected:"
        yield from _formula(judgement.correction.latex)
        yield judgement.correction.reason
    elif judgement.convention:
        yield f"Right if {judgement.convention}."
    if judgement.counterexample is not None and judgement.verdict in FAULTS:
        yield ""
        yield _example(judgement.counterexample)
    yield ""
    yield f"Evidence: {judgement.evidence}"
    if result.reads:
        yield ""
        yield "Reads, as printed: " + ", ".join(f"`{name}`" for name in result.reads) + "."


def _formula(latex: str) -> Iterator[str]:
    yield ""
    if is_sentence(latex):
        yield f"> {sentence(latex)}"
    else:
        yield "```math"
        yield standalone(latex)
        yield "```"
    yield ""


def _example(example: Counterexample) -> str:
    values = f"; {numbers(example)}" if example.values else ""
    return f"Counterexample ({example.where}{values}): printed {example.printed}; derived {example.derived}."
