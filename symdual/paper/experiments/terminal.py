"""The outcome in the terminal."""

from __future__ import annotations

import math

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid

from symdual.paper.experiments import words
from symdual.paper.experiments.outcome import Outcome, sentences
from symdual.paper.experiments.plan import COMMON_ASSUMPTIONS
from symdual.paper.experiments.table import Estimate, Line, Table
from symdual.report.grid import grid
from symdual.report.palette import LOOKS

HEADER = ("controller", "paper", "mean", "std", "error", "minus ce", "NEES", "NIS")
MARKS = {"yes": "green", "no": "yellow", "open": "dim"}
FOOTNOTE = (
    "Cost per step: mean, standard deviation (beside the paper's mean/std), standard error; minus ce: difference run "
    "by run with its standard error; NEES: mean squared parameter error in believed units at the end, NIS: the same of "
    "the measurements, both 1 for an honest belief."
)


def show(console: Console, outcome: Outcome) -> None:
    """Print tables, words, expectations and times."""
    for experiment in outcome.request.experiments:
        for table in outcome.of(experiment.number):
            console.print(of_experiment(table))
            for sentence in sentences(table):
                console.print(Padding(sentence, (0, 0, 0, 2)))
            console.print()
        for text in experiment.assumptions:
            console.print(Padding(f"Assumed: {text}", (0, 0, 0, 2)), style="dim")
        console.print()
    console.print(FOOTNOTE)
    for text in COMMON_ASSUMPTIONS:
        console.print(f"Assumed: {text}")
    if outcome.expectations:
        console.print(f"\n[bold]What a faithful implementation shows[/] ({words.RULE})")
    for item in outcome.expectations:
        mark = f"[{MARKS[item.word]}]{item.word:4}[/]"
        console.print(Padding(f"{mark} {item.claim}: {item.measured}", (0, 0, 0, 2)))
    for study in outcome.studies:
        console.print(f"\n[bold]{study.title}[/]")
        console.print(grid(study.header, study.rows))
        for sentence in study.findings:
            console.print(Padding(sentence, (0, 0, 0, 2)))
    console.print("\nTime: " + ", ".join(f"{name} {value:.1f} s" for name, value in outcome.seconds.items()))


def fair_table(outcome: Outcome) -> Grid:
    """Mean cost per step of every controller in every experiment, in the fair test."""
    header, rows = fair_cells(outcome)
    runs = outcome.request.runs
    return grid(header, rows, f"Mean cost of a step, {runs} runs\nwith a truth of its own each")


def fair_cells(outcome: Outcome) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of the fair test."""
    truth = words.fair_truth(outcome.tables)
    own = [table for table in outcome.tables.values() if table.truth == truth]
    lines = [{line.arm.key: line.cost for line in table.lines if line.arm.is_plain} for table in own]
    keys = [key for key in LOOKS if any(key in line for line in lines)]
    rows = [[key, *(_with_error(line[key]) if key in line else "" for line in lines)] for key in keys]
    return ["", *(f"Exp {table.experiment.number}" for table in own)], rows


def _with_error(value: Estimate) -> str:
    return f"{shown(value.mean)} ± {shown(value.error)}"


def of_experiment(table: Table) -> Grid:
    """One table of an experiment."""
    truth = "the paper's truth" if table.truth == "paper" else "truth drawn from the prior"
    title = f"Exp {table.experiment.number}: {table.experiment.title} ({truth}, {table.runs} runs)"
    return grid(HEADER, [cells(line) for line in table.lines], title)


def cells(line: Line) -> tuple[str, ...]:
    """A line as text."""
    published = "" if line.published is None else f"{line.published[0]:.2f}/{line.published[1]:.2f}"
    nees = "" if line.nees is None else _short(line.nees[0])
    cost = line.cost
    return (
        line.arm.label,
        published,
        shown(cost.mean),
        shown(cost.std),
        shown(cost.error),
        "" if line.difference is None else difference(line.difference),
        nees,
        _short(line.nis),
    )


def difference(value: Estimate, digits: int = 3) -> str:
    """A difference with its standard error."""
    if math.isnan(value.mean):
        return ""
    return f"{value.mean:+.{digits}f} ± {shown(value.error, digits)}".replace("-", "\N{MINUS SIGN}")


def shown(value: float, digits: int = 3) -> str:
    """A number, or a dash when there is none."""
    return "–" if math.isnan(value) else f"{value:.{digits}f}"  # noqa: RUF001


def _short(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.3g}"
