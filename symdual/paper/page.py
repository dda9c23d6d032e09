"""The results of the paper check as one HTML page: no script, no network, mathematics as MathML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from symdual.paper import checking
from symdual.paper.comparison import Counterexample
from symdual.paper.typeset import display, expand
from symdual.paper.verdict import Judgement, Verdict
from symdual.paper.wording import FAULTS, MEANINGS, SECTIONS, chapter, numbers, place, prose
from symdual.report.html import page

if TYPE_CHECKING:
    from symdual.paper.checking import Result


WIDEST_BESIDE = 75
"""Formulas with more letters than this are shown one above the other, not side by side."""


WIDEST_ON_PAPER = 90
"""Formulas with more letters than this are set smaller in print."""


def render(results: Sequence[Result]) -> str:
    """The page for these results."""
    text, style = (
        resources.files("symdual.paper").joinpath(name).read_text(encoding="utf-8")
        for name in ("check.html.j2", "check.css")
    )
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    counts = checking.counts(results)
    faults = [result for verdict in FAULTS for result in results if result.judgement.verdict is verdict]
    body = environment.from_string(text).render(
        results=results,
        agrees=checking.agree(results),
        verdicts=[{"name": v.value, "count": counts[v.value], "meaning": MEANINGS[v]} for v in Verdict],
        faults=[_fault(result) for result in faults],
        sections=[_section(name, results) for name in SECTIONS if any(chapter(r.equation) == name for r in results)],
    )
    return page("The paper's formulas, checked", Markup(body), style)


def _anchor(identifier: str) -> str:
    return "f-" + identifier.replace(".", "-")


def _fault(result: Result) -> dict[str, Any]:
    return {
        "id": result.equation.id,
        "anchor": _anchor(result.equation.id),
        "title": Markup(prose(result.equation.title)),
        "verdict": result.judgement.verdict.value,
        "remark": Markup(prose(checking.remark(result.judgement))),
    }


def _section(name: str, results: Sequence[Result]) -> dict[str, Any]:
    return {
        "anchor": f"section-{name}",
        "title": SECTIONS[name],
        "entries": [_entry(result) for result in results if chapter(result.equation) == name],
    }


def _entry(result: Result) -> dict[str, Any]:
    equation, judgement = result.equation, result.judgement
    correction = judgement.correction
    return {
        "id": equation.id,
        "anchor": _anchor(equation.id),
        "title": Markup(prose(equation.title)),
        "verdict": judgement.verdict.value,
        "agrees": result.agrees,
        "recorded": result.recorded,
        "place": place(equation),
        "printed": Markup(display(equation.latex)),
        "corrected": Markup(display(correction.latex)) if correction is not None else "",
        "beside": correction is not None and max(_width(equation.latex), _width(correction.latex)) < WIDEST_BESIDE,
        "printed_wide": _width(equation.latex) > WIDEST_ON_PAPER,
        "corrected_wide": correction is not None and _width(correction.latex) > WIDEST_ON_PAPER,
        "facts": [(name, Markup(prose(text))) for name, text in _facts(judgement)],
        "reads": [(identifier, _anchor(identifier)) for identifier in result.reads],
        "example": _example(judgement),
        "machine": equation.machine,
    }


def _width(latex: str) -> int:
    """Roughly the letters of the widest row: commands count as one, structure as nothing."""
    rows = expand(latex).split(r"\\")
    return max(len(re.sub(r"\\(begin|end)\{\w*\}|[\s{}^_&]", "", re.sub(r"\\[A-Za-z]+", "x", row))) for row in rows)


def _facts(judgement: Judgement) -> list[tuple[str, str]]:
    facts = []
    if judgement.correction is not None:
        facts.append(("Why", judgement.correction.reason))
    if judgement.convention:
        facts.append(("Right if", judgement.convention + "."))
    facts.append(("Evidence", judgement.evidence + _extent(judgement)))
    return facts


def _extent(judgement: Judgement) -> str:
    if judgement.verdict not in (Verdict.CORRECT, Verdict.CONVENTION) or not judgement.cases:
        return ""
    cases = "one case" if judgement.cases == 1 else f"{judgement.cases} cases"
    error = f", worst relative error {judgement.worst_error:.0e}" if judgement.worst_error else ", exact"
    return f" ({cases}{error}.)"


def _example(judgement: Judgement) -> dict[str, Any] | None:
    example: Counterexample | None = judgement.counterexample
    if example is None:
        return None
    literal = judgement.verdict is Verdict.CONVENTION
    return {
        "title": "Read literally" if literal else "Counterexample",
        "where": Markup(prose(example.where)),
        "numbers": numbers(example),
        "printed": example.printed,
        "derived": example.derived,
    }
