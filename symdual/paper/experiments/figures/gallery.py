"""All figures of a run, those whose experiments were run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from symdual.paper.experiments.captions import READING, of_relevance, of_schedule
from symdual.paper.experiments.figures.beliefs import beliefs_figure
from symdual.paper.experiments.figures.density import density_figure
from symdual.paper.experiments.figures.flow import flow_figure
from symdual.paper.experiments.figures.kernel import kernel_figure
from symdual.paper.experiments.figures.style import Picture, styled
from symdual.paper.experiments.figures.toy import toy_figure
from symdual.paper.experiments.run import Recorded
from symdual.paper.experiments.timing import measure_apart
from symdual.runtime.problem import Problem

SHOWN_RUNS = 50  # as in the paper


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
        found.append(lambda: flow_figure(measure_apart(problems["schedule"])))
        found.append(lambda: kernel_figure(problems["schedule"].package, seed))
    for number, truth in runs:
        own = runs[number, truth]
        if number == 2:
            phases = ((0.0, 4.0, "tight"), (5.0, 10.0, "loose"), (11.0, 20.0, "very tight"))
            found.append(_density(2, truth, of_schedule(own), problems["schedule"], own, phases))
        if number == 3:
            phases = ((0.0, 10.0, "free"), (11.0, 20.0, "tight"))
            found.append(_density(3, truth, of_relevance(own), problems["relevance"], own, phases))
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
        explanation = READING + "The same with a truth of its own for every run, drawn from the model's prior."
    return lambda: density_figure(f"exp{number}-{truth}", title, explanation, problem, shown, phases)
