"""All figures of a run, those whose experiments were run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from symdual.paper.experiments import crew
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

if TYPE_CHECKING:
    from symdual.paper.experiments.outcome import Request

SHOWN_RUNS = 50  # as in the paper
SAMPLES = 6000  # draws of Fig. 1
#: of the experiments whose trajectories are drawn: first and last step of each phase, and its name
PHASES = {
    2: ((0.0, 4.0, "tight"), (5.0, 10.0, "loose"), (11.0, 20.0, "very tight")),
    3: ((0.0, 10.0, "free"), (11.0, 20.0, "tight")),
}

Sketch = Callable[[], Picture]  #: draws a figure; can be pickled


def sketches(
    number: int, problem: Problem, runs: Mapping[str, Mapping[str, Recorded]], request: Request
) -> list[Sketch]:
    """The figures of an experiment, from its runs by truth and arm."""
    found: list[Sketch] = []
    if number == 1:
        found.append(partial(toy_figure, problem, request.seed, SAMPLES // 6 if request.quick else SAMPLES))
    if number == 2:
        found += [partial(_measured_flow, problem), partial(kernel_figure, problem.package, request.seed)]
    for truth in ("prior", "paper"):
        if truth in runs and number in PHASES:
            found.append(_density(number, truth, problem, runs[truth]))
    if number == 4 and "paper" in runs:
        found.append(partial(beliefs_figure, problem, runs["paper"], runs["paper"]["dual"].truths[0]))
    return found


def drawn(sketch: Sketch) -> Picture:
    """The figure; to be called in a process of a crew."""
    with styled():
        picture = sketch()
    crew.report("figures", picture.title, math.nan)
    return picture


def _measured_flow(problem: Problem) -> Picture:
    return flow_figure(measure_apart(problem))


def _density(number: int, truth: str, problem: Problem, runs: Mapping[str, Recorded]) -> Sketch:
    shown = {key: own.first(SHOWN_RUNS) for key, own in runs.items()}
    title = f"Exp {number}: {len(shown['ce'].states)} trajectories of every controller"
    explanation = {2: of_schedule, 3: of_relevance}[number](runs)
    if truth == "prior":
        title += ", truth from the prior"
        explanation = READING + "Every run has a truth of its own, drawn from the model's prior."
    return partial(density_figure, f"exp{number}-{truth}", title, explanation, problem, shown, PHASES[number])
