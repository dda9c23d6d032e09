"""The outcome as one page that needs nothing but itself: tables, words, figures, assumptions, times."""

from __future__ import annotations

import base64

from markupsafe import Markup

from symdual.paper.experiments import terminal, words
from symdual.paper.experiments.figures.style import LOOKS, Picture
from symdual.paper.experiments.outcome import Outcome, sentences
from symdual.paper.experiments.plan import COMMON_ASSUMPTIONS, Experiment
from symdual.paper.experiments.study import Study
from symdual.paper.experiments.table import Table
from symdual.report.html import element, join, opening, page, section, table
from symdual.report.palette import INK

_STYLE = """
figure { margin: 1rem 0 1.6rem; }
figcaption { font-size: .92rem; color: var(--soft); max-width: 44rem; }
.sheet { background: #fff; border-radius: .5rem; padding: .6rem; overflow-x: auto; }
.sheet img { display: block; width: 100%; min-width: 34rem; height: auto; }
.swatch { display: inline-block; width: .7em; height: .7em; border-radius: 50%; margin-right: .45em; }
.name { white-space: nowrap; }
@media print { figure { break-inside: avoid; } .sheet img { min-width: 0; } }
"""
_OF_EXPERIMENT = {1: ("fig1",), 2: ("exp2", "fig2", "fig3"), 3: ("exp3",), 4: ("exp4",)}


def render(outcome: Outcome) -> str:
    """The whole page: what came out of the fair test, then every experiment, then what had to be assumed."""
    request = outcome.request
    links = [(f"exp{e.number}", f"Exp {e.number}") for e in request.experiments]
    links += [("table", "The paper's table"), ("shows", "What it shows"), ("assumed", "What we assumed")]
    links += [(study.key, study.short) for study in outcome.studies]
    body = join(
        [
            opening("Controllers that learn while they steer: the paper's experiments", _lead(outcome), links),
            _fair(outcome),
            *(_experiment(e, outcome) for e in request.experiments),
            _summary(outcome),
            _expected(outcome),
            *(_study(study) for study in outcome.studies),
            _assumed(),
            _times(outcome),
        ]
    )
    return page("Dual control: the paper's experiments", body, _STYLE)


def _lead(outcome: Outcome) -> str:
    request = outcome.request
    return (
        "A dual controller chooses inputs that steer and teach at the same time. The others do one of the two, or both "
        f"without weighing them. Each was run {request.runs} times with the same noise (seed {request.seed})."
    )


def _fair(outcome: Outcome) -> Markup:
    """The sentence, the picture and the table of the fair test."""
    header, rows = terminal.fair_cells(outcome)
    named = [[_named(key, key), *cells] for key, *cells in rows]
    picture = next(p for p in outcome.pictures if p.name == "gains")
    note = (
        "Mean cost of a step, with its standard error. oracle knows the truth; ce acts as if its estimate were true; "
        "cautious guards against what it does not know; beb pays itself a bonus for learning; dual weighs what "
        "learning costs against what it will save."
    )
    return section(
        "fair",
        "What came out",
        element("p", words.in_one_sentence(outcome.tables)),
        _picture(picture),
        table(header, named, range(1, len(header))),
        element("p", note, class_="note"),
    )


def _summary(outcome: Outcome) -> Markup:
    """The paper's table and ours in one."""
    own = [one for one in outcome.tables.values() if one.truth == "paper"]
    if not own:
        return Markup("")
    header = ["", *(f"Exp {one.experiment.number}{part}" for one in own for part in (", paper", ", ours"))]
    rows = []
    for key in LOOKS:
        row: list[str | Markup] = [_named(key, key)]
        for one in own:
            line = one.line(key)
            row.append("–" if line.published is None else f"{line.published[0]:.2f} / {line.published[1]:.2f}")  # noqa: RUF001
            row.append(f"{line.cost.mean:.2f} / {terminal.shown(line.cost.std, 2)}")
        rows.append(row)
    note = (
        "Mean / standard deviation of the cost per step. The paper leaves constants open, so its numbers cannot be "
        "rebuilt one by one; above, every experiment says what comes out again and what does not."
    )
    return section(
        "table",
        "The paper's table and ours",
        table(header, rows, range(1, len(header))),
        element("p", note, class_="note"),
        element("p", terminal.FOOTNOTE, class_="note"),
    )


def _experiment(experiment: Experiment, outcome: Outcome) -> Markup:
    own = outcome.of(experiment.number)
    names = _OF_EXPERIMENT[experiment.number]
    pictures = [p for name in names for p in outcome.pictures if p.name.startswith(name)]
    return section(
        f"exp{experiment.number}",
        f"Exp {experiment.number}: {experiment.title}",
        element("p", experiment.question),
        *(_table(one) for one in own[:1]),
        *(_picture(p) for p in pictures),
        *(_table(one) for one in own[1:]),
        element("h3", "Assumed here"),
        element("ul", *(element("li", text) for text in experiment.assumptions)),
    )


def _table(one: Table) -> Markup:
    title = "The paper's truth" if one.truth == "paper" else "Truth drawn from the prior: the fair test"
    first = 1 if one.truth == "paper" else 2  # the paper has no numbers for another truth
    header = (terminal.HEADER[0], *terminal.HEADER[first:])
    rows = [(_named(line.arm.controller, line.arm.label), *terminal.cells(line)[first:]) for line in one.lines]
    return join(
        [
            element("h3", f"{title}, {one.runs} runs"),
            table(header, rows, range(1, len(header))),
            element("ul", *(element("li", text) for text in sentences(one))),
        ]
    )


def _named(controller: str, label: str) -> Markup:
    colour = LOOKS[controller].colour if controller in LOOKS else INK
    return element("span", element("span", class_="swatch", style=f"background:{colour}"), label, class_="name")


def _picture(item: Picture) -> Markup:
    source = "data:image/svg+xml;base64," + base64.b64encode(item.svg).decode()
    return element(
        "figure",
        element("h3", item.title),
        element("div", element("img", src=source, alt=item.alternative), class_="sheet", tabindex=0),
        element("figcaption", item.explanation),
    )


def _expected(outcome: Outcome) -> Markup:
    rows = [
        (element("span", e.word, class_={"yes": "good", "no": "warn"}.get(e.word)), e.claim, e.measured)
        for e in outcome.expectations
    ]
    note = element("p", f"Marked {words.RULE}.", class_="note")
    return section("shows", "What a faithful implementation shows", note, table(("", "claim", "measured"), rows))


def _study(study: Study) -> Markup:
    return section(
        study.key,
        study.title,
        element("p", study.explanation),
        table(study.header, study.rows, range(1, len(study.header))),
        element("ul", *(element("li", text) for text in study.findings)),
        *(_picture(item) for item in study.pictures),
    )


def _assumed() -> Markup:
    return section(
        "assumed", "What we assumed everywhere", element("ul", *(element("li", text) for text in COMMON_ASSUMPTIONS))
    )


def _times(outcome: Outcome) -> Markup:
    facts = [element("div", element("dt", name), element("dd", f"{s:.1f} s")) for name, s in outcome.seconds.items()]
    return section("times", "Time on this machine", element("dl", *facts, class_="facts"))
