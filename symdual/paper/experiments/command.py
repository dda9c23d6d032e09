"""`symdual paper run` behind the command line: check what was asked, carry it out, write page, figures and JSON."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from symdual.common.errors import SymdualError
from symdual.paper.experiments.crew import Report, Tell
from symdual.paper.experiments.outcome import Outcome, Request, carry_out
from symdual.paper.experiments.plan import TRUTHS, chosen
from symdual.paper.experiments.run import require_writable

RUNS, QUICK_RUNS = 50, 100
FOLDER = Path("out") / "paper"


@dataclass(frozen=True)
class Written:
    """What came out, and where its page and its figures lie."""

    outcome: Outcome
    page: Path
    figures: Path


def request(
    experiments: tuple[int, ...],
    runs: int | None,
    seed: int,
    truth: str | None,
    folder: Path | None,
    extra: bool = False,
    quick: bool = False,
    resume: bool = False,
    backend: str | None = None,
) -> Request:
    """What the options ask for; bad ones are refused before any work is done."""
    if runs is not None and runs < 1:
        raise SymdualError(f"the number of runs must be at least 1, not {runs}")
    if seed < 0:
        raise SymdualError(f"the seed must not be negative, but is {seed}")
    if truth is not None and truth not in TRUTHS:
        raise SymdualError(f'there is no truth "{truth}"; known: {", ".join(TRUTHS)}')
    if importlib.util.find_spec("matplotlib") is None:
        raise SymdualError("the figures need matplotlib, which is not installed: pip install matplotlib")
    return Request(
        experiments=chosen(experiments),
        truths=tuple(TRUTHS) if truth is None else (truth,),
        runs=(QUICK_RUNS if quick else RUNS) if runs is None else runs,
        seed=seed,
        folder=(FOLDER if folder is None else folder).resolve(),
        resume=resume,
        extra=extra,
        quick=quick,
        backend=backend,
    )


def execute(
    asked: Request,
    page_file: Path | None = None,
    report: Report = lambda where, what, share: None,
    tell: Tell = lambda sentence: None,
    meanwhile: Sequence[Callable[[], object]] = (),
) -> Written:
    """Run everything that was asked for and write the page and the figures."""
    require_writable(asked.sweeps)
    page = asked.folder / "index.html" if page_file is None else page_file
    if not os.access(page.resolve().parent, os.W_OK) or page.is_dir():
        raise SymdualError(f"cannot write {page}: it is a folder, or its folder is missing or cannot be written")
    outcome = carry_out(asked, report, tell, meanwhile)
    from symdual.paper.experiments.figures.style import save
    from symdual.paper.experiments.page import render
    from symdual.report.html import write_page

    figures = asked.folder / "figures"
    save([*outcome.pictures, *(item for study in outcome.studies for item in study.pictures)], figures)
    write_page(page, render(outcome))
    return Written(outcome, page, figures)
