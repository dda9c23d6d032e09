"""All figures of a run, those whose experiments were run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from symdual.paper.experiments.figures.beliefs import beliefs_figure
from symdual.paper.experiments.figures.density import density_figure
from symdual.paper.experiments.figures.flow import flow_figure
from symdual.paper.experiments.figures.kernel import kernel_figure
from symdual.paper.experiments.figures.style import Picture, styled
from symdual.paper.experiments.figures.toy import toy_figure
from symdual.paper.experiments.run import Recorded
from symdual.paper.experiments.timing import measure
from symdual.runtime.problem import Problem

SHOWN_RUNS = 50  # as in the paper
_READING = (
    "Darker means that more runs are there; the reference is dashed orange; shaded: the state costs nothing. Bottom: "
    "the mean cost of every step (logarithmic). "
)
_SCHEDULE = _READING + (
    "Dual stays put while that is expensive, makes its excursion with the inputs that act in the loose phase, and pays "
    "less when the reference moves. The excursion of ce only prepares the first jump of the reference, it is no "
    "experiment. The bonus explores without asking what the knowledge is for, and goes much farther than anybody needs."
)
_RELEVANCE = _READING + (
    "The reference will go to +10 only. In the free phase dual goes to that side first; ce and beb take a run-up on "
    "the other side and know nothing of the side that matters when they get there: see their cost at steps 13 to 15. "
    "(The paper's caption speaks of the second state; like its reference, we show the position.)"
)


def gallery(
    problems: Mapping[str, Problem],
    runs: Mapping[tuple[int, str], Mapping[str, Recorded]],
    seed: int,
    samples: int,
    report: Callable[[str, float], None] = lambda what, fraction: None,
) -> list[Picture]:
    """Draw everything that can be drawn from what was run; `samples` is the number of draws of Fig. 1."""
    found: list[Callable[[], Picture]] = []
    phases: tuple[tuple[float, float, str], ...]
    if "toy" in problems:
        found.append(lambda: toy_figure(problems["toy"], seed, samples))
    if "schedule" in problems:
        found.append(lambda: flow_figure(measure(problems["schedule"])))
        found.append(lambda: kernel_figure(problems["schedule"].package, seed))
    for number, truth in runs:
        own = runs[number, truth]
        if number == 2:
            phases = ((0.0, 4.0, "tight"), (5.0, 10.0, "loose"), (11.0, 20.0, "very tight"))
            found.append(_density(2, truth, _SCHEDULE, problems["schedule"], own, phases))
        if number == 3:
            phases = ((0.0, 10.0, "free"), (11.0, 20.0, "tight"))
            found.append(_density(3, truth, _RELEVANCE, problems["relevance"], own, phases))
        if number == 4 and truth == "paper":
            found.append(lambda own=own: beliefs_figure(problems["drift"], own, own["dual"].truths[0]))  # type: ignore[misc]
    pictures = []
    with styled():
        for position, draw in enumerate(found):
            report("drawing", position / len(found))
            pictures.append(draw())
    return pictures


def _density(
    number: int,
    truth: str,
    explanation: str,
    problem: Problem,
    runs: Mapping[str, Recorded],
    phases: tuple[tuple[float, float, str], ...],
) -> Callable[[], Picture]:
    shown = {key: own.first(SHOWN_RUNS) for key, own in runs.items()}
    count = len(shown["ce"].states)
    title = f"Exp {number}: {count} trajectories of every controller"
    if truth == "prior":
        title += ", truth from the prior"
        explanation = _READING + "The same with a truth of its own for every run, drawn from the model's prior."
    return lambda: density_figure(f"exp{number}-{truth}", title, explanation, problem, shown, phases)
