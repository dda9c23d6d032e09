"""`symdual paper check`: every printed formula against its derivation, computed verdicts against recorded ones.

results = run(only=None, progress=None)
print(to_json(results)); page(results); errata(results); table(results); agree(results)
"""

from __future__ import annotations

import difflib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from symdual.common.atomic_files import write_atomically
from symdual.common.errors import SymdualError
from symdual.paper.case import Derivation, Undecidable
from symdual.paper.derivations import DERIVATIONS
from symdual.paper.equation import Equation
from symdual.paper.equations import EQUATIONS
from symdual.paper.lines import Lines
from symdual.paper.verdict import Judgement, Verdict, judge
from symdual.report.grid import grid

Progress = Callable[[int, int, str], None]
"""Called with (formulas done, formulas in all, id of the next one)."""

COLOURS = {
    Verdict.DEFINITION: "dim",
    Verdict.CORRECT: "green",
    Verdict.CONVENTION: "cyan",
    Verdict.TYPO: "yellow",
    Verdict.WRONG: "red",
    Verdict.UNDEFINED: "magenta",
    Verdict.UNDECIDED: "white",
}


@dataclass(frozen=True, slots=True)
class Result:
    """One formula, its computed verdict, the recorded one, and the ids of the other lines that it depends on."""

    equation: Equation
    judgement: Judgement
    recorded: str
    seconds: float
    reads: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether the computed verdict is the recorded one."""
        return self.judgement.verdict.value == self.recorded


def run(
    only: str | None = None,
    progress: Progress | None = None,
    equations: Sequence[Equation] = EQUATIONS,
    derivations: Mapping[str, Derivation | Undecidable] = DERIVATIONS,
) -> tuple[Result, ...]:
    """Judge every formula, or those whose id is ``only`` or begins with it (a section such as ``A.1``)."""
    chosen = select(only, [equation.id for equation in equations])
    recorded = recorded_verdicts()
    lines = Lines({equation.id: equation.machine for equation in equations})
    introduced: set[str] = set()
    results: list[Result] = []
    for equation in equations:
        if equation.id in chosen:
            if progress is not None:
                progress(len(results), len(chosen), equation.id)
            begun = time.perf_counter()
            derivation = derivations.get(equation.id)
            judgement = judge(equation, derivation, frozenset(introduced), lines)
            reads = lines.reads(equation.machine, derivation)
            seconds = time.perf_counter() - begun
            results.append(Result(equation, judgement, recorded.get(equation.id, ""), seconds, reads))
        if equation.introduces:
            introduced.add(equation.introduces)
    if progress is not None:
        progress(len(results), len(chosen), "")
    return tuple(results)


def select(only: str | None, ids: Sequence[str]) -> frozenset[str]:
    """The ids that are asked for; an unknown one is refused, with the closest ones named."""
    if only is None:
        return frozenset(ids)
    chosen = frozenset(i for i in ids if i == only or i.startswith(f"{only}."))
    if not chosen:
        close = closest(only, ids)
        hint = f"; the closest are {', '.join(close)}" if close else ""
        raise SymdualError(f'no formula of the paper has the id "{only}"{hint}')
    return chosen


def closest(wanted: str, ids: Iterable[str]) -> list[str]:
    """The ids that are nearest in writing, ignoring case and the section in front."""
    known = list(ids)
    by_lower = {i.lower(): i for i in known}
    by_tail: dict[str, list[str]] = {}
    for i in known:
        by_tail.setdefault(_tail(i), []).append(i)
    whole = difflib.get_close_matches(wanted.lower(), by_lower, n=3, cutoff=0.5)
    tails = difflib.get_close_matches(_tail(wanted), by_tail, n=3, cutoff=0.6)
    found = [by_lower[i] for i in whole] + [i for tail in tails for i in by_tail[tail]]
    return list(dict.fromkeys(found))[:3]


def _tail(name: str) -> str:
    return name.lower().rsplit(".", 1)[-1]


def recorded_verdicts() -> dict[str, str]:
    """The verdicts that stand in the package's data."""
    text = resources.files("symdual.paper").joinpath("recorded.json").read_text(encoding="utf-8")
    found: dict[str, str] = json.loads(text)
    return found


