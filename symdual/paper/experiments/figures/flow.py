"""Fig. 2: the flow of a dual decision with the measured time of each box."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from matplotlib.patches import FancyBboxPatch, Polygon

from symdual.paper.experiments.figures.style import LOOKS, Picture, figure, picture
from symdual.paper.experiments.timing import Boxes
from symdual.report.palette import EDGE, GROUND, INK, SOFT

_WIDTH, _HEIGHT = 2.5, 0.82


def flow_figure(times: Boxes) -> Picture:
    """The paper's flow chart, the inner loop on the left, the run on the right."""
    inner = times.candidates * (times.nominal + times.cost_to_go)
    drawn = figure(4.6)
    axes = drawn.subplots()
    axes.set(xlim=(-4.9, 5.6), ylim=(-6.65, 0.75))
    axes.axis("off")
    _box(axes, -3.3, 0.0, "initialise", None)
    _box(axes, 0.0, 0.0, "ce control", times.certain)
    _box(axes, 0.0, -1.35, "predict one step\nfor a given $u_k$ (in ②)", None)
    _box(axes, 0.0, -2.7, "① nominal plan\nof the candidate", times.nominal)
    _box(axes, 0.0, -4.05, "② its covariances\nand cost-to-go", times.cost_to_go)
    _box(axes, -3.3, -5.6, "③ next candidate\nof the search", times.search)
    _box(axes, 3.9, -5.6, "apply the control", None)
    _box(axes, 3.9, -4.05, "run the system", times.plant)
    _box(axes, 3.9, -2.7, "measure, predict\nand update", times.filter)
    _diamond(axes, 0.0, -5.6, "search over?")
    half, tall = _WIDTH / 2, _HEIGHT / 2
    for start, end in (
        ((-3.3 + half, 0), (-half, 0)),
        ((0, -tall), (0, -1.35 + tall)),
        ((0, -1.35 - tall), (0, -2.7 + tall)),
        ((0, -2.7 - tall), (0, -4.05 + tall)),
        ((0, -4.05 - tall), (0, -5.6 + 0.52)),
        ((-1.3, -5.6), (-3.3 + half, -5.6)),
        ((1.3, -5.6), (3.9 - half, -5.6)),
        ((3.9, -5.6 + tall), (3.9, -4.05 - tall)),
        ((3.9, -4.05 + tall), (3.9, -2.7 - tall)),
    ):
        _arrow(axes, [start, end])
    _arrow(axes, [(-3.3, -5.6 + tall), (-3.3, -1.35), (-half, -1.35)])
    _arrow(axes, [(3.9, -2.7 + tall), (3.9, 0.0), (half, 0.0)])
    axes.text(-1.65, -5.5, "no", ha="center", va="bottom", fontsize=8, color=SOFT)
    axes.text(1.95, -5.5, "yes", ha="center", va="bottom", fontsize=8, color=SOFT)
    axes.text(
        -3.12, -3.4, f"{times.candidates} candidates:\none decision takes\n{_shown(times.decision)}", fontsize=8.5,
        color=LOOKS["dual"].colour, weight="bold", va="center",
    )  # fmt: skip
    return picture(
        drawn,
        "fig2-flow",
        "Fig. 2: the flow of a decision, with measured times",
        "The algorithm of the paper's Fig. 2; the times are those of the first decision of Exp 2 (two states, 30 "
        "unknown weights, 20 steps), measured on this machine in the compiled code (processor time, the best of "
        "several rounds). The left loop runs once for every "
        f"candidate of the search: {_sum(times)} = {_shown(times.decision)}, "
        f"of which boxes 1 and 2 are {100 * inner / times.decision:.0f} %. "
        "(The boxes outside of the loop are called from Python, which adds a few microseconds to each.)",
        f"A decision looks at {times.candidates} candidates and takes {_shown(times.decision)}.",
    )


def _sum(times: Boxes) -> str:
    """The boxes of a decision, as often as they run; three digits of each, so that what is printed adds up too."""
    loop = [_shown(part) for part in (times.nominal, times.cost_to_go, times.search) if part > 0.0]
    return f"{_shown(times.certain)} + {times.candidates} \N{MULTIPLICATION SIGN} ({' + '.join(loop)})"


def _shown(microseconds: float) -> str:
    if microseconds >= 1000.0:
        return f"{microseconds / 1000.0:.3g} ms"
    return f"{microseconds:.3g} µs" if microseconds > 0.0 else "too little to measure"


def _box(axes: Any, x: float, y: float, words: str, microseconds: float | None) -> None:
    axes.add_patch(
        FancyBboxPatch(
            (x - _WIDTH / 2, y - _HEIGHT / 2), _WIDTH, _HEIGHT, boxstyle="round,pad=0,rounding_size=0.1",
            facecolor=GROUND, edgecolor=EDGE, linewidth=0.9,
        )
    )  # fmt: skip
    lift = 0.0 if microseconds is None else 0.14
    axes.text(x, y + lift, words, ha="center", va="center", fontsize=8.5, linespacing=1.1)
    if microseconds is not None:
        axes.text(
            x, y - _HEIGHT / 2 + 0.05, _shown(microseconds), ha="center", va="bottom", fontsize=8, weight="bold",
            color=LOOKS["dual"].colour,
        )  # fmt: skip


def _diamond(axes: Any, x: float, y: float, words: str) -> None:
    corners = [(x - 1.3, y), (x, y + 0.52), (x + 1.3, y), (x, y - 0.52)]
    axes.add_patch(Polygon(corners, closed=True, facecolor=GROUND, edgecolor=EDGE, linewidth=0.9))
    axes.text(x, y, words, ha="center", va="center", fontsize=8.5)


def _arrow(axes: Any, points: list[tuple[float, float]]) -> None:
    for start, end in pairwise(points[:-1]):
        axes.plot(*zip(start, end, strict=True), color=INK, linewidth=1.0)
    axes.annotate(
        "", xy=points[-1], xytext=points[-2],
        arrowprops={
            "arrowstyle": "-|>", "color": INK, "linewidth": 1.0, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 9,
        },
    )  # fmt: skip