def agree(results: Iterable[Result]) -> bool:
    """Whether every computed verdict equals the recorded one: exit status 0, otherwise 1."""
    return all(result.agrees for result in results)


def counts(results: Iterable[Result]) -> dict[str, int]:
    """How many formulas have each verdict, in the order of `Verdict`."""
    found = Counter(result.judgement.verdict for result in results)
    return {verdict.value: found[verdict] for verdict in Verdict}


def to_json(results: Sequence[Result]) -> str:
    """All results as JSON text."""
    content = {
        "agrees": agree(results),
        "counts": counts(results),
        "formulas": [_as_dict(result) for result in results],
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _as_dict(result: Result) -> dict[str, Any]:
    equation, judgement = result.equation, result.judgement
    example, correction = judgement.counterexample, judgement.correction
    return {
        "id": equation.id,
        "section": equation.section,
        "title": equation.title,
        "line": equation.line,
        "label": equation.label,
        "inline": equation.inline,
        "latex": equation.latex,
        "machine": equation.machine,
        "verdict": judgement.verdict.value,
        "recorded": result.recorded,
        "reads": list(result.reads),
        "evidence": judgement.evidence,
        "cases": judgement.cases,
        "worst_error": judgement.worst_error,
        "convention": judgement.convention,
        "counterexample": None
        if example is None
        else {
            "where": example.where,
            "values": dict(example.values),
            "printed": example.printed,
            "derived": example.derived,
        },
        "correction": None
        if correction is None
        else {"latex": correction.latex, "machine": correction.machine, "reason": correction.reason},
        "seconds": round(result.seconds, 3),
    }


def table(results: Sequence[Result]) -> Table:
    """The results for the terminal."""
    rows = []
    for result in results:
        judgement = result.judgement
        verdict = Text(judgement.verdict.value, style=COLOURS[judgement.verdict])
        if not result.agrees:
            verdict.append(f" (recorded: {result.recorded or 'nothing'})", style="bold red")
        rows.append((result.equation.id, Text(result.equation.title), verdict, Text(remark(judgement))))
    title, everything = "The paper's formulas against the derivation", (0, 1, 2, 3)
    return grid(("id", "formula", "verdict", "what to know"), rows, title, left=everything, wrapped=(1, 3))


def remark(judgement: Judgement) -> str:
    """One line on a verdict: the correction's reason, the convention, or what is missing."""
    if judgement.correction is not None:
        return judgement.correction.reason
    if judgement.convention:
        return f"right if {judgement.convention}"
    if judgement.verdict is Verdict.UNDEFINED and judgement.counterexample is not None:
        example = judgement.counterexample
        missing = example.printed.startswith(("not supplied", "nothing for"))
        return example.printed if missing else f"given twice, as {example.printed} ({example.where})"
    if judgement.verdict is Verdict.UNDECIDED:
        return judgement.evidence
    if judgement.verdict is Verdict.WRONG and judgement.counterexample is not None:
        example = judgement.counterexample
        return f"printed {example.printed}, derived {example.derived} ({example.where})"
    return ""


def summary(results: Sequence[Result]) -> str:
    """All verdicts in one sentence."""
    parts = [f"{count} {name}" for name, count in counts(results).items() if count]
    differing = [result.equation.id for result in results if not result.agrees]
    named = ", ".join(differing[:8]) + (" and more" if len(differing) > 8 else "")
    ending = "all as recorded" if not differing else f"{len(differing)} not as recorded: {named}"
    return f"{len(results)} formulas: {', '.join(parts)}; {ending}."


def page(results: Sequence[Result]) -> str:
    """The results as one HTML page with typeset mathematics."""
    from symdual.paper.page import render

    return render(results)


def errata(results: Sequence[Result]) -> str:
    """The results as the text of ``docs/errata.md``."""
    from symdual.paper.errata import render

    return render(results)


def save(path: Path, text: str) -> None:
    """Write a report; a path that cannot be written is refused in one sentence."""
    try:
        write_atomically(path, text.encode())
    except OSError as error:
        raise SymdualError(f'cannot write "{path}": {error.strerror or error}') from error
